"""Reads HTML: the tables of a page, each with the headings, labels and lines that hold for it.

Markdown, reStructuredText and copied text become HTML first, so this is the one reader of tables.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PreformattedString

from perfdb.pages.base import MARKED, Cell, Grid, Line, ParsedPage, Row, Unread, without_marks

_DOCUMENT = re.compile(
    r"\s*(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.DOTALL
)
_FRAGMENT = re.compile(r"\s*<(?:table|div|section|article|main)\b", re.I)
_MARKDOWN = re.compile(r"^(?:#{1,6} |```|:::|\|)", re.MULTILINE)
_BREAK: Final = "\0"
"""A line break within the text of an element; no page has this character."""
_SILENT: Final = frozenset(
    {"head", "script", "style", "template", "noscript", "svg", "button", "nav", "footer",
     "input", "select", "textarea"}
)  # fmt: skip
"""Elements that are tools, or ways through the site."""
_SILENT_CLASSES: Final = frozenset(
    {"headerlink", "hash-link", "anchor-link", "sr-only", "visually-hidden", "footnote-backref",
     "admonition-title"}
)  # fmt: skip
_NOTHING: Final = "template"
"""The name of an element that was emptied, which says nothing."""
_BLOCKS: Final = frozenset(
    {"p", "div", "section", "article", "main", "ul", "ol", "li", "dl", "dt", "dd", "blockquote",
     "details", "figure", "figcaption", "aside", "header", "hr", "body", "table"}
)  # fmt: skip
_BOXES: Final = frozenset({"details", "tab", "tabitem", "accordion", "note", "tip", "warning"})
"""Elements of HTML and of MDX: what is stated inside holds only inside."""
_BOX_CLASSES: Final = frozenset({"sd-tab-content", "admonition", "box"})
_NO_LABEL: Final = ("the tab is not read: its label is not known", "put its tables below headings")
_NOTE = re.compile(r"Note\s*:\s*(.+)", re.IGNORECASE | re.DOTALL)
_BARE_TASK = re.compile(
    r"(?:pre-?training|(?:lora\s+|full\s+|supervised\s+)?fine-?tuning|sft|lora)"
    r"\s*(?:\([^()]*\))?\s*(?:performance|results|throughput)?:?",
    re.IGNORECASE,
)
"""A line that is the title of a section, on a page copied without its markup."""
_TASK_LEVEL: Final = 2
_DEEPEST: Final = 100
MOST_TABLES: Final = 1000
"""Of a page: each is read with all that is above it, and may complete each other one."""
_TOO_MANY: Final = (
    f"the table is not read: it is below {MOST_TABLES:,} others", "make it several pages"
)  # fmt: skip
_CELLS: Final = ("td", "th")
_NEAR: Final = 20
"""How far before a tab its label is looked for: sphinx-design puts it right before."""


class _Tree(BeautifulSoup):
    """Tags far deeper than a page has are left out: for each, bs4 looks at all that hold it."""

    def reset(self) -> None:
        self._left_out = Counter[str]()
        super().reset()

    def handle_starttag(self, name: str, *of: Any, **named: Any) -> Tag | None:
        if len(self.tagStack) > 2 * _DEEPEST:
            self._left_out[name] += 1
            return None
        tag = super().handle_starttag(name, *of, **named)
        if tag is None or not tag.can_be_empty_element:
            return tag
        # A <br> that bs4 is left to close is in a list through which it looks at each end tag.
        super().handle_endtag(name)
        return None

    def handle_endtag(self, name: str, nsprefix: str | None = None) -> None:
        if not self._left_out[name]:
            return super().handle_endtag(name, nsprefix)
        self._left_out[name] -= 1
        return None

    def endData(self, containerClass: type[NavigableString] | None = None) -> None:
        """Comments and declarations are left out: to extract one, bs4 looks at all its siblings."""
        if containerClass and issubclass(containerClass, PreformattedString):
            self.current_data = []
        super().endData(containerClass)


def recognizes(text: str) -> bool:
    """Whether a text is an HTML document, or a piece of one with a table."""
    is_fragment = _FRAGMENT.match(text) and not _MARKDOWN.search(text)
    return bool(_DOCUMENT.match(text) or is_fragment)


def page(
    text: str,
    *,
    front: str | None = None,
    unread: Sequence[Unread] = (),
    quoted: Sequence[Row] = (),
) -> ParsedPage:
    """What a page in HTML holds; of one that was in another markup, what was read before.

    An attribute `data-line` has the line of the source, `data-raw` the source of a cell.
    """
    tree, footnotes = _simplified(text)
    reader = _Reader(unread)
    reader.read(_main(tree))
    reader.end_line()
    return ParsedPage(
        *reader.title,
        opening="\n".join(reader.lines[: reader.opening]),
        text="\n".join(reader.lines),
        grids=reader.grids,
        unread=reader.unread,
        footnotes=footnotes,
        front=front,
        quoted=quoted,
    )


def _main(tree: Tag) -> Tag:
    """The element with the content of a page; all of it where none is marked, or has a table."""
    tags = [one for one in tree.descendants if isinstance(one, Tag)]
    for found in (
        next((one for one in tags if one.name == "main"), None),
        next((one for one in tags if one.get("role") == "main"), None),
        next((one for one in tags if one.name == "article"), None),
    ):
        if found is not None:
            return found if found.find("table") else tree
    return tree


def _simplified(text: str) -> tuple[BeautifulSoup, dict[str, str]]:
    """The tree with what a reader sees, and the texts of the footnotes by their marks.

    Marks of footnotes are `[^1]`, withdrawn text is `~~text~~`. docutils writes a footnote as a
    label and a text.
    """
    tree = _Tree(text + "\n", "html.parser")
    tags = _tags(tree)
    for tag in tags:
        if _is_silent(tag):
            _empty(tag)
    for tag in tags:
        _rewrite(tag)
    footnotes = {}
    for label in tree.find_all(class_="label"):
        if holder := label.find_parent(class_="footnote"):
            mark = re.sub(r"[\[\]\s]", "", label.get_text())
            _empty(label)
            footnotes[mark] = " ".join(holder.get_text().replace(_BREAK, " ").split())
            _empty(holder)
    return tree, footnotes


def _empty(tag: Tag) -> None:
    """Leave nothing of an element; to take it out, bs4 would look at all its siblings."""
    tag.clear()
    tag.name, tag.attrs = _NOTHING, {}


def _tags(tree: Tag) -> list[Tag]:
    """Every element of a tree; what is too deep for a page is taken out."""
    found: list[Tag] = []
    level = [one for one in tree.contents if isinstance(one, Tag)]
    for depth in range(_DEEPEST):
        found += level
        if depth == _DEEPEST - 1:
            for tag in level:
                tag.clear()
        level = [node for tag in level for node in tag.contents if isinstance(node, Tag)]
    return found


def _is_silent(tag: Tag) -> bool:
    """Whether a reader sees nothing of an element."""
    if tag.name in _SILENT or _classes(tag) & _SILENT_CLASSES or tag.get("role") == "navigation":
        return True
    hidden = tag.has_attr("hidden") or "display:none" in str(tag.get("style", "")).replace(" ", "")
    return hidden and tag.get("role") != "tabpanel"


def _rewrite(tag: Tag) -> None:
    """Put characters in place of tags that mean something in a line of text."""
    is_mark = tag.name == "sup" or tag.get("role") == "doc-noteref"
    if is_mark or "footnote-reference" in _classes(tag):
        mark = re.sub(r"[\[\]\s]", "", tag.get_text())[:40]
        tag.string = f"[^{mark}]" if mark else ""
    elif tag.name in ("s", "del", "strike", "sub"):
        tag.insert(0, "~~")
        tag.append("~~")
    elif tag.name in ("br", "p", "div", "li"):
        tag.insert(0, _BREAK)


class _Reader:
    """Walks a tree from its start to its end."""

    def __init__(self, unread: Sequence[Unread]) -> None:
        self.grids: list[Grid] = []
        self.unread = list(unread)
        self.lines: list[str] = []
        self.title = ("", 0)
        self.num_headings = 0
        self.opening: int | None = None
        self.scopes: list[tuple[int, list[Line]]] = [(0, [])]
        """The open sections: the level of each, and its lines."""
        self.words: list[str] = []
        self.num_items = 0
        self.is_below = False
        """Whether only notes were read since the last table."""

    def read(self, root: Tag, depth: int = 0) -> None:
        """Everything below an element."""
        for node in root.contents if depth < _DEEPEST else ():
            if isinstance(node, Tag):
                self._element(node, depth + 1)
                continue
            first, *others = str(node).split(_BREAK)
            self.words.append(first)
            for text in others:
                self.end_line()
                self.words.append(text)

    def _element(self, tag: Tag, depth: int) -> None:
        is_heading, label = re.fullmatch("h[1-6]", tag.name), _label(tag)
        is_block = is_heading or tag.name in _BLOCKS or label is not None
        if is_block:
            self.end_line()
        if is_heading:
            self._heading(int(tag.name[1]), _text(tag), _line(tag))
        elif tag.name == "table":
            self._table(tag)
        elif tag.get("role") == "tabpanel" or "tabbed-block" in _classes(tag):
            self.unread.append(Unread(_NO_LABEL[0], _line(tag), _NO_LABEL[1], rejected=True))
        elif "system-message" in _classes(tag):
            self._message(tag)
        elif tag.name not in ("summary", "label", "pre"):
            self._inside(tag, depth, label)
        if is_block:
            self.end_line()

    def _inside(self, tag: Tag, depth: int, label: str | None) -> None:
        """What is in an element; what is stated in a box ends with it."""
        outer = self.scopes
        if label is not None:
            self.scopes = [(0, [*self._above(), Line(label, is_title=True)])]
        self.num_items += tag.name == "li"
        self.read(tag, depth)
        if label is not None or tag.name == "li":
            self.end_line()
        self.num_items -= tag.name == "li"
        self.scopes = self.scopes if label is None else outer

    def _above(self) -> list[Line]:
        return [line for _, lines in self.scopes for line in lines]

    def _heading(self, level: int, text: str, line: int) -> None:
        self.num_headings += 1
        if self.num_headings == 1:
            self.title = text, line
        elif self.opening is None:
            self.opening = len(self.lines)
        self._section(level, text)

    def _section(self, level: int, text: str) -> None:
        """Start a section: those of the same level and below end."""
        self.is_below = False
        while self.scopes[-1][0] >= level:
            self.scopes.pop()
        self.scopes.append((level, [Line(text, is_title=True)]))

    def end_line(self) -> None:
        """End the line of text that was begun."""
        text, listed = " ".join("".join(self.words).split()), self.num_items > 0
        self.words = []
        if not text:
            return
        if self.is_below and (note := _NOTE.fullmatch(text)):
            self.grids[-1].notes.append(without_marks(note[1]))
            return
        self.is_below = False
        self.lines.append(text)
        if not listed and _BARE_TASK.fullmatch(text):
            self._section(_TASK_LEVEL, text)
        else:
            self.scopes[-1][1].append(Line(text, listed=listed))

    def _message(self, tag: Tag) -> None:
        """A message of docutils on a table that it leaves out, be it in a directive."""
        head, *message = (" ".join(_text(one).split()) for one in tag.find_all("p"))
        found = re.search(r"(\w+)/\d \(.*line (\d+)\)", head)
        if found and re.search(r"[Tt]able|={3}|\+--", tag.get_text()):
            remedy = "write its rows here, or ingest the built page"
            text = f"the table is not read: {' '.join(message)}"
            self.unread.append(Unread(text, int(found[2]), remedy, found[1] != "WARNING"))

    def _table(self, table: Tag) -> None:
        """A table; tables in its cells are not read."""
        rows = [row for row in _below(table, ("tr",)) if row.find_parent("table") is table]
        if rows and len(self.grids) == MOST_TABLES:
            self.unread.append(Unread(_TOO_MANY[0], _line(table), _TOO_MANY[1], rejected=True))
        elif rows and (why := _unreadable(rows)):
            message = f"the table is not read: {why[0]}"
            self.unread.append(Unread(message, _line(table), why[1], rejected=True))
        elif rows:
            above = self._above()
            for caption in _below(table, ("caption",))[:1]:
                above.append(Line(_text(caption), is_title=True))
            header, *others = map(_row, rows)
            filled = tuple(row for row in others if row.cells)
            self.grids.append(Grid(header, filled, tuple(above)))
            self.is_below = True
            self.opening = len(self.lines) if self.opening is None else self.opening


def _below(tag: Tag, names: Sequence[str]) -> list[Tag]:
    """The elements below another one that have one of the names; find_all takes ten times that."""
    return [one for one in tag.descendants if isinstance(one, Tag) and one.name in names]


def _label(tag: Tag) -> str | None:
    """The label of a box, '' where it has none; None for other elements."""
    classes = _classes(tag)
    if tag.name not in _BOXES and not classes & _BOX_CLASSES:
        return None
    is_tab = "sd-tab-content" in classes
    near = islice(tag.previous_siblings, _NEAR) if is_tab else tag.contents
    name = "label" if is_tab else "summary"
    if found := next((one for one in near if isinstance(one, Tag) and one.name == name), None):
        return _text(found)
    label = str(tag.get("data-label") or tag.get("label") or tag.get("title") or "")
    return label.strip("{}\"'")


def _unreadable(rows: Sequence[Tag]) -> tuple[str, str] | None:
    """Why a table cannot be read, and what to do."""
    cells = [cell for row in rows for cell in _below(row, _CELLS)]
    if any(one.parent and one.parent.name in _CELLS for one in cells):
        return "its cells have no end tags", "write </td> and </tr>"
    titles = _below(rows[0], _CELLS)
    if any(str(one.get(name, "1")) > "1" for one in titles for name in ("colspan", "rowspan")):
        return "its titles are across several rows or columns", "give each column a title"
    return None


def _row(row: Tag) -> Row:
    cells = []
    marked = iter([one for one in row.contents if isinstance(one, Tag) and one.name in _CELLS])
    plain = row.get("data-cells")
    for raw in () if plain is None else str(plain).split("|"):
        if raw != MARKED:
            cells.append(Cell(raw, " ".join(raw.split())))
        elif cell := next(marked, None):
            cells.append(Cell(str(cell.get("data-raw", "")), _text(cell)))
    for cell in marked:
        text = _text(cell)
        cells.append(Cell(str(cell.get("data-raw", text.replace("\n", " "))), text))
    return Row(_line(row), tuple(cells))


def _line(tag: Tag) -> int:
    return int(str(tag.get("data-line") or tag.sourceline or 1))


def _classes(tag: Tag) -> frozenset[str]:
    value = tag.get("class") or ()
    return frozenset(value.split() if isinstance(value, str) else value)


def _text(tag: Tag) -> str:
    """The words of an element, with a newline for each line break."""
    lines = (" ".join(line.split()) for line in tag.get_text().split(_BREAK))
    return "\n".join(filter(None, lines))
