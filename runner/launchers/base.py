"""What a place to run must offer: start a command, and say how it is doing."""

from typing import Protocol

from perfdb.rundir import RunDir
from runner.backends import Command


class Process(Protocol):
    """A started command."""

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        ...

    def stop(self) -> None:
        """End it and everything it started, and wait until it is gone."""
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

    def start(self, command: Command, run: RunDir) -> Process:
        """Start a run, its output going to the run directory. Raises RunError."""
        ...
