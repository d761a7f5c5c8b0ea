"""What a record must remember of the machine and its software; secrets stay out."""

import os
import platform
import re
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from perfdb.hardware import Machine, from_nvidia_smi, is_secret, readable, without_secrets
from perfdb.run_record import Environment
from perfdb.rundir import RunDir

PACKAGES = ("torch", "megatron-core", "transformer-engine", "nemo-automodel", "transformers",
            "numpy", "triton")  # fmt: skip
"""What a run's speed depends on."""

RELEVANT = re.compile(
    r"^(CUDA|CUBLAS|CUBLASLT|CUDNN|NCCL|NVTE|NVIDIA|TORCH[A-Z]*|PYTORCH|TRITON|OMP|MKL|KMP|GLOO|UCX"
    r"|SHARP|MEGATRON|NEMO|SLURM)(_|$)"
)


def capture(
    machine: Machine, container: str | None, near: Path, variables: Mapping[str, str]
) -> Environment:
    """The environment of a run on this machine with the variables of its processes.

    `near` is in the recipe's git checkout, if any.
    """
    packages = {}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            packages[name] = metadata.version(name)
    commit, dirty = git_state(near)
    return Environment(
        hostname=socket.gethostname(),
        os=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        cpu=cpu_name(),
        cpu_count=os.cpu_count(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        gpu=machine.gpu,
        gpu_count=machine.gpu_count,
        gpu_memory_bytes=machine.gpu_memory_bytes,
        driver=machine.driver,
        packages=packages,
        git_commit=commit,
        git_dirty=dirty,
        container=container,
        variables=relevant(variables),
    )


def before_nodes(known: Environment, *, in_image: bool) -> Environment:
    """What is known on a login node: neither the machine nor, of an image, the software."""
    unknown: dict[str, object] = dict.fromkeys(("cpu", "cpu_count", "memory_bytes"))
    unknown |= {"packages": {}, "python": ""} if in_image else {}
    return known.model_copy(update=unknown)


def of_nodes(known: Environment, run: RunDir) -> Environment:
    """What the first node of a run's job says of itself is added."""
    if not run.node_facts.is_file():
        return known
    lines = run.node_facts.read_text(errors="replace").splitlines()
    host, system, cpus, memory, cpu, *gpus = (*lines, *[""] * (5 - len(lines)))
    found: dict[str, object] = {
        "hostname": host,
        "os": system,
        "cpu_count": int(cpus) if cpus.isdecimal() else None,
        "memory_bytes": int(memory) if memory.isdecimal() else None,
        "cpu": cpu or None,
    }
    if gpus:
        machine = from_nvidia_smi("\n".join(gpus))
        names = ("gpu", "gpu_count", "gpu_memory_bytes", "driver")
        found |= {name: getattr(machine, name) for name in names}
    return known.model_copy(update=found)


def relevant(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that change how training runs, without secrets."""
    return {
        readable(name): without_secrets(readable(value))
        for name, value in sorted(variables.items())
        if RELEVANT.match(name) and not is_secret(name)
    }


def cpu_name() -> str | None:
    """The processor's name from /proc/cpuinfo."""
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return platform.processor() or None
    found = re.search(r"^model name\s*:\s*(.+)$", path.read_text(), flags=re.MULTILINE)
    return found[1] if found else platform.machine()


def git_state(near: Path) -> tuple[str | None, bool | None]:
    """The commit of the checkout with a file, and whether it has changes; None: no checkout."""
    folder = near if near.is_dir() else near.parent

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(folder), *arguments]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False
            )
        except FileNotFoundError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    changes = git("status", "--porcelain") if commit else None
    return (commit or None, bool(changes) if changes is not None else None)
