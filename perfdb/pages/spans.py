"""From rows whose cells span rows and columns to tables in which every row has all its cells.

A cell that spans rows holds for each of them. A row that is one cell across the whole table is no
row: it labels the rows below it, or says something of the table where none follow.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import Final

from perfdb.pages.base import Cell, Enter, Grid, Leave, Line, Piece, Row

_WIDEST: Final = 200
"""Columns of the widest table whose spans are followed: more would be an attack, not a table."""


@dataclass(frozen=True)
class Spanned:
    """A cell, how many columns and rows it takes, and whether it is marked as a title."""

    cell: Cell
    columns: int = 1
    rows: int = 1
    title: bool = False


@dataclass(frozen=True)
class SpannedRow:
    """A row as it is written; `head`: it stands in the table's marked head."""

    line: int
    cells: tuple[Spanned, ...]
    head: bool = False

    def titles(self, *, first: bool) -> bool:
        """Whether it names columns; a title that stands alone does so on top (`first`) only."""
        alone = len(self.cells) == 1 and not first
        return self.head or (not alone and all(cell.title for cell in self.cells))


@dataclass(frozen=True)
class _Full:
    """A row with all its cells; `label`: one cell across the table."""

    row: Row
    label: bool


def pieces(rows: Iterable[SpannedRow]) -> Iterator[Piece]:
    """The tables that rows make: a row of titles below other rows starts another one."""
    written = [row for row in rows if row.cells]
    top = sum(1 for _ in takewhile(lambda row: row.titles(first=True), written))
    named = [(row, row.titles(first=at < top)) for at, row in enumerate(written)]
    head: list[SpannedRow] = []
    for titles, numbered in groupby(named, key=lambda pair: pair[1]):
        group = [row for row, _ in numbered]
        if titles:
            head = group
        else:
            yield from _table(head, group) if head else _table(group[:1], group[1:])
            head = []
    if head:
        yield from _table(head, [])


def _table(head: Sequence[SpannedRow], body: Sequence[SpannedRow]) -> Iterator[Piece]:
    width = max(_width(row) for row in head)
    full_head = list(_filled(head, width))
    above = [full.row for full in full_head if full.label]
    titles = [full.row for full in full_head if not full.label] or [full_head[-1].row]
    header, spanners = _header(titles), _spanners(titles)
    for label in above:
        yield Enter(label.cells[0].text, label.line)
    for piece in _grids(header, list(_filled(body, len(header.cells)))):
        yield replace(piece, spanners=spanners) if isinstance(piece, Grid) else piece
    yield from (Leave() for _ in above)


def _grids(header: Row, body: Sequence[_Full]) -> Iterator[Piece]:
    """The rows, those below a label in a box of that name; labels that end a table are lines."""
    end = len(body)
    while end and body[end - 1].label:
        end -= 1
    if not end:
        yield Grid(header, ())
    labels: tuple[Row, ...] = ()
    for label, group in groupby(body[:end], key=lambda full: full.label):
        rows = tuple(full.row for full in group)
        if label:
            labels = rows
        else:
            yield from (Enter(row.cells[0].text, row.line) for row in labels)
            yield Grid(header, rows)
            yield from (Leave() for _ in labels)
    yield from (Line(full.row.cells[0].text, full.row.line) for full in body[end:])


def _width(row: SpannedRow) -> int:
    """The columns of a row of titles, no more than are followed unless it has so many cells."""
    spanned = sum(min(cell.columns, _WIDEST) for cell in row.cells)
    return max(len(row.cells), min(spanned, _WIDEST))


def _filled(rows: Sequence[SpannedRow], width: int) -> Iterator[_Full]:
    """Each row with the cells that reach into it from above."""
    if width > _WIDEST:
        yield from (_Full(Row(r.line, tuple(c.cell for c in r.cells)), False) for r in rows)
        return
    reaching: dict[int, tuple[Cell, int]] = {}
    for row in rows:
        alone = len(row.cells) == 1 and not reaching and width > 1
        label = alone and row.cells[0].columns >= width
        cells, reaching = _fill(row, reaching, width)
        yield _Full(Row(row.line, cells), label)


def _fill(
    row: SpannedRow, reaching: dict[int, tuple[Cell, int]], width: int
) -> tuple[tuple[Cell, ...], dict[int, tuple[Cell, int]]]:
    """The cells of a row, and by column those that reach into the next with how far they do."""
    cells: list[Cell] = []
    further = {at: (cell, left - 1) for at, (cell, left) in reaching.items() if left > 1}

    def reach() -> None:
        while len(cells) in reaching:
            cells.append(reaching[len(cells)][0])

    for one in row.cells:
        reach()
        columns = max(1, min(one.columns, width - len(cells)))
        cell = replace(one.cell, wide=columns > 1)
        for _ in range(columns):
            if one.rows > 1 and len(cells) < width:
                further[len(cells)] = (cell, one.rows - 1)
            cells.append(cell)
    reach()
    return tuple(cells), further


def _header(rows: Sequence[Row]) -> Row:
    """One row of titles: the lowest title of each column; with those above where it stands twice.

    A column `TP` below `Parallelism` is TP; two columns `Tokens/s/GPU` below `BF16` and `FP8` are
    told apart.
    """
    last = rows[-1]
    twice = Counter(cell.text for cell in last.cells)
    return Row(
        last.line,
        tuple(
            _title(stack) if twice[stack[-1].text] > 1 else _lowest(stack)
            for stack in _stacks(rows)
        ),
    )


def _spanners(rows: Sequence[Row]) -> Row | None:
    """What stands above the lowest title of each column; None of a header of one row."""
    above = [[cell for cell in it if cell.text != _lowest(it).text] for it in _stacks(rows)]
    return Row(rows[0].line, tuple(map(_title, above))) if any(above) else None


def _stacks(rows: Sequence[Row]) -> list[list[Cell]]:
    """The titles of each column, from above."""
    width = len(rows[-1].cells)
    return [[row.cells[at] for row in rows if at < len(row.cells)] for at in range(width)]


def _lowest(stack: Sequence[Cell]) -> Cell:
    return next((cell for cell in reversed(stack) if cell.text), stack[-1])


def _title(stack: Sequence[Cell]) -> Cell:
    texts = dict.fromkeys(cell.text for cell in stack if cell.text)
    return Cell(" ".join(texts), " ".join(texts))
