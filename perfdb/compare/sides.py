"""What is compared: the sides of a match, matches, and the verdicts on them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from math import inf, isclose, isfinite
from statistics import median

from perfdb.metrics import CONVENTION_BOUND
from perfdb.record import CONFIGURATION_FIELDS, NoteCode, Origin, Outcome, Result, Scalar
from perfdb.stated import RATE
from perfdb.versions import natural

FAULTS = (
    Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.NAN_LOSS, Outcome.NAN_GRAD_NORM,
    Outcome.TIMED_OUT,
)  # fmt: skip
"""The outcomes of a run that failed by itself, and was not stopped."""


def usable(result: Result, metric: str) -> float | None:
    """The value of a metric; None where it is unknown, withheld, or cannot be a rate."""
    value = None if result.withheld else result.figure(metric)
    return value if value is not None and isfinite(value) and value > 0 else None


def work_order(result: Result) -> tuple[object, ...]:
    """A key that sorts results by what was done: model, system, task, precision, then sizes."""
    work = (natural(result.model_title), natural(result.system_title), result.task)
    size = (result.num_gpus, result.sequence_length, result.global_batch_size)
    return (*work, result.precision or "", *size)


def layout_order(result: Result) -> tuple[object, ...]:
    """A key that sorts results of the same work by how it was done: MBS, LBS, TP, PP, …"""
    values = [result.value(name) for name in CONFIGURATION_FIELDS]
    texts = (natural("" if value is None else str(value)) for value in values)
    return (*texts, result.case_key)


def marked(results: Iterable[Result], wrong: Collection[int]) -> tuple[Result, ...]:
    """The results; those whose numbers are among the wrong ones are marked with open errors."""
    return tuple(
        replace(one, has_open_errors=True) if one.result_id in wrong else one for one in results
    )


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

    def median(self, metric: str) -> float | None:
        """The median of the runs' figures, which of several a verdict is on.

        The one shown alone would make an even number of runs look faster than they are, and is of
        median step time only.
        """
        known = self.figures(metric)
        return median(known) if known else None

    def figures(self, metric: str) -> list[float]:
        """The figure of each finished run that has one; FLOPs of those that count them alike."""
        return _figures(self._alike(metric), metric)

    def repeats(self, metric: str) -> list[float]:
        """Figures that show how far its runs are apart: step times, of uneven steps the rates."""
        shows = metric if self.is_uneven(metric) else "step_time_s"
        return _figures(self._alike(metric), shows)

    def _alike(self, metric: str) -> Iterable[Result]:
        """The finished runs, of a metric of FLOPs those that count them as the one shown does."""
        if metric not in CONVENTION_BOUND:
            return self.finished
        convention = self.shown.flops_convention
        return (one for one in self.finished if one.flops_convention == convention)

    def is_uneven(self, metric: str) -> bool:
        """Whether its figures depend on how many tokens the steps happened to have."""
        return metric == RATE and any(
            one.has_note(NoteCode.VARIABLE_LENGTH_STEPS) for one in self.finished
        )

    @property
    def finished(self) -> tuple[Result, ...]:
        """Those that have figures."""
        return tuple(result for result in self.results if result.withheld is None)

    @property
    def failed(self) -> tuple[Result, ...]:
        """Those that failed by themselves, without those that were stopped or cut off."""
        return tuple(result for result in self.results if result.outcome in FAULTS)

    def fails_more_than(self, least: float) -> bool:
        """Whether it has figures, and yet a larger share of its runs failed than that."""
        return bool(self.finished) and self.share_failed > least

    @property
    def share_failed(self) -> float:
        """The fraction of its runs that failed."""
        return len(self.failed) / len(self.results)

    def is_usable(self, metric: str) -> bool:
        """Whether another figure can be held against that of this side."""
        return self.median(metric) is not None and not self.shown.has_open_errors

    @property
    def origin(self) -> Origin:
        """Whether its figures are measured or published."""
        return self.results[0].origin

    @property
    def window(self) -> str | None:
        """'skip_warmup(10)': the window of its finished runs; several where they have several."""
        return ", ".join(sorted(self.windows)) or None

    @property
    def windows(self) -> frozenset[str]:
        """Those of its finished runs, as far as they are known."""
        return frozenset(one.window for one in self.finished if one.window)

    @property
    def containers(self) -> frozenset[str | None]:
        """Those of its runs; None is one without a container."""
        return frozenset(one.container for one in self.results)


def _figures(results: Iterable[Result], metric: str) -> list[float]:
    return [figure for one in results if (figure := usable(one, metric)) is not None]


def _by_step_time(result: Result) -> tuple[bool, float, int]:
    time = result.step_time_s
    return (time is None, time or 0.0, result.result_id)


@dataclass(frozen=True)
class Judgement:
    """B over A: the ratio, its 95 % interval, and what they say. None: unknown.

    `reason` says how B ended, where it failed, and why it is unknown where both have figures:
    they are of different metrics, no measure of each other, or too noisy.
    """

    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str | None = None
    is_no_measure: bool = False
    """Whether the two are no measure of each other, however often either is run."""

    @property
    def change(self) -> float:
        """By how much B differs from A, as a fraction; infinite where that is unknown."""
        return inf if self.ratio is None else abs(self.ratio - 1)

    def reaches(self, least: float) -> bool:
        """Whether B differs by this fraction or more: 0.9 does by 0.1, for all a float's dust."""
        return self.change >= least or isclose(self.change, least)


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

    @property
    def failed(self) -> bool:
        """Whether B has no figures where A has, or a larger share of its runs failed."""
        is_whole = self.judgement.verdict is Verdict.FAILED
        return is_whole or self.b.fails_more_than(self.a.share_failed)


@dataclass(frozen=True)
class Comparison:
    """Everything two releases have, matched where it can be."""

    matched: tuple[Match, ...]
    only_a: tuple[Side, ...]
    only_b: tuple[Side, ...]

    @property
    def missing(self) -> bool:
        """Whether B did not run something that A has, or failed at it more often."""
        return bool(self.failed or self.only_a)

    @property
    def failed(self) -> tuple[Match, ...]:
        """The matches at which B failed, wholly or at more of its runs than A."""
        return tuple(match for match in self.matched if match.failed)

    def slower(self, least: float) -> tuple[Match, ...]:
        """The matches at which B is slower by this fraction or more."""
        found = (match for match in self.matched if match.judgement.verdict is Verdict.SLOWER)
        return tuple(match for match in found if match.judgement.reaches(least))

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
