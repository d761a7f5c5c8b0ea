"""Reads sources into the store, a batch at a time, and says what became of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import URL, Engine

from perfdb.db import keys, migrate
from perfdb.db.session import retried, storing
from perfdb.db.transfer import copied
from perfdb.ingest import audited, names, planned, spellings
from perfdb.ingest.find import Source, find
from perfdb.ingest.logs import read_any
from perfdb.ingest.put import put
from perfdb.ingest.read import PAGE, PassedOver, Read, RunFound, find_files, size_bytes
from perfdb.ingest.report import Report, Tally
from perfdb.ingest.scratch import scratch
from perfdb.ingest.words import LogOptions, Words, words
from perfdb.pages.base import PageContext
from perfdb.rundir import RunDir

MOST_SOURCES = 500
"""The most sources that are read before they are stored: that many make the largest transaction."""

MOST_BYTES = 16 << 20
"""The most bytes that are read before they are stored, unless a single source has more."""


@dataclass(frozen=True)
class Options:
    """What pages and logs do not say of themselves, and who watches the sources go by."""

    context: PageContext = field(default_factory=PageContext)
    watched: Callable[[Sequence[Source]], Iterable[Source]] = iter
    logs: LogOptions = field(default_factory=LogOptions)

    @property
    def of_pages_and_logs(self) -> tuple[str, ...]:
        """The options given that say what something is, which a run directory does itself."""
        said = {**vars(self.context), "set": self.logs.settings or None}
        return tuple(f"--{name}" for name, value in said.items() if value is not None)


def ingest(paths: Iterable[Path], url: URL, options: Options) -> Report:
    """Store every run, page and log at or below the paths; make or upgrade the store if need be.

    Releases whose results have changed are audited at the end, and what is found is kept.

    Raises InputError for a path that does not exist or an option that is wrong, and StoreError for
    a store that cannot be written or is of a newer version.
    """
    sources = find(paths)
    with scratch() as folder, storing(url) as engine:
        retried(lambda: migrate.upgrade(url))
        return _stored(engine, sources, options, folder)[0]


def preview(
    paths: Iterable[Path], url: URL, options: Options
) -> tuple[Report, tuple[planned.Change, ...]]:
    """What `ingest` would do to the store, tried on a copy of it; the store stays as it is.

    Raises InputError as `ingest` does, and StoreError for a store that cannot be read.
    """
    sources = find(paths)
    with scratch() as folder, storing(copied(url, folder, PAGE)) as engine:
        before = planned.in_force(engine)
        report, tally = _stored(engine, sources, options, folder)
        return report, planned.changes(engine, before, tally.read)


def _stored(
    engine: Engine, sources: Sequence[Source], options: Options, folder: Path
) -> tuple[Report, Tally]:
    retried(lambda: _renew_specifications(engine))
    tally = Tally(not_taken=options.of_pages_and_logs)
    given = replace(
        words(options.context, options.logs, folder), spellings=spellings.of_store(engine)
    )
    for batch in _batches(options.watched(sources), given):
        for stored in put(engine, batch):
            tally.count(stored)
    return tally.report(audited.audited(engine, tally.run_ids, tally.paths)), tally


def _renew_specifications(engine: Engine) -> None:
    """The catalogue may have changed since its entries were stored."""
    with engine.connect() as connection:
        outdated = keys.outdated(connection)
    if outdated:
        with engine.begin() as connection:
            keys.renew(connection, outdated)


def _batches(sources: Iterable[Source], given: Words) -> Iterator[Sequence[Read | RunFound]]:
    """What the sources hold, in portions that memory holds and one transaction stores."""
    batch: list[Read | RunFound] = []
    size = 0
    for source in sources:
        for one in _found(source, given):
            batch.append(one)
            size += size_bytes(one)
            if len(batch) == MOST_SOURCES or size > MOST_BYTES:
                yield batch
                batch, size = [], 0
    yield batch


def _found(source: Source, given: Words) -> Iterable[Read | RunFound]:
    if source.kind == "linked":
        return [PassedOver(names.shown(str(source.path)), "linked")]
    if source.kind == "run":
        return [find_files(RunDir(source.path), given.window, given.scratch)]
    return read_any(source, given)
