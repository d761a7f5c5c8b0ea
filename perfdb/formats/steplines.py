"""Reads the step lines of a log and keeps account of what they say of its run."""

from collections.abc import Callable, Iterable, Sequence

from perfdb.errors import Problem
from perfdb.formats.ahead import ahead
from perfdb.formats.alike import read
from perfdb.formats.lines import KeptLines, Lines
from perfdb.formats.piped import Syntax
from perfdb.formats.readings import Columns, Readings, distinct
from perfdb.formats.scan import Block
from perfdb.formats.shapes import Shape
from perfdb.formats.steps import MOST_KEPT

AT_ONCE = 500
"""From so many lines on they are read."""


class StepLines:
    """Reads the steps of a log.

    Any line could be read by itself; but most lines of a log differ in their digits alone, so what
    is found in one says where the numbers of thousands stand.

    `make`: what the columns of a format are as steps. `problems`: the step lines that could not be
    read. `seen`: each value of each fact. `last`: each fact as it stands on the last step line.
    """

    def __init__(self, where: str, syntax: Syntax, make: Callable[[Columns], Readings]) -> None:
        self._where = where
        self._make = make
        self._syntax = syntax
        self._shapes: dict[int, list[Shape]] = {}
        self._kept = KeptLines()
        self._parts: list[Readings] = []
        self.problems: list[Problem] = []
        self.seen: dict[str, set[float]] = {name: set() for name in syntax.facts}
        self.last: dict[str, float | None] = {}

    def of(self, blocks: Iterable[Block]) -> Readings:
        """The steps of all blocks of a log."""
        found = (Lines.of(block, self._syntax.marker) for block in blocks)
        for lines in found:
            self._hold(lines)
            if len(lines) >= AT_ONCE:
                break  # From here on reading takes as long as finding: a thread is worth it.
        for lines in ahead(found):
            self._hold(lines)
        return self.readings()

    def add(self, block: Block) -> None:
        """Take the step lines of the next block of a log."""
        self._hold(Lines.of(block, self._syntax.marker))

    def _hold(self, lines: Lines) -> None:
        is_many = len(lines) >= AT_ONCE
        if not is_many:
            self._kept.add(lines)
        if self._kept and (is_many or len(self._kept) >= AT_ONCE):
            self._read(self._kept.taken())
        if is_many:
            self._read(lines)

    def readings(self) -> Readings:
        """The steps of all the blocks."""
        if self._kept:
            self._read(self._kept.taken())
        return Readings.joined(self._parts)

    def only(self, name: str) -> float | None:
        """The value of a fact; None where it has several, or none."""
        values = self.seen[name]
        return next(iter(values)) if len(values) == 1 else None

    def _read(self, lines: Lines) -> None:
        found = read(lines, self._syntax, self._shapes)
        self._parts.append(self._make(found.columns))
        missing = found.missing[: MOST_KEPT - len(self.problems)]
        self.problems += [_unreadable(self._where, line, names) for line, names in missing]
        for name in self._syntax.facts if len(found.columns.lines) else ():
            column = found.columns.of(name)
            self.seen[name].update(distinct(column.values[column.known]))
            self.last[name] = column.at(slice(-1, None)).cells()[0]


def _unreadable(where: str, line: int, missing: Sequence[str]) -> Problem:
    return Problem(
        where,
        f"a step without {' and '.join(map(repr, missing))}",
        line=line,
        remedy="is the line cut off?",
    )
