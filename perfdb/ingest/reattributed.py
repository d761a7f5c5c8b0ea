"""Says of a log that was stored as a run of something else: it is the same run as before."""

from typing import Final

from sqlalchemy import Connection

from perfdb.errors import Problem
from perfdb.ingest.read import RunRead
from perfdb.queries import catalog
from perfdb.record import Release

_REMEDY: Final = "to take that back, read it again with the options of before"


def note(connection: Connection, read: RunRead) -> Problem | None:
    """What the run of a log counted for until now, where it is to count for something else."""
    if read.run.run.recipe is not None:
        return None
    row = connection.execute(catalog.said_of(read.run.run.run_id)).first()
    case, release = read.run.result.case, read.run.result.release
    if row is None or (row.key, row.release_key) == (case.key, release.key):
        return None
    earlier = Release(framework=row.release_framework, version=row.version)
    before = f"{row.model} on {row.num_gpus} × {row.system}, {earlier.name}"
    after = f"{case.model} on {case.num_gpus} × {case.system}, {release.name}"
    if before == after:
        after = "the same with other settings"
    message = f"it is the same run as before: it was of {before}, and is of {after} from now on"
    return Problem(read.path, message, remedy=_REMEDY)
