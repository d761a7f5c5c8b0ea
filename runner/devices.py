"""The GPUs or cores of this machine that a run computes on."""

import os
import sys


def cores() -> frozenset[int]:
    """The cores that this process may use."""
    if sys.platform == "linux":
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))
