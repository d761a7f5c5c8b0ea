"""The pages, their data and their downloads, made from the store."""

from functools import partial
from pathlib import Path

from sphinx.errors import ExtensionError
from sphinx.util import logging
from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from perfdb.audit import review
from perfdb.audit.review import Entry
from perfdb.db.session import is_missing, reading, store_url
from perfdb.db.sources import content
from perfdb.errors import Diagnostic, InputError, PerfdbError
from perfdb.site import downloads, memory, pages, read
from perfdb.site.contents import Contents
from perfdb.site.files import Layout, remove_others, write_pages, write_run_files
from perfdb.site.next import bridge
from perfdb.site.next.data import SiteData

LOGGER = logging.getLogger(__name__)


def everything(layout: Layout, address: str | None, accepted: Path | None) -> set[Path]:
    """Make it; the files that there are now. Raises ExtensionError where that cannot be done.

    `address` names the store. None: it is perfdb.sqlite here, and need not be there yet.
    """
    try:
        url = store_url(address)
        is_none_yet = address is None and is_missing(url)
        contents = Contents() if is_none_yet else read.stored(url, _entries(accepted))
        entries = _entries(accepted)
        found = SiteData() if is_none_yet else bridge.stored(url, entries, contents)
        made = _written(layout, contents, url, found)
        made.update(downloads.write_everything(layout.root, contents.in_force))
    except (PerfdbError, DBAPIError, FileExistsError) as error:
        raise ExtensionError(f"perfdb.site: {error}") from error
    if not contents.results and not contents.runs:
        LOGGER.info("perfdb.site: %s holds no results yet", url.render_as_string())
    LOGGER.info("perfdb.site: %d files from %s", len(made), url.render_as_string())
    return made


def _entries(accepted: Path | None) -> tuple[Entry, ...]:
    """What is accepted of what the audit finds. Raises InputError."""
    if accepted is None:
        return ()
    if not accepted.is_file():
        remedy = "name a file, from the folder of conf.py on, or None"
        raise InputError(
            Diagnostic(str(accepted), "no such file", field="perfdb_acknowledged", remedy=remedy)
        )
    return review.entries(str(accepted), accepted.read_text(encoding="utf-8"))


def _written(layout: Layout, contents: Contents, url: URL, found: SiteData) -> set[Path]:
    names, new = bridge.write(layout.root, found)
    made = [page for page in pages.all_pages(contents) if page.name not in names]
    kept = write_pages(layout, made) | new
    memory.remember({layout.data(page.name): page.data for page in made if page.data is not None})
    files = [file for page in contents.runs for file in page.files]
    if files:
        with reading(url) as connection:
            kept |= write_run_files(layout, files, partial(content, connection))
    remove_others(layout, kept)
    return kept
