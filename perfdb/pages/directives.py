"""The directives that reStructuredText and MyST share, and the tables that are written as one."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from perfdb.pages import spans
from perfdb.pages.base import Cell, Enter, Grid, Leave, Piece, Skipped
from perfdb.pages.spans import Spanned, SpannedRow

LITERAL: Final = frozenset(
    {"code", "code-block", "code-cell", "sourcecode", "literalinclude", "math", "mermaid", "raw",
     "toctree", "contents", "include", "parsed-literal", "highlight", "doctest", "testcode"}
)  # fmt: skip
"""Directives whose content is no text of the page."""
TITLE: Final = "rubric"
"""A directive whose argument is a title of its own, below those of sections."""
NOTES: Final = frozenset({"note", "important", "warning", "caution", "attention"})
"""Boxes whose text says something of what stands above them, in every markup's own spelling."""

_CONDITIONAL: Final = frozenset({"only", "ifconfig", "todo"})
"""Directives whose content is shown where a setting, or the kind of output, says so."""
_QUOTING: Final = frozenset({"literal", "code"})
"""Options of `include` that make code of the text."""
_HTML: Final = frozenset({"html", "format_html", "builder_html"})

_ROW = re.compile(r"([*+-])(?:(\s+)([*+-])(?:\s+(.*))?)?\s*")
_DELIMITERS: Final[Mapping[str, str]] = {"tab": "\t", "space": " "}
_OPTION = re.compile(r"\s*:([\w-]+):(?:\s+(.*))?")

Words = Callable[[str], str]
"""From the markup of a cell to the words that a reader sees."""


@dataclass(frozen=True)
class Directive:
    """A directive on line `line`, and what it holds from line `first` on, below its options."""

    name: str
    argument: str
    options: Mapping[str, str]
    line: int
    lines: Sequence[str]
    first: int

    def count(self, name: str) -> int:
        """An option that is a number; 0 where it is none."""
        value = self.options.get(name, "")
        return int(value) if re.fullmatch(r"[0-9]{1,6}", value) else 0


def of(head: tuple[str, str], lines: Sequence[str], first: int) -> Directive:
    """A directive from its name and argument, and all that stands in it from line `first`."""
    options: dict[str, str] = {}
    name, size = "", 0
    for line in lines:
        if found := _OPTION.fullmatch(line):
            name = found[1]
            options[name] = (found[2] or "").strip()
        elif name and line[:1].isspace() and line.strip():
            options[name] += f" {line.strip()}"
        else:
            break
        size += 1
    return Directive(*head, options, first - 1, lines[size:], first + size)


def is_table(name: str) -> bool:
    """Whether a directive is a table by itself."""
    return name in _TABLES


def table(directive: Directive, words: Words) -> Iterator[Piece]:
    """A `list-table` or `csv-table` with its title."""
    yield Enter(words(directive.argument), directive.line)
    named = directive.name == "csv-table" and "header" in directive.options
    heads = directive.count("header-rows") + named
    yield from spans.pieces(
        SpannedRow(line, tuple(Spanned(_cell(t, words)) for t in texts), at < heads)
        for at, (line, texts) in enumerate(_TABLES[directive.name](directive))
    )
    yield Leave()


def is_conditional(directive: Directive) -> bool:
    """Whether the readers of a built page may not see what stands in a directive."""
    meant = re.split(r"\s+or\s+", directive.argument.strip())
    for_html = directive.name == "only" and not _HTML.isdisjoint(meant)
    return directive.name in _CONDITIONAL and not for_html


def unseen(directive: Directive, inner: Iterable[Piece]) -> Iterator[Piece]:
    """What is to be said of a conditional directive: that tables in it are not read."""
    if any(isinstance(piece, Grid) for piece in inner):
        named = f"{directive.name} {directive.argument}".strip()
        message = f"a table is not read: not everybody is shown what stands in {named!r}"
        yield Skipped(message, directive.line, "put what is published outside of it")


def elsewhere(directive: Directive) -> Iterator[Piece]:
    """What is to be said of a directive that names another file: nothing is opened."""
    file = directive.options.get("file") or directive.options.get("url")
    if file and (directive.name == "csv-table" or directive.argument == "html"):
        message = f"the table is not read: it is in another file, {file!r}"
        yield Skipped(message, directive.line, "write its rows here, or ingest the built page")
    if directive.name == "include" and _QUOTING.isdisjoint(directive.options):
        yield included(directive.argument.strip(), directive.line)


def included(file: str, line: int) -> Skipped:
    """What is to be said of a file whose text belongs to the page."""
    return Skipped(
        f"what is included is not read: {file!r}", line, "ingest that file too, or the built page"
    )


def _cell(text: str, words: Words) -> Cell:
    """A cell; where its lines end, its words may be apart."""
    return Cell(text.replace("\n", " "), words(text))


def _listed(directive: Directive) -> Iterator[tuple[int, list[str]]]:
    """The rows of a list of lists; a cell goes on until the next one begins."""
    texts: list[str] = []
    start, inner = 0, None
    for number, line in enumerate(directive.lines, start=directive.first):
        row = _ROW.fullmatch(line)
        if row:
            if texts:
                yield start, texts
            start, texts = number, [row[4] or ""] if row[3] else []
            inner = 1 + len(row[2]) if row[3] else None
        elif start:
            text = line.strip()
            bullet = len(line) - len(line.lstrip())
            inner = bullet if inner is None and text else inner
            if bullet == inner and re.match(r"[*+-](\s|$)", text):
                texts.append(text[1:].strip())
            elif texts and text:
                texts[-1] = f"{texts[-1]}\n{text}".strip()
    if texts:
        yield start, texts


def _separated(directive: Directive) -> Iterator[tuple[int, list[str]]]:
    """The rows of comma-separated values; what comes after damage is left out."""
    delimiter = directive.options.get("delim", ",")
    delimiter = _DELIMITERS.get(delimiter, delimiter[:1] or ",")
    quote = directive.options.get("quote", '"')[:1] or '"'
    if quote == delimiter:
        return
    header = directive.options.get("header")
    above = [] if header is None else [header]
    start = directive.first - len(above)
    reader = csv.reader(
        (f"{line}\n" for line in chain(above, directive.lines)),
        delimiter=delimiter,
        quotechar=quote,
        skipinitialspace=delimiter != " ",
    )
    line = start
    try:
        for texts in reader:
            if texts:
                yield line, [_spaced(text) for text in texts]
            line = start + reader.line_num
    except csv.Error:
        return


def _spaced(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.strip().split("\n"))


_TABLES: Final[Mapping[str, Callable[[Directive], Iterator[tuple[int, list[str]]]]]] = {
    "list-table": _listed,
    "csv-table": _separated,
}
