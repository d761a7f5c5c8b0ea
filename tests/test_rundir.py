"""Run directories: whole steps survive a crash, and a living runner is known by its lock."""

import json
import multiprocessing
import re
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from perfdb.errors import RunDirError
from perfdb.jsonfile import write_atomically
from perfdb.rundir import RunDir, parse_steps
from tests.factories import case, record


def test_values_that_are_not_finite_survive_the_file() -> None:
    line = '{"step": 1, "step_time_s": 0.1, "loss": "NaN", "grad_norm": "Infinity"}'
    [(number, step)] = parse_steps("steps.jsonl", [line]).steps
    assert (1, "nan", "inf") == (number, str(step.loss), str(step.grad_norm))


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


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"run_id": "a" * 256}, "run_id: String should have at most 255 characters"),
        ({"run_id": "a\x1b[2Jb"}, r"run_id: holds a control character: a\x1b[2Jb"),
        ({"release": {"framework": "nemo", "version": "1.0\0"}},
         r"release: holds a control character: 1.0\x00"),
        ({"release": {"framework": "n" * 1001}},
         "release: holds 1,001 characters, more than 1,000"),
        ({"case": case(options={"a\0": 1}).model_dump()},
         r"case: holds a control character: a\x00"),
        ({"recipe": {"name": "n" * 1001, "path": "a", "sha256": "0" * 64}},
         "recipe.name: holds 1,001 characters, more than 1,000"),
        ({"error": "no\0thing"}, "error: holds a null character"),
        ({"command": ("a\0",)}, "command: holds a null character"),
    ],
)  # fmt: skip
def test_a_record_with_a_text_that_names_nothing_is_refused(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    made = record().model_dump(mode="json") | changed
    (tmp_path / "run.json").write_text(json.dumps(made))
    with pytest.raises(RunDirError, match=re.escape(message)):
        RunDir(tmp_path).read_record()


def test_an_error_may_have_several_lines_and_colors(tmp_path: Path) -> None:
    """Older runners kept the error of a log as it was."""
    RunDir(tmp_path).write_record(record(error="no\x1b[31m\nthing"))
    assert "no\x1b[31m\nthing" == RunDir(tmp_path).read_record().error
