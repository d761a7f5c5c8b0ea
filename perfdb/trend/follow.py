"""From results to series: the same work, release after release. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from perfdb.compare import Choice, Level, Side, metric_for, order
from perfdb.compare.match import differences, goodness
from perfdb.compare.verdict import judge
from perfdb.record import Origin
from perfdb.trend.base import Point, Series, Timed, is_apart

LONG_AGO = datetime.min.replace(tzinfo=UTC)


def follow(
    results: Iterable[Timed], choices: Sequence[Choice], level: Level, metric: str | None = None
) -> list[Series]:
    """A series for each workload, or each case, and origin, in the order of a comparison's rows.

    `choices` are the releases in their order (`perfdb.compare.read.known_releases`). At the level
    of the workload a release stands with its best configuration. Without `metric` it is
    tokens/s/GPU, or as far as that is unknown model TFLOP/s/GPU or the step time.
    """
    found = [_series(group, choices, level, metric) for group in _grouped(results, _same(level))]
    return sorted(found, key=_order)


def _order(one: Series) -> tuple[object, ...]:
    return (*order.of_work(one.shown), one.shown.framework, one.shown.case_key, one.shown.origin)


def noted_missing(series: Series, versions: Mapping[tuple[str, Origin], Sequence[str]]) -> Series:
    """The same, with the newest release where the one before it has this and it has not.

    `versions` are those of each framework and origin in their order (`perfdb.trend.read.versions`).
    """
    last_two = versions.get((series.shown.framework, series.shown.origin), ())[-2:]
    there = {point.release for point in series.points}
    if len(last_two) == 2 and last_two[0] in there and last_two[1] not in there:
        return replace(series, missing_in=last_two[1])
    return series


def _same(level: Level) -> Callable[[Timed], tuple[str, Origin]]:
    if level is Level.CONFIGURATION:
        return lambda result: (result.case_key, result.origin)
    return lambda result: (result.workload_key, result.origin)


def _grouped(
    results: Iterable[Timed], key: Callable[[Timed], object]
) -> Iterable[tuple[Timed, ...]]:
    groups: dict[object, list[Timed]] = defaultdict(list)
    for result in results:
        groups[key(result)].append(result)
    return [tuple(group) for group in groups.values()]


def _series(
    results: Sequence[Timed], choices: Sequence[Choice], level: Level, asked: str | None
) -> Series:
    sides = [Side((result,)) for result in results]
    metric = metric_for(sides, sides, asked)
    return Series(level, metric, tuple(_points(_by_release(results, choices), metric)))


def _by_release(results: Sequence[Timed], choices: Sequence[Choice]) -> list[Sequence[Timed]]:
    """The results of each version, whatever its container, in the order of releases.

    Last come those that have no place in it.
    """
    name_of: dict[int, str] = {}
    for choice in choices:
        for number in choice.release_ids:
            name_of.setdefault(number, choice.name)
    groups: dict[str, list[Timed]] = {name: [] for name in name_of.values()}
    for result in results:
        groups[name_of[result.release_id]].append(result)
    return sorted(filter(None, groups.values()), key=lambda group: is_apart(group[0]))


def _points(by_release: Iterable[Sequence[Timed]], metric: str) -> Iterator[Point]:
    before: Point | None = None
    for results in by_release:
        point = _point(before, _best(results, metric), metric)
        yield point
        if not point.is_apart and (before is None or point.side.is_usable(metric)):
            before = point


def _point(before: Point | None, runs: tuple[Timed, ...], metric: str) -> Point:
    side = Side(runs)
    if before is None:
        return Point(side, None, (), runs, None)
    changed = differences(before.side.shown, side.shown)
    return Point(side, judge(before.side, side, metric), changed, runs, before.release)


def _best(results: Sequence[Timed], metric: str) -> tuple[Timed, ...]:
    """The results of the case with the best figure, the earliest first."""
    cases = _grouped(results, lambda result: result.case_key)
    best = max(cases, key=lambda runs: goodness(Side(runs), metric))
    return tuple(sorted(best, key=_when))


def _when(result: Timed) -> tuple[datetime, int]:
    started = result.started_at or LONG_AGO
    return (started if started.tzinfo else started.replace(tzinfo=UTC), result.result_id)
