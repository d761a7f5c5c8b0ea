"""`perfdb run` for real: finished runs, failures, interruption, resumption."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from perfdb.record import Outcome
from perfdb.rundir import RunDir, find_runs
from tests.shell import Shell

PERFDB = str(Path(sys.executable).with_name("perfdb"))

RECIPE = """\
name: {name}
framework: megatron-core
model: gpt-tiny
systems: [cpu]
num_gpus: 1
precision: fp32
sequence_length: 64
global_batch_size: {gbs}
micro_batch_size: 1
warmup_steps: 1
measured_steps: {steps}
timeout_s: {timeout_s}
options: {{{options}}}
"""

pytestmark = pytest.mark.slow


def write(folder: Path, name: str, **changes: object) -> Path:
    """A recipe of one process; `gbs` makes it another case than its neighbours."""
    folder.mkdir(exist_ok=True)
    fields = {"gbs": 4, "steps": 3, "timeout_s": 120, "options": ""} | changes
    path = folder / f"{name}.yaml"
    path.write_text(RECIPE.format(name=name, **fields))
    return path


def alone(cwd: Path) -> dict[str, str]:
    """Variables of a runner that waits for no other on this machine."""
    return {**os.environ, "TMPDIR": str(cwd)}


def runs(cwd: Path) -> dict[str, RunDir]:
    return {run.read_record().recipe.name: run for run in find_runs(cwd / "runs")}


@pytest.fixture(scope="module")
def ended(
    preloaded: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, int, dict[str, Any]]:
    """Three runs, the exit code and the row of each; a foreign package named `runner` lies there.

    The first diverges, the second takes longer than it may.
    """
    cwd = tmp_path_factory.mktemp("ended")
    (cwd / "runner").mkdir()
    (cwd / "runner" / "__init__.py").write_text("raise SystemExit('the wrong runner')")
    recipes = cwd / "recipes"
    write(recipes, "a-diverges", options="optimizer_lr: 1.0e+30")
    write(recipes, "b-too-slow", gbs=2, steps=100_000, timeout_s=2)
    write(recipes, "c-finishes")
    done = subprocess.run(
        [PERFDB, "run", "recipes", "--json"],
        cwd=cwd,
        env=alone(cwd) | {"NCCL_API_TOKEN": "do-not-keep", "PYTHONPATH": str(preloaded)},
        capture_output=True,
        check=False,
        timeout=240,
    )
    return cwd, done.returncode, {row["case"]: row for row in json.loads(done.stdout)["cases"]}


def test_a_failure_does_not_stop_the_rest_and_the_exit_code_says_so(
    ended: tuple[Path, int, dict[str, Any]], perfdb: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    cwd, code, rows = ended
    assert 1 == code
    assert {"a-diverges": "nan_grad_norm", "b-too-slow": "timed_out", "c-finishes": "finished"} == {
        name: row["outcome"] for name, row in rows.items()
    }
    assert rows["a-diverges"]["step_time_s"] is None
    assert rows["c-finishes"]["num_steps"] == 3
    monkeypatch.chdir(cwd)
    again = perfdb("run", "recipes", "--only", "c-*")
    assert (0, True) == (again.code, "0 to run, 1 finished before" in again.stderr)
    known = rows["c-finishes"] | {"status": "done", "reason": "finished before"}
    for more in ([], ["--dry-run"]):
        told = perfdb("run", "recipes", "--only", "c-*", "--json", *more).stdout
        assert [known] == json.loads(told)["cases"]


def test_a_run_directory_has_everything_of_its_run(ended: tuple[Path, int, dict[str, Any]]) -> None:
    cwd, _, _ = ended
    run = runs(cwd)["c-finishes"]
    record, summary = run.read_record(), run.read_summary()
    assert summary
    assert Outcome.FINISHED is record.outcome
    assert (cwd / "recipes" / "c-finishes.yaml").read_text() == run.recipe.read_text()
    assert [1, 2, 3, 4] == [step.step for step in run.read_steps()]
    assert 256 == run.read_steps()[0].tokens
    assert summary.versions["megatron-core"] == record.release.version
    assert summary.cpu_shim
    assert "do-not-keep" not in run.record.read_text()
    assert any("iteration" in log.read_text() for log in run.logs())


def test_a_run_that_diverges_goes_on_and_says_so(ended: tuple[Path, int, dict[str, Any]]) -> None:
    """Not-a-number is written as text, so that every JSON reader reads the line."""
    run = runs(ended[0])["a-diverges"]
    steps = [json.loads(line) for line in run.steps.read_text().splitlines()]
    assert [("NaN", "NaN")] * 2 == [(step["loss"], step["grad_norm"]) for step in steps[2:]]
    said = "".join(log.read_text() for log in run.logs())
    assert 2 <= said.count("number of nan iterations:   1 |")


def killed_in_the_middle(
    cwd: Path, how: signal.Signals, **variables: str
) -> subprocess.Popen[bytes]:
    """Start a runner whose last case takes long, and kill it while that one is at work."""
    write(cwd / "recipes", "b-long", gbs=2, steps=2000)
    # What was started in the background ignores Ctrl-C, and has its children ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    runner = subprocess.Popen([PERFDB, "run", "recipes"], cwd=cwd, env=alone(cwd) | variables,
                              stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # fmt: skip
    signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and runner.poll() is None:
        found = runs(cwd) if (cwd / "runs").is_dir() else {}
        if "b-long" in found and len(found["b-long"].read_steps()) > 2:
            break
        time.sleep(0.2)
    runner.send_signal(how)
    runner.wait(60)
    return runner


@pytest.fixture(scope="module")
def killed(
    ended: tuple[Path, int, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Of two cases, one had finished, in a process before."""
    cwd = tmp_path_factory.mktemp("killed")
    write(cwd / "recipes", "c-finishes")
    finished = runs(ended[0])["c-finishes"].path
    shutil.copytree(finished, cwd / "runs" / finished.name)
    killed_in_the_middle(cwd, signal.SIGKILL)
    return cwd


def test_a_killed_runner_leaves_no_worker_behind(killed: Path) -> None:
    marker = str(killed)
    for _ in range(100):
        if not workers_of(marker):
            break
        time.sleep(0.2)
    assert [] == workers_of(marker)


def workers_of(marker: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in line and "runner.megatron.train" in line:
            found.append(line)
    return found


@pytest.mark.usefixtures("quick_torchrun")
def test_after_a_kill_the_finished_is_kept_and_the_rest_is_run(
    killed: Path, perfdb: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = runs(killed)
    assert Outcome.FINISHED is before["c-finishes"].read_record().outcome
    assert before["b-long"].read_record().outcome is None
    cut_off = before["b-long"].path
    # The same case with fewer steps: how long a case is measured is not part of what it is.
    write(killed / "recipes", "b-long", gbs=2, steps=3)
    monkeypatch.chdir(killed)
    done = perfdb("run", "recipes", "--json")
    assert 0 == done.code
    rows = {row["case"]: row["status"] for row in json.loads(done.stdout)["cases"]}
    assert {"c-finishes": "done", "b-long": "finished"} == rows
    assert Outcome.INTERRUPTED is RunDir(cut_off).read_record().outcome


def test_ctrl_c_stops_cleanly_and_says_so_in_the_record(tmp_path: Path, preloaded: Path) -> None:
    runner = killed_in_the_middle(tmp_path, signal.SIGINT, PYTHONPATH=str(preloaded))
    assert 130 == runner.returncode
    assert [] == workers_of(str(tmp_path))
    record = runs(tmp_path)["b-long"].read_record()
    assert (Outcome.INTERRUPTED, "stopped by the user") == (record.outcome, record.error)
    run = runs(tmp_path)["b-long"]
    assert run.steps.read_text().endswith("}\n"), "each step is in the file as it happens, whole"
    assert list(range(1, len(run.read_steps()) + 1)) == [step.step for step in run.read_steps()]
    assert len(run.read_steps()) > 2
    assert not run.summary.exists()


def test_dry_run_shows_the_plan_and_writes_nothing(perfdb: Shell, tmp_path: Path) -> None:
    write(tmp_path / "recipes", "one")
    done = perfdb("run", "recipes", "--dry-run")
    assert 0 == done.code
    assert "run  one on 1 × cpu" in done.stderr
    assert "-m runner.megatron.train --config" in done.stdout
    assert not (tmp_path / "runs").exists()
