"""Checks of the tables against one another: bytes, references, revisions, orphans."""

import hashlib
from collections.abc import Iterator

from sqlalchemy import Connection, RowMapping

from perfdb.db.sources import content_of
from perfdb.db.tables import cases, metadata, models, releases, results, runs, systems
from perfdb.errors import DamagedBytesError
from perfdb.queries import checks
from perfdb.units import counted
from perfdb.verify.base import Fault, Watch


def sources(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """The bytes of every source decompress, and have its size and SHA-256."""
    rows = connection.execute(checks.all_sources()).mappings().all()
    for row in watch(rows, len(rows)):
        digest, size = hashlib.sha256(), 0
        try:
            for chunk in content_of(connection, row["id"]):
                digest.update(chunk)
                size += len(chunk)
        except DamagedBytesError as error:
            yield Fault(row["path"], f"source {row['id']}: the bytes are damaged: {error}")
            continue
        if size != row["size_bytes"]:
            message = f"{size:,} bytes, not the {row['size_bytes']:,} that were read"
            yield Fault(row["path"], f"source {row['id']}: {message}")
        elif digest.hexdigest() != row["sha256"]:
            message = f"SHA-256 {digest.hexdigest()}, not {row['sha256']}"
            yield Fault(row["path"], f"source {row['id']}: {message}")


def references(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """Every row that another row refers to exists."""
    foreign = [
        (column, key.column)
        for table in metadata.sorted_tables
        for column in table.columns
        for key in column.foreign_keys
    ]
    for column, target in watch(foreign, len(foreign)):
        count = connection.scalar(checks.dangling(column, target))
        if count:
            refer = "refers" if count == 1 else "refer"
            what = f"{counted(count, 'row')} {refer} to {target.table.name} that are not there"
            yield Fault(f"{column.table.name}.{column.name}", what)


def revisions(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """Revisions count from 1 without a gap; at most one is in force, and that is the newest.

    Exactly one result of a run is in force, or none if the run was withdrawn.
    """
    rows = connection.execute(checks.revisions()).mappings().all()
    for row in watch(rows, len(rows)):
        yield from (Fault(f"result {row['key']}", message) for message in _of_revisions(row))
    for key, revision in connection.execute(checks.in_force_and_superseded_at()):
        yield Fault(f"result {key}", f"revision {revision} is in force and has superseded_at")
    for run_id, withdrawn, count in connection.execute(checks.runs_by_results_in_force()):
        but = "" if withdrawn is None else ", and it is withdrawn"
        yield Fault(f"run {run_id}", f"{count} of its results {_are(count)} in force{but}")


def _are(count: object) -> str:
    return "is" if count == 1 else "are"


def _of_revisions(row: RowMapping) -> Iterator[str]:
    count, last, newest = row["count"], row["last"], row["newest_in_force"]
    if (row["first"], last) != (1, count):
        yield f"{counted(count, 'revision')} {_are(count)} numbered {row['first']} to {last}"
    if row["in_force"] > 1:
        yield f"{row['in_force']} revisions are in force"
    elif newest not in (None, last):
        yield f"revision {newest} is in force, not {last}, the newest"


_ORPHANS = {
    "run without a result": checks.unused(runs.c.run_id, runs.c.id, results.c.run_id),
    "case without a result": checks.unused(cases.c.key, cases.c.id, results.c.case_id),
    "release without a result": checks.unused(releases.c.key, releases.c.id, results.c.release_id),
    "system without a case": checks.unused(systems.c.name, systems.c.id, cases.c.system_id),
    "model without a case": checks.unused(models.c.name, models.c.id, cases.c.model_id),
    "measured result without a run": checks.measured_without_run(),
}


def orphans(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """Runs have results, measured results a run; each case, release, system and model is used."""
    for what, question in watch(_ORPHANS.items(), len(_ORPHANS)):
        yield from (Fault(name, what) for name in connection.scalars(question))
