"""Run directories: whole steps survive a crash, and a living runner is known by its lock."""

import multiprocessing
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb.errors import RunDirError
from perfdb.jsonfile import write_atomically
from perfdb.run_record import StepRecord
from perfdb.rundir import RunDir, parse_steps

LINES = [
    StepRecord(step=n, step_time_s=0.5, loss=6.0, grad_norm=1.0).model_dump_json()
    for n in range(1, 6)
]
TEXT = "\n".join(LINES) + "\n"


@given(st.integers(min_value=0, max_value=len(TEXT)))
def test_a_steps_file_cut_off_anywhere_keeps_its_whole_steps(length: int) -> None:
    read = parse_steps("steps.jsonl", TEXT[:length].splitlines())
    whole = TEXT[:length].count("\n")
    steps = [step.step for _, step in read.steps]
    assert steps in (list(range(1, whole + 1)), list(range(1, whole + 2)))
    assert len(read.problems) <= 1


def test_values_that_are_not_finite_survive_the_file() -> None:
    line = '{"step": 1, "step_time_s": 0.1, "loss": "NaN", "grad_norm": "Infinity"}'
    [(number, step)] = parse_steps("steps.jsonl", [line]).steps
    assert (1, "nan", "inf") == (number, str(step.loss), str(step.grad_norm))


def test_a_damaged_line_is_a_problem_with_its_number() -> None:
    read = parse_steps("steps.jsonl", [LINES[0], '{"step": 0}', LINES[2]])
    assert [1, 3] == [number for number, _ in read.steps]
    assert [2] == [problem.line for problem in read.problems]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 99}'])
def test_a_record_that_cannot_be_read_says_which_file(tmp_path: Path, text: str) -> None:
    run = RunDir(tmp_path)
    run.record.write_text(text)
    with pytest.raises(RunDirError, match=r"run\.json"):
        run.read_record()


def test_writing_leaves_no_other_file_behind(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a.json", "one")
    write_atomically(tmp_path / "a.json", "two")
    assert [("a.json", "two")] == [(path.name, path.read_text()) for path in tmp_path.iterdir()]


def hold(folder: Path, held: Event) -> None:
    with RunDir(folder).held():
        held.set()
        multiprocessing.Event().wait()


def test_a_run_is_in_progress_for_as_long_as_its_runner_lives(tmp_path: Path) -> None:
    """The runner is killed, not ended: the system lets go of the lock."""
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    run = RunDir(tmp_path)
    assert not run.in_progress()
    runner = context.Process(target=hold, args=(tmp_path, held))
    runner.start()
    assert held.wait(30)
    assert run.in_progress()
    runner.kill()
    runner.join()
    assert not run.in_progress()
