"""HTML: the tables of a built page, as Sphinx, MkDocs, Docusaurus and people write them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bs4 import Tag
from bs4.element import PageElement

from perfdb.pages import directives, html_notes, html_tabs, html_tree, spans
from perfdb.pages.base import Cell, Enter, Heading, Leave, Line, Page, Piece
from perfdb.pages.spans import Spanned, SpannedRow

NAME = "html"

_DOCUMENT = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_FRAGMENT = re.compile(r"\s*<(?:[a-z]+|h[1-6])(?:\s[^<>]*)?>")
_MARKDOWN = re.compile(r"^(?:#{1,6} |```|~~~|:::|\||\s*\|?\s*:?-{2,}:?\s*\|)", re.MULTILINE)
_TABLE = re.compile(r"<table[\s>]", re.IGNORECASE)
_HEADING = re.compile(r"h([1-6])")
_NUMBERED = re.compile(r"\Atable\s+[0-9]+(?:\.[0-9]+)*\s*[.:]?\s+", re.IGNORECASE)
_BLOCKS: Final = frozenset(
    {"p", "div", "section", "article", "main", "ul", "ol", "li", "dl", "dt", "dd", "blockquote",
     "details", "summary", "table", "figure", "figcaption", "aside", "header", "hr", "body",
     "tr", "td", "th", "caption", "form", "fieldset", "address", "br"}
)  # fmt: skip
_BOX_CLASSES: Final = frozenset({"admonition", "alert", "theme-admonition", "callout"})
_DEEPEST: Final = 100
"""Boxes within boxes that are followed."""


def recognises(text: str) -> bool:
    """Whether a text is an HTML document, or a piece of one with a table and no Markdown."""
    if _DOCUMENT.match(text):
        return True
    return bool(_FRAGMENT.match(text) and _TABLE.search(text) and not _MARKDOWN.search(text))


def page(text: str) -> Page:
    """The pieces of an HTML text. It has no front matter."""
    footnotes: dict[str, str] = {}
    return Page(None, tuple(pieces(text, 1, footnotes)), footnotes)


def pieces(text: str, first: int, footnotes: dict[str, str]) -> Sequence[Piece]:
    """The pieces of a part of a page whose first line is `first`; footnotes are added to those."""
    tree = html_tree.parse(text, first)
    notes = html_notes.of(tree)
    footnotes |= {note.mark: note.text for note in notes}
    reader = _Reader(html_tabs.labels(tree), frozenset(id(note.holder) for note in notes))
    reader.read(_main(tree))
    return reader.pieces


def _main(tree: Tag) -> Tag:
    """The part of a page that is its own: not the way around the site."""
    for main in (tree.find("main"), tree.find(role="main"), tree.find("article")):
        if isinstance(main, Tag) and main.find("table"):
            return main
    return tree


@dataclass
class _Reader:
    """Reads an element from its start to its end. `labels` are those of tabs, by id()."""

    labels: Mapping[int, str]
    notes: frozenset[int]
    pieces: list[Piece] = field(default_factory=list)
    boxes: list[Tag] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    line: int = 1
    items: int = 0
    titled: bool = False

    def read(self, root: Tag) -> None:
        """Everything below an element; nothing below what is silent."""
        left: list[tuple[PageElement, bool]] = [(node, False) for node in reversed(root.contents)]
        while left:
            node, ended = left.pop()
            if not isinstance(node, Tag):
                if html_tree.is_text(node):
                    self.words.append(str(node))
            elif ended:
                self.end(node)
            elif not html_tree.is_silent(node) and id(node) not in self.notes and self.start(node):
                left.append((node, True))
                left.extend((child, False) for child in reversed(node.contents))
        self.flush()

    def start(self, tag: Tag) -> bool:
        """Take the start of an element; whether what stands inside is to be read too."""
        if tag.name in _BLOCKS or _HEADING.fullmatch(tag.name):
            self.flush(kept=_is_defined(tag))
            self.line, self.titled = html_tree.line(tag), _is_titled(tag)
        if heading := _HEADING.fullmatch(tag.name):
            self.pieces.append(Heading(int(heading[1]), html_tree.words(tag), html_tree.line(tag)))
            return False
        if tag.name == "table":
            self.pieces += _table(tag)
            return html_tree.has_table(tag)
        if tag.name == "summary" or _is_tab(tag) or "admonition-title" in html_tree.classes(tag):
            return False
        if (card := html_tabs.card_of(tag)) and self.labels.get(id(card)) == html_tree.words(tag):
            return False
        if mark := html_tree.mark(tag):
            self.words.append(mark)
            return False
        label = self.label(tag)
        if label is not None and len(self.boxes) < _DEEPEST:
            self.boxes.append(tag)
            note = bool(html_tree.classes(tag) & directives.NOTES)
            self.pieces.append(Enter(label, html_tree.line(tag), note=note))
        self.items += tag.name == "li"
        return True

    def end(self, tag: Tag) -> None:
        if tag.name in _BLOCKS:
            self.flush(kept=tag.name == "dt")
        self.items -= tag.name == "li"
        if self.boxes and self.boxes[-1] is tag:
            self.boxes.pop()
            self.pieces.append(Leave())

    def label(self, tag: Tag) -> str | None:
        """The label of a box: a tab, card, dropdown, admonition; None for other elements."""
        if id(tag) in self.labels:
            return self.labels[id(tag)]
        if tag.name == "details":
            summary = tag.find("summary", recursive=False)
            return html_tree.words(summary) if isinstance(summary, Tag) else ""
        return "" if html_tree.classes(tag) & _BOX_CLASSES or tag.name == "aside" else None

    def flush(self, *, kept: bool = False) -> None:
        """End the line of text that was begun; a term that ends with a colon waits for its text."""
        text = " ".join("".join(self.words).split())
        if kept and text.endswith(":"):
            self.words = [f"{text} "]
            return
        if text:
            self.pieces.append(Line(text, self.line, self.items > 0, titled=self.titled))
        self.words, self.titled = [], False


def _is_defined(tag: Tag) -> bool:
    """Whether the text of a term starts with an element."""
    inner = tag.parent if tag.name == "p" else tag
    return inner is not None and inner.name == "dd"


def _is_titled(tag: Tag) -> bool:
    """Whether it is a title below those of sections: in a card, a rubric, or all in bold."""
    if html_tabs.card_of(tag):
        return True
    if tag.name != "p" or "rubric" in html_tree.classes(tag):
        return tag.name == "p"
    inner = [one for one in tag.contents if isinstance(one, Tag) or str(one).strip(" \n:")]
    first = inner[0] if len(inner) == 1 else None
    return isinstance(first, Tag) and first.name in ("strong", "b")


def _is_tab(tag: Tag) -> bool:
    """Whether an element is the label of a tab: what it says holds in its panel alone."""
    return tag.name == "label" or html_tree.attribute(tag, "role") == "tab"


def _table(table: Tag) -> Iterator[Piece]:
    """A table with what its caption says; tables in its cells are tables of their own."""
    caption = table.find("caption", recursive=False)
    if isinstance(caption, Tag) and (text := html_tree.words(caption)):
        yield Enter(_NUMBERED.sub("", text), html_tree.line(caption))
        yield from spans.pieces(_rows(table))
        yield Leave()
    else:
        yield from spans.pieces(_rows(table))


def _rows(table: Tag) -> Iterator[SpannedRow]:
    """The rows of a table. A row or cell may lack its end: it ends where the next one starts."""
    found: list[tuple[Tag, bool, list[Spanned]]] = []
    in_head = False
    for node in html_tree.inside(table, leave_out=("table",)):
        if not isinstance(node, Tag):
            continue
        if node.name in ("thead", "tbody", "tfoot"):
            in_head = node.name == "thead"
        elif node.name == "tr":
            found.append((node, in_head and node.parent is not table, []))
        elif node.name in ("td", "th") and found:
            found[-1][2].append(_cell(node))
    yield from (SpannedRow(html_tree.line(row), tuple(cells), head) for row, head, cells in found)


def _cell(cell: Tag) -> Spanned:
    columns, rows = (_span(cell, name) for name in ("colspan", "rowspan"))
    both = Cell(html_tree.words(cell), html_tree.cell_words(cell))
    return Spanned(both, columns, rows, cell.name == "th")


def _span(cell: Tag, name: str) -> int:
    """How far a cell reaches; 0 rows are all that are left."""
    found = re.match(r"\s*([0-9]{1,9})", html_tree.attribute(cell, name))
    if not found:
        return 1
    return int(found[1]) or (10**9 if name == "rowspan" else 1)
