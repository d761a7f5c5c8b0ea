"""Reads sources into the store, a batch at a time, and reports what became of them."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Engine

from perfdb.db import keys, migrate
from perfdb.db.session import retried, storing
from perfdb.db.transfer import copied
from perfdb.ingest import changes
from perfdb.ingest.base import PAGE, PageRows, Read, RunRead, Unattributed
from perfdb.ingest.find import Source, find
from perfdb.ingest.findings import audited
from perfdb.ingest.logs import read_source
from perfdb.ingest.options import Checked, Options, checked
from perfdb.ingest.report import Report, Tally
from perfdb.ingest.runs import RunFound
from perfdb.ingest.store import put
from perfdb.queries import catalog

MOST_SOURCES: Final = 500
"""The most sources that are read before they are stored: that many make the largest transaction."""

MOST_BYTES: Final = 16 << 20
"""The most bytes that are read before they are stored, unless a single source has more."""

PREFIX: Final = "perfdb-ingest-"
LOCK: Final = "lock"

SETTLED_S: Final = 3600.0
"""A folder without a lock may be one that is being made, unless it is older than this."""


def ingest(paths: Iterable[Path], url: URL, options: Options) -> Report:
    """Store every run, page and log at or below the paths; make or upgrade the store if need be.

    Releases whose results have changed are audited at the end, and the findings are kept.

    Raises InputError for a path that does not exist or an option that is wrong, and StoreError for
    a store that cannot be written or is of a newer version.
    """
    sources = find(paths)
    with scratch() as folder, storing(url) as engine:
        retried(lambda: migrate.upgrade(url))
        return _stored(engine, sources, options, folder)[0]


def preview(
    paths: Iterable[Path], url: URL, options: Options
) -> tuple[Report, tuple[changes.Change, ...]]:
    """What `ingest` would do to the store, tried on a copy of it; the store stays as it is.

    Raises InputError as `ingest` does, and StoreError for a store that cannot be read.
    """
    sources = find(paths)
    with scratch() as folder, storing(copied(url, folder, PAGE)) as engine:
        before = changes.current(engine)
        report, tally = _stored(engine, sources, options, folder)
        return report, changes.changes(engine, before, tally.read)


def _stored(
    engine: Engine, sources: Sequence[Source], options: Options, folder: Path
) -> tuple[Report, Tally]:
    retried(lambda: _renew_specifications(engine))
    with engine.connect() as connection:
        versions = connection.execute(catalog.versions()).all()
    read_with = checked(options, folder, versions)
    tally = Tally(unused_options=options.of_pages_and_logs)
    for batch in _batches(options.watched(sources), read_with):
        for stored in put(engine, batch):
            tally.count(stored)
    return tally.report(audited(engine, tally.run_ids, tally.paths)), tally


def _renew_specifications(engine: Engine) -> None:
    """The catalogue may have changed since its entries were stored."""
    with engine.connect() as connection:
        outdated = keys.outdated(connection)
    if outdated:
        with engine.begin() as connection:
            keys.renew(connection, outdated)


def _batches(sources: Iterable[Source], options: Checked) -> Iterator[Sequence[Read | RunFound]]:
    """What the sources hold, in portions that memory holds and one transaction stores."""
    batch: list[Read | RunFound] = []
    size = 0
    for source in sources:
        for one in read_source(source, options):
            batch.append(one)
            size += _size_bytes(one)
            if len(batch) == MOST_SOURCES or size > MOST_BYTES:
                yield batch
                batch, size = [], 0
    yield batch


def _size_bytes(read: Read | RunFound) -> int:
    """How many bytes of its files a source holds."""
    if isinstance(read, RunFound):
        return read.size_bytes
    if isinstance(read, RunRead):
        return sum(file.size_bytes for file in read.files.by_name.values())
    return read.source.size_bytes if isinstance(read, PageRows | Unattributed) else 0


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder that is gone at the end, after those that a killed ingest left.

    It is held by a lock that the kernel releases however the process ends.
    """
    sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with (folder / f"{LOCK}.new").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            (folder / f"{LOCK}.new").rename(folder / LOCK)
            yield folder


def sweep(parent: Path) -> None:
    """Remove the folders of processes that were killed; of this user alone."""
    with suppress(OSError):  # a temporary folder that cannot be listed is for somebody else
        for folder in parent.glob(f"{PREFIX}*"):
            if folder.stat().st_uid == os.getuid() and _is_left(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    try:
        with (folder / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return time.time() - folder.stat().st_mtime > SETTLED_S
    except BlockingIOError:
        return False
    return True
