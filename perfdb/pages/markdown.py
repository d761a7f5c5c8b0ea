"""Turns Markdown and MyST into HTML.

Tables and boxes are found here, line by line: markdown-it drops what is behind the last column of
a row in silence, and does not know directives. It reads the rest.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

from markdown_it import MarkdownIt
from mdit_py_plugins.footnote import footnote_plugin

from perfdb.pages import html
from perfdb.pages.base import CUT_OFF, PLAIN, Cell, ParsedPage, Row, Unread, html_table

_COMMENT = re.compile(r"<!--(?:(?!<!--).)*?-->|\{/\*(?:(?!\{/\*).)*?\*/\}", re.DOTALL)
_PIPE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*")
_QUOTE = re.compile(r"^(?:\s*>\s?)+")
_FEWEST_CELLS: Final = 3
"""Of a line with pipes that may be a row."""
_FENCE = re.compile(
    r"\s*(?P<fence>`{3,}|~{3,}|:{3,})\s*(?:\{(?P<name>[\w:.-]+)\})?\s*(?P<label>.*?)\s*"
)
_BOXES: Final = ("tab-set", "tab-item", "dropdown")
"""Directives with text of the page as content, also between fences of ```."""
_NOTES: Final = frozenset({"note", "tip", "info", "warning", "caution", "important", "hint"})
"""Directives of which the title states nothing on a table."""
_TABLES: Final = ("list-table", "csv-table", "table", "eval-rst")
_MOST_BOXES: Final = 100
_MKDOCS_TAB = re.compile(r"\s*===[!+]* +[\"']")
_NO_LABEL: Final = ("the tab is not read: its label is not known", "put its tables below headings")
_NOT_INLINE = re.compile(
    r"</?(?!(?:br|b|i|em|strong|code|a|sup|sub|s|del|strike|span|p|div|li)\b)[a-z][^<>]*>", re.I
)
"""Tags that have no place in a line of text, and would swallow what is behind them."""
_SWALLOWING = re.compile(
    r"</?(?:script|style|title|textarea|xmp|iframe|noscript|noembed|noframes|plaintext)\b[^>]*>",
    re.I,
)


def _inline_tag(_: object, tokens: Sequence[Any], at: int, *_others: object) -> str:
    return _NOT_INLINE.sub("<br>", tokens[at].content)


def _block_tags(_: object, tokens: Sequence[Any], at: int, *_others: object) -> str:
    return _SWALLOWING.sub("", tokens[at].content)


_BLOCKS = MarkdownIt("commonmark", {"breaks": True}).use(footnote_plugin)
_BLOCKS.disable(["footnote_ref", "footnote_inline", "footnote_tail", "code"])
_BLOCKS.add_render_rule("html_block", _block_tags)
_INLINE = MarkdownIt("commonmark")
for _parser in (_BLOCKS, _INLINE):
    _parser.add_render_rule("html_inline", _inline_tag)


def recognizes(text: str) -> bool:
    """Any text is Markdown."""
    return True


def page(text: str) -> ParsedPage:
    """What a Markdown text holds."""
    lines = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text).split("\n")
    end = lines.index("---", 1) if lines[0].rstrip() == "---" and "---" in lines[1:] else -1
    scanner = _Scanner(lines, made=[""] * (end + 1))
    scanner.scan()
    made = []
    for token in _BLOCKS.parse("\n".join(scanner.made)):
        if token.type == "heading_open" and token.map:
            token.attrSet("data-line", str(token.map[0] + 1))
        if token.type == "footnote_reference_open":
            label = escape(str(token.meta["label"]))
            made.append(f'<aside class="footnote"><span class="label">[{label}]</span>')
        elif token.type == "footnote_reference_close":
            made.append("</aside>")
        else:
            made.append(_BLOCKS.renderer.render([token], _BLOCKS.options, {}))
    front = "\n".join(lines[1:end]) if end > 0 else None
    return html.page("".join(made), front=front, unread=scanner.unread, quoted=scanner.quoted)


@dataclass
class _Scanner:
    """Replaces the tables and boxes of a text by HTML, line for line."""

    lines: Sequence[str]
    made: list[str]
    unread: list[Unread] = field(default_factory=list)
    quoted: list[Row] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    """The fences of the boxes that are open."""

    def scan(self) -> None:
        """Read the text to its end."""
        while (at := len(self.made)) < len(self.lines):
            line = _QUOTE.sub("", self.lines[at])
            bare = line.strip()
            if fence := _FENCE.fullmatch(line):
                self._fence(fence)
            elif self._is_table(at):
                self._table()
            elif bare.startswith("|") and len(_cells(bare)) >= _FEWEST_CELLS:
                self._left_out(CUT_OFF, 1)
            elif _MKDOCS_TAB.match(line):
                below = range(at + 1, len(self.lines))
                ends = (n for n in below if self.lines[n].strip() and self.lines[n][0] not in " \t")
                self._left_out(_NO_LABEL, next(ends, len(self.lines)) - at)
            elif bare.startswith("<") and bare.endswith(">"):
                self._put(re.sub(r"<(table|tr)\b", rf'<\1 data-line="{at + 1}"', bare))
            else:
                self.made.append(line)

    def _put(self, markup: str, count: int = 1) -> None:
        """HTML in place of some lines; behind a comment it is a block, whatever its tags are."""
        self.made += [f"<!---->{markup}", *[""] * (count - 1)]

    def _left_out(self, why: tuple[str, str], count: int) -> None:
        self.unread.append(Unread(why[0], len(self.made) + 1, why[1], rejected=True))
        self._put("", count)

    def _fence(self, found: re.Match[str]) -> None:
        """The start of a box or of a block of code; or the end of a box and of those inside."""
        fence, name, label = found["fence"], found["name"], found["label"]
        ends = [at for at, one in enumerate(self.open) if fence.startswith(one)]
        if name in _TABLES or (
            fence[0] != ":" and name not in _BOXES and (name or label or not ends)
        ):
            self._code(fence, name)
        elif (name or label) and len(self.open) < _MOST_BOXES:
            self.open.append(fence)
            label = "" if name in _NOTES else escape(label)
            self._put(f'<div class="box" data-label="{label}">')
        else:
            count = len(self.open) - ends[-1] if ends else 0
            del self.open[len(self.open) - count :]
            self._put("</div>" * count)

    def _code(self, fence: str, name: str | None) -> None:
        """A block of code, or a table that is a directive: left out, with what it may hold."""
        start = end = len(self.made) + 1
        while end < len(self.lines):
            bare = _QUOTE.sub("", self.lines[end]).strip()
            end += 1
            if bare.startswith(fence) and not bare.strip("`~:"):
                break
        if name in _TABLES:
            remedy = "write a table with pipes, or ingest the built page"
            self.unread.append(Unread(f"the {{{name}}} is not read", start, remedy))
        inside = range(start, end - 1)
        self.quoted += [_row(self.lines[at], at + 1) for at in inside if self._is_table(at)]
        self._put("", end - start + 1)

    def _is_table(self, at: int) -> bool:
        below = _QUOTE.sub("", self.lines[at + 1]) if at + 1 < len(self.lines) else ""
        return bool(_PIPE.search(self.lines[at]) and _RULE.fullmatch(below))

    def _table(self) -> None:
        start, end = len(self.made), len(self.made) + 2
        while end < len(self.lines) and _PIPE.search(self.lines[end]) and not self._is_table(end):
            end += 1
        rows = [
            _row(_QUOTE.sub("", self.lines[at]), at + 1) for at in (start, *range(start + 2, end))
        ]
        self._put(html_table(rows), end - start)


def _row(line: str, number: int) -> Row:
    """A row of a table with pipes; the text of each cell is HTML."""
    return Row(number, tuple(Cell(raw, _inline(raw)) for raw in _cells(line)))


def _cells(line: str) -> list[str]:
    bare = re.sub(r"^\s*\|?|(?<!\\)\|\s*$", "", line)
    return [cell.strip() for cell in _PIPE.split(bare)]


def _inline(source: str) -> str:
    return source if PLAIN.fullmatch(source) else _INLINE.renderInline(source.replace("\\|", "|"))
