"""Sums up a finished run from all ranks, and writes it so that it is there whole or not at all."""

import json
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import megatron.core
import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.utils import get_te_version

from runner.megatron.attention import HAVE_TRANSFORMER_ENGINE
from runner.megatron.config import WorkerConfig
from runner.megatron.model import Training
from runner.megatron.steps import peak_memory_bytes

SCHEMA_VERSION = 1


def summarise(training: Training, config: WorkerConfig) -> dict[str, object]:
    """What the run was; every rank takes part, and every rank gets the answer."""
    on_gpu = training.device.type == "cuda"
    mine = (_rank(), peak_memory_bytes(training.device), training.weight_counts)
    everyones = [mine] * dist.get_world_size()
    dist.all_gather_object(everyones, mine)
    # Under their global names, weights that several ranks hold are counted once.
    sizes = {name: size for _, _, counts in everyones for name, size in counts.items()}
    return {
        "schema_version": SCHEMA_VERSION,
        "world_size": dist.get_world_size(),
        "data_parallel": parallel_state.get_data_parallel_world_size(),
        "num_microbatches": config.num_microbatches(dist.get_world_size()),
        "num_parameters": sum(sizes.values()),
        "backend": dist.get_backend(),
        "device": torch.cuda.get_device_name(training.device) if on_gpu else "cpu",
        "cpu_shim": "runner.megatron.cpu" in sys.modules,
        "memory_kind": "cuda_allocated" if on_gpu else "process_rss",
        "peak_memory_bytes": [memory for _, memory, _ in everyones],
        "ranks": [rank for rank, _, _ in everyones],
        "versions": _versions(),
    }


def _rank() -> dict[str, int]:
    return {
        "rank": dist.get_rank(),
        "tp": parallel_state.get_tensor_model_parallel_rank(),
        "pp": parallel_state.get_pipeline_model_parallel_rank(),
        "cp": parallel_state.get_context_parallel_rank(),
        "ep": parallel_state.get_expert_model_parallel_rank(),
        "dp": parallel_state.get_data_parallel_rank(),
    }


def _versions() -> dict[str, str | None]:
    nccl_version: Callable[[], tuple[int, ...]] = torch.cuda.nccl.version
    on_gpu = torch.cuda.is_available()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "megatron-core": megatron.core.__version__,
        "transformer-engine": str(get_te_version()) if HAVE_TRANSFORMER_ENGINE else None,
        "cuda": torch.version.cuda,
        "nccl": ".".join(map(str, nccl_version())) if on_gpu else None,
    }


def write(path: Path, summary: dict[str, object]) -> None:
    """Write to a temporary file, then rename: a reader never sees half a summary."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
