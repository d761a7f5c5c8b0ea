"""Markdown and MyST: pipe tables, headings, and tabs from directives, each with its line.

Tables are read from the lines of their paragraph: a parser of GFM tables pads short rows and cuts
long ones in silence, and takes text that follows a table without a blank line for rows of it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from perfdb.pages.base import Cell, Enter, Grid, Heading, Leave, Line, Page, Piece, Row

NAME = "markdown"

_INLINE = MarkdownIt("commonmark")
_BOX = MarkdownIt("commonmark").use(colon_fence_plugin)
_BOX.core.ruler.enableOnly(["normalize", "block"])
_DOCUMENT = MarkdownIt("commonmark").use(colon_fence_plugin).use(front_matter_plugin)
_DOCUMENT.core.ruler.enableOnly(["normalize", "block"])
_START = Token("start", "", 0)

_DIRECTIVE = re.compile(r"\s*\{([\w:.-]+)\}\s*(.*)")
_LITERAL = frozenset(
    {"code", "code-block", "code-cell", "sourcecode", "literalinclude", "math", "mermaid", "raw",
     "eval-rst", "toctree", "contents", "list-table", "csv-table"}
)  # fmt: skip
_OPTIONS = re.compile(r"\A\s*(?:---\n(?:.*\n)*?---(?:\n|$)|(?::[\w-]+:.*(?:\n|$)[ \t]*)+)")
_PIPE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_MARKED = re.compile(r"[\\`*_~\[\]<>&!]")
_DEEPEST = 20
"""Boxes within boxes that are followed."""


def recognises(text: str) -> bool:
    """Any text is Markdown."""
    return True


def page(text: str) -> Page:
    """The pieces of a Markdown text."""
    tokens = _DOCUMENT.parse(text)
    front = tokens[0].content if tokens and tokens[0].type == "front_matter" else None
    return Page(front, tuple(_pieces([_START, *tokens], _Place(1))))


@dataclass(frozen=True)
class _Place:
    """The line of the page that a text's first line is, and how many boxes it is in."""

    first: int
    depth: int = 0

    def line(self, token: Token) -> int:
        return self.first + (token.map[0] if token.map else 0)


def _pieces(tokens: Sequence[Token], place: _Place) -> Iterator[Piece]:
    """What a run of block tokens says, in reading order."""
    lists = 0
    for before, token in pairwise(tokens):
        lists += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        if token.type in ("fence", "colon_fence"):
            yield from _box(token, place)
        elif before.type == "heading_open" and not _is_table(before, token):
            yield Heading(int(before.tag[1]), words(token.content), place.line(token))
        elif before.type in ("paragraph_open", "heading_open"):
            yield from _said(token.content.split("\n"), place.line(token), listed=lists > 0)


def _is_table(heading: Token, content: Token) -> bool:
    """Whether a line of dashes, which ends a table, was taken for the underline of a heading."""
    return heading.markup in ("-", "=") and "|" in content.content


def _box(token: Token, place: _Place) -> Iterator[Piece]:
    """What stands inside a directive; code and other literal text says nothing."""
    label = _label(token)
    if label is None or place.depth >= _DEEPEST:
        return
    content = _OPTIONS.sub(lambda options: "\n" * options[0].count("\n"), token.content, count=1)
    line = place.line(token)
    yield Enter(words(label), line)
    yield from _pieces([_START, *_BOX.parse(content)], _Place(line + 1, place.depth + 1))
    yield Leave()


def _label(token: Token) -> str | None:
    """The label of a directive; None where what stands inside is literal.

    Colons without a directive's name hold Markdown too: one ::: too many must not hide the tables
    below it.
    """
    found = _DIRECTIVE.match(token.info)
    if not found:
        return token.info if token.type == "colon_fence" else None
    return None if found[1] in _LITERAL else found[2]


def _said(lines: Sequence[str], first: int, *, listed: bool) -> Iterator[Piece]:
    for piece in _flow(lines, first):
        yield replace(piece, listed=listed) if isinstance(piece, Line) else piece


def _flow(lines: Sequence[str], first: int) -> Iterator[Piece]:
    """Lines without a blank one between: text, and the tables that begin and end in it."""
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and _PIPE.search(lines[end]) and not _next_header(lines, at, end):
            end += 1
        if end == at:
            yield Line(words(lines[at]), first + at)
        else:
            yield _grid(lines[at:end], first + at)
        at = max(end, at + 1)


def _next_header(lines: Sequence[str], start: int, at: int) -> bool:
    """Whether a line is the header of another table than the one that began at `start`."""
    return (
        at > start
        and at + 1 < len(lines)
        and not _is_rule(lines[at])
        and _is_rule(lines[at + 1])
        # A row of single dashes is a row without values.
        and "--" in lines[at + 1]
    )


def _is_rule(line: str) -> bool:
    return "|" in line and _RULE.fullmatch(line) is not None


def _grid(lines: Sequence[str], first: int) -> Grid:
    ruled = len(lines) > 1 and _is_rule(lines[1])
    rows = tuple(_row(line, first + index) for index, line in enumerate(lines))
    return Grid(rows[0], rows[2 if ruled else 1 :], ruled)


def _row(line: str, number: int) -> Row:
    cells = [cell.strip() for cell in _PIPE.split(line.strip())]
    start = 1 if len(cells) > 1 and not cells[0] else 0
    end = len(cells) - 1 if len(cells) > start + 1 and not cells[-1] else len(cells)
    return Row(number, tuple(Cell(cell, words(cell)) for cell in cells[start:end]))


def words(markup: str) -> str:
    """The words a reader sees: emphasis, links and escapes resolved; HTML stays as it is."""
    plain = markup.replace("\\|", "|").strip()
    if not _MARKED.search(plain):
        return plain
    children = [child for token in _INLINE.parseInline(plain) for child in token.children or ()]
    return "".join(" " if t.type.endswith("break") else t.content for t in children).strip()
