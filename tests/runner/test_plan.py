"""The plan: which cases run here, which are done, and which are skipped and why."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from perfdb import hardware, recipe
from perfdb.recipe.model import FRAMEWORKS, NOT_STARTED
from perfdb.record import Case, Release
from perfdb.rundir import RunDir
from runner.backends import BACKENDS, NO_BACKEND
from runner.history import History, measurement
from runner.launchers import local
from runner.plan import ExecutionTarget, PlanAction, Planned, plan
from tests.runner.quick_launcher import QuickBackend

RECIPES = Path(__file__).parents[2] / "recipes"
H100 = hardware.from_nvidia_smi("NVIDIA H100 80GB HBM3, 580.65.06, 81559\n" * 8)
CPU = hardware.without_gpu("no GPU")
EMPTY = History({})
[SINGLE] = recipe.load([RECIPES / "smoke" / "single.yaml"])
CORE = Release(framework="megatron-core", version="0.16.1")
KEY = measurement(SINGLE.points[0], CORE)


class Missing(QuickBackend):
    """Megatron-Core where it is not installed."""

    def version(self) -> None:  # type: ignore[override]
        """None."""


class Unable(QuickBackend):
    """A backend that runs nothing."""

    def unsupported(self, case: Case) -> str:
        """Its reason."""
        return "not today"


def target(machine: hardware.Machine = CPU, **changes: Any) -> ExecutionTarget:
    backends = changes.pop("backends", {"megatron-core": QuickBackend()})
    return ExecutionTarget(Path("runs"), machine, local, backends, **changes)


loaded = cache(lambda only: recipe.load([RECIPES], only=[only]))


def planned(
    here: ExecutionTarget, before: History = EMPTY, only: str = "*", repeat: int = 1
) -> dict[str, tuple[str, str]]:
    found = plan(loaded(only), here, before, repeat=repeat)
    return {one.point.name: (one.action.value, one.reason) for one in found}


def of_single(before: History, repeat: int = 1, **changes: Any) -> list[Planned]:
    return plan([SINGLE], target(**changes), before, repeat=repeat)


UNKNOWN = hardware.from_nvidia_smi("NVIDIA A900-SXM4-80GB, 580, 81920\n")


def test_each_framework_is_started_or_said_not_to_be() -> None:
    assert set(FRAMEWORKS) == NOT_STARTED ^ BACKENDS.keys()


@pytest.mark.parametrize(
    ("here", "case", "reason"),
    [
        (target(), "llama3-8b-8l-1gpu/dgx-h100", "needs dgx-h100, this machine is cpu"),
        (target(H100), "smoke-dp2", "needs cpu, this machine is dgx-h100"),
        (target(H100), "nemo-nemotron4-15b-scaling/num_gpus=16/precision=bf16",
         NO_BACKEND["nemo"]),
        (target(H100, backends={"megatron-core": Unable()}), "llama3-8b-8l-1gpu/dgx-h100",
         "not today"),
        (target(backends={"megatron-core": Missing()}), "smoke-dp2",
         "megatron-core is not installed here"),
        (target(backends={}), "smoke-dp2", "no backend runs megatron-core yet"),
        (target(UNKNOWN), "smoke-dp2", "this machine is no system of the catalogue: no system in "
         "the catalogue has a NVIDIA A900-SXM4-80GB"),
    ],
)  # fmt: skip
def test_a_case_that_cannot_run_here_is_skipped_with_its_reason(
    here: ExecutionTarget, case: str, reason: str
) -> None:
    assert {case: ("skip", reason)} == planned(here, only=case.replace("[", "[[]"))


@pytest.mark.parametrize(
    ("processes", "reason"),
    [(16, ""), (17, "needs 17 processes, this machine takes 16: 8 on each of its 2 cores")],
)
def test_a_case_of_more_processes_than_the_cores_take_is_skipped(
    tmp_path: Path, processes: int, reason: str
) -> None:
    path = tmp_path / "many.yaml"
    text = SINGLE.text.replace("size: 4", f"size: {processes}")
    path.write_text(text.replace("num_gpus: 1", f"num_gpus: {processes}"))
    [one] = plan(recipe.load([path]), target(cores=2), EMPTY, repeat=1)
    assert reason == one.reason


def test_a_recipe_that_needs_a_container_is_run_only_in_it(tmp_path: Path) -> None:
    path, image = tmp_path / "one.yaml", "nvcr.io/nvidia/nemo:25.04"
    path.write_text(f"{SINGLE.text}container: {image}\n")
    files = recipe.load([path])
    [outside] = plan(files, target(), EMPTY, repeat=1)
    [inside] = plan(files, target(container=image), EMPTY, repeat=1)
    assert PlanAction.SKIP is outside.action
    assert "PERFDB_CONTAINER" in outside.reason
    assert (PlanAction.RUN, image) == (inside.action, inside.release.container)
    assert outside.release.container is None


def test_finished_runs_count_towards_the_repeats_wanted() -> None:
    runs = (RunDir(Path("a")), RunDir(Path("b")))
    found = of_single(History({KEY: runs}), repeat=3)
    assert [PlanAction.DONE, PlanAction.DONE, PlanAction.RUN] == [one.action for one in found]


@pytest.mark.parametrize(
    "other",
    [
        (*KEY[:3], KEY[3] - 1, *KEY[4:]),
        (*KEY[:4], KEY[4] + 1, KEY[5]),
        (*KEY[:5], "profile"),
        measurement(SINGLE.points[0], Release(framework="megatron-core", version="0.15.3")),
    ],
)
def test_another_length_seed_or_release_is_run_again(other: tuple[Any, ...]) -> None:
    [found] = of_single(History({other: (RunDir(Path("a")),)}))
    assert PlanAction.RUN is found.action


def test_a_case_of_another_runner_is_left_to_it() -> None:
    [found] = of_single(History({}, running=frozenset([KEY])))
    assert (PlanAction.SKIP, "another runner is at work on it") == (found.action, found.reason)


@pytest.mark.parametrize(
    ("only", "begin", "end"), [("smoke-*", "smoke-", ""), ("*-single", "", "-single")]
)
def test_only_picks_cases_by_name(only: str, begin: str, end: str) -> None:
    every = [point.name for file in loaded("*") for point in file.points]
    wanted = {name for name in every if name.startswith(begin) and name.endswith(end)}
    assert wanted == set(planned(target(), only=only))
    assert wanted
