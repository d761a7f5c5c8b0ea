"""The tables of a page, each with what the page states above it and the notes below it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from perfdb import catalog
from perfdb.fields import FIGURES
from perfdb.page_text import absent, parsed
from perfdb.pages import cells, columns, context
from perfdb.pages.base import (
    BoxEnd,
    BoxStart,
    Cell,
    Grid,
    Heading,
    Line,
    ParsedPage,
    Row,
    marks,
    without_marks,
)
from perfdb.pages.columns import PageColumn
from perfdb.pages.context import Statement

_NOTE = re.compile(r"Note\s*:\s*(.+)", re.IGNORECASE | re.DOTALL)
_TASK_LEVEL: Final = 2
"""The level of a title of a section on a page that marks none."""


@dataclass(frozen=True)
class PageTable:
    """A table, and what holds for it. `marks`: of footnotes above it and in its header."""

    header: Row
    rows: tuple[Row, ...]
    stated: Statement
    notes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    starts_with_gpus: bool = False
    """Whether its first column is of numbers of GPUs and has no title of its own."""

    @cached_property
    def columns(self) -> tuple[PageColumn, ...]:
        """The columns of its header."""
        found = columns.of(self.header)
        return (
            (PageColumn(found[0].title, "num_gpus"), *found[1:]) if self.starts_with_gpus else found
        )

    @property
    def are_results(self) -> bool:
        """Whether it holds results."""
        return columns.are_results(self.columns)


@dataclass
class _Scope:
    level: int
    stated: Statement
    marks: tuple[str, ...] = ()
    box: bool = False


@dataclass
class _Outline:
    """What holds at a place of the page, while it is read from top to bottom."""

    own: str | None
    scopes: list[_Scope] = field(default_factory=lambda: [_Scope(0, Statement())])

    def heading(self, text: str, level: int) -> None:
        """Start a section: those of the same level and below end."""
        while self.scopes[-1].level >= level and not self.scopes[-1].box:
            self.scopes.pop()
        self.push(text, level)

    def push(self, text: str, level: int, *, box: bool = False) -> None:
        self.scopes.append(_Scope(level, context.of_heading(text, self.own), marks(text), box))

    def end_box(self) -> None:
        """End the innermost box; HTML may close more than it opens."""
        if any(scope.box for scope in self.scopes):
            while not self.scopes.pop().box:
                pass

    def line(self, line: Line) -> None:
        if not line.listed and context.is_task_title(line.text):
            self.heading(line.text, _TASK_LEVEL)
            return
        scope = self.scopes[-1]
        stated = context.of_line(line.text, self.own, listed=line.listed)
        scope.stated = scope.stated.then(stated)
        scope.marks += () if line.listed else marks(line.text)

    def table(self, grid: Grid) -> PageTable:
        """A table that is here; of two statements on it the nearer one holds."""
        stated = Statement()
        for scope in self.scopes:
            stated = stated.then(scope.stated)
        above = tuple(mark for scope in self.scopes for mark in scope.marks)
        own = tuple(mark for cell in grid.header.cells for mark in marks(cell.text))
        return PageTable(grid.header, grid.rows, stated, marks=(*above, *own))


def of_page(page: ParsedPage, own: str | None) -> list[PageTable]:
    """Every table of a page outside of code, in reading order; `own` is its framework."""
    outline = _Outline(own)
    found: list[PageTable] = []
    is_below = False
    for piece in page.pieces:
        if isinstance(piece, Line) and is_below and (note := _NOTE.fullmatch(piece.text)):
            found[-1] = replace(found[-1], notes=(*found[-1].notes, without_marks(note[1])))
            continue
        is_below = isinstance(piece, Grid) or (is_below and isinstance(piece, BoxEnd))
        match piece:
            case Heading():
                outline.heading(piece.text, piece.level)
            case BoxStart():
                outline.push(piece.label, 0, box=True)
            case BoxEnd():
                outline.end_box()
            case Line():
                outline.line(piece)
            case Grid(quoted=False):
                found.append(_upright(outline.table(piece)))
            case _:
                pass
    return [_joined(table, found) for table in found]


def _upright(table: PageTable) -> PageTable:
    """The table with a result in each row, also where the page has one in each column.

    NVIDIA's Nemotron-4 recipe (dgxc-benchmarking) has a row for each figure, below
    `Nemotron4 15b BF16 | 16x H100 GPUs | 32x H100 GPUs`. The line of such a result is that of
    the first row with a figure.
    """
    rows = (table.header, *table.rows)
    figures = [row for row in table.rows if row.cells and _is_figure_row(row)]
    width = len(table.header.cells)
    if not figures or table.are_results or any(len(row.cells) != width for row in rows):
        return table
    titles, *results = zip(*(row.cells for row in rows), strict=True)
    corner = without_marks(titles[0].text)
    model, _, last = corner.rpartition(" ")
    has_precision = catalog.precision_of(last)  # Nemotron4 15b BF16
    stated = Statement(model=model, precision=last) if has_precision else None
    has_gpus = all(cells.gpus(one[0].text)[0] != one[0].text for one in results)
    return replace(
        table,
        header=Row(table.header.line, titles),
        rows=tuple(Row(figures[0].line, one) for one in results),
        stated=table.stated.then(stated or context.of_heading(corner, None)),
        starts_with_gpus=has_gpus and not columns.field_of(corner),
    )


def _is_figure_row(row: Row) -> bool:
    title, *values = (without_marks(cell.text) for cell in row.cells)
    is_figure = columns.field_of(title) in FIGURES
    return is_figure and any(parsed(one.removesuffix("%")) is not None for one in values)


def _joined(table: PageTable, every: Sequence[PageTable]) -> PageTable:
    """A table of results with the columns that it lacks, from a table of configurations.

    The Nemotron-4 recipe says in tables of their own what was run on so many GPUs, for a size of
    the model and for precisions such as `BF16/FP8`.
    """
    here = {*columns.fields_in(table.columns)}
    if not here & {*FIGURES} or {"global_batch_size", "sequence_length"} <= here:
        return table
    for other in every:
        found = {*columns.fields_in(other.columns)}
        if {"num_gpus", "global_batch_size"} <= found and not found & {*FIGURES}:
            matches = [_match(other, row, table) for row in table.rows]
            if any(matches):
                return _widened(table, other, matches)
    return table


def texts_of(row: Row, header: Sequence[PageColumn]) -> dict[str, str]:
    """The texts of a row by field, in the fields' units, without references to footnotes."""
    found = {}
    for column, cell in zip(header, row.cells, strict=False):
        if column.field:
            text = "\n".join(without_marks(line) for line in cell.text.split("\n"))
            found[column.field] = column.text(text.strip())
    return found


def _match(other: PageTable, row: Row, table: PageTable) -> Row | None:
    """The only row of a table of configurations that fits a row of results."""
    texts = texts_of(row, table.columns)
    fitting = [one for one in other.rows if _fits(one, other, texts, table.stated)]
    return fitting[0] if len(fitting) == 1 else None


def _fits(row: Row, other: PageTable, texts: dict[str, str], stated: Statement) -> bool:
    own = texts_of(row, other.columns)
    sizes = [cell.text for one, cell in zip(other.columns, row.cells, strict=False)
             if one.title.casefold() == "size"]  # fmt: skip
    model = (texts.get("model") or stated.model or "").casefold()
    precision = texts.get("precision") or stated.precision or ""
    return (
        len(row.cells) == len(other.columns)
        and cells.gpus(own["num_gpus"])[0] == cells.gpus(texts.get("num_gpus", ""))[0]
        and all(size.casefold() in re.split(r"[\s_-]+", model) for size in sizes)
        and (absent(own.get("precision", "")) or precision in own["precision"].split("/"))
    )


def _widened(table: PageTable, other: PageTable, matches: Sequence[Row | None]) -> PageTable:
    """The table with the columns of another that it has not, and states not."""
    here = {*columns.fields_in(table.columns), "num_gpus", "precision"}
    places = [at for at, column in enumerate(other.columns) if column.field not in here]

    def wide(row: Row, added: Row | None) -> Row:
        more = [added.cells[at] if added else Cell("", "") for at in places]
        return Row(row.line, (*row.cells, *more))

    rows = tuple(wide(*both) for both in zip(table.rows, matches, strict=True))
    header = wide(table.header, other.header)
    return replace(table, header=header, rows=rows, notes=(*table.notes, *other.notes))
