"""The options of a container, parsed by a real srun with a plugin that takes those of pyxis."""

from pathlib import Path

import pytest

from perfdb.record import Outcome
from tests.shell import Done, Shell
from tests.slurm.service import TestCluster, without_pyxis
from tests.slurm.test_run import SITE, WORKER, Run, intents, program, recipe, tools

SHOWN = '#!/bin/bash\necho "$PYXIS_IMAGE; $PYXIS_MOUNTS; $PYXIS_WORKDIR; $PYXIS_ENV; in $PWD"\n'
MOUNTS = 'container_mounts = ["/data:/data:ro"]\n'


@pytest.fixture
def submit(
    slurm: TestCluster, perfdb: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """`perfdb run` of recipes in an image, whose worker prints what pyxis was asked for."""
    if reason := without_pyxis():
        pytest.skip(reason)
    monkeypatch.chdir(tmp_path)
    worker = program(tmp_path / "worker", SHOWN + WORKER)
    Path("perfdb.toml").write_text(SITE.format(worker=worker) + MOUNTS)
    monkeypatch.setenv("WAIT_FOR", str(tmp_path / "wait"))
    del slurm

    def run(*arguments: str) -> Done:
        return perfdb("run", *arguments, "--launcher", "slurm", obj=tools())

    return run


def test_srun_takes_our_options_of_a_container_on_each_node(submit: Run, tmp_path: Path) -> None:
    done = submit(recipe("boxed", num_gpus=2, container="nvcr.io/nvidia/nemo:25.04"))
    assert 0 == done.code, done.stderr
    [(run, intent)] = intents()
    assert (2, Outcome.FINISHED) == (intent.num_nodes, run.read_record().outcome)
    said = {log.read_text().splitlines()[0] for log in run.rank_logs.glob("console-*.log")}
    [line] = said  # of both nodes
    image, mounts, workdir, names, folder = line.split("; ")
    assert "nvcr.io#nvidia/nemo:25.04" == image
    home = str(Path(__file__).parents[2])
    own = sorted(f"{path}:{path}" for path in (home, str(tmp_path / "runs")))
    assert ["/data:/data:ro", *own] == mounts.split(",")
    assert (str(run.path.absolute()), f"in {run.path.absolute()}") == (workdir, folder)
    assert {"NCCL_DEBUG", "PYTHONPATH"} < set(names.split(","))


@pytest.mark.parametrize(
    ("wrong", "says"),
    {
        "srun_args=--container-imagine=x": "srun: unrecognized option '--container-imagine=x'",
        "srun_args=--container-mounts=/data": "--container-mounts: invalid format: /data",
    }.items(),
)
def test_srun_refuses_a_wrong_option_of_a_container(submit: Run, wrong: str, says: str) -> None:
    path = recipe("boxed", container="/images/nemo.sqsh")
    done = submit(path, "--slurm", wrong)
    assert (1, True) == (done.code, says in done.stderr), done.stderr
    [(run, _)] = intents()
    assert Outcome.FAILED is run.read_record().outcome
