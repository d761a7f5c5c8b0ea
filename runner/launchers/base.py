"""What a place to run must offer: start a command, and say how it is doing."""

import os
from pathlib import Path
from typing import Protocol

import runner
from perfdb.rundir import RunDir
from runner.backends import Command


class Process(Protocol):
    """A started command."""

    def poll(self) -> int | None:
        """The exit code; None while it runs. Raises LeftAtWorkError, as `stop` does."""
        ...

    def stop(self) -> None:
        """End it and everything it started, and wait until it is gone.

        Raises LeftAtWorkError where that is not to be had.
        """
        ...


class Launcher(Protocol):
    """A place to run. A module is one."""

    @property
    def NAME(self) -> str:
        """The word for --launcher."""
        ...

    def argv(self, command: Command, run: RunDir) -> tuple[str, ...]:
        """The command line that starts every process of a run."""
        ...

    def variables(self, command: Command) -> dict[str, str]:
        """The environment of each process, the command's `variables` and `imports()` among it.

        A script has no `imports()`.
        """
        ...

    def start(self, command: Command, run: RunDir) -> Process:
        """Start a run. Raises RunError.

        What the launcher prints goes to `run.console`, what each rank prints below
        `run.rank_logs`. All of them end when this process does, however it ends.
        """
        ...


def imports() -> dict[str, str]:
    """The environment in which workers import this installation's runner.

    Without PYTHONSAFEPATH a folder named `runner` in the working folder would be imported.
    """
    home = str(Path(runner.__file__).parents[1])
    others = os.environ.get("PYTHONPATH")
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": f"{home}{os.pathsep}{others}" if others else home}
