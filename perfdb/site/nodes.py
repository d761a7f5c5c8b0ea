"""HTML in a document: written as it stands, and found by its words, not by its figures.

Sphinx would index a table figure by figure, of which nobody searches any.
"""

import re
from collections.abc import Iterable
from typing import Final

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_TAG: Final = re.compile(r"<[^<>]*>")
_WORD: Final = re.compile(r"\w+")


class made_html(nodes.Invisible, nodes.Element):
    """HTML, with the words that the search is to find it by as its text."""


def of_html(html: str, names: Iterable[str] = ()) -> made_html:
    """HTML as a node; `names` are what the search finds it by besides what it says."""
    return made_html("", nodes.Text(words(html, names)), html=html)


def words(html: str, names: Iterable[str] = ()) -> str:
    """The words of HTML and of names, each once; numbers are none. Many cells say the same."""
    texts = dict.fromkeys((*_TAG.split(html), *names))
    found = dict.fromkeys(_WORD.findall(" ".join(texts)))
    return " ".join(word for word in found if not word.isdecimal())


def add(app: Sphinx) -> None:
    """Make the node known to every way of writing documents; those without HTML leave it out."""
    out = (_leave_out, None)
    app.add_node(made_html, html=(_write, None), latex=out, text=out, man=out, texinfo=out)


def _write(translator: HTML5Translator, node: made_html) -> None:
    translator.body.append(node["html"])
    raise nodes.SkipNode


def _leave_out(_translator: nodes.NodeVisitor, _node: made_html) -> None:
    raise nodes.SkipNode
