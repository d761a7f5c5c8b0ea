"""Sphinx's settings: the site is made from the store that PERFDB_URL names.

PERFDB_SITE_URL is the address that the site will have; without it, it has none. PERFDB_PROFILE is
for whom it is: internal, or public.
"""

import importlib
import os
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

from perfdb import __version__
from perfdb.site.addresses import FOLDERS

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "perfdb"
author = "the perfdb developers"
# No year: the same store makes the same bytes.
copyright = author
version = release = __version__

with redirect_stdout(StringIO()):  # it prints that it cannot draw cards, which are turned off below
    importlib.import_module("sphinxext.opengraph")

extensions = [
    "perfdb.site",
    "command_line",
    "discovery",
    "notfound.extension",
    "sphinx_copybutton",
    "sphinxext.opengraph",
]
STORE = HERE.parent / "perfdb.sqlite"
# An address that PERFDB_URL names may hold a password, and Sphinx keeps what stands here.
perfdb_url = str(STORE) if STORE.is_file() and not os.environ.get("PERFDB_URL") else None
REVIEWED = HERE.parent / "data" / "acknowledged.yaml"
perfdb_acknowledged = str(REVIEWED) if REVIEWED.is_file() else None
RECIPES = HERE.parent / "recipes"
perfdb_profile = os.environ.get("PERFDB_PROFILE") or "internal"
perfdb_recipes = str(RECIPES) if RECIPES.is_dir() else None
NOTES = HERE.parent / "data" / "release-notes"
perfdb_notes = str(NOTES) if NOTES.is_dir() else None

templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "_templates"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes = False  # names of runs and options hold hyphens that must stay as they are
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
html_title = "perfdb"
html_baseurl = os.environ.get("PERFDB_SITE_URL", "").rstrip("/")
html_baseurl += "/" if html_baseurl else ""
# The page that stands in for others must know where its style sheets are.
notfound_urls_prefix = urlsplit(html_baseurl).path or "/"
notfound_context = {
    "title": "Page not found",
    "body": "<h1>Page not found</h1>\n"
    f'<p>There is no page at this address. The <a href="{notfound_urls_prefix}index.html">start '
    f'page</a> leads to all there are, and the <a href="{notfound_urls_prefix}search.html">search'
    "</a> finds them by their words.</p>",
}
ogp_site_name = project
ogp_site_url = html_baseurl
ogp_social_cards = {"enable": False}  # they are drawn with fonts that differ between machines
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_search_scorer = str(HERE / "_ext" / "scorer.js")
html_show_sphinx = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "perfdb"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages of wide tables give them the whole width: the way to other pages is the bar at the top.
html_sidebars: dict[str, list[str]] = {
    pattern: []
    for pattern in ("index", "glossary", "method", *(f"{folder}/**" for folder in FOLDERS))
}
