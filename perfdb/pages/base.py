"""What a page is, whatever its markup: pieces in reading order; and what reading it gives."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from perfdb.errors import Diagnostic
from perfdb.record import Original, PublishedResult


@dataclass(frozen=True)
class PageContext:
    """What the command line says of a page. None: it says nothing, the page decides."""

    framework: str | None = None
    release: str | None = None
    container: str | None = None
    system: str | None = None
    precision: str | None = None


@dataclass(frozen=True)
class PageRead:
    """The results a page holds, and what perfdb has to say of it."""

    results: tuple[PublishedResult, ...]
    problems: tuple[Diagnostic, ...]
    """One for each row that could not be read, and one for front matter that is wrong."""
    notes: tuple[Diagnostic, ...] = ()
    """What was kept but not understood."""
    original: Original = field(default_factory=Original)


@dataclass(frozen=True)
class Cell:
    """A cell: as it stands in the source, and the words a reader sees.

    `wide`: it is one cell across several columns, and the same object stands in each of them.
    """

    raw: str
    text: str
    wide: bool = False


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
class Enter:
    """The start of a labelled box: a tab, a dropdown. What is said inside holds only inside.

    `note`: a note, warning or the like, whose text is a footnote of the table right above it.
    """

    label: str
    line: int
    note: bool = False


@dataclass(frozen=True)
class Leave:
    """The end of the box entered last."""


@dataclass(frozen=True)
class Line:
    """A line of running text; `listed`: of an item of a list; `titled`: all in bold, a title."""

    text: str
    line: int
    listed: bool = False
    titled: bool = False


@dataclass(frozen=True)
class Grid:
    """A table as it stands; `ruled`: a rule sets its header off from its rows.

    `spanners` is what stands above each title, in a header of several rows.
    """

    header: Row
    rows: tuple[Row, ...]
    ruled: bool = True
    spanners: Row | None = None


@dataclass(frozen=True)
class Skipped:
    """What a page refers to, or does not show to everybody, and is not read; and what to do."""

    message: str
    line: int
    remedy: str


@dataclass(frozen=True)
class Quoted:
    """A table in a block of code, which is none of the page's own."""

    grid: Grid


Piece = Heading | Enter | Leave | Line | Grid | Skipped | Quoted


@dataclass(frozen=True)
class Page:
    """A page: its YAML front matter, which starts on line 2, and what follows in reading order."""

    front: str | None
    pieces: tuple[Piece, ...]
    footnotes: Mapping[str, str] = field(default_factory=dict)
    """The text of each footnote by its mark, without brackets or caret: `1`, `*`, `a`.

    The marks that a cell bears stand in its raw text: `[^1]`, `[1]_`, `<sup>1</sup>`, `*`.
    """

    @property
    def skipped(self) -> Iterator[Skipped]:
        """What of the page is not read."""
        return (piece for piece in self.pieces if isinstance(piece, Skipped))


class PageFormat(Protocol):
    """One markup that published pages are written in."""

    @property
    def NAME(self) -> str:
        """perfdb's word for the markup."""
        ...

    def recognises(self, text: str) -> bool:
        """Whether the text looks like this markup."""
        ...

    def page(self, text: str) -> Page:
        """The pieces of a text. Takes any text; lines end with a newline alone."""
        ...
