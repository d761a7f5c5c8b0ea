"""What a log or result file reports, whatever its format, and the contract of a format."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from perfdb.errors import Diagnostic
from perfdb.formats.columns import Steps
from perfdb.record import TIME_TO_TRAIN, Figures, Outcome, PartialCase
from perfdb.text import plain

Content = Iterable[bytes]
"""The bytes of a file in chunks of any size, in order."""


@dataclass(frozen=True)
class ParsedLog:
    """One result in a file. What the file does not state is None or empty."""

    configuration: PartialCase = field(default_factory=PartialCase)
    likely_framework: str | None = None
    """The framework that is assumed if nothing states it."""
    num_nodes: int | None = None
    """The number of nodes, if the file states it and no number of GPUs."""
    shape: Mapping[str, int] = field(default_factory=dict)
    """Sizes of the model, by their names in the catalog."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Fields and options for which the settings contradict one another, with these settings."""
    identity: str | None = None
    """The hash of what a file without steps states, whatever its layout; None: of its bytes."""
    framework_version: str | None = None
    container: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    gpu_memory_bytes: int | None = None
    """The memory of a GPU, as the program prints it."""
    steps: Steps = field(default_factory=lambda: Steps.of(()))
    """The steps in order, each once."""
    planned_steps: int | None = None
    timed_by: tuple[str, ...] = ()
    """The fields that step times are computed from, if the log prints rates and no times."""
    is_untimed: bool = False
    """Whether step times are those of one token on one GPU, until `settle.timed` knows the case."""
    window: str | None = None
    """The steps to take figures over."""
    emitted: Figures = field(default_factory=Figures)
    """Printed figures of the whole run."""
    peak_tflops: float | None = None
    """The dense peak of a GPU that its printed MFU is of, in a file without steps."""
    emitted_line: int | None = None
    item: str | None = None
    """The name of the result in a file of several."""
    peak_memory_bytes: int | None = None
    """The most memory allocated on a GPU, in a file without steps."""
    extras: Mapping[str, str] = field(default_factory=dict)
    """What a file without steps prints beyond its figures, by the program's names."""
    outcome: Outcome | None = None
    """None if the file describes a run with its log in another file."""
    error: str | None = None
    """Why the outcome is not `finished`, in one line."""
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    """What a reader of the figures should know, and what was kept but not understood."""

    @property
    def is_summary(self) -> bool:
        """Whether it sums a run up: by figures of the whole run, or its time to train alone."""
        has_figures = any(self.emitted.model_dump().values()) or TIME_TO_TRAIN in self.extras
        return has_figures and not self.steps

    @property
    def framework(self) -> str | None:
        """The framework that wrote the file."""
        return self.configuration.framework


@dataclass(frozen=True)
class LogFormat:
    """One format of logs or results.

    `recognizes` takes the first bytes of a file and its name, and returns how many steps of this
    format they show: 0 if none, 1 for a file without steps; `showing` makes most of them. `parse`
    takes the path, which names the file in problems, and the content, and returns the results.
    Both accept any bytes: what cannot be read is a problem of the result, never an exception.

    `prints_means`: each time is the mean over the steps since the line before. `is_json`: the
    files are JSON and not text.
    """

    name: str
    recognizes: Callable[[bytes, str], int]
    parse: Callable[[str, Content], tuple[ParsedLog, ...]]
    prints_means: bool = False
    is_json: bool = False


def showing(step: bytes, *others: bytes) -> Callable[[bytes, str], int]:
    """Recognizes files by the pattern of a step; they must show the other patterns, too."""
    pattern, needed = re.compile(step), [re.compile(one) for one in others]

    def recognizes(head: bytes, _: str) -> int:
        text = plain(head)
        return len(pattern.findall(text)) if all(one.search(text) for one in needed) else 0

    return recognizes


def nothing(problem: Diagnostic, configuration: PartialCase | None = None) -> tuple[ParsedLog, ...]:
    """The result of a file without figures, with the reason."""
    log = ParsedLog(
        configuration=configuration or PartialCase(),
        outcome=Outcome.NO_DATA,
        error=problem.message,
        problems=(problem,),
    )
    return (log,)
