"""How much runs of the same case differ: the one noise model of every verdict. Pure functions.

The logarithm of a run's median step time varies from run to run by a normal error, whose variance
is another one for each case. The variances of the cases of a store follow a scaled inverse
chi-squared distribution: `d0` degrees of freedom and the prior variance `s0²`. What the runs of a
case show is shrunk towards it: a moderated variance, after Smyth (2004),
doi:10.2202/1544-6115.1027. A new release differs if it lies outside of the prediction interval, by
Student's t, of the releases before it. Everything here is in logarithms: 0.01 is 1 %.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import accumulate, chain
from itertools import count as naturals
from math import exp, inf, log, pi, sqrt
from operator import add
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.signedinteger]

LEVEL: Final = 0.01
"""The share of unchanged cases that may be called changed, and one minus the level of intervals."""
FALSE_DISCOVERIES: Final = 0.05
"""The share of a page's verdicts of a change that may be false, after Benjamini and Hochberg."""
FALSE_DISCOVERIES_OF_GATE: Final = 0.01
"""The same where it closes a gate: of pages without a change so many close one."""
MARGIN: Final = 0.01
"""The change, as a fraction, that does not matter, unless another is asked for."""

BASELINE: Final = 5
"""A release is compared with the mean of so many releases without a change between them."""
FEWEST_CASES: Final = 20
"""From so many cases on with runs that show a variance, the prior is estimated from them."""
MOST_REPEATS: Final = 20
"""How many repeats are worth proposing."""
_MOST_DEGREES: Final = 8.0
"""Of a prior: pairs of repeats show so little of how cases differ that the estimate is often
infinite, which takes all for equally noisy. `benchmarks/compare_power.py` has what it costs."""
_CLIPPED: Final = 3
"""How often the prior is estimated, each time without the differences that the last calls changes.
"""
_WIDEST: Final = 300.0
"""Half of the widest interval: exp() of more than twice that is no float."""
_MEDIAN_TO_MEAN: Final = sqrt(pi / 2)


@dataclass(frozen=True)
class Prior:
    """What is known of the noise of a case before its runs are seen.

    `ceiling`: the largest standard deviation that was found at all, unless runs show a larger.
    """

    degrees: float
    variance: float
    ceiling: float = inf


MLPERF: Final = Prior(2.0, 0.00166**2, ceiling=0.0087)
"""The prior of a store that shows too little itself.

The public logs of MLPerf Training v4.1 and v5.0 have 69 configurations with three or more runs, 581
runs of 17 submitters. Their coefficients of variation have a median of 0.19 %, a 90th percentile of
0.5 % and a maximum of 0.87 %. Sample variances of 581 / 69 − 1 = 7.4 degrees of freedom are
s0² F(7.4, d0), whose quantiles F(0.9) / F(0.5) = (0.5 / 0.19)² at d0 = 2.0; s0 = 0.19 % / √F(0.5).
"""


class Sample(NamedTuple):
    """Logarithms of figures by their number, mean, and sum of squares about that mean."""

    count: int  # type: ignore[assignment]  # of a tuple it is a method
    mean: float
    squares: float = 0.0

    def __add__(self, other: "Sample") -> "Sample":  # type: ignore[override]  # no longer tuple
        """Both as one sample."""
        (count_1, mean_1, squares_1), (count_2, mean_2, squares_2) = self, other
        count, apart = count_1 + count_2, mean_2 - mean_1
        between = apart * apart * count_1 * count_2 / count
        return Sample(count, mean_1 + apart * count_2 / count, squares_1 + squares_2 + between)


def sample(figures: Sequence[float]) -> Sample:
    """The sample of positive figures."""
    if len(figures) == 1:
        return Sample(1, log(figures[0]))
    known = [log(figure) for figure in figures]
    mean = sum(known) / len(known)
    return Sample(len(known), mean, sum((one - mean) ** 2 for one in known))


class Question(NamedTuple):
    """Whether a new release is as those before it: the first `num_before` of `releases`.

    They are in the order of time, and one list may serve many questions. `least`: the standard
    error of the change at the least, as a median of few steps is no sharper than these show.
    """

    releases: Sequence[Sample]
    num_before: int
    new: Sample
    least: float = 0.0


class Prediction(NamedTuple):
    """A new release against its baseline.

    `change`: the logarithm of new over baseline; `p`: how often one without a change is as far off;
    `half`: half of the prediction interval of 1 − `LEVEL`.
    """

    change: float
    error: float
    degrees: float
    p: float
    half: float
    num_releases: int
    num_runs: tuple[int, int]

    def no_sharper(self, least: float) -> "Prediction":
        """The same with half an interval of so much at the least."""
        return self._replace(half=min(max(self.half, least), _WIDEST))

    def repeats(self, margin: float) -> int | None:
        """How many runs of both releases would tell, as far as it can be known; None: too many."""
        of_base, of_new = (1 / count for count in self.num_runs)
        deviation = self.error / sqrt(of_base + of_new)
        apart = abs(self.change)
        enough = apart if apart > margin else max(margin - apart, margin / 2)
        times = quantile(inf, LEVEL) * deviation / enough if enough else 0.0
        fewest = int(min(2 * times * times, MOST_REPEATS + 1))  # if the noise were known for sure
        for count in range(max(2, fewest), MOST_REPEATS + 1):
            degrees = self.degrees + 2 * count - sum(self.num_runs)
            if degrees > 0 and quantile(degrees, LEVEL) * deviation * sqrt(2 / count) <= enough:
                return max(count, *self.num_runs)
        return None


def predicted(asked: Sequence[Question], prior: Prior = MLPERF) -> list[Prediction]:
    """New releases against the releases before them."""
    import numpy as np  # noqa: PLC0415  a listing of releases needs none

    lists = {id(it.releases): it.releases for it in asked}
    starts = dict(zip(lists, accumulate(map(len, lists.values()), initial=0), strict=False))
    first = np.array([starts[id(it.releases)] for it in asked])
    found = forecast(
        columns([one for releases in lists.values() for one in releases]),
        (first, first + [it.num_before - 1 for it in asked]),
        columns([it.new for it in asked]),
        np.array([it.least for it in asked]),
        prior,
    )
    *known, held, new = (it.tolist() for it in found)
    return list(map(Prediction, *known, zip(held, new, strict=True)))


def columns(samples: Sequence[Sample]) -> "list[Floats]":
    """The counts, means and squares of samples."""
    import numpy as np  # noqa: PLC0415

    flat: Iterator[float] = chain.from_iterable(samples)
    return list(np.fromiter(flat, float, 3 * len(samples)).reshape(-1, 3).T)


def forecast(
    every: "Sequence[Floats]",
    between: "tuple[Places, Places]",
    new: "Sequence[Floats]",
    least: "Floats",
    prior: Prior,
) -> "tuple[NDArray[Any], ...]":
    """The fields of `Prediction`, each of many new releases.

    The baseline are those before it since the last change: their runs show the variance, and the
    mean of the `BASELINE` newest is held against the new one. `every` are the columns of all lists
    of releases, and `between` the first and the last place of each one's list in them.
    """
    import numpy as np  # noqa: PLC0415

    base_count, base_squares, held_count, held_mean, num_releases = _baselines(
        every, between, prior
    )
    new_count, new_mean, new_squares = new
    squares, degrees = base_squares + new_squares, base_count + new_count - 2
    of_all = prior.degrees + degrees
    deviation = np.sqrt((prior.degrees * prior.variance + squares) / of_all)
    repeats = np.sqrt(1 / held_count + 1 / new_count)
    error, change = deviation * repeats, new_mean - held_mean
    with np.errstate(divide="ignore", invalid="ignore"):  # each is asked where it divides
        p = np.where(error > 0, two_sided(change / error, of_all), change == 0)
        of_least = np.where(least > 0, two_sided(change / least), 0.0)
        worst = np.where(degrees > 0, np.sqrt(squares / degrees), 0.0)
    if prior.ceiling < inf:
        is_usual = np.maximum(worst, least / repeats) <= prior.ceiling
        of_worst = two_sided(change / (prior.ceiling * repeats))
        p = np.where(is_usual, np.minimum(p, of_worst), p)
    is_blunt = (least > error) | (prior.ceiling < inf)  # else Student's t is the wider one
    p = np.where(is_blunt, np.maximum(p, of_least), p)
    by_t = _quantiles(prior.degrees, degrees, LEVEL) * error
    half = np.minimum(np.maximum(by_t, quantile(inf, LEVEL) * least), _WIDEST)
    runs = held_count.astype(int), new_count.astype(int)
    return change, error, of_all, p, half, num_releases, *runs


def _quantiles(of_prior: float, degrees: "Floats", level: float) -> "Floats":
    """The quantile of each of many degrees of freedom, most of which are the same."""
    import numpy as np  # noqa: PLC0415

    which = degrees.astype(int)
    found: Floats = np.zeros(which.max(initial=0) + 1)
    for it in np.flatnonzero(np.bincount(which)).tolist():
        found[it] = quantile(of_prior + it, level)
    of_each: Floats = found[which]
    return of_each


def _baselines(
    every: "Sequence[Floats]", between: "tuple[Places, Places]", prior: Prior
) -> "Iterator[NDArray[Any]]":
    """The releases before each new one, the newest first, as far as each fits to those after it.

    The k-th is asked at `LEVEL` / k, as else each of many would end one baseline in a hundred.
    The count and the squares of their runs, the count and mean of the `BASELINE` newest, and how
    many releases they are.
    """
    import numpy as np  # noqa: PLC0415

    first, at = between[0], between[1].copy()
    counts, means, squares = (column[at] for column in every)
    held_counts, held_means, num_releases = counts.copy(), means.copy(), np.ones_like(at)
    rest: NDArray[Any] = np.arange(len(at))
    for place in naturals(2):
        rest = rest[at[rest] > first[rest]]
        if not rest.size:
            break
        at[rest] -= 1
        others, other, more = (column[at[rest]] for column in every)
        count, mean = counts[rest], means[rest]
        total, apart = count + others, other - mean
        far, within = apart * apart, squares[rest] + more
        # |apart| > quantile × moderated deviation × √(1/count + 1/others), squared
        limit = _quantiles(prior.degrees, total - 2, LEVEL / (place - 1)) ** 2
        limit *= (prior.degrees * prior.variance + within) / (prior.degrees + total - 2) * total
        fits = far * count * others <= limit
        added = total, mean + apart * others / total, within + far * count * others / total
        rest, *kept = (it[fits] for it in (rest, *added))
        counts[rest], means[rest], squares[rest] = kept
        num_releases[rest] = place
        if place <= BASELINE:
            held_counts[rest], held_means[rest], _ = kept
    yield from (counts, squares, held_counts, held_means, num_releases)


def moderated(prior: Prior, squares: float, degrees: int) -> tuple[float, float]:
    """The standard deviation of a run, of a sum of squares and the prior, and its degrees."""
    of_all = prior.degrees + degrees
    return sqrt((prior.degrees * prior.variance + squares) / of_all), of_all


def half_of(runs: Sample, prior: Prior, least: float) -> float:
    """Half of the interval of 1 − `LEVEL` of the mean of runs alone."""
    deviation, degrees = moderated(prior, runs.squares, runs.count - 1)
    of_runs = quantile(degrees, LEVEL) * deviation / sqrt(runs.count)
    return min(max(of_runs, quantile(inf, LEVEL) * least), _WIDEST)


def total(samples: Iterable[Sample]) -> Sample:
    """Samples as one."""
    return reduce(add, samples)


def of_steps(relative: float, count: int) -> float:
    """The standard error of a run's median step time, by how far its steps are apart.

    A median of normal figures is √(π/2) less sharp than their mean, and steps follow one another:
    at an autocorrelation of 0.5, n of them are worth n/3.
    """
    return _MEDIAN_TO_MEAN * relative * sqrt(3 / count)


def adjusted(chances: Sequence[float]) -> list[float]:
    """The least false discovery rate at which each of several p values is a discovery.

    Benjamini and Hochberg (1995), doi:10.1111/j.2517-6161.1995.tb02031.x. This is
    `scipy.stats.false_discovery_control`, which takes a second to import.
    """
    import numpy as np  # noqa: PLC0415

    order = np.argsort(chances)[::-1]
    ranks = np.arange(len(chances), 0, -1)
    found = np.ones(len(chances))
    found[order] = np.minimum.accumulate(np.array(chances)[order] * len(chances) / ranks)
    return np.minimum(found, 1.0).tolist()  # type: ignore[no-any-return]


def prior_of(cases: Iterable[Sequence[Sample]]) -> Prior:
    """The prior of cases by their releases in order; `MLPERF` where too few show a variance.

    Repeats of a release show it, and so do releases that follow one another without a change. What
    the estimate itself calls a change is left out, and it is estimated anew.
    """
    known = [one for one in cases if len(one) > 1 or one[0].count > 1]
    if len(known) < FEWEST_CASES:
        return MLPERF
    prior, cut = MLPERF, 5 * MLPERF.ceiling * sqrt(2)
    every, sizes = columns([one for releases in known for one in releases]), [*map(len, known)]
    for _ in range(_CLIPPED):
        shown = _variances(every, sizes, cut)
        if len(shown) < FEWEST_CASES:
            return MLPERF
        prior = fitted(shown)
        cut = quantile(prior.degrees, LEVEL) * sqrt(2 * prior.variance)
    return prior


def _variances(
    every: "Sequence[Floats]", sizes: Sequence[int], cut: float
) -> list[tuple[float, float]]:
    """The variances of cases that show one, and their degrees of freedom.

    Differences beyond `cut` are changes. `every` are the columns of the releases of all cases.
    """
    import numpy as np  # noqa: PLC0415

    ends = np.cumsum(sizes)
    at = ends - sizes
    count, mean, within = (column[at] for column in every)
    squares, degrees, rest = np.zeros(len(at)), np.zeros(len(at)), np.arange(len(at))
    while (rest := rest[at[rest] + 1 < ends[rest]]).size:
        at[rest] += 1
        others, other, more = (column[at[rest]] for column in every)
        n, apart = count[rest], other - mean[rest]
        far, total = apart * apart, n + others
        moved = far > cut * cut / 2 * (1 / others + 1 / n)
        squares[rest] += np.where(moved, within[rest], 0.0)
        degrees[rest] += np.where(moved, n - 1, 0.0)
        mean[rest] = np.where(moved, other, mean[rest] + apart * others / total)
        within[rest] = np.where(moved, more, within[rest] + (more + far * n * others / total))
        count[rest] = np.where(moved, others, total)
    squares, degrees = squares + within, degrees + count - 1
    is_shown = degrees > 0
    squares, degrees = squares[is_shown], degrees[is_shown]
    return list(zip((squares / degrees).tolist(), degrees.tolist(), strict=True))


def fitted(variances: Sequence[tuple[float, float]]) -> Prior:
    """The prior by the moments of log variances, each with its degrees of freedom.

    Smyth (2004), section 6.2, as `fitFDist` of the R package limma has it.
    """
    known = sorted(variance for variance, _ in variances)
    least = 1e-5 * known[len(known) // 2] or 1e-12
    logs = [
        log(max(variance, least)) - digamma(degrees / 2) + log(degrees / 2)
        for variance, degrees in variances
    ]
    mean = sum(logs) / len(logs)
    spread = sum((one - mean) ** 2 for one in logs) / (len(logs) - 1)
    spread -= sum(trigamma(degrees / 2) for _, degrees in variances) / len(logs)
    half = min(inverse_trigamma(spread), _MOST_DEGREES / 2) if spread > 0 else _MOST_DEGREES / 2
    return Prior(2 * half, exp(mean + digamma(half) - log(half)))


@cache
def _special() -> ModuleType:
    from scipy import special  # noqa: PLC0415  importing it takes longer than most comparisons

    found: ModuleType = special
    return found


def two_sided(t: Any, degrees: Any = None) -> Any:
    """The chance that Student's t is as far from zero or farther; without degrees, normal.

    Of numbers or of arrays of them.
    """
    far = -abs(t)
    return 2 * (_special().ndtr(far) if degrees is None else _special().stdtr(degrees, far))


@cache
def quantile(degrees: float, level: float) -> float:
    """The t beyond which, on both sides together, `level` of Student's distribution lies."""
    special, below = _special(), 1 - level / 2
    return float(special.ndtri(below) if degrees == inf else special.stdtrit(degrees, below))


@cache
def digamma(x: float) -> float:
    """The derivative of the logarithm of the gamma function."""
    return float(_special().psi(x))


@cache
def trigamma(x: float) -> float:
    """The derivative of `digamma`."""
    return float(_special().polygamma(1, x))


def inverse_trigamma(value: float) -> float:
    """The x at which the trigamma function has a positive value, by Newton's method.

    On its inverse, which is nearly linear, as `trigammaInverse` of the R package limma has it.
    """
    found = 0.5 + 1 / value
    for _ in range(50):
        now = trigamma(found)
        step = now * (1 - now / value) / float(_special().polygamma(2, found))
        found += step
        if abs(step) < 1e-8 * found:
            break
    return found
