"""How a run ended, told from its exit code, steps and logs."""

import pytest

from perfdb.record import Outcome, StepRecord
from runner.diagnosis import diagnose

WHOLE = [StepRecord(step=n, step_time_s=0.1, loss=6.0, grad_norm=1.0) for n in range(1, 4)]

TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
{error}
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""


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


@pytest.mark.parametrize(
    "error",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:121] data. DefaultCPUAllocator: can't "
        "allocate memory: you tried to allocate 1000 bytes",
    ],
)
def test_out_of_memory_is_told_from_other_failures(error: str) -> None:
    outcome, reason = _said(1, WHOLE, TRACEBACK.format(error=error))
    assert (Outcome.OUT_OF_MEMORY, error) == (outcome, reason)


def test_a_crash_gives_the_first_error_line_and_not_the_launchers() -> None:
    log = TRACEBACK.format(error="[rank1]: ValueError: layers do not divide")
    assert (Outcome.FAILED, "ValueError: layers do not divide") == _said(1, [], log)


def test_a_crash_without_a_word_gives_the_exit_code() -> None:
    assert (Outcome.FAILED, "the command ended with exit code -11") == _said(-11, [], "")


def _said(exit_code: int, steps: list[StepRecord], log: str = "") -> tuple[Outcome, str | None]:
    found = diagnose(exit_code, steps, planned=3, log_lines=log.splitlines())
    return found.outcome, found.error
