"""Runners that share an output folder, that are stopped, and that cannot write."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from perfdb import hardware, recipe
from perfdb.errors import LeftAtWorkError
from perfdb.record import Outcome
from perfdb.rundir import RunDir, find_runs
from runner import history, session
from runner.plan import ExecutionTarget, Planned, plan
from tests import factories
from tests.runner.quick_launcher import BACKENDS, QuickLauncher, QuickProcess
from tests.shell import Done, Shell

SINGLE = Path(__file__).parents[2] / "recipes" / "smoke" / "single.yaml"
CPU = hardware.without_gpu("no GPU")


def target(output: Path, launcher: QuickLauncher | None = None) -> ExecutionTarget:
    return ExecutionTarget(output, CPU, launcher or QuickLauncher(), BACKENDS)


def planned(repeat: int = 1) -> list[Planned]:
    """The repeats of one case, as a runner plans them that finds no run in its folder."""
    empty = history.History({})
    return plan(recipe.load([SINGLE]), target(Path("runs")), empty, repeat=repeat)


def turn(one: Planned, output: Path, launcher: QuickLauncher | None = None) -> tuple[str, str]:
    row = session.run_attempt(Console(quiet=True), one, target(output, launcher), "[1/1]")
    return row.status, row.reason


Quick = Callable[..., Done]


@pytest.fixture
def quick(perfdb: Shell) -> Quick:
    """Runs `perfdb run` with a launcher of the test, on a machine without a GPU."""

    def run(*arguments: str, launcher: QuickLauncher | None = None) -> Done:
        place = launcher or QuickLauncher()
        tools = session.Tools(CPU, BACKENDS, {"local": place})
        return perfdb("run", *arguments, obj=tools)

    return run


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"versions": {"megatron-core": "0.18.0"}},
         "the worker ran megatron-core 0.18.0, not 0.16.1"),
        ({"device": "NVIDIA H100 80GB HBM3", "cpu_shim": False},
         "the worker used NVIDIA H100 80GB HBM3, which is not cpu"),
    ],
)  # fmt: skip
def test_a_run_that_was_not_what_was_planned_has_failed(
    tmp_path: Path, said: dict[str, object], error: str
) -> None:
    summary = factories.summary(1, "cpu").model_copy(update=said).model_dump_json()
    launcher = QuickLauncher(lambda run: run.summary.write_text(summary) and None)
    assert ("failed", error) == turn(planned()[0], tmp_path, launcher)
    [run] = find_runs(tmp_path)
    assert Outcome.FAILED is run.read_record().outcome


def test_a_record_has_the_variables_of_the_worker_whatever_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the CPU each worker computes on one thread, whatever the shell says."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("SLURM_JOB_NAME", os.fsdecode(b"mod\xe8le"))
    assert ("finished", "") == turn(planned()[0], tmp_path / os.fsdecode(b"runs\xe9"))
    [run] = find_runs(tmp_path)
    known = run.read_record().environment.variables
    assert {"OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}.items() <= known.items()
    assert r"mod\xe8le" == known["SLURM_JOB_NAME"]


def test_bad_input_names_its_option(quick: Quick, tmp_path: Path) -> None:
    output, name = os.fsdecode(b"runs\xe9"), os.fsdecode(b"un\xe9.yaml")
    shutil.copy(SINGLE, tmp_path / name)
    (tmp_path / "a-file").touch()
    long, below = "x" * 300, "no run directory can be made in a-file/below: Not a directory"
    for arguments, message in (
        ([str(SINGLE), "--output", output], "--output: runs\\xe9 is not UTF-8; name another"),
        ([str(SINGLE), "--output", long], "--output: no run directory can be made in xxx"),
        ([str(SINGLE), "--output", "a-file/below"], f"--output: {below}; make room"),
        ([name], "un\\xe9.yaml: the name is not UTF-8; rename it"),
        ([str(SINGLE), "--only", "tow"],
         "--only: 'tow' matches none of the cases; their names are like smoke-single"),
    ):  # fmt: skip
        done = quick(*arguments)
        assert (2, True) == (done.code, f"error: {message}" in done.stderr)


def test_two_runners_that_planned_the_same_repeats_make_them_once(tmp_path: Path) -> None:
    mine, theirs = planned(repeat=2), planned(repeat=2)
    assert ("finished", "") == turn(mine[0], tmp_path)
    assert ("done", "finished before") == turn(theirs[0], tmp_path)
    assert ("finished", "") == turn(theirs[1], tmp_path)
    assert ("done", "finished before") == turn(mine[1], tmp_path)
    assert 2 == len(find_runs(tmp_path))


def test_what_another_runner_began_since_the_plan_is_left_to_it(tmp_path: Path) -> None:
    [mine], [theirs] = planned(), planned()
    told = []
    launcher = QuickLauncher(meanwhile=lambda _: told.append(turn(theirs, tmp_path)))
    assert ("finished", "") == turn(mine, tmp_path, launcher)
    assert [("skip", "another runner is at work on it")] == told
    assert 1 == len(find_runs(tmp_path))


def test_a_copy_of_a_run_is_no_repeat_of_it(tmp_path: Path) -> None:
    run = factories.write_run(tmp_path)
    shutil.copytree(run.path, tmp_path / "backup")
    [runs] = history.read(tmp_path).finished.values()
    assert 1 == len(runs)


def left(_: QuickProcess) -> None:
    raise LeftAtWorkError("left at work: process 7")


def test_ctrl_c_ends_the_session_though_a_process_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QuickProcess, "stop", left)
    launcher = QuickLauncher(lambda _: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        turn(planned()[0], tmp_path, launcher)
    record = find_runs(tmp_path)[0].read_record()
    assert "stopped by the user; left at work: process 7" == record.error


@pytest.mark.parametrize(
    ("never", "expected"),
    [
        ("poll", (Outcome.FAILED, "left at work: process 7")),
        ("stop", (Outcome.TIMED_OUT, "stopped after 0.001 s (timeout_s); left at work: process 7")),
    ],
)
def test_beside_what_does_not_end_nothing_else_is_run(
    quick: Quick, monkeypatch: pytest.MonkeyPatch, never: str, expected: tuple[Outcome, str]
) -> None:
    Path("one.yaml").write_text(SINGLE.read_text().replace("_s: 300", "_s: 0.001"))
    monkeypatch.setattr(QuickProcess, "poll", lambda _: None)
    monkeypatch.setattr(QuickProcess, never, left)
    done = quick("one.yaml", "--repeat", "2")
    assert (1, True) == (done.code, f"error: {expected[1]}" in done.stderr)
    [record] = [run.read_record() for run in find_runs(Path("runs"))]
    assert expected == (record.outcome, record.error)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda run: run.steps.unlink(), "0 of 25 steps"),
        (lambda run: run.steps.write_text(run.steps.read_text()[:400]), "of 25 steps"),
        (lambda run: run.summary.write_text("{"), "worker.json:1: "),
        (
            lambda run: run.worker_config.write_text('{"model": {"num_layers": 9}}'),
            "num_layers 9, not 4",
        ),
    ],
)
def test_a_finished_run_without_figures_is_run_again(
    quick: Quick, damage: Callable[[RunDir], object], why: str
) -> None:
    """As `perfdb ingest` would judge it: half copied, damaged, or of another model by this name."""
    assert 0 == quick(str(SINGLE)).code
    [run] = find_runs(Path("runs"))
    damage(run)
    done = quick(str(SINGLE), "--dry-run")
    assert "plan: 1 to run, 0 finished before" in done.stderr
    assert f"warning: {run.path}: says that it finished, and does not count: " in done.stderr
    assert why in done.stderr
    assert 0 == quick(str(SINGLE)).code
    assert 2 == len(find_runs(Path("runs")))


def test_a_dry_run_leaves_the_record_of_a_killed_run_as_it_is(quick: Quick, tmp_path: Path) -> None:
    run = factories.write_run(tmp_path / "runs", outcome=None, ended_at=None, exit_code=None)
    before = run.record.read_bytes()
    assert 0 == quick(str(SINGLE), "--dry-run").code
    assert before == run.record.read_bytes()
    assert 0 == quick(str(SINGLE)).code
    assert Outcome.INTERRUPTED is run.read_record().outcome


def test_the_record_names_sigterm_or_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    for number, reason in (
        (signal.SIGTERM, "stopped by SIGTERM (Slurm job 4711)"),
        (signal.SIGINT, "stopped by the user"),
    ):
        session.stop_on_sigterm()
        launcher = QuickLauncher(lambda _, number=number: signal.raise_signal(number))
        with pytest.raises(KeyboardInterrupt):
            turn(planned()[0], tmp_path / number.name, launcher)
        signal.signal(signal.SIGTERM, before)
        record = find_runs(tmp_path / number.name)[0].read_record()
        assert (Outcome.INTERRUPTED, reason) == (record.outcome, record.error)


@pytest.mark.parametrize(
    ("ends", "code", "outcomes"),
    [
        (lambda _: signal.raise_signal(signal.SIGINT), 130, ["finished", "interrupted"]),
        (lambda run: shutil.rmtree(run.path), 2, ["finished", None]),
    ],
)
def test_what_had_finished_is_told_though_all_ends_at_a_later_case(
    quick: Quick, ends: Callable[[RunDir], None], code: int, outcomes: list[str | None]
) -> None:
    """As JSON too: whoever stops an hour's runs has the figures of those that are done."""
    assert 0 == quick(str(SINGLE)).code
    stopping = QuickLauncher(ends)
    done = quick(str(SINGLE), "--repeat", "2", "--json", launcher=stopping)
    assert code == done.code
    cases = json.loads(done.stdout)["cases"]
    assert outcomes == [case["outcome"] for case in cases]
    assert [0.1, None] == [case["step_time_s"] for case in cases]
    assert cases[1]["reason"]
    again = quick(str(SINGLE), "--repeat", "2", launcher=stopping)
    assert (code, True) == (again.code, "1 run, 1 finished before" in again.stdout)
    assert (code == 2) == ("runs cannot be written: No such file or directory" in again.stderr)


def test_a_disk_that_takes_no_byte_is_bad_input_and_leaves_nothing_half(tmp_path: Path) -> None:
    """`ulimit -f 0`: files may be made, and nothing written to them, as on a full disk."""
    perfdb = Path(sys.executable).with_name("perfdb")
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 0; exec {perfdb} run {SINGLE}"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ},
    )  # fmt: skip
    assert 2 == done.returncode, done.stderr
    assert "cannot be written: File too large; make room" in done.stderr
    assert [] == list(tmp_path.rglob("run.json")) + list(tmp_path.rglob(".run.json*"))


def test_what_had_finished_before_is_not_measured_and_not_skipped(
    quick: Quick, tmp_path: Path
) -> None:
    """A case that is skipped beside it does not make it measured either."""
    gate = "skipped,unmeasured"
    assert 0 == quick(str(SINGLE), "--fail-on", gate).code
    assert 0 == quick(str(SINGLE), "--fail-on", "skipped").code
    assert 1 == quick(str(SINGLE), "--fail-on", gate).code
    assert 0 == quick(str(SINGLE), "--fail-on", gate, "--output", "tonight").code
    other = (
        SINGLE.read_text()
        .replace("smoke-single", "other")
        .replace("batch_size: 4", "batch_size: 8")
    )
    (tmp_path / "other.yaml").write_text(f"{other}container: nvcr.io/nvidia/nemo:25.04\n")
    both = "other.yaml", str(SINGLE), "--fail-on", "unmeasured"
    assert 1 == quick(*both).code
    assert 0 == quick(*both, "--output", "tomorrow").code


def test_lines_of_a_log_are_not_broken(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file, as Slurm and CI keep them, each thing said is one line, however long."""
    monkeypatch.setenv("COLUMNS", "80")
    name = "a-case-with-a-name-of-more-than-eighty-signs-" + "x" * 60
    text = SINGLE.read_text().replace("name: smoke-single", f"name: {name}")
    (tmp_path / "one.yaml").write_text(text)
    said = quick("one.yaml").stderr.splitlines()
    assert [
        "plan: 1 to run, 0 finished before, 0 skipped",
        f"  run  {name} on 1 × cpu",
        f"[1/1] {name}",
        f"[1/1] {name}: 0.1000 s/step, 20 steps",
    ] == said
