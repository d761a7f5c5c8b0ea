"""reStructuredText, parsed by docutils: sections, tables of every kind, tabs, footnotes."""

import io
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives

from perfdb.pages import base, html

_TITLE = re.compile(r"^(?=\S)(.+)\n([=~*^#+-])\2{2,}[ \t]*$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^([ \t]*)\.\. ([\w:.-]+)::", re.MULTILINE)
_MARKDOWN = re.compile(r"^(?:#{1,6} |```|:::|\|[ :]*-{2,})", re.MULTILINE)
_ROLE = re.compile(r":[\w:.+-]{1,60}:(?=`)")
_MOST_CORNERS: Final = 20_000
"""Of the grids of a text: docutils takes the cube of the side of one whose lines do not meet."""
_OPAQUE: Final = (
    nodes.comment, nodes.literal_block, nodes.doctest_block, nodes.substitution_definition,
    nodes.target, nodes.meta, nodes.topic, nodes.problematic, nodes.footnote,
)  # fmt: skip


class _Box(Directive):
    """A directive that docutils does not have: a box with its argument as the label."""

    optional_arguments: ClassVar[int] = 1
    final_argument_whitespace: ClassVar[bool] = True
    has_content: ClassVar[bool] = True
    option_spec: ClassVar[Any] = defaultdict(
        lambda: directives.unchanged, {"class": directives.unchanged}
    )

    def run(self) -> Sequence[nodes.Node]:
        """The content, in a container with the label."""
        box = nodes.container("\n".join(self.content), label=" ".join(self.arguments))
        self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


class _Left(_Box):
    """A directive that is not read."""

    def run(self) -> Sequence[nodes.Node]:
        """Nothing."""
        return []


directives.register_directive("perfdb-box", _Box)
directives.register_directive("perfdb-left", _Left)


def recognizes(text: str) -> bool:
    """Whether a text has underlined titles or directives, and nothing that only Markdown has."""
    return bool(_TITLE.search(text) or _DIRECTIVE.search(text)) and not _MARKDOWN.search(text)


def page(text: str) -> base.ParsedPage:
    """The pieces of a text. It has no front matter."""
    footnotes: dict[str, str] = {}
    return base.ParsedPage(None, tuple(pieces(text, 1, footnotes)), footnotes)


def directive(name: str, argument: str, lines: Sequence[str], first: int) -> Iterator[base.Piece]:
    """A table that is a directive of MyST, whose head is on line `first`."""
    options = re.sub(r"\A---\n(.*?)\n---\n?", _as_options, "\n".join(lines), flags=re.DOTALL)
    inner = "".join(f"   {line}\n" for line in options.split("\n"))
    yield from pieces(f".. {name}:: {argument}\n{inner}", first, {})


def _as_options(found: re.Match[str]) -> str:
    return "\n".join(f":{line}" for line in found[1].split("\n")) + "\n\n\n"


def pieces(text: str, first: int, footnotes: dict[str, str]) -> Iterator[base.Piece]:
    """The pieces of a text whose first line is `first` of its page; adds to the footnotes."""
    if text.count("+") > _MOST_CORNERS:
        yield base.Unread("its tables are too large to be read", first, "ingest the built page")
        return
    for found in _DIRECTIVE.finditer(text):
        if found[2] == "csv-table":
            line = first + text.count("\n", 0, found.start(2))
            yield base.Unread("a csv-table is not read", line, "write a list-table")
    known = _DIRECTIVE.sub(_known, _ROLE.sub("", text))
    tree = publish_doctree(known, settings_overrides=_SETTINGS)
    for note in tree.findall(nodes.footnote):
        label = note.next_node(nodes.label)
        texts = [_text(one) for one in note.children if isinstance(one, nodes.paragraph)]
        footnotes[label.astext() if label else ""] = " ".join(texts)
    yield from _Reader(first - 1, footnotes).read(tree, 0)


_SETTINGS: Final[dict[str, Any]] = {
    "report_level": 2, "halt_level": 5, "warning_stream": io.StringIO(), "doctitle_xform": False,
    "docinfo_xform": False, "file_insertion_enabled": False, "_disable_config": True,
    "line_length_limit": 1 << 20,
}  # fmt: skip


def _known(found: re.Match[str]) -> str:
    name = found[2].casefold()
    box = "perfdb-left" if name in ("csv-table", "contents") else "perfdb-box"
    return found[0] if name in _OF_DOCUTILS else f"{found[1]}.. {box}::"


_OF_DOCUTILS: Final = frozenset(
    {"list-table", "table", "raw", "note", "tip", "warning", "important", "hint",
     "caution", "admonition", "code", "code-block", "include", "meta", "math", "image",
     "figure", "replace", "rubric", "container", "comment", "parsed-literal"}
)  # fmt: skip


class _Reader:
    """Walks a document; `above`: lines of the page above the text."""

    def __init__(self, above: int, footnotes: dict[str, str]) -> None:
        self.above, self.footnotes = above, footnotes

    def read(
        self, root: nodes.Element, level: int, *, listed: bool = False
    ) -> Iterator[base.Piece]:
        """What is below a node, in reading order."""
        for node in root.children:
            if isinstance(node, nodes.Element) and not isinstance(node, _OPAQUE):
                yield from self._node(node, level, listed=listed)

    def _node(self, node: nodes.Element, level: int, *, listed: bool) -> Iterator[base.Piece]:
        match node:
            case nodes.section():
                yield from self.read(node, level + 1)
            case nodes.title() | nodes.rubric():
                yield base.Heading(level or 6, _text(node), self._line(node))
            case nodes.paragraph() | nodes.field():
                yield base.Line(_text(node), self._line(node), listed)
            case nodes.table():
                yield from self._table(node)
            case nodes.Admonition() | nodes.container():
                yield base.BoxStart(str(node.get("label", "")), self._line(node))
                yield from self.read(node, level)
                yield base.BoxEnd()
            case nodes.system_message():
                yield from self._unread(node)
            case nodes.raw(attributes={"format": "html"}):
                yield from html.pieces(node.astext(), self._line(node) + 2, self.footnotes)
            case _:
                inside = listed or isinstance(node, nodes.list_item)
                yield from self.read(node, level, listed=inside)

    def _line(self, node: nodes.Element) -> int:
        found = (one.line for one in node.findall(nodes.Element) if one.line)
        return self.above + next(found, 1)

    def _unread(self, node: nodes.system_message) -> Iterator[base.Piece]:
        """A message of docutils on a table or directive that it leaves out."""
        message = " ".join(node.astext().split("\n")[0].split()).partition(") ")[2]
        if "table" in message.casefold() or "directive" in message:
            line, is_damage = self.above + int(node.get("line", 1)), int(node["level"]) > 2
            remedy = "write its rows here, or ingest the built page"
            yield base.Unread(f"the table is not read: {message}", line, remedy, is_damage)

    def _table(self, table: nodes.table) -> Iterator[base.Piece]:
        if any(one.get("morecols") or one.get("morerows") for one in table.findall(nodes.entry)):
            message = "the table is not read: it has cells across several rows or columns"
            yield base.Unread(
                message, self._line(table), "give each row its own cells", rejected=True
            )
            return
        title = table.next_node(nodes.title)
        label = _text(title) if title and title.parent is table else ""
        rows = [self._row(row) for row in table.findall(nodes.row)]
        yield base.BoxStart(label, self._line(table))
        if rows:
            yield base.Grid(rows[0], tuple(rows[1:]))
        yield base.BoxEnd()

    def _row(self, row: nodes.row) -> base.Row:
        cells = (base.Cell(_text(one).replace("\n", " "), _text(one)) for one in row.children)
        return base.Row(self._line(row), tuple(cells))


def _text(node: nodes.Node) -> str:
    """The words of a node; references to footnotes as `[^1]`, a field as `System: DGX-H100`."""
    if isinstance(node, nodes.field):
        return ": ".join(_text(one) for one in node.children)
    if isinstance(node, nodes.footnote_reference):
        return f"[^{node.astext()}]"
    if isinstance(node, nodes.Text):
        return node.astext().replace("\n", " ")
    if isinstance(node, nodes.entry):
        return "\n".join(map(_text, node.children))
    return "".join(map(_text, node.children))
