"""Pages copied as text from a browser: one cell a line, each with a pipe after it.

A rule line such as `---|---|---|` says how many columns a table has; a heading ends with #.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from perfdb.pages.base import CUT_OFF, Cell, Grid, Heading, Line, ParsedPage, Piece, Row, Unread

_RULE = re.compile(r"\s*-{3,}(\|-{3,})+\|?\s*")
_CELL = re.compile(r"[^|]*\|\s*")


def recognizes(text: str) -> bool:
    """Whether a rule follows a line that is one cell."""
    lines = pairwise(text.split("\n"))
    return any(_RULE.fullmatch(line) and _CELL.fullmatch(before) for before, line in lines)


def page(text: str) -> ParsedPage:
    """The pieces of such a text. It has no front matter."""
    return ParsedPage(None, tuple(_pieces(text.split("\n"))))


def _pieces(lines: Sequence[str]) -> Iterator[Piece]:
    at, level = 0, 1
    while at < len(lines):
        end, line = at, lines[at].rstrip()
        while end < len(lines) and (_CELL.fullmatch(lines[end]) or _RULE.fullmatch(lines[end])):
            end += 1
        if end > at:
            yield from _grids(lines[at:end], at + 1)
        elif line.endswith("#"):
            yield Heading(level, line.rstrip(" #"), at + 1)
            level = 2
        elif line:
            yield Line(line.strip(), at + 1)
        at = max(end, at + 1)


def _grids(lines: Sequence[str], first: int) -> Iterator[Piece]:
    """The tables in a run of cells: as many cells as a rule has parts are before it."""
    rules = [index for index, line in enumerate(lines) if _RULE.fullmatch(line)]
    widths = [lines[rule].strip().rstrip("|").count("|") + 1 for rule in rules]
    starts = [max(0, rule - width) for rule, width in zip(rules, widths, strict=True)]
    if min(starts, default=len(lines)):
        message, remedy = CUT_OFF
        yield Unread(message, first, remedy, rejected=True)
    ends = [*starts, len(lines)][1:]
    for rule, width, start, end in zip(rules, widths, starts, ends, strict=True):
        places = [
            (start, rule),
            *((at, min(at + width, end)) for at in range(rule + 1, end, width)),
        ]
        header, *rows = (_row(lines[at:to], first + at) for at, to in places)
        if start < rule:
            yield Grid(header, tuple(rows))


def _row(lines: Sequence[str], line: int) -> Row:
    texts = [text.strip().removesuffix("|").strip() for text in lines]
    return Row(line, tuple(Cell(text, text) for text in texts))
