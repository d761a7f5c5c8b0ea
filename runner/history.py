"""What ran before in an output folder, and the lock of each measurement there."""

import fcntl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from perfdb.errors import Diagnostic, RunDirError
from perfdb.jsonfile import content_hash
from perfdb.messages import note_text
from perfdb.recipe import RunSpec
from perfdb.record import Outcome, Release
from perfdb.run_record import RunRecord
from perfdb.rundir import RunDir, find_runs
from perfdb.validity import damage, judged, model_shape

Measurement = tuple[str, str, int, int, int, str]
"""Case key, release key, warm-up steps, measured steps, seed, kind: of the same are repeats."""

_LOCKS = ".locks"
"""A folder inside the output folder, with one file per measurement."""


@dataclass(frozen=True)
class History:
    """Finished runs by measurement, measurements that another runner works on, and problems.

    `cut_off` are runs without a recorded end, from a runner that has died; `submitted` are those
    of them that Slurm has, or may have.
    """

    finished: Mapping[Measurement, tuple[RunDir, ...]]
    running: frozenset[Measurement] = frozenset()
    problems: tuple[Diagnostic, ...] = ()
    cut_off: tuple[RunDir, ...] = ()
    submitted: Mapping[Measurement, Sequence[RunDir]] = field(default_factory=dict)


def read(output: Path, wanted: Measurement | None = None) -> History:
    """The history of a folder, or of one measurement there; nothing is written."""
    finished: dict[Measurement, dict[str, RunDir]] = {}
    running: set[Measurement] = set()
    problems: list[Diagnostic] = []
    cut_off: list[RunDir] = []
    submitted: dict[Measurement, list[RunDir]] = {}
    for run in find_runs(output) if output.is_dir() else []:
        is_held = run.in_progress()  # first: a runner records the end of a run, then releases it
        try:
            record = run.read_record()
        except RunDirError as error:
            problems += error.problems
            continue
        key, is_job = _planned_as(run, record), run.job.is_file()
        if wanted not in (None, key):
            continue
        if record.outcome is None and is_held:
            running.add(key)
        elif record.outcome is None:
            left = submitted.setdefault(key, []) if is_job else cut_off
            left.append(run)
        elif record.outcome is Outcome.FINISHED and (why := _withheld(run, record)):
            problems.append(
                Diagnostic(str(run.path), f"says that it finished, and does not count: {why}")
            )
        elif record.outcome is Outcome.FINISHED:
            finished.setdefault(key, {}).setdefault(record.run_id, run)  # a copy is no repeat
    runs = {key: tuple(by_id.values()) for key, by_id in finished.items()}
    return History(runs, frozenset(running), tuple(problems), tuple(cut_off), submitted)


def _planned_as(run: RunDir, record: RunRecord) -> Measurement:
    """The measurement that was planned: nobody knew then which version is in an image."""
    release = record.release
    if release.container and run.job.is_file():
        release = release.model_copy(update={"version": None})
    return measurement(record, release)


def _withheld(run: RunDir, record: RunRecord) -> str | None:
    """Why a finished run does not count; `perfdb ingest` applies the same rules."""
    try:
        worker, steps = run.read_worker(), run.parse_steps()
    except (RunDirError, OSError) as error:
        return str(error)
    if problem := damage(str(run.steps), steps):
        return str(problem)
    _, why = judged(record, steps, worker)
    note = why or model_shape(record.case.model, worker.configuration)
    return note_text(note) if note else None


def measurement(of: RunSpec | RunRecord, release: Release) -> Measurement:
    """The measurement that a case asks for, or that a run is of."""
    return (of.case.key, release.key, of.warmup_steps, of.measured_steps, of.seed, of.kind.value)


def mark_interrupted(before: History) -> None:
    """Record in run.json of each run that was cut off that it was interrupted."""
    reason = "the runner was killed, or could not write, before the run ended"
    for run in before.cut_off:
        record = run.read_record()
        run.write_record(record.ended(Outcome.INTERRUPTED, datetime.now(UTC), -9, reason))


@contextmanager
def claimed(output: Path, wanted: Measurement) -> Iterator[History | None]:
    """Lock a measurement in a folder until the block ends; gives its history.

    None if another runner holds it.
    """
    with locked(output, wanted) as is_mine:
        yield read(output, wanted) if is_mine else None


@contextmanager
def locked(output: Path, wanted: Measurement) -> Iterator[bool]:
    """Lock a measurement in a folder until the block ends; false if another runner holds it.

    The system releases the lock when a process dies.
    """
    locks = output / _LOCKS
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / content_hash({"measurement": wanted})).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
