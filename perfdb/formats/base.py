"""What a log says, whatever its format: steps, how the run ended, what it was; and the contract."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from perfdb.errors import Diagnostic
from perfdb.formats.columns import Reading, Steps
from perfdb.record import Figures, Note, Outcome, PartialCase

__all__ = ["Content", "LogFormat", "ParsedLog", "Reading"]

Content = Iterable[bytes]
"""The bytes of a file in chunks of any size, in order. A list with one item is fine."""


@dataclass(frozen=True)
class ParsedLog:
    """One result that a file holds. What the file does not say is None or empty.

    `outcome` is None where the file is no account of a run but accompanies one. `emitted` are the
    figures of a file that sums up, as printed; `window` names the steps to take figures over.
    """

    configuration: PartialCase
    likely_framework: str | None = None
    """The framework that it is taken for where nothing says which one it is of."""
    num_nodes: int | None = None
    """Of how many nodes, where that is said and not of how many GPUs."""
    shape: Mapping[str, int] = field(default_factory=dict)
    """What it says of the sizes of its model, by the catalogue's names of them."""
    identity: str | None = None
    """The hash of what a file that sums up holds, however it is laid out; None: its bytes tell."""
    framework_version: str | None = None
    container: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    gpu_memory_bytes: int | None = None
    """How much memory a GPU has, as the run's program was told by it."""
    readings: Sequence[Reading] = ()
    """The steps in order, each once."""
    planned_steps: int | None = None
    emitted: Figures = field(default_factory=Figures)
    emitted_line: int | None = None
    peak_memory_bytes: int | None = None
    """The most that was allocated on a GPU, of a file that sums up."""
    extras: Mapping[str, str] = field(default_factory=dict)
    """What a file that sums up prints beside its figures, by its own names."""
    window: str | None = None
    restarts: Sequence[int] = ()
    """The first step of each attempt but the first, as far as steps before it are kept; rising."""
    restarted_at: int | None = None
    """The first step of the last attempt, where steps before it are of an earlier one."""
    restarted_from: int | None = None
    """The earliest step that it may have begun with, where the log does not say which it was."""
    goes_on: bool = False
    """Whether that attempt goes on with the step behind them, and none is printed again."""
    earlier_until: int | None = None
    """The line of the last step of an earlier run, of which this log says nothing but that."""
    changed_settings: Note | None = None
    """Which steps have the settings, where those of another attempt have others."""
    timed_by: tuple[str, ...] = ()
    """The fields that its step times follow from, where it prints rates and no times."""
    outcome: Outcome | None = None
    error: str | None = None
    """Why the outcome is not `finished`, in one line."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """What it says of a field or an option in words that contradict one another."""
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    """What a reader of the figures should know, and what was kept but not understood."""

    @property
    def steps(self) -> Steps:
        """The steps in order, each once, as columns."""
        return Steps.of(self.readings)

    @property
    def framework(self) -> str | None:
        """The framework that wrote the file."""
        return self.configuration.framework


class LogFormat(Protocol):
    """One format of logs or results."""

    @property
    def NAME(self) -> str:
        """perfdb's word for the format."""
        ...

    def recognises(self, head: bytes, name: str) -> int:
        """How many of its steps the first bytes of a file show; 0 where it is not of this format.

        Of a file without steps: whether it is, by its name too. Takes any bytes.
        """
        ...

    def parse(self, where: str, content: Content) -> tuple[ParsedLog, ...]:
        """The results in a file; `where` is its path, which names it in problems.

        Takes any bytes: what cannot be read is a problem of the result, never an exception.
        """
        ...
