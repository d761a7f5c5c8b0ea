"""How a step line of the shape `START | key: value | key: value |` is read by itself.

Megatron and NeMo print such lines.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from perfdb.formats.numbers import NUMBER, WHOLE

Span = tuple[int, int]
"""Where a number starts and ends."""


@dataclass(frozen=True)
class Syntax:
    """How a program prints a step.

    `marker` stands once in each step line; `start` is where a step's text begins, with a group for
    each of `counters`; `fields` are the keys that matter, none of which holds a digit; `required`
    those no step is without; `facts` those that say something of the run rather than of a step;
    `last`: the field that stands behind all others, where there is one.
    A value may be a pair `last/average`: the last is taken.
    """

    marker: bytes
    start: str
    counters: tuple[str, ...]
    fields: tuple[str, ...]
    required: tuple[str, ...]
    facts: tuple[str, ...]
    last: str | None = None

    @cached_property
    def starts(self) -> re.Pattern[str]:
        """Finds where the text of a step begins."""
        return re.compile(self.start + r"\s*\|")

    @cached_property
    def values(self) -> re.Pattern[str]:
        """Finds the fields that matter, each with its value."""
        keys = "|".join(map(re.escape, sorted(self.fields, key=len, reverse=True)))
        average = rf"(?:/{NUMBER})?"
        return re.compile(rf"\|\s*({keys}):[ \t]*({NUMBER}){average}{WHOLE}")

    @cached_property
    def continuation(self) -> re.Pattern[str]:
        """A line that goes on with a step that began on an earlier one: it begins with a key."""
        keys = "|".join(map(re.escape, self.fields))
        return re.compile(rf"[^|\n]{{0,40}}?\s*(?:{keys}): *[^|\n]*(?:\||$)")

    @property
    def names(self) -> tuple[str, ...]:
        """All the numbers that a step may have."""
        return (*self.counters, *self.fields)

    def is_open(self, text: str) -> bool:
        """Whether a step of this text would go on on the next line, were that to look like it."""
        return text.rstrip().endswith("|") and not (self.last and f"{self.last}:" in text)


@dataclass(frozen=True)
class StepText:
    """The text of a step, where it begins on its line, and whether it might end elsewhere."""

    text: str
    offset: int
    is_open: bool

    def spans(self, syntax: Syntax) -> Mapping[str, Span]:
        """Where in its text the counters and fields stand; of a field told twice, the first."""
        start = syntax.starts.match(self.text)
        counters = syntax.counters if start else ()
        spans = {name: start.span(n) for n, name in enumerate(counters, 1) if start}
        for found in syntax.values.finditer(self.text):
            spans.setdefault(found[1], found.span(2))
        return spans


def step_texts(line: str, following: str, syntax: Syntax) -> Iterator[StepText]:
    """The steps that stand on one line: ranks that print at once may share it."""
    starts = [match.start() for match in syntax.starts.finditer(line)]
    for start, end in pairwise([*starts, len(line)]) if starts else [(0, len(line))]:
        text = _to_return(line[start:end]) if starts else line
        yield StepText(_continued(text, following, syntax), start, syntax.is_open(text))


def _to_return(text: str) -> str:
    """Up to the carriage return that a progress bar overwrites its line with, if there is one."""
    return text[: text.find("\r") + 1] or text


def _continued(piece: str, following: str, syntax: Syntax) -> str:
    """A step's text with the lines that it was wrapped on to."""
    for line in following.splitlines(keepends=True):
        wrapped = syntax.continuation.match(line) and not syntax.starts.search(line)
        if not wrapped or not syntax.is_open(piece):
            break
        piece += line
    return piece
