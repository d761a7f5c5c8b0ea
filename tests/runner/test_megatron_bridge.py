"""The Megatron-Bridge backend: its command, what it refuses, and a run of printed steps."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from perfdb import hardware, recipe
from perfdb.rundir import RunDir, find_runs
from runner.backends import megatron_bridge
from runner.printed import StepSource
from runner.session import Tools
from tests import factories, seeds
from tests.shell import Shell

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes" / "megatron-bridge"
HOME = ROOT / "tests" / "data" / "megatron_bridge"
CORPUS = seeds.FOLDER.parent / "corpus"
PARSER = HOME / "scripts" / "performance" / "argument_parser.py"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the project")


def spec(**changed: object) -> recipe.RunSpec:
    case = factories.case(**{"framework": "megatron-bridge", **changed})
    return recipe.RunSpec("one", case, 10, 40, 1234, 60, None, {})


def command_of(point: recipe.RunSpec) -> tuple[dict[str, Any], list[str], dict[str, str]]:
    """The flags as the documented parser reads them, the overrides, the variables."""
    made = megatron_bridge.command(point, RunDir(Path("run")))
    parser = runpy.run_path(str(PARSER))["parse_cli_args"]()
    flags, overrides = parser.parse_known_args(made.arguments)
    return vars(flags), overrides, dict(made.variables)


@pytest.mark.parametrize(
    ("changed", "flags", "connections"),
    [
        # CP 2 on H100: communication has to come first. All sizes are told, also those of 1.
        ({}, {"model_family_name": "llama", "model_recipe_name": "llama3_8b", "gpu": "h100",
              "compute_dtype": "bf16", "num_gpus": 8, "gpus_per_node": 8, "task": "pretrain",
              "tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1,
              "context_parallel_size": 2, "virtual_pipeline_model_parallel_size": None,
              "expert_model_parallel_size": 1, "expert_tensor_parallel_size": None,
              "global_batch_size": 128, "micro_batch_size": 1, "seq_length": 8192,
              "max_steps": 50, "use_megatron_fsdp": None}, "1"),
        ({"model": "llama3-70b", "system": "dgx-gb200", "num_gpus": 64, "precision": "fp8_mx",
          "tensor_parallel": 2, "pipeline_parallel": 4, "virtual_pipeline": 5, "task": "lora",
          "sequence_parallel": True, "fsdp_enabled": False},
         {"model_recipe_name": "llama3_70b", "gpu": "gb200", "compute_dtype": "fp8_mx",
          "task": "peft", "gpus_per_node": 4, "virtual_pipeline_model_parallel_size": 5,
          "use_megatron_fsdp": False}, "32"),
        # ETP is TP unless it is given.
        ({"model": "qwen3-30b-a3b", "tensor_parallel": 2, "context_parallel": 1,
          "expert_parallel": 4, "sequence_parallel": True, "fsdp_enabled": True,
          "options": {"moe_a2a_overlap": True, "moe_flex_dispatcher_backend": "deepep",
                      "cuda_graph_impl": "transformer_engine", "cuda_graph_scope": "attn",
                      "config_variant": "v2"}},
         {"model_family_name": "qwen", "expert_tensor_parallel_size": 2, "use_megatron_fsdp": True,
          "moe_a2a_overlap": True, "moe_flex_dispatcher_backend": "deepep",
          "cuda_graph_impl": "transformer_engine", "cuda_graph_scope": "attn",
          "config_variant": "v2"}, "32"),
    ],
)  # fmt: skip
def test_a_case_makes_the_flags_of_the_performance_script(
    changed: dict[str, object], flags: dict[str, object], connections: str
) -> None:
    point = spec(**changed)
    assert megatron_bridge.unsupported(point) is None
    read, overrides, variables = command_of(point)
    assert flags == {name: read[name] for name in flags}
    assert all("=" in one for one in overrides)
    assert connections == variables["CUDA_DEVICE_MAX_CONNECTIONS"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"precision": "fp8"}, "say which FP8: fp8_cs, fp8_mx, fp8_sc"),
        ({"precision": "fp8_ds"}, "trains in bf16, fp8_cs, fp8_mx, fp8_sc, nvfp4, not fp8_ds"),
        ({"model": "mixtral-8x7b"}, "has no recipe of mixtral-8x7b"),
        ({"model": "kimi-k2", "task": "sft"}, "has no recipe that fine-tunes kimi-k2"),
        ({"system": "dgx-h200"}, "not dgx-h200"),
        ({"micro_batch_size": None, "local_batch_size": 1}, "takes micro_batch_size"),
        ({"tensor_parallel": 2}, "SP exactly where TP is above 1"),
        ({"fsdp_size": 8}, "takes fsdp_enabled, not fsdp_size"),
        ({"kernels": ("DeepEP",)}, "takes options, not kernels"),
    ],
)
def test_what_no_flag_says_is_refused(changed: dict[str, object], reason: str) -> None:
    assert reason in (megatron_bridge.unsupported(spec(**changed)) or "")


class Installed:
    """The backend where Megatron-Bridge is installed."""

    NAME = megatron_bridge.NAME
    unsupported = staticmethod(megatron_bridge.unsupported)
    files = staticmethod(megatron_bridge.files)
    command = staticmethod(megatron_bridge.command)

    def version(self) -> str:
        """A release of it."""
        return "0.3.1"


RECIPE = """\
{name: bridge, framework: megatron-bridge, model: llama3-8b, systems: [dgx-h100], num_gpus: 2,
 precision: fp8_cs, sequence_length: 8192, global_batch_size: 128, micro_batch_size: 1,
 warmup_steps: 1, measured_steps: 3}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("quick_torchrun")
def test_a_run_has_the_steps_that_its_script_prints(
    perfdb: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under torchrun, with a script that has the documented flags and the format of the steps."""
    h100 = hardware.from_nvidia_smi("NVIDIA H100 80GB HBM3, 580.65.06, 81559\n" * 2)
    tools = Tools(machine=h100, backends={megatron_bridge.NAME: Installed()})
    monkeypatch.setenv(megatron_bridge.HOME, str(HOME))
    (tmp_path / "one.yaml").write_text(RECIPE)
    [row] = json.loads(perfdb("run", "one.yaml", "--json", obj=tools).stdout)["cases"]
    assert ("finished", 3, 0.25) == (row["outcome"], row["num_steps"], row["step_time_s"]), row
    steps = RunDir(tmp_path / row["run_dir"]).read_steps()
    assert [(1, 3.0, 8.9), (2, 0.25, 8.8)] == [(s.step, s.step_time_s, s.loss) for s in steps[:2]]
    # The script trains on another batch than it was told to.
    monkeypatch.setenv("BRIDGE_GBS", "64")
    [other] = json.loads(perfdb("run", "one.yaml", "--json", "--repeat", "2", obj=tools).stdout)[
        "cases"
    ][1:]
    assert "failed" == other["outcome"]
    assert "global_batch_size" in other["reason"]
    assert 2 == len(find_runs(tmp_path))


@needs_corpus
def test_steps_are_read_from_the_console_of_a_real_run(tmp_path: Path) -> None:
    log = (CORPUS / "cloudai_fixture_megatron_bridge_0.log").read_bytes()
    run = RunDir(tmp_path)
    run.console.write_bytes(log)
    [step] = StepSource(run, "megatron_bridge").read()
    assert (50, 9.089, 8.114214, 0.042) == (step.step, step.step_time_s, step.loss, step.grad_norm)
    assert (step,) == run.read_steps()


@needs_corpus
@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "gpt-oss-120b"])
def test_the_recipes_are_what_the_verification_cards_print(name: str) -> None:
    text = " ".join((CORPUS / f"mbridge_card_{name}.yaml").read_text().split())
    [printed] = re.findall(
        r"On exactly (\d+) GB300s, the canonical MXFP8 \D* recipe completes exactly (\d+) "
        r"optimizer steps at TP(\d)/PP(\d)/CP(\d)/EP(\d+)/ETP(\d), GBS/MBS (\d+)/(\d+), and "
        r"sequence length (\d+)", text,
    )  # fmt: skip
    gpus, steps, tp, pp, cp, ep, etp, gbs, mbs, length = map(int, printed)
    scales = re.findall(r"- num_gpus: (\d+) global_batch_size: (\d+) command", text)
    [file] = recipe.load([RECIPES / f"{name}-pretrain.yaml"])
    cases = [point.case for point in file.points]
    assert (scales or [(str(gpus), str(gbs))]) == [
        (str(case.num_gpus), str(case.global_batch_size)) for case in cases
    ]
    for point, case in zip(file.points, cases, strict=True):
        assert ("dgx-gb300", "fp8_mx", name, None) == (
            case.system, case.precision, case.model, megatron_bridge.unsupported(point),
        )  # fmt: skip
        assert (tp, pp, cp, ep, etp, mbs, length, steps) == (
            case.tensor_parallel, case.pipeline_parallel, case.context_parallel,
            case.expert_parallel, case.expert_tensor_parallel, case.micro_batch_size,
            case.sequence_length, point.warmup_steps + point.measured_steps,
        )  # fmt: skip
