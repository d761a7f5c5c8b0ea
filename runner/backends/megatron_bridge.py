"""Megatron-Bridge: its own performance script; the console says how each step went.

The script is not in the package but in the repository, which a NeMo container has.
PERFDB_MEGATRON_BRIDGE names the folder of another checkout. Flags:
scripts/performance/argument_parser.py; variables: megatron/bridge/recipes/run_plugins.py, where
NeMo-Run sets them. It has not run here: it needs GPUs and Transformer Engine.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from perfdb import catalog
from perfdb.recipe import RunSpec
from perfdb.record import Case
from perfdb.rundir import RunDir
from runner.backends.base import Command

NAME = "megatron-bridge"
HOME = "PERFDB_MEGATRON_BRIDGE"
IN_CONTAINER = "/opt/Megatron-Bridge"
RECIPES = {
    "deepseek-v3-671b": ("deepseek", "deepseek_v3"),
    "gpt-oss-20b": ("gpt_oss", "gpt_oss_20b"),
    "gpt-oss-120b": ("gpt_oss", "gpt_oss_120b"),
    "gpt3-175b": ("gpt", "gpt3_175b"),
    "kimi-k2": ("kimi", "kimi_k2"),
    "llama3-8b": ("llama", "llama3_8b"),
    "llama3-70b": ("llama", "llama3_70b"),
    "llama3.1-405b": ("llama", "llama31_405b"),
    "nemotron-h-56b": ("nemotronh", "nemotronh_56b"),
    "nemotron-v3-nano-30b": ("nemotronh", "nemotron_3_nano"),
    "qwen3-30b-a3b": ("qwen", "qwen3_30b_a3b"),
    "qwen3-235b-a22b": ("qwen", "qwen3_235b_a22b"),
    "qwen3-next-80b-a3b": ("qwen", "qwen3_next_80b_a3b"),
}
"""The family and the recipe of each model in Megatron-Bridge: megatron/bridge/recipes/."""
PRETRAINED_ONLY = ("deepseek-v3-671b", "gpt3-175b", "kimi-k2")
GPUS = {
    "dgx-h100": "h100", "dgx-b200": "b200", "dgx-b300": "b300", "dgx-gb200": "gb200",
    "dgx-gb300": "gb300",
}  # fmt: skip
PRECISIONS = ("bf16", "fp8_cs", "fp8_mx", "fp8_sc", "nvfp4")
TASKS = {"pretrain": "pretrain", "sft": "sft", "lora": "peft"}
MAX_CONNECTIONS = 8
"""CUDA's hardware queues where no communication has to come before a computation."""


def version() -> str | None:
    """The megatron-bridge that is installed here; None if it is not."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(NAME)
    return None


def script() -> Path:
    """The performance script that each process runs, as Megatron-Bridge's launcher has it."""
    return Path(os.environ.get(HOME) or IN_CONTAINER) / "scripts" / "performance" / "run_script.py"


def unsupported(point: RunSpec) -> str | None:
    """The flags of the script cannot say everything that a recipe can."""
    case = point.case
    scalings = ", ".join(name for name in PRECISIONS if name.startswith("fp8_"))
    checks = (
        (case.model not in RECIPES,
         f"Megatron-Bridge has no recipe of {case.model}: it has {', '.join(RECIPES)}"),
        (case.task != "pretrain" and case.model in PRETRAINED_ONLY,
         f"Megatron-Bridge has no recipe that fine-tunes {case.model}"),
        (case.system not in GPUS, f"its script knows {', '.join(GPUS)}, not {case.system}"),
        (case.precision == "fp8", f"say which FP8: {scalings}"),
        (case.precision not in PRECISIONS,
         f"its script trains in {', '.join(PRECISIONS)}, not {case.precision}"),
        (not case.micro_batch_size, "Megatron-Bridge takes micro_batch_size"),
        (bool(case.sequence_parallel) != ((case.tensor_parallel or 1) > 1),
         "its script has SP exactly where TP is above 1: set sequence_parallel so"),
        (case.fsdp_size, "its script takes fsdp_enabled, not fsdp_size"),
        (case.kernels, "its script takes options, not kernels"),
        (case.qualifiers, "its script takes no qualifiers from a recipe"),
        (version() and not script().is_file(),
         f"there is no {script()}: {HOME} must name a checkout of Megatron-Bridge {version()}"),
    )  # fmt: skip
    return next((reason for is_unsupported, reason in checks if is_unsupported), None)


def files(point: RunSpec, run: RunDir) -> dict[str, str]:
    """None: the flags say everything."""
    del point, run
    return {}


def command(point: RunSpec, run: RunDir) -> Command:
    """One process per GPU; its steps are on the console of the first and the last."""
    del run
    return Command(
        module=str(script()),
        arguments=(*_flags(point), *_overrides(point)),
        processes=point.case.num_gpus,
        variables=_variables(point.case),
        log_format="megatron_bridge",
    )


def _flags(point: RunSpec) -> Iterator[str]:
    """All sizes, as one that is left out would be that of the script's own table."""
    case = point.case
    family, recipe = RECIPES[case.model]
    given: dict[str, object] = {
        "-m": family, "-mr": recipe, "--task": TASKS[case.task],
        "-g": GPUS[case.system], "-c": case.precision,
        "-ng": case.num_gpus, "-gn": catalog.system(case.system).gpus_per_node,
        "-tp": case.tensor_parallel or 1, "-pp": case.pipeline_parallel or 1,
        "-cp": case.context_parallel or 1, "-vp": case.virtual_pipeline,
        "-ep": case.expert_parallel or 1,
        "-gb": case.global_batch_size, "-mb": case.micro_batch_size,
        "-sl": case.sequence_length, "-ms": point.warmup_steps + point.measured_steps,
    }  # fmt: skip
    if catalog.model(case.model).num_experts:
        given["-et"] = case.expert_tensor_parallel or case.tensor_parallel or 1
    if case.fsdp_enabled is not None:
        given["--use_megatron_fsdp"] = case.fsdp_enabled
    given |= {f"--{name}": value for name, value in case.options.items()}
    for flag, value in given.items():
        yield flag
        yield str(value).lower() if isinstance(value, bool) else str(value)


def _overrides(point: RunSpec) -> tuple[str, ...]:
    """Fields of the configuration that no flag sets; those of the garbage collector are PerfEnv's.

    Collected at different moments, the ranks would wait for one another.
    """
    return "train.manual_gc=true", "train.manual_gc_interval=100", f"rng.seed={point.seed}"


def _variables(case: Case) -> dict[str, str]:
    """What PerfEnvPlugin sets, which only NeMo-Run's launcher calls."""
    splits = max(case.tensor_parallel or 1, case.context_parallel or 1) > 1
    copies = max(case.data_parallel or 1, case.pipeline_parallel or 1) > 1
    connections = 32 if "moe_flex_dispatcher_backend" in case.options else MAX_CONNECTIONS
    if case.system != "dgx-h100":
        connections = 32 if splits and copies else connections
    elif splits and not case.options.get("moe_a2a_overlap"):
        # One hardware queue keeps communication ahead of the compute that waits for it.
        connections = 1
    margins = {f"NVTE_{way}_LAYERNORM_SM_MARGIN": "16" for way in ("FWD", "BWD")}
    return {"CUDA_DEVICE_MAX_CONNECTIONS": str(connections), **margins}
