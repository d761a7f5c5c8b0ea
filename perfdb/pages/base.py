"""What a page holds in any markup: tables with the lines above them; and what reading it gives."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from perfdb.errors import Diagnostic
from perfdb.record import Original, PartialCase, PublishedResult


@dataclass(frozen=True)
class PageContext:
    """What the command line states of a page. None: nothing, the page decides.

    `case` fills in what the page leaves open of the case of each row (`--set`), `peak_tflops` the
    dense peak of its MFU.
    """

    framework: str | None = None
    release: str | None = None
    container: str | None = None
    system: str | None = None
    precision: str | None = None
    case: PartialCase | None = None
    peak_tflops: float | None = None


@dataclass(frozen=True)
class PageRead:
    """The results of a page, and the diagnostics of reading it.

    `problems` are rows that could not be read, and front matter that is wrong; `notes` what was
    kept but not understood, or assumed.
    """

    results: tuple[PublishedResult, ...]
    problems: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...] = ()
    original: Original = field(default_factory=Original)


@dataclass(frozen=True)
class Cell:
    """A cell: its source, and the words that a reader sees, with a newline for each line break."""

    raw: str
    text: str


@dataclass(frozen=True)
class Row:
    """A row of a table, or its header."""

    line: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Line:
    """A line of text; `is_title`: a heading, a caption or the label of a tab."""

    text: str
    is_title: bool = False
    listed: bool = False


@dataclass
class Grid:
    """A table, with the lines that hold for it, the outermost first, and the notes below it."""

    header: Row
    rows: tuple[Row, ...]
    above: tuple[Line, ...]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Unread:
    """Something of a page that is not read; `rejected`: it holds rows of a table."""

    message: str
    line: int
    remedy: str
    rejected: bool = False


@dataclass(frozen=True)
class ParsedPage:
    """What a page holds: `footnotes` by their mark without brackets or caret: `1`, `a`."""

    title: str
    title_line: int
    opening: str
    """The text above the first section and the first table."""
    text: str
    grids: Sequence[Grid]
    unread: Sequence[Unread]
    footnotes: Mapping[str, str]
    front: str | None = None
    """The YAML front matter, which starts on line 2."""
    quoted: Sequence[Row] = ()
    """The headers of tables in blocks of code."""


CUT_OFF: Final = (
    "the row is not part of a table: a blank line cuts it off",
    "put it right below the table",
)
"""The message and the remedy for a row without a header."""

PLAIN: Final = re.compile(r"[^\\`*_~\[\]<>&!|]*")
"""A text without markup of Markdown or HTML."""

_MARK = re.compile(r"\[\^([^\]\s]{1,99})\]")
"""A reference to a footnote in a text: `661[^1]`."""


def without_marks(text: str) -> str:
    """A text with single spaces and without references to footnotes."""
    return " ".join(_MARK.sub("", text).split())


def marks(text: str) -> tuple[str, ...]:
    """The marks of the footnotes that a text refers to."""
    return tuple(_MARK.findall(text))


MARKED: Final = "\\"
"""Marks a cell with markup among the cells of a row; no other cell has a backslash."""


def html_table(rows: Sequence[Row]) -> str:
    """A table as HTML; the text of each cell is HTML.

    Cells without markup are an attribute of their row: a tree of them all takes most of the time.
    """
    lines = []
    for row in rows:
        plain = "|".join(it.raw if PLAIN.fullmatch(it.raw) else MARKED for it in row.cells)
        marked = (it for it in row.cells if not PLAIN.fullmatch(it.raw))
        made = "".join(f'<td data-raw="{escape(it.raw)}">{it.text}</td>' for it in marked)
        lines.append(f'<tr data-line="{row.line}" data-cells="{escape(plain)}">{made}')
    return f'<table data-line="{rows[0].line}">{"</tr>".join(lines)}</tr></table>'
