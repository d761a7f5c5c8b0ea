"""Reads published pages: from their bytes to rows of the store."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from perfdb import measure
from perfdb.db.rows import ResultRow, SourceFile
from perfdb.errors import Diagnostic
from perfdb.ingest.base import PAGE, PageRows, Rejected, Skipped
from perfdb.ingest.find import Source
from perfdb.page_text import decoded_page
from perfdb.pages import reader
from perfdb.pages.base import PageContext

UNKNOWN: Final = (
    "neither a run directory, a page with a table of results nor a log of a known format"
)
"""What is wrong with a file that is named and holds nothing to read."""

MOST_PAGE_BYTES: Final = 8 << 20
"""What a page may have: published pages have a hundredth of it."""

PAGE_PARSER_VERSION: Final = 15
"""Kept with each page; raised when perfdb.pages reads something else out of the same text."""

_OURS: Final = re.compile(
    r"^# Made by (?:perfdb\.site from the store|`perfdb publish`); what is changed here is lost\.$"
    r"|<table class=\"perf\"",
    re.MULTILINE,
)
"""What the pages of `perfdb.site` and of `perfdb publish` have in their head, and what every table
of results has on a site of perfdb: a store holds their figures already."""


def read_page(
    source: Source, chunks: Iterable[bytes], context: PageContext
) -> PageRows | Skipped | Rejected:
    """A page's rows. A file that is no page, or one of ours, is skipped unless it is named."""
    where = source.where
    content = _page(chunks)
    if content is None:
        return _unknown(source, f"larger than {MOST_PAGE_BYTES >> 20} MiB, which no page is")
    try:
        text = decoded_page(content)
    except UnicodeDecodeError as error:
        return _undecoded(source, content, error)
    if not reader.looks_like_page(text):
        return _not_read(source, text)
    if not source.named and _OURS.search(text):
        return Skipped(where, "made")
    found = reader.read(where, text, context)
    rows, repeated = once_each(where, [measure.of_page(row) for row in found.results])
    problems = (*found.problems, *repeated)
    return PageRows(
        SourceFile(where, content, PAGE, PAGE_PARSER_VERSION),
        rows,
        problems,
        found.notes,
        emptied=source.named and not rows and not problems,
        original=found.original,
    )


def once_each(
    where: str, rows: Sequence[ResultRow]
) -> tuple[tuple[ResultRow, ...], tuple[Diagnostic, ...]]:
    """Each result of a page once: of two rows for the same case neither is more right.

    The first is kept; another one is a problem if it has other figures.
    """
    first: dict[str, ResultRow] = {}
    problems: list[Diagnostic] = []
    for row in rows:
        kept = first.setdefault(row.key, row)
        if kept.content_hash != row.content_hash:
            message = f"the same case as line {kept.source_line}, with other figures"
            remedy = "remove one of the rows, or say what sets them apart"
            problems.append(Diagnostic(where, message, line=row.source_line, remedy=remedy))
    return tuple(first.values()), tuple(problems)


def _page(chunks: Iterable[bytes]) -> bytes | None:
    """The bytes of a file; None if they are too many for a page."""
    content = bytearray()
    for chunk in chunks:
        content += chunk
        if len(content) > MOST_PAGE_BYTES:
            return None
    return bytes(content)


def _undecoded(source: Source, content: bytes, error: UnicodeDecodeError) -> Rejected:
    """A page that is not encoded as it says; a file that is no page in any case is skipped."""
    if not reader.looks_like_page(content.decode("latin-1")):
        return _unknown(source)
    message = f"byte 0x{content[error.start]:02x} is no {error.encoding.upper()}"
    line = content.count(b"\n", 0, error.start) + 1
    problem = Diagnostic(source.where, message, line=line, remedy="save the page as UTF-8")
    return Rejected(source.where, (problem,))


def _not_read(source: Source, text: str) -> Rejected:
    """A text without a table of results; reported where a table of it looks like figures."""
    found = reader.not_read(source.where, text, named=source.named)
    if not found or _OURS.search(text):
        return _unknown(source)
    return Rejected(source.where, *((found,) if source.named else ((), found)))


def _unknown(source: Source, message: str = UNKNOWN) -> Rejected:
    problem = Diagnostic(source.where, message)
    return Rejected(source.where, (problem,) if source.named else ())
