"""HTML for pages: Jinja2 templates with autoescape, and links between documents.

The templates are in `templates/`. A link to a document is written as `perfdb:DOCUMENT`, one to a
file of the site as `perfdb-file:PATH`. They become addresses when the page is written: only then
its own place is known.
"""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from docutils import nodes
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri
from sphinx.writers.html5 import HTML5Translator

from perfdb import units

KEYS: Final = "perfdb"
"""The field of a document's metadata that holds the keys of what it shows."""
SCHEME: Final = "perfdb:"
FILE_SCHEME: Final = "perfdb-file:"
_LINK: Final = re.compile(rf'href="({SCHEME}|{FILE_SCHEME})([^"?#]*)')
_COMMIT_DIGITS: Final = 40
_COMMIT: Final = re.compile(f"[0-9a-f]{{{_COMMIT_DIGITS},}}")
_TEXT: Final = re.compile(r">([^<>]+)")
"""The text behind a tag."""
_WORD: Final = re.compile(r"row-[0-9a-f]{12}|\w+")
"""A word that the search knows, or the anchor of a row, which it does not: there are many."""


def to(document: str, anchor: str = "") -> str:
    """The address of a document, and of an anchor in it, for an `href` of a template."""
    return f"{SCHEME}{document}#{anchor}" if anchor else f"{SCHEME}{document}"


def render(template: str, **values: object) -> Markup:
    """The HTML of a template: `table` is templates/table.j2."""
    return Markup(ENVIRONMENT.get_template(f"{template}.j2").render(values))


def macro(template: str, name: str, *values: object) -> Markup:
    """The HTML of a macro of a template, for what is made many times: it needs no context."""
    made: Markup = getattr(ENVIRONMENT.get_template(f"{template}.j2").module, name)(*values)
    return made


def render_text(source: str, **values: object) -> Markup:
    """The HTML of a template that is written in place, for a line or two."""
    return Markup(_compiled(source).render(values))


def href(text: str, target: str) -> Markup:
    """A link to a target of `perfdb.site.addresses`, such as the tab of a system."""
    return Markup(f'<a href="{escaped(target)}">{_with_hash(text)}</a>')


def link(text: str, document: str, anchor: str = "") -> Markup:
    return href(text, to(document, anchor))


def joined(parts: Iterable[str | None], separator: str = "") -> Markup:
    """Parts one after the other, without the empty ones."""
    return Markup(escaped(separator).join([escaped(part) for part in parts if part]))


def escaped(value: object) -> str:
    """A value within HTML; markup as it is."""
    if isinstance(value, Markup):
        return str(value)
    return _escaped(value) if isinstance(value, str) else str(escape(value))


@lru_cache(maxsize=10_000)
def _escaped(text: str) -> str:
    return str(escape(text))


def paragraph(text: str, class_: str = "") -> Markup:
    classes = f' class="{escaped(class_)}"' if class_ else ""
    return Markup(f"<p{classes}>{escaped(text)}</p>\n" if text else "")


def badge(text: str, class_: str = "") -> Markup:
    return Markup(f'<span class="perf-badge {escaped(class_ or text)}">{escaped(text)}</span>')


def code(text: str) -> Markup:
    """A name of a program."""
    return Markup(f"<code>{escaped(text)}</code>")


def short_hash(text: str) -> Markup:
    """Text in which the hash of a commit shows its start; copies and filters have the whole."""
    return Markup(_with_hash(text))


def _with_hash(text: str) -> str:
    shown = escaped(text)
    if len(shown) < _COMMIT_DIGITS:
        return shown
    return _COMMIT.sub(r'<span class="perf-hash" title="\g<0>">\g<0></span>', shown)


def with_short_hashes(text: str) -> str:
    """Text with the first ten signs of the hash of each commit."""
    return _COMMIT.sub(lambda found: found[0][:10], text)


def facts(label: str, items: Iterable[tuple[str, str]]) -> Markup:
    """Names and what is known of them: a table of two columns without a head."""
    rows = "".join([
        f'<tr><th scope="row">{escaped(name)}</th>\n<td>{escaped(text)}</td>\n</tr>'
        for name, text in items
    ])  # fmt: skip
    return Markup(
        f'<div class="perf-facts-wrap"><table class="perf-facts" aria-label="{escaped(label)}">'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,
    )
    made.globals.update(to=to, link=link, badge=badge, short_hash=short_hash, code=code)
    made.filters.update(counted=units.counted)
    return made


ENVIRONMENT: Final = _environment()


@cache
def _compiled(source: str) -> Template:
    return ENVIRONMENT.from_string(source)


class made_block(nodes.Invisible, nodes.Element):
    """HTML that is written as it is, with the words that the search finds it by as its text.

    Sphinx would index a table figure by figure, and nobody searches for one.
    """


def made_html(html: str, names: Iterable[str] = ()) -> made_block:
    """HTML as a node. The search finds it by its words without numbers, and by `names`."""
    texts = dict.fromkeys((*_TEXT.findall(f">{html}"), *names))
    words = dict.fromkeys(_WORD.findall(" ".join(texts)))
    known = " ".join(it for it in words if not it.isdecimal() and not it.startswith("row-"))
    return made_block("", nodes.Text(known), html=str(html))


def add_node(app: Sphinx) -> None:
    """Make the node known to every builder; those without HTML leave it out."""
    out = (_leave_out, None)
    app.add_node(made_block, html=(_write, None), latex=out, text=out, man=out, texinfo=out)


def _write(translator: HTML5Translator, node: made_block) -> None:
    """Write HTML with the addresses of documents and files as seen from the page that it is on."""
    builder, here = translator.builder, translator.docnames[0]

    @cache
    def href_of(scheme: str, name: str) -> str:
        if scheme == SCHEME:
            return f'href="{escape(builder.get_relative_uri(here, name))}'
        return f'href="{escape(relative_uri(builder.get_target_uri(here), name))}'

    html = _LINK.sub(lambda found: href_of(*found.groups()), node["html"])
    translator.body.append(html)
    raise nodes.SkipNode


def _leave_out(_translator: nodes.NodeVisitor, _node: made_block) -> None:
    raise nodes.SkipNode
