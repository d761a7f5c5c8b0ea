"""Markdown and MyST, with the tabs of sphinx-design, MkDocs and MDX components.

Boxes of any dialect become comments on lines of their own first, so that markdown-it reads
the same lines of the same page, and sees what is inside a box. The cells of a table are split
here: markdown-it drops what is behind the last column of a row in silence.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from perfdb.pages import base, html, rest

_BLOCKS = MarkdownIt("commonmark").enable("table").use(front_matter_plugin).use(footnote_plugin)
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])
_INLINE = MarkdownIt("commonmark")

_MARKUP = re.compile(r"[\\`*_~\[\]<>&!]")
_PIPE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*")
_BOLD = re.compile(r"\s*(\*\*|__)(?!\s)(?:(?!\1).)+\1\s*:?\s*")
_QUOTE = re.compile(r"^(?:\s*>\s?)+")
_FEWEST_CELLS: Final = 3
"""Of a line with pipes that may be a row."""

_FENCE = re.compile(r"\s*(?:>\s*)?(?P<fence>`{3,}|~{3,}|:{3,})\s*(?P<info>.*?)\s*")
_DIRECTIVE = re.compile(r"\{([\w:.-]+)\}\s*(.*)")
_INDENTED = re.compile(
    r"(?P<indent>\s*)(?:===[!+]*(?=\s+[\"'])|(?:!!!|\?\?\?\+?)\s+(?P<kind>[\w-]+))"
    r"(?:\s+[\"'](?P<label>.*)[\"'])?\s*"
)
"""MkDocs: `=== "DGX-H100"`, `!!! note "Title"`."""
_COMPONENT = re.compile(
    r"\s*(?:<Tabs>)?<(?P<end>/)?(?P<name>Tabs?|TabItem|Accordion|Card|details)\b(?P<said>[^>]*)>"
    r"(?:\s*<summary>(?P<summary>.*)</summary>)?(?:</Tabs>)?\s*"
)
"""Components of Docusaurus and Mintlify, and the details of GitHub."""
_SUMMARY = re.compile(r"\s*<summary>(.*)</summary>\s*")
_ATTRIBUTE = re.compile(r"\b(label|title|value)=\{?[\"']([^\"']*)[\"']")
_COMMENT = re.compile(r"<!--.*?-->|\{/\*.*?\*/\}", re.DOTALL)
_TABLES: Final = ("list-table", "csv-table", "eval-rst")
"""Directives that docutils reads."""
_LITERAL: Final = (
    "code", "code-block", "code-cell", "literalinclude", "math", "mermaid", "toctree", "contents",
    "image", "figure", "include", "todo", "only", "ifconfig",
)  # fmt: skip
"""Directives that hold no text of the page, or text that not every reader sees."""
_NOTES: Final = frozenset({"note", "tip", "info", "warning", "caution", "important", "hint"})
"""Directives of which the title states nothing on a table."""


def recognizes(text: str) -> bool:
    """Any text is Markdown."""
    return True


def page(text: str) -> base.ParsedPage:
    """The pieces of a Markdown text."""
    boxes = _Boxes()
    tokens = _BLOCKS.parse(boxes.marked(text))
    front = tokens[0].content if tokens and tokens[0].type == "front_matter" else None
    reader = _Reader(boxes)
    return base.ParsedPage(front, tuple(reader.pieces(tokens)), reader.footnotes)


def words(markup: str) -> str:
    """The words that a reader sees of inline Markdown, with a newline for each line break."""
    text = markup.replace("\\|", "|").strip()
    if not _MARKUP.search(text):
        return text
    if re.search(r"</?[a-zA-Z]", text):
        return html.words(_INLINE.renderInline(text))
    tokens = _INLINE.parseInline(text)
    runs = (_run(child) for token in tokens for child in token.children or ())
    return base.joined(filter(None, runs)).strip()


def _run(token: Token) -> str:
    if token.type == "image":
        return token.content
    return " " if token.type.endswith("break") else token.content


@dataclass
class _Boxes:
    """Replaces the starts and ends of boxes by comments; keeps their labels and tables by line."""

    labels: dict[int, str] = field(default_factory=dict)
    html: dict[int, str] = field(default_factory=dict)
    rest: dict[int, str] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    open: list[tuple[str, int]] = field(default_factory=list)
    """The boxes that are open: what ends each, and how far in its content is."""

    def marked(self, text: str) -> str:
        """The text, line for line, with a comment where a box starts, ends, or is a table."""
        lines = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text).split("\n")
        while len(self.made) < len(lines):
            line = lines[len(self.made)]
            fence = _FENCE.fullmatch(line)
            directive = _DIRECTIVE.match(fence["info"]) if fence else None
            if fence and directive:
                self._directive(fence["fence"], directive[1], directive[2], lines)
            elif fence and fence["fence"][0] != ":" and not self._closes(fence):
                self._keep(fence["fence"], lines)
            elif "<table" in line.casefold():
                self._replace("</table>", lines, self.html)
            else:
                self._line(line, fence, lines)
        return "\n".join(self.made)

    def _closes(self, fence: re.Match[str]) -> bool:
        ends = (end for end, _ in self.open if end)
        return not fence["info"] and any(map(fence["fence"].startswith, ends))

    def _keep(self, end: str, lines: Sequence[str]) -> None:
        self.made += lines[len(self.made) : len(self.made) + _size(lines, len(self.made), end)]

    def _replace(self, end: str, lines: Sequence[str], kept: dict[int, str]) -> None:
        """Put a comment in place of a table; its lines are kept with the number of the first."""
        start, size = len(self.made), _size(lines, len(self.made), end)
        kept[start + 1] = "\n".join(lines[start : start + size])
        self.made += [f"<!--table {start + 1}-->", *[""] * (size - 1)]

    def _start(self, label: str, end: str, indent: int = 0) -> None:
        self.labels[len(self.made) + 1] = label
        self.open.append((end, indent))
        self.made.append(f"<!--box {len(self.made) + 1}-->")

    def _directive(self, fence: str, name: str, argument: str, lines: Sequence[str]) -> None:
        if name in _TABLES:
            self._replace(fence, lines, self.rest)
        elif name in _LITERAL:
            self._keep(fence, lines)
        else:
            self._start("" if name.casefold() in _NOTES else argument, fence)

    def _line(self, line: str, fence: re.Match[str] | None, lines: Sequence[str]) -> None:
        """A line outside of code: the start or end of a box, or text."""
        if fence and fence["info"]:
            self._start(fence["info"], fence["fence"])
        elif fence:
            self._end(fence["fence"])
        elif found := _COMPONENT.fullmatch(line):
            self._component(found, lines)
        elif found := _INDENTED.fullmatch(line):
            below = next((one for one in lines[len(self.made) + 1 :] if one.strip()), "")
            inside = len(found["indent"]) + 4
            if _indent(below) >= inside:
                self._start(found["label"] or "", "", inside)
            else:
                self._text(line)
        else:
            self._text(line)

    def _component(self, found: re.Match[str], lines: Sequence[str]) -> None:
        if found["end"]:
            self._end(f"</{found['name']}>")
            return
        said: dict[str, str] = dict(_ATTRIBUTE.findall(found["said"]))
        below = _SUMMARY.fullmatch((*lines[len(self.made) + 1 :], "")[0])
        summary = found["summary"] or (below[1] if below else "")
        label = said.get("label") or said.get("title") or said.get("value") or words(summary)
        self._start(label, f"</{found['name']}>")

    def _end(self, end: str) -> None:
        """The end of the box that ends so, and of those inside; text that ends none is left out."""
        ends = [at for at, (one, _) in enumerate(self.open) if one and end.startswith(one)]
        count = len(self.open) - ends[-1] if ends else 0
        del self.open[len(self.open) - count :]
        self.made.append("<!--/box-->" * count)

    def _text(self, line: str) -> None:
        """A line of text, without the indent of its boxes; it may end boxes by its indent."""
        count = 0
        while line.strip() and self.open and _indent(line) < self.open[-1][1]:
            self.open.pop()
            count += 1
        if count:  # a line of comments may not hold text: the box ends on the blank line above
            self.made[-1] += "<!--/box-->" * count
        inside = _QUOTE.sub("", line.lstrip() if self.open else line)
        self.made.append("" if _SUMMARY.fullmatch(line) else inside)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _size(lines: Sequence[str], start: int, end: str) -> int:
    """How many lines a block takes, with the one that ends it: a fence, or a tag."""
    for at in range(start, len(lines)):
        line = lines[at].strip().casefold()
        is_fence = at > start and line.startswith(end) and not line.strip("`~:")
        if is_fence or (end.startswith("<") and end in line):
            return at - start + 1
    return len(lines) - start


@dataclass
class _Reader:
    """From the tokens of a page to its pieces."""

    boxes: _Boxes
    footnotes: dict[str, str] = field(default_factory=dict)

    def pieces(self, tokens: Sequence[Token]) -> Iterator[base.Piece]:
        """What a run of block tokens holds, in reading order."""
        lists = end = 0
        note = ""
        for before, token in pairwise([Token("start", "", 0), *tokens]):
            lists += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
            if token.type in ("footnote_reference_open", "footnote_reference_close"):
                note = str(token.meta["label"]) if token.nesting > 0 else ""
            elif note and token.type == "inline":
                text = f"{self.footnotes.get(note, '')} {words(token.content)}"
                self.footnotes[note] = " ".join(text.split())
            elif token.map and token.map[0] >= end:
                if token.type == "table_open":
                    end = token.map[1]
                yield from self._block(before, token, listed=lists > 0)

    def _block(self, before: Token, token: Token, *, listed: bool) -> Iterator[base.Piece]:
        first, end = token.map or (0, 0)
        if token.type == "html_block":
            yield from self._html(token.content, first + 1)
        elif token.type == "table_open":
            yield from _tables(self.boxes.made[first:end], first + 1)
        elif token.type in ("fence", "code_block"):
            yield from _quoted(token.content.split("\n"), first + 1 + (token.type == "fence"))
        elif before.type == "heading_open":
            yield base.Heading(int(before.tag[1]), words(token.content), first + 1)
        elif before.type == "paragraph_open":
            yield from _paragraph(token.content.split("\n"), first + 1, listed=listed)

    def _html(self, content: str, line: int) -> Iterator[base.Piece]:
        for name, number in re.findall(r"<!--(/?[a-z]+) ?(\d*)-->", content):
            at = int(number or 0)
            if name == "box":
                yield base.BoxStart(words(self.boxes.labels[at]), at)
            elif name == "/box":
                yield base.BoxEnd()
            elif at in self.boxes.html:
                yield from html.pieces(self.boxes.html[at], at, self.footnotes)
            elif at in self.boxes.rest:
                yield from self._rest(self.boxes.rest[at], at)
        if not content.startswith("<!--"):
            yield from html.pieces(content, line, self.footnotes)

    def _rest(self, text: str, first: int) -> Iterator[base.Piece]:
        """A table that is a directive, or reStructuredText, without the fences around it."""
        head, *inner = text.split("\n")
        inner = inner[:-1]
        named = _DIRECTIVE.search(head)
        assert named, "a fence without a directive is no such table"
        if named[1] == "eval-rst":
            yield from rest.pieces("\n".join(inner), first + 1, self.footnotes)
        else:
            yield from rest.directive(named[1], named[2].strip(), inner, first)


def _paragraph(lines: Sequence[str], first: int, *, listed: bool) -> Iterator[base.Piece]:
    """Lines of text; a line with pipes is a row that a blank line cut off from its table."""
    for number, line in enumerate(lines, start=first):
        if line.lstrip().startswith("|") and len(_cells(line)) >= _FEWEST_CELLS:
            message, remedy = base.CUT_OFF
            yield base.Unread(message, number, remedy, rejected=True)
        elif _BOLD.fullmatch(line) and not listed:
            yield base.Heading(6, words(line), number)
        else:
            yield base.Line(words(line), number, listed)


def _tables(lines: Sequence[str], first: int) -> Iterator[base.Piece]:
    """The tables in the lines that markdown-it takes for one, and the text between them.

    Text may follow a table without a blank line, and the header of another one.
    """
    header: base.Row | None = None
    rows: list[base.Row] = []
    for number, line in enumerate(lines, start=first):
        below = lines[number - first + 1] if number - first + 1 < len(lines) else ""
        if header and _RULE.fullmatch(line):
            continue
        starts = _RULE.fullmatch(below) is not None
        if header and (starts or not _PIPE.search(line)):
            yield base.Grid(header, tuple(rows))
            header, rows = None, []
        if starts:
            header = _row(line, number)
        elif header:
            rows.append(_row(line, number))
        elif line.strip():
            yield base.Line(words(line), number)
    if header:
        yield base.Grid(header, tuple(rows))


def _row(line: str, number: int) -> base.Row:
    return base.Row(number, tuple(base.Cell(raw, words(raw)) for raw in _cells(line)))


def _cells(line: str) -> list[str]:
    bare = re.sub(r"^\s*\|?|(?<!\\)\|\s*$", "", line)
    return [cell.strip() for cell in _PIPE.split(bare)]


def _quoted(lines: Sequence[str], first: int) -> Iterator[base.Piece]:
    """The tables in a block of code."""
    for at, line in enumerate(lines[1:], start=1):
        if _RULE.fullmatch(line):
            yield base.Grid(_row(lines[at - 1], first + at - 1), (), quoted=True)
