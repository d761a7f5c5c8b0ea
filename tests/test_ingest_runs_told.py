"""What `perfdb ingest` says of run directories: options they do not need, steps that they lack."""

import json
from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb.db.tables import results, runs
from perfdb.ingest import LogOptions, Options, Report, ingest
from perfdb.pages.base import PageContext
from tests import factories
from tests.shell import Shell
from tests.trees import rows_in_words, write_tree

SLURM = """\
srun: job 3 queued and waiting for resources
plan: 1 to run, 0 finished before, 0 skipped
  run  long on 1 × cpu
[1/1] long
  long: step 12/4005, 0.0545 s/step, 0.00554 TFLOP/s/GPU
slurmstepd-n1: error: *** JOB 3 ON n1 CANCELLED AT 2026-11-22T16:09:11 ***

interrupted
srun: error: n1: task 0: Exited with exit code 130
"""
"""What a job of docs/how-to/run-on-slurm.md printed that was cancelled."""


def said(report: Report) -> list[tuple[str, str]]:
    return [(note.where, note.reason) for note in report.notes]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (Options(PageContext(release="0.17.0")), "--release"),
        (
            Options(PageContext(framework="nemo", container="a", system="cpu", precision="fp8")),
            "--framework, --container, --system, --precision",
        ),
        (Options(logs=LogOptions(("release=0.17.0",))), "--set"),
    ],
)
def test_options_of_pages_and_logs_are_told_where_runs_were_read(
    sqlite: URL, tmp_path: Path, options: Options, names: str
) -> None:
    """Of runs that are new, and of those that the store has."""
    tree = write_tree(tmp_path / "tree") / "runs"
    expected = f"{names}: not taken for 3 run directories, which say what was run"
    for _ in range(2):
        assert [(str(tree), expected)] == said(ingest([tree], sqlite, options))
    assert [] == said(ingest([tree], sqlite, Options()))


def test_a_run_that_says_finished_and_lacks_steps_is_told(sqlite: URL, tmp_path: Path) -> None:
    run = factories.write_run(tmp_path, measured_steps=41, step_times=(9.0,) * 20)
    report = ingest([tmp_path], sqlite, Options())
    why = "20 of 43 steps"
    assert [(str(run.path), f"says that it finished, and is incomplete: {why}")] == said(report)
    question = select(results.c.withheld, runs.c.error).join(runs)
    assert [(why, why)] == rows_in_words(sqlite, question)


def test_the_output_of_a_job_that_ran_perfdb_is_passed_over(perfdb: Shell, tmp_path: Path) -> None:
    """As Slurm writes it beside the runs; other logs that end like this are rejected."""
    factories.write_run(tmp_path / "runs", run_id="sound")
    (tmp_path / "perfdb-3.out").write_text(SLURM)
    done = perfdb("ingest", ".", "--json")
    found = json.loads(done.stdout)
    assert (0, 1, []) == (done.code, found["new"], found["rejected"])

    (tmp_path / "other.out").write_text(SLURM.replace("plan: 1 to run", "plan: all"))
    assert 1 == perfdb("ingest", ".").code


def test_a_run_directory_of_no_stated_release_says_where_to_state_it(
    sqlite: URL, tmp_path: Path
) -> None:
    """--release, which is for pages and logs, would not be taken."""
    run = factories.write_run(tmp_path, release=factories.release(None))
    report = ingest([tmp_path], sqlite, Options())
    why = "names no release; fill in release.version in its run.json"
    assert (f"{run.path}: llama3-8b on dgx-h100 {why}",) == report.unattributed
