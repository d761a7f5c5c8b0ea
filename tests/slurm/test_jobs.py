"""What follows from what a job's script, squeue and sacct say; their lines are recorded ones."""

from datetime import UTC, datetime

import pytest

from perfdb.record import Outcome
from runner.slurm.jobs import (
    JobEnd,
    JobIntent,
    JobState,
    ending,
    is_without,
    of_sacct,
    of_squeue,
    seen,
)

NAME = "perfdb-b06ff488-30d6-40e4-8f06-70830d4473b1"
INTENT = JobIntent(name=NAME, case_name="dp2", num_nodes=2, limit_s=3600, job_id=7,
                   written_at=datetime(2026, 1, 2, tzinfo=UTC))  # fmt: skip

# Slurm 22.05.8: `squeue --me --states=all --noheader --Format=…` of `client.SQUEUE`. The fields and
# the names of the states are those of the manuals of 20.02 to 25.05.
SQUEUE = f"""\
1|0|2|0:00|COMPLETED|hostname|None|
5|0|5|0:00|PENDING|other|PartitionNodeLimit|
7|1|2|1-02:03:04|RUNNING|{NAME}|None|
9|0|1|0:00|FAILED|of|a|pipe|BadConstraints|
slurm_load_jobs error: Unable to contact slurm controller
"""
# sacct of 22.05.8 with slurmdbd.
SACCT = f"""\
7|2|00:02:00|REQUEUED|{NAME}
7|2|00:10:00|CANCELLED by 1000|{NAME}
8|1|00:00:02|COMPLETED|other
9|1|00:00:02|RUNNING|runaway
|x
"""


def job(state: str, **changed: object) -> JobState:
    fields = {"job_id": 7, "restarts": 0, "num_nodes": 2, "elapsed": "1:00", "name": NAME}
    return JobState(**{**fields, "state": state, **changed})  # type: ignore[arg-type]  # of a test


def end(exit_code: int = 0, **changed: object) -> JobEnd:
    fields = {"job_id": 7, "restarts": 0, "num_nodes": 2, "signal": "", "nodes": "n[1-2]",
              "started_at_s": 1000, "ended_at_s": 1100}  # fmt: skip
    return JobEnd.model_validate({**fields, "exit_code": exit_code, **changed})


def test_the_lines_of_squeue_and_of_sacct_are_read() -> None:
    known = of_squeue(SQUEUE)
    assert [job("RUNNING", restarts=1, elapsed="1-02:03:04", reason="None")] == known[NAME]
    assert "PartitionNodeLimit" == known["other"][0].reason
    assert {NAME, "hostname", "other", "of"} == known.keys()
    accounted = of_sacct(SACCT)
    assert [job("CANCELLED", elapsed="00:10:00")] == accounted[NAME]
    assert {NAME, "other"} == accounted.keys()


def test_a_job_is_known_by_its_name_though_its_number_was_given_again() -> None:
    stranger = job("RUNNING", name="theirs")
    assert seen({"theirs": [stranger]}, INTENT, None) is None
    two = {NAME: [job("COMPLETED", job_id=9), job("RUNNING", job_id=8)]}
    assert 8 == getattr(seen(two, INTENT, None), "job_id", None)
    assert 9 == getattr(seen(two, INTENT, 9), "job_id", None)


GONE = (-1, Outcome.INTERRUPTED)
TO_DIAGNOSE = None
ENDINGS = [
    # nothing has ended
    (None, job("PENDING"), 0, "goes on"),
    (None, job("RUNNING"), 0, "goes on"),
    (None, job("COMPLETING"), 0, "goes on"),
    (end(143, signal="TERM"), job("COMPLETING"), 0, "goes on"),
    # its own end is the truth, whatever Slurm still says or has forgotten
    (end(0), job("RUNNING"), 0, (0, TO_DIAGNOSE)),
    (end(0), None, 0, (0, TO_DIAGNOSE)),
    (end(1), job("FAILED"), 0, (1, TO_DIAGNOSE)),
    (end(1), None, 5, (1, TO_DIAGNOSE)),
    # with the controller down nobody knows why it ended
    (end(143, signal="TERM"), None, 0, "goes on"),
    (end(143, signal="TERM"), None, 5, (143, Outcome.INTERRUPTED)),
    (end(143, signal="TERM", ended_at_s=4601), None, 5, (143, Outcome.TIMED_OUT)),
    # Slurm has ended it
    (end(143, signal="TERM"), job("TIMEOUT"), 0, (143, Outcome.TIMED_OUT)),
    (None, job("TIMEOUT"), 0, (-1, Outcome.TIMED_OUT)),
    (None, job("DEADLINE"), 0, (-1, Outcome.TIMED_OUT)),
    (None, job("CANCELLED"), 0, GONE),
    (None, job("PREEMPTED"), 0, GONE),
    (None, job("NODE_FAIL"), 0, GONE),
    (None, job("BOOT_FAIL"), 0, GONE),
    (None, job("OUT_OF_MEMORY"), 31, (-1, Outcome.OUT_OF_MEMORY)),
    # the file comes later than the answer, and may never come
    (None, job("COMPLETED"), 10, "goes on"),
    (None, job("COMPLETED"), 31, (-1, Outcome.FAILED)),
    (None, job("FAILED", reason="BadConstraints"), 31, (-1, Outcome.FAILED)),
    # requeued: what an earlier attempt wrote at its end is not the end of this one
    (end(143, signal="TERM"), job("PENDING", restarts=1), 0, "goes on"),
    (end(0), job("RUNNING", restarts=1), 0, "goes on"),
    (end(0, restarts=1), job("RUNNING", restarts=1), 0, (0, TO_DIAGNOSE)),
    # lost, after five minutes without a break
    (None, None, 0, "goes on"),
    (None, None, 299, "goes on"),
    (None, None, 300, GONE),
    # fewer nodes than were asked for
    (end(1, num_nodes=1), job("FAILED"), 0, (1, Outcome.FAILED)),
]  # fmt: skip


@pytest.mark.parametrize(("own", "slurm_says", "without_s", "expected"), ENDINGS)
def test_how_a_job_ended(
    own: JobEnd | None, slurm_says: JobState | None, without_s: float, expected: object
) -> None:
    found = ending(INTENT, own, slurm_says, without_s)
    told = (found[0], found[1] and found[1].outcome) if found else "goes on"
    assert expected == told


@pytest.mark.parametrize(
    ("own", "slurm_says", "expected"),
    [
        (None, None, True),
        (end(0), None, True),
        (None, job("RUNNING"), False),
        (None, job("FAILED"), True),
        (end(1), job("FAILED"), False),
        # the end of an attempt before never becomes that of the one which has failed
        (end(143), job("FAILED", restarts=1), True),
        (end(1, restarts=1), job("FAILED", restarts=1), False),
    ],
)
def test_a_job_that_is_over_is_not_awaited_for_ever(
    own: JobEnd | None, slurm_says: JobState | None, expected: bool
) -> None:
    assert expected is is_without(own, slurm_says)


def test_the_reason_says_what_happened() -> None:
    def why(*given: object) -> str | None:
        found = ending(INTENT, *given)  # type: ignore[arg-type]  # of a test
        return found[1].error if found and found[1] else None

    assert "Slurm gave 1 nodes, 2 were asked for" == why(end(1, num_nodes=1), None, 1)
    assert "another job took its nodes (PREEMPTED)" == why(None, job("PREEMPTED"), 0)
    assert "stopped by SIGTERM (Slurm job 7)" == why(end(143, signal="TERM"), None, 1)
    lost = "Slurm has not known job 7 for 5 minutes, and it left no end"
    assert lost == why(None, None, 301)
