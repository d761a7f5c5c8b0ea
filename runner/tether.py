"""Become another program that ends when its parent does: `python -m runner.tether PID argv…`.

A runner killed with SIGKILL cannot stop its workers; left behind, they would take the next run's
cores. Standard library only, and no fork between: the process is replaced.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal a process gets when its parent dies."""


def main(parent: int, argv: list[str]) -> None:
    """Replace this process by argv, tethered to its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            sys.exit("the runner is gone")
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
