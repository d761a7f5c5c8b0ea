"""Reads the step lines of a log and keeps account of what they say of its run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO

from perfdb.errors import Diagnostic
from perfdb.formats.block import Block
from perfdb.formats.halves import halved
from perfdb.formats.lines import KeptLines, Lines, read
from perfdb.formats.piped import Syntax
from perfdb.formats.readings import Columns, Readings, distinct
from perfdb.formats.scan import LAST_STEPS, End, Scan
from perfdb.formats.shapes import Shape
from perfdb.formats.shelf import Shelf
from perfdb.formats.steps import MOST_KEPT

MANY_STEPS = 500
"""So many step lines of a block are worth to be read by themselves."""
KEPT_BYTES = 4 << 20
"""Of blocks with few step lines they are kept until they are so many, with what stands behind."""
MADE_AT_ONCE = 1 << 16
"""How many steps are made of their columns at once."""


@dataclass(frozen=True)
class Cut:
    """Steps that a fold may have cut something off: how many, and the line of the first."""

    num_steps: int = 0
    line: int = 0

    def and_of(self, num_steps: int, line: int) -> "Cut":
        """These and so many more, of which the first is on this line."""
        if not num_steps:
            return self
        return Cut(self.num_steps + num_steps, min(line, self.line or line))


class StepLines:
    """Reads the steps of a log.

    Any line could be read by itself; but most lines of a log differ in their digits alone, so what
    is found in one says where the numbers of thousands stand.

    `make`: what the columns of a format are as steps. `problems`: the step lines that could not be
    read. `cut`: the steps that a fold may have cut something off. `seen`: each value of
    each fact. `last`: each fact as it stands on the last step line.
    """

    def __init__(
        self,
        where: str,
        syntax: Syntax,
        make: Callable[[Columns], Readings],
        file: IO[bytes] | None = None,
    ) -> None:
        self._where = where
        self._make = make
        self._syntax = syntax
        self._shapes: list[Shape] = []
        self._kept = KeptLines()
        self._found: list[Columns] = []
        self._steps = Shelf(file)
        self.problems: list[Diagnostic] = []
        self.cut = Cut()
        self.seen: dict[str, set[float]] = {name: set() for name in syntax.facts}
        self.last: dict[str, float | None] = {}

    def of(self, scan: Scan) -> Readings:
        """The steps of a log. Of a large one another process reads the second half meanwhile."""
        halves = halved(scan, self._apart)
        for block in scan:
            self.add(block)
        if halves and halves.found:
            self._go_on_with(halves.found, halves.shared, scan)
        return self.readings()

    def _apart(self, scan: Scan, file: IO[bytes]) -> "Found | None":
        """What the rest of a log holds, if its end can be told without what stands before.

        Its steps are in the file, where they are many.
        """
        rest = StepLines(self._where, self._syntax, self._make, file)
        if len(rest.of(scan)) < LAST_STEPS:
            return None
        return Found(rest._steps, rest.problems, rest.cut, rest.seen, rest.last, scan.end)

    def _go_on_with(self, found: "Found", file: IO[bytes], scan: Scan) -> None:
        """Take over the steps of the rest of a log, whose lines count from 1."""
        self._make_steps()
        lines = scan.line - 1
        for steps in found.steps.readings(file).parts(MADE_AT_ONCE):
            self._steps.add(replace(steps, line=steps.line + lines))
        self.problems += [replace(one, line=(one.line or 0) + lines) for one in found.problems]
        del self.problems[MOST_KEPT:]
        self.cut = self.cut.and_of(found.cut.num_steps, found.cut.line + lines)
        for name, values in found.seen.items():
            self.seen[name] |= values
        self.last = found.last
        scan.end_with(found.end)

    def add(self, block: Block) -> None:
        """Take the step lines of the next block of a log: at once where they are many."""
        lines = Lines.of(block, self._syntax.marker)
        if len(lines) >= MANY_STEPS:
            self._take(lines)
        else:
            self._kept.add(lines)
        if self._kept.size_bytes >= KEPT_BYTES:
            self._take(self._kept.taken())
        if sum(len(one.lines) for one in self._found) >= MADE_AT_ONCE:
            self._make_steps()

    def readings(self) -> Readings:
        """The steps of all the blocks."""
        self._make_steps()
        return self._steps.readings()

    def _take(self, lines: Lines) -> None:
        found = read(lines, self._syntax, self._shapes)
        self._found.append(found.columns)
        self.cut = self.cut.and_of(len(found.cut), min(found.cut, default=0))
        missing = found.missing[: MOST_KEPT - len(self.problems)]
        self.problems += [_unreadable(self._where, line, names) for line, names in missing]

    def _make_steps(self) -> None:
        """Make steps of all that was found, in the order of its lines."""
        self._take(self._kept.taken())
        found, self._found = self._found, []
        if not any(len(one.lines) for one in found):
            return
        columns = Columns.joined(found).in_order()
        self._steps.add(self._make(columns))
        for name in self._syntax.facts:
            column = columns.of(name)
            self.seen[name].update(distinct(column.values[column.known]))
            self.last[name] = column.at(slice(-1, None)).cells()[0]


@dataclass(frozen=True, eq=False)
class Found:
    """What a reader of step lines has found, and the end of its log."""

    steps: Shelf
    problems: Sequence[Diagnostic]
    cut: Cut
    seen: Mapping[str, set[float]]
    last: dict[str, float | None]
    end: End


def _unreadable(where: str, line: int, missing: Sequence[str]) -> Diagnostic:
    return Diagnostic(
        where,
        f"a step without {' and '.join(map(repr, missing))}",
        line=line,
        remedy="is the line cut off?",
    )
