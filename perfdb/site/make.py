"""The pages, their data and their downloads, made from the store."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from sphinx.errors import ExtensionError
from sphinx.util import logging
from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from perfdb.audit import acknowledged
from perfdb.audit.acknowledged import Entry
from perfdb.db.session import reading, store_url
from perfdb.errors import InputError, PerfdbError, Problem
from perfdb.site import downloads, pages, read
from perfdb.site.contents import Contents
from perfdb.site.files import Layout, remove_others, write_pages, write_run_files

LOGGER = logging.getLogger(__name__)


def everything(layout: Layout, address: str | None, accepted: Path | None) -> set[Path]:
    """Make it; the files that there are now. Raises ExtensionError where that cannot be done."""
    try:
        url = store_url(address)
        contents = read.stored(url, _entries(accepted))
        made = _written(layout, contents, url)
        found = _downloads(layout.root, contents, url)
    except (PerfdbError, DBAPIError, FileExistsError) as error:
        raise ExtensionError(f"perfdb.site: {error}") from error
    if not contents.results and not contents.runs:
        LOGGER.info("perfdb.site: %s holds no results yet", url.render_as_string())
    LOGGER.info("perfdb.site: %d files from %s", len(made), url.render_as_string())
    return made.union(found)


def _entries(accepted: Path | None) -> tuple[Entry, ...]:
    """What is accepted of what the audit finds. Raises InputError."""
    if accepted is None:
        return ()
    if not accepted.is_file():
        remedy = "name a file, from the folder of conf.py on, or None"
        raise InputError(
            Problem(str(accepted), "no such file", field="perfdb_acknowledged", remedy=remedy)
        )
    return acknowledged.entries(str(accepted), accepted.read_text(encoding="utf-8"))


def _written(layout: Layout, contents: Contents, url: URL) -> set[Path]:
    kept = write_pages(layout, pages.all_pages(contents))
    files = [file for page in contents.runs for file in page.files]
    if files:
        with reading(url) as connection:
            kept |= write_run_files(layout, files, partial(read.content, connection))
    remove_others(layout, kept | {layout.code})
    return kept


def _downloads(root: Path, contents: Contents, url: URL) -> Iterable[Path]:
    """The files of all results."""
    if not contents.results:
        downloads.remove_everything(root)
        return ()
    with reading(url) as connection:
        return downloads.write_everything(root, connection)
