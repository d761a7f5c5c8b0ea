"""From a page's pieces to its tables, each with what the page says above it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from perfdb.pages.base import Enter, Grid, Heading, Leave, Line, Piece, Quoted, Row, Skipped

_FEWEST_CELLS: Final = 3
"""Text may have a pipe in it, too."""
_SENTENCE: Final = re.compile(r"[.!?;,]\Z|.{80}")
"""What is in bold is no title then."""
_NUMBER: Final = re.compile(r"\s*[0-9][0-9,.]*\s*")


@dataclass(frozen=True)
class Said:
    """A heading, a tab's label, or a line of text that holds for what follows it.

    `noted`: it stands in a note right above a table; `listed`, `titled`: see `Line`. `tables`: how
    many of them stand above it on the page.
    """

    text: str
    line: int
    heading: bool
    noted: bool = False
    listed: bool = False
    titled: bool = False
    tables: int = 0

    @property
    def only_pairs(self) -> bool:
        """Whether nothing counts but what is stated as `System: DGX-H100`."""
        return self.noted or self.listed


@dataclass(frozen=True)
class Table:
    """A table, what is said of it (outermost first), and rows that a blank line cut off from it.

    `below` are the lines right under it. `turned`: its results stood in columns, and were turned to
    rows; `corner` is then the field that its first column holds, where its title is no column's.
    `spanners`: see `Grid`.
    """

    header: Row
    rows: tuple[Row, ...]
    said: tuple[Said, ...]
    detached: tuple[Row, ...] = ()
    below: tuple[Line, ...] = ()
    turned: bool = False
    corner: str | None = None
    spanners: Row | None = None


@dataclass
class _Scope:
    level: int
    said: list[Said]
    box: bool = False
    note: bool = False


@dataclass
class _Outline:
    """What holds at a place of the page, while it is read from top to bottom."""

    scopes: list[_Scope] = field(default_factory=lambda: [_Scope(0, [])])
    tables: list[Table] = field(default_factory=list)
    below: dict[int, list[Line]] = field(default_factory=dict)
    """The lines right under each table, by its place."""
    noted: Line | None = None
    """What is said so far in a note that stands right under a table."""
    boxed: tuple[Said, ...] = ()
    """The lines of the note that was just left."""

    def text(self, piece: Heading | Enter | Leave | Line | Skipped) -> None:
        """Take what is no table."""
        match piece:
            case Heading():
                self.heading(piece)
            case Enter():
                self.enter(piece)
            case Leave():
                self.leave()
            case Line():
                self.line(piece)
            case Skipped():
                pass

    def heading(self, heading: Heading) -> None:
        while self.scopes[-1].level >= heading.level and not self.scopes[-1].box:
            self.scopes.pop()
        self.scopes.append(
            _Scope(heading.level, [Said(heading.text, heading.line, True, tables=len(self.tables))])
        )

    def enter(self, box: Enter) -> None:
        self.unbox()
        said = [Said(box.label, box.line, True, tables=len(self.tables))] if box.label else []
        self.scopes.append(_Scope(0, said, box=True, note=box.note))

    def unbox(self) -> None:
        """What stands in a note right above a table or a box is said of it, as a line would be."""
        self.scopes[-1].said += self.boxed
        self.boxed = ()

    def leave(self) -> None:
        """Leave a box; what was never entered is not left: HTML may close more than it opens."""
        if any(scope.box for scope in self.scopes):
            while not (left := self.scopes.pop()).box:
                pass
            lines = [replace(one, noted=True) for one in left.said if not one.heading]
            self.boxed = tuple(lines) if left.note else ()

    def line(self, line: Line) -> None:
        titled = line.titled and not line.listed and not _SENTENCE.search(line.text)
        above = len(self.tables)
        said = Said(line.text, line.line, False, False, line.listed, titled, above)
        self.scopes[-1].said.append(said)

    def grid(self, grid: Grid, *, after_table: bool) -> bool:
        """Take a grid for a table, the rest of the one before, or a line; False: for a line."""
        rows = (grid.header, *grid.rows)
        cut_from = None if grid.ruled else self._cut_from(grid.header, after_table=after_table)
        if cut_from is not None:
            table = self.tables[cut_from]
            self.tables[cut_from] = replace(table, detached=table.detached + rows)
        elif not grid.ruled and not grid.rows:
            self.line(_line(grid.header))
            return False
        else:
            self.unbox()
            said = tuple(said for scope in self.scopes for said in scope.said)
            self.tables.append(Table(grid.header, grid.rows, said, spanners=grid.spanners))
        return True

    def _cut_from(self, row: Row, *, after_table: bool) -> int | None:
        """The table that a row was cut off from: the one above, or one as wide with text between.

        Titles hold no bare number; a row of figures does.
        """
        if len(row.cells) < _FEWEST_CELLS:
            return None
        widths = [len(table.header.cells) for table in self.tables]
        same = [place for place, width in enumerate(widths) if width == len(row.cells)]
        is_of_figures = any(_NUMBER.fullmatch(cell.text) for cell in row.cells)
        if same and (after_table or is_of_figures):
            return same[-1]
        return len(self.tables) - 1 if after_table else None

    def under_table(self, piece: Piece) -> bool:
        """Take what stands right under a table: lines and notes. False: the end of such."""
        match piece:
            case Line() if self.noted:
                self.noted = replace(self.noted, text=f"{self.noted.text} {piece.text}")
            case Line():
                self._line_below(piece)
            case Enter(note=True) if not self.noted:
                self.noted = Line(f"Note: {piece.label}", piece.line)
            case Leave() if self.noted:
                self._line_below(self.noted)
                self.noted = None
            case _:
                self.noted = None
                return False
        return True

    def spoken(self, piece: Piece) -> Iterator[Piece]:
        """A piece; of a note under a table each line is text, whatever pipes are in it."""
        if self.noted and isinstance(piece, Grid) and not piece.ruled:
            yield from map(_line, (piece.header, *piece.rows))
        else:
            yield piece

    def _line_below(self, line: Line) -> None:
        self.below.setdefault(len(self.tables) - 1, []).append(line)

    def all_tables(self) -> tuple[Table, ...]:
        below = (tuple(self.below.get(place, ())) for place in range(len(self.tables)))
        pairs = zip(self.tables, below, strict=True)
        return tuple(replace(table, below=lines) for table, lines in pairs)


def _line(row: Row) -> Line:
    return Line(" | ".join(cell.text for cell in row.cells), row.line)


def tables(pieces: Iterable[Piece]) -> tuple[Table, ...]:
    """Every table of a page, in reading order."""
    outline = _Outline()
    after_table = under_table = False
    for piece in chain.from_iterable(map(outline.spoken, pieces)):
        if isinstance(piece, Quoted):
            continue
        was_table, after_table = after_table, False
        under_table = (was_table or under_table) and outline.under_table(piece)
        if isinstance(piece, Heading | Line):
            outline.boxed = ()
        if isinstance(piece, Grid):
            after_table = outline.grid(piece, after_table=was_table)
        else:
            outline.text(piece)
    return outline.all_tables()
