"""The tutorial of a cluster is true: its commands, on a real Slurm, with real training."""

import os
import subprocess
from pathlib import Path

import pytest

from tests import guides
from tests.runner.megatron_worker import needs_megatron
from tests.slurm.service import TestCluster

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial" / "first-cluster-run.md"
RECIPE = "recipes/smoke/tp2-pp2.yaml"


@needs_megatron
@pytest.mark.slow
def test_the_first_run_on_a_cluster_is_as_the_tutorial_says(
    slurm: TestCluster, preloaded: Path, tmp_path: Path
) -> None:
    (tmp_path / RECIPE).parent.mkdir(parents=True)
    fewer = (ROOT / RECIPE).read_text().replace("measured_steps: 20", "measured_steps: 3")
    (tmp_path / RECIPE).write_text(fewer)
    path = f"{preloaded / 'bin'}{os.pathsep}{os.environ['PATH']}"
    variables = {**slurm.variables, "PATH": path, "PYTHONPATH": str(preloaded), "COLUMNS": "200"}
    commands = 0
    for step in guides.steps(PAGE.read_text()):
        if isinstance(step, guides.File):
            (tmp_path / step.name).write_text(step.text)
            continue
        done = subprocess.run(
            ["bash", "-c", step.text], cwd=tmp_path, env=variables, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        said = done.stderr + done.stdout
        assert step.exit_code == done.returncode, said
        assert guides.shows(said, step.shown) is None, said
        commands += 1
    assert 3 == commands
