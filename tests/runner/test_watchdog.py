"""Runs that hang, and runs that print secrets, with a real process in place of a worker."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from perfdb import hardware, recipe
from perfdb.record import Outcome, Release
from perfdb.rundir import RunDir
from runner.backends import Command
from runner.launchers import local
from runner.plan import ExecutionTarget, Planned
from runner.progress import watching
from runner.run import execute
from tests.runner.quick_launcher import BACKENDS, QuickLauncher

SINGLE = Path(__file__).parents[2] / "recipes" / "smoke" / "single.yaml"


@dataclass(frozen=True)
class ShellLauncher(QuickLauncher):
    """Runs a shell script where a worker would be."""

    script: str = ""

    def start(self, command: Command, run: RunDir) -> local.LocalProcess:  # type: ignore[override]
        """A real process of the local launcher."""
        return local.launch(("/bin/sh", "-c", self.script), local.variables(command), run)


def outcome(folder: Path, script: str, patience_s: float) -> tuple[Outcome | None, str, float]:
    """How a run of a script ends, why, and after how many seconds."""
    [file] = recipe.load([SINGLE])
    planned = Planned(file, file.points[0], Release(framework="megatron-core", version="0.16.1"))
    machine = hardware.without_gpu("no GPU")
    target = ExecutionTarget(folder, machine, ShellLauncher(script=script), BACKENDS)
    begun = time.monotonic()
    with watching(Console(quiet=True), planned, "[1/1]") as watcher:
        _, record = execute(planned, target, watcher, patience_s)
    return record.outcome, record.error or "", time.monotonic() - begun


STEP = """echo '{{"step": {0}, "step_time_s": {1}}}' >> steps.jsonl"""


def test_a_run_without_a_step_for_twenty_times_its_step_time_is_stopped(tmp_path: Path) -> None:
    """Its timeout is 300 s; a worker that goes on in the background goes, too."""
    steps = "; ".join(STEP.format(number, 0.1) for number in (1, 2, 3))
    script = f"{steps}; setsid sleep 1000 & echo $! > worker; wait"
    how, why, seconds = outcome(tmp_path, script, patience_s=1)
    assert Outcome.TIMED_OUT is how
    assert "s without a step: it hangs after step 3, and a step takes 0.1 s" in why
    assert 2 < seconds < 20
    [number] = tmp_path.glob("*/worker")
    assert not Path("/proc", number.read_text().strip()).exists()


@pytest.mark.parametrize("step_time_s", [0.1, 10])
def test_a_run_with_steps_that_take_long_is_waited_for(tmp_path: Path, step_time_s: float) -> None:
    """Neither a short pause is a hang, nor one of less than 20 of its own steps."""
    pause = 1 if step_time_s < 1 else 3
    first, second = STEP.format(1, step_time_s), STEP.format(2, step_time_s)
    how, why, _ = outcome(tmp_path, f"{first}; sleep {pause}; {second}; exit 7", patience_s=1)
    assert (Outcome.FAILED, "the command ended with exit code 7") == (how, why)


def test_a_secret_that_a_run_prints_is_nowhere_in_its_directory(tmp_path: Path) -> None:
    """Nor is one of the command, nor of the error that ended it; what cannot be read stays."""
    token = "hf_" + "aB3" * 11
    script = f"printf '\\377 {token}\\r\\nValueError: no \\033[31m{token}\\n'; exit 1"
    how, why, _ = outcome(tmp_path, script, patience_s=60)
    assert (Outcome.FAILED, r"ValueError: no \x1b[31m***") == (how, why)
    [console] = tmp_path.glob("*/console.log")
    assert b"\xff ***\r\nValueError: no \x1b[31m***\n" == console.read_bytes()
    assert not [
        it for it in tmp_path.rglob("*") if it.is_file() and token in it.read_text("latin-1")
    ]
