"""Turns reStructuredText into HTML, by docutils: its headings and the tables that it knows."""

import re
from typing import Any, Final

from docutils import nodes
from docutils.core import publish_parts
from docutils.writers.html5_polyglot import HTMLTranslator, Writer

from perfdb.pages import html
from perfdb.pages.base import ParsedPage, Unread

_TITLE = re.compile(r"^(?=\S)(.+)\n([=~*^#+-])\2{2,}[ \t]*$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*\.\. [\w:.-]+::", re.MULTILINE)
_MARKDOWN = re.compile(r"^(?:#{1,6} |```|:::|\|[ :]*-{2,})", re.MULTILINE)
_ROLE = re.compile(r":[\w:.+-]{1,60}:(?=`)")
_MOST_CORNERS: Final = 20_000
"""Of the grids of a text: docutils takes the cube of its side if its lines do not meet."""
_MOST_LINES: Final = 20_000
"""Of a text: docutils takes a second for a few thousand of a list, the square for titles."""
_SETTINGS: Final[dict[str, Any]] = {
    "report_level": 2, "halt_level": 5, "warning_stream": "", "doctitle_xform": False,
    "docinfo_xform": False, "file_insertion_enabled": False, "raw_enabled": False,
    "_disable_config": True, "traceback": True, "line_length_limit": 1 << 20,
    "initial_header_level": 1,
}  # fmt: skip


class _Translator(HTMLTranslator):
    """Writes the line of the source with each heading, table and row."""

    line = 1

    def starttag(self, node: Any, tagname: str, *args: Any, **attributes: Any) -> str:
        """The start tag of a node; a row of which docutils knows no line has that of its table."""
        if re.fullmatch("table|tr|h[1-6]", tagname) and isinstance(node, nodes.Element):
            lines = (one.line for one in node.findall(nodes.Element) if one.line)
            self.line = attributes["data-line"] = next(lines, self.line)
        return str(super().starttag(node, tagname, *args, **attributes))


def recognizes(text: str) -> bool:
    """Whether a text has underlined titles or directives, and nothing that only Markdown has."""
    return bool(_TITLE.search(text) or _DIRECTIVE.search(text)) and not _MARKDOWN.search(text)


def page(text: str) -> ParsedPage:
    """What a text holds."""
    if text.count("+") > _MOST_CORNERS or text.count("\n") > _MOST_LINES:
        unread = Unread("its tables are too large to be read", 1, "ingest the built page")
        return html.page("", unread=[unread])
    writer = Writer()
    writer.translator_class = _Translator
    parts = publish_parts(_ROLE.sub("", text), writer=writer, settings_overrides=_SETTINGS)
    return html.page(parts["body"])
