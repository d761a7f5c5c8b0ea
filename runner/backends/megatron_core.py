"""Megatron-Core: its own GPT model, schedules and optimizer, driven by runner.megatron.train."""

import json
import re
import runpy
import shlex
import shutil
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from perfdb import catalog
from perfdb.recipe import RunSpec
from perfdb.record import Case, RunKind
from perfdb.rundir import RunDir
from runner.backends.base import Command

NAME = "megatron-core"
FAMILIES = ("gpt", "moe")
DIFFUSION = "dit"
PRECISIONS = ("fp32", "bf16")
TRANSFORMER_ENGINE = {
    "fp8_ds": (1, 0), "fp8_mx": (2, 1), "fp8_cs": (2, 2), "fp8_sc": (2, 3), "nvfp4": (2, 7),
}  # fmt: skip
"""The least Transformer Engine that a precision takes. Source: Megatron-Core's fp8_utils.py and
fp4_utils.py.
"""
BLACKWELL = ("dgx-b200", "dgx-b300", "dgx-gb200", "dgx-gb300")

SHAPE_FIELDS = (
    "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups",
    "head_dim", "vocab_size", "gated_mlp", "activation", "normalization", "tied_embeddings",
    "rotary_base", "num_experts", "moe_top_k", "moe_ffn_hidden_size",
    "moe_shared_expert_ffn_hidden_size",
)  # fmt: skip
LAYOUT_FIELDS = (
    "precision", "sequence_length", "global_batch_size", "micro_batch_size", "tensor_parallel",
    "pipeline_parallel", "virtual_pipeline", "context_parallel", "expert_parallel",
    "expert_tensor_parallel", "sequence_parallel",
)  # fmt: skip


def version() -> str | None:
    """The megatron-core that a worker imports: a checkout on the path comes before pip's."""
    try:
        found = find_spec("megatron.core")
    except ModuleNotFoundError:
        return None
    if found is None or found.origin is None:
        return None
    info = runpy.run_path(str(Path(found.origin).with_name("package_info.py")))
    return str(info["__version__"])


def unsupported(point: RunSpec) -> str | None:
    """This worker pre-trains GPT and MoE models in BF16 or FP32."""
    case = point.case
    family = catalog.model(case.model).family
    layout = (case.tensor_parallel, case.pipeline_parallel, case.context_parallel)
    checks = (
        (family not in (*FAMILIES, DIFFUSION),
         f"the worker builds {', '.join(FAMILIES)} and {DIFFUSION} models, and {case.model} is "
         f"{family}"),
        (family == DIFFUSION and {*layout} - {1, None},
         f"the worker trains {DIFFUSION} models with data parallelism alone"),
        (family == DIFFUSION and case.precision not in PRECISIONS,
         f"the worker trains {DIFFUSION} models in {' and '.join(PRECISIONS)}"),
        (reason := _lacks_engine(case), reason),
        (case.task != "pretrain", f"the worker pre-trains; {case.task} is not built"),
        (case.fsdp_size, "the worker has no FSDP"),
        (case.qualifiers, "the worker takes no qualifiers from a recipe"),
        (case.kernels, "the worker takes no kernels from a recipe"),
        (case.local_batch_size or not case.micro_batch_size,
         "the worker takes micro_batch_size, not local_batch_size"),
    )  # fmt: skip
    return next((reason for is_unsupported, reason in checks if is_unsupported), None)


def _lacks_engine(case: Case) -> str | None:
    """Why a precision or an attention needs a Transformer Engine, and there is none; else None."""
    precision, chosen = case.precision or "", case.options.get("attention_backend", "auto")
    least = TRANSFORMER_ENGINE.get(precision)
    what = precision if least else f"attention_backend {chosen}"
    if least is None and precision not in PRECISIONS:
        known = ", ".join((*PRECISIONS, *TRANSFORMER_ENGINE))
        return f"the worker does not train in {precision}: it has {known}"
    if least is None and chosen == "auto":
        return None
    if not catalog.has_gpus(case.system):
        return f"{what} needs a GPU: Transformer Engine, which computes it, runs on no CPU"
    if (found := transformer_engine()) is None:
        return f"{what} needs Transformer Engine, which is not installed here"
    numbers = tuple(int(number) for number in re.findall(r"\d+", found)[:2])
    if least and numbers < least:
        return f"{what} needs Transformer Engine {least[0]}.{least[1]}, and {found} is here"
    return None


def transformer_engine() -> str | None:
    """The version of the Transformer Engine here; None if there is none."""
    try:
        return metadata.version("transformer-engine")
    except metadata.PackageNotFoundError:
        return None


def files(point: RunSpec, run: RunDir) -> dict[str, str]:
    """The JSON that runner.megatron.config reads."""
    return {run.worker_config.name: json.dumps(settings(point), indent=1)}


def settings(point: RunSpec) -> dict[str, object]:
    """The worker's configuration."""
    case, model = point.case, catalog.model(point.case.model)
    own = ("video_diffusion",) if model.family == DIFFUSION else ()
    return {
        "schema_version": 1,
        "model": model.model_dump(include={*SHAPE_FIELDS, *own}),
        **case.model_dump(include=set(LAYOUT_FIELDS)),
        "warmup_steps": point.warmup_steps,
        "measured_steps": point.measured_steps,
        "seed": point.seed,
        "options": dict(case.options),
        "kind": point.kind.value,
        "profile_ranks": list(point.profile_ranks),
        "reload_layout": {
            name: None if (name, size) == ("virtual_pipeline", 1) else size
            for name, size in point.reload_layout.items()
        },
    }


def nsys(point: RunSpec, run: RunDir) -> tuple[str, ...]:
    """What starts the ranks of a profile under Nsight Systems, and the others as they are.

    Empty where there is nothing to profile, no GPU or no nsys. The worker's cudaProfilerStart and
    cudaProfilerStop bound what is recorded: the measured steps.
    """
    found = shutil.which("nsys")
    if point.kind is not RunKind.PROFILE or not catalog.has_gpus(point.case.system) or not found:
        return ()
    ranks = "|".join(map(str, point.profile_ranks))
    script = (
        f"case $RANK in {ranks}) exec {shlex.quote(found)} profile --sample=none"
        " --trace=cuda,nvtx,osrt --capture-range=cudaProfilerApi --capture-range-end=stop"
        ' --force-overwrite=true --output="$0/profile_$RANK" "$@";; *) exec "$@";; esac'
    )
    return ("bash", "-c", script, str(run.path.absolute()))


def command(point: RunSpec, run: RunDir) -> Command:
    """One process per GPU (per rank on the cpu system), which computes on one thread there."""
    case = point.case
    variables = {}
    if case.system == "cpu":
        variables = {"OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}
    elif max(case.tensor_parallel or 1, case.context_parallel or 1) > 1:
        # One hardware queue keeps communication ahead of the compute that waits for it;
        # Megatron-LM's arguments.py demands it before Blackwell.
        variables = {} if case.system in BLACKWELL else {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    return Command(
        module="runner.megatron.train",
        arguments=(
            "--config", str(run.worker_config.absolute()),
            "--steps", str(run.steps.absolute()),
            "--summary", str(run.summary.absolute()),
            "--device", "cuda" if catalog.has_gpus(case.system) else "cpu",
            *(("--nsys",) if (wrapper := nsys(point, run)) else ()),
        ),
        wrapper=wrapper,
        processes=case.num_gpus,
        variables=variables,
    )  # fmt: skip
