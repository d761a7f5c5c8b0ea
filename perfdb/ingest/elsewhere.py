"""Holds a log to what the store says of the same bytes: at another path, or of something else."""

from dataclasses import dataclass, replace

from sqlalchemy import Connection, RowMapping

from perfdb import said_before
from perfdb.attribute import Attributed
from perfdb.db import keys
from perfdb.errors import Diagnostic
from perfdb.ingest.fallback import spellings
from perfdb.ingest.read import RunRead
from perfdb.queries import runs as questions
from perfdb.record import Release


@dataclass(frozen=True)
class Held:
    """A run that was read, by what holds of it; and whether the store has it just so.

    `withdrawn` says why the run does not count, where it does not.
    """

    read: RunRead
    stays: bool = False
    withdrawn: str | None = None


def held(connection: Connection, read: RunRead) -> Held:
    """A log whose bytes the store has of another path is of what was said there, and a note says
    which of the fields that are said now do not hold. A file beside it adds nothing where another
    one of its format lay beside it there. Any other run is as it was read.
    """
    row = _row(connection, read) if read.anew else None
    if row is None or read.anew is None:
        return Held(read)
    result = read.run.result
    now, before = Attributed(result.case, result.release), _before(row)
    rival = _rival(connection, read)
    run = read.anew(replace(now, case=before.case) if rival else now, before)
    holds = Attributed(run.result.case, run.result.release)
    notes = (*read.notes, *_notes(read.path, row["path"], now, holds, rival))
    read = replace(read, run=run, notes=notes)
    same_reader = row["parser_version"] == read.files.parser_version
    stays = same_reader and read.window is None and _keys(holds) == _keys(before)
    return Held(read, stays, row["withdrawn"])


def _row(connection: Connection, read: RunRead) -> RowMapping | None:
    """What the store has of a run, if it was read from another path."""
    row = connection.execute(questions.said_of(read.run.run.run_id)).mappings().first()
    is_here = row is not None and row["path"] in spellings(read.files.record_file.path)
    return None if is_here else row


def told_of(connection: Connection, run_id: str) -> Attributed:
    """The case and the release that the store has of a run."""
    return _before(connection.execute(questions.said_of(run_id)).mappings().one())


def _before(row: RowMapping) -> Attributed:
    release = Release(
        framework=row["release_framework"],
        version=row["version"],
        container=row["container"],
        container_digest=row["container_digest"],
    )
    return Attributed(keys.case_of(row), release)


def _rival(connection: Connection, read: RunRead) -> str | None:
    """The file beside a log that is another one than lay beside the same bytes before."""
    stored = dict(connection.execute(questions.hashes_of(read.run.run.run_id)).all())
    for name, file in read.files.by_name.items():
        if name != read.files.record and stored.get(file.parser, file.sha256) != file.sha256:
            return name
    return None


def _notes(
    path: str, other: str, now: Attributed, holds: Attributed, rival: str | None
) -> tuple[Diagnostic, ...]:
    untaken = ", ".join(said_before.untaken(now, holds))
    beside = f", beside which is another file than {rival}" if rival else ""
    what = untaken or ("all of it" if rival else "")
    message = f"the same bytes as {other}{beside}; what was said there holds: {what}"
    return (Diagnostic(path, message, remedy="--set says otherwise"),) if what else ()


def reattributed(connection: Connection, read: RunRead) -> Diagnostic | None:
    """What the run of a log counted for until now, where it is to count for something else."""
    if read.run.run.recipe is not None:
        return None
    row = connection.execute(questions.said_of(read.run.run.run_id)).first()
    case, release = read.run.result.case, read.run.result.release
    if row is None or (row.key, row.release_key) == (case.key, release.key):
        return None
    earlier = Release(framework=row.release_framework, version=row.version)
    before = f"{row.model} on {row.num_gpus} × {row.system}, {earlier.name}"
    after = f"{case.model} on {case.num_gpus} × {case.system}, {release.name}"
    if before == after:
        after = "the same with other settings"
    message = f"it is the same run as before: it was of {before}, and is of {after} from now on"
    remedy = "to take that back, read it again with the options of before"
    return Diagnostic(read.path, message, remedy=remedy)


def _keys(of: Attributed) -> tuple[str, str]:
    return of.case.key, of.release.key
