"""Reads step lines of the shape `START | key: value | key: value |`, as Megatron and NeMo print."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from perfdb.errors import Problem
from perfdb.formats.numbers import NUMBER, WHOLE
from perfdb.formats.scan import LOOKAHEAD, Block, decoded
from perfdb.formats.steps import MOST_KEPT

Row = Mapping[str, float]

_SIMPLE = rb"([\d.eE+naif\-]++)"


@dataclass(frozen=True)
class Syntax:
    """How a program prints a step.

    `marker` stands once in each step line; `start` is where a step's text begins, with a group for
    each of `counters`; `fields` are the keys that matter; `required` those no step is without;
    `facts` those that say something of the run rather than of a step. A value may be a pair
    `last/average`: the last is taken.
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
        return re.compile(rf"[^|\n]{{0,40}}?\s*(?:{keys}): *[^|\n]*(?:\||$)")


@dataclass(frozen=True)
class Columns:
    """The steps of a block: their lines, and for each counter and field its values or None."""

    lines: Sequence[int]
    cells: Mapping[str, Sequence[float | None]]

    def of(self, name: str) -> Sequence[float | None]:
        """The values of a field; None for each step where no step has it."""
        return self.cells.get(name) or [None] * len(self.lines)


class StepLines:
    """Reads the steps of a log's blocks one after another.

    The lines of one log look alike: the last line read becomes a pattern that reads the next block
    at once. It counts only if it reads every step line there is, else each is looked at alone.

    `problems`: the step lines that could not be read. `seen`: each value of each fact.
    `last`: each fact as it stands on the last step line.
    """

    def __init__(self, where: str, syntax: Syntax) -> None:
        self._where = where
        self._syntax = syntax
        self._layout: _Layout | None = None
        self.problems: list[Problem] = []
        self.seen: dict[str, set[float]] = {name: set() for name in syntax.facts}
        self.last: dict[str, float | None] = {}

    def read(self, block: Block) -> Columns:
        """The steps of a block, in the order they stand there."""
        columns = (self._layout and self._layout.read(block)) or self._one_by_one(block)
        for name in self._syntax.facts if columns.lines else ():
            values = columns.of(name)
            self.seen[name].update(value for value in set(values) if value is not None)
            self.last[name] = values[-1]
        return columns

    def only(self, name: str) -> float | None:
        """The value of a fact; None where it has several, or none."""
        values = self.seen[name]
        return next(iter(values)) if len(values) == 1 else None

    def _one_by_one(self, block: Block) -> Columns:
        rows: list[tuple[int, Row]] = []
        for line, text in _step_texts(block, self._syntax):
            row = _row(text, self._syntax)
            missing = [name for name in self._syntax.required if name not in row]
            if not missing:
                rows.append((line, row))
                self._layout = _layout(text, self._syntax) or self._layout
            elif len(self.problems) < MOST_KEPT:
                self.problems.append(_unreadable(self._where, line, missing))
        names = {name for _, row in rows for name in row}
        cells = {name: [row.get(name) for _, row in rows] for name in names}
        return Columns([line for line, _ in rows], cells)


def _unreadable(where: str, line: int, missing: Sequence[str]) -> Problem:
    return Problem(
        where,
        f"a step without {' and '.join(map(repr, missing))}",
        line=line,
        remedy="is the line cut off?",
    )


def _row(text: str, syntax: Syntax) -> Row:
    start = syntax.starts.match(text)
    counters = start.groups() if start else ()
    row = {name: float(value) for name, value in zip(syntax.counters, counters, strict=False)}
    for name, value in syntax.values.findall(text):
        row.setdefault(name, float(value))
    return row


def _step_texts(block: Block, syntax: Syntax) -> Iterator[tuple[int, str]]:
    """The text of each step with the number of its line, in order."""
    hits = block.lines_with(syntax.marker)
    for (start, end), line in zip(hits.spans, hits.numbers, strict=True):
        following = decoded(block.text[end : end + LOOKAHEAD])
        for text in _texts(decoded(block.text[start:end]), syntax):
            yield line, _continued(text, following, syntax)


def _texts(line: str, syntax: Syntax) -> list[str]:
    """The steps that stand on one line: ranks that print at once may share it."""
    starts = [match.start() for match in syntax.starts.finditer(line)]
    if not starts:
        return [line]
    return [_to_return(line[a:b]) for a, b in pairwise([*starts, len(line)])]


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


@dataclass(frozen=True)
class _Layout:
    """A pattern made of one step line that reads all lines with the same keys in the same order."""

    marker: bytes
    pattern: re.Pattern[bytes]
    names: tuple[str, ...]

    def read(self, block: Block) -> Columns | None:
        """The steps of a block; None if one of its step lines looks different."""
        hits = block.lines_with(self.marker)
        found = b"".join([block.text[start:end] for start, end in hits.spans])
        rows = self.pattern.findall(found)
        if not rows or len(rows) != found.count(self.marker) or len(rows) != len(hits.numbers):
            return None
        try:
            columns = [_numbers(column) for column in zip(*rows, strict=True)]
        except ValueError:
            return None
        return Columns(hits.numbers, dict(zip(self.names, columns, strict=True)))


def _numbers(column: Sequence[bytes]) -> list[float]:
    """A column of numbers; values that come again and again are converted once."""
    distinct = set(column)
    if len(distinct) * 4 > len(column):
        return list(map(float, column))
    known = {value: float(value) for value in distinct}
    return list(map(known.__getitem__, column))


def _layout(text: str, syntax: Syntax) -> _Layout | None:
    """The layout of a step's text; None where it is not on one line, or holds unusual values."""
    start, *tokens = text.rstrip("\n").split("|")
    keys = [token.partition(":")[0].strip() for token in tokens if ":" in token]
    tail = "" if tokens and not tokens[-1].strip() else None
    if "\n" in text[:-1] or "\r" in text or len(keys) != len(tokens) - (tail == ""):
        return None
    parts = [syntax.start.encode(), *(_field(key, syntax) for key in keys)]
    end = rb"[^\S\n]*+\|" if tail == "" else rb"[^\S\n]*+\n"
    names = (*syntax.counters, *(key for key in keys if key in syntax.fields))
    pattern = re.compile(rb"[^\S\n]*+\|[^\S\n]*+".join(parts) + end)
    return _Layout(syntax.marker, pattern, names) if start else None


def _field(key: str, syntax: Syntax) -> bytes:
    literal = re.escape(key).encode() + rb": *+"
    return literal + (_SIMPLE if key in syntax.fields else rb"[^|\n]*+")
