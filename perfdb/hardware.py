"""Which system this machine is: what nvidia-smi says, matched with the catalogue; never a guess."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perfdb import catalog

NODE_QUERY = (
    "--query-gpu=name,driver_version,memory.total,uuid,clocks.max.sm,power.limit",
    "--format=csv,noheader,nounits",
)
"""QUERY, and what else may set one node apart from another."""
QUERY = ("--query-gpu=name,driver_version,memory.total,uuid", "--format=csv,noheader,nounits")
TIMEOUT_S = 30

_SECRET = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL|AUTH|COOKIE|JWT|PRIVATE", re.IGNORECASE)

_SECRET_NAME = re.compile(r"(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY)$", re.IGNORECASE)
"""The ends of the names of secrets; TOKENIZER_MODEL is none."""
LEAST_SECRET = 8

_SECRET_VALUE = re.compile(
    r"""(?:(?<![A-Za-z0-9])|(?<=[0-9[]m))(?:hf_[A-Za-z0-9]{16,}|AKIA[A-Z0-9]{16}|gh[a-z]_[A-Za-z0-9]{16,}
    |glpat-[A-Za-z0-9_-]{16,})
    |(?<=://)[^\s:/@"'<>]*:[^\s/"'<>]+(?=@)
    |(?<=[Bb]earer[ ])(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{8,}
    """,
    re.VERBOSE,
)
"""Tokens of Hugging Face, AWS, GitHub and GitLab; user:password@ in addresses; Bearer tokens.
A color of a terminal, such as ESC[31m, may be right before one."""
_SECRET_MARKS = ("hf_", "AKIA", "gh", "glpat-", "://", "earer ")
"""One of these is in every text with such a value. To look for them is far quicker."""


@dataclass(frozen=True)
class Machine:
    """What is here. `system` is None where the GPUs are none that the catalogue knows."""

    system: str | None
    gpu: str | None
    gpu_count: int
    driver: str | None
    reason: str
    """How `system` was found, or why it was not."""
    gpu_memory_bytes: int | None = None
    """Of the GPU with the least."""
    gpu_uuids: tuple[str, ...] = ()
    """Of each GPU, in the order of their numbers; empty where nvidia-smi was not asked."""


def is_secret(variable: str) -> bool:
    """Whether the name of an environment variable smells of a secret."""
    return bool(_SECRET.search(variable))


def without_secrets(text: str) -> str:
    """A text with *** for each password and token that is known by its form."""
    if not any(mark in text for mark in _SECRET_MARKS):
        return text
    return _SECRET_VALUE.sub("***", text)


def secret_values(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables that hold a secret of whatever form, the longest first.

    Short words and paths of files are none: they would be taken out of all that a program prints.
    """
    found = {
        value
        for name, value in variables.items()
        if _SECRET_NAME.search(name) and len(value) >= LEAST_SECRET and not os.path.exists(value)  # noqa: PTH110  # a value may be too long for a name
    }
    return tuple(sorted(found, key=len, reverse=True))


def without_values(text: str, values: Iterable[str]) -> str:
    """A text with *** for each password and token known by its form, or that is one of these."""
    for value in values:
        text = text.replace(value, "***")
    return without_secrets(text)


def readable(text: str) -> str:
    """Text of the operating system that any file takes: a byte that is no UTF-8 becomes \\xe8."""
    return os.fsencode(text).decode(errors="backslashreplace")


def detect() -> Machine:
    """The machine this process is on."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return without_gpu("no nvidia-smi here: a machine without NVIDIA GPUs")
    try:
        found = subprocess.run(
            [tool, *QUERY], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Machine(None, None, 0, None, f"nvidia-smi cannot be asked: {error}")
    if found.returncode:
        printed = (found.stderr or found.stdout).strip().splitlines()
        return without_gpu(
            f"nvidia-smi finds no GPU: {printed[0] if printed else found.returncode}"
        )
    return from_nvidia_smi(found.stdout)


def without_gpu(reason: str) -> Machine:
    """A machine that runs on its CPU."""
    return Machine("cpu", None, 0, None, reason)


def from_nvidia_smi(printed: str) -> Machine:
    """The machine that lines of 'name, driver, memory, UUID' describe."""
    lines = [[cell.strip() for cell in line.split(",")] for line in printed.splitlines() if line]
    if not lines:
        return without_gpu("nvidia-smi lists no GPU")
    names = sorted({line[0] for line in lines})
    uuids = tuple(line[3] for line in lines if len(line) > 3)
    driver, memory = lines[0][1], _least_memory_bytes(line[2] for line in lines)
    if len(names) > 1:
        reason = f"different GPUs in one machine: {', '.join(names)}"
        return Machine(None, names[0], len(lines), driver, reason, memory, uuids)
    system = catalog.system_of_gpu(names[0])
    reason = (
        f"nvidia-smi reports {len(lines)} × {names[0]}"
        if system
        else f"no system in the catalogue has a {names[0]}"
    )
    name = system.name if system else None
    return Machine(name, names[0], len(lines), driver, reason, memory, uuids)


def _least_memory_bytes(printed: Iterable[str]) -> int | None:
    """The least of several GPUs' MiB; None where one prints none ('[N/A]')."""
    sizes = [int(one) if one.isdecimal() else 0 for one in printed]
    return min(sizes) * 2**20 or None
