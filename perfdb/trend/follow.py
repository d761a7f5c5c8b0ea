"""From results to series: the same work, release after release. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise, takewhile

from perfdb.compare import Choice, Level, Side, Verdict, metric_for
from perfdb.compare.match import differences, goodness
from perfdb.compare.releases import in_order
from perfdb.compare.verdict import judge
from perfdb.groups import grouped
from perfdb.record import Origin
from perfdb.trend.base import Point, Series, Timed, is_apart

OfCase = tuple[str, Origin, str]
"""A case, its origin and a release that has it."""

LONG_AGO = datetime.min.replace(tzinfo=UTC)


def follow(
    results: Iterable[Timed], choices: Sequence[Choice], level: Level, metric: str | None = None
) -> list[Series]:
    """A series for each workload, or each case, and origin, in the order of a comparison's rows.

    `choices` are the releases in their order (`perfdb.compare.read.known_releases`). At the level
    of the workload a release stands with its best configuration. Without `metric` it is
    tokens/s/GPU, or as far as that is unknown the step time or model TFLOP/s/GPU.
    """
    names = in_order(choices)
    place = {release_id: place for place, release_id in enumerate(names)}
    ordered = sorted(results, key=lambda one: (is_apart(one), place[one.release_id]))
    groups = grouped(ordered, _same(level)).values()
    return sorted((_series(one, names, level, metric) for one in groups), key=_order)


def _order(one: Series) -> tuple[object, ...]:
    it = one.shown
    return (*it.work_order, it.framework, one.level.value, *it.layout_order, it.origin)


def follow_each(
    results: Sequence[Timed], choices: Sequence[Choice], metric: str | None = None
) -> list[Series]:
    """A series for each case, and for each workload whose best configuration has changed."""
    of_work = follow(results, choices, Level.WORKLOAD, metric)
    retuned = [one for one in of_work if len({it.side.shown.case_key for it in one.points}) > 1]
    return sorted([*retuned, *follow(results, choices, Level.CONFIGURATION, metric)], key=_order)


def noted_missing(
    found: Sequence[Series], versions: Mapping[tuple[str, Origin], Sequence[str]]
) -> list[Series]:
    """The series, each with the newest release that lacks it, or that another took its place.

    `versions` are those of each framework and origin in their order (`perfdb.trend.read.versions`).
    What never finished is not missed, nor a case that was the best of its work until a new or a
    faster one took its place: the series of the work tells what became of it.
    """
    ran = {(point.side.shown.system, point.release) for one in found for point in one.points}
    there = {
        _of_case(point) for one in found if one.level is not Level.WORKLOAD for point in one.points
    }
    retuned = {
        _of_case(before)
        for one in found
        if one.level is Level.WORKLOAD
        for before, after in pairwise(one.releases)
        if (after.side.shown.case_key, after.side.origin, before.release) not in there
        or after.verdict is Verdict.FASTER
    }
    return [
        replace(one, gave_way=True)
        if one.level is Level.CONFIGURATION and retuned & set(map(_of_case, one.releases[-1:]))
        else replace(one, missing_in=next(_lacking(one, versions, ran), None))
        for one in found
    ]


def _of_case(point: Point) -> OfCase:
    return point.side.shown.case_key, point.side.origin, point.release


def _lacking(
    one: Series,
    versions: Mapping[tuple[str, Origin], Sequence[str]],
    ran: Collection[tuple[str, str]],
) -> Iterator[str]:
    """The releases since its last one, which lack it, the newest first.

    Another container of the same version counts only if it has results on the same system: it may
    be for another processor.
    """
    if not any(point.side.finished for point in one.releases):
        return
    it, last = one.shown, one.releases[-1].release
    newest_first = reversed(versions.get((it.framework, it.origin), ()))
    for name in takewhile(lambda name: name != last, newest_first):
        if name.partition(" [")[0] != last.partition(" [")[0] or (it.system, name) in ran:
            yield name


def _same(level: Level) -> Callable[[Timed], tuple[str, Origin]]:
    if level is Level.CONFIGURATION:
        return lambda result: (result.case_key, result.origin)
    return lambda result: (result.workload_key, result.origin)


def _series(
    results: Sequence[Timed], names: Mapping[int, str], level: Level, asked: str | None
) -> Series:
    sides = [Side((result,)) for result in results]
    metric = metric_for(sides, sides, asked)
    by_release = grouped(results, lambda one: names[one.release_id])
    return Series(level, metric, tuple(_points(by_release, metric)))


def _points(by_release: Mapping[str, Sequence[Timed]], metric: str) -> Iterator[Point]:
    before: Point | None = None
    for name, results in by_release.items():
        point = _point(before, name, _best(results, metric), metric)
        yield point
        if not point.is_apart and (before is None or point.side.is_usable(metric)):
            before = point


def _point(before: Point | None, name: str, runs: tuple[Timed, ...], metric: str) -> Point:
    side = Side(runs)
    if before is None:
        return Point(side, None, (), runs, None, name)
    changed = differences(before.side.shown, side.shown)
    return Point(side, judge(before.side, side, metric), changed, runs, before.release, name)


def _best(results: Sequence[Timed], metric: str) -> tuple[Timed, ...]:
    """The results of the case with the best figure, the earliest first."""
    cases = grouped(results, lambda result: result.case_key).values()
    best = max(cases, key=lambda runs: goodness(Side(tuple(runs)), metric))
    return tuple(sorted(best, key=_when))


def _when(result: Timed) -> tuple[datetime, int]:
    return (result.started_at or LONG_AGO, result.result_id)
