"""The tables of results of a page, a result in each row, with all that the page says of it."""

import re
from collections.abc import Sequence
from typing import Final

from perfdb.pages import cells, columns, configured, footnotes, outline, transposed
from perfdb.pages.base import Cell, Page, Row
from perfdb.pages.columns import Column
from perfdb.pages.outline import Table

_WORK: Final = frozenset({"model", "system"})
_VALUE = re.compile(r"[~≈<>]?\s*[0-9]")


def of_results(page: Page) -> tuple[Table, ...]:
    """The tables of a page that hold results, be they empty, in reading order."""
    return tuple(table for table in to_read(page) if _are_results(table))


def to_read(page: Page) -> tuple[Table, ...]:
    """The tables of results, and those that seem to be, of figures under titles not known."""
    written = (footnotes.marked(one, page.footnotes) for one in outline.tables(page.pieces))
    every = [transposed.upright(table) for table in written]
    configurations = [table for table in every if configured.are_configurations(table)]
    found = [
        configured.joined(table, configurations) if _are_results(table) else table
        for table in every
    ]
    used = {configured.joined_from(table) for table in found}
    return tuple(
        table
        for table in found
        if _are_results(table) or (table.header.line not in used and _seem_results(table))
    )


def _are_results(table: Table) -> bool:
    return table.turned or columns.are_results(columns.of(table))


def _seem_results(table: Table) -> bool:
    """Whether a table says what was run, and a row of it has a value under a title not known.

    A row of what was run has as many numbers; what a model can do is ticked, or put in words.
    """
    header = columns.of(table)
    fields = set(columns.all_fields(header))
    if fields.isdisjoint(_WORK) or len(fields & columns.SIZES) < columns.FEWEST:
        return False
    return any(_has_values(row, header) for row in table.rows)


def _has_values(row: Row, header: Sequence[Column]) -> bool:
    filled = [one for one, cell in zip(header, row.cells, strict=False) if _is_value(cell)]
    sizes = [field for one in filled for field in one.fields if field in columns.SIZES]
    return len(sizes) >= columns.FEWEST and any(map(columns.may_be_figure, filled))


def _is_value(cell: Cell) -> bool:
    return bool(_VALUE.match(cells.cleaned(cell.text)))
