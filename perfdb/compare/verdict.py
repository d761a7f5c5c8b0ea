"""Faster, slower, same or not to be told: the one rule, by the noise model or by rounding."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import exp, hypot, inf, isclose, log, log1p, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Final, NamedTuple

from perfdb import stated
from perfdb.audit.interval import half_unit
from perfdb.compare import noise
from perfdb.compare.noise import MARGIN, Prediction, Prior, Sample
from perfdb.compare.sides import Side, usable
from perfdb.metrics import CONVENTION_BOUND, METRICS
from perfdb.record import Origin, Outcome, Result
from perfdb.stated import MFU, RATE
from perfdb.units import number, percent, significant, text

if TYPE_CHECKING:
    from perfdb.audit.restated import Restated

SAME_PUBLISHED: Final = 0.01
"""By how much a run may differ from a page and be the same."""

SAME_AGAIN: Final = 0.04
"""By how much a run may differ from another run and have it again; single runs show no less."""

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
    RECOVERED = "recovered"
    """B is faster than A, which was slower than the releases before it, and not than those."""
    SAME = "same"
    """The difference is within the margin, for sure."""
    UNKNOWN = "can't tell"
    NOT_COMPARABLE = "not comparable"
    NOT_JUDGED = "not judged"
    """The audit calls a figure of either side an error: to correct it is no change of speed."""


CHANGED: Final = (Verdict.FASTER, Verdict.SLOWER)
OPEN: Final = (Verdict.UNKNOWN, Verdict.NOT_COMPARABLE)
"""The verdicts that say nothing of a change."""


class Judgement(NamedTuple):
    """B over A: the ratio, its 99 % interval, and the verdict. None: unknown.

    The interval is of B over the baseline, up to three releases that A is the last of;
    `num_baseline` are the releases whose runs show the noise. `reason` says how B ended, where it
    failed, and why there is no verdict.
    `cause`: why there is no verdict, without the numbers of this pair; None: as `reason`.
    `rate`: the least false discovery rate, over all that was judged together, at which it is a
    change; None: no chance is in it, as of printed figures.
    """

    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str | None = None
    rate: float | None = None
    num_baseline: int = 1
    restated: "Restated | None" = None
    """The figures of B as A counts FLOPs, of which the ratio is; None: both count alike."""
    cause: str | None = None

    @property
    def change(self) -> float:
        """By how much B differs from A, as a fraction; infinite where that is unknown."""
        return inf if self.ratio is None else abs(self.ratio - 1)

    @property
    def is_told(self) -> bool:
        """Whether the two were held against each other, be it without a verdict of a change."""
        is_held = self.verdict is not Verdict.UNKNOWN or self.low is not None
        return is_held and self.verdict not in (Verdict.NOT_COMPARABLE, Verdict.NOT_JUDGED)

    @property
    def closes(self) -> bool:
        """Whether a gate may close on it: of pages without a change, one in a hundred does."""
        return self.rate is None or self.rate <= noise.FALSE_DISCOVERIES_OF_GATE

    def reaches(self, least: float) -> bool:
        """Whether B differs by this fraction or more, apart from the roundoff of a float."""
        return self.change >= least or isclose(self.change, least)


@dataclass(frozen=True)
class Terms:
    """What verdicts go by: the change that does not matter, and the noise of groups of cases.

    `priors` are by framework, system and scale; None is of all others.
    """

    margin: float = MARGIN
    priors: Mapping[object, Prior] = field(default_factory=dict)

    def prior(self, result: Result) -> Prior:
        """The prior of a result's case."""
        found = self.priors.get(group(result)) or self.priors.get(None)
        return found or noise.MLPERF


TERMS: Final = Terms()


def group(result: Result) -> tuple[str, str, int]:
    """The cases whose noise is alike: framework, system, and up to 8, 64, 512, … GPUs."""
    return result.framework, result.system, max(0, (result.num_gpus - 1).bit_length() - 1) // 3


def judge(
    a: Side, b: Side, metric: str, earlier: Sequence[Side] = (), terms: Terms = TERMS
) -> Judgement:
    """B over A by a metric, with a verdict on whether B is faster.

    `earlier`: the same case in the releases before A, the newest first.

    - `failed`, whatever else there is, where A finished and no run of B did.
    - Both measured, or of several published results: `faster` or `slower` where the prediction
      interval leaves out 1 and the change is larger than the margin; `same` where the interval is
      within the margin; else it cannot be told.
    - Both published: `same` if the figures differ by no more than the margin; beyond that it cannot
      be told within their printed digits or the rounding of samples/s that the audit infers, and
      else is `faster` or `slower`.
    - Within the tolerance of a metric that has one, as peak memory, over whatever windows, figures
      are the `same`, and else `faster` or `slower`.
    - `not comparable` where a figure is missing, one side is measured and the other published, runs
      are over different windows, even on one side, or FLOPs are counted differently and B cannot be
      restated as A counts them.
    - `not judged`, whatever the figures say, where the audit has open errors of either side.
    """
    if a.shown.outcome == Outcome.FINISHED != b.shown.outcome:
        return Judgement(None, None, None, Verdict.FAILED, ENDED[b.shown.outcome])
    judged = _by_figures(a, b, metric, earlier, terms)
    if a.shown.has_open_errors or b.shown.has_open_errors:
        cause = "an open error of the audit"
        return judged._replace(verdict=Verdict.NOT_JUDGED, rate=None, cause=cause)
    return judged


def judge_again(a: Side, b: Side, metric: str) -> Judgement:
    """B over A as `judge` has it, and a run over a page, which says nothing of its noise.

    A run is the `same` as another within `SAME_AGAIN` for sure, where no change is. As a page, it
    is within the digits printed and within `SAME_PUBLISHED`. It cannot be told where the
    noise of the run is more than twice that, or may be what is beyond that.
    """
    found, figure = judge(a, b, metric), a.median(metric)
    if found.low is not None and found.verdict is Verdict.UNKNOWN:
        wide = judge(a, b, metric, (), Terms(SAME_AGAIN))
        return wide if wide.verdict is Verdict.SAME else found
    of_b = b.by[metric]
    least, lacks_noise = of_b.noise
    is_fit = a.origin != b.origin and not _no_measure(a, b, metric) and not lacks_noise
    if not (is_fit and found.ratio and figure and of_b.sample):
        return found
    rounding = half_unit(figure, metric, a.shown.printed.get(metric)) / figure
    change, allowed = log(found.ratio), max(rounding, SAME_PUBLISHED)
    either_way = noise.half_of(of_b.sample, noise.MLPERF, least)
    is_sure = either_way <= 2 * allowed and not allowed < abs(change) <= allowed + either_way
    verdict = _verdict(change, allowed, metric) if is_sure else Verdict.UNKNOWN
    reason = f"{abs(change):.1%} apart, {allowed:.1%} allowed, the run is ±{either_way:.1%}"
    return found._replace(verdict=verdict, reason=reason)


def controlled(judged: Sequence[Judgement]) -> list[Judgement]:
    """Judgements of one page: a change that so many cases show by chance cannot be told.

    Of the changes that are left, no more than `noise.FALSE_DISCOVERIES` are false.
    """
    places = [place for place, one in enumerate(judged) if one.rate is not None]
    rates = noise.adjusted([judged[place].rate or 0.0 for place in places])
    found = list(judged)
    for place, rate in zip(places, rates, strict=True):
        one = judged[place]
        verdict, reason, cause = one.verdict, one.reason, one.cause
        if rate > noise.FALSE_DISCOVERIES and verdict in (*CHANGED, Verdict.RECOVERED):
            verdict = Verdict.UNKNOWN
            cause = "some differ so much by chance"
            reason = f"of {len(places)} compared, {cause}: repeat it"
        found[place] = Judgement(
            one.ratio, one.low, one.high, verdict, reason, rate, one.num_baseline, one.restated,
            cause,
        )  # fmt: skip
    return found


def _by_figures(a: Side, b: Side, metric: str, earlier: Sequence[Side], terms: Terms) -> Judgement:
    of_a, of_b = a.by[metric].sample, b.by[metric].sample
    if of_a is None or of_b is None:
        lacking = _not_of_both(a, b, metric)
        return Judgement(None, None, None, Verdict.NOT_COMPARABLE, lacking)
    if (tolerance := METRICS[metric].tolerance) is not None:
        return _by_tolerance(a, b, metric, tolerance)
    if reason := _no_measure(a, b, metric):
        if (as_a := _restated(a, b, metric)) is None:
            return Judgement(_ratio(a, b, metric), None, None, Verdict.NOT_COMPARABLE, reason)
        found, b = as_a
        return _by_noise(a, b, metric, earlier, terms)._replace(restated=found)
    return _by_noise(a, b, metric, earlier, terms)


def _ratio(a: Side, b: Side, metric: str) -> float:
    return (b.median(metric) or 1.0) / (a.median(metric) or 1.0)


def _by_noise(a: Side, b: Side, metric: str, earlier: Sequence[Side], terms: Terms) -> Judgement:
    """By how much figures of the same quantity vary."""
    of_a, of_b, ratio = a.by[metric], b.by[metric], _ratio(a, b, metric)
    if reason := _not_alike(a, b):
        return Judgement(ratio, None, None, Verdict.NOT_COMPARABLE, reason)
    old, new = of_a.sample, of_b.sample
    assert old is not None
    assert new is not None
    if a.origin == Origin.PUBLISHED and old.count == new.count == 1:
        return _by_rounding(a, b, metric, terms.margin)
    (least_a, lacking_a), (least_b, lacking_b) = of_a.noise, of_b.noise
    if reason := lacking_a or lacking_b:
        return Judgement(ratio, None, None, Verdict.UNKNOWN, reason)
    samples = [old, *samples_before(a, earlier, metric)]
    found = noise.predicted(samples, new, terms.prior(a.shown), hypot(least_a, least_b))
    if a.origin == Origin.PUBLISHED:  # no page is sharper than its digits
        digits = sum(it.half_digit for it in (of_a, of_b) if len(it.figures) == 1)
        found = found._replace(least=max(digits, found.least))
    return _by_interval(found, ratio, metric, terms.margin)


def _by_tolerance(a: Side, b: Side, metric: str, tolerance: float) -> Judgement:
    # Of the larger of two figures, as a logarithm: 99 to 100 is as far as 100 to 99.
    allowed = -log1p(-tolerance)
    ratio = _ratio(a, b, metric)
    if reason := _runs_differ(a, b, metric, allowed):
        return Judgement(ratio, None, None, Verdict.UNKNOWN, reason, cause="too noisy to tell")
    return Judgement(ratio, None, None, _verdict(log(ratio), allowed, metric))


def _by_interval(found: Prediction, ratio: float, metric: str, margin: float) -> Judgement:
    """By the prediction interval, whose ratio is of the medians that are shown."""
    half, apart = found.half, abs(found.change)
    allowed, reason, cause = log1p(margin) * (1 + _ROUNDOFF), None, None
    if apart + half <= allowed:
        verdict = Verdict.SAME
    elif apart > max(half, allowed):
        verdict = _verdict(found.change, 0.0, metric)
    else:
        more = found.repeats(margin)
        cause = "repeats would tell" if more else "too noisy for repeats to tell"
        repeats = f"{more} {cause}" if more else cause
        verdict, reason = Verdict.UNKNOWN, f"±{percent(half)}; {repeats}"
    low, high = exp(found.change - half), exp(found.change + half)
    return Judgement(ratio, low, high, verdict, reason, found.p, found.num_releases, cause=cause)


def _by_rounding(a: Side, b: Side, metric: str, margin: float) -> Judgement:
    """By the rounding of two printed figures."""
    figure_a, figure_b = a.median(metric) or 1.0, b.median(metric) or 1.0
    change = log(figure_b / figure_a)
    waived = _waived(a, b, metric)
    digits = waived + a.by[metric].half_digit + b.by[metric].half_digit
    samples = sum(side.rounding(metric) for side in (a, b))
    allowed = max(digits, samples, log1p(margin))
    verdict, reason, cause = _verdict(change, allowed, metric), None, None
    if verdict is Verdict.SAME and abs(change) > log1p(margin) * (1 + _ROUNDOFF):
        what = "rounded samples/s" if samples > digits else "the digits printed"
        cause = f"{what} leave it open"
        verdict, reason = Verdict.UNKNOWN, f"{what} leave ±{percent(allowed)} open"
    return Judgement(figure_b / figure_a, None, None, verdict, reason, cause=cause)


def samples_before(a: Side, earlier: Iterable[Side], metric: str) -> list[Sample]:
    """Of earlier releases, the samples of those whose runs show the noise of a side.

    They are measured as it is, and as well, and have no open errors.
    """
    kind = a.by[metric].kind
    return [
        it.usable
        for side in earlier
        if (it := side.by[metric]).usable
        and (it.kind == kind or (it.kind[-1] == kind[-1] and not _not_alike(side, a)))
    ]


def deviation_at_least(sides: Sequence[Side], metric: str) -> float:
    """The standard deviation of a run at the least: by the steps of runs, or by rounding.

    What is rounded is anywhere within half a digit, or half a sample per second, either way.
    """
    errors = (
        hypot(it.by[metric].noise[0], max(it.by[metric].half_digit, it.rounding(metric)) / sqrt(3))
        for it in sides
    )
    variances = [len(it.figures(metric)) * e**2 for it, e in zip(sides, errors, strict=True)]
    return sqrt(fmean(variances)) if variances else 0.0


def _not_of_both(a: Side, b: Side, metric: str) -> str:
    """Which figures both have instead, or else each."""
    ours, theirs = (
        [one.title for one in METRICS.values() if side.median(one.name) is not None]
        for side in (a, b)
    )
    if not ours or not theirs:
        which = "either" if ours == theirs else "A" if not ours else "B"
        return f"no figure of {which}"
    if shared := [title for title in ours if title in theirs]:
        return f"not both have {METRICS[metric].title}, but both have {', '.join(shared)}"
    return f"no figure that both state ({', '.join(ours)}; {', '.join(theirs)})"


def _verdict(change: float, tolerance: float, metric: str) -> Verdict:
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


def _not_alike(a: Side, b: Side) -> str | None:
    """Why two sides were not measured alike; None where they were.

    Steps of another part of a run are faster or slower for that alone, on one side too.
    """
    if a.origin != b.origin:
        return f"one is {a.origin}, the other {b.origin}"
    if a.origin == Origin.MEASURED and len(a.windows | b.windows) > 1:
        return f"windows differ: {text(a.window)} / {text(b.window)}"
    return None


def _restated(a: Side, b: Side, metric: str) -> "tuple[Restated, Side] | None":
    """B as A counts FLOPs, with the digits that it had; None where no formula tells.

    The figures of both must be those of their conventions: what is left between the counts is
    rounding.
    """
    from perfdb.audit import restated  # noqa: PLC0415  few comparisons need it

    to, _ = restated.counted_alone(a.shown)
    counted, note = restated.counted_alone(b.shown)
    found = restated.restate(b.shown, counted, to, note) if to else None
    value = found and (found.mfu if metric == MFU else found.tflops_per_sec_per_gpu)
    stated_figure = usable(b.shown, metric)
    if not found or not value or not stated_figure:
        return None
    side = b.with_flops(value / stated_figure, a.shown.flops_convention)
    return None if _no_measure(a, side, metric) else (found, side)


def _no_measure(a: Side, b: Side, metric: str) -> str | None:
    """Why two figures that count FLOPs are no measure of each other; None where they are."""
    if metric not in CONVENTION_BOUND:
        return None
    conventions = a.shown.flops_convention, b.shown.flops_convention
    if None not in conventions and len(set(conventions)) > 1:
        return f"FLOPs conventions differ: {conventions[0]} / {conventions[1]}"
    counts = gflop_per_token_apart(a, b)
    return f"GFLOP per token differ: {' / '.join(map(significant, counts))}" if counts else None


def gflop_per_token_apart(a: Side, b: Side) -> tuple[float, float] | None:
    """The GFLOP per token that two sides of the same work count; None where they may agree.

    By TFLOP/s ÷ tokens/s, which may follow from the rate of all GPUs or the step time, with the
    rounding of the four figures, and within a tenth of a per cent whatever their digits.
    """
    one, other = _gflop_per_token(a), _gflop_per_token(b)
    if not one or not other:
        return None
    allowed = max(one[1] + other[1], _SAME_COUNT) + _ROUNDOFF
    return (one[0], other[0]) if abs(other[0] / one[0] - 1) > allowed else None


def _waived(a: Side, b: Side, metric: str) -> float:
    """The share by which counts of FLOPs that are taken for the same differ beyond rounding."""
    if metric not in CONVENTION_BOUND:
        return 0.0
    one, other = _gflop_per_token(a), _gflop_per_token(b)
    if not one or not other:
        return 0.0
    apart = abs(other[0] / one[0] - 1)
    return apart if apart > one[1] + other[1] + _ROUNDOFF else 0.0


def _gflop_per_token(side: Side) -> tuple[float, float] | None:
    """What a side counts, and the share of it that rounding leaves open."""
    result = side.shown
    known = {name: value for name in (*_RATES, _TFLOPS) if (value := usable(result, name))}
    nothing: dict[str, float | None] = dict.fromkeys(_RATES)
    tokens = stated.figure(replace(result, **(nothing | known)), RATE)  # type: ignore[arg-type]
    if tokens is None or _TFLOPS not in known:
        return None
    rate = next(iter(known))
    of_rate = half_unit(known[rate], rate, result.printed.get(rate)) / known[rate]
    flops = usable((side.stated or side).shown, _TFLOPS) or known[_TFLOPS]
    of_flops = half_unit(flops, _TFLOPS, result.printed.get(_TFLOPS)) / flops
    return known[_TFLOPS] * 1e3 / tokens, max(of_rate, side.rounding(rate)) + of_flops
