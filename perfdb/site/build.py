"""The site as the store has it: its pages, what each is made from, and the files of its results.

The documents are written before Sphinx reads them. Each holds a directive that makes the blocks of
its page when it is read; a document is read again when the key of what it shows has changed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from sphinx.errors import ExtensionError
from sphinx.util import logging
from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from perfdb import catalog as catalogue
from perfdb.audit import review
from perfdb.audit.review import Entry
from perfdb.db.session import is_missing, reading, store_url
from perfdb.db.sources import content
from perfdb.errors import Diagnostic, InputError, PerfdbError
from perfdb.export.formats import Table
from perfdb.rundir import RECORD
from perfdb.site import files, read, redaction, settings
from perfdb.site.data import SiteData, SiteResult, digest_of
from perfdb.site.downloads import WrittenRow, joined, selected, write_table, written
from perfdb.site.files import DOWNLOADS, EVERYTHING, BuildOptions, SiteLayout
from perfdb.site.kept import KeptBuild, KeptPairs
from perfdb.site.page import SitePage, key_of
from perfdb.site.pages import (
    audits,
    catalog,
    changelog,
    changes,
    cpu_tests,
    recipes,
    release_pairs,
    releases,
    runs,
    scaling,
    sources,
    system_comparison,
)
from perfdb.site.pages.releases import ReleaseData

LOGGER = logging.getLogger(__name__)

KINDS: Final[Sequence[Callable[[SiteData], Iterable[SitePage]]]] = (
    releases.pages,
    scaling.pages,
    changes.pages,
    audits.pages,
    changelog.pages,
    changelog.withdrawn_pages,
    changelog.unfinished_pages,
    runs.pages,
    cpu_tests.pages,
    system_comparison.pages,
    recipes.pages,
    recipes.coverage_pages,
    sources.pages,
    catalog.pages,
)
"""The pages of each kind."""
OVERVIEW: Final = "overview"
"""The key of the landing page, which is made of what all others are made of."""


@dataclass
class Site:
    """The site of a store, which is read when something of it is first needed."""

    layout: SiteLayout
    options: BuildOptions

    @cached_property
    def url(self) -> URL:
        return store_url(self.options.address)

    @cached_property
    def kept(self) -> KeptBuild:
        """What the last build has made of the store."""
        return KeptBuild(self.layout.kept)

    @cached_property
    def data(self) -> SiteData:
        """What the store has. Raises ExtensionError where it cannot be read."""
        try:
            if self.options.address is None and is_missing(self.url):
                return with_comparisons(SiteData())
            catalogue.systems(), catalogue.models()  # else perfdb.toml is read within a page
            found = read.stored(self.url, _entries(self.options.accepted), self.kept.releases)
            found = settings.of_profile(found, self.options.profile)
            found = recipes.with_recipes(found, self.options.recipes)
            found = with_comparisons(
                found, self.options.notes, self.kept.pairs, hostnames=self.options.hostnames
            )
        except (PerfdbError, DBAPIError) as error:
            raise ExtensionError(f"perfdb.site: {error}") from error
        return found

    @cached_property
    def pages(self) -> dict[str, SitePage]:
        return {page.name: page for page in all_pages(self.data)}

    @cached_property
    def releases(self) -> dict[str, ReleaseData]:
        return {one.document: one for one in releases.of_data(self.data)}

    @cached_property
    def keys(self) -> dict[str, str]:
        """A hash of what each page is made from, by its name, and OVERVIEW."""
        of_pages = {name: key_of(page.body) for name, page in self.pages.items()}
        return of_pages | {OVERVIEW: digest_of(of_pages)}

    @cached_property
    def _rows(self) -> dict[int, WrittenRow]:
        """The place of each current result in the table of its release, by its number."""
        return {
            result.result_id: (release.exported, place)
            for release in self.kept.releases.values()
            for place, result in enumerate(release.current)
        }

    def written(self, results: Iterable[SiteResult]) -> Table:
        """Results as the file of all results has them; one that is not in it is written here."""
        return selected(self._rows.get(it.result_id) or (written([it]), 0) for it in results)

    def write(self) -> set[Path]:
        """Write the documents and the files they lead to; the files that there are now.

        Raises ExtensionError where a page written by hand is in the way.
        """
        layout, found = self.layout, self.data
        try:
            kept = {files.write_page(layout.page(it.name), it.text) for it in self.pages.values()}
        except FileExistsError as error:
            raise ExtensionError(f"perfdb.site: {error}") from error
        of_runs = [file for run in found.runs for file in run.files]
        if of_runs:
            with reading(self.url) as connection:
                untouched = files.untouched(layout)
                for file in of_runs:
                    path = layout.run_file(file)
                    kept.add(path)
                    if path not in untouched or file.name == RECORD:
                        stored, names = content(connection, file.sha256), found.hostnames
                        files.write(path, redaction.of_file(file.name, stored, hostnames=names))
        assert self.keys  # hashes of results are kept with them
        kept |= self.kept.save()
        layout.remove_others(kept)
        everything = layout.root / DOWNLOADS / EVERYTHING
        if found.current:
            shown = {(it.framework, it.release) for it in found.current}
            tables = [it.exported for name, it in self.kept.releases.items() if name in shown]
            kept.update(write_table(everything, joined(tables)))
        else:
            for gone in everything.parent.glob(f"{EVERYTHING}.*"):
                gone.unlink()
        what = f"{len(kept)} files" if found.results or found.runs else "no results yet"
        LOGGER.info("perfdb.site: %s from %s", what, self.url.render_as_string())
        return kept


def with_comparisons(
    found: SiteData,
    notes: Path | None = None,
    kept: KeptPairs | None = None,
    *,
    hostnames: bool = False,
) -> SiteData:
    """The data with what several kinds of pages show of it.

    `kept`: the comparisons of an earlier build. It then holds those of this one.
    Raises InputError for notes, in a folder, on what a report does not have.
    """
    made = release_pairs.compared(found.current, {} if kept is None else kept)
    return replace(
        found,
        pairs=tuple(release_pairs.told(pair, found.audited, notes) for pair in made),
        scaling=tuple(scaling.in_order(found.scaling, found.results)),
        hostnames=hostnames,
    )


def all_pages(found: SiteData) -> Iterator[SitePage]:
    """Every page of the site that is made from the store."""
    for pages in KINDS:
        yield from pages(found)


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
