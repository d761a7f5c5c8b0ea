"""What is written to the store: the bytes of sources, runs with their steps, results, findings."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from perfdb.db.packing import Packed, packed
from perfdb.jsonfile import content_hash
from perfdb.record import Case, Note, Origin, Outcome, Release, RunKind

if TYPE_CHECKING:  # a site needs no numpy
    from perfdb.formats.columns import Steps
    from perfdb.rundir import StepsRead


Natural = tuple[str, str, str, int]
"""What makes a source the same one: its SHA-256, its path, and its parser with its version."""


@dataclass(frozen=True)
class SourceFile:
    """The bytes a number came from, where they were, and who read them."""

    path: str
    content: bytes | Packed
    """A log may be too large to be held; it is packed while it is read."""
    parser: str
    parser_version: int

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the bytes, in hexadecimal."""
        if isinstance(self.content, Packed):
            return self.content.sha256
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def natural(self) -> Natural:
        """What makes it the same one."""
        return (self.sha256, self.path, self.parser, self.parser_version)

    @property
    def size_bytes(self) -> int:
        """How many bytes there are."""
        if isinstance(self.content, Packed):
            return self.content.size_bytes
        return len(self.content)

    def compressed(self) -> bytes:
        """The bytes as the store keeps them."""
        if isinstance(self.content, Packed):
            return b"".join(self.content.compressed())
        return packed(self.content)


@dataclass(frozen=True)
class RunRow:
    """The columns of `runs`. A log does not say its recipe, nor when the run started."""

    run_id: str
    recipe: str | None
    outcome: Outcome
    error: str | None
    exit_code: int | None
    attempt: int
    started_at: datetime | None
    ended_at: datetime | None
    warmup_steps: int
    measured_steps: int
    environment: Mapping[str, object]
    command: tuple[str, ...]
    summary: Mapping[str, object] | None
    content_hash: str
    kind: RunKind = RunKind.BENCHMARK


class StepRow(NamedTuple):
    """A row of `steps`. A loss or gradient norm that is not a number is None: SQLite has no NaN."""

    step: int
    step_time_s: float
    step_time_min_s: float | None
    loss: float | None
    grad_norm: float | None
    tokens: int | None
    peak_memory_bytes: int | None
    skipped: bool
    source_line: int
    tokens_per_sec_per_gpu: float | None = None
    model_tflops_per_sec_per_gpu: float | None = None


@dataclass(frozen=True)
class ResultRow:
    """The columns of `results`, with the case and the release that the result is of."""

    case: Case
    release: Release
    key: str
    content_hash: str
    origin: Origin
    outcome: Outcome
    withheld: Note | None = None
    source_line: int | None = None
    step_time_s: float | None = None
    step_time_mean_s: float | None = None
    step_time_stdev_s: float | None = None
    step_time_p10_s: float | None = None
    step_time_p90_s: float | None = None
    step_time_last_s: float | None = None
    num_steps: int | None = None
    num_means: int | None = None
    window: str | None = None
    tokens_per_sec_per_gpu: float | None = None
    model_tflops_per_sec_per_gpu: float | None = None
    tokens_per_sec: float | None = None
    mfu: float | None = None
    peak_tflops: float | None = None
    peak_memory_bytes: int | None = None
    flops_convention: str | None = None
    formula_version: int | None = None
    raw: Mapping[str, str] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict)
    extras: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    emitted: Mapping[str, float] = field(default_factory=dict)
    stated: Mapping[str, object] = field(default_factory=dict)
    """What the options of the command line state of it, as `Checked.stated` has it."""


@dataclass(frozen=True)
class MeasuredRun:
    """A run as it is stored: its row, its steps and its one result."""

    run: RunRow
    steps: "Steps | StepsRead"
    result: ResultRow


@dataclass(frozen=True)
class RunFiles:
    """The files a run was read from, by their name inside the run directory.

    `record` names the one that says what the run is, `measured_in` the one its figures are from.
    """

    by_name: Mapping[str, SourceFile]
    record: str
    measured_in: str
    stamp: str | None = None
    """The state of the files of a run directory before they were read, if the system has it."""

    @property
    def record_file(self) -> SourceFile:
        """The file that says what the run is."""
        return self.by_name[self.record]

    @property
    def measured_file(self) -> SourceFile:
        """The file that its figures are from."""
        return self.by_name[self.measured_in]

    @property
    def parser_version(self) -> int:
        """The version of who read what the run is."""
        return self.record_file.parser_version

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the names and contents: what was read, wherever the directory is."""
        return content_hash({name: file.sha256 for name, file in self.by_name.items()})


def step_rows(steps: "Steps | StepsRead") -> list[StepRow]:
    """The rows that are stored of steps."""
    names = ("line" if name == "source_line" else name for name in StepRow._fields)
    return [StepRow._make(row) for row in steps.rows(*names)]
