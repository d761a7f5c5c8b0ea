"""The pages, their blocks and their downloads, made from the store before Sphinx reads them.

A page's blocks are kept as JSON behind the key of what they were made from: a build makes only the
blocks of pages whose key, or whose files, have changed.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from sphinx.errors import ExtensionError
from sphinx.util import logging
from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from perfdb.audit import review
from perfdb.audit.review import Entry
from perfdb.db.session import is_missing, reading, store_url
from perfdb.db.sources import content
from perfdb.errors import Diagnostic, InputError, PerfdbError
from perfdb.site import build_cache, data, directives, downloads, files, pairs, series
from perfdb.site.build_cache import BuildOptions
from perfdb.site.data import SiteData
from perfdb.site.downloads import Keeper
from perfdb.site.files import SiteLayout
from perfdb.site.page import Block, Body, Page, key_of
from perfdb.site.pages import (
    audits,
    catalog,
    changelog,
    changes,
    home,
    releases,
    runs,
    scaling,
    sources,
)

LOGGER = logging.getLogger(__name__)

KINDS: Final[Sequence[Callable[[SiteData], Iterable[Page]]]] = (
    releases.pages,
    scaling.pages,
    changes.pages,
    audits.pages,
    changelog.pages,
    changelog.withdrawn_pages,
    runs.pages,
    runs.recipe_pages,
    sources.pages,
    catalog.model_pages,
    catalog.system_pages,
)
"""The pages of each kind."""


def everything(layout: SiteLayout, options: BuildOptions) -> set[Path]:
    """Make it; the files that there are now. Raises ExtensionError where that cannot be done."""
    try:
        url = store_url(options.address)
        is_none_yet = options.address is None and is_missing(url)
        found = SiteData() if is_none_yet else data.stored(url, _entries(options.accepted))
        made = _written(layout, with_comparisons(found, hostnames=options.hostnames), url)
        made.update(downloads.write_everything(layout.root, found.current))
    except (PerfdbError, DBAPIError, FileExistsError) as error:
        raise ExtensionError(f"perfdb.site: {error}") from error
    if not found.results and not found.runs:
        LOGGER.info("perfdb.site: %s holds no results yet", url.render_as_string())
    LOGGER.info("perfdb.site: %d files from %s", len(made), url.render_as_string())
    return made


def with_comparisons(found: SiteData, *, hostnames: bool = False) -> SiteData:
    """The data with what several kinds of pages show of it."""
    wrong = [one.result_id for one in found.current if one.has_open_errors]
    return replace(
        found,
        pairs=tuple(pairs.of_results(map(vars, found.current), wrong)),
        scaling=tuple(series.groups(found.results)),
        hostnames=hostnames,
    )


def _entries(accepted: Path | None) -> tuple[Entry, ...]:
    """The findings that are accepted. Raises InputError."""
    if accepted is None:
        return ()
    if not accepted.is_file():
        remedy = "name a file, from the folder of conf.py on, or None"
        raise InputError(
            Diagnostic(str(accepted), "no such file", field="perfdb_acknowledged", remedy=remedy)
        )
    return review.entries(str(accepted), accepted.read_text(encoding="utf-8"))


def _written(layout: SiteLayout, found: SiteData, url: URL) -> set[Path]:
    kept = write_pages(layout, all_pages(found)) | directives.write_data(layout, found)
    kept |= _write_blocks(layout, directives.OVERVIEW, partial(_overview, found))
    run_files = [file for run in found.runs for file in run.files]
    if run_files:
        with reading(url) as connection:
            kept |= files.write_run_files(layout, run_files, partial(content, connection))
    files.remove_others(layout, kept)
    return kept


def all_pages(found: SiteData) -> Iterator[Page]:
    """Every page of the site that is made from the store."""
    for pages in KINDS:
        yield from pages(found)


def write_pages(layout: SiteLayout, pages: Iterable[Page]) -> set[Path]:
    """Write the pages and their blocks; the files that they are now made of."""
    kept: set[Path] = set()
    for page in pages:
        kept.add(files.write_page(layout.page(page.name), page.text))
        kept |= _write_blocks(layout, page.name, page.body)
    return kept


def _overview(found: SiteData) -> list[Block]:
    return [home.overview(found)]


def _write_blocks(layout: SiteLayout, name: str, body: Body) -> set[Path]:
    """Write the blocks of a page with their downloads, unless they are there; their files."""
    path, key = layout.data(name), f"{build_cache.code()[:16]} {key_of(body)}"
    known = _downloads_of(path) if _is_made_from(path, key) else None
    if known is not None and all(_digest(layout.root / it) == known[it] for it in known):
        return {path, *(layout.root / it for it in known)}
    keeper = Keeper(layout, name)
    kept = keeper.blocks(body())
    digests = {it: _digest(layout.root / it) for it in keeper.files}
    text = "\n".join([key, json.dumps(digests), json.dumps(kept, ensure_ascii=False)])
    files.write(path, text.encode(errors="surrogatepass"))
    return {path, *(layout.root / it for it in keeper.files)}


def _is_made_from(path: Path, key: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline().rstrip(b"\n") == key.encode()


def _downloads_of(path: Path) -> dict[str, str]:
    """The files of the tables of a page, with the hashes of what was written."""
    with path.open("rb") as file:
        file.readline()
        digests: dict[str, str] = json.loads(file.readline())
    return digests


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
