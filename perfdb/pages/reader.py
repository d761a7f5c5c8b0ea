"""From the text of a published page to the results it holds.

To add a markup: write its module (perfdb.pages.base.PageFormat), add it to the table.
"""

from perfdb.errors import Diagnostic
from perfdb.pages import (
    contradicted,
    front,
    html,
    markdown,
    mdx,
    mkdocs,
    remarks,
    rest,
    rows,
    scraped,
    tables,
    told,
    unread,
)
from perfdb.pages.base import Page, PageContext, PageFormat, PageRead
from perfdb.pages.context import of_page
from perfdb.record import PublishedResult

FORMATS: dict[str, PageFormat] = {
    html.NAME: html,
    scraped.NAME: scraped,
    rest.NAME: rest,
    mdx.NAME: mdx,
    mkdocs.NAME: mkdocs,
    markdown.NAME: markdown,
}
"""The first that recognises a text reads it; Markdown, which any text is, comes last."""


def read(where: str, text: str, context: PageContext) -> PageRead:
    """The results of a page, and what is wrong with its rows; `where` names it in problems.

    `context` is what the command line says; it says what the page does not.

    Takes any text. A page whose front matter is wrong gives that problem and no results.
    """
    page = _page(text)
    head = front.read(where, page.front)
    if head.problems:
        return PageRead((), head.problems, head.notes)
    setting = of_page(page, head.settings, context)
    every = tables.of_page(page)
    to_read = tables.to_read(every)
    readers = rows.readers(where, page, to_read, setting)
    read_rows = [one for reader in readers for one in reader.results()]
    results = tuple(one for one in read_rows if isinstance(one, PublishedResult))
    of_tables = (note for reader in readers for note in remarks.of_table(reader))
    notes = (
        *head.notes,
        *contradicted.by_options(where, page, head.settings, context),
        *told.of_page(where, page, readers, results),
        *of_tables,
        *unread.of_page(where, page, every, to_read),
    )
    return PageRead(
        results=results,
        problems=tuple(one for one in read_rows if isinstance(one, Diagnostic)),
        # A table that labels divide is several tables with one header.
        notes=tuple(dict.fromkeys(notes)),
        original=head.settings.original,
    )


def looks_like_page(text: str, *, named: bool = False) -> bool:
    """Whether a text holds a table of results, be it empty.

    Of a file that is named, a table with figures that are not known is enough: its rows are told.
    """
    found = tables.to_read if named else tables.of_results
    return bool(found(tables.of_page(_page(text))))


def not_read(where: str, text: str, *, named: bool = False) -> tuple[Diagnostic, ...]:
    """The tables of a text that look like figures and are not read, each with its reason.

    Of a file that is named, what it refers to is told too.
    """
    page = _page(text)
    every = tables.of_page(page)
    found = unread.of_page(where, page, every, tables.to_read(every))
    return (*found, *(told.skipped(where, page) if named else ()))


def _page(text: str) -> Page:
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    plain = plain.replace("\0", "\ufffd")
    member = next(member for member in FORMATS.values() if member.recognises(plain))
    return member.page(plain)
