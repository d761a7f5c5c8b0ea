"""HTML in a document: written as it is, and found by its words, not by its figures.

Sphinx would index a table figure by figure, and nobody searches for one.
"""

import re
from collections.abc import Iterable
from typing import Final

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_TAG: Final = re.compile(r"<[^<>]*>")
_WORD: Final = re.compile(r"\w+")


class made_block(nodes.Invisible, nodes.Element):
    """HTML that is written as it is, with the words that the search finds it by as its text.

    Sphinx would index a table figure by figure, and nobody searches for one.
    """


def made_html(html: str, names: Iterable[str] = ()) -> made_block:
    """HTML as a node; `names` are what the search finds it by besides its own words."""
    return made_block("", nodes.Text(search_words(html, names)), html=html)


def search_words(html: str, names: Iterable[str] = ()) -> str:
    """The words of HTML and of names, each once; numbers are none."""
    texts = dict.fromkeys((*_TAG.split(html), *names))
    found = dict.fromkeys(_WORD.findall(" ".join(texts)))
    return " ".join(word for word in found if not word.isdecimal())


def add_node(app: Sphinx) -> None:
    """Make the node known to every builder; those without HTML leave it out."""
    out = (_leave_out, None)
    app.add_node(made_block, html=(_write, None), latex=out, text=out, man=out, texinfo=out)


def _write(translator: HTML5Translator, node: made_block) -> None:
    translator.body.append(node["html"])
    raise nodes.SkipNode


def _leave_out(_translator: nodes.NodeVisitor, _node: made_block) -> None:
    raise nodes.SkipNode
