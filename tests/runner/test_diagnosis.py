"""How a run ended, told from its exit code, steps and logs."""

import pytest

from perfdb.record import Outcome
from perfdb.run_record import StepRecord
from runner.diagnosis import diagnose
from tests.logs import OUT_OF_MEMORY

WHOLE = [StepRecord(step=n, step_time_s=0.1, loss=6.0, grad_norm=1.0) for n in range(1, 4)]

TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
{error}
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""


KILLED = (
    "E1122 16:21:10.409000 19344 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
    "(exitcode: -9) local_rank: 0 (pid: 19361) of binary: /work/.venv/bin/python\n"
)


def test_all_steps_and_exit_code_zero_is_finished() -> None:
    assert (Outcome.FINISHED, None) == _said(0, WHOLE)


def test_fewer_steps_than_planned_is_incomplete() -> None:
    assert (Outcome.INCOMPLETE, "2 of 3 steps were written") == _said(0, WHOLE[:2])


@pytest.mark.parametrize(
    ("field", "outcome"), [("loss", Outcome.NAN_LOSS), ("grad_norm", Outcome.NAN_GRAD_NORM)]
)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_spoils_the_run(
    field: str, outcome: Outcome, value: float
) -> None:
    spoilt = [*WHOLE[:2], WHOLE[2].model_copy(update={field: value})]
    found, error = _said(0, spoilt)
    assert outcome is found
    assert error
    assert "step 3" in error


@pytest.mark.parametrize("line", OUT_OF_MEMORY)
def test_out_of_memory_is_told_from_other_failures(line: str) -> None:
    """In all the ways in which a log tells of it, and whatever else failed before."""
    log = TRACEBACK.format(error="[rank1]: RuntimeError: Connection closed by peer") + line + "\n"
    assert (Outcome.OUT_OF_MEMORY, line) == _said(1, WHOLE, log)


def test_a_word_of_memory_is_no_lack_of_it() -> None:
    log = "To avoid CUDA out of memory, see the guide\nValueError: layers do not divide\n"
    assert (Outcome.FAILED, "ValueError: layers do not divide") == _said(1, [], log)


def test_a_crash_gives_the_first_error_line_and_not_the_launchers() -> None:
    log = TRACEBACK.format(error="[rank1]: ValueError: layers do not divide")
    assert (Outcome.FAILED, "ValueError: layers do not divide") == _said(1, [], log)


def test_a_crash_without_a_word_gives_the_exit_code() -> None:
    assert (Outcome.FAILED, "the command ended with exit code -11") == _said(-11, [], "")


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (9, "rank 0 was killed by signal 9 (SIGKILL); was the host out of memory?"),
        (11, "rank 0 was killed by signal 11 (SIGSEGV)"),
        (7, "rank 0 was killed by signal 7 (SIGBUS)"),
    ],
)
def test_a_killed_rank_is_the_reason_whatever_the_others_said_of_it(
    number: int, error: str
) -> None:
    """As torchrun prints it; a peer that has lost its connection fails after it."""
    log = TRACEBACK.format(error="[rank1]: RuntimeError: Connection closed by peer")
    log += KILLED.replace("-9", f"-{number}")
    assert (Outcome.FAILED, error) == _said(1, [], log)


def test_a_rank_that_ends_itself_gives_its_error_and_else_its_signal() -> None:
    """An abort follows an error that says more."""
    aborted = KILLED.replace("-9", "-6")
    assert (Outcome.FAILED, "rank 0 was killed by signal 6 (SIGABRT)") == _said(1, [], aborted)
    log = aborted + TRACEBACK.format(error="RuntimeError: NCCL timeout")
    assert (Outcome.FAILED, "RuntimeError: NCCL timeout") == _said(1, [], log)


def _said(exit_code: int, steps: list[StepRecord], log: str = "") -> tuple[Outcome, str | None]:
    found = diagnose(exit_code, steps, planned=3, log_lines=log.splitlines())
    return found.outcome, found.error
