"""Measures a step: its time by two clocks, the memory, and one figure of all ranks' figures."""

import resource
import time
from collections.abc import Callable

import torch
import torch.distributed as dist


class Clock:
    """The host's clock and, on a GPU, the GPU's beside it; runs from its creation.

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


def greatest(values: list[float], device: torch.device) -> list[float]:
    """Each value's maximum over all ranks."""
    return _reduced(values, dist.ReduceOp.MAX, device)


def total(value: float, device: torch.device) -> float:
    """The sum of a value over all ranks."""
    return _reduced([value], dist.ReduceOp.SUM, device)[0]


def _reduced(
    values: list[float], operation: dist.ReduceOp.RedOpType, device: torch.device
) -> list[float]:
    # 64 bits hold every byte count exactly.
    reduced = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(reduced, operation)
    return [float(value) for value in reduced.cpu()]


def peak_memory_bytes(device: torch.device) -> int:
    """The most this rank ever held: in tensors of the GPU's memory, or in all of the host's."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in KiB
