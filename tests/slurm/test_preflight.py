"""`perfdb run --preflight` on a real Slurm, with PyTorch and gloo; and what makes a node sick."""

import json
from pathlib import Path

import pytest

from perfdb.errors import InputError
from perfdb.recipe.slurm import SlurmSettings
from perfdb.rundir import find_runs
from runner.slurm.client import nodes_of
from runner.slurm.preflight import NodeFigures, RankFigures, of_nodes, sick
from tests.shell import Done, Shell
from tests.slurm.service import TestCluster, until
from tests.slurm.test_run import SITE, WORKER, Run, program, recipe, tools

NODE = """\
#!/bin/bash
# The real torchrun for the preflight, and what stands for a training otherwise. A node that is
# broken fails, and the other does not wait for it, as it would for minutes. Of a node that is slow
# the figure is that of one.
[[ "$*" == *node_check* ]] || exec {worker} "$@"
if [ -e "$BROKEN" ]; then
  [ "$SLURMD_NODENAME" = n2 ] || exit 0
  echo "$PLANTED_SECRET"
  exit 7
fi
{quick} "$@" || exit
if [ -e "$SLOW" ] && [ "$SLURMD_NODENAME" = n2 ]; then
  sed -Ei 's/("matmul_tflops": )[0-9.]+/\\11e-9/' "${{@: -1}}/$SLURM_NODEID.json"
fi
"""


@pytest.fixture
def submit(
    slurm: TestCluster,
    preloaded: Path,
    perfdb: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    for name in ("BROKEN", "SLOW", "WAIT_FOR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    worker = program(tmp_path / "worker", WORKER)
    node = program(tmp_path / "node", NODE.format(worker=worker, quick=preloaded / "python"))
    more = '[slurm.environment]\nGLOO_SOCKET_IFNAME = "lo"\nNCCL_DEBUG = "WARN"\n'
    lines = [line for line in SITE.format(worker=node).splitlines() if "environment" not in line]
    Path("perfdb.toml").write_text("\n".join([*lines, "preflight_fraction = 0.1", more]))
    del slurm

    def run(*arguments: str) -> Done:
        words = ("run", *arguments, "--launcher", "slurm", "--preflight")
        return perfdb(*words, obj=tools())

    return run


def record() -> dict[str, object]:
    [file] = Path("runs/.preflight").glob("*/preflight.json")
    found: dict[str, object] = json.loads(file.read_text())
    return found


@pytest.mark.slow
def test_healthy_nodes_are_measured_and_the_sweep_is_run(submit: Run, perfdb: Shell) -> None:
    path = recipe("one")
    done = submit(path)
    assert 0 == done.code, done.stderr
    found = record()
    nodes = found["nodes"]
    assert isinstance(nodes, list)
    assert ["n1", "n2"] == [node["node"] for node in nodes]
    assert ({}, None) == (found["sick"], found["error"])
    assert all(node["matmul_tflops"] > 0 and node["pair_gb_per_s"] > 0 for node in nodes)
    assert 1 == len(find_runs(Path("runs")))
    assert "1 finished before" in submit(path).stdout
    assert 1 == len(list(Path("runs/.preflight").iterdir()))  # nothing to run, nothing to measure
    assert "1 new" in perfdb("ingest", "runs").stdout


@pytest.mark.slow
def test_a_node_that_fails_stops_the_sweep(submit: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it printed is kept without secrets."""
    monkeypatch.setenv("PLANTED_SECRET", "planted in the shell")
    Path("broken").touch()
    done = submit(recipe("one"))
    assert 1 == done.code
    assert "the preflight stops the sweep" in done.stderr
    assert "n2: task 1: Exited with exit code 7" in done.stderr
    assert "n2" in str(record()["error"])
    kept = "".join(it.read_text() for it in Path("runs").rglob("*") if it.is_file())
    assert ("***" in kept, "planted in the shell" in kept) == (True, False)
    assert not find_runs(Path("runs"))


@pytest.mark.slow
def test_a_node_that_is_slower_than_the_others_stops_the_sweep(submit: Run) -> None:
    Path("slow").touch()
    done = submit(recipe("one"))
    assert 1 == done.code, done.stderr
    assert "n2: matrix product: " in done.stderr
    sick_nodes = record()["sick"]
    assert isinstance(sick_nodes, dict)
    assert ["n2"] == [*sick_nodes]
    assert not find_runs(Path("runs"))


def test_the_nodes_are_those_that_jobs_may_get(slurm: TestCluster) -> None:
    """With a real reservation; a node that is drained is not waited for."""
    asked = {"n1 n2": {}, "n2": {"nodelist": "n2"}, "n1": {"exclude": "n[2-9]"}}
    for names, settings in asked.items():
        assert tuple(names.split()) == nodes_of(SlurmSettings.model_validate(settings))
    for settings in ({"partition": "nowhere"}, {"exclude": "n[1-2]"}):
        with pytest.raises(InputError, match="no node is up that jobs may get; look at sinfo"):
            nodes_of(SlurmSettings.model_validate(settings))
    slurm.run("scontrol", "create", "reservation", "ReservationName=ours", "StartTime=now",
              "Duration=5", "Users=root", "Nodes=n2")  # fmt: skip
    assert ("n2",) == nodes_of(SlurmSettings(reservation="ours"))
    slurm.run("scontrol", "delete", "ReservationName=ours")
    slurm.run("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=test")
    try:
        assert ("n2",) == nodes_of(SlurmSettings())
    finally:
        slurm.run("scontrol", "update", "NodeName=n1", "State=RESUME")
    until(slurm.ready)


def test_only_slurm_has_a_preflight(perfdb: Shell, tmp_path: Path) -> None:
    done = perfdb("run", str(tmp_path), "--preflight")
    assert (2, True) == (done.code, "--preflight needs --launcher slurm" in done.stderr)


def whole(node: str, matmul: float, pair: float = 10.0) -> NodeFigures:
    return NodeFigures(node=node, matmul_tflops=matmul, pair_gb_per_s=pair, is_whole=True)


def test_a_node_is_sick_below_a_fraction_of_the_median() -> None:
    nodes = [whole("a", 100), whole("b", 100), whole("c", 81), whole("d", 79)]
    assert {"d": "matrix product: 79.00 TFLOP/s, the median is 100.0"} == sick(nodes, 0.8)
    assert {} == sick(nodes, 0.7)
    assert {"b": "matrix product: 1.000 TFLOP/s, the median is 4.000"} == sick(
        [whole("a", 4), whole("b", 1)], 0.8
    )
    assert {} == sick([whole("a", 4)], 0.8)


def test_a_node_that_did_not_begin_is_sick_and_not_those_that_waited_for_it() -> None:
    waiting = NodeFigures(node="a", matmul_tflops=100.0)
    assert {"b": "left no figures"} == sick([waiting, NodeFigures(node="b")], 0.8)
    assert {} == sick([NodeFigures(node="a"), NodeFigures(node="b")], 0.8)
    stuck = "did not come to the end of its all-reduces"
    assert {"a": stuck} == sick([waiting, whole("b", 100)], 0.8)


def test_a_slow_link_is_laid_to_the_node_of_two_slow_pairs() -> None:
    """In a ring a-b-c-d each pair with c has 2 GB/s: b and d have another neighbor."""
    links = {"a": (10.0, 10.0), "b": (10.0, 2.0), "c": (2.0, 2.0), "d": (2.0, 10.0)}
    ranks = [RankFigures(node=node, matmul_tflops=1.0, pairs_gb_per_s=both)
             for node, both in links.items() for _ in range(2)]  # fmt: skip
    nodes = of_nodes(ranks, list(links), per_node=2)
    assert [10.0, 10.0, 2.0, 10.0] == [node.pair_gb_per_s for node in nodes]
    assert ["c"] == [*sick(nodes, 0.8)]
