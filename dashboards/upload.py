"""A visitor's own file, read as `perfdb ingest` reads it, into a store that is gone at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import pandas as pd
from sqlalchemy import URL

from perfdb.compare.releases import of_rows
from perfdb.db.session import reading, store_url
from perfdb.errors import Diagnostic, InputError
from perfdb.ingest import LogOptions, Options, Report, ingest
from perfdb.ingest.pipeline import scratch
from perfdb.queries import results, runs
from perfdb.record import Result

MOST_MIB = 64
"""The most that a visitor may send; a run directory with its logs has a few."""

UNPACKED_GIB = 1
"""The most that it may unpack to."""

_TURN = Lock()
"""Alembic migrates one store at a time in a process."""


@dataclass(frozen=True)
class Upload:
    """What a file holds: its results, the steps of its runs by run id, and what to say of it."""

    results: tuple[Result, ...] = ()
    steps: tuple[tuple[str, pd.DataFrame], ...] = ()
    rejected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read(name: str, content: bytes, settings: Sequence[str] = ()) -> Upload:
    """Read a file by its name and bytes; `settings` are those of `perfdb ingest --set`.

    What is wrong with it is part of the answer, in the words of `perfdb ingest`.
    """
    if len(content) > MOST_MIB << 20:
        remedy = "ingest it into a store of your own"
        problem = Diagnostic(name, f"larger than {MOST_MIB} MiB", remedy=remedy)
        return Upload(rejected=(str(problem),))
    options = Options(logs=LogOptions(tuple(settings), archive_limit_gib=UNPACKED_GIB))
    with _TURN, scratch() as folder:
        path = folder / "upload" / Path(name).name
        path.parent.mkdir()
        path.write_bytes(content)
        url = store_url(str(folder / "store.sqlite"))
        try:
            report = ingest([path], url, options)
        except InputError as error:
            found = Upload(rejected=tuple(map(str, error.problems)))
        else:
            found = _stored(url, report)
        return _named(found, f"{path.parent}/")


def _stored(url: URL, report: Report) -> Upload:
    with reading(url) as connection:
        rows = connection.execute(results.every()).mappings().all()
        found = of_rows(dict(row) for row in rows)
        steps = []
        for one in found:
            if one.run_id:
                answer = connection.execute(runs.steps_of(one.run_id))
                table = pd.DataFrame([tuple(row) for row in answer], columns=list(answer.keys()))
                steps.append((one.run_id, table))
    rejected = [str(problem) for problem in report.rejected]
    rejected += [f"still running: {path}" for path in report.still_running]
    # what states no release is shown all the same; what states no case has no result
    rejected += [str(problem) for problem in report.unattributed if not found]
    if not (found or rejected):
        rejected = ["nothing to read: no run directory, page or log with results there"]
    return Upload(found, tuple(steps), tuple(rejected), tuple(map(str, report.notes)))


def _named(found: Upload, folder: str) -> Upload:
    """The messages with the visitor's own names of files."""
    rejected, notes = (
        tuple(text.replace(folder, "") for text in some) for some in (found.rejected, found.notes)
    )
    return Upload(found.results, found.steps, rejected, notes)
