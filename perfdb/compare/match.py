"""Which results of two releases belong together: by case, by workload, and nearly."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter, ne
from typing import Final

from perfdb.catalog import titles
from perfdb.compare.sides import (
    Comparison,
    Difference,
    Level,
    Match,
    Side,
    layout_order,
    work_order,
)
from perfdb.compare.verdict import judge
from perfdb.groups import grouped
from perfdb.metrics import METRICS, PREFERRED
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS, Origin, Result, Scalar

Sides = Mapping[Origin, Side]


def comparison(a: Iterable[Result], b: Iterable[Result], metric: str | None = None) -> Comparison:
    """Match the results of release A with those of release B.

    A case that both have is a match at equal configuration. A workload that both have, but whose
    best configuration is not the same case on both sides, is one more match, at workload level.
    Measured results are matched with measured ones and published with published ones; only what
    has no counterpart of its own origin is matched across. Without `metric` it is
    the first of `PREFERRED` that is known on both sides.
    """
    sides_a, sides_b = _sides(a), _sides(b)
    matched = (*_equal(sides_a, sides_b, metric), *_best(sides_a, sides_b, metric))
    used = {id(side) for match in matched for side in (match.a, match.b)}
    return Comparison(
        matched=tuple(sorted(matched, key=_order_of_match)),
        only_a=tuple(sorted((side for side in sides_a if id(side) not in used), key=_order)),
        only_b=tuple(sorted((side for side in sides_b if id(side) not in used), key=_order)),
    )


def _sides(results: Iterable[Result]) -> list[Side]:
    of_cases = grouped(results, lambda one: (one.case_key, one.origin))
    return [Side(tuple(group)) for group in of_cases.values()]


def _equal(a: list[Side], b: list[Side], metric: str | None) -> Iterator[Match]:
    by_case = grouped(a, _case_key), grouped(b, _case_key)
    for key in by_case[0].keys() & by_case[1].keys():
        for one, other in _pairs(_by_origin(by_case[0][key]), _by_origin(by_case[1][key])):
            yield _match(Level.CONFIGURATION, one, other, metric)


def _best(a: list[Side], b: list[Side], metric: str | None) -> Iterator[Match]:
    by_workload = grouped(a, _workload_key), grouped(b, _workload_key)
    for key in by_workload[0].keys() & by_workload[1].keys():
        group_a, group_b = by_workload[0][key], by_workload[1][key]
        judged_by = metric_for(group_a, group_b, metric)
        best = _fastest(group_a, judged_by), _fastest(group_b, judged_by)
        for one, other in _pairs(*best):
            if _case_key(one) != _case_key(other):
                yield _match(Level.WORKLOAD, one, other, metric)


def metric_for(a: Iterable[Side], b: Iterable[Side], asked: str | None) -> str:
    """The metric to judge by: the one asked for, else the first of `PREFERRED` that both know.

    Where one side has no figure at all, as none of its runs finished, that of the other.
    """
    if asked is not None:
        return asked
    groups = [known for sides in (a, b) if any(known := [_known(side) for side in sides])]
    for metric in PREFERRED:
        if all(any(metric in known for known in group) for group in groups):
            return metric
    return PREFERRED[0]


def _known(side: Side) -> set[str]:
    """Those of `PREFERRED` that a side has a figure of."""
    return {metric for metric in PREFERRED if side.median(metric) is not None}


def differences(a: Result, b: Result) -> tuple[Difference, ...]:
    """The configuration fields in which two results differ, options one by one."""
    fields = [name for name in CONFIGURATION_FIELDS if name != "options"]
    found = [Difference(name, getattr(a, name), getattr(b, name)) for name in fields]
    options = sorted(a.options.keys() | b.options.keys())
    found += [Difference(name, a.options.get(name), b.options.get(name)) for name in options]
    return tuple(one for one in found if one.a != one.b)


def _match(level: Level, a: Side, b: Side, asked: str | None) -> Match:
    metric = metric_for([a], [b], asked)
    return Match(level, a, b, metric, judge(a, b, metric), differences(a.shown, b.shown))


def _pairs(a: Sides, b: Sides) -> list[tuple[Side, Side]]:
    shared = [origin for origin in Origin if origin in a and origin in b]
    if shared:
        return [(a[origin], b[origin]) for origin in shared]
    return [(one, other) for one in a.values() for other in b.values()]


def _by_origin(sides: Iterable[Side]) -> Sides:
    return {side.origin: side for side in sides}


def _fastest(sides: list[Side], metric: str) -> Sides:
    """The best side of each origin. One without the figure is never better than one with it."""
    return _by_origin(sorted(sides, key=lambda side: goodness(side, metric)))


def goodness(side: Side, metric: str) -> tuple[bool, float, str]:
    """A key that sorts sides, the best last."""
    figure = side.median(metric)
    sign = 1 if METRICS[metric].better == "higher" else -1
    return (figure is not None, sign * (figure or 0.0), _case_key(side))


def _case_key(side: Side) -> str:
    return side.shown.case_key


def _workload_key(side: Side) -> str:
    return side.shown.workload_key


def _order(side: Side) -> tuple[object, ...]:
    return (*work_order(side.shown), *layout_order(side.shown), side.origin)


def _order_of_match(match: Match) -> tuple[object, ...]:
    it = match.a.shown
    return (*work_order(it), match.level, *layout_order(it), it.origin)


AT: Final[Mapping[str, Callable[[Result], str]]] = {
    "num_gpus": lambda it: f"{it.num_gpus:,} GPUs",
    "precision": lambda it: titles.precision(it.precision) or "an unknown precision",
    "sequence_length": lambda it: f"sequence {it.sequence_length:,}",
    "global_batch_size": lambda it: f"GBS {it.global_batch_size:,}",
}
"""The fields in which a recipe is changed on purpose, and how their values read."""

_WORK: Final = attrgetter(*WORKLOAD_FIELDS)


def nearest(side: Side, others: Iterable[Side]) -> dict[str, list[Scalar | None]]:
    """The values that others have of a field, where they differ from a side in that field alone."""
    found: dict[str, list[Scalar | None]] = {}
    for field, other in _differing_in_one(side, others):
        value = getattr(other, field)
        if value not in found.setdefault(field, []):
            found[field].append(value)
    return found


def nearest_text(side: Side, others: Iterable[Side]) -> str:
    """'B has it at GBS 128 or FP8-MX'; empty where it has nothing of the kind."""
    found = dict.fromkeys(AT[field](other) for field, other in _differing_in_one(side, others))
    return f"B has it at {' or '.join(found)}" if found else ""


def _differing_in_one(side: Side, others: Iterable[Side]) -> Iterator[tuple[str, Result]]:
    work = _WORK(side.shown)
    for other in others:
        differs = list(map(ne, work, _WORK(other.shown)))
        if sum(differs) == 1 and (field := WORKLOAD_FIELDS[differs.index(True)]) in AT:
            yield field, other.shown
