"""What a log or result file reports, whatever its format, and the contract of a format."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from perfdb.errors import Diagnostic
from perfdb.formats.columns import Reading, Steps
from perfdb.record import Figures, Note, Outcome, PartialCase

__all__ = [
    "Attempt", "Content", "LogFormat", "ParsedLog", "Reading", "RunSettings",
    "nothing",
]  # fmt: skip

Content = Iterable[bytes]
"""The bytes of a file in chunks of any size, in order. A list with one item is fine."""


@dataclass(frozen=True)
class RunSettings:
    """What a program prints of its run's settings.

    `shape`: sizes of its model, by the catalog's names. `doubts`: fields and options of which the
    settings contradict one another, with these settings as they are printed.
    """

    configuration: PartialCase
    shape: Mapping[str, int] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)
    framework_version: str | None = None
    gpu_memory_bytes: int | None = None


@dataclass(frozen=True)
class Attempt:
    """Some steps of a log that was restarted, and their settings."""

    first_step: int
    last_step: int
    settings: RunSettings


@dataclass(frozen=True)
class ParsedLog:
    """One result that a file holds. What the file does not state is None or empty.

    `outcome` is None where the file is no account of a run but accompanies one. `emitted` are the
    figures of a file that sums up, as printed; `window` names the steps to take figures over.
    """

    configuration: PartialCase
    likely_framework: str | None = None
    """The framework that it is taken for where nothing states which one it is of."""
    num_nodes: int | None = None
    """Of how many nodes, where that is stated and not of how many GPUs."""
    shape: Mapping[str, int] = field(default_factory=dict)
    """Sizes of its model, by the catalog's names of them."""
    identity: str | None = None
    """The hash of the content of a file that sums up, however it is laid out; None: its bytes."""
    framework_version: str | None = None
    container: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    gpu_memory_bytes: int | None = None
    """How much memory a GPU has, by what the program prints."""
    steps: Steps = field(default_factory=lambda: Steps.of(()))
    """The steps in order, each once."""
    planned_steps: int | None = None
    emitted: Figures = field(default_factory=Figures)
    emitted_line: int | None = None
    peak_memory_bytes: int | None = None
    """The most that was allocated on a GPU, of a file that sums up."""
    extras: Mapping[str, str] = field(default_factory=dict)
    """What a file that sums up prints beyond its figures, by its own names."""
    window: str | None = None
    restarts: tuple[int, ...] = ()
    """The first step of each attempt but the first, as far as steps before it are kept; rising."""
    restarted_at: int | None = None
    """The first step of the last attempt, where steps before it are of an earlier one."""
    restarted_from: int | None = None
    """The earliest step that it may have begun with, where the log does not state which it was."""
    goes_on: bool = False
    """Whether that attempt goes on behind the steps before it, and repeats none."""
    attempts: tuple[Attempt, ...] = ()
    """The attempts of a log with several, in order; see `perfdb.formats.attempts.of_window`."""
    changed_settings: Note | None = None
    """Which steps have the settings above, where those of another attempt have others."""
    timed_by: tuple[str, ...] = ()
    """The fields that its step times follow from, where it prints rates and no times."""
    outcome: Outcome | None = None
    error: str | None = None
    """Why the outcome is not `finished`, in one line."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Fields and options that its settings contradict one another in, and these settings."""
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    """What a reader of the figures should know, and what was kept but not understood."""

    @property
    def framework(self) -> str | None:
        """The framework that wrote the file."""
        return self.configuration.framework


@dataclass(frozen=True)
class LogFormat:
    """One format of logs or results.

    `recognizes`: how many of its steps the first bytes of a file show, with the file's name; 0
    where it is not of this format. Of a file without steps: 1 where it is. Takes any bytes.

    `parse`: the results in a file, of its path, which names it in problems, and its content. Takes
    any bytes: what cannot be read is a problem of the result, never an exception.

    `prints_means`: each time is the mean over the steps since the line before. `is_json`: its
    files are of JSON, and not of text.
    """

    name: str
    recognizes: Callable[[bytes, str], int]
    parse: Callable[[str, Content], tuple[ParsedLog, ...]]
    prints_means: bool = False
    is_json: bool = False


def nothing(problem: Diagnostic, configuration: PartialCase | None = None) -> tuple[ParsedLog, ...]:
    """The result of a file without figures: it states why."""
    log = ParsedLog(
        configuration=configuration or PartialCase(),
        outcome=Outcome.NO_DATA,
        error=problem.message,
        problems=(problem,),
    )
    return (log,)
