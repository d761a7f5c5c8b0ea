"""What a record must remember of the machine and its software; secrets stay out."""

import os
import platform
import re
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from perfdb.groups import grouped
from perfdb.hardware import Machine, from_nvidia_smi, is_secret, readable, without_secrets
from perfdb.run_record import Environment, NodeGroup
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
    """What the nodes of a run's job say of themselves, and Slurm of the job, is added."""
    job = run.job_facts.read_text(errors="replace") if run.job_facts.is_file() else ""
    facts = dict(line.split("=", 1) for line in job.splitlines() if "=" in line)
    found: dict[str, object] = {
        "variables": {**known.variables, **relevant(facts)},
        "container_digest": facts.get("container_digest", known.container_digest),
    }
    files = sorted(run.node_facts.glob("[0-9]*.txt"), key=lambda file: int(file.stem))
    printed = [file.read_text(errors="replace") for file in files]
    nodes = [of_node(one) for one in printed]
    if nodes:
        first = nodes[0]
        names = ("os", "cpu", "cpu_count", "gpu", "gpu_count", "gpu_memory_bytes", "driver")
        found |= {name: getattr(first, name) for name in names if getattr(first, name)}
        memory = re.search(r"^memory_kib (\d+)$", printed[0], flags=re.MULTILINE)
        found |= {"hostname": first.hostnames[0], "memory_bytes": memory and int(memory[1]) * 1024}
    return known.model_copy(update={**found, "nodes": alike(nodes)})


def of_node(printed: str) -> NodeGroup:
    """What a node says of itself, in lines of a word and a value; no value: it is not known."""
    facts: dict[str, list[str]] = {}
    for line in printed.splitlines():
        name, _, value = line.partition(" ")
        if value.strip():
            facts.setdefault(name, []).append(" ".join(value.split()))
    one = {name: values[0] for name, values in facts.items()}
    gpus = [[cell.strip() for cell in line.split(",")] for line in facts.get("gpu", ())]
    machine = from_nvidia_smi("\n".join(facts.get("gpu", ())))
    memory_kib = _number(one.get("memory_kib"))
    return NodeGroup(
        hostnames=(one.get("hostname", ""),),
        num_nodes=1,
        os=one.get("os"),
        cpu=one.get("cpu"),
        cpu_count=_number(one.get("cpu_count")),
        memory_gib=memory_kib and round(memory_kib / 2**20),
        gpu=" + ".join(sorted({cells[0] for cells in gpus})) or None,
        gpu_count=len(gpus),
        gpu_memory_bytes=machine.gpu_memory_bytes,
        gpu_clock_mhz=_least(gpus, 4),
        gpu_power_limit_w=_least(gpus, 5),
        driver=machine.driver,
        cuda=one.get("cuda"),
        nccl=one.get("nccl"),
        nics=tuple(facts.get("nic", ())),
    )


def _least(lines: Iterable[Sequence[str]], column: int) -> int | None:
    """The least number of a column; None where a line has none."""
    return (
        min((_number(cells[column]) or 0 for cells in lines if column < len(cells)), default=0)
        or None
    )


def _number(text: str | None) -> int | None:
    """A whole number, also of '700.00'; None where there is none, as in '[N/A]'."""
    found = re.match(r"\d+", text or "")
    return int(found[0]) if found else None


def alike(nodes: Iterable[NodeGroup]) -> tuple[NodeGroup, ...]:
    """Nodes put together where all that is known of them is the same."""
    groups = grouped(nodes, lambda node: repr(node.facts)).values()
    return tuple(
        some[0].model_copy(update={
            "hostnames": tuple(host for node in some for host in node.hostnames),
            "num_nodes": len(some),
        })
        for some in groups
    )  # fmt: skip


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
