"""This machine: torchrun, one process per GPU or, without GPUs, per rank."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perfdb.errors import LeftAtWorkError, RunError
from perfdb.rundir import RunDir
from runner.backends import Command
from runner.launchers.base import imports

NAME = "local"
STOP_AFTER_S = 15
PR_SET_CHILD_SUBREAPER = 36
"""prctl(2): orphans among the descendants become this process's children."""


@dataclass(frozen=True)
class LocalProcess:
    """torchrun and its workers, each of which is the leader of a session of its own."""

    child: subprocess.Popen[bytes]
    others: frozenset[int]
    """The children that this process had before; any that comes later is taken for a worker, and
    killed and waited for once torchrun has ended."""

    def poll(self) -> int | None:
        """torchrun's exit code; None while it runs. On Linux no worker outlives it.

        Raises LeftAtWorkError.
        """
        exit_code = self.child.poll()
        if exit_code is not None:
            self._end_orphans()
        return exit_code

    def stop(self) -> None:
        """Ask torchrun to end its workers, then make sure of it. Raises LeftAtWorkError."""
        if self.child.poll() is None:
            self.child.terminate()
        try:
            self.child.wait(STOP_AFTER_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()
        self._end_orphans()

    def _end_orphans(self) -> None:
        """Kill the workers that torchrun left, and wait: they would slow the next run down."""
        deadline = time.monotonic() + STOP_AFTER_S
        while left := children() - self.others:
            if time.monotonic() > deadline:
                numbers = ", ".join(map(str, sorted(left)))
                raise LeftAtWorkError(f"left at work, and not to be killed: process {numbers}")
            for number in left:
                with suppress(ProcessLookupError, ChildProcessError):  # SIGCHLD may be ignored
                    os.kill(number, signal.SIGKILL)
                    os.waitpid(number, os.WNOHANG)
            time.sleep(0.02)


def argv(command: Command, run: RunDir) -> tuple[str, ...]:
    """torchrun on a free port of this machine, each rank's output in a file of its own."""
    return (
        sys.executable, "-m", "torch.distributed.run", "--standalone",
        "--nproc-per-node", str(command.processes),
        "--log-dir", str(run.rank_logs.absolute()), "--redirects", "3",
        "-m", command.module, *command.arguments,
    )  # fmt: skip


def variables(command: Command) -> dict[str, str]:
    """This process's environment under what the command wants.

    One thread where there are several processes: torchrun would set it, and record it nowhere.
    """
    threads = {"OMP_NUM_THREADS": "1"} if command.processes > 1 else {}
    return {**threads, **os.environ, **command.variables, **imports()}


def start(command: Command, run: RunDir) -> LocalProcess:
    """Start torchrun; its workers import this installation's runner, whatever folder one is in."""
    run.rank_logs.mkdir(exist_ok=True)
    adopt_orphans()
    others = children()
    try:
        with run.console.open("wb") as console:
            child = subprocess.Popen(
                tethered(argv(command, run)),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                cwd=run.path,
                env=variables(command),
                start_new_session=True,
            )
    except OSError as error:
        raise RunError(f"torchrun cannot be started: {error}") from error
    return LocalProcess(child, others)


def tethered(command: tuple[str, ...]) -> list[str]:
    """The command, made to end when this process does."""
    return [sys.executable, "-m", "runner.tether", str(os.getpid()), *command]


def adopt_orphans() -> None:
    """Become the parent of the workers that torchrun leaves when it is killed (Linux).

    It stays so.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def children() -> frozenset[int]:
    """The numbers of this process's children, also of ended ones; where Linux does not tell, none.

    Of an ended child it is told until somebody waits for it: none escapes by forking meanwhile.
    """
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it is gone
            parent = file.read_bytes().rpartition(b")")[2].split()[1]
            if int(parent) == os.getpid():
                found.add(int(file.parent.name))
    return frozenset(found)
