"""Reads sources into the store, a batch at a time, and says what became of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, Engine

from perfdb.db import migrate, specifications
from perfdb.db.rows import ResultRow
from perfdb.db.session import retried, storing
from perfdb.ingest import audited
from perfdb.ingest.find import Source, find
from perfdb.ingest.logs import read_any
from perfdb.ingest.put import Stored, put
from perfdb.ingest.read import (
    Read,
    RunFound,
    find_files,
    problems_of,
    results_of,
    size_bytes,
)
from perfdb.ingest.report import Report, Tally
from perfdb.ingest.scratch import scratch
from perfdb.ingest.words import LogOptions, Words, words
from perfdb.pages import PageContext
from perfdb.rundir import RunDir

MOST_SOURCES = 500
"""The most sources that are read before they are stored: that many make the largest transaction."""

MOST_BYTES = 16 << 20
"""The most bytes that are read before they are stored, unless a single source has more."""


def _in_turn(sources: Sequence[Source]) -> Iterable[Source]:
    return sources


@dataclass(frozen=True)
class Options:
    """What pages and logs do not say of themselves, and who watches the sources go by."""

    context: PageContext = field(default_factory=PageContext)
    watched: Callable[[Sequence[Source]], Iterable[Source]] = _in_turn
    logs: LogOptions = field(default_factory=LogOptions)


def ingest(paths: Iterable[Path], url: URL, options: Options) -> Report:
    """Store every run, page and log at or below the paths; make or upgrade the store if need be.

    The releases that they are of are audited at the end, and what is found is kept.

    Raises InputError for a path that does not exist or an option that is wrong, and StoreError for
    a store that cannot be written or is of a newer version.
    """
    sources = find(paths)
    tally = Tally()
    with scratch() as folder, storing(url) as engine:
        retried(lambda: migrate.upgrade(url))
        retried(lambda: _renew_specifications(engine))
        for batch in _batches(sources, options, folder):
            for stored in put(engine, batch):
                tally.count(stored)
        return tally.report(audited.audited(engine, tally.run_ids, tally.paths))


def preview(paths: Iterable[Path], options: Options) -> tuple[list[ResultRow], Report]:
    """The results that the paths hold, and what would be rejected; nothing is stored."""
    rows: list[ResultRow] = []
    tally = Tally()
    with scratch() as folder:
        given = words(options.context, options.logs, folder)
        for source in options.watched(find(paths)):
            for read in read_any(source, given):
                rows += results_of(read)
                tally.count(Stored(read, problems=tuple(problems_of(read))))
    return rows, tally.report(())


def _renew_specifications(engine: Engine) -> None:
    """The catalogue may have changed since its entries were stored."""
    with engine.connect() as connection:
        outdated = specifications.outdated(connection)
    if outdated:
        with engine.begin() as connection:
            specifications.renew(connection, outdated)


def _batches(
    sources: Sequence[Source], options: Options, folder: Path
) -> Iterator[Sequence[Read | RunFound]]:
    """What the sources hold, in portions that memory holds and one transaction stores."""
    given = words(options.context, options.logs, folder)
    batch: list[Read | RunFound] = []
    size = 0
    for source in options.watched(sources):
        for one in _found(source, given):
            batch.append(one)
            size += size_bytes(one)
            if len(batch) == MOST_SOURCES or size > MOST_BYTES:
                yield batch
                batch, size = [], 0
    yield batch


def _found(source: Source, given: Words) -> Iterable[Read | RunFound]:
    if source.kind == "run":
        return [find_files(RunDir(source.path), given.window, given.scratch)]
    return read_any(source, given)
