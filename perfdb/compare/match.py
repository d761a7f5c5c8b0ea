"""Which results of two releases belong together: by case, by workload, and nearly."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from operator import attrgetter, ne
from typing import Final

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.compare.noise import MARGIN
from perfdb.compare.sides import Side, layout_order, rounding_pages, sides_of, work_order
from perfdb.compare.verdict import (
    TERMS,
    Judgement,
    Pair,
    Terms,
    Verdict,
    controlled,
    judged,
    noise_of,
    recovered,
    terms_of,
)
from perfdb.groups import grouped
from perfdb.metrics import METRICS, OF_ANY_SIZE, PREFERRED
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS, Origin, Result, Scalar

Differences = Mapping[str, tuple[Scalar | None, Scalar | None]]
"""The configuration fields in which two results differ, with both values."""


class Level(StrEnum):
    """What the two sides of a match have in common."""

    CONFIGURATION = "configuration"
    """The same case: the same work, done the same way."""
    WORKLOAD = "workload"
    """The same work, each side in its own best configuration."""
    BEST = "best"
    """The best of each side for a model, system, precision family, task and sequence length, at
    other numbers of GPUs, batch sizes or recipes of the precision."""
    SYSTEMS = "systems"
    """The same on two systems, as `perfdb.compare.across` has it."""


@dataclass(frozen=True)
class Match:
    """The same work in both releases; `metric` is the figure that was compared."""

    level: Level
    a: Side
    b: Side
    metric: str
    judgement: Judgement
    differences: Differences

    @property
    def failed(self) -> bool:
        """Whether B has no figures where A has, or a larger share of its runs failed."""
        is_whole = self.judgement.verdict is Verdict.FAILED
        return is_whole or self.b.fails_more_than(self.a.share_failed)


@dataclass(frozen=True)
class Comparison:
    """Everything two releases have, matched where it can be."""

    matched: tuple[Match, ...]
    only_a: tuple[Side, ...]
    only_b: tuple[Side, ...]
    best: tuple[Match, ...] = ()
    """What has no match of the same work, at `Level.BEST`. No gate closes on it."""
    terms: Terms = TERMS
    """What its verdicts go by."""

    @property
    def failed(self) -> tuple[Match, ...]:
        """The matches at which B failed, wholly or at more of its runs than A."""
        return tuple(match for match in self.matched if match.failed)

    def slower(self, least: Callable[[str], float]) -> tuple[Match, ...]:
        """The matches at which B is slower by the fraction of its metric or more, for sure."""
        found = (match for match in self.matched if match.judgement.verdict is Verdict.SLOWER)
        known = (match for match in found if match.judgement.closes)
        return tuple(match for match in known if match.judgement.reaches(least(match.metric)))

    @property
    def judged(self) -> tuple[Match, ...]:
        """The matches that neither side's open errors keep from a verdict."""
        verdicts = ((match, match.judgement.verdict) for match in self.matched)
        return tuple(match for match, verdict in verdicts if verdict is not Verdict.NOT_JUDGED)


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


def together(found: Sequence[Comparison]) -> Comparison:
    """Several comparisons as one."""
    return Comparison(
        matched=tuple(match for one in found for match in one.matched),
        only_a=tuple(side for one in found for side in one.only_a),
        only_b=tuple(side for one in found for side in one.only_b),
        best=tuple(match for one in found for match in one.best),
    )


def comparison(
    a: Iterable[Result],
    b: Iterable[Result],
    metric: str | None = None,
    earlier: Sequence[Iterable[Result]] | Earlier = (),
    margin: float = MARGIN,
) -> Comparison:
    """Match the results of release A with those of release B.

    A case that both have is a match at equal configuration; what only one of them states is not
    known of the other, and no difference. A workload that both have, but whose best configuration
    is not the same case on both sides, is one more match, at workload level. What has no match is
    matched with the best of the other side at another size, apart from the others.
    Measured results are matched with measured ones and published with published ones; only what
    has no counterpart of its own origin is matched across. Without `metric` it is
    the first of `PREFERRED` that is known on both sides.
    `earlier`: the results of the releases before A, the newest first.
    """
    sides_a, sides_b = _sides(a), _sides(b)
    before = earlier if isinstance(earlier, Earlier) else Earlier(earlier)
    lines = {id(side): (*reversed(before.of_case(side)), side) for side in sides_a}
    terms = terms_of(noise_of([*lines.values(), *((side,) for side in sides_b)]), margin)
    pairs = [*_same_case(sides_a, sides_b, metric), *_same_work(sides_a, sides_b, metric)]
    used = {id(side) for _, *sides in pairs for side in sides}
    best = _best_of_each(sides_a, sides_b, metric, used)

    def matches(some: Iterable[Matched]) -> tuple[Match, ...]:
        """With verdicts that hold over all of some pairs together."""
        known = [(level, Pair(a, b, metric_for([a], [b], metric), lines[id(a)], len(lines[id(a)])))
                 for level, a, b in some]  # fmt: skip
        asked = [pair for _, pair in known]
        of_cases = {id(pair) for level, pair in known if level is Level.CONFIGURATION}

        settled = controlled(recovered(
            judged(asked, terms), asked, terms,
            lambda it: it.line[::-1] if id(it) in of_cases else before.of_work(it.a),
        ))  # fmt: skip
        made = (_match(*of, it) for of, it in zip(known, settled, strict=True))
        return tuple(sorted(made, key=of_match))

    def of_match(match: Match) -> tuple[object, ...]:
        it = match.a.shown
        return (*work_order(it), match.level, *layout_order(it), it.origin)

    def unmatched(sides: Iterable[Side]) -> tuple[Side, ...]:
        rest = (side for side in sides if id(side) not in used)
        return tuple(sorted(rest, key=lambda it: (*work_order(it.shown), *layout_order(it.shown),
                                                  it.origin)))  # fmt: skip

    # Changes at other sizes are no reason to find more among the same work.
    return Comparison(matches(pairs), unmatched(sides_a), unmatched(sides_b), matches(best), terms)


Matched = tuple[Level, Side, Side]


def _match(level: Level, pair: Pair, found: Judgement) -> Match:
    apart: Differences = {}
    if level is Level.BEST:
        apart = at_other_sizes(pair.a.shown, pair.b.shown)
    elif level is Level.WORKLOAD:
        apart = differences(pair.a.shown, pair.b.shown)
    return Match(level, pair.a, pair.b, pair.metric, found, apart)


def _sides(results: Iterable[Result]) -> list[Side]:
    known = list(results)
    return sides_of(known, rounding_pages(known))


def _shared(
    a: Iterable[Side], b: Iterable[Side], key: Callable[[Side], object], asked: str | None
) -> Iterator[tuple[list[Side], str, list[tuple[Side, Side]]]]:
    """For each key that both have: all of its sides, the metric, and the best sides in pairs."""
    of_a, of_b = (grouped(sides, key) for sides in (a, b))
    for shared in of_a.keys() & of_b.keys():
        sides = of_a[shared], of_b[shared]
        metric = metric_for(*sides, asked)
        yield [*sides[0], *sides[1]], metric, in_pairs(*(_best(it, metric) for it in sides))


def _same_case(a: list[Side], b: list[Side], asked: str | None) -> Iterator[Matched]:
    """The pairs of each case, then of those that differ only in what one side does not state."""
    case = attrgetter("shown.case_key")
    for *_, pairs in _shared(a, b, case, asked):
        yield from ((Level.CONFIGURATION, *pair) for pair in pairs)
    work, both = _work_keys(a, b), set(map(case, a)) & set(map(case, b))
    rest_a, rest_b = (
        grouped((it for it in sides if case(it) not in both), lambda it: (work[id(it)], it.origin))
        for sides in (a, b)
    )
    for shared in rest_a.keys() & rest_b.keys():
        for pair in _compatible_pairs(rest_a[shared], rest_b[shared]):
            yield (Level.CONFIGURATION, *pair)


def _work_keys(a: Sequence[Side], b: Sequence[Side]) -> dict[int, str]:
    """The key of the work of each side, by its id.

    A precision that one release does not state is that of the other, where that has only one.
    """
    keys = {id(side): side.shown.workload_key for side in (*a, *b)}
    groups = [grouped(sides, lambda it: _BUT_PRECISION(it.shown)) for sides in (a, b)]
    for mine, theirs in (groups, groups[::-1]):
        for work, sides in mine.items():
            stated = {it.shown.precision: it.shown.workload_key for it in theirs.get(work, ())}
            if {it.shown.precision for it in sides} == {None} and len(stated) == 1:
                keys |= dict.fromkeys(map(id, sides), next(iter(stated.values())))
    return keys


_BUT_PRECISION: Final = attrgetter(*(name for name in WORKLOAD_FIELDS if name != "precision"))


def _compatible_pairs(a: Sequence[Side], b: Sequence[Side]) -> Iterator[tuple[Side, Side]]:
    """The sides that fit to one side of the other release, which fits to no other."""
    fits = [(one, other) for one in a for other in b if is_compatible(one.shown, other.shown)]
    counts = Counter(id(side) for pair in fits for side in pair)
    yield from (pair for pair in fits if all(counts[id(side)] == 1 for side in pair))


def is_compatible(a: Result, b: Result) -> bool:
    """Whether two configurations may be the same one: equal, where both are known."""
    return a.options == b.options and all(
        None in pair or "" in pair or pair[0] == pair[1]
        for name in CONFIGURATION_FIELDS
        if name != "options" and (pair := (a.value(name), b.value(name)))
    )


def _same_work(a: list[Side], b: list[Side], asked: str | None) -> Iterator[Matched]:
    """The best configurations of each workload, where they are not the same."""
    work = _work_keys(a, b)
    for *_, pairs in _shared(a, b, lambda it: work[id(it)], asked):
        for one, other in pairs:
            is_same = one.shown.case_key == other.shown.case_key
            if not (is_same or is_compatible(one.shown, other.shown)):
                yield Level.WORKLOAD, one, other


def _best_of_each(
    a: list[Side], b: list[Side], asked: str | None, used: Collection[int]
) -> Iterator[Matched]:
    """The best of both sides where nothing of the kind has a match, by a figure of any size."""
    for sides, metric, pairs in _shared(a, b, lambda it: kind(it.shown), asked):
        if metric in OF_ANY_SIZE and not any(id(side) in used for side in sides):
            for one, other in pairs:
                if None not in (one.median(metric), other.median(metric)):
                    yield Level.BEST, one, other


def kind(result: Result) -> tuple[object, ...]:
    """System, model, precision family, task and sequence length."""
    known = catalog.precisions().get(result.precision or "")
    family = known.peak if known and known.peak else result.precision
    work = result.model, result.qualifiers, result.task, result.sequence_length
    return (result.system, *work, family)


def _best(sides: list[Side], metric: str) -> Mapping[Origin, Side]:
    """The best side of each origin. One without the figure is never better than one with it."""
    return {side.origin: side for side in sorted(sides, key=lambda side: goodness(side, metric))}


def in_pairs(a: Mapping[Origin, Side], b: Mapping[Origin, Side]) -> list[tuple[Side, Side]]:
    """Sides of the same origin; where no origin is on both, each with each."""
    shared = [origin for origin in Origin if origin in a and origin in b]
    if shared:
        return [(a[origin], b[origin]) for origin in shared]
    return [(one, other) for one in a.values() for other in b.values()]


def goodness(side: Side, metric: str) -> tuple[bool, float, str]:
    """A key that sorts sides, the best last."""
    figure = side.median(metric)
    sign = 1 if METRICS[metric].better == "higher" else -1
    return (figure is not None, sign * (figure or 0.0), side.shown.case_key)


def metric_for(a: Iterable[Side], b: Iterable[Side], asked: str | None) -> str:
    """The metric to compare: the one asked for, else the first of `PREFERRED` that both know.

    Where one side has no figure at all, as none of its runs finished, that of the other.
    """
    if asked is not None:
        return asked
    sides = list(a), list(b)
    for metric in PREFERRED:
        if all(map(partial(_has, metric), sides)):
            return metric
    return PREFERRED[0]


def _has(metric: str, sides: Sequence[Side]) -> bool:
    """Whether some of them have a figure, or none has any."""
    return any(side.median(metric) is not None for side in sides) or all(
        side.median(other) is None for side in sides for other in PREFERRED
    )


def differences(a: Result, b: Result) -> Differences:
    """The configuration fields in which two results differ, options one by one."""
    if _CONFIGURATION(a) == _CONFIGURATION(b):
        return {}
    pairs = {name: (getattr(a, name), getattr(b, name)) for name in CONFIGURATION_FIELDS}
    del pairs["options"]
    options = sorted(a.options.keys() | b.options.keys())
    pairs |= {name: (a.options.get(name), b.options.get(name)) for name in options}
    return {name: (one, other) for name, (one, other) in pairs.items() if one != other}


def at_other_sizes(a: Result, b: Result) -> Differences:
    """The same, with the fields of the work in which they differ."""
    sizes = {name: (a.value(name), b.value(name)) for name in WORKLOAD_FIELDS}
    return {name: it for name, it in sizes.items() if it[0] != it[1]} | dict(differences(a, b))  # type: ignore[return-value]


AT: Final[Mapping[str, Callable[[Result], str]]] = {
    "num_gpus": lambda it: f"{it.num_gpus:,} GPUs",
    "precision": lambda it: titles.precision(it.precision) or "an unknown precision",
    "sequence_length": lambda it: f"sequence {it.sequence_length:,}",
    "global_batch_size": lambda it: f"GBS {it.global_batch_size:,}",
}
"""The fields in which a recipe is changed on purpose, and how their values read."""
_WORK, _CONFIGURATION = attrgetter(*WORKLOAD_FIELDS), attrgetter(*CONFIGURATION_FIELDS)


def nearest(side: Side, others: Iterable[Side]) -> dict[str, list[Scalar | None]]:
    """The values that others have of a field, where they differ from a side in that field alone."""
    found: dict[str, dict[Scalar | None, None]] = {}
    for field, other in _differing_in_one(side, others):
        found.setdefault(field, {})[getattr(other, field)] = None
    return {field: list(values) for field, values in found.items()}


def nearest_text(side: Side, others: Iterable[Side]) -> str:
    """'B has it at GBS 128 or MXFP8'; empty where nothing is near."""
    found = dict.fromkeys(AT[field](other) for field, other in _differing_in_one(side, others))
    return f"B has it at {' or '.join(found)}" if found else ""


def _differing_in_one(side: Side, others: Iterable[Side]) -> Iterator[tuple[str, Result]]:
    work = _WORK(side.shown)
    for other in others:
        differs = list(map(ne, work, _WORK(other.shown)))
        if sum(differs) == 1 and (field := WORKLOAD_FIELDS[differs.index(True)]) in AT:
            yield field, other.shown
