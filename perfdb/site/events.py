"""What happens when a build begins: the store is read, and the pages are made from it."""

from functools import partial
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from perfdb.audit import acknowledged
from perfdb.audit.acknowledged import Entry
from perfdb.db.session import reading, store_url
from perfdb.errors import InputError, PerfdbError, Problem
from perfdb.site import pages, read
from perfdb.site.directives import OVERVIEW
from perfdb.site.files import (
    FOLDERS,
    GENERATED,
    Layout,
    remove_others,
    write,
    write_pages,
    write_run_files,
)
from perfdb.site.pages import Contents

LOGGER = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"


def add_files(app: Sphinx, config: Config) -> None:
    """Our style sheet and script are served; what we make beside the documents is no document."""
    config.html_static_path.append(str(STATIC))
    config.exclude_patterns.append(GENERATED)
    app.add_css_file("perfdb.css")
    app.add_js_file("perfdb.js", loading_method="defer")


def make_pages(app: Sphinx) -> None:
    """Make the pages from the store. Raises ExtensionError where it cannot be read."""
    try:
        url = store_url(app.config.perfdb_url)
        contents = read.stored(url, _acknowledged(app))
        made = _write(Layout(Path(app.srcdir)), contents, url)
    except (PerfdbError, DBAPIError, FileExistsError) as error:
        raise ExtensionError(f"perfdb.site: {error}") from error
    if not contents.results and not contents.runs:
        LOGGER.info("perfdb.site: %s holds no results yet", url.render_as_string())
    LOGGER.info("perfdb.site: %d files from %s", made, url.render_as_string())


def _acknowledged(app: Sphinx) -> tuple[Entry, ...]:
    """What the file that conf.py names accepts. Raises InputError."""
    if app.config.perfdb_acknowledged is None:
        return ()
    path = Path(app.confdir, app.config.perfdb_acknowledged)
    if not path.is_file():
        remedy = "name a file, from the folder of conf.py on, or None"
        raise InputError(
            Problem(str(path), "no such file", field="perfdb_acknowledged", remedy=remedy)
        )
    return acknowledged.entries(str(path), path.read_text(encoding="utf-8"))


def _write(layout: Layout, contents: Contents, url: URL) -> int:
    kept = write_pages(layout, pages.all_pages(contents))
    front = pages.overview_of(contents).model_dump_json(indent=1)
    kept.add(write(layout.data(OVERVIEW), front.encode()))
    files = [file for page in contents.runs for file in page.files]
    if files:
        with reading(url) as connection:
            kept |= write_run_files(layout, files, partial(read.content, connection))
    remove_others(layout, kept)
    return len(kept)


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
