"""`perfdb run` for real: finished runs, failures, interruption, resumption."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfdb.record import Outcome
from perfdb.rundir import RunDir, find_runs

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


def perfdb(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PERFDB, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


def runs(cwd: Path) -> dict[str, RunDir]:
    return {run.read_record().recipe.name: run for run in find_runs(cwd / "runs")}


def test_a_failure_does_not_stop_the_rest_and_the_exit_code_says_so(tmp_path: Path) -> None:
    recipes = tmp_path / "recipes"
    write(recipes, "a-diverges", options="optimizer_lr: 1.0e+30")
    write(recipes, "b-too-slow", gbs=2, steps=100_000, timeout_s=8)
    write(recipes, "c-finishes")
    done = perfdb(tmp_path, "run", "recipes", "--json")
    assert 1 == done.returncode
    rows = {row["case"]: row for row in json.loads(done.stdout)["cases"]}
    assert {
        "a-diverges": "nan_grad_norm",
        "b-too-slow": "timed_out",
        "c-finishes": "finished",
    } == {name: row["outcome"] for name, row in rows.items()}
    assert rows["a-diverges"]["step_time_s"] is None
    assert rows["c-finishes"]["num_steps"] == 3
    again = perfdb(tmp_path, "run", "recipes", "--only", "c-*")
    assert 0 == again.returncode
    assert "0 to run, 1 finished before" in again.stderr
    known = rows["c-finishes"] | {"status": "done", "reason": "finished before"}
    for more in ([], ["--dry-run"]):
        told = perfdb(tmp_path, "run", "recipes", "--only", "c-*", "--json", *more).stdout
        assert [known] == json.loads(told)["cases"]


def test_a_run_directory_has_everything_of_its_run(tmp_path: Path) -> None:
    """A foreign package named `runner` in the working folder is not imported."""
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner" / "__init__.py").write_text("raise SystemExit('the wrong runner')")
    recipe = write(tmp_path / "recipes", "one")
    environment = {**os.environ, "NCCL_API_TOKEN": "do-not-keep"}
    command = [PERFDB, "run", "recipes/one.yaml"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    run = runs(tmp_path)["one"]
    record, summary = run.read_record(), run.read_summary()
    assert summary
    assert Outcome.FINISHED is record.outcome
    assert recipe.read_text() == run.recipe.read_text()
    assert [1, 2, 3, 4] == [step.step for step in run.read_steps()]
    assert 256 == run.read_steps()[0].tokens
    assert summary.versions["megatron-core"] == record.release.version
    assert summary.cpu_shim
    assert "do-not-keep" not in run.record.read_text()
    assert any("iteration" in log.read_text() for log in run.logs())


def killed_in_the_middle(cwd: Path, how: signal.Signals) -> subprocess.Popen[bytes]:
    """Start a runner whose second case takes long, and kill it while that one is at work."""
    write(cwd / "recipes", "a-quick")
    write(cwd / "recipes", "b-long", gbs=2, steps=2000)
    # What was started in the background ignores Ctrl-C, and has its children ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    runner = subprocess.Popen([PERFDB, "run", "recipes"], cwd=cwd, stderr=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL)  # fmt: skip
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
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("killed")
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


def test_after_a_kill_the_finished_is_kept_and_the_rest_is_run(killed: Path) -> None:
    before = runs(killed)
    assert Outcome.FINISHED is before["a-quick"].read_record().outcome
    assert before["b-long"].read_record().outcome is None
    cut_off = before["b-long"].path
    # The same case with fewer steps: how long a case is measured is not part of what it is.
    write(killed / "recipes", "b-long", gbs=2, steps=3)
    done = perfdb(killed, "run", "recipes", "--json")
    assert 0 == done.returncode
    rows = {row["case"]: row["status"] for row in json.loads(done.stdout)["cases"]}
    assert {"a-quick": "done", "b-long": "finished"} == rows
    assert Outcome.INTERRUPTED is RunDir(cut_off).read_record().outcome


def test_ctrl_c_stops_cleanly_and_says_so_in_the_record(tmp_path: Path) -> None:
    runner = killed_in_the_middle(tmp_path, signal.SIGINT)
    assert 130 == runner.returncode
    assert [] == workers_of(str(tmp_path))
    record = runs(tmp_path)["b-long"].read_record()
    assert (Outcome.INTERRUPTED, "stopped by the user") == (record.outcome, record.error)
    assert len(runs(tmp_path)["b-long"].read_steps()) > 2


def test_dry_run_shows_the_plan_and_writes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "recipes", "one")
    done = perfdb(tmp_path, "run", "recipes", "--dry-run")
    assert 0 == done.returncode
    assert "run  one on 1 × cpu" in done.stderr
    assert "-m runner.megatron.train --config" in done.stdout
    assert not (tmp_path / "runs").exists()
