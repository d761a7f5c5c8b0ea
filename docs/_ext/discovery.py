"""How the site is found: descriptions and keywords of pages, `llms.txt`, and a sitemap.

The front matter of a page says its `description`, `tags` and `categories`. The sitemap needs an
address, `html_baseurl`; without one there is none.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from perfdb import __version__
from perfdb.site.files import PUBLISHED

SUMMARY = (
    "How fast large language models train, by framework, release and system. A figure is "
    "published, read off a page and linked to its line, or measured, and linked to its run."
)
SECTIONS = {
    "Results": (
        "index", "performance", "models", "systems", "scaling", "changes", "recipes", "runs/index"
    ),
    "What figures mean": ("method", "glossary", "explanation"),
    "Guides": ("tutorial", "how-to"),
    "Reference": ("reference",),
}  # fmt: skip
"""The pages that programs are told of, or their first folders; single runs are too many."""


def describe(
    app: Sphinx, name: str, _template: str, context: dict[str, object], doctree: nodes.document
) -> None:
    """What the front matter says of a page, as meta elements and for Open Graph."""
    if not doctree:
        return
    front = app.env.metadata[name]
    meta = {"description": front.get("description", ""), "keywords": ", ".join(_keywords(front))}
    if name == app.config.root_doc:  # its title is that of the site, which would follow it
        context["docstitle"] = ""
    context["metatags"] = str(context["metatags"]) + "".join(
        f'\n<meta name="{key}" content="{escape(text)}" />' for key, text in meta.items() if text
    )
    if meta["description"]:
        # Open Graph escapes no more than quotes.
        context["meta"] = {**front, "og:description": escape(meta["description"], quote=False)}


def without_address(
    app: Sphinx, _name: str, _template: str, context: dict[str, object], _doctree: nodes.document
) -> None:
    """Leave the page's own address out of Open Graph where the site has none."""
    if not app.config.html_baseurl:
        metatags = str(context.get("metatags", ""))
        context["metatags"] = re.sub(r'<meta property="og:url" [^>]*>\n?', "", metatags)


def _keywords(front: Mapping[str, str]) -> list[str]:
    """The tags and categories of a page, each once; Sphinx keeps lists as JSON."""
    both = [*json.loads(front.get("tags", "[]")), *json.loads(front.get("categories", "[]"))]
    return list(dict.fromkeys(both))


def write_lists(app: Sphinx, failed: Exception | None) -> None:
    """Write `llms.txt`, and the sitemap where the site's address is known."""
    if failed or app.builder.format != "html":
        return
    out = Path(app.outdir)
    names = sorted(app.env.found_docs)
    (out / "llms.txt").write_text("".join(_llms(app, names, out)), encoding="utf-8")
    sitemap, base = out / "sitemap.xml", app.config.html_baseurl
    if base:
        sitemap.write_text(_sitemap(base, names), encoding="utf-8")
    else:
        sitemap.unlink(missing_ok=True)


def _llms(app: Sphinx, names: Iterable[str], out: Path) -> Iterator[str]:
    yield f"# {app.config.project}\n\n> {SUMMARY}\n"
    for title, folders in SECTIONS.items():
        yield f"\n## {title}\n\n"
        for name in (one for one in names if {one, one.partition("/")[0]} & {*folders}):
            heading = app.env.titles[name].astext()
            described = app.env.metadata[name].get("description", "").removeprefix(f"{heading}: ")
            about = f": {_plain(described)}" if described else ""
            yield f"- [{_plain(heading)}]({app.config.html_baseurl}{_address(name)}){about}\n"
    files = sorted(path.relative_to(out).as_posix() for path in out.glob(f"{PUBLISHED}/**/*.csv"))
    yield "\n## Tables as CSV\n\n"
    yield from (f"- [{path}]({app.config.html_baseurl}{quote(path)})\n" for path in files)


def _plain(text: str) -> str:
    """Any text as Markdown that prints as that text, and is HTML to nobody."""
    return re.sub(r"([\\`*\[\]])", r"\\\1", escape(text, quote=False))


def _sitemap(base: str, names: Iterable[str]) -> str:
    """Every page. No dates: the same store makes the same bytes."""
    pages = "".join(f"<url><loc>{escape(base + _address(name))}</loc></url>\n" for name in names)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    head = '<?xml version="1.0" encoding="utf-8"?>'
    return f'{head}\n<urlset xmlns="{space}">\n{pages}</urlset>\n'


def _address(name: str) -> str:
    return f"{quote(name)}.html"


def setup(app: Sphinx) -> ExtensionMetadata:
    """Around Open Graph, which looks for a description, and after the files of tables are made."""
    # What it writes into every page is written anew where it would write something else.
    app.add_config_value("discovery_code", Path(__file__).read_text("utf-8"), "html")
    app.connect("html-page-context", describe, priority=400)
    app.connect("html-page-context", without_address, priority=600)
    app.connect("build-finished", write_lists, priority=900)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
