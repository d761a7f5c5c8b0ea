"""Trains for a number of steps and times each: the process that runs on every GPU.

    torchrun --nproc-per-node 8 -m runner.megatron.train \
        --config worker.json --steps steps.jsonl --summary summary.json

Rank 0 writes a line per step as it happens, and the summary only when all went well. Without a
GPU the same code trains over gloo, behind the device shim of cpu.py; set OMP_NUM_THREADS=1 there.
"""

import argparse
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

import torch

if not torch.cuda.is_available():
    # Megatron-Core wraps functions in torch.compile as it is imported; on a CPU, where no fused
    # kernel is used, that only costs time.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")

import megatron.core
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.utils import get_te_version
from torch import Tensor, nn
from torch.distributed.elastic.multiprocessing.errors import record

from runner.megatron.attention import HAVE_TRANSFORMER_ENGINE
from runner.megatron.config import WorkerConfig, read_config
from runner.megatron.data import MicroBatch, MockData, Shard
from runner.megatron.dit import VideoBatch, VideoData
from runner.megatron.model import Training, build, start_groups
from runner.megatron.steps import Clock, WorkerStep, megatron_line, reduced
from runner.worker import (
    SUMMARY_VERSION,
    check_device,
    peak_memory_bytes,
    write_line,
    write_summary,
)

Batch = MicroBatch | VideoBatch
LossFunction = Callable[[Tensor], tuple[Tensor, dict[str, Tensor]]]


@record  # a failing rank leaves its traceback in torchrun's error.json
def main() -> None:
    """Train as the configuration says; write a line for each step, and a summary at the end."""
    started = time.perf_counter()
    arguments = parse_arguments()
    first = os.environ.get("RANK", "0") == "0"
    if first:
        arguments.summary.unlink(missing_ok=True)  # it would say that this run went well
    config = read_config(arguments.config)
    device, shim_hits = start_device(arguments.device)
    start_processes(config, device)
    training = build(config, device)
    data = mock_data(config, device)
    setup_time_s = time.perf_counter() - started

    own_steps = arguments.steps if first else Path(os.devnull)
    with own_steps.open("w", encoding="utf-8") as steps, ExitStack() as profile:
        for number in range(1, config.total_steps + 1):
            if number == config.warmup_steps + 1:
                profile.enter_context(profiled(config, arguments))
            step = timed_step(number, data.step(number - 1), training, config)
            write_line(steps, step.as_json())
            if first:
                write_line(sys.stdout, megatron_line(step, config, datetime.now()))

    outcome = summarise(training, config)
    if config.kind == "checkpoint":
        outcome["checkpoint"] = checkpointed(arguments.summary, config, training)
    outcome |= {"cpu_shim_hits": dict(shim_hits), "setup_time_s": setup_time_s}
    dist.barrier()
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()
    if first:
        write_summary(arguments.summary, outcome)


def parse_arguments() -> argparse.Namespace:
    """The files that the runner names, and the device."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--config", type=Path, required=True, help="what to train (JSON)")
    parser.add_argument("--steps", type=Path, required=True, help="gets one JSON line per step")
    parser.add_argument("--summary", type=Path, required=True, help="written last, on success")
    parser.add_argument("--nsys", action="store_true", help="profiled ranks are started by nsys")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="fail on the other one")
    return parser.parse_args()


# ------------------------------------------------------------------------------- device and ranks


def start_device(wanted: str | None) -> tuple[torch.device, Counter[str]]:
    """This rank's device, and the live count of how often the CPU shim stood in for one."""
    check_device(wanted, "cuda" if torch.cuda.is_available() else "cpu", torch.__version__)
    if not torch.cuda.is_available():
        from runner.megatron import cpu  # noqa: PLC0415  # never imported where there is a GPU

        return torch.device("cpu"), cpu.install()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device, Counter()


def start_processes(config: WorkerConfig, device: torch.device) -> None:
    """Join the other ranks, and divide them into Megatron-Core's groups."""
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    start_groups(config)


@contextmanager
def profiled(config: WorkerConfig, arguments: argparse.Namespace) -> Iterator[None]:
    """Profile the block on the ranks that are asked for: by Nsight Systems, or by torch."""
    if config.kind != "profile" or dist.get_rank() not in config.profile_ranks:
        yield
    elif arguments.nsys:  # it was started before this process, and waits for this
        with torch.cuda.profiler.profile():
            yield
    else:
        with torch.profiler.profile() as traced:
            yield
        name = f"profile_{dist.get_rank()}.json.gz"
        traced.export_chrome_trace(str(arguments.summary.with_name(name)))


# --------------------------------------------------------------------------------------- one step


def timed_step(
    number: int, batches: Sequence[Batch], training: Training, config: WorkerConfig
) -> WorkerStep:
    """Train one step, timing it on every rank; agree on the figures outside the timed region."""
    device = training.device
    clock = Clock(device)
    losses, grad_norm, updated = train_step(batches, training, config)
    own_s, event_s = clock.stop()
    own = [own_s, -own_s, event_s or 0.0, peak_memory_bytes(device), not updated]
    greatest = reduced(own, dist.ReduceOp.MAX, device)
    slowest_s, minus_fastest_s, event_max_s, memory, skipped = greatest
    [loss] = reduced([sum(map(float, losses))], dist.ReduceOp.SUM, device)
    # Only the last pipeline stage has losses; its tensor-parallel ranks all have the same ones.
    copies = config.tensor_parallel * config.global_batch_size // config.micro_batch_size
    return WorkerStep(
        step=number,
        step_time_s=slowest_s,
        step_time_min_s=-minus_fastest_s,
        loss=loss / copies,
        grad_norm=None if grad_norm is None else float(grad_norm),
        tokens=config.tokens_per_step,
        peak_memory_bytes=int(memory),
        skipped=bool(skipped),
        cuda_event_time_s=None if event_s is None else event_max_s,
    )


def checkpointed(summary: Path, config: WorkerConfig, training: Training) -> dict[str, object]:
    """What the round trip of a checkpoint took. Raises CheckpointError."""
    from runner.megatron.checkpoint import round_trip  # noqa: PLC0415  # imports for a second

    return round_trip(summary.with_name("checkpoint"), config, training, next_loss)


def next_loss(config: WorkerConfig, training: Training) -> float:
    """The loss of the step after the last one, in the layout that the groups have now."""
    number = config.total_steps + 1
    data = mock_data(config, training.device)
    return timed_step(number, data.step(number - 1), training, config).loss


def mock_data(config: WorkerConfig, device: torch.device) -> MockData | VideoData:
    """This rank's part of the data."""
    return (VideoData if config.model.video_diffusion else MockData)(
        config,
        Shard(
            parallel_state.get_data_parallel_rank(), parallel_state.get_data_parallel_world_size()
        ),
        Shard(
            parallel_state.get_context_parallel_rank(),
            parallel_state.get_context_parallel_world_size(),
        ),
        device,
    )


def train_step(
    batches: Sequence[Batch], training: Training, config: WorkerConfig
) -> tuple[list[Tensor], float | None, bool]:
    """Forward and backward of all micro-batches, then one optimizer step.

    Returns this rank's losses (of the last pipeline stage only), the gradient norm, and whether
    the optimizer made the update.
    """
    for chunk in training.chunks:
        chunk.zero_grad_buffer()
    training.optimizer.zero_grad()
    reported = get_forward_backward_func()(
        forward_step_func=forward_step,
        data_iterator=[iter(batches) for _ in training.chunks],
        model=training.chunks,
        num_microbatches=len(batches),
        seq_length=config.sequence_length,
        micro_batch_size=config.micro_batch_size,
        forward_only=False,
    )
    updated, grad_norm, _zeros = training.optimizer.step()
    return [entry["lm loss"] for entry in reported], grad_norm, updated


def forward_step(batches: Iterator[Batch], chunk: nn.Module) -> tuple[Tensor, LossFunction]:
    """One micro-batch through one chunk, in the form that Megatron-Core's schedules call."""
    batch = next(batches)
    output = chunk(*batch.inputs, labels=batch.labels)
    whole = batch.num_tokens * parallel_state.get_context_parallel_world_size()
    return output, partial(mean_loss, num_tokens=whole)


def mean_loss(token_losses: Tensor, num_tokens: int) -> tuple[Tensor, dict[str, Tensor]]:
    """This rank's share of the mean; the schedule multiplies by CP, divides by micro-batches."""
    loss = token_losses.float().sum() / num_tokens
    # A copy to report: the schedule scales the loss in place.
    return loss, {"lm loss": loss.detach().clone()}


# ---------------------------------------------------------------------------------------- summary


def summarise(training: Training, config: WorkerConfig) -> dict[str, object]:
    """What the run was; every rank takes part, and every rank gets the answer."""
    on_gpu = training.device.type == "cuda"
    rank = {
        "rank": dist.get_rank(),
        "tp": parallel_state.get_tensor_model_parallel_rank(),
        "pp": parallel_state.get_pipeline_model_parallel_rank(),
        "cp": parallel_state.get_context_parallel_rank(),
        "ep": parallel_state.get_expert_model_parallel_rank(),
        "dp": parallel_state.get_data_parallel_rank(),
    }
    mine = (rank, peak_memory_bytes(training.device), training.weight_counts)
    everyones = [mine] * dist.get_world_size()
    dist.all_gather_object(everyones, mine)
    # Under their global names, weights that several ranks hold are counted once.
    sizes = {name: size for _, _, counts in everyones for name, size in counts.items()}
    nccl_version: Callable[[], tuple[int, ...]] = torch.cuda.nccl.version
    return {
        "schema_version": SUMMARY_VERSION,
        "world_size": dist.get_world_size(),
        "data_parallel": parallel_state.get_data_parallel_world_size(),
        "num_microbatches": config.num_microbatches(dist.get_world_size()),
        "num_parameters": sum(sizes.values()),
        "backend": dist.get_backend(),
        "device": torch.cuda.get_device_name(training.device) if on_gpu else "cpu",
        "cpu_shim": "runner.cpu" in sys.modules,
        "memory_kind": "cuda_allocated" if on_gpu else "process_rss",
        "peak_memory_bytes": [memory for _, memory, _ in everyones],
        "ranks": [rank for rank, _, _ in everyones],
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "megatron-core": megatron.core.__version__,
            "transformer-engine": str(get_te_version()) if HAVE_TRANSFORMER_ENGINE else None,
            "cuda": torch.version.cuda,
            "nccl": ".".join(map(str, nccl_version())) if on_gpu else None,
        },
    }


if __name__ == "__main__":
    main()
