"""Markdown and MyST: tables of every kind, headings, and tabs from directives, with their lines.

Tables are read from the lines of their paragraph: a parser of GFM tables pads short rows and cuts
long ones in silence, and takes text that follows a table without a blank line for rows of it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from perfdb.pages import directives, footnotes, rest
from perfdb.pages.base import Cell, Enter, Grid, Heading, Leave, Line, Page, Piece, Quoted, Row
from perfdb.pages.directives import Directive
from perfdb.pages.html_blocks import HtmlBlocks
from perfdb.pages.markdown_text import cell_words, words

NAME = "markdown"


def _comment(state: StateBlock, start: int, _end: int, silent: bool) -> bool:
    """A line of MyST that begins with a percent sign, which no reader sees."""
    at = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or not state.src.startswith("%", at):
        return False
    if not silent:
        state.line = start + 1
    return True


def _blocks() -> MarkdownIt:
    """A parser of the blocks of a text, and of nothing within them."""
    parser = MarkdownIt("commonmark").use(colon_fence_plugin).use(footnote_plugin)
    ended = ["paragraph", "reference", "blockquote", "list", "footnote_def"]
    parser.block.ruler.before("blockquote", "comment", _comment, {"alt": ended})
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


_BOX = _blocks()
_DOCUMENT = _blocks().use(front_matter_plugin)
_START = Token("start", "", 0)
_END = "\n"
"""Behind a text: the parser of ::: looks at the sign behind a last line that is empty."""

_FRONT = re.compile(r"\A---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)", re.DOTALL)
_DIRECTIVE = re.compile(r"\s*\{([\w:.-]+)\}\s*(.*)")
_OPTIONS = re.compile(r"\A\s*(?:---\n(?:.*\n)*?---(?:\n|$)|(?::[\w-]+:.*(?:\n|$)[ \t]*)+)")
_OPTION = re.compile(r"^\s*:?([\w-]+):[ \t]*(.*)$", re.MULTILINE)
_BOLD = re.compile(r"\s*(\*\*|__)(?!\s)(?:(?!\1).)+\1\s*(?::\s*)?")
_PRE = re.compile(r"\s*<pre\b", re.IGNORECASE)
_SNIPPET = re.compile(r"\s*-+8<-+(?:\s.*)?")
_PIPE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_DEEPEST = 20
"""Boxes within boxes that are followed."""


def recognises(text: str) -> bool:
    """Any text is Markdown."""
    return True


def page(text: str) -> Page:
    """The pieces of a Markdown text."""
    tokens = _DOCUMENT.parse(text + _END)
    front = tokens[0].content if tokens and tokens[0].type == "front_matter" else None
    place = _Place(1, text.split("\n"))
    return Page(front, tuple(_pieces([_START, *tokens], place)), place.footnotes)


def without_front(text: str) -> tuple[str | None, str]:
    """The front matter of a text, and the text with blank lines in its place."""
    found = _FRONT.match(text)
    if not found:
        return None, text
    return found[1] or "", "\n" * found[0].count("\n") + text[found.end() :]


def pieces(text: str, first: int, footnotes: dict[str, str]) -> Iterator[Piece]:
    """The pieces of a part of a page whose first line is `first`; footnotes are added to those."""
    place = _Place(first, text.split("\n"), footnotes=footnotes)
    yield from _pieces([_START, *_BOX.parse(text + _END)], place)


@dataclass(frozen=True)
class _Place:
    """The lines of a text, which of the page is its first, and how many boxes it is in."""

    first: int
    lines: Sequence[str]
    depth: int = 0
    footnotes: dict[str, str] = field(default_factory=dict)

    def line(self, token: Token) -> int:
        return self.first + (token.map[0] if token.map else 0)


def _pieces(tokens: Sequence[Token], place: _Place) -> Iterator[Piece]:
    """What a run of block tokens says, in reading order."""
    blocks = HtmlBlocks(place.lines, place.footnotes)
    lists = end = 0
    note = ""
    for before, token in pairwise(tokens):
        lists += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        if token.map and token.map[0] < end:
            continue
        if token.type == "html_block" and token.map:
            start, end = token.map[0], blocks.end(*token.map)
            yield from blocks.read(start, end, place.line(token))
            if _PRE.match(place.lines[start]) and not blocks.hidden:
                yield from _quoted(place.lines[start:end], place.line(token))
        elif token.type in ("footnote_reference_open", "footnote_reference_close"):
            note = str(token.meta["label"]) if token.nesting > 0 else ""
        elif note and token.type == "inline":
            place.footnotes[note] = words(f"{place.footnotes.get(note, '')} {token.content}")
        elif not note and not blocks.hidden:
            yield from _block(before, token, place, listed=lists > 0)
    yield from blocks.close()


def _block(before: Token, token: Token, place: _Place, *, listed: bool) -> Iterator[Piece]:
    if token.type in ("fence", "colon_fence"):
        yield from _box(token, place)
    elif token.type == "code_block":
        yield from _quoted(token.content.split("\n"), place.line(token))
    elif before.type == "heading_open" and not _is_table(before, token):
        yield Heading(int(before.tag[1]), words(token.content), place.line(token))
    elif before.type in ("paragraph_open", "heading_open"):
        yield from _flow(token.content.split("\n"), place.line(token), listed=listed)


def _is_table(heading: Token, content: Token) -> bool:
    """Whether a line of dashes, which ends a table, was taken for the underline of a heading."""
    return heading.markup in ("-", "=") and "|" in content.content


def _box(token: Token, place: _Place) -> Iterator[Piece]:
    """What stands inside a directive; code and other literal text says nothing of other tables.

    Colons without a directive's name hold Markdown too: one ::: too many must not hide the tables
    below it.
    """
    named = _DIRECTIVE.match(token.info)
    if place.depth >= _DEEPEST or not (named or token.type == "colon_fence"):
        yield from _quoted(token.content.split("\n"), place.line(token) + 1)
        return
    name, argument = (named[1], named[2]) if named else ("", token.info.strip())
    one = _directive((name, argument), token.content, place.line(token))
    yield from directives.elsewhere(one)
    if name == "eval-rst":
        yield from rest.pieces("\n".join(one.lines), one.first, place.footnotes)
    elif directives.is_table(name):
        yield from directives.table(one, cell_words)
    elif name == directives.TITLE:
        yield Line(words(argument), one.line, titled=True)
    elif directives.is_conditional(one):
        yield from directives.unseen(one, _inside(one, place))
    elif name not in directives.LITERAL:
        note = name in directives.NOTES or (not name and argument in directives.NOTES)
        yield Enter("" if argument in directives.NOTES else words(argument), one.line, note=note)
        yield from _inside(one, place)
        yield Leave()
    else:
        yield from _quoted(one.lines, one.first)


def _quoted(lines: Sequence[str], first: int) -> Iterator[Piece]:
    """The tables in lines of code."""
    if any(map(_is_rule, lines)):
        for piece in _flow(lines, first, listed=False):
            if isinstance(piece, Grid) and piece.ruled:
                yield Quoted(piece)


def _directive(head: tuple[str, str], content: str, line: int) -> Directive:
    """A directive that starts on a line: its name and argument, and all that stands in it."""
    options = _OPTIONS.match(content)
    written = options[0] if options else ""
    said = {name: _scalar(value) for name, value in _OPTION.findall(written)}
    lines = content[len(written) :].split("\n")
    return Directive(*head, said, line, lines, line + 1 + written.count("\n"))


def _inside(one: Directive, place: _Place) -> Iterator[Piece]:
    inner = _Place(one.first, one.lines, place.depth + 1, place.footnotes)
    return _pieces([_START, *_BOX.parse("\n".join(one.lines) + _END)], inner)


def _scalar(text: str) -> str:
    """The value of an option, which is YAML: in quotes, or as it stands."""
    quoted = re.fullmatch(r"'(.*)'\s*", text)
    return quoted[1].replace("''", "'") if quoted else text.strip()


def _flow(lines: Sequence[str], first: int, *, listed: bool) -> Iterator[Piece]:
    """Lines without a blank one between: text, and the tables that begin and end in it.

    In a paragraph that begins as a footnote, a pipe is a sign like others.
    """
    is_footnote = footnotes.begins(words(_PIPE.split(lines[0])[0]))
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and _PIPE.search(lines[end]) and not _next_header(lines, at, end):
            end += 1
        grid = _grid(lines[at:end], first + at) if end > at else None
        if grid is None or (is_footnote and not grid.ruled):
            end = max(end, at + 1)
            yield from (_line(lines[it], first + it, listed=listed) for it in range(at, end))
        else:
            yield grid
        at = max(end, at + 1)


def _line(text: str, number: int, *, listed: bool) -> Piece:
    """A line of text, or what a snippet of MkDocs stands for."""
    if _SNIPPET.fullmatch(text):
        return directives.included(text.strip(), number)
    return Line(words(text), number, listed, titled=_BOLD.fullmatch(text) is not None)


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
    texts = [text.strip() for text in _PIPE.split(line.strip())]
    start = 1 if len(texts) > 1 and not texts[0] else 0
    end = len(texts) - 1 if len(texts) > start + 1 and not texts[-1] else len(texts)
    return Row(number, tuple(Cell(text, cell_words(text)) for text in texts[start:end]))
