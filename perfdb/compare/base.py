"""What a comparison takes and gives: results, the sides of a match, verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import isfinite

from pydantic import ConfigDict

from perfdb.record import Frozen, Origin, Outcome, Scalar


class Verdict(StrEnum):
    """What a match says of B against A. `perfdb.compare.verdict` states the rule."""

    FASTER = "faster"
    SLOWER = "slower"
    FAILED = "failed"
    """A finished and B did not."""
    SAME = "same"
    UNKNOWN = "unknown"
    NOT_JUDGED = "not judged"
    """The audit calls a figure of either side an error: to correct it is no change of speed."""


class Level(StrEnum):
    """How alike the two sides of a match are."""

    CONFIGURATION = "configuration"
    """The same case: the same work, done the same way."""
    WORKLOAD = "workload"
    """The same work, each side in its own best configuration."""


class Result(Frozen):
    """A result as `perfdb.queries.results.current` gives it, as far as a comparison needs it."""

    model_config = ConfigDict(extra="ignore")

    result_id: int
    case_key: str
    workload_key: str
    framework: str
    release: str | None
    system: str
    system_title: str
    model: str
    model_title: str
    qualifiers: str
    task: str
    num_gpus: int
    precision: str | None
    sequence_length: int
    global_batch_size: int
    micro_batch_size: int | None
    local_batch_size: int | None
    tensor_parallel: int | None
    pipeline_parallel: int | None
    context_parallel: int | None
    expert_parallel: int | None
    expert_tensor_parallel: int | None
    virtual_pipeline: int | None
    fsdp_enabled: bool | None
    fsdp_size: int | None
    sequence_parallel: bool | None
    kernels: str
    variant: str | None
    options: Mapping[str, Scalar]
    origin: Origin
    outcome: Outcome
    withheld: str | None
    step_time_s: float | None
    step_time_mean_s: float | None
    step_time_stdev_s: float | None
    step_time_p10_s: float | None = None
    step_time_p90_s: float | None = None
    num_steps: int | None
    window: str | None = None
    """The steps that its figures are taken over."""
    tokens_per_sec_per_gpu: float | None
    model_tflops_per_sec_per_gpu: float | None
    mfu: float | None
    peak_memory_bytes: int | None = None
    flops_convention: str | None
    run_id: str | None = None
    source: str | None = None
    """The file that it was read from."""
    source_line: int | None = None
    has_open_errors: bool = False
    """Whether the audit finds errors in it that nobody has accepted (`perfdb.compare.errors`)."""

    def figure(self, metric: str) -> float | None:
        """The value of a metric; None where it is unknown, withheld, or cannot be a rate."""
        if self.withheld is not None:
            return None
        value: float | None = getattr(self, metric)
        return value if value is not None and isfinite(value) and value > 0 else None


@dataclass(frozen=True)
class Side:
    """The results of one case at one release from one origin: one or several runs."""

    results: tuple[Result, ...]

    @cached_property
    def shown(self) -> Result:
        """The result a table prints: of the finished runs the one of median step time.

        The faster of the middle two where their number is even, as
        `perfdb.queries.results.representative` does.
        """
        ranked = sorted(self.finished or self.results, key=_by_step_time)
        return ranked[(len(ranked) - 1) // 2]

    @property
    def finished(self) -> tuple[Result, ...]:
        """Those that have figures."""
        return tuple(result for result in self.results if result.withheld is None)

    def is_usable(self, metric: str) -> bool:
        """Whether another figure can be held against that of this side."""
        return self.shown.figure(metric) is not None and not self.shown.has_open_errors

    @property
    def origin(self) -> Origin:
        """Whether its figures are measured or published."""
        return self.results[0].origin

    @property
    def window(self) -> str | None:
        """'skip_warmup(10)': the window of its finished runs; several where they have several."""
        known = {one.window for one in self.finished if one.window}
        return ", ".join(sorted(known)) or None

    @property
    def step_times_s(self) -> list[float]:
        """The step time of each finished run, in seconds."""
        times = [result.figure("step_time_s") for result in self.results]
        return [time for time in times if time is not None]


def _by_step_time(result: Result) -> tuple[bool, float, int]:
    time = result.step_time_s
    return (time is None, time or 0.0, result.result_id)


@dataclass(frozen=True)
class Judgement:
    """B over A: the ratio, its 95 % interval, and what they say. None: cannot be told.

    `reason` says how B ended, where it failed, and why it cannot be told where both have a figure:
    the two are no measure of each other, or too noisy.
    """

    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str | None = None


@dataclass(frozen=True)
class Difference:
    """One configuration field that the two sides do not share."""

    field: str
    a: Scalar | None
    b: Scalar | None


@dataclass(frozen=True)
class Match:
    """The same work in both releases; `metric` is the figure that was compared."""

    level: Level
    a: Side
    b: Side
    metric: str
    judgement: Judgement
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Comparison:
    """Everything two releases have, matched where it can be."""

    matched: tuple[Match, ...]
    only_a: tuple[Side, ...]
    only_b: tuple[Side, ...]

    @property
    def missing(self) -> bool:
        """Whether something that A has a figure of has none in B: it did not run, or failed."""
        failed = any(match.judgement.verdict is Verdict.FAILED for match in self.matched)
        return failed or bool(self.only_a)

    @property
    def judged(self) -> tuple[Match, ...]:
        """The matches that neither side's open errors keep from a verdict."""
        return tuple(
            match for match in self.matched if match.judgement.verdict is not Verdict.NOT_JUDGED
        )


def together(found: Sequence[Comparison]) -> Comparison:
    """Several comparisons as one."""
    return Comparison(
        matched=tuple(match for one in found for match in one.matched),
        only_a=tuple(side for one in found for side in one.only_a),
        only_b=tuple(side for one in found for side in one.only_b),
    )
