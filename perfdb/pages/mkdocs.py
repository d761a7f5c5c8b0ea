"""Markdown with boxes of other site makers: those of MkDocs, and tabs of Hugo and GitBook.

The content of a tab, an admonition or details of MkDocs stands further in; a tab of the others
has an end.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Final

from perfdb.pages import markdown
from perfdb.pages.base import Enter, Leave, Page, Piece
from perfdb.pages.directives import NOTES
from perfdb.pages.markdown_text import words

NAME = "mkdocs"

_START = re.compile(
    r"(?:===[!+]*(?=[ \t]+[\"'])|(?:!!!|\?\?\?\+?)[ \t]+(?P<kind>[\w-]+)(?:[ \t]+[\w -]+)?)"
    r"(?:[ \t]+(?P<quote>[\"'])(?P<label>.*)(?P=quote))?[ \t]*"
)
"""`=== "DGX-H100"`, `!!! note "Title"`, `??? note`."""
_TAB = re.compile(
    r"\s*\{(?:\{[<%]|%)\s*(?:(?P<end>/\s*tab|endtab)|tab\b(?P<said>[^{}]*?))\s*(?:[>%]\}|%)\}\s*"
)
"""`{{< tab "DGX-H100" >}}` and `{{< /tab >}}`, `{% tab title="DGX-H100" %}` and `{% endtab %}`."""
_QUOTED = re.compile(r"""["']([^"']*)["']""")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,}|:{3,})")
_INDENT: Final = "    "
_LONGEST: Final = 500
"""Characters of a line that may begin a box."""
_DEEPEST: Final = 20
"""Boxes within boxes that are followed."""


def recognises(text: str) -> bool:
    """Whether a tab, an admonition or details begin outside of code, with content further in."""
    lines = text.split("\n")
    return any(_is_tab(lines[at]) or _content(lines, at) for at in _starts(lines))


def page(text: str) -> Page:
    """The pieces of such a text."""
    front, rest = markdown.without_front(text)
    footnotes: dict[str, str] = {}
    pieces = tuple(_Reader(footnotes).read(rest.split("\n"), 1))
    return Page(front, pieces, footnotes)


@dataclass
class _Reader:
    """Reads a text from box to box; what is between them is Markdown."""

    footnotes: dict[str, str] = field(default_factory=dict)
    depth: int = 0

    def read(self, lines: Sequence[str], first: int) -> Iterator[Piece]:
        """The pieces of lines, of which the first one is the page's line `first`."""
        at = 0
        for start in _starts(lines) if self.depth < _DEEPEST else ():
            content = [] if _is_tab(lines[start]) else _content(lines, start)
            if start >= at and content:
                yield from self._between(lines[at:start], first + at)
                yield from self._box(lines[start], content, first + start)
                at = start + 1 + len(content)
        yield from self._between(lines[at:], first + at)

    def _between(self, lines: Sequence[str], first: int) -> Iterator[Piece]:
        tabs = [at for at in _starts(lines) if _is_tab(lines[at])]
        opened = 0
        for start, end in pairwise((-1, *tabs, len(lines))):
            found = _TAB.fullmatch(lines[start]) if start >= 0 else None
            if found and not found["end"]:
                label = _QUOTED.search(found["said"])
                yield Enter(words(label[1]) if label else "", first + start)
                opened += 1
            elif found and opened:
                yield Leave()
                opened -= 1
            if any(line.strip() for line in lines[start + 1 : end]):
                text = "\n".join(lines[start + 1 : end])
                yield from markdown.pieces(text, first + start + 1, self.footnotes)
        yield from (Leave() for _ in range(opened))

    def _box(self, start: str, content: Sequence[str], line: int) -> Iterator[Piece]:
        found = _START.fullmatch(start)
        label = words(found["label"] or "") if found else ""
        kind = found["kind"] if found else None
        yield Enter(label, line, note=(kind or "").casefold() in NOTES)
        inner = _Reader(self.footnotes, self.depth + 1)
        yield from inner.read([text.removeprefix(_INDENT) for text in content], line + 1)
        yield Leave()


def _starts(lines: Sequence[str]) -> Iterator[int]:
    """Where boxes begin or end, outside of code and of directives between fences."""
    fence = ""
    for at, line in enumerate(lines):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and line.strip().startswith(fence) and not line.strip(" `~:"):
            fence = ""
        elif not fence and len(line) <= _LONGEST and (_START.fullmatch(line) or _is_tab(line)):
            yield at


def _is_tab(line: str) -> bool:
    return _TAB.fullmatch(line) is not None


def _content(lines: Sequence[str], start: int) -> list[str]:
    """The lines of a box: those further in, up to the first that is not."""
    below = (lines[at] for at in range(start + 1, len(lines)))
    own = list(takewhile(lambda line: not line.strip() or line.startswith(_INDENT), below))
    return own if any(line.strip() for line in own) else []
