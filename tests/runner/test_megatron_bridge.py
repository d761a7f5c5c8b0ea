"""The Megatron-Bridge backend: its command, what it refuses, and a run whose script prints steps."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from perfdb import hardware, recipe
from perfdb.cli import main
from perfdb.run_record import RunRecord
from perfdb.rundir import RunDir, find_runs
from perfdb.validity import contradiction
from runner.backends import megatron_bridge
from runner.printed import PrintedSteps
from runner.session import Tools
from tests import factories, seeds

ROOT = Path(__file__).parents[2]
HOME = ROOT / "tests" / "data" / "megatron_bridge"
CORPUS = seeds.FOLDER.parent / "corpus"
PARSER = HOME / "scripts" / "performance" / "argument_parser.py"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the project")


def spec(**changed: object) -> recipe.RunSpec:
    case = factories.case(**{"framework": "megatron-bridge", **changed})
    return recipe.RunSpec("one", case, 10, 40, 1234, 60, None)


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


def run(*arguments: str) -> str:
    h100 = hardware.from_nvidia_smi("NVIDIA H100 80GB HBM3, 580.65.06, 81559\n" * 2)
    tools = Tools(machine=h100, backends={megatron_bridge.NAME: Installed()})
    return CliRunner().invoke(main, ["run", "one.yaml", *arguments], obj=tools).stdout


@pytest.mark.slow
def test_a_run_has_the_steps_that_its_script_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under torchrun, with a script that has the documented flags and the format of the steps."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(megatron_bridge.HOME, str(HOME))
    Path("one.yaml").write_text(RECIPE)
    [row] = json.loads(run("--json"))["cases"]
    assert ("finished", 3, 0.25) == (row["outcome"], row["num_steps"], row["step_time_s"]), row
    steps = RunDir(Path(row["run_dir"])).read_steps()
    assert [(1, 3.0, 8.9), (2, 0.25, 8.8)] == [(s.step, s.step_time_s, s.loss) for s in steps[:2]]
    # The script trains on another batch than it was told to.
    monkeypatch.setenv("BRIDGE_GBS", "64")
    [other] = json.loads(run("--json", "--repeat", "2"))["cases"][1:]
    assert "failed" == other["outcome"]
    assert "global_batch_size" in other["reason"]
    assert 2 == len(find_runs(tmp_path))


@needs_corpus
def test_steps_are_read_from_the_console_of_a_real_run(tmp_path: Path) -> None:
    log = (CORPUS / "cloudai_fixture_megatron_bridge_0.log").read_bytes()
    run = RunDir(tmp_path)
    run.console.write_bytes(log)
    [step] = PrintedSteps(run, "megatron_bridge").read()
    assert (50, 9.089, 8.114214, 0.042) == (step.step, step.step_time_s, step.loss, step.grad_norm)
    assert (step,) == run.read_steps()


def cards() -> dict[tuple[str, int], dict[str, Any]]:
    """What the verification cards print of GB300, by model and number of GPUs, without perfdb."""
    found = {}
    for name in ("qwen3-30b-a3b", "gpt-oss-120b"):
        items = yaml.safe_load((CORPUS / f"mbridge_card_{name}.yaml").read_text())["items"]
        print(items)
    return found
