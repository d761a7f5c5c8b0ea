"""What the page of a run says of the machine that it ran on, and of the folders there: nothing."""

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.db.session import reading
from perfdb.ingest import Options, ingest
from perfdb.site import places
from perfdb.site.data import RunPage
from perfdb.site.read import contents
from tests.site.samples import run_page
from tests.trees import NEMO, PAGE


def told(**changed: object) -> RunPage:
    """What is told of a run of node-1, in /home/me/perfdb/runs/run-1, with what is given."""
    page = run_page(4.0, source="/home/me/perfdb/runs/run-1/steps.jsonl")
    return places.without(page.model_copy(update={"run": page.run.model_copy(update=changed)}))


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("/home/me/perfdb/.venv/bin/python", "python"),
        ("/home/me/perfdb/runs/run-1/ranks/0/stderr.log", "ranks/0/stderr.log"),
        ("/home/me/perfdb/runs/run-1", "."),
        ("/home/me/perfdb/runs/run-10/ranks", "ranks"),
        ("--data=/data/me/c4/", "--data=c4"),
        ("/home/me/a:/mnt/a:ro", "a:a:ro"),
        ("--rdzv-endpoint=node-1:29500", "--rdzv-endpoint=HOST:29500"),
        ("runs/run-1/steps.jsonl", "runs/run-1/steps.jsonl"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("nvcr.io/nvidia/nemo:25.04", "nvcr.io/nvidia/nemo:25.04"),
        ("16/8/4 of node-10, at 3 tokens / s", "16/8/4 of node-10, at 3 tokens / s"),
        ("/", "/"),
        ("HOME=/home/me", "HOME=~"),
        ("-I/home/me/include", "-Iinclude"),
        ("file:///home/me/data/c4", "file://c4"),
        ("../../home/me/c4", "c4"),
        ("node-1.py of node-1: no", "node-1.py of HOST: no"),
    ],
)
def test_a_path_is_that_in_the_runs_folder_or_its_last_part(word: str, shown: str) -> None:
    """Relative paths, addresses and fractions stay, and so does what only begins as the host."""
    run = told(command=(word,), error=f"no {word}").run
    assert ((shown,), f"no {shown}") == (run.command, run.error)


def test_no_variable_tells_the_machine_or_whose_it_is() -> None:
    variables = {
        "CUDA_HOME": "/opt/me/cuda-12",
        "MASTER_ADDR": "10.0.0.7",
        "SLURM_JOB_NODELIST": "node-[1-4]",
        "SLURM_JOB_USER": "me",
        "SLURM_NNODES": "4",
    }
    run = told(
        environment={"hostname": "node-1", "gpu_count": 8, "variables": variables},
        summary={"ranks": [{"log": "/home/me/perfdb/runs/run-1/0.log", "rank": 0}]},
    ).run
    kept = {"CUDA_HOME": "cuda-12", "SLURM_NNODES": "4"}
    assert {"gpu_count": 8, "variables": kept} == run.environment
    assert {"ranks": [{"log": "0.log", "rank": 0}]} == run.summary


def test_a_host_is_known_by_its_whole_name_and_by_the_first_part() -> None:
    said = told(environment={"hostname": "n7.example.com"}, command=("n7", "n7.example.com:1"))
    assert ("HOST", "HOST:1") == said.run.command


def test_a_run_that_does_not_say_its_machine_and_never_ended_is_told() -> None:
    run = told(environment={}, error=None, summary=None).run
    assert ({}, None, None) == (run.environment, run.error, run.summary)


@pytest.mark.parametrize(
    ("run_id", "source", "shown"),
    [
        ("run-1", "/home/me/perfdb/runs/run-1/steps.jsonl", "run-1/steps.jsonl"),
        ("run-1", "runs/run-1/steps.jsonl", "runs/run-1/steps.jsonl"),
        ("5f0c", "/scratch/me/job-17.log", "job-17.log"),
        (None, "/home/me/pages/nemo.md", "nemo.md"),
        (None, "../../me/pages/nemo.md", "nemo.md"),
        (None, "data/published/nemo.md", "data/published/nemo.md"),
    ],
)
def test_tables_and_downloads_name_no_folder_of_the_machine(
    run_id: str | None, source: str, shown: str
) -> None:
    assert shown == places.of_row({"run_id": run_id, "source": source})["source"]


def test_the_changelog_names_no_folder_of_the_machine(sqlite: URL, tmp_path: Path) -> None:
    """Neither of a row that was read, nor of one that was rejected; nor does the row itself."""
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("| 64 |", "| many |"))
    ingest([page], sqlite, NEMO)
    with reading(sqlite) as connection:
        said = contents(connection)
    assert {"page.md"} == {one.source for one in (*said.results, *said.revisions)}
    assert {"page.md"} == {one.path for one in said.rejections}


def test_comparisons_name_no_folder_of_the_machine(sqlite: URL, tmp_path: Path) -> None:
    for release in ("25.02", "25.04"):
        page = tmp_path / f"{release}.md"
        page.write_text(PAGE)
        ingest([page], sqlite, Options(replace(NEMO.context, release=release)))
    with reading(sqlite) as connection:
        [pair] = contents(connection).pairs
    sides = [side for match in pair.comparison.matched for side in (match.a, match.b)]
    assert {"25.02.md", "25.04.md"} == {side.shown.source for side in sides}
