"""Faster, slower, failed, same, unknown, not judged: the one rule, and its noise model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from math import exp, inf, log, sqrt
from statistics import fmean, stdev
from typing import Final

from perfdb.compare.base import Judgement, Result, Side, Verdict
from perfdb.metrics import METRICS
from perfdb.record import Origin, Outcome

RUN_TO_RUN = 0.0051
"""The least relative standard deviation between runs of one case that is assumed of a single run.

The 90th percentile over 69 configurations with three or more runs (581 runs, 17 submitters) in the
public logs of MLPerf Training v4.1 and v5.0, on machines that did nothing else.
"""

STUDENT_T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Two-sided 95 % quantiles of Student's t for 1 to 10 degrees of freedom; above, that of 10."""

CONVENTION_BOUND = ("model_tflops_per_sec_per_gpu", "mfu")
"""Figures that count FLOPs: two conventions make them two different quantities."""

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


@dataclass(frozen=True)
class Spread:
    """The relative standard error of a side's figure, and its degrees of freedom."""

    relative: float
    freedom: int


def judge(a: Side, b: Side, metric: str) -> Judgement:
    """B over A by a metric, with a verdict on whether B is faster.

    - `failed`, whatever else there is to say of A, where A finished and no run of B did.
    - Both measured, with a spread on each side: the ratio has a 95 % interval. `same` if it holds
      1 (no difference can be told), else `faster` or `slower`.
    - Both published: the same where each has several results, as of an MLPerf submission; else no
      interval. `same` if the figures differ by no more than the rounding of their printed digits
      (half a unit in the last place of each), else `faster` or `slower`.
    - Equal figures without a spread are the `same`.
    - `unknown` in all other cases: a figure is missing, a spread is missing, one side is measured
      and the other published, both are measured over different windows, or their FLOPs follow
      different conventions.
    - `not judged`, whatever the figures say, where the audit has open errors of either side.
    """
    outcomes = a.shown.outcome, b.shown.outcome
    if outcomes[0] is Outcome.FINISHED is not outcomes[1]:
        return Judgement(None, None, None, Verdict.FAILED, ENDED[outcomes[1]])
    judged = _by_figures(a, b, metric)
    if a.shown.has_open_errors or b.shown.has_open_errors:
        return replace(judged, verdict=Verdict.NOT_JUDGED)
    return judged


def _by_figures(a: Side, b: Side, metric: str) -> Judgement:
    figure_a, figure_b = a.shown.figure(metric), b.shown.figure(metric)
    if figure_a is None or figure_b is None:
        return Judgement(None, None, None, Verdict.UNKNOWN)
    if reason := _differ_in_window(a, b) or _differ_in_convention(a.shown, b.shown, metric):
        return Judgement(figure_b / figure_a, None, None, Verdict.UNKNOWN, reason)
    change = log(figure_b) - log(figure_a)
    noise = _noise(spread(a), spread(b))
    if noise is None:
        tolerance = _rounding(a, b, figure_a, figure_b)
        verdict = _verdict(figure_b - figure_a, tolerance, metric)
        return Judgement(figure_b / figure_a, None, None, verdict)
    low, high = exp(change - noise), exp(change + noise)
    return Judgement(figure_b / figure_a, low, high, _verdict(change, noise, metric))


def spread(side: Side) -> Spread | None:
    """How far a side's figure may be off; None where nothing tells.

    Several runs: their standard deviation over the root of their number. One run: as far as its
    steps are from one another, and `RUN_TO_RUN` at least. Steps of one run are no repetitions of
    it: what slows one run on a busy machine slows all its steps, so the error of their median
    would call noise a difference. Repeat runs for a sharper verdict.
    """
    times = side.step_times_s
    if len(times) > 1:
        return Spread(stdev(times) / fmean(times) / sqrt(len(times)), len(times) - 1)
    return None if side.origin is Origin.PUBLISHED else _spread_of_steps(side.shown)


def _spread_of_steps(run: Result) -> Spread | None:
    count, mean, deviation = run.num_steps, run.step_time_mean_s, run.step_time_stdev_s
    if not count or count < 2 or not mean or deviation is None:
        return None
    return Spread(max(deviation / mean, RUN_TO_RUN), count - 1)


def _noise(a: Spread | None, b: Spread | None) -> float | None:
    """Half the 95 % interval of log(b/a), after Welch (1947)."""
    if a is None or b is None:
        return None
    variances = (a.relative**2, b.relative**2)
    total = sum(variances)
    if total == 0:
        return 0.0
    freedom = total**2 / (variances[0] ** 2 / a.freedom + variances[1] ** 2 / b.freedom)
    whole = int(freedom + 1e-9)  # 4 degrees may come out as 3.9999999999999996
    return STUDENT_T_95[min(whole, len(STUDENT_T_95)) - 1] * sqrt(total)


def _rounding(a: Side, b: Side, figure_a: float, figure_b: float) -> float:
    """By how much two figures without spread may differ and still be the same."""
    if a.origin is b.origin is Origin.PUBLISHED:
        return half_unit(figure_a) + half_unit(figure_b)
    return 0.0 if figure_a == figure_b else inf


def half_unit(printed: float) -> float:
    """Half a unit in the last printed place: 0.05 for 9.3, 0.5 for 9300."""
    exponent = Decimal(repr(printed)).normalize().as_tuple().exponent
    assert isinstance(exponent, int), f"{printed} is not a printed figure"
    return float(Decimal(5).scaleb(min(exponent, 0) - 1))


def _verdict(change: float, tolerance: float, metric: str) -> Verdict:
    if tolerance == inf:
        return Verdict.UNKNOWN
    if abs(change) <= tolerance * (1 + 1e-9):  # 9.30 and 9.20 differ by 0.1 and a float's dust
        return Verdict.SAME
    return (
        Verdict.FASTER if (change > 0) is (METRICS[metric].better == "higher") else Verdict.SLOWER
    )


def _differ_in_window(a: Side, b: Side) -> str | None:
    """Steps of another part of a run are faster or slower for that alone."""
    if not a.origin is b.origin is Origin.MEASURED or None in (a.window, b.window):
        return None
    return f"windows differ: {a.window} / {b.window}" if a.window != b.window else None


def _differ_in_convention(a: Result, b: Result, metric: str) -> str | None:
    conventions = a.flops_convention, b.flops_convention
    if metric not in CONVENTION_BOUND or None in conventions or len(set(conventions)) == 1:
        return None
    return f"FLOPs conventions differ: {conventions[0]} / {conventions[1]}"
