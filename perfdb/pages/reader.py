"""Published pages: from their text to the results that they hold.

To add a markup: write its module, which turns the text into HTML, and add it to `FORMATS`.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Final

from bs4.dammit import EncodingDetector

from perfdb import versions
from perfdb.catalog import names
from perfdb.errors import Diagnostic
from perfdb.fields import FIGURES
from perfdb.pages import columns, front, html, markdown, peaks, rest, scraped, tables
from perfdb.pages.base import PageContext, PageRead, ParsedPage, Unread
from perfdb.pages.context import PageStatement, of_title
from perfdb.pages.front import PageSettings
from perfdb.pages.rows import BRACKETED, PageSetting, TableReader
from perfdb.pages.tables import PageTable
from perfdb.record import Original, PublishedResult, Result
from perfdb.text import absent, line_ranges, parsed

FORMATS: Final[tuple[ModuleType, ...]] = (html, scraped, rest, markdown)
"""The first that recognizes a text reads it; Markdown, which any text is, comes last."""

_FRAMEWORKS: Final = ("dfm", "automodel", "megatron-bridge", "nemo")
"""DFM's and Megatron-Bridge's pages name the NeMo Framework too, as what they are part of."""
_VERSION = re.compile(
    rf"(?:{'|'.join(names.FRAMEWORKS[name] for name in _FRAMEWORKS)}) Version\s*:\s*"
    r"(main|v?[0-9]+\.[0-9][\w.-]*)",
    re.IGNORECASE,
)
"""The version that a page states for all of itself: `NeMo AutoModel Version: main`."""
_CORRECT: Final = "correct one of them"
_OF_THE_PAGE: Final = frozenset(
    {"framework", "release", "container", "system", "precision", "peak_tflops"}
)
"""What the options state of a page, which `PageContext` has."""
_VALUE: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[0-9][0-9.,]*")
"""A value within a message."""
MOST_MARKS: Final = 1 << 15
"""The lines, cells, tags and marks of emphasis of a page, of which 4,000 may take a second."""
MOST_MARKS_OF_HTML: Final = 1 << 17
"""The same of HTML, which is read without a parser of Markdown before: 16,000 a second."""
_HEAD: Final = 4096
"""The bytes in which HTML names its encoding."""


def decoded_page(content: bytes) -> str:
    """The text of a page: UTF-8, or the encoding of its byte order mark or its `<meta>`.

    Raises UnicodeDecodeError where it is none of these.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    try:
        return content.decode()
    except UnicodeDecodeError:
        named = EncodingDetector.find_declared_encoding(content[:_HEAD], is_html=True)
        if named and not named.startswith("utf-8"):
            with suppress(LookupError):  # an encoding that Python does not know
                return content.decode(named)
        raise


def read(where: str, text: str, context: PageContext) -> PageRead:
    """The results of a page, and what is wrong with its rows; `where` names it in diagnostics.

    `context` fills in what the page does not state. Takes any text. A page whose front matter is
    wrong, or contradicts all of its rows, gives that problem and no results.
    """
    page = _page(text)
    head = front.read(where, page.front)
    if head.problems:
        return PageRead((), head.problems, head.notes)
    setting = _setting(where, page, head.settings, context)
    every = tables.of_page(page, setting.stated.framework)
    readers = [TableReader(table, setting) for table in every if table.are_results]
    found = [list(reader.results()) for reader in readers]
    results = tuple(it for rows in found for it in rows if isinstance(it, PublishedResult))
    if contradicted := tuple(_contradicted(where, page, head.settings, results)):
        return PageRead((), contradicted, head.notes)
    problems = ([it for it in rows if isinstance(it, Diagnostic)] for rows in found)
    return PageRead(
        results=results,
        problems=(*by_cause(problems), *_once(_unread(where, page, rejected=True))),
        notes=(
            *head.notes,
            *_framework_notes(where, page, head.settings, context),
            *_once(_release_notes(where, results, context)),
            *_once(note for reader in readers for note in reader.notes()),
            *_once(_result_notes(where, results)),
            *_not_taken(where, results, context),
            *_tables_not_read(where, page, every),
        ),
        original=head.settings.original,
    )


def original(text: str) -> Original:
    """What a page states of its original."""
    return front.read("", _page(text).front).settings.original


def configurations(where: str, text: str) -> tuple[Result, ...]:
    """The rows without figures of tables that state how many GPUs were used, and how."""
    page = _page(text)
    setting = _setting(where, page, front.read(where, page.front).settings, PageContext())
    own = setting.stated.framework
    setting = replace(setting, stated=replace(setting.stated, framework=own or ""))
    every = [table for table in tables.of_page(page, own) if table.are_configurations]
    return tuple(row for it in every for row in TableReader(it, setting).configurations())


def looks_like_page(text: str) -> bool:
    """Whether a text holds a table of results, be it empty."""
    return any(one.are_results for one in tables.of_page(_page(text), None))


def not_read(where: str, text: str, *, named: bool = False) -> tuple[Diagnostic, ...]:
    """The tables of a text that look like figures and are not read, each with its reason."""
    page = _page(text)
    every = tables.of_page(page, None)
    found = tuple(_tables_not_read(where, page, every))
    if at := [table.line for table in every if table.are_configurations]:
        message = "configurations without figures are no results: no table says how fast they were"
        found += (Diagnostic(where, message, None, at[0], f"`perfdb audit {where}` checks them"),)
    return (*found, *_once(_unread(where, page, rejected=True))) if named else found


@lru_cache(maxsize=1)  # it is first asked whether a text is a page
def _page(text: str) -> ParsedPage:
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    plain = plain.replace("\0", "\ufffd")
    markup = next(one for one in FORMATS if one.recognizes(plain))
    most = MOST_MARKS_OF_HTML if markup is html else MOST_MARKS
    if (marks := sum(map(plain.count, "\n|<[*_`~&\\"))) > most:
        message = f"{marks:,} lines, cells, tags and marks, more than the {most:,} of a page"
        return html.page("", unread=[Unread(message, 1, "make it several pages", rejected=True)])
    page: ParsedPage = markup.page(plain)
    return page


def _setting(
    where: str, page: ParsedPage, settings: PageSettings, context: PageContext
) -> PageSetting:
    version = _VERSION.search(page.text)
    # NVIDIA's Nemotron-4 recipe names its task in the opening words and nowhere else.
    tasks = names.tasks(page.opening.replace("\n", " "))
    stated = PageStatement(
        framework=settings.framework or context.framework or _framework(page),
        model=context.case.model if context.case else None,
        release=settings.release or (version[1] if version else context.release),
        container=settings.container or context.container,
        task=tasks[0] if len(tasks) == 1 else context.case.task if context.case else None,
    )
    own = {**peaks.stated(page.text), **settings.peaks}
    return PageSetting(where, stated, settings.method, context, page.footnotes, own)


def _framework(page: ParsedPage) -> str | None:
    """The framework that the title, the front matter or the opening words name, else the text."""
    for text in (page.title, page.front or "", page.opening):
        if found := names.frameworks_in(text, _FRAMEWORKS):
            return found[0]
    named = names.frameworks_in(page.text, _FRAMEWORKS)
    return named[0] if len(named) == 1 else None


def _once(problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Each diagnostic where it is first, with the other lines that have the same."""
    found: dict[Diagnostic, list[int]] = {}
    for problem in problems:
        found.setdefault(replace(problem, line=None), []).append(problem.line or 0)
    for problem, on in found.items():
        first, *others = sorted({*on})
        also = f" (also on {line_ranges(others)})" if others else ""
        yield replace(problem, line=first or None, message=problem.message + also)


def by_cause(tables: Iterable[Iterable[Diagnostic]]) -> Iterator[Diagnostic]:
    """One diagnostic for each cause, from those of the rows of each table.

    It has the words of the first row, the number of rows and their lines. The rows of a table
    that differ only in the refused value have the same cause; so do tables with the same words.
    """
    found: dict[Diagnostic, list[int]] = {}
    for rows in tables:
        causes: dict[object, Diagnostic] = {}
        for row in rows:
            kind = (row.field, _VALUE.sub("", row.message))
            cause = causes.setdefault(kind, replace(row, line=None))
            found.setdefault(cause, []).append(row.line or 0)
    for cause, on in sorted(found.items(), key=lambda it: min(it[1])):
        count = f" ({len(on)} rows refused, {line_ranges(sorted({*on}))})" if len(on) > 1 else ""
        yield replace(cause, line=min(on) or None, message=cause.message + count)


def _not_taken(
    where: str, results: Sequence[PublishedResult], context: PageContext
) -> Iterator[Diagnostic]:
    """The fields of --set that the page states with other values, or that only logs take."""
    if context.case is None:
        return
    given = columns.texts_of(context.case)
    if context.case.model:
        model = names.model(context.case.model)
        given["model"] = model.name if isinstance(model, names.ModelName) else ""
    if context.case.task:
        given["task"] = context.case.task
    for name in context.case.model_fields_set - given.keys() - _OF_THE_PAGE:
        if getattr(context.case, name) is not None:
            yield Diagnostic(where, f"--set {name} is of logs only; it is not taken")
    for name, text in given.items():
        line = next((it.line for it in results if _text(getattr(it.case, name)) != text), None)
        if line:
            message = f"the page states {name}; --set {name} is not taken"
            yield Diagnostic(where, message, line=line, remedy=_CORRECT)


def _text(value: object) -> str:
    return str(int(value) if isinstance(value, bool) else value)


def _release_notes(
    where: str, results: Iterable[PublishedResult], context: PageContext
) -> Iterator[Diagnostic]:
    """Where the page states another release than the command line does."""
    for one in results:
        version = one.release.version
        if context.release and version and not versions.is_same(version, context.release):
            message = f"the page states the release {version}; --release is not taken"
            yield Diagnostic(where, message, line=one.line, remedy=_CORRECT)


def _contradicted(
    where: str, page: ParsedPage, settings: PageSettings, results: Sequence[PublishedResult]
) -> Iterator[Diagnostic]:
    """The release of the front matter, where the title states another and no row is of it."""
    stated, known = settings.release, {one.release.version or "" for one in results}
    titled = of_title(page.title, settings.framework).release
    if stated and titled and known and not any(versions.is_same(stated, it) for it in known):
        message = f"the front matter states {stated}, the title in line {page.title_line} {titled}"
        before = re.split(r"^ +release *:", page.front or "", maxsplit=1, flags=re.MULTILINE)[0]
        yield Diagnostic(where, message, "perfdb.release", 2 + before.count("\n"), _CORRECT)


def _framework_notes(
    where: str, page: ParsedPage, settings: PageSettings, context: PageContext
) -> Iterator[Diagnostic]:
    """Where the front matter or the title names another framework than the command line does."""
    stated, named = settings.framework, names.frameworks_in(page.title, _FRAMEWORKS)
    option = names.framework(context.framework or "") or context.framework
    if option and stated not in (None, option):
        message = f"the page is of {stated}; --framework is not taken"
        yield Diagnostic(where, message, line=1, remedy=_CORRECT)
    elif option and named and option not in named and stated is None:
        message = f"the title names {named[0]}; the rows count as {option}, by --framework"
        yield Diagnostic(where, message, line=page.title_line, remedy=_CORRECT)


def _result_notes(where: str, results: Iterable[PublishedResult]) -> Iterator[Diagnostic]:
    """Models that may be misspelled, and results without any figure."""
    bare, results = [], list(results)
    nearest = {name: names.nearest_model(name) for name in {one.case.model for one in results}}
    for one in results:
        if meant := nearest[one.case.model]:
            message = f"no model {one.case.model!r} in the catalogue"
            yield Diagnostic(where, message, line=one.line, remedy=f"did you mean {meant!r}?")
        if (one.case.variant or "").endswith(BRACKETED):
            message = "the page does not say what the values in brackets are of"
            remedy = "put both precisions in the Precision column"
            yield Diagnostic(where, message, line=one.line, remedy=remedy)
        if all(value is None for _, value in one.figures):
            bare.append(one.line)
    if bare:
        message = f"results without any figure: {len(bare)}, on {line_ranges(bare)}"
        remedy = "they are kept as unknown; write the figures, or remove the rows"
        yield Diagnostic(where, message, line=bare[0], remedy=remedy)


def _tables_not_read(
    where: str, page: ParsedPage, every: Iterable[PageTable]
) -> Iterator[Diagnostic]:
    """The tables that look like figures and are not read."""
    remedy = "give each figure a row with Model, System, #GPUs, GBS and Sequence Length"
    unnamed = "name the figure with its unit: 'Tokens / sec / GPU', 'Step Time (s)', 'MFU'"
    for table in every:
        if table.are_results:
            continue
        known = [repr(one.title) for at, one in enumerate(table.columns)
                 if one.field in FIGURES and _has_number(table, at)]  # fmt: skip
        unknown = [repr(one.title) for at, one in enumerate(table.columns)
                   if not one.is_known and _has_number(table, at)]  # fmt: skip
        wide = [one.line for one in table.rows if len(one.cells) > len(table.columns)]
        if wide and any(tables.is_figure_row(one) for one in table.rows if one.cells):
            message = "the table is not read: a row has more cells than the header"
            yield Diagnostic(where, message, None, wide[0], "give each cell a title")
        elif known:
            message = (
                f"the table is not read: it does not say all of what {', '.join(known)} are of"
            )
            yield Diagnostic(where, message, None, table.line, remedy)
        elif unknown and len(table.fields) >= columns.FEWEST:
            message = f"the table is not read: no figure is known; not known: {', '.join(unknown)}"
            yield Diagnostic(where, message, None, table.line, unnamed)
    for header in page.quoted:
        if columns.are_results(columns.of([cell.text for cell in header.cells])):
            message = "the table is not read: it is in a block of code"
            yield Diagnostic(where, message, line=header.line, remedy="put it outside of the code")
    yield from _unread(where, page, rejected=False)


def _has_number(table: PageTable, place: int) -> bool:
    texts = [row.cells[place].text for row in table.rows if place < len(row.cells)]
    return any(parsed(one.split(" ")[0]) is not None for one in texts if not absent(one))


def _unread(where: str, page: ParsedPage, *, rejected: bool) -> Iterator[Diagnostic]:
    for one in page.unread:
        if one.rejected is rejected:
            yield Diagnostic(where, one.message, line=one.line, remedy=one.remedy)
