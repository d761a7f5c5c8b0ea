"""Faster, slower, failed, same, unknown, not judged: the one rule, and the noise of figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, inf, isclose, log, log1p, pi, sqrt
from statistics import fmean
from typing import Final

from perfdb import stated
from perfdb.audit.interval import half_unit
from perfdb.compare.sides import Side, usable
from perfdb.metrics import CONVENTION_BOUND, METRICS
from perfdb.record import Origin, Outcome, Result
from perfdb.stated import RATE
from perfdb.units import number, significant, text

SAME_PUBLISHED: Final = 0.01
"""By how much a run may differ from a page and be the same: twice `RUN_TO_RUN`."""

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


def judge_again(a: Side, b: Side, metric: str) -> Judgement:
    """B over A as `judge` has it, and a run over a page, which says nothing of its noise.

    The `same` within the digits printed and within `SAME_PUBLISHED`; `unknown` where the noise of
    the run is wider than `TOO_NOISY`, or may be what is beyond that.
    """
    found, figure, noise = judge(a, b, metric), a.median(metric), spread(b, metric)
    is_open = found.verdict is Verdict.UNKNOWN and not found.is_no_measure
    if not (is_open and a.origin != b.origin and found.ratio and figure and noise):
        return found
    rounding = half_unit(figure, metric, a.shown.printed.get(metric)) / figure
    change, allowed = log(found.ratio), max(rounding, SAME_PUBLISHED)
    either_way = student_t_95(noise.freedom) * noise.relative
    is_sure = either_way <= TOO_NOISY and not allowed < abs(change) <= allowed + either_way
    verdict = _verdict(change, allowed, metric) if is_sure else Verdict.UNKNOWN
    reason = f"{abs(change):.1%} apart, {allowed:.1%} allowed, the run is ±{either_way:.1%}"
    return replace(found, verdict=verdict, reason=reason)


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
        if a.origin == Origin.PUBLISHED and None in (spread(a, metric), spread(b, metric)):
            # A page is no sharper than its digits.
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
    if metric not in CONVENTION_BOUND:
        return 0.0
    one, other = _gflop_per_token(a), _gflop_per_token(b)
    if not one or not other:
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


RUN_TO_RUN = 0.0051
"""The relative standard deviation between runs of one case that is assumed: of a single run at the
least, of several as if one more run had shown it.

The 90th percentile over 69 configurations with three or more runs (581 runs, 17 submitters) in the
public logs of MLPerf Training v4.1 and v5.0, on machines that did nothing else.
"""
MEDIAN_TO_MEAN = sqrt(pi / 2)
"""How much less sharp a median is than the mean, at most: in the limit of many normal figures."""
DECILES_APART = 2.563
"""Standard deviations between the 10th and the 90th percentile of a normal distribution."""
STUDENT_T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Two-sided 95 % quantiles of Student's t for 1 to 10 degrees of freedom; above, that of 10."""
WIDEST = 300.0
"""Half of the widest interval, as a logarithm: exp() of more than twice that is no float."""


@dataclass(frozen=True)
class Spread:
    """The relative standard error of a side's figure, and its degrees of freedom."""

    relative: float
    freedom: int


def spread(side: Side, metric: str) -> Spread | None:
    """How far a side's figure may be off; None where it is unknown.

    Several runs: what they show, with `RUN_TO_RUN` as of one more run, so that repeats that agree
    by chance are not taken for a machine without noise. That is a moderated variance after Smyth
    (2004, doi:10.2202/1544-6115.1027), whose prior has one degree of freedom. Their median is
    compared, which is less sharp than their mean.

    One run: how far its steps are from one another, and `RUN_TO_RUN` at least. Steps of one run
    are no repetitions of it: what slows one run on a busy machine slows all its steps, so the error
    of their median would call noise a difference. Repeat runs for a sharper verdict. The step times
    of a run do not show how many tokens its steps had by chance.
    """
    figures = side.repeats(metric)
    if len(figures) > 1:
        return of_runs(figures)
    if side.origin != Origin.MEASURED or side.is_uneven(metric):
        return None
    # A log that prints one mean for many steps shows no more than there are means.
    run, count = side.shown, side.shown.num_means or side.shown.num_steps
    apart = _steps_apart(run)
    if not count or count < 2 or apart is None:
        return None
    return Spread(max(apart, RUN_TO_RUN), count - 1)


def of_runs(figures: Sequence[float]) -> Spread:
    """By the squares of n runs and of the assumed one: n degrees, as the mean takes one."""
    count = len(figures)
    return Spread(MEDIAN_TO_MEAN * sqrt(_squares(figures)) / count, count)


def _squares(figures: Sequence[float]) -> float:
    """How far runs are from their mean, with the assumed one: relative, squared and summed."""
    mean = fmean(figures)
    return RUN_TO_RUN**2 + sum((figure / mean - 1) ** 2 for figure in figures)


def _steps_apart(run: Result) -> float | None:
    """The relative standard deviation of the steps, by their deciles where these are known.

    One step in twenty that waits for a checkpoint moves no decile, and no median.
    """
    p10_s, median_s, p90_s = run.step_time_p10_s, run.step_time_s, run.step_time_p90_s
    if p10_s is not None and p90_s is not None and median_s:
        return (p90_s - p10_s) / DECILES_APART / median_s
    mean_s, deviation_s = run.step_time_mean_s, run.step_time_stdev_s
    return None if not mean_s or deviation_s is None else deviation_s / mean_s


def half_between(a: Side, b: Side, metric: str) -> float | None:
    """Half the 95 % interval of log(b/a); None where it is unknown for either.

    A single run against several is as far off as its steps show, and at least as far as the runs
    of the other side: they show how much the runs of this case differ, which the steps of one run
    cannot. A single published figure shows nothing itself.
    """
    ours, theirs = spread(a, metric), spread(b, metric)
    several = [figures for side in (a, b) if len(figures := side.repeats(metric)) > 1]
    of_others = half_of_one_more(several[0]) if len(several) == 1 else 0.0
    if ours is None or theirs is None:
        return of_others or None if a.origin == b.origin == Origin.PUBLISHED else None
    return max(half_interval(ours, theirs), of_others)


def half_of_one_more(figures: Sequence[float]) -> float:
    """Half the 95 % interval of one more run over the median of n, by the spread of these alone.

    The variance of a run is over n − 1 here, where that of their median is over n: without it two
    or three that agree by chance call the noise of the single one a difference.
    """
    ours = of_runs(figures)
    variance = ours.relative**2 + _squares(figures) / (len(figures) - 1)
    return min(student_t_95(ours.freedom) * sqrt(variance), WIDEST)


def half_interval(a: Spread, b: Spread) -> float:
    """Half the 95 % interval of log(b/a), after Welch (1947)."""
    variances = (a.relative**2, b.relative**2)
    total = sum(variances)
    freedom = total**2 / (variances[0] ** 2 / a.freedom + variances[1] ** 2 / b.freedom)
    return min(student_t_95(freedom) * sqrt(total), WIDEST)


def student_t_95(freedom: float) -> float:
    """The quantile for any degrees of freedom, between two of the table linear in 1/freedom."""
    below = max(int(freedom), 1)
    if below >= len(STUDENT_T_95):
        return STUDENT_T_95[-1]
    low, high = STUDENT_T_95[below - 1 : below + 1]
    share = (1 / below - 1 / max(freedom, 1)) / (1 / below - 1 / (below + 1))
    return low + share * (high - low)
