"""reStructuredText: tables of every kind, sections, and tabs from directives, each with its line.

Blocks are told apart here and not by docutils: its parser keeps what directives it knows in tables
of its own that every user shares, opens files that a text names, and gives no line of a row. Its
parsers of tables alone do none of that, and are used.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from perfdb.pages import directives, html, rest_tables
from perfdb.pages.base import Enter, Heading, Leave, Line, Page, Piece
from perfdb.pages.rest_text import Inline, numbered

NAME = "rest"

_SIGN = re.compile(
    r"^ *\.\. +(?:[\w:.+-]+::(?:\s|$)|\|[^|\n]+\| +\w+::|_[^:\n]+:(?:\s|$)|\[[^\]\n]+\] )"
    r"|^ *\+(?:-+\+){2,} *\n *\|"
    r"|^ *=+(?: +=+)+ *\n(?:(?! *=+(?: +=+)* *$).+\n){1,9} *=+(?: +=+)+ *$",
    re.MULTILINE,
)
_MARKDOWN = re.compile(r"\A---\n|^(?:#{1,6} +\S|[ \t]*```|:::|[ \t]*</?[A-Z][a-z])", re.MULTILINE)

_DIRECTIVE = re.compile(r"\.\. +(?:\|[^|]+\| +)?([\w:.+-]+?) ?::(?: +(.*))?")
_FOOTNOTE = re.compile(r"\.\. +\[([^\]\s]+)\](?: +(.*))?")
_EXPLICIT = re.compile(r"\.\.(?: +|$)")
_ADORNED = re.compile(r"([!-/:-@\[-`{-~])\1+ *")
_ITEM = re.compile(r"((?:[*+•‣⁃-]|\(?(?:[0-9]{1,9}|#|[a-zA-Z])[.)]) +)(\S.*)")
_BOLD = re.compile(r"\*\*(?!\s)[^*]+\*\*:? *")
_FIELD = re.compile(r":([^:\s`][^:`]*):(?: +(.*))?")
_UNLABELLED: Final = frozenset({"only", "container", "class", "rst-class", "cssclass", "ifconfig"})
"""Directives whose argument is no text of the page."""
_SHORTEST: Final = 4
"""Characters of the shortest line below a longer title."""
_DEEPEST: Final = 20
"""Blocks within blocks that are followed."""


def recognises(text: str) -> bool:
    """Whether a text has a directive, a target or a table of reStructuredText, and no Markdown."""
    return bool(_SIGN.search(text)) and not _MARKDOWN.search(text)


def page(text: str) -> Page:
    """The pieces of a reStructuredText. It has no front matter."""
    footnotes: dict[str, str] = {}
    return Page(None, tuple(pieces(text, 1, footnotes)), footnotes)


def pieces(text: str, first: int, footnotes: dict[str, str]) -> Iterator[Piece]:
    """The pieces of a part of a page whose first line is `first`; footnotes are added to those."""
    marked = numbered(text.expandtabs(8))
    reader = _Reader(Inline.of(marked), footnotes)
    yield from reader.read(_Block(marked.split("\n"), first))


@dataclass(frozen=True)
class _Block:
    """Lines of the page from line `first` on, without the indent that they share."""

    lines: Sequence[str]
    first: int
    depth: int = 0
    listed: bool = False

    def indented(self, at: int) -> "_Block":
        """What stands further in, from line `at` of the block on; blank lines may end it."""
        below = (self.lines[number] for number in range(at, len(self.lines)))
        own = list(takewhile(lambda line: not line.strip() or line[0] == " ", below))
        margin = min((len(text) - len(text.lstrip()) for text in own if text.strip()), default=0)
        lines = [text[margin:] for text in own]
        return _Block(lines, self.first + at, self.depth + 1, self.listed)


@dataclass
class _Reader:
    """Reads blocks from top to bottom. `styles` are those of titles, the outermost first."""

    inline: Inline
    footnotes: dict[str, str]
    styles: list[str] = field(default_factory=list)

    def read(self, block: _Block) -> Iterator[Piece]:
        """The pieces of a block; blocks too deep within others say nothing."""
        at = 0 if block.depth <= _DEEPEST else len(block.lines)
        while at < len(block.lines):
            line = block.lines[at]
            if not line.strip():
                at += 1
            elif line[0] == " ":
                inner = block.indented(at)
                yield from self.read(inner)
                at += len(inner.lines)
            elif _EXPLICIT.match(line):
                inner = block.indented(at + 1)
                yield from self.explicit(line, inner)
                at += 1 + len(inner.lines)
            elif size := self.title_size(block.lines, at):
                yield self.heading(block, at, size)
                at += size
            elif size := rest_tables.size(block.lines, at):
                lines = block.lines[at : at + size]
                yield from rest_tables.pieces(lines, block.first + at, self.inline.cell_words)
                at += size
            else:
                at += yield from self.text(block, at)

    def text(self, block: _Block, at: int) -> Generator[Piece, None, int]:
        """A line of text with the rest of its item or its quoted block; returns how many lines."""
        line, number = block.lines[at], block.first + at
        if _ADORNED.fullmatch(line):
            return 1
        if item := _ITEM.fullmatch(line):
            # Of `(1) text` the mark is printed: a footnote may begin so.
            kept = line if line.startswith("(") else item[2]
            yield Line(self.inline.words(kept), number, listed=kept is not line)
            rest = block.indented(at + 1)
            yield from self.read(_Block(rest.lines, rest.first, rest.depth, listed=True))
            return 1 + len(rest.lines)
        if found := _FIELD.fullmatch(line):
            line = f"{found[1]}: {found[2] or ''}"
        if line != "::":
            text, titled = self.inline.words(line.replace("::", ":")), _BOLD.fullmatch(line)
            yield Line(text, number, listed=block.listed, titled=titled is not None)
        return 1 + (len(block.indented(at + 1).lines) if line.rstrip().endswith("::") else 0)

    def title_size(self, lines: Sequence[str], at: int) -> int:
        """How many lines a section's title takes that starts here; 0 where none does."""
        below = [line.rstrip() for line in lines[at : at + 3]]
        if len(below) > 2 and _ADORNED.fullmatch(below[0]) and below[2] == below[0]:
            return 3 if below[1].strip() and len(below[1].strip()) <= len(below[0]) else 0
        if len(below) < 2 or not _ADORNED.fullmatch(below[1]) or _ADORNED.fullmatch(below[0]):
            return 0
        return 2 if len(below[1]) >= min(_SHORTEST, len(below[0])) else 0

    def heading(self, block: _Block, at: int, size: int) -> Heading:
        adornment = block.lines[at + size - 1][0]
        style = adornment * (size - 1)
        if style not in self.styles:
            self.styles.append(style)
        title, level = block.lines[at + size - 2], self.styles.index(style) + 1
        return Heading(level, self.inline.words(title), block.first + at + size - 2)

    def explicit(self, line: str, inner: _Block) -> Iterator[Piece]:
        """What starts with two dots: a directive, a footnote, a target, or a comment."""
        if found := _FOOTNOTE.fullmatch(line):
            texts = [found[2] or "", *inner.lines]
            self.footnotes[found[1].lstrip("#")] = self.inline.words(" ".join(texts))
        elif (found := _DIRECTIVE.fullmatch(line)) and "|" not in line[: found.start(1)]:
            yield from self.directive((found[1], found[2] or ""), line, inner)

    def directive(self, head: tuple[str, str], line: str, inner: _Block) -> Iterator[Piece]:
        one = directives.of(head, inner.lines, inner.first)
        block = _Block(one.lines, one.first, inner.depth, inner.listed)
        yield from directives.elsewhere(one)
        if directives.is_table(one.name):
            yield from directives.table(one, self.inline.cell_words)
        elif one.name == "raw" and one.argument == "html":
            yield from html.pieces("\n".join(one.lines), one.first, self.footnotes)
        elif one.name == directives.TITLE:
            yield Line(self.inline.words(one.argument), inner.first - 1, titled=True)
        elif directives.is_conditional(one):
            yield from directives.unseen(one, self.read(block))
        elif one.name not in directives.LITERAL:
            label = "" if one.name in _UNLABELLED else self.inline.words(one.argument)
            yield Enter(label, inner.first - 1, note=one.name in directives.NOTES)
            yield from self.read(block)
            yield Leave()
