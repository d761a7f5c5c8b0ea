"""The GPUs or cores of this machine that a run computes on: one run at a time.

Each is a file that a runner holds locked. The files are in the machine's temporary folder, and not
in an output folder: runs that go to two folders would slow each other down, too.
"""

import fcntl
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from perfdb.errors import Diagnostic, InputError
from perfdb.hardware import Machine


def cores() -> frozenset[int]:
    """The cores that this process may use."""
    if sys.platform == "linux":
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def of_run(num_gpus: int, machine: Machine, variables: Mapping[str, str]) -> list[str]:
    """The names of a run's devices: its GPUs or, on a machine without, all cores it may use.

    A GPU goes by its UUID: in each of two Slurm jobs on one node a GPU may have the number 0.
    """
    if not machine.gpu_count:
        return [f"core-{number}" for number in sorted(cores())]
    every = ",".join(map(str, range(machine.gpu_count)))
    visible = variables.get("CUDA_VISIBLE_DEVICES", every).split(",")[:num_gpus]

    def uuid_of(word: str) -> str:  # a number, or a UUID or how one begins
        if word.isdecimal():
            known = machine.gpu_uuids[int(word) :]
            return known[0] if known else f"GPU-{word}"
        return next((uuid for uuid in machine.gpu_uuids if word and uuid.startswith(word)), word)

    return [uuid_of(word.strip()) for word in visible]


@contextmanager
def held(names: Iterable[str], waiting: Callable[[], None]) -> Iterator[None]:
    """Hold devices; where another runner has one of them, call `waiting` once, and wait for it.

    The system lets go of them when the process dies, however it does. Raises InputError.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(_lock(name)) for name in sorted(set(names))]
        for number, file in enumerate(files):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                for later in files[number:]:  # all runners in one order, so that none waits in vain
                    fcntl.flock(later, fcntl.LOCK_EX)
                break
        yield


def _lock(name: str) -> IO[str]:
    folder = Path(os.environ.get("TMPDIR") or "/tmp", f"perfdb-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return (folder / re.sub(r"[^\w.-]", "_", name)).open("a")
    except OSError as error:
        message = f"no lock of this machine's devices can be made: {error.strerror or error}"
        remedy = "name a folder that can be written in TMPDIR"
        raise InputError(Diagnostic(str(folder), message, remedy=remedy)) from error
