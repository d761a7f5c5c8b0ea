"""Replaces CUDA where there is none, so that AutoModel's benchmark recipe trains on CPU.

Each remedy says what breaks without it (found by leaving it out, nemo-automodel 0.7.0). None
touches arithmetic, layout or timing.
"""

from collections import Counter
from contextlib import ExitStack

import torch

from runner.cpu import DeviceNames, StandIn, replace


def install() -> Counter[str]:
    """Put every remedy in place; returns the live count of how often each stood in."""
    if torch.cuda.is_available():
        raise RuntimeError("the CPU shim must not be installed where there is a GPU")
    hits: Counter[str] = Counter()
    stand_ins: tuple[StandIn, ...] = (
        # Its timers wait for the GPU before they read the clock; a CPU has nothing to wait for.
        (torch.cuda, "synchronize", lambda *_, **__: None),
        # The model is moved to, and made on, the current device: DeviceNames reads that as the CPU.
        (torch.cuda, "current_device", lambda: 0),
        # Called as the recipe is set up.
        (torch.cuda, "reset_peak_memory_stats", lambda *_, **__: None),
        # Each forward pass is a range in the trace of Nsight Systems.
        (torch.cuda.nvtx, "range_push", lambda *_, **__: 0),
        (torch.cuda.nvtx, "range_pop", lambda *_, **__: 0),
        # A pipeline's random state is kept where its shapes are tried out.
        (torch.cuda, "get_rng_state", lambda *_, **__: torch.get_rng_state()),
        (torch.cuda, "set_rng_state", lambda *_, **__: None),
    )
    replace(stand_ins, hits)
    ExitStack().enter_context(DeviceNames(hits))
    return hits
