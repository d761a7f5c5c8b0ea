"""What a page is in any markup: pieces in reading order; and what reading it gives."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from perfdb.errors import Diagnostic
from perfdb.record import Original, PublishedResult


@dataclass(frozen=True)
class PageContext:
    """What the command line says of a page. None: nothing, the page decides."""

    framework: str | None = None
    release: str | None = None
    container: str | None = None
    system: str | None = None
    precision: str | None = None


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
class Heading:
    """A heading; 1 is the outermost level."""

    level: int
    text: str
    line: int


@dataclass(frozen=True)
class BoxStart:
    """The start of a labeled box: a tab, a dropdown. What is stated inside holds only inside."""

    label: str
    line: int


@dataclass(frozen=True)
class BoxEnd:
    """The end of the innermost box."""


@dataclass(frozen=True)
class Line:
    """A line of running text; `listed`: of an item of a list."""

    text: str
    line: int
    listed: bool = False


@dataclass(frozen=True)
class Grid:
    """A table. `quoted`: it is in a block of code, and no part of the page's results."""

    header: Row
    rows: tuple[Row, ...]
    quoted: bool = False


@dataclass(frozen=True)
class Unread:
    """Something of a page that is not read; `rejected`: it holds rows of a table."""

    message: str
    line: int
    remedy: str
    rejected: bool = False


Piece = Heading | BoxStart | BoxEnd | Line | Grid | Unread


@dataclass(frozen=True)
class ParsedPage:
    """A page: its YAML front matter, which starts on line 2, and what follows in reading order.

    `footnotes` are texts by their mark without brackets or caret: `1`, `a`.
    """

    front: str | None
    pieces: tuple[Piece, ...]
    footnotes: Mapping[str, str] = field(default_factory=dict)


CUT_OFF: Final = (
    "the row is not part of a table: a blank line cuts it off",
    "put it right below the table",
)
"""The message and the remedy for a row without a header."""

_MARK = re.compile(
    r"\[\^([^\]\s]{1,99})\]|\[([^\]\s]{1,99})\]_|(?<=[^\s*†‡§⁰¹²³⁴-⁹])([*†‡§⁰¹²³⁴-⁹]+)(?=\s*$)"
)
"""A reference to a footnote in a text: `[^1]`, `[1]_`, and a sign behind a value: `661†`."""


def joined(runs: Iterable[str]) -> str:
    """Runs of text as one; the digits of two runs, as in `2<b>5</b>`, stay apart."""
    text = ""
    for run in runs:
        apart = text[-1:] and run[:1] and {text[-1], run[0]} <= {*"0123456789.,"}
        text += f"\n{run}" if apart else run
    return text


def without_marks(text: str) -> str:
    """A text with single spaces and without references to footnotes."""
    return " ".join(_MARK.sub("", text).split())


def marks(text: str) -> tuple[str, ...]:
    """The marks of the footnotes that a text refers to."""
    return tuple(a or b or c for a, b, c in _MARK.findall(text))
