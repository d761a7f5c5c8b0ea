"""`perfdb publish`: a release's page as plain text, for another project's documents to include.

MyST with tab-sets, or Markdown that any site renders: no directive of ours, no HTML, no link but to
the originals of the pages that were read. Above the tables is what their columns mean, below each
are the notes that all its rows share, as `perfdb ingest` reads them, and where the rows are from.
`templates/publish.j2` has the page. Its parts, the fragments, are files of their own, or stand
between the markers of a document that somebody wrote (`perfdb.site.markers`).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup
from sqlalchemy import Connection

from perfdb.audit.report import sentence
from perfdb.audit.review import Entry, explained
from perfdb.errors import Diagnostic, InputError
from perfdb.groups import grouped
from perfdb.hardware import without_secrets
from perfdb.jsonfile import write_atomically
from perfdb.metrics import METRICS
from perfdb.queries import results
from perfdb.record import Finding, Note, NoteCode, Severity
from perfdb.site import addresses, columns, markers
from perfdb.site.addresses import slug
from perfdb.site.cells import CHOSEN, HtmlCell, which
from perfdb.site.columns import TERMS
from perfdb.site.data import SiteResult
from perfdb.site.grouping import ResultGroup, by_name, sections
from perfdb.site.page import yaml_text
from perfdb.site.pages.releases import ReleaseData, of_results
from perfdb.site.read import representative
from perfdb.site.settings import UNCHANGED, PublishProfile, place_in
from perfdb.site.tables import HtmlTable, results_table
from perfdb.site.templates import ENVIRONMENT
from perfdb.stated import figure
from perfdb.text import line_ranges

Style = Literal["myst", "markdown"]

PUBLISH_MARK: Final = "Made by `perfdb publish`; what is changed here is lost."
"""In every page that is made, and in none that is written by hand."""

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|$~^&])")
_WORD: Final = re.compile(r"[\w-]+")
_LABEL: Final = re.compile(r"[\w.-]+", re.ASCII)
_METHOD: Final[Mapping[str, str]] = {
    "window": "window", "num_steps": "steps", "flops_convention": "flops_convention"
}  # fmt: skip
"""What front matter may say of all rows of a page, by the field of a result."""
_OF_ADDRESSES: Final = "!#$%&'()*+,/:;=?@[]~"
"""What RFC 3986 reserves, and the sign of what is coded already."""


@dataclass(frozen=True)
class Layout:
    """How tables are written. `notes`: with footnotes on windows, repeats and audit findings."""

    style: Style = "myst"
    notes: bool = False
    profile: PublishProfile = UNCHANGED


@dataclass(frozen=True)
class Marked:
    """A document that somebody wrote, and the blocks in it that are replaced."""

    text: str
    blocks: Sequence[markers.MarkedBlock]

    @property
    def releases(self) -> set[str]:
        """'nemo/25.04': the releases that its blocks are of."""
        return {"/".join(one.name.split("/")[:2]) for one in self.blocks}


@dataclass(frozen=True)
class PublishedTab:
    """A tab with its table; the footnotes of rows say why, and of how many, each is one."""

    title: str
    slug: str
    table: HtmlTable
    sources: str


@dataclass(frozen=True)
class PublishedSection:
    """The tabs of a task; `slug` is its name in those of fragments."""

    title: str
    slug: str
    tabs: Sequence[PublishedTab]


class Footnotes(dict[str, str]):
    """Footnotes and their labels: each is printed once, numbered as it is first met."""

    def __init__(self, prefix: str = "") -> None:
        super().__init__()
        self.prefix = prefix

    def label(self, text: str) -> str:
        """The label of a footnote."""
        return self.setdefault(text, f"{self.prefix}{len(self) + 1}")


def page(release: ReleaseData, layout: Layout, label: str = "") -> str:
    """The text of a release's page; the notes of some rows of a table are footnotes.

    In MyST {ref} calls it as it does on our own site, and by a label that is known.
    """
    own_label = addresses.label(release.framework, release.release)
    return _written(
        "publish",
        layout,
        release=release,
        title=f"{release.title} training performance",
        mark=PUBLISH_MARK,
        labels=(label, own_label) if layout.style == "myst" else (),
        method={_METHOD[name]: value for name, value in _method(release.results).items()},
        **_body(release, layout),
    )


def fragments(release: ReleaseData, layout: Layout) -> dict[str, str]:
    """Parts of a release's page by name: its tables, what their columns mean, and all of it.

    'nemo/25.04/pretrain/dgx-h100', 'nemo/25.04/terms', 'nemo/25.04/all'. Labels of footnotes have
    the name in front, so that one document may have many parts.
    """
    name = release_name(release.results[0])
    body = _body(release, layout, f"{name.replace('/', '-')}-")
    made = {f"{name}/all": _written("publish_body", layout, **body)}
    made[f"{name}/terms"] = _written("publish_terms", layout, **body)
    for section in body["sections"]:
        for tab in section.tabs:
            own = f"{name}/{section.slug}/{tab.slug}"
            footnotes = Footnotes(f"{own.replace('/', '-')}-")
            made[own] = _written("publish_fragment", layout, tab=tab, footnotes=footnotes)
    return made


def _body(release: ReleaseData, layout: Layout, prefix: str = "") -> dict[str, Any]:
    """What the templates of a page and of its body need."""
    method = _method(release.results)
    made = [
        PublishedSection(
            section.title,
            slug("-".join(filter(None, (section.task, section.variant)))),
            [
                _tab(one, method, layout)
                for one in _in_order(by_name(section.results, "system"), layout)
            ],
        )
        for section in sections(release.results)
    ]
    return {
        "containers": release.containers,
        "terms": _terms([tab.table for section in made for tab in section.tabs]),
        "sections": made,
        "footnotes": Footnotes(prefix),
    }


def _in_order(groups: Sequence[ResultGroup], layout: Layout) -> Sequence[ResultGroup]:
    return sorted(groups, key=lambda it: place_in(layout.profile.systems, it.name))


def _written(template: str, layout: Layout, **values: object) -> str:
    made = _environment().get_template(f"{template}.j2")
    text = made.render(is_myst=layout.style == "myst", **values)
    return f"{text.strip()}\n"


@cache
def _environment() -> Environment:
    environment = ENVIRONMENT.overlay(autoescape=False)
    own = {"plain": escaped, "yaml": yaml_text, "words": _words}
    environment.filters = {**environment.filters, **own}
    return environment


def escaped(words: str) -> str:
    """Any text as Markdown that prints as that text, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(words.split()))


def _method(results: Iterable[SiteResult]) -> Mapping[str, object]:
    """How the figures of all rows that have any were measured, as far as they say the same."""
    known = [one for one in results if any(figure(one, name) is not None for name in METRICS)]
    stated = {name: {getattr(one, name) for one in known} for name in _METHOD}
    return {name: it.pop() for name, it in stated.items() if len(it) == 1 and it != {None}}


def _terms(tables: Sequence[HtmlTable]) -> Mapping[str, str]:
    """What the heads of tables mean, in their order, and then the abbreviations in their cells."""
    heads = {head.title: head.hint for table in tables for head in table.heads if head.hint}
    cells = {_words(cell) for table in tables for row in table.rows for cell in row.cells}
    words = {word for texts in cells for word in _WORD.findall(texts)}
    return heads | {it: TERMS[it].hint for it in TERMS if it in words and it not in heads}


def _tab(group: ResultGroup, method: Mapping[str, object], layout: Layout) -> PublishedTab:
    """A table of the columns of its family, but for those that lead to other pages or say what the
    front matter says; the variant has a column that `perfdb ingest` reads.
    """
    family = columns.of_results(group.results)
    variant = replace(columns.VARIANT, title="Task Variant")
    kept = [
        variant if one.fields == variant.fields else one
        for one in family.columns
        if one.kind != "origin" and method.keys().isdisjoint(one.fields)
    ]
    first = [columns.ORDERED[name] for name in layout.profile.columns]
    kept.sort(key=lambda column: place_in(first, column.fields))
    shown = replace(family, columns=tuple(kept))
    table = results_table(group.title, group.results, shown, verbatim=True)
    rows = [
        replace(row, notes=(*one.note_texts, *(_of_row(one, method) if layout.notes else ())))
        for row, one in zip(table.rows, group.results, strict=True)
    ]
    sources = "; ".join(_sources(group.results))
    return PublishedTab(group.title, slug(group.name), replace(table, rows=rows), sources)


def _of_row(result: SiteResult, method: Mapping[str, object]) -> Iterator[str]:
    """Of how many runs it is one, and a window that is not that of all rows.

    A table of our own site says the first where its rows are from.
    """
    if result.num_results > 1:
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
        which_state = f" (SHA-256 {state[:12]})" if states[source] > 1 else ""
        listed = f", {line_ranges(sorted(numbers))}" if numbers else ""
        yield f"{source}{which_state}{listed}"


def _source(result: SiteResult) -> str:
    """A run, or the file that was read, behind what it says of its original."""
    if result.run_id is not None:
        return f"run {escaped(result.run_id)}"
    url, day, path = result.source_url, result.published_on, escaped(result.source)
    # signs that no address has, and Markdown may, are coded
    link = escape(quote(url or "", safe=_OF_ADDRESSES), quote=False)
    texts = [f"[{escaped(url)}](<{link}>)"] if url else []
    texts += [f"published on {day}"] if day else []
    return ", ".join([*texts, f"read from {path}"]) if texts else path


def _words(cell: HtmlCell) -> str:
    """The words of a cell; those of a link are what it is sorted by."""
    words = cell.sort if isinstance(cell.content, Markup) else cell.content
    assert isinstance(words, str), "a badge is no plain text"
    return words


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
    connection: Connection,
    known: Sequence[Entry],
    is_wanted: Callable[[SiteResult], bool] = lambda _: True,
    *,
    notes: bool = False,
) -> Publication:
    """The pages of the releases of wanted results. Runs without figures are on none.

    `known` are the findings that are accepted. With `notes`, what the audit objects to is among a
    result's notes.
    """
    rows = [row for row in representative(connection) if not row.withheld]
    wanted = [row for row in rows if is_wanted(row)]
    shown = {row.result_id for row in wanted}
    stored = connection.execute(results.current_findings()).mappings()
    of_shown = [Finding.model_validate(dict(row)) for row in stored if row["result_id"] in shown]
    found = explained(of_shown, known)
    objections = grouped(
        (it for it in found if notes and it.severity.reaches(Severity.WARNING)),
        lambda it: it.result_id,
    )
    pages, refused = [], []
    for one in of_results(_noted(row, objections.get(row.result_id, ())) for row in wanted):
        name = f"{one.framework} {one.release or ''}".rstrip()
        if {"<", ">"} & set(name):  # themes print the titles of pages as they are
            message = "a site would run the < > of its name as HTML"
            remedy = "read its pages and runs again under another name: --framework, --release"
            refused.append(Diagnostic(repr(name), message, remedy=remedy))
        else:
            pages.append(one)
    paths = frozenset(_path(row.framework, row.release) for row in rows)
    return Publication(tuple(pages), tuple(found), paths, tuple(refused))


def _noted(result: SiteResult, objections: Iterable[Finding]) -> SiteResult:
    notes = (Note(NoteCode.FOOTNOTE, {"text": f"Audit: {sentence(it)}"}) for it in objections)
    return replace(result, notes=(*result.notes, *notes))


def texts(pages: Sequence[ReleaseData], layout: Layout, label: str = "") -> dict[Path, str]:
    """The text of each page by its path, such as nemo/25.04.md.

    Raises InputError where a page cannot be called so: by a label that two would share.
    """
    wrong = {
        "Markdown has no labels": (layout.style != "myst", "leave it out, or --format myst"),
        f"{len(pages)} pages cannot share {label!r}": (
            len(pages) > 1, "name one release; each has a label of its own"
        ),
        f"{label!r} is no label": (
            not _LABEL.fullmatch(label), "write letters, digits and . _ - alone"
        ),
    }  # fmt: skip
    problems = [
        Diagnostic("--label", message, remedy=remedy)
        for message, (is_wrong, remedy) in wrong.items()
        if label and is_wrong
    ]
    if problems:
        raise InputError(problems)
    return {_path(one.framework, one.release): page(one, layout, label) for one in pages}


def parts(pages: Iterable[ReleaseData], layout: Layout) -> dict[str, str]:
    """The text of each fragment by its name."""
    return {name: text for one in pages for name, text in fragments(one, layout).items()}


def files_of(parts: Mapping[str, str]) -> dict[Path, str]:
    """Fragments as files, such as nemo/25.04/pretrain/dgx-h100.md."""
    mark = f"<!-- {PUBLISH_MARK} -->"
    return {Path(f"{name}.md"): f"{mark}\n\n{text}" for name, text in parts.items()}


def release_name(result: SiteResult) -> str:
    """'nemo/25.04': what the names of a release's fragments begin with."""
    return _path(result.framework, result.release).as_posix().removesuffix(".md")


def with_secrets(pages: Mapping[Path, str]) -> list[Diagnostic]:
    """Each line of a page that holds what looks like a password or a token."""
    return [
        Diagnostic(str(path), "holds what looks like a password or a token", line=number)
        for path, text in pages.items()
        for number, line in enumerate(text.replace("\\", "").split("\n"), start=1)
        if without_secrets(line) != line
    ]


def _path(framework: str, release: str | None) -> Path:
    return Path(f"{addresses.of_release(framework, release)}.md").relative_to("performance")


def into(paths: Iterable[Path]) -> dict[Path, Marked]:
    """The documents with their blocks. Raises InputError: no text, or markers that are damaged."""
    found, problems = {}, []
    for path in paths:
        try:
            text = path.read_bytes().decode()
            found[path] = Marked(text, tuple(markers.blocks(str(path), text)))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Diagnostic(str(path), f"cannot be read: {error}"))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return found


def filled(documents: Mapping[Path, Marked], parts: Mapping[str, str]) -> dict[Path, str]:
    """The text of each document with the fragments of these names. Raises InputError."""
    unknown = [
        problem
        for path, one in documents.items()
        for problem in markers.unknown(str(path), one.blocks, [*parts])
    ]
    if unknown:
        raise InputError(unknown)
    return {it: markers.filled(one.text, one.blocks, parts) for it, one in documents.items()}


def left_behind(folder: Path, paths: frozenset[Path]) -> list[Path]:
    """Pages and fragments of releases that the store has no more; `paths` are those it has.

    What cannot be read is passed over: it may be anybody's.
    """
    found = []
    for path in sorted([*folder.glob("*/*.md"), *folder.glob("*/*/**/*.md")]):
        try:
            is_made = PUBLISH_MARK in path.read_text(errors="replace")
        except OSError:
            continue
        framework, release, *rest = path.relative_to(folder).parts
        of_release = Path(framework, f"{release}.md" if rest else release)
        if is_made and of_release not in paths:
            found.append(path)
    return found


def write(paths: Mapping[Path, str], *, marked: bool = False) -> dict[Path, bool]:
    """Write the pages that are not there as they should be; says of each whether it was written.

    `marked`: these are documents that somebody wrote. Raises InputError, and writes nothing, where
    one of those is in the way otherwise.
    """
    written = {}
    try:
        before = {it: it.read_bytes().decode(errors="replace") for it in paths if it.exists()}
        remedy = "choose another --output, or move the page away"
        foreign = [
            Diagnostic(str(path), "was not made by perfdb publish", remedy=remedy)
            for path, text in before.items()
            if text and not marked and PUBLISH_MARK not in text
        ]
        if foreign:
            raise InputError(foreign)
        for path, text in paths.items():
            written[path] = before.get(path) != text
            if written[path]:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, text)
    except OSError as error:
        where = str(error.filename or "--output")
        raise InputError(Diagnostic(where, error.strerror or str(error))) from error
    return written
