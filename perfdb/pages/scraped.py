"""Turns text that was copied from a browser into HTML: one cell a line, each with a pipe after it.

A rule line such as `---|---|---|` says how many columns a table has; a heading ends with #.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from perfdb.pages import html
from perfdb.pages.base import CUT_OFF, Cell, ParsedPage, Row, Unread, html_table

_RULE = re.compile(r"\s*-{3,}(\|-{3,})+\|?\s*")
_CELL = re.compile(r"[^|]*\|\s*")


def recognizes(text: str) -> bool:
    """Whether a rule follows a line that is one cell."""
    lines = pairwise(text.split("\n"))
    return any(_RULE.fullmatch(line) and _CELL.fullmatch(before) for before, line in lines)


def page(text: str) -> ParsedPage:
    """What a copied text holds."""
    lines = text.split("\n")
    made: list[str] = []
    unread: list[Unread] = []
    at, level = 0, 1
    while at < len(lines):
        end, line = at, lines[at].rstrip()
        while end < len(lines) and (_CELL.fullmatch(lines[end]) or _RULE.fullmatch(lines[end])):
            end += 1
        if end > at:
            tables = list(filter(None, _tables(lines, at, end)))
            made += [html_table(rows) for rows in tables]
            if not tables or tables[0][0].line > at + 1:
                unread.append(Unread(CUT_OFF[0], at + 1, CUT_OFF[1], rejected=True))
        elif line.endswith("#"):
            title = escape(line.rstrip(" #"))
            made.append(f'<h{level} data-line="{at + 1}">{title}</h{level}>')
            level = 2
        elif line:
            made.append(f"<p>{escape(line)}</p>")
        at = max(end, at + 1)
    return html.page("\n".join(made), unread=unread)


def _tables(lines: Sequence[str], start: int, end: int) -> Iterator[list[Row]]:
    """The rows of each table in a run of cells: a rule has as many parts as a row has cells."""
    rules = [at for at in range(start, end) if _RULE.fullmatch(lines[at])]
    widths = [lines[rule].strip().rstrip("|").count("|") + 1 for rule in rules]
    starts = [max(start, rule - width) for rule, width in zip(rules, widths, strict=True)]
    for rule, width, first, last in zip(rules, widths, starts, [*starts, end][1:], strict=True):
        below = ((at, min(at + width, last)) for at in range(rule + 1, last, width))
        places = [(first, rule), *below]
        yield [_row(lines[a:b], a + 1) for a, b in places if a < b]


def _row(lines: Sequence[str], line: int) -> Row:
    texts = [text.strip().removesuffix("|").strip() for text in lines]
    return Row(line, tuple(Cell(text, escape(text)) for text in texts))
