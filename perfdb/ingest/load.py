"""Reads sources into the store, a batch at a time, and says what became of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL
from sqlalchemy.exc import InternalError, OperationalError, ProgrammingError

from perfdb.db import migrate
from perfdb.db.rows import ResultRow
from perfdb.db.session import writer
from perfdb.errors import StoreError
from perfdb.ingest import audited
from perfdb.ingest.find import Source, find
from perfdb.ingest.logs import LogOptions, read_any, words
from perfdb.ingest.put import Stored, put
from perfdb.ingest.read import Read, RunFound, find_files, problems_of, results_of, size_bytes
from perfdb.ingest.report import Report, Tally
from perfdb.ingest.retry import retried
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
    engine = writer(url)
    tally = Tally()
    try:
        retried(lambda: migrate.upgrade(url))
        for batch in _batches(sources, options):
            for stored in put(engine, batch):
                tally.count(stored)
        return tally.report(audited.audited(engine, tally.run_ids, tally.paths))
    except (OperationalError, InternalError, ProgrammingError) as error:
        raise StoreError(f"{url.render_as_string()}: {error.orig}") from error
    finally:
        engine.dispose()


def preview(paths: Iterable[Path], options: Options) -> tuple[list[ResultRow], Report]:
    """The results that the paths hold, and what would be rejected; nothing is stored."""
    given = words(options.context, options.logs)
    rows: list[ResultRow] = []
    tally = Tally()
    for source in options.watched(find(paths)):
        for read in read_any(source, given):
            rows += results_of(read)
            tally.count(Stored(read, problems=tuple(problems_of(read))))
    return rows, tally.report(())


def _batches(sources: Sequence[Source], options: Options) -> Iterator[Sequence[Read | RunFound]]:
    """What the sources hold, in portions that memory holds and one transaction stores."""
    given = words(options.context, options.logs)
    batch: list[Read | RunFound] = []
    size = 0
    for source in options.watched(sources):
        found = (
            [find_files(RunDir(source.path))] if source.kind == "run" else read_any(source, given)
        )
        for one in found:
            batch.append(one)
            size += size_bytes(one)
            if len(batch) == MOST_SOURCES or size > MOST_BYTES:
                yield batch
                batch, size = [], 0
    yield batch
