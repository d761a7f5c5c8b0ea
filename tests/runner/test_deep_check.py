"""The deep check: parameters against arithmetic by hand, memory against the GPU's."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perfdb import recipe
from runner.backends import megatron_core
from runner.megatron.config import parse_config
from runner.memory import stages
from tests.runner.megatron_worker import needs_megatron
from tests.seeds import ROOT
from tests.shell import Shell

pytestmark = needs_megatron  # by name: an import would cost each process that collects seconds

NEMO = ROOT / "recipes" / "nemo"
TOO_LARGE = """
name: too-large
framework: megatron-core
model: llama3-70b
systems: [dgx-h100]
num_gpus: 8
precision: bf16
sequence_length: 4096
global_batch_size: 8
micro_batch_size: 1
tensor_parallel: 4
sequence_parallel: true
"""


FILES = [
    NEMO / "llama3-8b-pretrain.yaml",
    NEMO / "llama3.1-405b-pretrain.yaml",
    NEMO / "mixtral-8x7b-pretrain.yaml",
]
OTHERS = [ROOT / "recipes" / "automodel" / "llama3-8b-lora.yaml", ROOT / "recipes" / "dfm"]


@pytest.fixture(scope="module")
def deep(preloaded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the deep check says of cases by their names, one of which does not fit."""
    too_large = tmp_path_factory.mktemp("deep") / "too-large.yaml"
    too_large.write_text(TOO_LARGE)
    words = ["recipes", "validate", "--deep", "--json", *FILES, too_large, *OTHERS]
    done = subprocess.run([preloaded / "bin" / "perfdb", *words], capture_output=True, check=False)
    assert 1 == done.returncode
    return {it["name"]: it for it in json.loads(done.stdout)["deep"]}


def test_a_rank_holds_the_parameters_that_arithmetic_says(deep: dict[str, dict[str, Any]]) -> None:
    """A layer of Llama has 2h² of queries and outputs, 2·1024·h of keys and values, and 3hf.

    The 405B model is cut by TP 8 (its two norms a layer are not) over 8 stages, where the embedding
    and the loss count as a layer each: 15 layers, six times 16, 15. Mixtral has 46,702,792,704
    parameters on Hugging Face too; with EP 8 a rank has one expert of each layer.
    """
    llama8 = deep["nemo-llama3-8b-pretrain/systems=dgx-h100"]
    layer = 2 * 4096**2 + 2 * 1024 * 4096 + 3 * 4096 * 14336 + 2 * 4096
    assert 8_030_261_248 == 32 * layer + 2 * 128256 * 4096 + 4096 == llama8["parameters"]
    state = {"weights": 2, "gradients": 4, "optimizer": 12 / 8}  # Adam's over DP 4 × CP 2
    memory = llama8["memory_bytes"]
    assert {part: each * 8_030_261_248 for part, each in state.items()} == {
        part: memory[part] for part in state
    }
    assert (True, True) == (llama8["ok"], llama8["fits"])  # as published: it ran

    llama405 = deep["nemo-llama3.1-405b-pretrain/systems=dgx-h100"]
    layer = (2 * 16384**2 + 2 * 1024 * 16384 + 3 * 16384 * 53248) // 8 + 2 * 16384
    vocabulary = 128256 * 16384 // 8
    assert [
        15 * layer + vocabulary, *[16 * layer] * 6, 15 * layer + vocabulary + 16384
    ] == llama405["parameters_per_rank"]  # fmt: skip
    assert [15, *[16] * 6, 15] == llama405["layers_per_rank"]

    mixtral = deep["nemo-mixtral-8x7b-pretrain/systems=dgx-b200"]
    one_expert = 2 * 4096**2 + 2 * 1024 * 4096 + 3 * 4096 * 14336 + 8 * 4096 + 2 * 4096
    assert 46_702_792_704 == mixtral["parameters"]
    assert [32 * one_expert + 2 * 32000 * 4096 + 4096] == mixtral["parameters_per_rank"]

    for spec in (spec for file in recipe.load(FILES) for spec in file.points):
        if not spec.case.options:  # without the ends of a pipeline among its layers
            config = parse_config(megatron_core.settings(spec))
            computed = [stage.parameters for stage in stages(config)]
            assert deep[spec.name]["parameters_per_rank"] == computed


def test_what_does_not_fit_and_what_is_not_covered_say_why(deep: dict[str, dict[str, Any]]) -> None:
    """70.55·10⁹ parameters over TP 4: 6 bytes each and 12/2 of the optimizer are 212·10⁹ bytes."""
    too_large, automodel, *wan = [*deep.values()][-7:]
    assert (False, False) == (too_large["ok"], too_large["fits"])
    assert "a GPU has 79.65 GiB" in too_large["reason"]
    memory = too_large["memory_bytes"]
    state = sum(memory[part] for part in ("weights", "gradients", "optimizer"))
    assert 12 * 70.55e9 / 4 == pytest.approx(state, rel=1e-3)
    assert [None] * 6 == [it["ok"] for it in (automodel, *wan)]
    assert "automodel does not train with Megatron-Core" in automodel["reason"]
    assert all("wan2.1-14b is dit" in it["reason"] for it in wan)


def test_coverage_counts_the_rows_that_can_be_built(perfdb: Shell, preloaded: Path) -> None:
    """Llama 3 8B has nine rows on the NeMo page; the one of AutoModel is not built."""
    assert 0 == perfdb("ingest", str(ROOT / "data" / "published")).code
    wanted = ("recipes", "coverage", "--json", "--model", "llama3-8b")
    recipes = str(ROOT / "recipes")
    assert None is json.loads(perfdb(*wanted, recipes).stdout)["buildable"]
    command = (preloaded / "bin" / "perfdb", *wanted, "--deep", recipes)
    deep = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (10, 10, 9) == tuple(deep[name] for name in ("rows", "with_recipe", "buildable"))
