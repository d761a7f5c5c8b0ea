"""Processes on Linux: orphans are adopted, and a child ends when its parent does.

Run as `python -m runner.processes PID ARGV…` it becomes another program that ends when process PID
does: a runner killed with SIGKILL cannot stop its workers, and left running they would take the
next run's cores. Standard library only, and no fork between: the process is replaced.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal a process gets when its parent dies."""
PR_SET_CHILD_SUBREAPER = 36
"""prctl(2): orphans among the descendants become this process's children."""


def main(parent: int, argv: list[str]) -> None:
    """Replace this process by argv, which gets SIGTERM when the parent dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            sys.exit("the runner is gone")
    os.execv(argv[0], argv)


def tethered(command: tuple[str, ...]) -> list[str]:
    """The command, made to end when this process does."""
    return [sys.executable, "-m", "runner.processes", str(os.getpid()), *command]


def adopt_orphans() -> None:
    """Become, for good, the parent of the workers that torchrun leaves when it is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def children() -> frozenset[int]:
    """The ids of this process's children, including ended ones; none where there is no /proc.

    An ended child is listed until somebody waits for it: none escapes by forking meanwhile.
    """
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it is gone
            parent = file.read_bytes().rpartition(b")")[2].split()[1]
            if int(parent) == os.getpid():
                found.add(int(file.parent.name))
    return frozenset(found)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
