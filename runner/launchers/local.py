"""This machine: torchrun, one process per GPU or, without GPUs, per rank."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass

from perfdb.errors import RunError
from perfdb.rundir import RunDir
from runner.backends import Command
from runner.launchers.base import imports

NAME = "local"
STOP_AFTER_S = 15


@dataclass(frozen=True)
class LocalProcess:
    """torchrun and its workers, in a process group of their own."""

    child: subprocess.Popen[bytes]

    def poll(self) -> int | None:
        """torchrun's exit code; None while it runs."""
        return self.child.poll()

    def stop(self) -> None:
        """Ask torchrun to end its workers, then make sure of it."""
        if self.child.poll() is None:
            self.child.terminate()
        try:
            self.child.wait(STOP_AFTER_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()


def argv(command: Command, run: RunDir) -> tuple[str, ...]:
    """torchrun on a free port of this machine, each rank's output in a file of its own."""
    return (
        sys.executable, "-m", "torch.distributed.run", "--standalone",
        "--nproc-per-node", str(command.processes),
        "--log-dir", str(run.rank_logs.absolute()), "--redirects", "3",
        "-m", command.module, *command.arguments,
    )  # fmt: skip


def start(command: Command, run: RunDir) -> LocalProcess:
    """Start torchrun; its workers import this installation's runner, whatever folder one is in."""
    run.rank_logs.mkdir(exist_ok=True)
    try:
        with run.console.open("wb") as console:
            child = subprocess.Popen(
                tethered(argv(command, run)),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                cwd=run.path,
                env={**os.environ, **command.variables, **imports()},
                start_new_session=True,
            )
    except OSError as error:
        raise RunError(f"torchrun cannot be started: {error}") from error
    return LocalProcess(child)


def tethered(command: tuple[str, ...]) -> list[str]:
    """The command, made to end when this process does."""
    return [sys.executable, "-m", "runner.tether", str(os.getpid()), *command]
