"""How a step line of the shape `START | key: value | key: value |` is read by itself.

Megatron and NeMo print such lines.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from perfdb.formats.numbers import NUMBER, WHOLE
from perfdb.formats.readings import Flags, Ints
from perfdb.formats.scan import Bytes

Span = tuple[int, int]
"""Where a number starts and ends."""

_PREFIX, _GAP = 40, 17
"""How much may stand before the key that a step goes on with, and how much space is usual there."""
_NO_ASCII = 0x80


@dataclass(frozen=True)
class Syntax:
    """How a program prints a step.

    `marker` stands once in each step line; `start` is where a step's text begins, with a group for
    each of `counters`; `fields` are the keys that matter, none of which holds a digit; `required`
    those no step is without; `facts` those that say something of the run rather than of a step.
    A value may be a pair `last/average`: the last is taken.
    """

    marker: bytes
    start: str
    counters: tuple[str, ...]
    fields: tuple[str, ...]
    required: tuple[str, ...]
    facts: tuple[str, ...]

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
        return re.compile(rf"[^|\n]{{0,{_PREFIX}}}?\s*(?:{keys}): *[^|\n]*(?:\||$)")

    @cached_property
    def ends_key(self) -> Flags:
        """Of each byte, whether a key ends with it."""
        last = np.zeros(256, np.bool_)
        last[[ord(key[-1]) for key in self.fields]] = True
        return last

    @cached_property
    def continuation_bytes(self) -> int:
        """How many bytes of a line tell whether it may go on with a step."""
        return _PREFIX + _GAP + max(map(len, self.fields)) + 1


@dataclass(frozen=True)
class StepText:
    """The text of a step, and where it begins on its line.

    `is_wrapped`: it goes on, on the lines behind. `is_open`: it would, were they to look like it.
    """

    text: str
    offset: int
    is_wrapped: bool
    is_open: bool

    def spans(self, syntax: Syntax) -> dict[str, Span]:
        """Where in the text the counters and fields stand; of a field told twice, the first."""
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
        whole = _continued(text, following, syntax)
        yield StepText(whole, start, len(whole) > len(text), text.rstrip().endswith("|"))


def _to_return(text: str) -> str:
    """Up to the carriage return that a progress bar overwrites its line with, if there is one."""
    return text[: text.find("\r") + 1] or text


def _continued(piece: str, following: str, syntax: Syntax) -> str:
    """A step's text with the lines that it was wrapped on to."""
    for line in following.splitlines(keepends=True):
        wrapped = syntax.continuation.match(line) and not syntax.starts.search(line)
        if not wrapped or not piece.rstrip().endswith("|"):
            break
        piece += line
    return piece


def may_go_on(following: Bytes, syntax: Syntax) -> Flags:
    """Of which steps the text may go on, by the first `continuation_bytes` of the lines behind.

    It does only where a key stands before the first bar. In doubt, it may.
    """
    may = np.zeros(len(following), np.bool_)
    if following.size and following.max() >= _NO_ASCII:
        may |= (following >= _NO_ASCII).any(axis=1)
    blank = np.flatnonzero(following[:, _PREFIX] <= ord(" "))
    may[blank] |= (following[blank, _PREFIX : _PREFIX + _GAP] <= ord(" ")).all(axis=1)
    keyed = _with_a_key(following, syntax)
    bars = np.equal(following[keyed, 1:], ord("|"))
    ends = np.equal(following[keyed, 1:], ord(":")) & syntax.ends_key[following[keyed, :-1]]
    is_behind = bars.any(axis=1) & (bars.argmax(axis=1) < ends.argmax(axis=1))
    may[keyed[~is_behind]] = True
    return may


def _with_a_key(following: Bytes, syntax: Syntax) -> Ints:
    """The rows in which a colon stands behind what may be the end of a key."""
    flat, size = following.ravel(), following.shape[1]
    colons = np.flatnonzero(np.equal(flat, ord(":")))
    colons = colons[(colons % size > 0) & syntax.ends_key[flat[colons - 1]]]
    rows = colons // size
    return np.asarray(rows[np.diff(rows, prepend=-1) > 0])
