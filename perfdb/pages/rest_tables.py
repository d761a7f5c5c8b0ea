"""The grid tables and simple tables of reStructuredText, taken apart by docutils."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from docutils.parsers.rst.tableparser import GridTableParser, SimpleTableParser, TableMarkupError
from docutils.statemachine import StringList

from perfdb.pages import spans
from perfdb.pages.base import Cell, Piece
from perfdb.pages.directives import Words
from perfdb.pages.spans import Spanned, SpannedRow

_GRID = re.compile(r"\+-[-+]*-\+ *")
_BORDER = re.compile(r"=+(?: +=+)+ *")
_WIDE: Final = "\0"
"""What docutils fills up characters of double width with."""
_MOST_LINES: Final = 10_000
"""Of a simple table without an end."""
_MOST_CORNERS: Final = 20_000
"""Of a grid that docutils is given: it takes the cube of a side where the lines do not meet."""

_ParsedCell = tuple[int, int, int, Sequence[str]]
_Parsed = Sequence[_ParsedCell | None]
"""Of docutils: the rows and columns more that a cell takes, its line in the table, its lines."""


def size(lines: Sequence[str], at: int) -> int:
    """How many lines a table takes that starts here; 0 where none does."""
    if _GRID.fullmatch(lines[at]):
        below = (lines[number] for number in range(at, len(lines)))
        return sum(1 for _ in takewhile(lambda line: line[:1] in ("+", "|"), below))
    return _simple_size(lines, at) if _BORDER.fullmatch(lines[at]) else 0


def _simple_size(lines: Sequence[str], at: int) -> int:
    """To the third border, or the second if a blank line follows; without one, to a blank line."""
    borders = 1
    blank = 0
    for number in range(at + 1, len(lines)):
        ends = not "".join(lines[number + 1 : number + 2]).strip()
        if _BORDER.fullmatch(lines[number]):
            borders += 1
            if borders > 2 or ends:
                return number + 1 - at
        blank = blank or (number if not lines[number].strip() else 0)
        if number - at > _MOST_LINES:
            break
    return (blank or len(lines)) - at


def pieces(lines: Sequence[str], first: int, words: Words) -> Iterator[Piece]:
    """The table that starts on line `first`. One that docutils refuses is split by its rules."""
    grid = lines[0].startswith("+")
    block = StringList([line.rstrip() for line in lines])
    block.pad_double_width(_WIDE)
    if grid and not _is_whole(block):
        return spans.pieces(_split(lines, first, words))
    try:
        _, head, body = (GridTableParser() if grid else SimpleTableParser()).parse(block)
    except TableMarkupError:
        return spans.pieces(_split(lines, first, words))
    rows = [(row, True) for row in head] + [(row, False) for row in body]
    return spans.pieces(_rows(rows, first, words))


def _is_whole(block: StringList) -> bool:
    """Whether a grid is a box that docutils can take apart in a moment."""
    corners = sum(line.count("+") for line in block)
    same_width = len({len(line) for line in block}) == 1
    return same_width and corners <= _MOST_CORNERS and bool(_GRID.fullmatch(block[-1]))


def _rows(parsed: Sequence[tuple[_Parsed, bool]], first: int, words: Words) -> Iterator[SpannedRow]:
    for cells, head in parsed:
        own = [cell for cell in cells if cell is not None]
        if own:
            line = first + min(offset for _, _, offset, _ in own)
            yield SpannedRow(line, tuple(_cell(cell, words) for cell in own), head)


def _cell(parsed: _ParsedCell, words: Words) -> Spanned:
    more_rows, more_columns, _, lines = parsed
    text = "\n".join(lines).replace(_WIDE, "")
    return Spanned(Cell(" ".join(text.split()), words(text)), more_columns + 1, more_rows + 1)


def _split(lines: Sequence[str], first: int, words: Words) -> Iterator[SpannedRow]:
    """A row a line: nothing that a damaged table says is lost, and what is wrong with it shows."""
    for number, line in enumerate(lines, start=first):
        if _GRID.fullmatch(line) or _BORDER.fullmatch(line) or not re.search(r"\w", line):
            continue
        inner = line.strip().strip("|") if line.startswith("|") else line
        texts = re.split(r"\|" if line.startswith("|") else r" {2,}", inner.strip())
        cells = (Cell(text.strip(), words(text)) for text in texts)
        yield SpannedRow(number, tuple(Spanned(cell) for cell in cells))
