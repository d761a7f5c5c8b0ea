"""One optimizer step: how it is measured on all ranks, and the two forms it is written in."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import torch
import torch.distributed as dist

from runner.megatron.config import WorkerConfig


@dataclass(frozen=True)
class WorkerStep:
    """The fields of a line of the steps file."""

    step: int
    """From 1; warm-up steps are counted and written like the others."""
    step_time_s: float
    """Of the slowest rank."""
    step_time_min_s: float
    """Of the fastest rank."""
    loss: float
    """The mean over all tokens of the global batch."""
    grad_norm: float | None
    """Of the whole model, before clipping; none if the optimizer skipped the update."""
    tokens: int
    """In the global batch."""
    peak_memory_bytes: int
    """The most that any rank has held so far."""
    skipped: bool
    """Whether the optimizer skipped the update."""
    cuda_event_time_s: float | None
    """The step by the slowest GPU's own clock; none, and left out of the file, on CPU."""

    def as_json(self) -> str:
        """One line of `steps.jsonl`. JSON has no NaN and no infinities: they are texts."""
        texts = {math.inf: "Infinity", -math.inf: "-Infinity"}
        fields = {
            name: texts.get(value, "NaN")
            if value is not None and not math.isfinite(value)
            else value
            for name, value in vars(self).items()
            if name != "cuda_event_time_s" or value is not None
        }
        return json.dumps(fields, allow_nan=False)


def megatron_line(step: WorkerStep, config: WorkerConfig, now: datetime) -> str:
    """The line of a step as Megatron-LM's training_log prints it, so that its readers read ours."""
    is_nan = not math.isfinite(step.loss)
    cells = [
        f" [{now:%Y-%m-%d %H:%M:%S}] iteration {step.step:8d}/{config.total_steps:8d}",
        f"consumed samples: {step.step * config.global_batch_size:12d}",
        f"elapsed time per iteration (ms): {step.step_time_s * 1e3:.1f}",
        f"learning rate: {config.options.optimizer_lr:.6E}",
        f"global batch size: {config.global_batch_size:5d}",
        # Like there, a loss that is not a number is counted, not printed.
        "" if is_nan else f"lm loss: {step.loss:.6E}",
        "loss scale: 1.0",
        "" if step.grad_norm is None else f"grad norm: {step.grad_norm:.3f}",
        f"number of skipped iterations: {step.skipped:3d}",
        f"number of nan iterations: {is_nan:3d}",
    ]
    return " | ".join(cell for cell in cells if cell) + " |"


class Clock:
    """The host's clock and, on a GPU, the GPU's, too; runs from its creation.

    All ranks start together: what a rank waited for before is not in its time.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._finish_work()
        dist.barrier(device_ids=None if device.index is None else [device.index])
        self._finish_work()
        self._begin_s, self._begin = time.perf_counter(), self._event()

    def stop(self) -> tuple[float, float | None]:
        """Seconds since the start, all work done: by the host, and by the GPU if there is one."""
        end = self._event()
        self._finish_work()
        host_s = time.perf_counter() - self._begin_s
        if self._begin is None or end is None:
            return host_s, None
        return host_s, self._begin.elapsed_time(end) / 1e3

    def _event(self) -> torch.cuda.Event | None:
        if self._device.type != "cuda":
            return None
        timed_event: Callable[..., torch.cuda.Event] = torch.cuda.Event
        event = timed_event(enable_timing=True)
        event.record()
        return event

    def _finish_work(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def reduced(
    values: list[float], operation: dist.ReduceOp.RedOpType, device: torch.device
) -> list[float]:
    """Each value's maximum or sum over all ranks; 64 bits hold every byte count exactly."""
    found = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(found, operation)
    return [float(value) for value in found.cpu()]
