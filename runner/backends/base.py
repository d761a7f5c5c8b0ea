"""What a training framework must offer to be run."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from perfdb.recipe import RunSpec
from perfdb.rundir import RunDir


@dataclass(frozen=True)
class Command:
    """What one process of a run executes: a Python module, its arguments and its environment."""

    module: str
    """Its name, or the path of a script, which need not know the runner."""
    arguments: tuple[str, ...]
    processes: int
    variables: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable
    """The Python of the environment that has the framework."""
    wrapper: tuple[str, ...] = ()
    """The program that starts the Python of each process, and its arguments: a profiler's."""
    log_format: str | None = None
    """The format of the steps that the program prints; None: it writes steps.jsonl itself."""

    @property
    def is_script(self) -> bool:
        """Whether it runs a script, not a module."""
        return self.module.endswith(".py")

    @property
    def program(self) -> tuple[str, ...]:
        """What follows the Python: the module or the script, and its arguments."""
        return (*(() if self.is_script else ("-m",)), self.module, *self.arguments)


class Backend(Protocol):
    """A training framework. A module is one."""

    @property
    def NAME(self) -> str:
        """The recipe's word for the framework."""
        ...

    def version(self) -> str | None:
        """The version installed here; None if it is not installed."""
        ...

    def unsupported(self, point: RunSpec) -> str | None:
        """Why this backend cannot run a case; None if it can."""
        ...

    def files(self, point: RunSpec, run: RunDir) -> dict[str, str]:
        """The files that configure the worker, by their names in the run's directory."""
        ...

    def command(self, point: RunSpec, run: RunDir) -> Command:
        """How to start the worker of a run directory."""
        ...
