"""Faster, slower, failed, same, unknown, not judged: the one rule. Its noise is in `noise`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, inf, isclose, log, log1p
from typing import Final

from perfdb import stated
from perfdb.audit.interval import half_unit
from perfdb.compare.noise import half_between, spread
from perfdb.compare.sides import Side, usable
from perfdb.metrics import CONVENTION_BOUND, METRICS
from perfdb.record import Origin, Outcome, Result
from perfdb.stated import RATE
from perfdb.units import number, significant, text

TOO_NOISY = 0.05
"""Half a 95 % interval that is wider hides more than anyone would call the same."""

LONE_AND_UNEVEN: Final = "steps differ in tokens: a single run shows no noise, repeat it"
"""Why two rates cannot be distinguished, one of which is of a single run of such steps."""

_RATES: Final = (RATE, "tokens_per_sec", "step_time_s")
"""What tokens/s/GPU are known by; the first that a result states."""
_TFLOPS: Final = "model_tflops_per_sec_per_gpu"
_ROUNDOFF: Final = 1e-9
"""The relative error that floating-point arithmetic may add."""
_SAME_COUNT: Final = 0.001
"""By how much two counts of FLOPs per token may differ and be one, if their digits say less: a file
may pad a figure with zeros that nobody measured. Conventions are further apart."""

ENDED: Final[Mapping[Outcome, str]] = {
    Outcome.FAILED: "error",
    Outcome.OUT_OF_MEMORY: "out of memory",
    Outcome.NAN_LOSS: "NaN loss",
    Outcome.NAN_GRAD_NORM: "NaN gradient norm",
    Outcome.TIMED_OUT: "timed out",
    Outcome.INTERRUPTED: "interrupted",
    Outcome.INCOMPLETE: "incomplete",
    Outcome.NO_DATA: "no figures",
}
"""How a run ended that did not finish, in a word or two."""


class Verdict(StrEnum):
    """What a comparison says of B against A; `judge` has the rule."""

    FASTER = "faster"
    SLOWER = "slower"
    FAILED = "failed"
    """A finished and B did not."""
    SAME = "same"
    UNKNOWN = "unknown"
    NOT_JUDGED = "not judged"
    """The audit calls a figure of either side an error: to correct it is no change of speed."""


@dataclass(frozen=True)
class Judgement:
    """B over A: the ratio, its 95 % interval, and the verdict. None: unknown.

    `reason` says how B ended, where it failed, and why the verdict is unknown where both have
    figures. `is_no_measure`: the two cannot be compared, however often either is run.
    """

    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str | None = None
    is_no_measure: bool = False

    @property
    def change(self) -> float:
        """By how much B differs from A, as a fraction; infinite where that is unknown."""
        return inf if self.ratio is None else abs(self.ratio - 1)

    def reaches(self, least: float) -> bool:
        """Whether B differs by this fraction or more, apart from the roundoff of a float."""
        return self.change >= least or isclose(self.change, least)


def judge(a: Side, b: Side, metric: str) -> Judgement:
    """B over A by a metric, with a verdict on whether B is faster.

    - `failed`, whatever else there is, where A finished and no run of B did.
    - Both measured, with a spread on each side: the ratio, that of the medians of the runs, has a
      95 % interval. `faster` or `slower` if it leaves out 1, else `same` (no difference can be
      told).
    - Both published: the same where a side has several results, as of an MLPerf submission; else no
      interval. `same` if the figures differ by no more than the rounding of their printed digits
      (half a unit in the last place of each), else `faster` or `slower`.
    - Equal figures without a spread are the `same`; so are those within the tolerance of a metric
      that has one, as peak memory, over whatever windows, and else it is `faster` or `slower`.
    - `unknown` in all other cases: a figure is missing, a spread is missing, the interval holds
      1 and half of it is wider than `TOO_NOISY`, runs of a side are further apart than the
      tolerance of a metric that has one and not all of them say the same, one side is measured and
      the other published, both are measured and their runs are over different windows, even on one
      side, or their FLOPs follow different conventions or are other counts per token.
    - `not judged`, whatever the figures say, where the audit has open errors of either side.
    """
    if a.shown.outcome == Outcome.FINISHED != b.shown.outcome:
        return Judgement(None, None, None, Verdict.FAILED, ENDED[b.shown.outcome])
    judged = _by_figures(a, b, metric)
    if a.shown.has_open_errors or b.shown.has_open_errors:
        return replace(judged, verdict=Verdict.NOT_JUDGED)
    return judged


def _by_figures(a: Side, b: Side, metric: str) -> Judgement:
    figure_a, figure_b = a.median(metric), b.median(metric)
    if figure_a is None or figure_b is None:
        return Judgement(None, None, None, Verdict.UNKNOWN, _not_of_both(a, b, metric))
    ratio = figure_b / figure_a
    if (tolerance := METRICS[metric].tolerance) is not None:
        # Of the larger of two figures, as a logarithm: 99 to 100 is as far as 100 to 99.
        allowed = -log1p(-tolerance)
        if reason := _runs_differ(a, b, metric, allowed):
            return Judgement(ratio, None, None, Verdict.UNKNOWN, reason)
        return Judgement(ratio, None, None, _verdict(log(ratio), allowed, metric))
    if reason := _not_comparable(a, b, metric):
        return Judgement(ratio, None, None, Verdict.UNKNOWN, reason, is_no_measure=True)
    rounding = _rounding(a, b, metric) + _waived(a.shown, b.shown, metric) * figure_b
    if a.origin == b.origin and (half := half_between(a, b, metric)) is not None:
        if None in (spread(a, metric), spread(b, metric)):  # a page is no sharper than its digits
            half = max(half, rounding / min(figure_a, figure_b))
        return _by_interval(figure_a, figure_b, half, metric)
    verdict, reason = _verdict(figure_b - figure_a, rounding, metric), None
    is_uneven = a.is_uneven(metric) or b.is_uneven(metric)
    if verdict is Verdict.UNKNOWN and is_uneven and a.origin == b.origin:
        reason = LONE_AND_UNEVEN
    return Judgement(ratio, None, None, verdict, reason)


def _not_of_both(a: Side, b: Side, metric: str) -> str | None:
    """Which figures both have instead, or else each; None where a side has none at all."""
    ours, theirs = (
        [one.title for one in METRICS.values() if side.median(one.name) is not None]
        for side in (a, b)
    )
    if not ours or not theirs:
        return None
    if shared := [title for title in ours if title in theirs]:
        return f"not both have {METRICS[metric].title}, but both have {', '.join(shared)}"
    return f"no figure that both state ({', '.join(ours)}; {', '.join(theirs)})"


def _by_interval(figure_a: float, figure_b: float, half: float, metric: str) -> Judgement:
    change = log(figure_b) - log(figure_a)
    verdict, reason = _verdict(change, half, metric), None
    if verdict is Verdict.SAME and half > TOO_NOISY:
        verdict, reason = Verdict.UNKNOWN, f"too noisy to tell: ±{number(half * 100, 1)} %"
    low, high = exp(change - half), exp(change + half)
    return Judgement(figure_b / figure_a, low, high, verdict, reason)


def _rounding(a: Side, b: Side, metric: str) -> float:
    """By how much two figures without spread may differ and still be the same."""
    if not a.origin == b.origin == Origin.PUBLISHED:
        return 0.0 if a.median(metric) == b.median(metric) else inf
    return sum(
        max(
            half_unit(figure, metric, one.printed.get(metric))
            for one in side.finished
            if (figure := usable(one, metric))
        )
        for side in (a, b)
    )


def _verdict(change: float, tolerance: float, metric: str) -> Verdict:
    if tolerance == inf:
        return Verdict.UNKNOWN
    if abs(change) <= tolerance * (1 + _ROUNDOFF):  # 9.30 and 9.20 differ by 0.1 and roundoff
        return Verdict.SAME
    is_better = (change > 0) is (METRICS[metric].better == "higher")
    return Verdict.FASTER if is_better else Verdict.SLOWER


def _runs_differ(a: Side, b: Side, metric: str, allowed: float) -> str | None:
    """Runs further apart than allowed count only where every pair has the same verdict."""
    ours, theirs = a.figures(metric), b.figures(metric)
    apart = max(max(some) / min(some) for some in (ours, theirs))
    ends = min(theirs) / max(ours), max(theirs) / min(ours)
    verdicts = {_verdict(log(end), allowed, metric) for end in ends}
    if log(apart) <= allowed * (1 + _ROUNDOFF) or len(verdicts) == 1:
        return None
    return f"too noisy to tell: runs {number((apart - 1) * 100, 1)} % apart"


def _not_comparable(a: Side, b: Side, metric: str) -> str | None:
    """Why two figures are no measure of each other; None where they are.

    Steps of another part of a run are faster or slower for that alone, on one side too.
    """
    if a.origin == b.origin == Origin.MEASURED and len(a.windows | b.windows) > 1:
        return f"windows differ: {text(a.window)} / {text(b.window)}"
    if metric not in CONVENTION_BOUND:
        return None
    conventions = a.shown.flops_convention, b.shown.flops_convention
    if None not in conventions and len(set(conventions)) > 1:
        return f"FLOPs conventions differ: {conventions[0]} / {conventions[1]}"
    counts = gflop_per_token_apart(a.shown, b.shown)
    return f"GFLOP per token differ: {' / '.join(map(significant, counts))}" if counts else None


def gflop_per_token_apart(a: Result, b: Result) -> tuple[float, float] | None:
    """The GFLOP per token that two results of the same work count; None where they may agree.

    By TFLOP/s ÷ tokens/s, which may follow from the rate of all GPUs or the step time, with the
    rounding of the four figures, and within a tenth of a per cent whatever their digits.
    """
    one, other = _gflop_per_token(a), _gflop_per_token(b)
    if not one or not other:
        return None
    allowed = max(one[1] + other[1], _SAME_COUNT) + _ROUNDOFF
    return (one[0], other[0]) if abs(other[0] / one[0] - 1) > allowed else None


def _waived(a: Result, b: Result, metric: str) -> float:
    """The share by which counts of FLOPs that are taken for the same differ beyond rounding."""
    one, other = _gflop_per_token(a), _gflop_per_token(b)
    if metric not in CONVENTION_BOUND or not one or not other:
        return 0.0
    apart = abs(other[0] / one[0] - 1)
    return apart if apart > one[1] + other[1] + _ROUNDOFF else 0.0


def _gflop_per_token(result: Result) -> tuple[float, float] | None:
    """What a result counts, and the share of it that rounding leaves open."""
    known = {name: value for name in (*_RATES, _TFLOPS) if (value := usable(result, name))}
    nothing: dict[str, float | None] = dict.fromkeys(_RATES)
    tokens = stated.figure(replace(result, **(nothing | known)), RATE)  # type: ignore[arg-type]
    if tokens is None or _TFLOPS not in known:
        return None
    rounding = sum(
        half_unit(known[name], name, result.printed.get(name)) / known[name]
        for name in (next(iter(known)), _TFLOPS)
    )
    return known[_TFLOPS] * 1e3 / tokens, rounding
