"""The plan: which cases run here, which are done, and which are skipped and why."""

from pathlib import Path
from typing import Any

import pytest

from perfdb import hardware, recipe
from perfdb.recipe import RunSpec
from perfdb.record import Case, Release
from runner.history import Measurement
from runner.plan import Availability, PlanAction, Support, plan

RECIPES = Path(__file__).parents[2] / "recipes"
H100 = hardware.from_nvidia_smi("NVIDIA H100 80GB HBM3, 580.65.06, 81559\n" * 8)
CPU = hardware.without_gpu("no GPU")


def supported(case: Case) -> str | None:
    return "not in FP8" if case.precision == "fp8" else None


CORE = Release(framework="megatron-core", version="0.16.1")
ONCE: dict[str, Any] = {"only": "*", "repeat": 1}


def measurement(point: RunSpec, release: Release) -> Measurement:
    lengths = point.warmup_steps, point.measured_steps
    return (point.case.key, release.key, *lengths, point.seed)


def here(where: hardware.Machine = CPU, **changes: object) -> Availability:
    fields = {"frameworks": {"megatron-core": Support("0.16.1", supported)}, "done": {}, **changes}
    return Availability(machine=where, **fields)  # type: ignore[arg-type]  # the test's own fields


def verdicts(found: Availability, only: str = "*", repeat: int = 1) -> dict[str, tuple[str, str]]:
    planned = plan(recipe.load([RECIPES]), found, only=only, repeat=repeat)
    return {one.point.name: (one.action.value, one.reason) for one in planned}


def test_a_recipe_for_a_dgx_is_skipped_on_a_cpu_with_its_reason() -> None:
    found = verdicts(here(), only="llama3-8b-8l-1gpu/dgx-h100")
    assert {"llama3-8b-8l-1gpu/dgx-h100": ("skip", "needs dgx-h100, this machine is cpu")} == found


def test_smoke_recipes_are_for_the_cpu_only() -> None:
    assert {"run"} == {verdict for verdict, _ in verdicts(here(), only="smoke-*").values()}
    assert {"skip"} == {verdict for verdict, _ in verdicts(here(H100), only="smoke-*").values()}


def test_a_case_larger_than_the_machine_is_skipped() -> None:
    found = verdicts(here(H100), only="nemotron4-15b/*")
    reason = "needs 16 GPUs, this machine has 8"
    assert ("skip", reason) == found["nemotron4-15b/num_gpus=16/precision=bf16"]


@pytest.mark.parametrize(
    ("processes", "reason"),
    [
        (16, ""),
        (17, "needs 17 processes, this machine takes 16: 8 on each of its 2 cores"),
    ],
)
def test_a_case_of_more_processes_than_the_cores_take_is_skipped(
    tmp_path: Path, processes: int, reason: str
) -> None:
    path = tmp_path / "many.yaml"
    text = (RECIPES / "smoke" / "single.yaml").read_text().replace("size: 4", f"size: {processes}")
    path.write_text(text.replace("num_gpus: 1", f"num_gpus: {processes}"))
    [one] = plan(recipe.load([path]), here(cores=2), **ONCE)
    assert reason == one.reason


def test_what_a_backend_cannot_run_is_skipped_with_the_backends_words() -> None:
    one_gpu = here(H100, frameworks={"megatron-core": Support("0.16.1", lambda case: "not today")})
    assert ("skip", "not today") == verdicts(one_gpu)["llama3-8b-8l-1gpu/dgx-h100"]


def test_a_framework_that_is_not_installed_is_a_reason() -> None:
    missing = here(frameworks={"megatron-core": Support(None, supported)})
    assert ("skip", "megatron-core is not installed here") == verdicts(missing)["smoke-dp2"]


def test_a_framework_without_a_backend_is_a_reason() -> None:
    assert ("skip", "no backend runs megatron-core yet") == verdicts(here(frameworks={}))[
        "smoke-dp2"
    ]


def test_an_unknown_gpu_runs_nothing() -> None:
    unknown = hardware.from_nvidia_smi("NVIDIA A900-SXM4-80GB, 580, 81920\n")
    assert {"skip"} == {verdict for verdict, _ in verdicts(here(unknown)).values()}


def test_finished_runs_count_towards_the_repeats_wanted() -> None:
    [file] = recipe.load([RECIPES / "smoke" / "single.yaml"])
    release = Release(framework="megatron-core", version="0.16.1")
    key = measurement(file.points[0], release)
    planned = plan([file], here(done={key: 2}), only="*", repeat=3)
    assert [PlanAction.DONE, PlanAction.DONE, PlanAction.RUN] == [one.action for one in planned]


@pytest.mark.parametrize(("longer", "seed"), [(-1, 0), (0, 1)])
def test_a_recipe_that_measures_longer_or_from_another_seed_is_run_again(
    longer: int, seed: int
) -> None:
    [file] = recipe.load([RECIPES / "smoke" / "single.yaml"])
    case, release, warmup, measured, seeded = measurement(file.points[0], CORE)
    before = (case, release, warmup, measured + longer, seeded + seed)
    [planned] = plan([file], here(done={before: 1}), **ONCE)
    assert PlanAction.RUN is planned.action


def test_another_release_is_run_again() -> None:
    [file] = recipe.load([RECIPES / "smoke" / "single.yaml"])
    older = Release(framework="megatron-core", version="0.15.3")
    done = {measurement(file.points[0], older): 1}
    [planned] = plan([file], here(done=done), only="*", repeat=1)
    assert PlanAction.RUN is planned.action


def test_what_another_runner_is_at_work_on_is_left_to_it() -> None:
    [file] = recipe.load([RECIPES / "smoke" / "single.yaml"])
    key = measurement(file.points[0], Release(framework="megatron-core", version="0.16.1"))
    [planned] = plan([file], here(running=frozenset([key])), only="*", repeat=1)
    assert (PlanAction.SKIP, "another runner is at work on it") == (planned.action, planned.reason)


def test_a_recipe_that_needs_a_container_is_run_only_in_it(tmp_path: Path) -> None:
    text = (RECIPES / "smoke" / "single.yaml").read_text()
    path = tmp_path / "one.yaml"
    path.write_text(text + "container: nvcr.io/nvidia/nemo:25.04\n")
    files = recipe.load([path])
    [outside] = plan(files, here(), only="*", repeat=1)
    [inside] = plan(files, here(container="nvcr.io/nvidia/nemo:25.04"), only="*", repeat=1)
    assert PlanAction.SKIP is outside.action
    assert "PERFDB_CONTAINER" in outside.reason
    assert (PlanAction.RUN, "nvcr.io/nvidia/nemo:25.04") == (
        inside.action,
        inside.release.container,
    )
    assert outside.release.container is None


@pytest.mark.parametrize(
    ("only", "begin", "end"),
    [("smoke-*", "smoke-", ""), ("*-single", "", "-single"), ("nothing", "nothing", "nothing")],
)
def test_only_picks_cases_by_name(only: str, begin: str, end: str) -> None:
    every = [point.name for file in recipe.load([RECIPES]) for point in file.points]
    wanted = {name for name in every if name.startswith(begin) and name.endswith(end)}
    assert wanted == set(verdicts(here(), only=only))
    assert bool(wanted) == (only != "nothing")
