"""Pages copied as text from a browser: one cell a line, each with a pipe after it.

A rule line such as `---|---|---|` says how many columns a table has; a heading ends with #.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from perfdb.pages.base import Cell, Grid, Heading, Line, Page, Piece, Row, Unread

NAME = "scraped"

_RULE = re.compile(r"-{3,}(\|-{3,})+\|?")
_CELL = re.compile(r"[^|]*\|\s*")


def recognizes(text: str) -> bool:
    """Whether a rule follows a line that is one cell."""
    lines = text.split("\n")
    return any(
        _RULE.fullmatch(line.strip()) and _CELL.fullmatch(before)
        for before, line in pairwise(lines)
    )


def page(text: str) -> Page:
    """The pieces of such a text. It has no front matter."""
    return Page(None, tuple(_pieces(text.split("\n"))))


def _pieces(lines: Sequence[str]) -> Iterator[Piece]:
    at, level = 0, 1
    while at < len(lines):
        end = at
        while end < len(lines) and (_CELL.fullmatch(lines[end]) or _is_rule(lines[end])):
            end += 1
        if end > at:
            yield from _grids(lines[at:end], at + 1)
        elif lines[at].rstrip().endswith("#"):
            yield Heading(level, lines[at].rstrip(" #"), at + 1)
            level = 2
        elif lines[at].strip():
            yield Line(lines[at].strip(), at + 1)
        at = max(end, at + 1)


def _is_rule(line: str) -> bool:
    return _RULE.fullmatch(line.strip()) is not None


def _grids(lines: Sequence[str], first: int) -> Iterator[Piece]:
    """The tables in a run of cells: as many cells as a rule has parts stand before it."""
    rules = [index for index, line in enumerate(lines) if _is_rule(line)]
    widths = [lines[rule].strip().rstrip("|").count("|") + 1 for rule in rules]
    starts = [max(0, rule - width) for rule, width in zip(rules, widths, strict=True)]
    ends = [*starts, len(lines)][1:]
    before = min(starts, default=len(lines))
    if before:
        message = "the row is not part of a table: a blank line cuts it off"
        yield Unread(message, first, "put it right below the table", rejected=True)
    for rule, width, start, end in zip(rules, widths, starts, ends, strict=True):
        rows = (
            _row(lines[at : min(at + width, end)], first + at) for at in range(rule + 1, end, width)
        )
        if start < rule:
            yield Grid(_row(lines[start:rule], first + start), tuple(rows))


def _row(lines: Sequence[str], line: int) -> Row:
    texts = [text.strip().removesuffix("|").strip() for text in lines]
    return Row(line, tuple(Cell(text, text) for text in texts))
