"""The text of Markdown: the words a reader sees."""

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

from perfdb.pages import cells, html_tree

_INLINE = MarkdownIt("commonmark")
_COMMENT = re.compile(r"<!--.*?-->")
_BREAK = re.compile(r"(?:(?<!\s)\s+)?<br\s*/?>\s*", re.IGNORECASE)
_LINE_END = "\v"
"""Of a line within a cell: a space to Markdown, also in code, but none that groups digits."""
_MARKED = re.compile(r"[\\`*_~\[\]<>&!]")
_HTML = re.compile(
    r"</?(?:a|abbr|b|big|code|del|div|em|font|i|ins|kbd|mark|p|s|samp|small|span|strike|strong"
    r"|sub|sup|tt|u|var)(?![\w-])",
    re.IGNORECASE,
)
"""Of text. What other tags mean nobody can tell: `<TBD>` is no HTML."""


def words(markup: str) -> str:
    """The words a reader sees: markup and HTML of text resolved; other HTML stays."""
    return _resolved(markup, " ").replace(cells.EDGE, "").strip()


def cell_words(markup: str) -> str:
    """The words of a cell; numbers of two runs of text, or on two lines, stay apart."""
    return cells.together(_resolved(markup.replace("\n", _LINE_END), _LINE_END))


def _resolved(markup: str, line_end: str) -> str:
    """The runs of text in Markdown, with an edge where markup begins or ends one."""
    plain = _BREAK.sub(line_end, _COMMENT.sub("", markup.replace("\\|", "|"))).strip()
    if not _MARKED.search(plain):
        return plain
    tokens = _INLINE.parseInline(plain)
    children = [child for token in tokens for child in token.children or ()]
    tags = [child.content for child in children if child.type == "html_inline"]
    if tags and all(map(_HTML.match, tags)):
        return html_tree.runs(html_tree.parse(_INLINE.renderer.render(tokens, _INLINE.options, {})))
    return "".join(_run(child) for child in children)


def _run(token: Token) -> str:
    if token.type.endswith("break"):
        return " "
    return token.content if token.type == "text" else f"{cells.EDGE}{token.content}{cells.EDGE}"
