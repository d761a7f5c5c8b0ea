"""How far the figure of a side may be off, and the ratio of two."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt
from statistics import fmean

from perfdb.compare.sides import Side
from perfdb.record import Origin, Result

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
