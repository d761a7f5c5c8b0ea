"""HTML: the tables of a built page, and the words of a piece of HTML in Markdown."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement, PreformattedString

from perfdb.pages import base

_DOCUMENT = re.compile(
    r"\s*(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.DOTALL
)
_FRAGMENT = re.compile(r"\s*<(?:table|div|section|article|main)\b", re.I)
_HEADING = re.compile(r"h([1-6])")
_SILENT: Final = (
    "head", "script", "style", "template", "noscript", "svg", "button", "nav", "footer", "pre",
    "input", "select", "textarea",
)  # fmt: skip
"""Elements that are tools, ways through the site, or quoted text."""
_SILENT_CLASSES: Final = frozenset(
    {"headerlink", "hash-link", "anchor-link", "sr-only", "visually-hidden", "footnote-backref",
     "admonition-title"}
)  # fmt: skip
_BLOCKS: Final = frozenset(
    {"p", "div", "section", "article", "main", "ul", "ol", "li", "dl", "dt", "dd", "blockquote",
     "details", "figure", "figcaption", "aside", "header", "hr", "body", "br"}
)  # fmt: skip
_PANELS: Final = ("sd-tab-content", "tabbed-block", "tab-content")
"""Classes of the panels of tabs: sphinx-design, Material for MkDocs, sphinx-inline-tabs."""
_DEEPEST: Final = 100


def recognizes(text: str) -> bool:
    """Whether a text is an HTML document, or a piece of one with a table."""
    has_markdown = re.search(r"^(?:#{1,6} |```|:::|\|)", text, re.MULTILINE)
    return bool(_DOCUMENT.match(text) or (_FRAGMENT.match(text) and not has_markdown))


def page(text: str) -> base.ParsedPage:
    """The pieces of an HTML text. It has no front matter."""
    footnotes: dict[str, str] = {}
    return base.ParsedPage(None, tuple(pieces(text, 1, footnotes)), footnotes)


def pieces(text: str, first: int, footnotes: dict[str, str]) -> list[base.Piece]:
    """The pieces of HTML whose first line is `first` of its page; adds to the footnotes."""
    tree = _parsed(text)
    footnotes |= _footnotes(tree)
    main = tree.find("main") or tree.find(role="main") or tree.find("article")
    reader = _Reader(_labels(tree), first - 1)
    reader.read(main if isinstance(main, Tag) and main.find("table") else tree)
    reader.end_line()
    return reader.pieces


def words(markup: str) -> str:
    """The words of a piece of HTML, with a newline for each line break."""
    return _text_of(_parsed(markup))


def _text_of(root: Tag) -> str:
    """The words of an element: footnote marks as `[^1]`, withdrawn text as `~~text~~`."""
    texts = base.joined(filter(None, _runs(root, 0))).split("\n")
    return "\n".join(filter(None, (" ".join(text.split()) for text in texts)))


def _parsed(text: str) -> BeautifulSoup:
    return BeautifulSoup(text + "\n", "html.parser")


def _is_text(node: PageElement) -> bool:
    return isinstance(node, NavigableString) and not isinstance(node, PreformattedString)


def _runs(root: Tag, depth: int) -> Iterator[str]:
    for node in root.contents if depth < _DEEPEST else ():
        if not isinstance(node, Tag):
            yield str(node).replace("\n", " ") if _is_text(node) else ""
        elif node.name in ("br", "p", "div", "li"):
            yield from ("\n", *_runs(node, depth + 1))
        elif node.name in ("s", "del", "strike"):
            yield f"~~{_text_of(node)}~~"
        elif mark := _mark(node):
            yield f"[^{mark}]"
        elif not _is_silent(node) and node.name != "table":
            yield from _runs(node, depth + 1)


def _classes(tag: Tag) -> frozenset[str]:
    value = tag.get("class") or ()
    return frozenset(value.split() if isinstance(value, str) else value)


def _is_silent(tag: Tag) -> bool:
    """Whether a reader sees nothing of an element; the panel of a closed tab can be opened."""
    if tag.name in _SILENT or _classes(tag) & _SILENT_CLASSES or tag.get("role") == "navigation":
        return True
    hidden = tag.has_attr("hidden") or "display:none" in str(tag.get("style", "")).replace(" ", "")
    return hidden and tag.get("role") != "tabpanel"


def _mark(tag: Tag) -> str | None:
    """The mark of a reference to a footnote; None for other elements."""
    if tag.name != "sup" and not _classes(tag) & {"footnote-reference", "footnote-ref"}:
        return None
    return re.sub(r"[\[\]\s]", "", tag.get_text())[:40] or None


def _footnotes(tree: Tag) -> dict[str, str]:
    """The texts of footnotes: of docutils a label and a text, of Markdown an item of a list."""
    found: dict[str, str] = {}
    for label in tree.select(".footnote .label"):
        holder = label.find_parent(class_="footnote")
        text = _text_of(holder) if holder else ""
        mark = re.sub(r"[\[\]\s]", "", label.get_text())
        found[mark] = text.removeprefix(f"[{mark}]").strip()
    for items in tree.select(".footnote ol, .footnotes ol, [data-footnotes] ol"):
        for number, item in enumerate(items.find_all("li", recursive=False), start=1):
            found[str(number)] = _text_of(item).rstrip(" \u21a9\ufe0e↑^")
    return found


def _labels(tree: Tag) -> dict[int, str]:
    """The label of each panel of tabs, by the id() of the panel."""
    found: dict[int, str] = {}
    for label in tree.find_all("label"):
        panel = label.find_next_sibling()
        if isinstance(panel, Tag) and _classes(panel) & {*_PANELS}:
            found[id(panel)] = _text_of(label)
    for names in tree.select(".tabbed-labels, [role=tablist]"):
        labels = names.find_all(["label", "li", "button", "a"], recursive=False)
        behind = names.find_next_sibling()
        panels = behind.select(":scope > .tabbed-block, :scope > [role=tabpanel]") if behind else []
        found |= {id(p): _text_of(one) for p, one in zip(panels, labels, strict=False)}
    for tab in tree.select("[role=tab][aria-controls]"):
        panel = tree.find(id=str(tab["aria-controls"]))
        if isinstance(panel, Tag):
            found[id(panel)] = _text_of(tab)
    return found


@dataclass
class _Reader:
    """Reads an element from its start to its end; `above`: lines of the page above the text."""

    labels: dict[int, str]
    above: int
    pieces: list[base.Piece] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    line: int = 1
    items: int = 0

    def read(self, root: Tag, depth: int = 0) -> None:
        """Everything below an element; nothing below what is silent."""
        for node in root.contents:
            if not isinstance(node, Tag):
                self.words += [str(node)] if _is_text(node) else []
            elif mark := _mark(node):
                self.words.append(f"[^{mark}]")
            elif not _is_silent(node) and "footnote" not in _classes(node) and depth < _DEEPEST:
                self.element(node, depth)

    def element(self, tag: Tag, depth: int) -> None:
        line = self.above + (tag.sourceline or 1)
        if tag.name in _BLOCKS or tag.name == "table" or _HEADING.fullmatch(tag.name):
            self.end_line()
            self.line = line
        if found := _HEADING.fullmatch(tag.name):
            self.pieces.append(base.Heading(int(found[1]), _text_of(tag), line))
        elif tag.name == "table":
            self.pieces += _table(tag, self.above)
        elif tag.name in ("summary", "label") or tag.get("role") in ("tab", "tablist"):
            return
        else:
            label = self.label(tag)
            self.pieces += [] if label is None else [base.BoxStart(label, line)]
            self.items += tag.name == "li"
            self.read(tag, depth + 1)
            if tag.name in _BLOCKS:
                self.end_line()
            self.items -= tag.name == "li"
            self.pieces += [] if label is None else [base.BoxEnd()]

    def label(self, tag: Tag) -> str | None:
        """The label of a box: a tab, details, an admonition; None for other elements."""
        if id(tag) in self.labels:
            return self.labels[id(tag)]
        if tag.name == "details":
            summary = tag.find("summary", recursive=False)
            return _text_of(summary) if isinstance(summary, Tag) else ""
        return "" if _classes(tag) & {"admonition", "theme-admonition", "alert"} else None

    def end_line(self) -> None:
        """End the line of text that was begun."""
        text = " ".join("".join(self.words).split())
        if text:
            self.pieces.append(base.Line(text, self.line, self.items > 0))
        self.words = []


def _table(table: Tag, above: int) -> Iterator[base.Piece]:
    """A table, in a box of its caption. Tables in its cells are not read."""
    rows = [
        row
        for row in table.find_all("tr")
        if row.find_parent("table") is table and not _is_silent(row)
    ]
    if not rows:
        return
    line = above + (table.sourceline or 1)
    if why := _unreadable(table, rows[0]):
        yield base.Unread(f"the table is not read: {why[0]}", line, why[1], rejected=True)
        return
    caption = table.find("caption")
    yield base.BoxStart(_text_of(caption) if isinstance(caption, Tag) else "", line)
    header, *others = (_row(row, above) for row in rows)
    yield base.Grid(header, tuple(row for row in others if row.cells))
    yield base.BoxEnd()


def _unreadable(table: Tag, header: Tag) -> tuple[str, str] | None:
    """Why a table cannot be read, and what to do."""
    if table.select_one("td > td, th > th, tr > tr"):
        return "its cells have no end tags", "write </td> and </tr>"
    if header.find(colspan=re.compile("[2-9]")) or header.find(rowspan=re.compile("[2-9]")):
        return "its titles are across several rows or columns", "give each column a title"
    return None


def _row(row: Tag, above: int) -> base.Row:
    cells = row.find_all(["td", "th"], recursive=False)
    made = (base.Cell(text.replace("\n", " "), text) for text in map(_text_of, cells))
    return base.Row(above + (row.sourceline or 1), tuple(made))
