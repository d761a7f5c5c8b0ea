"""HTML as a tree that cannot hurt, and the words of its elements that a reader sees."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement, PreformattedString

from perfdb.pages import cells

_MARKUP = re.compile(
    r"""<!--.*?(?:-->|\Z)
      | <(?P<raw>script|style)\b[^<>]*>.*?(?:</(?P=raw)\s*>|\Z)
      | (?P<tag></?[a-z](?>[^<>"'=]+|=\s*"[^"]*"|=\s*'[^']*'|["'=])*+>)
      | <[!?][^<>]*>
      | <""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ENDS_PARAGRAPH = re.compile(
    r"<(?:address|article|aside|blockquote|details|div|dl|fieldset|figure|footer|form|h[1-6]|header"
    r"|hr|main|nav|ol|p|pre|section|table|ul)\b",
    re.IGNORECASE,
)
"""The starts that end a paragraph which has no end of its own; HTML lets it do without."""
_SILENT: Final = frozenset(
    {"head", "template", "noscript", "svg", "button", "select", "textarea", "dialog", "iframe",
     "object", "nav", "footer", "pre", "input"}
)  # fmt: skip
"""Elements whose text says nothing: tools, ways through the site, and quoted text."""
_SILENT_CLASSES: Final = frozenset(
    {"headerlink", "hash-link", "header-anchor", "anchor-link", "sr-only", "visually-hidden",
     "katex-mathml", "footnote-backref", "backrefs", "fn-backref", "caption-number"}
)  # fmt: skip
_SILENT_ROLES: Final = frozenset({"navigation", "search", "contentinfo", "doc-backlink"})
_NOT_DISPLAYED = re.compile(
    r"""display\s*:\s*["']?none|visibility\s*:\s*["']?hidden""", re.IGNORECASE
)
_WITHOUT_END: Final = frozenset(
    {"area", "br", "col", "embed", "hr", "img", "input", "link", "wbr", "head", "p", "li", "dt",
     "dd", "option", "thead", "tbody", "tfoot", "tr", "td", "th", "caption"}
)  # fmt: skip
"""Elements that have no end, or can do without."""
_LINE_THROUGH = re.compile(r"text-decoration[\w-]*\s*:[^;]*line-through", re.IGNORECASE)
_STRIKING_CLASSES: Final = frozenset({"strike", "strikethrough", "line-through"})
_STRUCK: Final = "~~"
"""Stands around what is struck out, as in Markdown."""
_NOTE_CLASSES: Final = frozenset({"footnote-reference", "footnote-ref", "citation-reference"})
_NEAR: Final = 12
_LONGEST_MARK: Final = 24
"""What is longer, or deeper, is a text and no mark."""
_MOST_WORDS: Final = 500
"""Nodes of an element that are read: elements may stand in each other without an end."""
_ROWS: Final = frozenset({"table", "thead", "tbody", "tfoot", "tr"})
_IN_TABLES: Final = (_ROWS - {"table"}) | {"td", "th", "caption"}


def parse(text: str, first: int = 1) -> BeautifulSoup:
    """The tree of a text whose first line is `first`; each element knows its line.

    What is no whole tag is text, and comments and scripts are left out beforehand: the parser of
    the standard library takes the square of their number to find that out. It does not know either
    that paragraphs may lack their end.
    """
    # Of one line alone that looks like a file's name Beautiful Soup would warn.
    tree = BeautifulSoup(_MARKUP.sub(_harmless, text) + "\n", "html.parser")
    tags = tree.find_all(True)
    for tag in tags:
        tag.sourceline = (tag.sourceline or 1) + first - 1
    for tag in list(_struck(tags)):
        tag.insert(0, _STRUCK)
        tag.append(_STRUCK)
    return tree


def _struck(tags: Iterable[Tag]) -> Iterator[Tag]:
    """The outermost elements that strike their text out; of rows and tables, each of the cells.

    Titles are struck out by themselves alone: without them nobody could tell whose rows are.
    """
    inside_struck: set[int] = set()
    for tag in tags:
        above = id(tag.parent) in inside_struck
        if above or _strikes(tag):
            inside_struck.add(id(tag))
            if tag.name == "td" or (not above and tag.name not in _ROWS):
                yield tag


def _strikes(tag: Tag) -> bool:
    style = attribute(tag, "style")
    by_style = _LINE_THROUGH.search(style) or classes(tag) & _STRIKING_CLASSES
    return tag.name in ("s", "del", "strike") or bool(by_style)


def _harmless(markup: re.Match[str]) -> str:
    if markup["tag"]:
        # A sign that is quoted to us may stand for itself to the parser of the standard library.
        tag = "<" + markup["tag"][1:].replace("<", "&lt;")
        return f"</p>{tag}" if _ENDS_PARAGRAPH.match(tag) else tag
    return "&lt;" if markup[0] == "<" else "\n" * markup[0].count("\n")


def line(tag: Tag) -> int:
    """The line an element starts on, counted from 1."""
    return tag.sourceline or 1


def attribute(tag: Tag, name: str) -> str:
    """The text of an attribute; empty where the element has none."""
    value = tag.get(name)
    return value if isinstance(value, str) else " ".join(value or ())


def classes(tag: Tag) -> frozenset[str]:
    """The classes of an element."""
    return frozenset(attribute(tag, "class").split())


def is_silent(tag: Tag) -> bool:
    """Whether a reader sees nothing of an element, or nothing that belongs to the text.

    The panel of a tab that is not open now is seen as soon as somebody opens it.
    """
    role = attribute(tag, "role")
    if tag.name in _SILENT or role in _SILENT_ROLES or classes(tag) & _SILENT_CLASSES:
        return True
    if role == "tabpanel":
        return False
    hidden = tag.has_attr("hidden") or attribute(tag, "aria-hidden") == "true"
    return hidden or bool(_NOT_DISPLAYED.search(attribute(tag, "style")))


@lru_cache(maxsize=1024)
def hides(start: str) -> bool:
    """Whether an element that starts so is silent and goes on, until it ends.

    In MDX a style is an object, which is no attribute of HTML.
    """
    tag = parse(start).find(True)
    if not isinstance(tag, Tag) or tag.name in _WITHOUT_END:
        return False
    return is_silent(tag) or bool(_NOT_DISPLAYED.search(start))


def is_text(node: PageElement) -> bool:
    """Whether a node is text, and not a comment or an instruction."""
    return isinstance(node, NavigableString) and not isinstance(node, PreformattedString)


def inside(root: Tag, *, leave_out: Collection[str] = ()) -> Iterator[PageElement]:
    """What stands below an element in reading order, without what is silent."""
    left = list(reversed(root.contents))
    while left:
        node = left.pop()
        if isinstance(node, Tag):
            if node.name in leave_out or is_silent(node):
                continue
            yield node
            if mark(node) is None:
                left.extend(reversed(node.contents))
        elif is_text(node):
            yield node


def words(root: Tag) -> str:
    """The words of an element without those of tables in it; marks of footnotes stay marks."""
    return " ".join("".join(_runs(root)).replace(cells.TABLE, "").split())


def cell_words(cell: Tag) -> str:
    """The words of a cell; numbers of two elements, or on two lines, stay apart."""
    return cells.together(runs(cell))


def runs(root: Tag) -> str:
    """The runs of text of an element, with edges between them; a table in it is a sign."""
    return cells.EDGE.join(_runs(root))


def _runs(root: Tag) -> Iterator[str]:
    for node in islice(inside(root, leave_out=_IN_TABLES), _MOST_WORDS):
        if not isinstance(node, Tag):
            yield str(node)
        elif node.name in ("br", "p", "div", "li"):
            yield " "
        elif node.name == "img":
            yield attribute(node, "alt")
        elif node.name == "table":
            yield cells.TABLE
        else:
            yield mark(node) or ""


def mark(tag: Tag) -> str | None:
    """A reference to a footnote as `[^1]`, a raised text as `<sup>1</sup>`; None for the rest."""
    noted = classes(tag) & _NOTE_CLASSES or attribute(tag, "role") == "doc-noteref"
    if not noted and tag.name != "sup":
        return None
    text = short_text(tag)
    if not text or len(text) > _LONGEST_MARK:
        return None
    linked = noted or any(isinstance(node, Tag) and node.name == "a" for node in near(tag))
    return f"[^{text.strip('[]')}]" if linked else f"<sup>{text}</sup>"


def near(tag: Tag) -> list[PageElement]:
    """The first few nodes of an element, hidden ones too."""
    found: list[PageElement] = []
    left: list[PageElement] = list(reversed(tag.contents[:_NEAR]))
    while left and len(found) < _NEAR:
        node = left.pop()
        found.append(node)
        if isinstance(node, Tag):
            left.extend(reversed(node.contents[:_NEAR]))
    return found


def short_text(tag: Tag) -> str:
    """The text at the start of an element, without spaces."""
    texts = (str(node) for node in near(tag) if is_text(node))
    return "".join("".join(texts).split())


def has_table(tag: Tag) -> bool:
    """Whether a table stands in an element."""
    return any(isinstance(node, Tag) and node.name == "table" for node in inside(tag))
