"""Runs that are no benchmarks: profiles and checkpoints, and that their timings go nowhere."""

import csv
import gzip
import io
import json
import os
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb import recipe
from perfdb.rundir import RunDir
from perfdb.site.page import Section
from perfdb.site.pages.runs import pages as run_pages
from perfdb.site.read import stored
from runner.backends import megatron_core
from runner.launchers import local
from tests.shell import Shell

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "recipes" / "smoke"
H100 = ROOT / "recipes" / "megatron-core" / "llama3-8b.yaml"


@pytest.fixture(scope="module")
def runs(preloaded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint run and a profile of one process, for real."""
    folder = tmp_path_factory.mktemp("kinds")
    for arguments in (
        [SMOKE / "checkpoint.yaml"],
        [SMOKE / "single.yaml", "--profile", "--profile-steps", "2-3"],
    ):
        variables = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(preloaded)}
        done = subprocess.run(
            [preloaded / "bin" / "perfdb", "run", *arguments], cwd=folder, env=variables,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert 0 == done.returncode, done.stderr
    return folder / "runs"


def of_kind(runs: Path, kind: str) -> RunDir:
    [found] = [it for it in map(RunDir, runs.iterdir())
               if it.is_run() and it.read_record().kind.value == kind]  # fmt: skip
    return found


def test_a_checkpoint_trains_on_as_if_it_had_not_been_saved_also_in_another_layout(
    runs: Path,
) -> None:
    run = of_kind(runs, "checkpoint")
    summary = run.read_summary()
    assert summary is not None
    found = summary.checkpoint
    assert found is not None
    assert found.loss == found.loaded_loss  # the same arithmetic in the same order
    assert found.loss == pytest.approx(found.resharded_loss, rel=1e-6)
    assert {"tensor_parallel": 1, "sequence_parallel": 0} == found.resharded
    weights = 4 * summary.num_parameters
    assert 3 * weights < found.size_bytes < 6 * weights  # with Adam's two, and a main copy
    assert 0 < found.save_time_s
    assert not (run.path / "checkpoint").exists()


def test_without_gpus_torch_writes_the_trace_of_the_steps_asked_for(runs: Path) -> None:
    run = of_kind(runs, "profile")
    assert [1, 2, 3] == [step.step for step in run.read_steps()]
    trace = json.loads(gzip.decompress((run.path / "profile_0.json.gz").read_bytes()))
    names = [event.get("name") for event in trace["traceEvents"]]
    steps = sum(str(name).startswith("Optimizer.step#") for name in names)
    assert 2 == steps


def test_their_timings_are_in_no_table_and_no_export_of_results(
    runs: Path, store: URL, perfdb: Shell
) -> None:
    db = ("--db", store.render_as_string(hide_password=False))
    assert 0 == perfdb("ingest", str(runs), *db).code
    listed = perfdb("export", "runs", "--format", "csv", *db)
    rows = {row["kind"]: row for row in csv.DictReader(io.StringIO(listed.stdout))}
    assert {"checkpoint", "profile"} == rows.keys()
    assert float(rows["checkpoint"]["checkpoint_save_time_s"]) > 0
    assert not rows["profile"]["checkpoint_save_time_s"]
    results = perfdb("export", "results", "--format", "json", *db)
    assert [] == json.loads(results.stdout)
    assert 0 == perfdb("verify", *db).code
    shown = stored(store)
    assert ((), ()) == (shown.results, shown.current)
    titles = {page.about for page in run_pages(shown)}
    assert {"a checkpoint run", "a profile run"} == {
        kind for kind in ("a checkpoint run", "a profile run") if any(kind in it for it in titles)
    }
    [checkpoint] = [it for it in run_pages(shown) if "a checkpoint run" in it.about]
    sections = {it.title: it for it in checkpoint.body() if isinstance(it, Section)}
    [table] = sections["Checkpoint"].blocks
    assert "resharded: tensor parallel" in str(table).replace("_", " ")


def test_a_profile_counts_for_no_benchmark_of_its_case(runs: Path, perfdb: Shell) -> None:
    asked = ("run", str(SMOKE / "single.yaml"), "--output", str(runs), "--dry-run", "--json")
    steps = ("--set", "warmup_steps=1", "--set", "measured_steps=2")
    [row] = json.loads(perfdb(*asked, *steps).stdout)["cases"]
    [profile] = json.loads(perfdb(*asked, "--profile", "--profile-steps", "2-3").stdout)["cases"]
    assert ("run", "done") == (row["status"], profile["status"])


NSYS = """#!/bin/sh
# Stands in for NVIDIA's nsys, which is not to be had here: writes how it was started, runs nothing.
for word in "$@"; do echo "$word"; done > "$RECORD"
"""


def test_nsys_starts_the_ranks_asked_for_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nsys is a mock: the test shows what would be started, not that it profiles."""
    mock, record = tmp_path / "bin" / "nsys", tmp_path / "record"
    mock.parent.mkdir()
    mock.write_text(NSYS)
    mock.chmod(0o755)
    monkeypatch.setenv("PATH", f"{mock.parent}:{os.environ['PATH']}")
    given = ["kind=profile", "profile_ranks=[0,3]", "warmup_steps=19", "measured_steps=6"]
    [file] = recipe.load([H100], given=given)
    run = RunDir(tmp_path / "a run")
    command = megatron_core.command(file.points[0], run)
    argv = local.argv(command, run)
    start = argv[argv.index("--no-python") + 1 :]
    assert str(command.python) in start
    assert "--nsys" in start
    for rank in ("0", "1", "3"):
        record.unlink(missing_ok=True)
        words = ["/bin/echo" if it == command.python else it for it in start]
        variables = {**os.environ, "RANK": rank, "RECORD": str(record)}
        done = subprocess.run(words, env=variables, capture_output=True, text=True, check=True)
        if rank == "1":
            assert done.stdout.startswith("-m runner.megatron.train --config")
            assert not record.exists()
            continue
        said = record.read_text().splitlines()
        assert said[:6] == [
            "profile", "--sample=none", "--trace=cuda,nvtx,osrt",
            "--capture-range=cudaProfilerApi", "--capture-range-end=stop",
            "--force-overwrite=true",
        ]  # fmt: skip
        assert f"--output={tmp_path}/a run/profile_{rank}" == said[6]
        assert ["-m", "runner.megatron.train"] == said[8:10]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--profile", "--profile-ranks", "one"], "'one' is not a list of ranks; write 0, or 0,8"),
        (["--profile", "--profile-ranks", "4"], "profile_ranks: there is no rank 4 among 1"),
        (
            ["--profile", "--profile-steps", "25-20"],
            "'25-20' is not a range of steps; write FIRST-LAST",
        ),
        (["--profile", "--checkpoint"], "--profile and --checkpoint exclude each other"),
        (["--set", "reload_layout={tensor_parallel: 1}"], "a benchmark run loads no checkpoint"),
        (["--checkpoint", "--set", "reload_layout={tensor_parallel: 3}"], "reload_layout: TP 3"),
    ],
)
def test_what_cannot_be_profiled_or_loaded_is_refused(
    options: list[str], message: str, perfdb: Shell
) -> None:
    done = perfdb("run", str(SMOKE / "single.yaml"), *options)
    assert (2, "") == (done.code, done.stdout)
    assert message in done.stderr
