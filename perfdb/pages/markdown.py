"""Markdown and MyST: pipe tables, headings, and tabs from directives, each with its line.

A table is read from its source lines, because the parser pads short rows and cuts long ones in
silence, and takes text that follows a table without a blank line for rows of it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from perfdb.pages.base import Cell, Enter, Grid, Heading, Leave, Line, Page, Piece, Row

NAME = "markdown"

_INLINE = MarkdownIt("commonmark")
_BLOCKS = MarkdownIt("commonmark").enable("table").use(colon_fence_plugin)
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])
_DOCUMENT = MarkdownIt("commonmark").enable("table").use(colon_fence_plugin)
_DOCUMENT.use(front_matter_plugin).core.ruler.enableOnly(["normalize", "block"])

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
    return isinstance(text, str)


def page(text: str) -> Page:
    """The pieces of a Markdown text."""
    tokens = _DOCUMENT.parse(text)
    front = tokens[0].content if tokens and tokens[0].type == "front_matter" else None
    return Page(front, tuple(_pieces(tokens, _Source(text.split("\n"), 1, 0))))


@dataclass(frozen=True)
class _Source:
    """The lines that tokens count from 0, and the line of the page that the first one is."""

    lines: Sequence[str]
    first: int
    depth: int

    def span(self, token: Token) -> tuple[int, Sequence[str]]:
        start, end = token.map or (0, 0)
        return self.first + start, self.lines[start:end]


def _pieces(tokens: Sequence[Token], source: _Source) -> Iterator[Piece]:
    """What a run of block tokens says, in reading order."""
    lists = 0
    before: Token | None = None
    for token in tokens:
        lists += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        if token.type in ("fence", "colon_fence"):
            yield from _directive(token, source)
        elif token.type == "table_open":
            line, lines = source.span(token)
            yield from _flow([re.sub(r"^[\s>]+", "", text) for text in lines], line)
        elif token.type == "inline" and before and before.type == "heading_open":
            yield Heading(int(before.tag[1]), words(token.content), source.span(token)[0])
        elif token.type == "inline" and before and before.type == "paragraph_open":
            yield from _said(token.content.split("\n"), source.span(token)[0], listed=lists > 0)
        before = token


def _directive(token: Token, source: _Source) -> Iterator[Piece]:
    """What stands inside a directive; code and other literal text says nothing."""
    found = _DIRECTIVE.match(token.info)
    if not found or found[1] in _LITERAL or source.depth >= _DEEPEST:
        return
    content = _OPTIONS.sub(lambda options: "\n" * options[0].count("\n"), token.content, count=1)
    line = source.span(token)[0]
    inner = _Source(content.split("\n"), line + 1, source.depth + 1)
    yield Enter(words(found[2]), line)
    yield from _pieces(_BLOCKS.parse(content), inner)
    yield Leave()


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
