"""HTML between the lines of Markdown: whole tables, and dropdowns that hold Markdown."""

import re
from collections.abc import Iterator, Sequence

from perfdb.pages import html, html_tree
from perfdb.pages.base import Leave, Piece

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DETAILS = re.compile(r"<(/?)details\b", re.IGNORECASE)
_TABLE = re.compile(r"<(/?)table\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_NAMED = re.compile(r"<(?P<end>/?)(?P<name>[a-z][\w-]*)[^<>]*?(?P<alone>/?)>", re.IGNORECASE)


class HtmlBlocks:
    """The blocks of HTML in the lines of a Markdown text, which are read from top to bottom."""

    def __init__(self, lines: Sequence[str], footnotes: dict[str, str]) -> None:
        """Nothing is read yet, and no dropdown is open; footnotes found are added to those."""
        self._lines = lines
        self._footnotes = footnotes
        self._opened = 0
        self._hiding: list[str] = []
        ends = (number for number, line in enumerate(lines) if "</table" in line.lower())
        self._last_end = max(ends, default=-1)

    @property
    def hidden(self) -> bool:
        """Whether what follows stands in an element that no reader sees."""
        return bool(self._hiding)

    def end(self, start: int, end: int) -> int:
        """Where a block from `start` to `end` ends: a table goes on across blank lines."""
        tables = _TABLE.findall("\n".join(self._lines[start:end]))
        if tables.count("") > tables.count("/"):
            for number in range(end, self._last_end + 1):
                if "</table" in self._lines[number].lower():
                    return number + 1
        return end

    def read(self, start: int, end: int, first: int) -> Iterator[Piece]:
        """The pieces of a block whose first line is line `first` of the page."""
        block = "\n".join(self._lines[start:end])
        text = self._seen(_COMMENT.sub(lambda found: _blank(found[0]), block))
        opening = closing = 0
        for tag in _DETAILS.finditer(text):
            if not tag[1]:
                opening += 1
            elif opening:
                opening -= 1
            else:
                closing += 1
        closing = min(closing, self._opened)
        self._opened += opening - closing
        yield from (Leave() for _ in range(closing))
        if opening or _TAG.sub("", text).strip():
            pieces = html.pieces(text, first, self._footnotes)
            yield from pieces[: len(pieces) - opening]

    def _seen(self, text: str) -> str:
        """A text with blank lines in place of what stands in elements that no reader sees."""
        kept: list[str] = []
        at = 0
        for tag in _NAMED.finditer(text):
            was_hidden = self.hidden
            self._take(tag)
            if self.hidden != was_hidden:
                kept.append(_blank(text[at : tag.end()]) if was_hidden else text[at : tag.start()])
                at = tag.end() if was_hidden else tag.start()
        return "".join([*kept, _blank(text[at:]) if self.hidden else text[at:]])

    def _take(self, tag: re.Match[str]) -> None:
        """Open or end an element that hides what is in it; others of its name in it have ends."""
        name = tag["name"].lower()
        if tag["end"]:
            if name in self._hiding:
                self._hiding.pop()
        elif name in self._hiding or (not self.hidden and html_tree.hides(tag[0])):
            self._hiding += [] if tag["alone"] else [name]

    def close(self) -> Iterator[Piece]:
        """Leave the dropdowns that are still open."""
        yield from (Leave() for _ in range(self._opened))


def _blank(text: str) -> str:
    return "\n" * text.count("\n")
