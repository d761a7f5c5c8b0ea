"""A release's page as plain text, for another project's documents to include as it stands.

MyST with tab-sets, or Markdown that any site renders: no directive of ours, no HTML, no link but to
the originals of the pages that were read. Above the tables stands what their columns mean, below
each the notes that all its rows share, as `perfdb ingest` reads them, and where the rows are from.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final, Literal
from urllib.parse import quote

from perfdb import page_text
from perfdb.metrics import METRICS
from perfdb.site import tables
from perfdb.site.addresses import slug
from perfdb.site.data import ReleasePage, Result, Tab
from perfdb.site.glossary import TERMS
from perfdb.site.markup import Cell, Table, of_all
from perfdb.site.origin import CHOSEN, which
from perfdb.site.page import CATEGORIES, TAGS
from perfdb.site.profiles import VARIANT
from perfdb.site.words import quoted, release_title, section_title
from perfdb.stated import figure

Style = Literal["myst", "markdown"]

MARK: Final = "Made by `perfdb publish`; what is changed here is lost."
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
class _Printed:
    """A tab with its table, and what is said of all rows of the page."""

    tab: Tab
    table: Table
    method: Mapping[str, object]


def page(release: ReleasePage, style: Style, label: str = "") -> str:
    """The text of a release's page; the notes of some rows of a table are footnotes.

    In MyST {ref} calls it as it does on our own site, and by a label that is given.
    """
    notes, method = _Footnotes(), _method(release.results)
    printed = [(one, [_printed(tab, method) for tab in one.tabs]) for one in release.sections]
    labels = (label, release.label) if style == "myst" else ()
    parts = [_front(release, method), *(f"({name})=" for name in labels if name)]
    parts.append(f"# {escaped(_title(release))}\n")
    parts += [f"Container: {escaped(name)}\n" for name in release.containers]
    parts += _nomenclature(_terms(one.table for _, some in printed for one in some), style)
    for section, some in printed:
        parts.append(f"## {escaped(section_title(section.task, section.variant))}\n")
        parts += _myst(some, notes) if style == "myst" else _markdown(some, notes)
    return "\n".join([*parts, *notes.lines()])


def escaped(words: str) -> str:
    """Any text as Markdown that prints as that text, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(words.split()))


def _title(release: ReleasePage) -> str:
    return f"{release_title(release.framework, release.release)} training performance"


def _method(results: Iterable[Result]) -> Mapping[str, object]:
    """How the figures of all rows that have any were measured; without what differs or some do not
    say.
    """
    given = [one for one in results if any(figure(one, name) is not None for name in METRICS)]
    said = {name: {getattr(one, name) for one in given} for name in _METHOD}
    return {
        name: values.pop() for name, values in said.items() if len(values) == 1 and values != {None}
    }


def _front(release: ReleasePage, method: Mapping[str, object]) -> str:
    """What a reader of the page's figures, such as `perfdb ingest`, has to know, and what it is."""
    lines = [
        "---",
        f"# {MARK}",
        f"description: {quoted(_title(release))}",
        CATEGORIES,
        TAGS,
        "perfdb:",
        f"  framework: {quoted(release.framework)}",
    ]
    if release.release:
        lines.append(f"  release: {quoted(release.release)}")
    lines += [f"  {_METHOD[name]}: {value}" for name, value in method.items()]
    return "\n".join([*lines, "---", ""])


def _terms(made: Iterable[Table]) -> Mapping[str, str]:
    """What the heads of tables mean, in their order, and then the abbreviations in their cells."""
    given = list(made)
    heads = {head.title: head.hint for table in given for head in table.heads if head.hint}
    cells = {_words(cell) for table in given for row in table.rows for cell in row}
    words = {word for said in cells for word in _WORD.findall(said)}
    return heads | {it: TERMS[it].hint for it in TERMS if it in words and it not in heads}


def _nomenclature(terms: Mapping[str, str], style: Style) -> Iterator[str]:
    """What the terms mean; in MyST in a box that opens."""
    yield "## Nomenclature\n"
    if style == "myst":
        yield ":::{dropdown} Abbreviations and figures\n:icon: info\n"
    yield from (f"- **{escaped(term)}**: {escaped(hint)}" for term, hint in terms.items())
    yield "\n:::\n" if style == "myst" else ""


def _myst(printed: Iterable[_Printed], notes: _Footnotes) -> Iterator[str]:
    """A tab for each system; they share a group, so that choosing one chooses it everywhere."""
    yield "::::{tab-set}\n:sync-group: system\n"
    for one in printed:
        yield f":::{{tab-item}} {escaped(one.tab.title)}\n:sync: {slug(one.tab.name)}\n"
        yield from _lines(one, notes)
        yield ":::\n"
    yield "::::\n"


def _markdown(printed: Iterable[_Printed], notes: _Footnotes) -> Iterator[str]:
    for one in printed:
        yield f"### {escaped(one.tab.title)}\n"
        yield from _lines(one, notes)


def _printed(tab: Tab, method: Mapping[str, object]) -> _Printed:
    """With the columns of its family, but for those that only lead to other pages, and for what is
    said of all rows; the variant, which a title says too, in a column that is read back.
    """
    family = tables.of_results(tab.results)
    shown = (one for one in family.columns if method.keys().isdisjoint(one.fields))
    variant = {VARIANT.fields: replace(VARIANT, title="Task Variant")}
    columns = tuple(variant.get(one.fields, one) for one in shown if one.kind != "origin")
    profile = replace(family, columns=columns)
    return _Printed(tab, tables.results_table(tab.title, tab.results, profile, str), method)


def _lines(printed: _Printed, notes: _Footnotes) -> Iterator[str]:
    """The table, and below it what is said of all its rows."""
    made, results = printed.table, printed.tab.results
    yield from (f"{escaped(text)}\n" for text in made.said)
    yield _line(escaped(head.title) for head in made.heads)
    yield _line("--:" if head.numeric else "---" for head in made.heads)
    said = [(*result.notes, *_of_row(result, printed.method)) for result in results]
    of_every_row = of_all(said)
    for texts, cells in zip(said, made.rows, strict=True):
        first, *others = (escaped(_words(cell)) for cell in cells)
        yield _line(
            [first + notes.marks(text for text in texts if text not in of_every_row), *others]
        )
    yield from (f"\nNote: {escaped(text)}" for text in of_every_row)
    yield f"\nSources: {'; '.join(_sources(results))}\n"


def _of_row(result: Result, method: Mapping[str, object]) -> Iterator[str]:
    """Why a run has no figures, and of how many it is one, which a table of our own site says where
    its rows are from, and the window of a row where another or none is said of all.
    """
    if result.withheld:
        yield f"No figures: {result.withheld}"
    elif result.num_results > 1:
        of_several = result.run_id is not None and result.num_finished > 1
        yield f"{which(result)}: {CHOSEN}" if of_several else which(result)
    if result.window and result.window != method.get("window"):
        yield f"Window: {result.window}"


def _sources(results: Sequence[Result]) -> Iterator[str]:
    """The lines of each page that rows are from; the runs that others are of."""
    lines: dict[tuple[str, str], list[int]] = {}
    for one in results:
        known = [one.source_line] if one.source_line else []
        lines.setdefault((_source(one), one.source_sha256), []).extend(known)
    states = Counter(source for source, _ in lines)
    for (source, state), numbers in lines.items():
        which = f" (SHA-256 {state[:12]})" if states[source] > 1 else ""
        said = f", {page_text.lines(sorted(numbers))}" if numbers else ""
        yield f"{source}{which}{said}"


def _source(result: Result) -> str:
    """A run, or the file that was read, behind what it says of its original."""
    if result.run_id is not None:
        return f"run {escaped(result.run_id)}"
    url, day, path = result.source_url, result.published_on, escaped(result.source)
    said = [_link(url)] if url else []
    said += [f"published on {day}"] if day else []
    return ", ".join([*said, f"read from {path}"]) if said else path


def _link(url: str) -> str:
    """An address that leads to itself; signs that no address has, and Markdown may, are coded."""
    return f"[{escaped(url)}](<{escape(quote(url, safe=_OF_ADDRESSES), quote=False)}>)"


def _words(cell: Cell) -> str:
    """The words of a cell; those of a link are what it is sorted by."""
    words = cell.content if isinstance(cell.content, str) else cell.sort
    assert isinstance(words, str), "a badge is no plain text"
    return words


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
