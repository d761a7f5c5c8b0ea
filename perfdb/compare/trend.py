"""Follow the figures of the same work over releases and runs, and find where they got worse."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise, takewhile
from typing import NamedTuple, Self

from perfdb.compare.change_points import of_sides
from perfdb.compare.match import Differences, Level, differences, goodness, metric_for
from perfdb.compare.releases import Choice, in_order
from perfdb.compare.sides import (
    Side,
    figures_of,
    layout_order,
    rounding_pages,
    side_of,
    work_order,
)
from perfdb.compare.unchanged import NONE_LEFT_OUT, UnchangedCases
from perfdb.compare.verdict import (
    CHANGED,
    OPEN,
    Judgement,
    Pair,
    Terms,
    Verdict,
    best_of,
    controlled,
    is_clear,
    judge,
    judged,
    noise_of,
    recovered,
    terms_of,
)
from perfdb.groups import grouped
from perfdb.record import Origin, Result
from perfdb.versions import is_numbered

LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Point(NamedTuple):
    """The figure of a release, and its change since the one before that has one without errors.

    `release` is its version, '25.04', with its '[CONTAINER]' where the version has several.
    `judgement`, `before` and its name `against` are None for the first one. `is_apart`: it has no
    place in the order of releases, as it is a rolling branch, or not stated. The runs of `side` are
    in the order of time (logs, of unknown times, as they were ingested).
    """

    release: str
    side: Side
    judgement: Judgement | None
    before: Side | None
    against: str | None
    is_apart: bool

    @property
    def differences(self) -> Differences:
        """The fields of the configuration that changed since the release before."""
        return differences(self.before.shown, self.side.shown) if self.before else {}

    @property
    def verdict(self) -> Verdict | None:
        """Its verdict; None for the first release."""
        return self.judgement.verdict if self.judgement else None

    @property
    def reason_unknown(self) -> str | None:
        """Why there is no verdict though both releases have figures; None where there is one."""
        judged = self.judgement
        return judged.reason if judged and self.verdict in OPEN else None

    @property
    def is_judged(self) -> bool:
        """Whether no open error, of its own or of the release before, is in the way."""
        if self.judgement is None:
            return not self.side.shown.has_open_errors
        return self.verdict is not Verdict.NOT_JUDGED


@dataclass(frozen=True)
class Decline:
    """The newest release is slower than the best of the earlier ones."""

    best: Point
    newest: Point
    judgement: Judgement


@dataclass(frozen=True)
class Series:
    """The same work over releases, all measured or all published, by one metric.

    `level` says whether each release has its best configuration or the same one. The points are
    the releases in their order, then those that have no place in it, each compared with the newest
    release. `missing_in` is the newest release, if it lacks this and an earlier one has it.
    `gave_way`: another configuration has taken its place; the series of the work continues it, and
    no release of this one can make up for anything.
    """

    level: Level
    metric: str
    points: tuple[Point, ...]
    terms: Terms
    num_series: int
    """How many are followed with it, each of which may be the one that differs by chance."""
    of_best: tuple[int, Judgement] | None = None
    """The last of `usable` against the best of the others, behind that one's place."""
    missing_in: str | None = None
    gave_way: bool = False

    @property
    def shown(self) -> Result:
        """The result of its last point."""
        return self.points[-1].side.shown

    @cached_property
    def extent(self) -> tuple[float, float]:
        """The lowest and the highest figure of all runs; zeros where none has one."""
        runs = (run for point in self.points for run in point.side.results)
        every = figures_of(runs, self.metric)
        return min(every, default=0.0), max(every, default=0.0)

    @cached_property
    def releases(self) -> tuple[Point, ...]:
        """The points that follow one another."""
        return tuple(point for point in self.points if not point.is_apart)

    @cached_property
    def newest(self) -> tuple[Point, ...]:
        """The last release, and what is compared with that."""
        last = () if self.gave_way else self.releases[-1:]
        apart = self.points if len(self.points) > len(self.releases) else ()
        return (*last, *(point for point in apart if point.is_apart))

    @property
    def _open(self) -> tuple[Point, ...]:
        """The points on which a gate can close."""
        return self.newest if self.gave_way else self.points

    @property
    def regression(self) -> Point | None:
        """The first release that is slower than the one before it; None: none is.

        One that no later release has made up for comes before those that are made up for.
        """
        return next(iter([*self._standing, *self._slower]), None)

    @property
    def recovered(self) -> bool:
        """Whether the last release is no longer slower than the one before the regression."""
        return self.regression is not None and not self._standing

    @cached_property
    def _slower(self) -> list[Point]:
        return [one for one in self.releases if one.verdict is Verdict.SLOWER]

    @cached_property
    def _standing(self) -> list[Point]:
        return [one for one in self._slower if not self._is_made_up_for(one)]

    def _is_made_up_for(self, slower: Point) -> bool:
        """Whether the last release is faster than it, for sure, and not slower than before it."""
        since = self._since(slower).verdict
        if since in (Verdict.SAME, Verdict.FASTER):
            return True
        gained = self._judge(slower, self.usable[-1]).verdict
        return gained is Verdict.FASTER and since is Verdict.UNKNOWN

    def _since(self, slower: Point) -> Judgement:
        """The last release against the one before a regression."""
        return self._judge(self._before(slower), self.usable[-1])

    def _judge(self, before: Point, after: Point) -> Judgement:
        """One release against another, whatever lies between."""
        earlier = [point.side for point in self.usable[: self.usable.index(before)][::-1]]
        return judge(before.side, after.side, self.metric, earlier, self.terms)

    def _before(self, slower: Point) -> Point:
        return self.usable[self.usable.index(slower) - 1]

    @cached_property
    def usable(self) -> tuple[Point, ...]:
        """The releases that another one can be compared with."""
        return tuple([it for it in self.releases if it.side.is_usable(self.metric)])

    @cached_property
    def change_points(self) -> Mapping[str, float]:
        """The releases from which on it is at another level, with the ratio of the two."""
        moved = of_sides([point.side for point in self.usable], self.metric, self.terms)
        return {self.usable[place].release: ratio for place, ratio in moved.items()}

    @cached_property
    def decline(self) -> Decline | None:
        """How much slower the newest release is than the best of the earlier ones.

        None where that may be chance, or where a regression that stands starts from about the best.
        Releases that are each a little slower than the one before add up to such a decline. Of many
        releases without a change one is the best by chance, and so is one of many series: the
        chance is multiplied by both numbers, after Bonferroni.
        """
        found = self._below_best
        if found is None:
            return None
        before = [self._judge(found.best, self._before(it)) for it in self._standing]
        return found if all(map(self._is_clear, before)) else None

    @property
    def _below_best(self) -> Decline | None:
        """The decline, whatever regressions stand."""
        if self.of_best is None or self.gave_way or not self._is_clear(self.of_best[1]):
            return None
        place, found = self.of_best
        return Decline(self.usable[place], self.usable[-1], found)

    def _is_clear(self, judged: Judgement) -> bool:
        """Whether it is slower, though one of the earlier releases is the best by chance."""
        if judged.verdict is not Verdict.SLOWER or judged.rate is None:
            return judged.verdict is Verdict.SLOWER
        return is_clear(judged.rate, (len(self.usable) - 1) * self.num_series)

    @property
    def is_judged(self) -> bool:
        """Whether any release was held against another."""
        return any(point.judgement and point.judgement.is_told for point in self.points)

    def is_slower(self, least: float = 0.0) -> bool:
        """Whether a regression or a decline stands, or a branch is slower than the newest release.

        What is slower now by less than `least`, a fraction, does not count. Where the last release
        cannot be distinguished from the one before a regression, the regression counts.
        """
        return any(one.reaches(least) for one in self._slower_now)

    @cached_property
    def _slower_now(self) -> list[Judgement]:
        found = [self._below_best.judgement] if self._below_best else []
        for one in self._open:
            if one.judgement is None or one.verdict is not Verdict.SLOWER:
                continue
            if not one.judgement.closes:
                continue
            if one.is_apart or one in self._standing:
                now = one.judgement if one.is_apart else self._since(one)
                found.append(now if now.verdict is Verdict.SLOWER else one.judgement)
        return found

    @cached_property
    def failed(self) -> tuple[Point, ...]:
        """The newest points that failed, wholly or at a larger share of runs than some release."""
        finished = [one.side.share_failed for one in self.releases if one.side.finished]
        least = min(finished, default=1.0)
        return tuple(
            one
            for one in self.newest
            if one.verdict is Verdict.FAILED or one.side.fails_more_than(least)
        )

    @cached_property
    def unknown(self) -> tuple[Point, ...]:
        """The newest points without a verdict, and all whose figures cannot be compared.

        That an older release was too noisy does not count: nobody will repeat its runs.
        """
        unknown = [one for one in self._open if one.judgement and one.verdict in OPEN]
        return tuple(
            one
            for one in unknown
            if one in self.newest
            or (one.verdict is Verdict.NOT_COMPARABLE and one.judgement and one.judgement.ratio)
        )

    @property
    def untold(self) -> tuple[Point, ...]:
        """Those of `unknown` that were not held against another release at all."""
        return tuple(one for one in self.unknown if one.judgement and not one.judgement.is_told)

    @property
    def has_news(self) -> bool:
        """Whether the newest differs from what it is compared with, or is worse than before."""
        changed = any(one.verdict in (*CHANGED, Verdict.RECOVERED) for one in self.newest)
        return changed or bool(self.failed) or self.is_slower()

    def closes(self, least: float) -> frozenset[str]:
        """The gates that it closes."""
        gates = {
            "regression": self.is_slower(least),
            "missing": bool(self.failed or self.missing_in),
            "unknown": bool(self.failed or self.unknown),
        }
        return frozenset(name for name, is_closed in gates.items() if is_closed)


def follow(
    results: Iterable[Result],
    choices: Sequence[Choice],
    level: Level,
    metric: str | None = None,
    unchanged: UnchangedCases = NONE_LEFT_OUT,
) -> list[Series]:
    """A series for each workload, or each case, and origin, in the order of a comparison's rows.

    `choices` are the releases in their order (`releases.known_releases`). At the level
    of the workload a release has its best configuration. Without `metric` it is
    tokens/s/GPU, or as far as that is unknown the step time or model TFLOP/s/GPU.
    `unchanged` are the cases that are not among the results.
    """
    return _Followed.of(results, choices, unchanged).series(level, metric)


Sides = dict[str, list[Side]]
"""The sides of each release, in the order of releases: one of each case."""


@dataclass
class _Track:
    """A work or a case over releases, by a metric.

    `pairs`: each point but the first against the release before it. `best`: the last release that
    can be compared against the best one before it, if there is one.
    """

    metric: str
    points: list[Point] = field(default_factory=list)
    line: list[Side] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    best: tuple[Pair, ...] = ()
    judgements: list[Judgement] = field(default_factory=list)
    of_best: tuple[int, Judgement] | None = None

    @classmethod
    def of(cls, by_release: Sides, metric: str) -> Self:
        """A point for each release: the case with the best figure."""
        made, against = cls(metric), None
        for name, sides in by_release.items():
            side = sides[0] if len(sides) == 1 else max(sides, key=lambda it: goodness(it, metric))
            before = made.line[-1] if made.line else None
            is_apart = not is_numbered(side.shown.release)
            made.points.append(Point(name, side, None, before, against, is_apart))
            if before:
                made.pairs.append(Pair(before, side, metric, made.line, len(made.line)))
            if not is_apart and (before is None or side.is_usable(metric)):
                made.line.append(side)
                against = name
        if best := best_of(made.line[:-1], metric):
            place = next(place for place, it in enumerate(made.line, start=1) if it is best)
            made.best = (Pair(best, made.line[-1], metric, made.line, place),)
        return made


@dataclass(frozen=True)
class _Followed:
    """Results by their work and by their case, of one origin each, and how they are judged."""

    of_works: Sequence[Sides]
    of_cases: Sequence[Sides]
    terms: Terms
    unchanged: UnchangedCases
    _tracks: dict[object, _Track] = field(default_factory=dict)
    """By their cases, origin and metric: work that is done in one way alone is that case."""

    @classmethod
    def of(
        cls, results: Iterable[Result], choices: Sequence[Choice], unchanged: UnchangedCases
    ) -> Self:
        """All that is followed of the results. `choices` are the releases in their order."""
        known, names = tuple(results), in_order(choices)
        versions = {one.release_id: one.release for one in known}
        order = {
            release_id: (not is_numbered(versions.get(release_id)), place)
            for place, release_id in enumerate(names)
        }
        ordered = sorted(known, key=lambda one: order[one.release_id])
        rounding = rounding_pages(ordered)
        runs = grouped(
            ordered, lambda it: (it.workload_key, it.case_key, it.origin, names[it.release_id])
        )
        works: dict[tuple[str, Origin], Sides] = {}
        cases: dict[tuple[str, Origin], Sides] = {}
        for (work, case, origin, release), some in runs.items():
            if len(some) > 1:
                some.sort(key=lambda one: (one.started_at or LONG_AGO, one.result_id))
            side = side_of(some, rounding)
            for of_each, key in ((works, work), (cases, case)):
                of_each.setdefault((key, origin), {}).setdefault(release, []).append(side)
        of_cases = list(cases.values())
        shown = noise_of([it for (it,) in one.values()] for one in of_cases)
        terms = unchanged.terms or terms_of(shown, unchanged.margin)
        return cls(list(works.values()), of_cases, terms, unchanged)

    def series(self, level: Level, metric: str | None) -> list[Series]:
        """A series of each work or of each case, with verdicts that hold over all of them."""
        of_each = self.of_cases if level is Level.CONFIGURATION else self.of_works
        tracks = [self._track(sides, metric) for sides in of_each]
        new = [it for it in tracks if not it.judgements]
        pairs = [pair for it in new for pair in it.pairs]
        found = judged([*pairs, *(pair for it in new for pair in it.best)], self.terms)
        of_pairs = iter(
            recovered(found[: len(pairs)], pairs, self.terms, lambda it: it.line[: it.place][::-1])
        )
        of_best = iter(found[len(pairs) :])
        for it in new:
            it.judgements = [next(of_pairs) for _ in it.pairs]
            for pair in it.best:
                it.of_best = pair.place - len(it.line) - 1, next(of_best)
        judgements = [one for it in tracks for one in it.judgements]
        settled, count = iter(controlled(judgements, self.unchanged.rates)), len(tracks)

        def made(it: _Track) -> Series:
            points = [point._replace(judgement=next(settled)) if point.before else point
                      for point in it.points]  # fmt: skip
            followed = level, it.metric, tuple(points), self.terms
            return Series(*followed, count + self.unchanged.num_cases, it.of_best)

        return sorted(map(made, tracks), key=_order)

    def _track(self, sides: Sides, metric: str | None) -> _Track:
        every = [side for some in sides.values() for side in some]
        chosen = metric_for(every, every, metric)
        key = frozenset(it.shown.case_key for it in every), every[0].origin, chosen
        if key not in self._tracks:
            self._tracks[key] = _Track.of(sides, chosen)
        return self._tracks[key]


def _order(one: Series) -> tuple[object, ...]:
    it = one.shown
    return (*work_order(it), it.framework, one.level.value, *layout_order(it), it.origin)


def follow_each(
    results: Sequence[Result],
    choices: Sequence[Choice],
    metric: str | None = None,
    unchanged: UnchangedCases = NONE_LEFT_OUT,
) -> list[Series]:
    """A series for each case, and for each workload whose best configuration has changed."""
    followed = _Followed.of(results, choices, unchanged)
    of_work = followed.series(Level.WORKLOAD, metric)
    retuned = [one for one in of_work if len({it.side.shown.case_key for it in one.points}) > 1]
    of_cases = followed.series(Level.CONFIGURATION, metric)
    return sorted([*retuned, *of_cases], key=_order)


def noted_missing(
    found: Sequence[Series], versions: Mapping[tuple[str, Origin], Sequence[str]]
) -> list[Series]:
    """The series, each with the newest release that lacks it, or that another took its place.

    `versions` are those of each framework and origin in their order.
    What never finished is not missed, nor a case that was the best of its work until a new or a
    faster one took its place: the series of the work continues it.
    """

    def key(point: Point, release: str | None = None) -> tuple[str, Origin, str]:
        return point.side.shown.case_key, point.side.origin, release or point.release

    of_cases = [one for one in found if one.level is Level.CONFIGURATION]
    of_works = [one for one in found if of_cases and one.level is Level.WORKLOAD]
    followed = {key(point) for one in of_cases for point in one.points if of_works}
    replaced = {
        key(before)
        for one in of_works
        for before, after in pairwise(one.releases)
        if key(after, before.release) not in followed or after.verdict is Verdict.FASTER
    }
    is_boxed = any("[" in name for names in versions.values() for name in names)
    ran = {(one.shown.system, point.release) for one in found for point in one.points if is_boxed}

    def noted(one: Series) -> Series:
        is_case = one.level is Level.CONFIGURATION
        if is_case and replaced & set(map(key, one.releases[-1:])):
            return replace(one, gave_way=True)
        missing_in = next(_lacking(one, versions, ran), None)
        return replace(one, missing_in=missing_in) if missing_in else one

    return list(map(noted, found))


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
