"""Reads published pages: from their bytes to rows of the store."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from perfdb import measure
from perfdb.catalog import names
from perfdb.db.rows import ResultRow, SourceFile
from perfdb.errors import Diagnostic
from perfdb.ingest.find import Source
from perfdb.ingest.options import Checked
from perfdb.ingest.reads import PAGE, PAGE_PARSER_VERSION, PageRows, Rejected, Skipped
from perfdb.ingest.unpack import chunks
from perfdb.pages.base import PageContext, PageRead

UNKNOWN: Final = (
    "neither a run directory, a page with a table of results nor a log of a known format"
)
"""What is wrong with a file that is named and holds nothing to read."""

MOST_PAGE_BYTES: Final = 8 << 20
"""What a page may have: published pages have a hundredth of it."""

_OURS: Final = re.compile(
    r"^# Made by (?:perfdb\.site from the store|`perfdb publish`); what is changed here is lost\.$"
    r"|<table class=\"perf\"",
    re.MULTILINE,
)
"""What pages of `perfdb.site` and of `perfdb publish` have: a store holds their figures already."""


def read_page(source: Source, options: Checked) -> PageRows | Skipped | Rejected:
    """A page's rows. A file that is no page, or one of ours, is skipped unless it is named."""
    from perfdb.pages import reader  # noqa: PLC0415  a log needs no parser of pages: 0.4 s

    where, content = source.where, _content(source, options)
    if isinstance(content, str):
        return _unknown(source, content)
    try:
        text = reader.decoded_page(content)
    except UnicodeDecodeError as error:
        message = f"byte 0x{content[error.start]:02x} is no {error.encoding.upper()}"
        line = content.count(b"\n", 0, error.start) + 1
        problem = Diagnostic(where, message, line=line, remedy="save the page as UTF-8")
        is_page = reader.looks_like_page(content.decode("latin-1"))
        return Rejected(where, (problem,)) if is_page else _unknown(source)
    if not reader.looks_like_page(text):
        unread = () if _OURS.search(text) else reader.not_read(where, text, named=source.named)
        if not unread:
            return _unknown(source)
        return Rejected(where, unread) if source.named else Rejected(where, (), unread)
    if not source.named and _OURS.search(text):
        return Skipped(where, reason="made")
    found, rows, repeated = rows_of_page(where, text, options)
    problems = (*found.problems, *reader.by_cause([repeated]))
    return PageRows(
        where,
        problems,
        tuple(found.notes),
        source=SourceFile(where, content, PAGE, PAGE_PARSER_VERSION),
        rows=rows,
        emptied=source.named and not rows and not problems,
        original=found.original,
    )


def rows_of_page(
    where: str, text: str, options: Checked
) -> tuple[PageRead, tuple[ResultRow, ...], tuple[Diagnostic, ...]]:
    """What a page holds, its results, each once, and what is wrong with those that are not."""
    from perfdb.pages import reader  # noqa: PLC0415  as above

    found = reader.read(where, text, _context(options))
    rows = [replace(measure.of_page(row), stated=options.stated) for row in found.results]
    return found, *once_each(where, rows)


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


def _context(options: Checked) -> PageContext:
    """What the options and --set state of a page; an option holds over --set."""
    context, settings = options.context, options.settings
    given = settings.framework and (names.framework(settings.framework) or settings.framework)
    return replace(
        context,
        framework=context.framework or given,
        release=context.release or settings.release,
        container=context.container or settings.container,
        system=context.system or settings.system,
        precision=context.precision or settings.precision,
        case=settings,
        peak_tflops=settings.peak_tflops,
    )


def _content(source: Source, options: Checked) -> bytes | str:
    """The bytes of a file, or why they are too many for a page."""
    content = bytearray()
    for chunk in chunks(source.path, options.budget):
        content += chunk
        if len(content) > MOST_PAGE_BYTES:
            return f"larger than {MOST_PAGE_BYTES >> 20} MiB, which no page is"
    return bytes(content)


def _unknown(source: Source, message: str = UNKNOWN) -> Rejected:
    problem = Diagnostic(source.where, message)
    return Rejected(source.where, (problem,) if source.named else ())
