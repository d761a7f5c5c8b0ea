"""The tables of results of a page, a result in each row, with all that the page says of it."""

from perfdb.pages import columns, configured, outline, transposed
from perfdb.pages.base import Page
from perfdb.pages.outline import Table


def of_results(page: Page) -> tuple[Table, ...]:
    """The tables of a page that hold results, be they empty, in reading order."""
    every = [transposed.upright(table) for table in outline.tables(page.pieces)]
    configurations = [table for table in every if configured.are_configurations(table)]
    return tuple(configured.joined(table, configurations) for table in every if _are_results(table))


def _are_results(table: Table) -> bool:
    return table.turned or columns.are_results(columns.of(table))
