"""The recipes of published rows: each row of the seeds, read without perfdb, has its case."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from perfdb import recipe
from perfdb.compare.coverage import coverage
from perfdb.recipe import RunSpec
from perfdb.record import Case, Origin, Result
from tests import seeds
from tests.seeds import SeedRow, Value
from tests.shell import Shell

RECIPES = seeds.ROOT / "recipes"
CASE_FIELDS = set(Case.model_fields) - {"kernels", "qualifiers"}
SEEDS = {"nemo": seeds.nemo, "automodel": seeds.automodel, "dfm": seeds.dfm,
         "nemotron4": seeds.nemotron4}  # fmt: skip


@cache
def specs() -> list[RunSpec]:
    """The runs of all recipes."""
    return [spec for file in recipe.load([RECIPES]) for spec in file.points]


def differences(row: SeedRow, spec: RunSpec) -> dict[str, tuple[Value, Value]]:
    """The fields that a row states and in which a case differs; FP8 alone is any FP8."""
    case, printed = spec.case.model_dump(), row.fields()
    case |= {name: ", ".join(case[name]) for name in ("kernels", "qualifiers")}
    found = {
        name: (value, case[name])
        for name, value in printed.items()
        if name in CASE_FIELDS | {"kernels"} and case[name] != value
    }
    if printed.get("qualifiers", "") != case["qualifiers"]:
        found["qualifiers"] = printed.get("qualifiers"), case["qualifiers"]
    if printed.get("precision") == "fp8" and str(case["precision"]).startswith("fp8"):
        found.pop("precision", None)
    return found


@pytest.mark.skipif(not seeds.FOLDER.is_dir(), reason="no seeds beside the project")
@pytest.mark.parametrize("read", SEEDS.values(), ids=SEEDS)
def test_each_row_of_a_seed_has_a_case_that_equals_it_field_by_field(
    read: Callable[[], list[SeedRow]],
) -> None:
    """But for the rows that contradict themselves: their errors are named, not copied.

    GBS 1 is below MBS 64 of Mixtral 8x22B: the two are swapped. With GBS 256, MBS 1 and
    256 / (4 × 4 × 8) = 2 replicas, GA is 128, not 32. SP splits over TP, and TP is 1.
    """
    swapped = {"global_batch_size": (1, 64), "micro_batch_size": (64, 1)}
    known = [
        swapped,
        {"global_batch_size": (1, 256), "micro_batch_size": (256, 1),
         "gradient_accumulation": (32, 128)},
        {"sequence_parallel": (1, False)},
    ]  # fmt: skip
    for row in read():
        closest = min((differences(row, spec) for spec in specs()), key=len)
        if closest:
            exact = [found for spec in specs() if (found := differences(row, spec)) in known]
            assert exact, (row, closest)


def test_coverage_counts_the_published_rows(tmp_path: Path, perfdb: Shell) -> None:
    """83 rows in the pages of this repository, counted by hand."""
    url = ("--db", f"sqlite:///{tmp_path / 'store.sqlite'}")
    assert 0 == perfdb("ingest", *url, str(seeds.ROOT / "data" / "published")).code
    done = perfdb("recipes", "coverage", *url, "--json", "--fail-on", "missing", str(RECIPES))
    found = json.loads(done.stdout)
    assert (83, 83, 0, 0) == tuple(
        found[name] for name in ("rows", "with_recipe", "measured", "reproduced")
    )
    corrected = [row for row in found["covered"] if row["corrections"]]
    assert {("mixtral-8x22b", 3), ("wan2.1-14b", 2)} == {
        (model, sum(row["model"] == model for row in corrected))
        for model in {row["model"] for row in corrected}
    }
    few = perfdb("recipes", "coverage", *url, "--fail-on", "missing", str(RECIPES / "smoke"))
    assert 1 == few.code


@pytest.mark.parametrize(
    ("tokens_per_sec_per_gpu", "is_reproduced"), [(16222.0, True), (8000.0, False)]
)
def test_a_row_whose_case_was_measured_counts_as_reproduced_if_it_is_as_fast(
    tokens_per_sec_per_gpu: float, is_reproduced: bool
) -> None:
    """The row of NeMo 25.04: SFT of Llama 3 8B on 8 H100, 16,222 tokens/s/GPU."""
    [spec] = [one for one in specs() if one.name == "nemo-llama3-8b-sft/systems=dgx-h100"]
    fields = ("framework", "model", "system", "task", "precision", "num_gpus",
              "global_batch_size", "micro_batch_size", "sequence_length")  # fmt: skip
    of_case = {name: getattr(spec.case, name) for name in fields}
    row = Result(**of_case, case_key="page", tokens_per_sec_per_gpu=16222.0)
    run = Result(
        **of_case, case_key=spec.case.key, origin=Origin.MEASURED, run_id="run",
        tokens_per_sec_per_gpu=tokens_per_sec_per_gpu, num_steps=40, step_time_s=1.0,
        step_time_p10_s=0.99, step_time_p90_s=1.01,
    )  # fmt: skip
    [found] = coverage([row, run], specs())
    assert (spec, {}, is_reproduced) == (found.spec, found.corrections, found.is_reproduced)
    assert found.verdict is not None
