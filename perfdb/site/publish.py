"""`perfdb publish`: a release's page as plain text, for another project's documents to include.

MyST with tab-sets, or Markdown that any site renders: no directive of ours, no HTML, no link but to
the originals of the pages that were read. Above the tables is what their columns mean, below each
are the notes that all its rows share, as `perfdb ingest` reads them, and where the rows are from.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

from markupsafe import Markup
from sqlalchemy import Connection

from perfdb import page_text
from perfdb.audit.report import sentence
from perfdb.audit.review import Entry, explained
from perfdb.errors import Diagnostic, InputError
from perfdb.groups import grouped
from perfdb.jsonfile import write_atomically
from perfdb.metrics import METRICS
from perfdb.queries import results
from perfdb.record import Finding, Note, NoteCode, Severity
from perfdb.site import addresses, columns
from perfdb.site.addresses import slug
from perfdb.site.cells import CHOSEN, HtmlCell, which
from perfdb.site.columns import TERMS
from perfdb.site.data import SiteResult, representative
from perfdb.site.grouping import ResultGroup, by_name, sections
from perfdb.site.page import yaml_text
from perfdb.site.pages.releases import ReleaseData, of_results
from perfdb.site.tables import HtmlTable, results_table, shared
from perfdb.stated import figure

Style = Literal["myst", "markdown"]

PUBLISH_MARK: Final = "Made by `perfdb publish`; what is changed here is lost."
"""Stands in every page that is made, and in none that is written."""

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|$~^&])")
_WORD: Final = re.compile(r"[\w-]+")
_METHOD: Final[Mapping[str, str]] = {
    "window": "window", "num_steps": "steps", "flops_convention": "flops_convention"
}  # fmt: skip
"""What front matter may say of all rows of a page, by the field of a result."""
_OF_ADDRESSES: Final = "!#$%&'()*+,/:;=?@[]~"
"""What RFC 3986 reserves, and the sign of what is coded already."""


class _Footnotes:
    """The texts that rows refer to, each once, numbered as they are first met."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def marks(self, texts: Iterable[str]) -> str:
        """`[^1] [^2]` with a space before each, as themes print `12` else; empty for no texts."""
        numbers = [self._numbers.setdefault(text, len(self._numbers) + 1) for text in texts]
        return "".join(f" [^{number}]" for number in numbers)

    def lines(self) -> Iterator[str]:
        """What each mark means."""
        return (f"[^{number}]: {escaped(text)}\n" for text, number in self._numbers.items())


@dataclass(frozen=True)
class _PublishedTab:
    """A tab with its table, and the method of all rows of the page."""

    tab: ResultGroup
    table: HtmlTable
    method: Mapping[str, object]


def page(release: ReleaseData, style: Style, label: str = "") -> str:
    """The text of a release's page; the notes of some rows of a table are footnotes.

    In MyST {ref} calls it as it does on our own site, and by a label that is known.
    """
    notes, method = _Footnotes(), _method(release.results)
    printed = [
        (one, [_printed(tab, method) for tab in by_name(one.results, "system")])
        for one in sections(release.results)
    ]
    labels = (label, addresses.label(release.framework, release.release)) if style == "myst" else ()
    parts = [_front(release, method), *(f"({name})=" for name in labels if name)]
    parts.append(f"# {escaped(_title(release))}\n")
    parts += [f"Container: {escaped(name)}\n" for name in release.containers]
    parts += _nomenclature(_terms(one.table for _, some in printed for one in some), style)
    for section, some in printed:
        parts.append(f"## {escaped(section.title)}\n")
        parts += _myst(some, notes) if style == "myst" else _markdown(some, notes)
    return "\n".join([*parts, *notes.lines()])


def escaped(words: str) -> str:
    """Any text as Markdown that prints as that text, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(words.split()))


def _title(release: ReleaseData) -> str:
    return f"{release.title} training performance"


def _method(results: Iterable[SiteResult]) -> Mapping[str, object]:
    """How the figures of all rows that have any were measured; without what differs or some do not
    say.
    """
    known = [one for one in results if any(figure(one, name) is not None for name in METRICS)]
    texts = {name: {getattr(one, name) for one in known} for name in _METHOD}
    return {
        name: values.pop()
        for name, values in texts.items()
        if len(values) == 1 and values != {None}
    }


def _front(release: ReleaseData, method: Mapping[str, object]) -> str:
    """What a reader of the page's figures, such as `perfdb ingest`, has to know, and what it is."""
    lines = [
        "---",
        f"# {PUBLISH_MARK}",
        f"description: {yaml_text(_title(release))}",
        "categories: [reference]",
        "tags: [performance, benchmarks, throughput, gpu]",
        "perfdb:",
        f"  framework: {yaml_text(release.framework)}",
    ]
    if release.release:
        lines.append(f"  release: {yaml_text(release.release)}")
    lines += [f"  {_METHOD[name]}: {value}" for name, value in method.items()]
    return "\n".join([*lines, "---", ""])


def _terms(made: Iterable[HtmlTable]) -> Mapping[str, str]:
    """What the heads of tables mean, in their order, and then the abbreviations in their cells."""
    known = list(made)
    heads = {head.title: head.hint for table in known for head in table.heads if head.hint}
    cells = {_words(cell) for table in known for row in table.rows for cell in row.cells}
    words = {word for texts in cells for word in _WORD.findall(texts)}
    return heads | {it: TERMS[it].hint for it in TERMS if it in words and it not in heads}


def _nomenclature(terms: Mapping[str, str], style: Style) -> Iterator[str]:
    """What the terms mean; in MyST in a box that opens."""
    yield "## Nomenclature\n"
    if style == "myst":
        yield ":::{dropdown} Abbreviations and figures\n:icon: info\n"
    yield from (f"- **{escaped(term)}**: {escaped(hint)}" for term, hint in terms.items())
    yield "\n:::\n" if style == "myst" else ""


def _myst(printed: Iterable[_PublishedTab], notes: _Footnotes) -> Iterator[str]:
    """A tab for each system; they share a group, so that choosing one chooses it everywhere."""
    yield "::::{tab-set}\n:sync-group: system\n"
    for one in printed:
        yield f":::{{tab-item}} {escaped(one.tab.title)}\n:sync: {slug(one.tab.name)}\n"
        yield from _lines(one, notes)
        yield ":::\n"
    yield "::::\n"


def _markdown(printed: Iterable[_PublishedTab], notes: _Footnotes) -> Iterator[str]:
    for one in printed:
        yield f"### {escaped(one.tab.title)}\n"
        yield from _lines(one, notes)


def _printed(tab: ResultGroup, method: Mapping[str, object]) -> _PublishedTab:
    """With the columns of its family, but for those that only lead to other pages, and for what is
    texts of all rows; the variant, which a title says too, in a column that is read back.
    """
    family = columns.of_results(tab.results)
    shown = (one for one in family.columns if method.keys().isdisjoint(one.fields))
    variant = {columns.VARIANT.fields: replace(columns.VARIANT, title="Task Variant")}
    kept = tuple(variant.get(one.fields, one) for one in shown if one.kind != "origin")
    profile = replace(family, columns=kept)
    return _PublishedTab(tab, results_table(tab.title, tab.results, profile), method)


def _lines(printed: _PublishedTab, notes: _Footnotes) -> Iterator[str]:
    """The table, and below it what is texts of all its rows."""
    made, results = printed.table, printed.tab.results
    yield from (f"{escaped(text)}\n" for text in made.above)
    yield _line(escaped(head.title) for head in made.heads)
    yield _line("--:" if head.numeric else "---" for head in made.heads)
    notes_of = [(*result.note_texts, *_of_row(result, printed.method)) for result in results]
    of_every_row = shared(notes_of)
    for texts, row in zip(notes_of, made.rows, strict=True):
        first, *others = (escaped(_words(cell)) for cell in row.cells)
        yield _line(
            [first + notes.marks(text for text in texts if text not in of_every_row), *others]
        )
    yield from (f"\nNote: {escaped(text)}" for text in of_every_row)
    yield f"\nSources: {'; '.join(_sources(results))}\n"


def _of_row(result: SiteResult, method: Mapping[str, object]) -> Iterator[str]:
    """Why a run has no figures, and of how many it is one, which a table of our own site says where
    its rows are from, and the window of a row where another or none is texts of all.
    """
    if result.withheld:
        yield f"No figures: {result.withheld_text}"
    elif result.num_results > 1:
        of_several = result.run_id is not None and result.num_finished > 1
        yield f"{which(result)}: {CHOSEN}" if of_several else which(result)
    if result.window and result.window != method.get("window"):
        yield f"Window: {result.window}"


def _sources(results: Sequence[SiteResult]) -> Iterator[str]:
    """The lines of each page that rows are from; the runs that others are of."""
    lines: dict[tuple[str, str], list[int]] = {}
    for one in results:
        known = [one.source_line] if one.source_line else []
        lines.setdefault((_source(one), one.source_sha256), []).extend(known)
    states = Counter(source for source, _ in lines)
    for (source, state), numbers in lines.items():
        which = f" (SHA-256 {state[:12]})" if states[source] > 1 else ""
        texts = f", {page_text.lines(sorted(numbers))}" if numbers else ""
        yield f"{source}{which}{texts}"


def _source(result: SiteResult) -> str:
    """A run, or the file that was read, behind what it says of its original."""
    if result.run_id is not None:
        return f"run {escaped(result.run_id)}"
    url, day, path = result.source_url, result.published_on, escaped(result.source)
    texts = [_link(url)] if url else []
    texts += [f"published on {day}"] if day else []
    return ", ".join([*texts, f"read from {path}"]) if texts else path


def _link(url: str) -> str:
    """An address that leads to itself; signs that no address has, and Markdown may, are coded."""
    return f"[{escaped(url)}](<{escape(quote(url, safe=_OF_ADDRESSES), quote=False)}>)"


def _words(cell: HtmlCell) -> str:
    """The words of a cell; those of a link are what it is sorted by."""
    words = cell.sort if isinstance(cell.content, Markup) else cell.content
    assert isinstance(words, str), "a badge is no plain text"
    return words


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


_LABEL: Final = re.compile(r"[\w.-]+", re.ASCII)
_HTML: Final = frozenset("<>")


@dataclass(frozen=True)
class Publication:
    """The pages of releases, and every finding about what they print.

    `paths` are those of the pages of all releases of the store, asked for or not; `refused` says
    of which of those asked for no page can be made.
    """

    pages: tuple[ReleaseData, ...]
    findings: tuple[Finding, ...]
    paths: frozenset[Path]
    refused: tuple[Diagnostic, ...] = ()


def read(
    connection: Connection, known: Sequence[Entry], releases: frozenset[int] | None
) -> Publication:
    """The pages of these releases, or of all; what the audit objects to is among a result's notes.

    `known` are the findings that are accepted.
    """
    rows = representative(connection)
    wanted = [row for row in rows if releases is None or row.release_id in releases]
    shown = {row.result_id for row in wanted}
    stored = connection.execute(results.current_findings()).mappings()
    of_shown = [Finding.model_validate(dict(row)) for row in stored if row["result_id"] in shown]
    found = explained(of_shown, known)
    objections = grouped(
        (it for it in found if it.severity.reaches(Severity.WARNING)), lambda it: it.result_id
    )
    pages = of_results(_with_objections(row, objections.get(row.result_id, ())) for row in wanted)
    paths = frozenset(_path(row.framework, row.release) for row in rows)
    printable = tuple(page for page in pages if not _named(page))
    return Publication(printable, tuple(found), paths, tuple(filter(None, map(_named, pages))))


def _audit_note(finding: Finding) -> Note:
    return Note(NoteCode.FOOTNOTE, {"text": f"Audit: {sentence(finding)}"})


def _with_objections(result: SiteResult, objections: Iterable[Finding]) -> SiteResult:
    return replace(result, notes=(*result.notes, *map(_audit_note, objections)))


def texts(pages: Sequence[ReleaseData], style: Style, label: str = "") -> dict[Path, str]:
    """The text of each page by its path, such as nemo/25.04.md.

    Raises InputError where a page cannot be called so: by a label that two would share.
    """
    if problems := list(_labelled(pages, style, label)):
        raise InputError(problems)
    return {_path(one.framework, one.release): page(one, style, label) for one in pages}


def _labelled(pages: Sequence[ReleaseData], style: Style, label: str) -> Iterator[Diagnostic]:
    """What keeps a label from being one."""
    if not label:
        return
    if style != "myst":
        yield Diagnostic(
            "--label", "Markdown has no labels", remedy="leave it out, or --format myst"
        )
    if len(pages) > 1:
        message = f"{len(pages)} pages cannot share {label!r}"
        yield Diagnostic("--label", message, remedy="name one release; each has a label of its own")
    if not _LABEL.fullmatch(label):
        message = f"{label!r} is no label"
        yield Diagnostic("--label", message, remedy="write letters, digits and . _ - alone")


def _named(page: ReleaseData) -> Diagnostic | None:
    """What is wrong with the name of a release: themes print the titles of pages as they are."""
    name = f"{page.framework} {page.release or ''}".rstrip()
    if not _HTML & set(name):
        return None
    remedy = "read its pages and runs again under another name: --framework, --release"
    return Diagnostic(repr(name), "a site would run the < > of its name as HTML", remedy=remedy)


def _path(framework: str, release: str | None) -> Path:
    return Path(f"{addresses.of_release(framework, release)}.md").relative_to("performance")


def left_behind(folder: Path, paths: frozenset[Path]) -> list[Path]:
    """Pages that were made of releases which the store has no more; `paths` are those it has.

    What cannot be read is passed over: it may be anybody's.
    """
    others = (it for it in sorted(folder.glob("*/*.md")) if it.relative_to(folder) not in paths)
    return [page for page in others if _is_made(page)]


def _is_made(page: Path) -> bool:
    try:
        return PUBLISH_MARK in page.read_text(errors="replace")
    except OSError:
        return False


def write(folder: Path, wanted: Mapping[Path, str]) -> dict[Path, bool]:
    """Write the pages that are not there as they should be; says of each whether it was written.

    Raises InputError, and writes nothing, where a page that somebody wrote is in the way.
    """
    try:
        before = {path: _content(folder / path) for path in wanted}
        foreign = [path for path, text in before.items() if text and PUBLISH_MARK not in text]
        if foreign:
            remedy = "choose another --output, or move the page away"
            raise InputError(
                Diagnostic(str(folder / path), "was not made by perfdb publish", remedy=remedy)
                for path in foreign
            )
        for path, text in wanted.items():
            if before[path] != text:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                write_atomically(folder / path, text)
    except OSError as error:
        where = str(error.filename or folder)
        raise InputError(Diagnostic(where, error.strerror or str(error))) from error
    return {folder / path: before[path] != text for path, text in wanted.items()}


def _content(path: Path) -> str | None:
    return path.read_text(errors="replace") if path.exists() else None
