"""How a run ended, by what programs, the kernel and Slurm print behind its last steps."""

import pytest

from perfdb.formats import FORMATS, ParsedLog
from perfdb.formats import scan as scanning
from perfdb.formats.outcome import Ending, died
from perfdb.record import Outcome
from tests.logs import OUT_OF_MEMORY, step_line

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in f\n'
CHILD_FAILED = """\
E1222 10:00:00.000000 55 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1)
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
pretrain_gpt.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  exitcode  : 1 (pid: 55)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
"""
SIGKILL = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Failures:
[1]:
  exitcode  : -15 (pid: 56)
  traceback : Signal 15 (SIGTERM) received by PID 56
Root Cause (first observed failure):
[0]:
  exitcode  : -9 (pid: 55)
  traceback : Signal 9 (SIGKILL) received by PID 55
"""
NCCL = """\
[rank5]:[E1222 10:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 5] Watchdog caught collective operation \
timeout: WorkNCCL(SeqNum=1) ran for 600000 milliseconds before timing out.
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 0] Process group watchdog thread terminated with exception: boom
Fatal Python error: Aborted
"""
TIME_LIMIT = (
    "slurmstepd: error: *** JOB 42 ON n1 CANCELLED AT 2025-07-01T21:05:18 DUE TO TIME LIMIT ***\n"
)
SCANCEL = """\
slurmstepd: error: *** STEP 3913022.0 ON node042 CANCELLED AT 2025-07-01T21:05:18 ***
srun: error: node042: tasks 0-7: Terminated
"""
ABORTED = """\
srun: error: node042: task 5: Segmentation fault (core dumped)
srun: Terminating StepId=3913022.0
slurmstepd: error: *** STEP 3913022.0 ON node042 CANCELLED AT 2025-07-01T21:05:18 ***
srun: error: node042: tasks 0-4,6-7: Terminated
"""


def steps(first: int, last: int) -> str:
    """The lines of steps, counted from 1, of a run of 50."""
    return "".join(step_line(step - 1, 50, 2.0) for step in range(first, last + 1))


def read(text: str) -> ParsedLog:
    (log,) = FORMATS["nemo2"].parse("a.log", [text.encode()])
    return log


@pytest.mark.parametrize("line", OUT_OF_MEMORY)
def test_memory_that_ran_out_is_told_in_many_ways(line: str) -> None:
    """Whatever ends the others afterwards."""
    behind = f"{line}\n{NCCL}srun: error: node042: tasks 0-7: Killed\n{CHILD_FAILED}"
    log = read(steps(1, 30) + behind)
    assert (30, "out_of_memory", line) == (len(log.steps), log.outcome, log.error)


@pytest.mark.parametrize(
    ("behind", "outcome", "error"),
    [
        (TRACEBACK + "    assert x\nAssertionError\n", "failed", "AssertionError"),
        (TRACEBACK + "    assert x\n[default7]:AssertionError\n", "failed", "AssertionError"),
        (TRACEBACK + "[rank2]: KeyError: 'foo'\n" + CHILD_FAILED, "failed", "KeyError: 'foo'"),
        ("subprocess.TimeoutExpired: Command 'a' timed out", "failed",
         "subprocess.TimeoutExpired: Command 'a' timed out"),
        (TRACEBACK + "KeyboardInterrupt\n", "interrupted", "KeyboardInterrupt"),
        (NCCL, "failed", NCCL.partition("\n")[0]),
        ("terminate called without an active exception\n", "failed",
         "terminate called without an active exception"),
        ("Fatal Python error: Segmentation fault\n", "failed",
         "Fatal Python error: Segmentation fault"),
        ("srun: error: node042: tasks 0-7: Killed\n", "failed",
         "srun: error: node042: tasks 0-7: Killed"),
        ("run.sh: line 3: 4242 Killed                  python a.py\n", "failed",
         "run.sh: line 3: 4242 Killed                  python a.py"),
        ("Killed\n", "failed", "Killed"),
        (ABORTED, "failed", "srun: error: node042: task 5: Segmentation fault (core dumped)"),
        (SCANCEL, "interrupted", SCANCEL.partition("\n")[0]),
        ("x.api.SignalException: Process 100 got signal: 15\n" + SCANCEL, "interrupted",
         "x.api.SignalException: Process 100 got signal: 15"),
        (TIME_LIMIT + SCANCEL, "timed_out", TIME_LIMIT.strip()),
        ("RuntimeError: Connection closed by peer\nsrun: error: Node failure on node042\n",
         "failed", "srun: error: Node failure on node042"),
        (SIGKILL, "failed", "traceback : Signal 9 (SIGKILL) received by PID 55"),
        (CHILD_FAILED, "failed", CHILD_FAILED.partition("\n")[0]),
        ("srun: error: node042: task 3: Exited with exit code 1\n", "failed",
         "srun: error: node042: task 3: Exited with exit code 1"),
    ],
)  # fmt: skip
def test_a_run_that_broke_off_says_how(behind: str, outcome: str, error: str) -> None:
    log = read(steps(1, 30) + behind)
    assert (30, outcome, error[:300]) == (len(log.steps), log.outcome, log.error)


ITERATION = (
    " iteration       30/  500000 | consumed samples: 8 | elapsed time per iteration (ms): 1.5 | "
    "lm loss: 2.5 | number of nan iterations:   0 |\n"
)


@pytest.mark.parametrize("name", ["megatron_lm", "megatron_bridge"])
@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("exiting program after receiving SIGTERM.", "interrupted"),
        ("exiting program after 55.0 minutes", "finished"),
        ("exiting program at iteration 30", "finished"),
        ("after training is done", "finished"),
    ],
)
def test_megatron_says_why_it_exits_before_the_last_step(
    name: str, said: str, outcome: str
) -> None:
    """At a signal, or where --exit-duration-in-mins or --exit-interval had planned it."""
    line = f"[{said}] datetime: 2025-12-19 10:49:16 "
    (log,) = FORMATS[name].parse("a.log", [f"{ITERATION}{line}\n".encode()])
    assert (outcome, None if outcome == "finished" else line.strip()) == (log.outcome, log.error)


HARMLESS = [
    "    raise AssertionError\n",
    "WARNING: to avoid CUDA out of memory lower the micro batch size\n",
    "oom_killer: null\nsegmentation: false\nexit_code: 0\n",
    "srun: error: node042: task 3: Exited with exit code 0\n",
    "the leftover worker was Killed\n",
    "exit_on_missing_checkpoint: true, exit code: 0\n",
    "Memory Error rate 0, Error",
]


@pytest.mark.parametrize("behind", HARMLESS)
def test_what_is_no_end_leaves_a_run_incomplete(behind: str) -> None:
    log = read(steps(1, 30) + behind)
    assert ("incomplete", "the log ends at step 30 of 50") == (log.outcome, log.error)


@pytest.mark.parametrize(
    "behind",
    [TRACEBACK + "AssertionError\n", NCCL, SCANCEL, ABORTED, SIGKILL, "Killed\n", *HARMLESS],
)
def test_a_run_that_came_to_its_end_is_finished_whatever_follows(behind: str) -> None:
    log = read(steps(1, 50) + behind)
    assert (50, "finished", None) == (len(log.steps), log.outcome, log.error)


UNCAUGHT = "[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: a bad batch\n"


@pytest.mark.parametrize("behind", ["", CHILD_FAILED, SIGKILL, NCCL, SCANCEL])
def test_a_rank_may_fail_before_another_prints_its_last_step(behind: str) -> None:
    log = read(steps(1, 30) + UNCAUGHT + steps(31, 31) + behind)
    assert (31, "failed", "ValueError: a bad batch") == (len(log.steps), log.outcome, log.error)


def test_an_error_among_the_last_steps_explains_only_that_a_worker_failed() -> None:
    """One that the program went on from, such as a retry, is not the end."""
    retried = TRACEBACK + "ConnectionError: 503, trying again\n"
    text = steps(1, 30) + retried + steps(31, 31)
    assert "ConnectionError: 503, trying again" == read(text + CHILD_FAILED).error
    assert "incomplete" == read(text).outcome
    assert "interrupted" == read(text + SCANCEL).outcome


def test_an_error_before_a_restart_is_not_the_end() -> None:
    text = steps(1, 30) + UNCAUGHT + CHILD_FAILED + steps(21, 35)
    assert "incomplete" == read(text).outcome
    assert "the log ends at step 35 of 50" == read(text).error
    assert "finished" == read(text + steps(36, 50)).outcome


@pytest.mark.parametrize("size", [0, 40, 9000])
def test_what_is_among_the_last_steps_is_found_wherever_blocks_end(size: int) -> None:
    above = ("y" * 99 + "\n") * (scanning.BLOCK_BYTES // 100 - 40)
    noise = ("x" * 39 + "\n") * (size // 40)
    text = above + steps(1, 30) + noise + UNCAUGHT + noise + steps(31, 31)
    content = [text.encode()[at : at + 5000] for at in range(0, len(text), 5000)]
    (log,) = FORMATS["nemo2"].parse("a.log", content)
    assert ("failed", "ValueError: a bad batch") == (log.outcome, log.error)


@pytest.mark.parametrize("start", [None, "nemo2"])
def test_an_error_that_was_gone_on_from_is_not_the_end_of_a_log_without_a_step(
    start: str | None,
) -> None:
    error = "ModuleNotFoundError: No module named 'apex'"
    caught = f"{TRACEBACK}{error}\n"
    assert Ending(Outcome.FAILED, error) == died(caught.encode(), start)
    for text in (caught + "building the model\n" * 300, f"{error}, goes on without\n"):
        assert died(text.encode(), start) is None


def test_a_task_of_slurm_that_failed_is_a_run_only_where_a_program_began() -> None:
    exited = "srun: error: node042: task 3: Exited with exit code 1\n"
    assert died(exited.encode(), None) is None
    assert Ending(Outcome.FAILED, exited.strip()) == died(exited.encode(), "nemo2")
    assert died((SIGKILL + exited).encode(), None) is not None


def test_a_log_without_a_step_whose_program_came_to_its_end_did_not_fail() -> None:
    done = "`Trainer.fit` stopped: `max_steps=50` reached.\n"
    assert "no_data" == read(done + TRACEBACK + "AssertionError\n").outcome
    assert "failed" == read(TRACEBACK + "AssertionError\n").outcome
