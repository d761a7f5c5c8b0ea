"""What was run before in an output folder: the finished, and those whose runner died."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from perfdb.errors import Problem, RunDirError
from perfdb.record import Outcome, RunRecord
from perfdb.rundir import RunDir, find_runs

Measurement = tuple[str, str, int, int]
"""Case key, release key, warm-up steps, measured steps: what makes a run the one that is wanted."""


@dataclass(frozen=True)
class History:
    """Finished runs by case and release, runs of another living runner, and unreadable ones."""

    finished: Mapping[Measurement, tuple[RunDir, ...]]
    running: frozenset[Measurement]
    problems: tuple[Problem, ...]

    @property
    def done(self) -> Counter[Measurement]:
        """How many runs of each measurement have finished."""
        return Counter({key: len(runs) for key, runs in self.finished.items()})


def read(output: Path) -> History:
    """The history of a folder. A run whose runner is gone is marked interrupted in its run.json."""
    finished: dict[Measurement, tuple[RunDir, ...]] = {}
    running: set[Measurement] = set()
    problems: list[Problem] = []
    for run in find_runs(output) if output.is_dir() else []:
        try:
            record = run.read_record()
        except RunDirError as error:
            problems += error.problems
            continue
        key = (
            record.case.key, record.release.key, record.warmup_steps, record.measured_steps,
        )  # fmt: skip
        if record.outcome is None and run.in_progress():
            running.add(key)
        elif record.outcome is None:
            mark_interrupted(run, record)
        elif record.outcome is Outcome.FINISHED:
            finished[key] = (*finished.get(key, ()), run)
    return History(finished, frozenset(running), tuple(problems))


def mark_interrupted(run: RunDir, record: RunRecord) -> None:
    """Say in run.json that the run was cut off."""
    reason = "the runner was killed before the run ended"
    run.write_record(record.ended(Outcome.INTERRUPTED, datetime.now(UTC), -9, reason))
