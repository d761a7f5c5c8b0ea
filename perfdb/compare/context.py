"""What the releases before two show of a case: its noise, its baseline, and its best so far."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from perfdb.compare import noise
from perfdb.compare.noise import Prior, Sample
from perfdb.compare.sides import Side, sides_of
from perfdb.compare.verdict import Judgement, Pair, Reason, Terms, Verdict, group, judged
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.record import Origin, Result
from perfdb.stated import RATE
from perfdb.units import percent


class Earlier:
    """The results of the releases before those that are compared, the newest release first."""

    def __init__(self, releases: Sequence[Iterable[Result]] = ()) -> None:
        sides = [side for results in releases for side in sides_of(results)]
        self._by_case = grouped(sides, lambda it: (it.shown.case_key, it.origin))
        self._by_work = grouped(sides, lambda it: (it.shown.workload_key, it.origin))

    def of_case(self, side: Side) -> Sequence[Side]:
        """The same case in each release that has it, the newest first."""
        return self._by_case.get((side.shown.case_key, side.origin), ())

    def of_work(self, side: Side) -> Sequence[Side]:
        """The same work in each release that has it, however it was done, the newest first."""
        return self._by_work.get((side.shown.workload_key, side.origin), ())


def best_of(sides: Iterable[Side], metric: str) -> Side | None:
    """The side with the best usable figure; None where none has one."""
    sign = 1 if METRICS[metric].better == "higher" else -1
    usable = [side for side in sides if side.is_usable(metric)]
    return max(usable, key=lambda one: sign * (one.median(metric) or 0.0), default=None)


def back_from(
    found: Judgement, pair: Pair, terms: Terms, so_far: Sequence[Side] | None = None
) -> Judgement:
    """A judgement of `faster`, which is `recovered` where B only regains what A had lost.

    That is so if A is slower than the best release so far, and B is about as good as that and no
    better. `so_far` are the sides before B, the newest first; without them those of the pair.
    """
    if found.verdict is not Verdict.FASTER:
        return found
    best = best_of(pair.line[: pair.place][::-1] if so_far is None else so_far, pair.metric)
    if best is None or best is pair.a:
        return found
    lost, left = judged(
        [Pair(best, side, pair.metric, (best,), 1) for side in (pair.a, pair.b)], terms
    )
    if lost.verdict is not Verdict.SLOWER or left.verdict is Verdict.FASTER or not left.ratio:
        return found
    if left.change > lost.change / 5:
        return found
    said = f"regained what A had lost: {percent(left.ratio - 1)} against {best.shown.release}"
    return found._replace(verdict=Verdict.RECOVERED, why=Reason(said))


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
    figures = side.comparable_figures("step_time_s") or side.comparable_figures(RATE)
    return noise.sample(figures) if figures else None
