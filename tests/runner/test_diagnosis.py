"""How a run ended, by its exit code, steps and logs."""

import math

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


def _outcome(exit_code: int, steps: list[StepRecord], log: str = "") -> tuple[Outcome, str | None]:
    found = diagnose(exit_code, steps, planned=3, log_lines=log.splitlines())
    return found.outcome, found.error


def test_without_a_failure_the_steps_decide() -> None:
    assert (Outcome.FINISHED, None) == _outcome(0, WHOLE)
    assert (Outcome.INCOMPLETE, "2 of 3 steps were written") == _outcome(0, WHOLE[:2])


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("loss", math.nan, (Outcome.NAN_LOSS, "step 3: loss is nan")),
        ("grad_norm", math.inf, (Outcome.NAN_GRAD_NORM, "step 3: gradient norm is inf")),
    ],
)
def test_a_value_that_is_not_finite_spoils_the_run(
    field: str, value: float, expected: tuple[Outcome, str]
) -> None:
    spoilt = [*WHOLE[:2], WHOLE[2].model_copy(update={field: value})]
    assert expected == _outcome(0, spoilt)


@pytest.mark.parametrize("line", OUT_OF_MEMORY)
def test_out_of_memory_comes_before_other_failures(line: str) -> None:
    log = TRACEBACK.format(error="[rank1]: RuntimeError: Connection closed by peer") + line + "\n"
    assert (Outcome.OUT_OF_MEMORY, line) == _outcome(1, WHOLE, log)


@pytest.mark.parametrize(
    ("log", "error"),
    [
        ("srun: unrecognized option '--container-imagine=x'\nTry \"srun --help\" for more\n",
         "srun: unrecognized option '--container-imagine=x'"),
        ("slurmstepd: error: pyxis: couldn't start container\nsrun: error: n1: task 0: Exited\n",
         "slurmstepd: error: pyxis: couldn't start container"),
        (TRACEBACK.format(error="ValueError: bad") + "srun: error: n1: task 0: Exited\n",
         "ValueError: bad"),
        ("srun: Job step creation temporarily disabled, retrying\n",
         "the command ended with exit code 1"),
    ],
)  # fmt: skip
def test_slurm_says_why_where_the_program_does_not(log: str, error: str) -> None:
    assert (Outcome.FAILED, error) == _outcome(1, [], log)


PEER = TRACEBACK.format(error="[rank1]: RuntimeError: Connection closed by peer")
ABORTED = KILLED.replace("-9", "-6")


@pytest.mark.parametrize(
    ("exit_code", "log", "error"),
    [
        (1, "To avoid CUDA out of memory, see the guide\nValueError: layers do not divide\n",
         "ValueError: layers do not divide"),
        (1, TRACEBACK.format(error="[rank1]: ValueError: layers do not divide"),
         "ValueError: layers do not divide"),
        (-11, "", "the command ended with exit code -11"),
        (1, PEER + KILLED,
         "rank 0 was killed by signal 9 (SIGKILL); was the host out of memory?"),
        (1, PEER + KILLED.replace("-9", "-11"), "rank 0 was killed by signal 11 (SIGSEGV)"),
        (1, ABORTED, "rank 0 was killed by signal 6 (SIGABRT)"),
        (1, ABORTED + TRACEBACK.format(error="RuntimeError: NCCL timeout"),
         "RuntimeError: NCCL timeout"),
    ],
)  # fmt: skip
def test_a_crash_gives_the_line_that_says_most(exit_code: int, log: str, error: str) -> None:
    """A killed rank is the reason, whatever its peers print; an abort follows its own error."""
    assert (Outcome.FAILED, error) == _outcome(exit_code, [], log)
