"""The tables of results of a page, a result in each row, with all that the page says of it."""

import re
from collections.abc import Sequence
from typing import Final

from perfdb.pages import (
    captions,
    cells,
    columns,
    configured,
    footnotes,
    outline,
    sections,
    spanners,
    transposed,
)
from perfdb.pages.base import Page, Row
from perfdb.pages.columns import Column
from perfdb.pages.outline import Table

_WORK: Final = frozenset({"model", "system"})
NUMBER: Final = re.compile(r"[~≈<>]?\s*[0-9]")
"""How a cell begins that holds a number."""


def of_page(page: Page) -> tuple[Table, ...]:
    """Every table of a page, a result in each row where it has results, in reading order."""
    titled = sections.of(outline.tables(captions.put_above(page.pieces)))
    written = (spanners.held(footnotes.marked(one, page.footnotes)) for one in titled)
    return tuple(part for one in written for part in sections.divided(transposed.upright(one)))


def of_results(every: Sequence[Table]) -> tuple[Table, ...]:
    """Of the tables of a page those that hold results, be they empty."""
    return tuple(table for table in to_read(every) if _are_results(table))


def to_read(every: Sequence[Table]) -> tuple[Table, ...]:
    """The tables of results, and those that seem to be, of figures under titles not known."""
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
    beside = zip(header, row.cells, strict=False)
    filled = [one for one, cell in beside if NUMBER.match(cells.cleaned(cell.text))]
    sizes = [field for one in filled for field in one.fields if field in columns.SIZES]
    return len(sizes) >= columns.FEWEST and any(map(columns.may_be_figure, filled))
