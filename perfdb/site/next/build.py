"""The pages, their blocks and their downloads, made from the store before Sphinx reads them.

A page's blocks are kept as JSON behind the key of what they were made from: a build makes only the
blocks of pages whose key, or whose files, have changed.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from markupsafe import Markup
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from perfdb.audit import review
from perfdb.audit.review import Entry
from perfdb.db.session import is_missing, reading, store_url
from perfdb.db.sources import content
from perfdb.errors import Diagnostic, InputError, PerfdbError
from perfdb.site.next import data, files, releases
from perfdb.site.next.build_cache import code
from perfdb.site.next.data import SiteData
from perfdb.site.next.files import SiteLayout
from perfdb.site.next.page import (
    AllDownloads,
    Block,
    Code,
    Download,
    FileLinks,
    IndexEntry,
    Page,
    Section,
    Tabs,
)

LOGGER = logging.getLogger(__name__)

KINDS: Final[Sequence[Callable[[SiteData], Iterable[Page]]]] = (releases.pages,)
"""The pages of each kind."""

Stored = Mapping[str, object]
"""A block as it is kept: JSON."""


@dataclass(frozen=True)
class Options:
    """What a build is made from. `address`: None is perfdb.sqlite here, or nothing yet."""

    address: str | None
    accepted: Path | None
    hostnames: bool


def everything(layout: SiteLayout, options: Options) -> set[Path]:
    """Make it; the files that there are now. Raises ExtensionError where that cannot be done."""
    try:
        url = store_url(options.address)
        is_none_yet = options.address is None and is_missing(url)
        found = SiteData() if is_none_yet else data.stored(url, _entries(options.accepted))
        made = _written(layout, replace(found, hostnames=options.hostnames), url)
        made.update(files.write_everything(layout.root, found.current))
    except (PerfdbError, DBAPIError, FileExistsError) as error:
        raise ExtensionError(f"perfdb.site: {error}") from error
    if not found.results and not found.runs:
        LOGGER.info("perfdb.site: %s holds no results yet", url.render_as_string())
    LOGGER.info("perfdb.site: %d files from %s", len(made), url.render_as_string())
    return made


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
    kept = write_pages(layout, all_pages(found))
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
        kept.add(_write_blocks(layout, page))
    return kept


def _write_blocks(layout: SiteLayout, page: Page) -> Path:
    """Write the blocks of a page, unless they are there, with their downloads."""
    path, key = layout.data(page.name), f"{code()[:16]} {page.key}"
    if _is_made_from(path, key) and all(map(Path.is_file, downloads_of(layout, path))):
        return path
    keeper = Keeper(layout, page.name)
    kept = keeper.blocks(page.body())
    text = "\n".join([key, json.dumps(keeper.files), json.dumps(kept, ensure_ascii=False)])
    return files.write(path, text.encode(errors="surrogatepass"))


def _is_made_from(path: Path, key: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline().rstrip(b"\n") == key.encode()


def downloads_of(layout: SiteLayout, path: Path) -> list[Path]:
    """The files of the tables of a page."""
    with path.open("rb") as file:
        file.readline()
        names: list[str] = json.loads(file.readline())
    return [layout.root / name for name in names]


def blocks_of(path: Path) -> list[Stored]:
    """The blocks of a page as they are kept."""
    blocks: list[Stored] = json.loads(path.read_bytes().split(b"\n", 2)[2])
    return blocks


@dataclass(frozen=True)
class Keeper:
    """Turns the blocks of a document into JSON and writes the files of its downloads.

    `taken` are files of the document that another part of it has.
    """

    layout: SiteLayout
    document: str
    files: list[str] = field(default_factory=list)

    def blocks(self, blocks: Iterable[Block], taken: Collection[Path] = ()) -> list[Stored]:
        """Blocks as JSON."""
        return [self._block(block, taken) for block in blocks if block != ""]

    def _block(self, block: Block, taken: Collection[Path]) -> Stored:
        match block:
            case Markup():
                return {"html": str(block)}
            case Section(title, inner):
                return {"section": title, "blocks": self.blocks(inner, taken)}
            case Tabs(group, tabs):
                inner_tabs = [
                    {"name": it.name, "title": it.title, "blocks": self.blocks(it.blocks, taken)}
                    for it in tabs
                ]
                return {"tabs": inner_tabs, "group": group}
            case Download(results):
                return self._download(block, results, taken)
            case _:
                return self._leaf(block)

    def _leaf(self, block: Code | FileLinks | IndexEntry | AllDownloads) -> Stored:
        match block:
            case Code(text, language):
                return {"code": text, "language": language}
            case FileLinks(run_files, before, after):
                listed = [
                    {"path": self._relative(self.layout.run_file(it)), "name": it.name,
                     "size": it.size_bytes}
                    for it in run_files
                ]  # fmt: skip
                return {"files": listed, "before": before, "after": after}
            case IndexEntry(words):
                return {"entry": words}
            case AllDownloads():
                return {"everything": True}

    def _download(
        self, block: Download, results: Sequence[data.SiteResult], taken: Collection[Path]
    ) -> Stored:
        """The files of a table, and the titles of its models: the search finds it by these."""
        known = {*taken, *(self.layout.root / name for name in self.files)}
        folder = self.layout.downloads(self.document)
        made = files.write_download(folder, block.name, results, known)
        names = [self._relative(path) for path in made]
        self.files.extend(names)
        models = list(dict.fromkeys(result.model_title for result in results))
        return {"downloads": names, "models": models}

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.layout.root).as_posix()
