"""Where a series of releases, or of nightly runs, moved to another level. Pure.

Binary segmentation with a rescue of short excursions, as Olshen et al. (2004), "Circular binary
segmentation", doi:10.1093/biostatistics/kxh008, have it: the best place for one change is tested,
then the best two for a change and its return, then each part. The test is the F of least squares,
once with the variance that the series shows and once with the moderated one of the noise model
(`perfdb.compare.noise`, Smyth 2004). Its chance is multiplied by the number of places there are,
after Bonferroni, and by two for the two tests: of series without a change no more than
`noise.LEVEL` have a change point. Everything here is in logarithms.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import comb, exp, hypot, log1p, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Final

from perfdb.compare import noise
from perfdb.compare.noise import MARGIN, Prior, Sample, moderated
from perfdb.compare.sides import Side
from perfdb.compare.verdict import Terms, group, showing_noise
from perfdb.metrics import METRICS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.signedinteger] | int

FEWEST: Final = 5
"""Fewer points have no change point: the verdicts say what there is to say of them."""
MOST: Final = 1000
"""Of a longer series the newest points are looked at: all pairs of places are tried."""
_TINY: Final = 1e-9
"""The least deviation that divides: figures that do not vary at all differ for sure."""


def found(
    points: Sequence[Sample], prior: Prior, margin: float = MARGIN, least: float = 0.0
) -> dict[int, float]:
    """The change points of releases, the oldest first: from which place on they are at another
    level, and the ratio of the mean after to that before.

    `least` is the standard deviation of a run at the least, as rounding or few steps leave open. A
    change that does not matter, as it is within `margin`, is none.
    """
    skipped = max(0, len(points) - MOST)
    shown = points[skipped:]
    cuts = sorted(_cuts(shown, prior, least))
    while cuts:
        means = [noise.total(shown[a:b]).mean for a, b in _parts(cuts, len(shown))]
        moved = [after - before for before, after in pairwise(means)]
        smallest = min(range(len(moved)), key=lambda place: abs(moved[place]))
        if abs(moved[smallest]) > log1p(margin):
            return {skipped + at: exp(it) for at, it in zip(cuts, moved, strict=True)}
        del cuts[smallest]
    return {}


def of_sides(sides: Sequence[Side], metric: str, terms: Terms) -> dict[int, float]:
    """The change points of a case, by their places among its sides, each with its ratio.

    The sides are in the order of releases. Only those count that can be compared with the last one.
    Of a metric with a tolerance the verdicts say all there is.
    """
    if METRICS[metric].tolerance is not None or len(sides) < FEWEST:
        return {}
    last = sides[-1]
    known = {at: it for at, it in enumerate(showing_noise(last, sides, metric)) if it}
    if len(known) < FEWEST:
        return {}
    kept = [*known]
    least = _deviation_at_least([sides[place] for place in kept], metric)
    points = found([*known.values()], terms.prior_of(group(last.shown)), terms.margin, least)
    return {kept[place]: ratio for place, ratio in points.items()}


def _deviation_at_least(sides: Sequence[Side], metric: str) -> float:
    """The standard deviation of a run at the least: by the steps of runs, or by rounding.

    What is rounded is anywhere within half a digit, or half a sample per second, either way.
    """
    errors = (
        hypot(it.by[metric].noise[0], max(it.by[metric].half_digit, it.rounding(metric)) / sqrt(3))
        for it in sides
    )
    variances = [len(it.figures(metric)) * e**2 for it, e in zip(sides, errors, strict=True)]
    return sqrt(fmean(variances)) if variances else 0.0


def _parts(cuts: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    yield from zip((0, *cuts), (*cuts, count), strict=True)


def _cuts(points: Sequence[Sample], prior: Prior, least: float) -> list[int]:
    """The places of changes in a part of a series, and in the parts that they leave."""
    if len(points) < FEWEST:
        return []
    cuts = next(
        (
            it
            for it, left, gained in _best(points)
            if _is_sure(points, (prior, least), len(it), left, gained)
        ),
        (),
    )
    made = [*cuts]
    for a, b in _parts(cuts, len(points)) if cuts else ():
        made += [a + cut for cut in _cuts(points[a:b], prior, least)]
    return made


def _best(points: Sequence[Sample]) -> Iterator[tuple[tuple[int, ...], float, float]]:
    """The best place, then the best two: with the squares that they leave, and those they gain."""
    import numpy as np  # noqa: PLC0415  a store with shorter histories needs none

    counts = np.array([it.count for it in points], dtype=float)
    means = np.array([it.mean for it in points])
    means -= means.mean()
    weights, sums = (np.concatenate(([0.0], np.cumsum(it))) for it in (counts, counts * means))
    whole = float((counts * means**2).sum())
    size = len(points)

    def explained(a: "Places", b: "Places") -> "Floats":
        made: Floats = np.square(sums[b] - sums[a]) / (weights[b] - weights[a])
        return made

    every, none = np.arange(1, size), float(explained(0, size))
    one = explained(0, every) + explained(every, size)
    cut = int(one.argmax())
    yield (cut + 1,), whole - float(one[cut]), float(one[cut]) - none
    first, second = np.triu_indices(size - 1, 1)
    first, second = first + 1, second + 1
    two = explained(0, first) + explained(first, second) + explained(second, size)
    pair = int(two.argmax())
    yield (int(first[pair]), int(second[pair])), whole - float(two[pair]), float(two[pair]) - none


def _is_sure(
    points: Sequence[Sample], known: tuple[Prior, float], changes: int, left: float, gained: float
) -> bool:
    """Whether series without a change gain so much, at their best places, in one of a hundred.

    `known` are the prior and the least deviation. The F of the series alone is exact whatever its
    noise is; that of the noise model has to agree, as a few figures may be alike by chance.
    """
    from scipy.special import fdtrc  # noqa: PLC0415

    prior, least = known
    within = left + sum(it.squares for it in points)
    degrees = sum(it.count for it in points) - 1 - changes
    shown = ((sqrt(within / degrees), degrees), moderated(prior, within, degrees))
    chance = max(
        fdtrc(changes, of_all, gained / changes / max(deviation, least, _TINY) ** 2)
        for deviation, of_all in shown
    )
    return bool(2 * comb(len(points) - 1, changes) * chance <= noise.LEVEL)
