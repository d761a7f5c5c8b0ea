"""Reads sources into the store, a batch at a time, audits it, and reports what became of them."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine

from perfdb.audit.check import AUDIT_VERSION, audit, stored
from perfdb.audit.report import ordered
from perfdb.db import findings, keys, migrate
from perfdb.db.session import retried, storing
from perfdb.db.tables import runs, sources
from perfdb.db.transfer import copied
from perfdb.errors import Diagnostic, InputError
from perfdb.ingest.find import Source, find
from perfdb.ingest.logs import read_source
from perfdb.ingest.options import SET, Checked, Options, checked, unknown_model
from perfdb.ingest.reads import PAGE, PageRows, Read, RunRead, Unattributed
from perfdb.ingest.report import Change, Report, changes, current
from perfdb.ingest.runs import RunFound
from perfdb.ingest.store import put
from perfdb.queries import catalog
from perfdb.queries import results as questions
from perfdb.record import Finding

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

    Releases with changed results are audited at the end, and the findings are kept.

    Raises InputError for a path that does not exist or an option that is wrong, and StoreError for
    a store that cannot be written or is of a newer version.
    """
    found = find(paths)
    with scratch() as folder, storing(url) as engine:
        migrate.upgrade(url)
        return _stored(engine, found, options, folder)


def preview(paths: Iterable[Path], url: URL, options: Options) -> tuple[Report, tuple[Change, ...]]:
    """What `ingest` would do to the store, tried on a copy of it; the store stays as it is.

    Raises InputError as `ingest` does, and StoreError for a store that cannot be read.
    """
    found = find(paths)
    with scratch() as folder, storing(copied(url, folder, PAGE)) as engine:
        before = current(engine)
        report = _stored(engine, found, options, folder)
        return report, changes(engine, before, report.read)


def _stored(engine: Engine, found: Sequence[Source], options: Options, folder: Path) -> Report:
    retried(lambda: _renew_specifications(engine))
    with engine.connect() as connection:
        versions = connection.execute(catalog.versions()).all()
    read_with = checked(options, folder, versions)
    if read_with.items and len(found) != 1:
        message = f"names results of one file, and {len(found)} files are read"
        raise InputError(Diagnostic(f"{SET} ITEM", message, remedy="name the file alone"))
    notes = tuple(unknown_model(read_with.settings))
    report = Report(options.of_pages_and_logs, notes=notes)
    for batch in _batches(options.watched(found), read_with):
        for one in put(engine, batch):
            report.add(one)
    for item in sorted(read_with.items.keys() - read_with.found):
        message = f"{found[0].where} has no result of this name or line"
        remedy = "an item is the line of its result in the file, or its path in a verification card"
        report.rejected += (Diagnostic(f"{SET} {item}", message, remedy=remedy),)
    report.rejected += tuple(read_with.not_found())
    return report.finish(audited(engine, report.run_ids, report.paths))


def _renew_specifications(engine: Engine) -> None:
    """The catalogue may have changed since its entries were stored."""
    with engine.connect() as connection:
        outdated = keys.outdated(connection)
    if outdated:
        with engine.begin() as connection:
            keys.renew(connection, outdated)


def _batches(found: Iterable[Source], options: Checked) -> Iterator[Sequence[Read | RunFound]]:
    """What the sources hold, in portions that memory holds and one transaction stores."""
    batch: list[Read | RunFound] = []
    size = 0
    for source in found:
        for one in read_source(source, options):
            batch.append(one)
            if isinstance(one, RunFound):
                size += one.size_bytes
            elif isinstance(one, RunRead):
                size += sum(file.size_bytes for file in one.files.by_name.values())
            elif isinstance(one, PageRows | Unattributed):
                size += one.source.size_bytes
            if len(batch) == MOST_SOURCES or size > MOST_BYTES:
                yield batch
                batch, size = [], 0
    yield batch


def audited(
    engine: Engine, run_ids: Collection[str], paths: Collection[str]
) -> tuple[Finding, ...]:
    """The findings of every release that runs and files give results of, as they are now stored.

    Every release that no audit has seen as it is now is audited, whatever its sources: a killed
    ingest leaves some, a change of the catalogue others, and another version may have other rules.
    Each is a transaction of its own, since no rule looks at two of them.
    """

    def to_audit() -> list[int]:
        with engine.connect() as connection:
            return sorted(connection.scalars(catalog.releases_to_audit(AUDIT_VERSION)))

    def audit_one(release_id: int) -> None:
        with engine.begin() as connection:
            audit_release(connection, release_id)

    for release_id in retried(to_audit):
        retried(partial(audit_one, release_id))
    return retried(partial(_findings, engine, run_ids, paths))


def audit_release(connection: Connection, release_id: int) -> None:
    """Audit a release and keep its findings, in the caller's transaction."""
    findings.mark(connection, release_id, AUDIT_VERSION)
    findings.replace(connection, release_id, audit(*stored(connection, [release_id])))


def _findings(engine: Engine, run_ids: Iterable[str], paths: Iterable[str]) -> tuple[Finding, ...]:
    with engine.connect() as connection:
        release_ids: set[int] = set()
        for some in keys.chunks(run_ids):
            which = keys.among(connection, runs.c.run_id, some)
            release_ids.update(connection.scalars(catalog.releases_of_runs(which)))
        for some in keys.chunks(paths):
            which = keys.among(connection, sources.c.path, some)
            release_ids.update(connection.scalars(catalog.releases_of_files(which)))
        rows = (
            row
            for some in keys.chunks(release_ids)
            for row in connection.execute(questions.findings_of_releases(some)).mappings()
        )
        return ordered(map(Finding.model_validate, rows))


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
