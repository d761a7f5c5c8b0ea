"""HTML between the lines of Markdown: whole tables, and dropdowns that hold Markdown."""

import re
from collections.abc import Iterator, Sequence

from perfdb.pages import html
from perfdb.pages.base import Leave, Piece

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DETAILS = re.compile(r"<(/?)details\b", re.IGNORECASE)
_TABLE = re.compile(r"<(/?)table\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")


class HtmlBlocks:
    """The blocks of HTML in the lines of a Markdown text, which are read from top to bottom."""

    def __init__(self, lines: Sequence[str], footnotes: dict[str, str]) -> None:
        """Nothing is read yet, and no dropdown is open; footnotes found are added to those."""
        self._lines = lines
        self._footnotes = footnotes
        self._opened = 0
        ends = (number for number, line in enumerate(lines) if "</table" in line.lower())
        self._last_end = max(ends, default=-1)

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
        text = _COMMENT.sub(_blank, "\n".join(self._lines[start:end]))
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

    def close(self) -> Iterator[Piece]:
        """Leave the dropdowns that are still open."""
        yield from (Leave() for _ in range(self._opened))


def _blank(comment: re.Match[str]) -> str:
    return "\n" * comment[0].count("\n")
