"""What is known of a job: its intent, its own end and Slurm's account; and what follows. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from perfdb.record import Frozen, Outcome
from runner.diagnosis import Diagnosis

FIELDS: Final = ("JobID", "RestartCnt", "NumNodes", "TimeUsed", "State", "Name", "Reason")
"""Of `squeue -O`, in words that have not changed since Slurm 20.02, each followed by a `|`."""
ACCOUNTED: Final = ("JobIDRaw", "NNodes", "Elapsed", "State", "JobName")
"""Likewise of `sacct -o`."""
LOST_AFTER_S: Final = 300
"""A job is lost that Slurm has not known for so long, without a break, and that left no end."""
MARK_AFTER_S: Final = 30
"""How much later than Slurm's answer a file may arrive over the network."""
SUBMITTED_AFTER_S: Final = 10
"""How much later than sbatch ended its job may first be seen."""

_BROKEN_OFF: Final = {
    "CANCELLED": "the job was cancelled",
    "PREEMPTED": "another job took its nodes (PREEMPTED)",
    "NODE_FAIL": "a node of it failed (NODE_FAIL)",
    "BOOT_FAIL": "a node of it did not start (BOOT_FAIL)",
    "REVOKED": "another cluster took it (REVOKED)",
}
_OVERDUE: Final = ("TIMEOUT", "DEADLINE")
_OVER: Final = (*_BROKEN_OFF, *_OVERDUE, "COMPLETED", "FAILED", "OUT_OF_MEMORY")


class JobIntent(Frozen):
    """What is asked of Slurm, written before it is asked; then the number of the job."""

    name: str
    """The name of the job, which no other job has."""
    case_name: str
    num_nodes: int
    limit_s: int
    written_at: datetime
    after: tuple[int, ...] = ()
    """The jobs that it waits for, however these end."""
    job_id: int | None = None


class JobEnd(Frozen):
    """What the script of a job writes at its end."""

    exit_code: int
    job_id: int
    restarts: int
    num_nodes: int
    signal: str
    nodes: str
    started_at_s: int
    ended_at_s: int


@dataclass(frozen=True)
class JobState:
    """What Slurm says of a job."""

    job_id: int
    restarts: int
    num_nodes: int
    elapsed: str
    state: str
    name: str
    reason: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it will not run any more."""
        return self.state in _OVER


def of_squeue(printed: str) -> dict[str, list[JobState]]:
    """Jobs by their names, in the lines of squeue."""
    last = len(FIELDS) - 1
    lines = (line for line in printed.splitlines() if line.count("|") >= last)
    cells = (line.split("|", last) for line in lines)
    return _named(
        JobState(int(number), int(restarts), int(nodes), elapsed, state, name, why.rstrip("|"))
        for number, restarts, nodes, elapsed, state, name, why in cells
        if number.isdecimal() and restarts.isdecimal() and nodes.isdecimal()
    )


def of_sacct(printed: str) -> dict[str, list[JobState]]:
    """Jobs that are over by their names, in the lines of sacct, which says `CANCELLED by 1000`.

    Of several attempts of a job it is the last, which sacct prints last. What is not over is left
    out: sacct may say RUNNING for ever of a job whose controller has forgotten it.
    """
    cells = (line.split("|") for line in printed.splitlines())
    attempts = (
        JobState(int(cell[0]), 0, int(cell[1]), cell[2], cell[3].partition(" ")[0], cell[4])
        for cell in cells
        if len(cell) >= len(ACCOUNTED) and cell[0].isdecimal() and cell[1].isdecimal()
    )
    last = {(job.name, job.job_id): job for job in attempts}
    return _named(job for job in last.values() if job.is_over)


def _named(jobs: Iterable[JobState]) -> dict[str, list[JobState]]:
    named: dict[str, list[JobState]] = {}
    for job in jobs:
        named.setdefault(job.name, []).append(job)
    return named


def seen(
    jobs: Mapping[str, list[JobState]], intent: JobIntent, started: int | None
) -> JobState | None:
    """The job of an intent among those of Slurm, by its name: numbers come again.

    Where there are two, it is the one that has started, else the one that is known, else the first.
    """
    found = sorted(jobs.get(intent.name, ()), key=lambda job: job.job_id)
    for number in (started, intent.job_id):
        for job in found:
            if job.job_id == number:
                return job
    return found[0] if found else None


def of_attempt(end: JobEnd | None, job: JobState | None) -> JobEnd | None:
    """The end that a job has left, unless it is of an attempt before the one that Slurm knows."""
    return None if end and job and job.restarts > end.restarts else end


def is_without(end: JobEnd | None, job: JobState | None) -> bool:
    """Whether Slurm does not know a job, or calls it over while its own end is missing."""
    return job is None or (job.is_over and of_attempt(end, job) is None)


def ending(
    intent: JobIntent, end: JobEnd | None, job: JobState | None, without_s: float
) -> tuple[int, Diagnosis | None] | None:
    """How a job ended: its exit code and, unless its logs say it, why. None: it goes on.

    `without_s` is how long Slurm has answered, and the job has been `is_without`.
    """
    end = of_attempt(end, job)
    if end and end.num_nodes < intent.num_nodes:
        message = f"Slurm gave {end.num_nodes} nodes, {intent.num_nodes} were asked for"
        return end.exit_code, Diagnosis(Outcome.FAILED, message)
    if end and end.exit_code == 0:
        return 0, None
    if job:
        return _as_slurm_says(intent, end, job, without_s) if job.is_over else None
    if end and without_s > 0:
        return end.exit_code, _of_signal(intent, end)
    if without_s < LOST_AFTER_S:
        return None
    message = f"Slurm has not known job {intent.job_id} for {without_s / 60:.0f} minutes"
    return -1, Diagnosis(Outcome.INTERRUPTED, f"{message}, and it left no end")


def _as_slurm_says(
    intent: JobIntent, end: JobEnd | None, job: JobState, without_s: float
) -> tuple[int, Diagnosis | None] | None:
    exit_code = end.exit_code if end else -1
    if job.state in _OVERDUE:
        return exit_code, Diagnosis(Outcome.TIMED_OUT, _limit(intent))
    if why := _BROKEN_OFF.get(job.state):
        return exit_code, Diagnosis(Outcome.INTERRUPTED, why)
    if end is None and without_s < MARK_AFTER_S:
        return None
    if job.state == "OUT_OF_MEMORY":
        return exit_code, Diagnosis(Outcome.OUT_OF_MEMORY, "the host was out of memory")
    if end is None:
        reason = f": {job.reason}" if job.reason not in ("", "None") else ""
        message = f"Slurm says {job.state}{reason}, and the job left no end"
        return exit_code, Diagnosis(Outcome.FAILED, message)
    return exit_code, None


def _of_signal(intent: JobIntent, end: JobEnd) -> Diagnosis | None:
    """Why a job ended of which Slurm knows nothing any more; None: its logs say it."""
    if not end.signal:
        return None
    if end.ended_at_s - end.started_at_s >= intent.limit_s:
        return Diagnosis(Outcome.TIMED_OUT, _limit(intent))
    return Diagnosis(Outcome.INTERRUPTED, f"stopped by SIG{end.signal} (Slurm job {end.job_id})")


def _limit(intent: JobIntent) -> str:
    return f"stopped by Slurm after {intent.limit_s} s (timeout_s, or the cluster's time_limit)"
