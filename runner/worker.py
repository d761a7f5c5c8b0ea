"""What the processes on the GPUs share, whatever the framework: device, memory, files.

Standard library and PyTorch only: it is imported in any container.
"""

import json
import os
import resource
from pathlib import Path
from typing import TextIO

import torch

SUMMARY_VERSION = 1


class DeviceError(ValueError):
    """PyTorch has another device than the run is for; the message says what to do."""


def check_device(wanted: str | None, found: str, torch_version: str) -> None:
    """Raise DeviceError where PyTorch does not have the device wanted; None takes either."""
    if (wanted, found) == ("cuda", "cpu"):
        raise DeviceError(
            f"PyTorch {torch_version} finds no GPU: it must be built for CUDA, the driver must be "
            "new enough for it, and CUDA_VISIBLE_DEVICES must not hide the GPUs"
        )
    if (wanted, found) == ("cpu", "cuda"):
        raise DeviceError(
            "this run is for a machine without GPUs, and PyTorch finds one: see that nvidia-smi is "
            "on the PATH, or set CUDA_VISIBLE_DEVICES to nothing"
        )


def peak_memory_bytes(device: torch.device) -> int:
    """The most this rank ever held: in tensors of the GPU's memory, or in all of the host's."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in KiB


def write_line(file: TextIO, line: str) -> None:
    """At once: who watches a run sees its last step, and a killed run leaves whole lines."""
    file.write(line + "\n")
    file.flush()


def write_summary(path: Path, summary: dict[str, object]) -> None:
    """Write to a temporary file, then rename: a reader never sees half a summary."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
