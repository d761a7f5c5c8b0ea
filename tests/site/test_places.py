"""What the page of a run says of the machine that it ran on, and of the folders there: nothing."""

import pytest

from perfdb.site import places
from perfdb.site.data import RunPage
from tests.site.samples import result, run_page


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


def test_the_file_that_the_figures_are_from_is_told_as_it_is_in_the_runs_folder() -> None:
    assert "steps.jsonl" == told().result.source


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
        (None, "data/published/nemo.md", "data/published/nemo.md"),
    ],
)
def test_tables_and_downloads_name_no_folder_of_the_machine(
    run_id: str | None, source: str, shown: str
) -> None:
    assert shown == places.of_result(result(run_id=run_id, source=source)).source
