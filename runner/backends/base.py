"""What a training framework must offer to be run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from perfdb.recipe import RunSpec
from perfdb.record import Case
from perfdb.rundir import RunDir


@dataclass(frozen=True)
class Command:
    """What one process of a run executes: a Python module, its arguments and its environment."""

    module: str
    arguments: tuple[str, ...]
    processes: int
    variables: Mapping[str, str] = field(default_factory=dict)


class Backend(Protocol):
    """A training framework. A module is one."""

    @property
    def NAME(self) -> str:
        """The recipe's word for the framework."""
        ...

    def version(self) -> str | None:
        """The version installed here; None if it is not installed."""
        ...

    def unsupported(self, case: Case) -> str | None:
        """Why this backend cannot run a case; None if it can."""
        ...

    def worker_config(self, point: RunSpec) -> str:
        """The text of the file that configures the worker."""
        ...

    def command(self, point: RunSpec, run: RunDir) -> Command:
        """How to start the worker of a run directory."""
        ...
