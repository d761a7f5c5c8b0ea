"""Faster, slower, same or not to be told: the one rule, by the noise model or by rounding."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from math import exp, hypot, inf, isclose, log, log1p
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perfdb.compare import comparability, noise
from perfdb.compare.comparability import ROUNDOFF, not_alike
from perfdb.compare.noise import MARGIN, Prediction, Prior, Question, Sample
from perfdb.compare.sides import Side
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.record import Origin, Outcome, Result
from perfdb.stated import RATE
from perfdb.units import number, percent

if TYPE_CHECKING:
    from perfdb.audit.restated import Restated

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


class Reason(NamedTuple):
    """Why there is no verdict, or how B ended where it failed."""

    words: str | None
    cause: str | None = None
    """The same without the numbers of this pair; None: as `words`."""


class Inconclusive(NamedTuple):
    """What the noise leaves open, which is put into words where it is shown."""

    prediction: Prediction
    margin: float

    @property
    def words(self) -> str:
        """'±9.4%; 4 repeats would tell'."""
        repeats = self.prediction.repeats(self.margin)
        count = "" if repeats is None else f"{repeats} "
        return f"±{percent(self.prediction.half)}; {count}{_whether(repeats)}"

    @property
    def cause(self) -> str:
        """Whether repeats would tell."""
        return _whether(self.prediction.repeats(self.margin))


def _whether(repeats: int | None) -> str:
    return "too noisy for repeats to tell" if repeats is None else "repeats would tell"


class Judgement(NamedTuple):
    """B over A: the ratio, its 99 % interval, and the verdict. None: unknown.

    The interval is of B over the baseline, up to five releases that A is the last of;
    `num_baseline` are the releases whose runs show the noise.
    `rate`: the least false discovery rate, over all that was judged together, at which it is a
    change; None: no chance is in it, as of printed figures.
    """

    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    why: Reason | Inconclusive | None = None
    rate: float | None = None
    num_baseline: int = 1
    restated: "Restated | None" = None
    """The figures of B as A counts FLOPs, of which the ratio is; None: both count alike."""

    @property
    def reason(self) -> str | None:
        """How B ended, where it failed, and why there is no verdict."""
        return self.why and self.why.words

    @property
    def cause(self) -> str | None:
        """The same without the numbers of this pair; None: as `reason`."""
        return self.why and self.why.cause

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

    def prior_of(self, alike: object) -> Prior:
        """The prior of cases whose noise is alike."""
        return self.priors.get(alike) or self.priors.get(None) or noise.MLPERF


TERMS: Final = Terms()


def group(result: Result) -> tuple[str, str, int]:
    """The cases whose noise is alike: framework, system, and up to 8, 64, 512, … GPUs."""
    return alike(vars(result))


def alike(case: Mapping[str, Any]) -> tuple[str, str, int]:
    """The same, of the fields of a case."""
    scale = max(0, (case["num_gpus"] - 1).bit_length() - 1) // 3
    return case["framework"], case["system"], scale


class Pair(NamedTuple):
    """B against A, by a metric.

    A is the last of the first `place` of `line`: the same case or work in the order of its
    releases, which many pairs may share.
    """

    a: Side
    b: Side
    metric: str
    line: Sequence[Side]
    place: int


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
    line = (*reversed(earlier), a)
    (found,) = judged([Pair(a, b, metric, line, len(line))], terms)
    return found


def judged(pairs: Sequence[Pair], terms: Terms = TERMS) -> list[Judgement]:
    """What `judge` says of each of many pairs: the noise model takes all of them at once."""
    lines: Lines = {}
    found = [_by_figures(it, terms, lines) for it in pairs]
    asked = [(place, it) for place, it in enumerate(found) if isinstance(it, _Asked)]
    of_lines = {id(it.line): it.a.shown for it in pairs}
    groups = {line: group(shown) for line, shown in of_lines.items()}
    for name, some in grouped(asked, lambda it: groups[id(pairs[it[0]].line)]).items():
        predictions = noise.predicted([it.question for _, it in some], terms.prior_of(name))
        for (place, it), one in zip(some, predictions, strict=True):
            found[place] = _by_interval(it, one, pairs[place].metric, terms)
    return [_without_errors(it, one) for it, one in zip(pairs, found, strict=True)]  # type: ignore[arg-type]


def _without_errors(pair: Pair, judged: Judgement) -> Judgement:
    has_errors = pair.a.shown.has_open_errors or pair.b.shown.has_open_errors
    if not has_errors or judged.verdict is Verdict.FAILED:
        return judged
    why = Reason(judged.reason, "an open error of the audit")
    return judged._replace(verdict=Verdict.NOT_JUDGED, rate=None, why=why)


def controlled(found: Sequence[Judgement], others: Sequence[float] = ()) -> list[Judgement]:
    """Judgements of one page: a change that so many cases show by chance cannot be told.

    Of the changes that are left, no more than `noise.FALSE_DISCOVERIES` are false. `others` are the
    rates of judgements on the same page that are no change.
    """
    rates = [*(one.rate for one in found if one.rate is not None), *others]
    adjusted = iter(noise.adjusted(rates))
    cause = "some differ so much by chance"
    chance = Reason(f"of {len(rates)} compared, {cause}: repeat it", cause)

    def settled(one: Judgement) -> Judgement:
        if one.rate is None:
            return one
        rate, told = next(adjusted), (*CHANGED, Verdict.RECOVERED)
        if rate > noise.FALSE_DISCOVERIES and one.verdict in told:
            one = one._replace(verdict=Verdict.UNKNOWN, why=chance)
        return one._replace(rate=rate)

    return list(map(settled, found))


class _Asked(NamedTuple):
    """A pair whose verdict is by the noise model."""

    ratio: float
    question: Question
    digits: float = 0.0
    """Half of the interval at the least, as no page is sharper than its digits."""
    restated: "Restated | None" = None


def _apart(why: str, ratio: float | None = None) -> Judgement:
    return Judgement(ratio, None, None, Verdict.NOT_COMPARABLE, Reason(why))


def _by_figures(pair: Pair, terms: Terms, lines: "Lines") -> Judgement | _Asked:
    a, b, metric, *_ = pair
    if a.shown.outcome == Outcome.FINISHED != b.shown.outcome:
        return Judgement(None, None, None, Verdict.FAILED, Reason(ENDED[b.shown.outcome]))
    if a.by[metric].sample is None or b.by[metric].sample is None:
        return _apart(comparability.not_of_both(a, b, metric))
    if (tolerance := METRICS[metric].tolerance) is not None:
        return _within_tolerance(a, b, metric, tolerance)
    if reason := comparability.no_measure(a, b, metric):
        if (as_a := comparability.restated(a, b, metric)) is None:
            return _apart(reason, _ratio(a, b, metric))
        it, side = as_a
        return _by_noise(pair._replace(b=side), terms, lines)._replace(restated=it)
    return _by_noise(pair, terms, lines)


def _ratio(a: Side, b: Side, metric: str) -> float:
    return (b.median(metric) or 1.0) / (a.median(metric) or 1.0)


def _by_noise(pair: Pair, terms: Terms, lines: "Lines") -> Judgement | _Asked:
    """By how much figures of the same quantity vary."""
    a, b, metric, *_ = pair
    of_a, of_b, ratio = a.by[metric], b.by[metric], _ratio(a, b, metric)
    if reason := not_alike(a, b):
        return _apart(reason, ratio)
    assert of_b.sample is not None
    is_published = a.origin == Origin.PUBLISHED
    if is_published and len(of_a.figures) == len(of_b.figures) == 1:
        return _by_rounding(a, b, metric, terms.margin)
    (least_a, lacking_a), (least_b, lacking_b) = of_a.noise, of_b.noise
    if reason := lacking_a or lacking_b:
        return Judgement(ratio, None, None, Verdict.UNKNOWN, Reason(reason))
    question = Question(*_before(pair, lines), of_b.sample, hypot(least_a, least_b))
    lone = [it for it in (of_a, of_b) if is_published and len(it.figures) == 1]
    return _Asked(ratio, question, sum(it.half_digit for it in lone))


Lines = dict[tuple[int, object, str], tuple[list[Sample], list[int]]]
"""The samples of a line of sides that show the noise of a kind, and how many are before a place."""


def _before(pair: Pair, lines: Lines) -> tuple[list[Sample], int]:
    """The samples of A and of the releases before it that show its noise, and how many they are."""
    of_a = pair.a.by[pair.metric]
    assert of_a.sample is not None
    if of_a.usable is None:
        *earlier, _ = pair.line[: pair.place]
        known = [*filter(None, showing_noise(pair.a, earlier, pair.metric)), of_a.sample]
        return known, len(known)
    key = id(pair.line), of_a.kind, pair.metric
    if key not in lines:
        fitting = showing_noise(pair.a, pair.line, pair.metric)
        lines[key] = (
            [it for it in fitting if it],
            [*accumulate(int(it is not None) for it in fitting)],
        )
    samples, counts = lines[key]
    return samples, counts[pair.place - 1]


def _within_tolerance(a: Side, b: Side, metric: str, tolerance: float) -> Judgement:
    # Of the larger of two figures, as a logarithm: 99 to 100 is as far as 100 to 99.
    allowed = -log1p(-tolerance)
    ratio = _ratio(a, b, metric)
    if reason := _runs_differ(a, b, metric, allowed):
        return Judgement(ratio, None, None, Verdict.UNKNOWN, Reason(reason, "too noisy to tell"))
    return Judgement(ratio, None, None, by_tolerance(log(ratio), allowed, metric))


def within_margin(change: Any, half: Any, margin: float) -> tuple[Any, Any]:
    """Whether changes are surely within a margin, and whether they surely are none, or beyond it.

    Of logarithms of ratios and half of their prediction intervals: of numbers, or of arrays.
    """
    allowed, apart = log1p(margin) * (1 + ROUNDOFF), abs(change)
    return apart + half <= allowed, (apart > half) & (apart > allowed)


def is_clear(rate: float, ways: int) -> bool:
    """Whether a change is clear though it is the largest of so many, after Bonferroni."""
    return rate * ways <= noise.FALSE_DISCOVERIES_OF_GATE


def _by_interval(it: _Asked, found: Prediction, metric: str, terms: Terms) -> Judgement:
    """By the prediction interval, whose ratio is of the medians that are shown."""
    found = found.no_sharper(it.digits) if it.digits else found
    half, why = found.half, None
    is_same, is_apart = within_margin(found.change, half, terms.margin)
    if is_same:
        verdict = Verdict.SAME
    elif is_apart:
        verdict = by_tolerance(found.change, 0.0, metric)
    else:
        verdict, why = Verdict.UNKNOWN, Inconclusive(found, terms.margin)
    low, high = exp(found.change - half), exp(found.change + half)
    return Judgement(it.ratio, low, high, verdict, why, found.p, found.num_releases, it.restated)


def _by_rounding(a: Side, b: Side, metric: str, margin: float) -> Judgement:
    """By the rounding of two printed figures."""
    ratio = _ratio(a, b, metric)
    change = log(ratio)
    waived = comparability.waived(a, b, metric)
    digits = waived + a.by[metric].half_digit + b.by[metric].half_digit
    samples = sum(side.rounding(metric) for side in (a, b))
    allowed = max(digits, samples, log1p(margin))
    verdict, why = by_tolerance(change, allowed, metric), None
    if verdict is Verdict.SAME and abs(change) > log1p(margin) * (1 + ROUNDOFF):
        what = "rounded samples/s" if samples > digits else "the digits printed"
        verdict = Verdict.UNKNOWN
        why = Reason(f"{what} leave ±{percent(allowed)} open", f"{what} leave it open")
    return Judgement(ratio, None, None, verdict, why)


def showing_noise(a: Side, sides: Sequence[Side], metric: str) -> list[Sample | None]:
    """The sample of each of some releases whose runs show the noise of a side; None of others.

    They are measured as it is, and as well, and have no open errors.
    """
    kind, every = a.by[metric].kind, [side.by[metric] for side in sides]
    return [
        it.usable
        if it.kind == kind or (it.kind[-1] == kind[-1] and not not_alike(side, a))
        else None
        for side, it in zip(sides, every, strict=True)
    ]


def by_tolerance(change: float, tolerance: float, metric: str) -> Verdict:
    """Faster or slower where the logarithm of a ratio is beyond a tolerance, else the same."""
    if abs(change) <= tolerance * (1 + ROUNDOFF):  # 9.30 and 9.20 differ by 0.1 and roundoff
        return Verdict.SAME
    is_better = (change > 0) is (METRICS[metric].better == "higher")
    return Verdict.FASTER if is_better else Verdict.SLOWER


def _runs_differ(a: Side, b: Side, metric: str, allowed: float) -> str | None:
    """Runs further apart than allowed count only where every pair has the same verdict."""
    ours, theirs = a.figures(metric), b.figures(metric)
    apart = max(max(some) / min(some) for some in (ours, theirs))
    ends = min(theirs) / max(ours), max(theirs) / min(ours)
    verdicts = {by_tolerance(log(end), allowed, metric) for end in ends}
    if log(apart) <= allowed * (1 + ROUNDOFF) or len(verdicts) == 1:
        return None
    return f"too noisy to tell: runs {number((apart - 1) * 100, 1)} % apart"


def best_of(sides: Iterable[Side], metric: str) -> Side | None:
    """The side with the best usable figure; None where none has one."""
    sign = 1 if METRICS[metric].better == "higher" else -1
    usable = [side for side in sides if side.is_usable(metric)]
    return max(usable, key=lambda one: sign * (one.median(metric) or 0.0), default=None)


def recovered(
    found: Sequence[Judgement],
    pairs: Sequence[Pair],
    terms: Terms,
    so_far: Callable[[Pair], Sequence[Side]],
) -> list[Judgement]:
    """Judgements, of which `faster` is `recovered` where B only regains what A had lost.

    That is so if A is slower than the best release so far, and B is about as good as that and no
    better. `so_far` are the sides before B, the newest first.
    """
    made, bests = [*found], {}
    for at, (it, pair) in enumerate(zip(found, pairs, strict=True)):
        best = best_of(so_far(pair), pair.metric) if it.verdict is Verdict.FASTER else None
        if best is not None and best is not pair.a:
            bests[at] = best
    of_best = [
        Pair(best, side, pairs[at].metric, (best,), 1)
        for at, best in bests.items()
        for side in (pairs[at].a, pairs[at].b)
    ]
    against = iter(judged(of_best, terms))
    for at, best in bests.items():
        lost, left = next(against), next(against)
        is_back = lost.verdict is Verdict.SLOWER and left.verdict is not Verdict.FASTER
        if is_back and left.ratio and left.change <= lost.change / 5:
            apart = f"{percent(left.ratio - 1)} against {best.shown.release}"
            why = Reason(f"regained what A had lost: {apart}")
            made[at] = made[at]._replace(verdict=Verdict.RECOVERED, why=why)
    return made


Shown = tuple[object, Sequence[Sample]]
"""A case: the group whose noise is like its own, and its releases in their order."""


def terms_of(cases: Iterable[Shown], margin: float) -> Terms:
    """The noise of groups of cases."""
    groups: dict[object, list[Sequence[Sample]]] = defaultdict(list)
    for name, known in cases:
        groups[name].append(known)
    every = noise.prior_of(one for known in groups.values() for one in known)
    priors: dict[object, Prior] = {None: every}
    for name, some in groups.items():
        if (prior := noise.prior_of(some)) is not noise.MLPERF:
            priors[name] = prior
    return Terms(margin, priors)


def noise_of(series: Iterable[Sequence[Side]]) -> Iterator[Shown]:
    """What the sides of each case, in the order of its releases, show of its noise.

    What has open errors shows none.
    """
    for sides in series:
        parts = grouped(sides, lambda it: (it.origin, it.windows))
        for (origin, _), some in parts.items():
            if origin == Origin.MEASURED and (known := [it for it in map(_sample, some) if it]):
                yield group(some[0].shown), known


def _sample(side: Side) -> Sample | None:
    if side.shown.has_open_errors:
        return None
    figures = side.figures("step_time_s") or side.figures(RATE)
    return noise.sample(figures) if figures else None
