"""What happens in a build: the pages are made before it reads them, downloads put beside them.

Where nothing has changed nothing is made, and what makes it is not even loaded.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from perfdb.site import files, fresh
from perfdb.site.files import DOWNLOADS, FOLDERS, GENERATED, Layout

LOGGER = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"


def add_files(app: Sphinx, config: Config) -> None:
    """Our style sheet and script are served; what we make beside the documents is no document."""
    config.html_static_path.append(str(STATIC))
    config.exclude_patterns += [GENERATED, DOWNLOADS]
    app.add_css_file("perfdb.css")
    app.add_js_file("perfdb.js", loading_method="defer")


def make_pages(app: Sphinx) -> None:
    """Make the pages from the store. Raises ExtensionError where it cannot be read."""
    layout, address = Layout(Path(app.srcdir)), app.config.perfdb_url
    named = app.config.perfdb_acknowledged
    accepted = None if named is None else Path(app.confdir, named)
    key = fresh.Origin(address or os.environ.get("PERFDB_URL") or "", accepted).key()
    if fresh.holds(layout, key):
        LOGGER.info("perfdb.site: nothing has changed")
        return
    from perfdb.site import make  # noqa: PLC0415  it takes as long to load as the rest of Sphinx

    made = make.everything(layout, address, accepted)
    made.add(files.write(layout.code, fresh.code().encode()))
    fresh.keep(layout, key, made)


def add_directives(app: Sphinx, _env: BuildEnvironment, documents: Sequence[str]) -> None:
    """Make our directives known, where there is a document to be read."""
    if documents:
        from perfdb.site.directives import DIRECTIVES  # noqa: PLC0415  likewise

        for name, directive in DIRECTIVES.items():
            app.add_directive(name, directive, override=True)


def publish_downloads(app: Sphinx, failed: Exception | None) -> None:
    """Put the files of all tables into the site."""
    if not failed and app.builder.format == "html":
        used = {Path(path) for paths in app.env.dependencies.values() for path in paths}
        files.publish(Path(app.srcdir), Path(app.outdir), used)


def remove_stale(app: Sphinx, failed: Exception | None) -> None:
    """Remove the HTML of pages that an earlier build made and the store no longer gives.

    Sphinx leaves it, and a figure that was withdrawn would stay published.
    """
    if failed or app.builder.format != "html":
        return
    out = Path(app.outdir)
    wanted = {out / f"{document}.html" for document in app.env.found_docs}
    for page in (page for folder in FOLDERS for page in (out / folder).rglob("*.html")):
        if page not in wanted:
            page.unlink()
