"""This machine: torchrun, one process per GPU or, without GPUs, per rank."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from perfdb.errors import LeftAtWorkError, RunError
from perfdb.rundir import RunDir
from runner.backends import Command
from runner.launchers.base import imports
from runner.processes import adopt_orphans, children, tethered

NAME = "local"
STOP_AFTER_S = 15


@dataclass(frozen=True)
class LocalProcess:
    """torchrun and its workers; each worker leads a session of its own."""

    child: subprocess.Popen[bytes]
    others: frozenset[int]
    """The children that this process had before; any that comes later is taken for a worker, and
    killed and waited for once torchrun has ended."""
    stop_after_s: float = STOP_AFTER_S
    """Seconds that processes have to end before they are killed, or reported."""

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
            self.child.wait(self.stop_after_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()
        self._end_orphans()

    def _end_orphans(self) -> None:
        """Kill the workers that torchrun left, and wait: they would slow the next run down."""
        deadline = time.monotonic() + self.stop_after_s
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
        command.python, "-m", "torch.distributed.run", "--standalone",
        "--nproc-per-node", str(command.processes),
        "--log-dir", str(run.rank_logs.absolute()), "--redirects", "3",
        *(("--no-python", *command.wrapper, command.python) if command.wrapper else ()),
        *command.program,
    )  # fmt: skip


def variables(command: Command) -> dict[str, str]:
    """This process's environment under what the command wants.

    One thread where there are several processes: torchrun would set it, and record it nowhere.
    """
    threads = {"OMP_NUM_THREADS": "1"} if command.processes > 1 else {}
    own = {} if command.is_script else imports()  # a script imports from its own folder
    return {**threads, **os.environ, **command.variables, **own}


def start(command: Command, run: RunDir) -> LocalProcess:
    """Start torchrun; its workers import this installation's runner, whatever folder one is in."""
    return launch(argv(command, run), variables(command), run)


def launch(arguments: tuple[str, ...], variables: Mapping[str, str], run: RunDir) -> LocalProcess:
    """Start a program that ends when this process does. Raises RunError."""
    run.rank_logs.mkdir(exist_ok=True)
    adopt_orphans()
    others = children()
    try:
        with run.console.open("wb") as console:
            child = subprocess.Popen(
                tethered(arguments),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                cwd=run.path,
                env=variables,
                start_new_session=True,
            )
    except OSError as error:
        raise RunError(f"torchrun cannot be started: {error}") from error
    return LocalProcess(child, others)
