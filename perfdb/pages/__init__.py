"""Published performance pages: from the text of a page to the results it holds.

To add a markup: write its module (perfdb.pages.base.PageFormat), add it to the table.
"""

from perfdb.errors import Problem
from perfdb.pages import columns, front, markdown, outline, scraped
from perfdb.pages.base import Page, PageContext, PageFormat, PageRead
from perfdb.pages.context import of_page
from perfdb.pages.outline import Table
from perfdb.pages.rows import TableReader
from perfdb.record import PublishedResult

__all__ = ["FORMATS", "PageContext", "PageRead", "looks_like_page", "read"]

FORMATS: dict[str, PageFormat] = {scraped.NAME: scraped, markdown.NAME: markdown}
"""The first that recognises a text reads it; Markdown, which any text is, comes last."""


def read(where: str, text: str, context: PageContext) -> PageRead:
    """The results of a page, and what is wrong with its rows; `where` names it in problems.

    `context` is what the command line says; it holds over what the page says.

    Takes any text. A page whose front matter is wrong gives that problem and no results.
    """
    page = _page(text)
    head = front.read(where, page.front)
    if head.problems:
        return PageRead((), head.problems, head.notes)
    setting = of_page(page, head.settings, context)
    readers = [
        TableReader(where, table, columns.of(table), setting.of(table))
        for table in _result_tables(page)
    ]
    read_rows = [one for reader in readers for one in reader.results()]
    return PageRead(
        results=tuple(one for one in read_rows if isinstance(one, PublishedResult)),
        problems=tuple(one for one in read_rows if isinstance(one, Problem)),
        notes=(*head.notes, *(note for reader in readers for note in reader.notes())),
    )


def looks_like_page(text: str) -> bool:
    """Whether a text holds a table of results, be it empty."""
    return bool(_result_tables(_page(text)))


def _page(text: str) -> Page:
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    plain = plain.replace("\0", "\ufffd")
    member = next(member for member in FORMATS.values() if member.recognises(plain))
    return member.page(plain)


def _result_tables(page: Page) -> list[Table]:
    tables = outline.tables(page.pieces)
    return [table for table in tables if columns.are_results(columns.of(table))]
