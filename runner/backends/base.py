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
    arguments: tuple[str, ...]
    processes: int
    variables: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable
    """The Python of the environment that has the framework."""


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
