"""Which results of two releases belong together: by case, by workload, and nearly."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter, ne
from typing import Final

from perfdb.catalog import titles
from perfdb.compare.sides import Side, layout_order, work_order
from perfdb.compare.verdict import Judgement, Verdict, judge
from perfdb.groups import grouped
from perfdb.metrics import METRICS, PREFERRED
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS, Origin, Result, Scalar

Differences = Mapping[str, tuple[Scalar | None, Scalar | None]]
"""The configuration fields in which two results differ, with both values."""


class Level(StrEnum):
    """What the two sides of a match have in common."""

    CONFIGURATION = "configuration"
    """The same case: the same work, done the same way."""
    WORKLOAD = "workload"
    """The same work, each side in its own best configuration."""


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

    @property
    def missing(self) -> bool:
        """Whether B did not run something that A has, or failed at it more often."""
        return bool(self.failed or self.only_a)

    @property
    def failed(self) -> tuple[Match, ...]:
        """The matches at which B failed, wholly or at more of its runs than A."""
        return tuple(match for match in self.matched if match.failed)

    def slower(self, least: float) -> tuple[Match, ...]:
        """The matches at which B is slower by this fraction or more."""
        found = (match for match in self.matched if match.judgement.verdict is Verdict.SLOWER)
        return tuple(match for match in found if match.judgement.reaches(least))

    @property
    def judged(self) -> tuple[Match, ...]:
        """The matches that neither side's open errors keep from a verdict."""
        verdicts = ((match, match.judgement.verdict) for match in self.matched)
        return tuple(match for match, verdict in verdicts if verdict is not Verdict.NOT_JUDGED)


def together(found: Sequence[Comparison]) -> Comparison:
    """Several comparisons as one."""
    return Comparison(
        matched=tuple(match for one in found for match in one.matched),
        only_a=tuple(side for one in found for side in one.only_a),
        only_b=tuple(side for one in found for side in one.only_b),
    )


def comparison(a: Iterable[Result], b: Iterable[Result], metric: str | None = None) -> Comparison:
    """Match the results of release A with those of release B.

    A case that both have is a match at equal configuration. A workload that both have, but whose
    best configuration is not the same case on both sides, is one more match, at workload level.
    Measured results are matched with measured ones and published with published ones; only what
    has no counterpart of its own origin is matched across. Without `metric` it is
    the first of `PREFERRED` that is known on both sides.
    """
    sides_a, sides_b = _sides(a), _sides(b)
    matched = [
        *_matched(sides_a, sides_b, metric, Level.CONFIGURATION),
        *_matched(sides_a, sides_b, metric, Level.WORKLOAD),
    ]
    used = {id(side) for match in matched for side in (match.a, match.b)}

    def of_match(match: Match) -> tuple[object, ...]:
        it = match.a.shown
        return (*work_order(it), match.level, *layout_order(it), it.origin)

    def unmatched(sides: Iterable[Side]) -> tuple[Side, ...]:
        rest = (side for side in sides if id(side) not in used)
        return tuple(sorted(rest, key=lambda it: (*work_order(it.shown), *layout_order(it.shown),
                                                  it.origin)))  # fmt: skip

    return Comparison(tuple(sorted(matched, key=of_match)), unmatched(sides_a), unmatched(sides_b))


def _sides(results: Iterable[Result]) -> list[Side]:
    of_cases = grouped(results, lambda one: (one.case_key, one.origin))
    return [Side(tuple(group)) for group in of_cases.values()]


def _matched(a: list[Side], b: list[Side], asked: str | None, level: Level) -> Iterator[Match]:
    """The matches of a level: of each case, or of each workload whose best cases differ."""
    is_case = level is Level.CONFIGURATION
    key = attrgetter("shown.case_key" if is_case else "shown.workload_key")
    of_a, of_b = grouped(a, key), grouped(b, key)
    for shared in of_a.keys() & of_b.keys():
        metric = metric_for(of_a[shared], of_b[shared], asked)
        for one, other in _pairs(_best(of_a[shared], metric), _best(of_b[shared], metric)):
            if is_case or one.shown.case_key != other.shown.case_key:
                compared = metric_for([one], [other], asked)
                changed = differences(one.shown, other.shown)
                yield Match(level, one, other, compared, judge(one, other, compared), changed)


def _best(sides: list[Side], metric: str) -> Mapping[Origin, Side]:
    """The best side of each origin. One without the figure is never better than one with it."""
    return {side.origin: side for side in sorted(sides, key=lambda side: goodness(side, metric))}


def _pairs(a: Mapping[Origin, Side], b: Mapping[Origin, Side]) -> list[tuple[Side, Side]]:
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
    known = [[_known(side) for side in sides] for sides in (a, b)]
    groups = [group for group in known if any(group)]
    for metric in PREFERRED:
        if all(any(metric in known for known in group) for group in groups):
            return metric
    return PREFERRED[0]


def _known(side: Side) -> set[str]:
    return {metric for metric in PREFERRED if side.median(metric) is not None}


def differences(a: Result, b: Result) -> Differences:
    """The configuration fields in which two results differ, options one by one."""
    pairs = {name: (getattr(a, name), getattr(b, name)) for name in CONFIGURATION_FIELDS}
    del pairs["options"]
    options = sorted(a.options.keys() | b.options.keys())
    pairs |= {name: (a.options.get(name), b.options.get(name)) for name in options}
    return {name: (one, other) for name, (one, other) in pairs.items() if one != other}


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
    found: dict[str, dict[Scalar | None, None]] = {}
    for field, other in _differing_in_one(side, others):
        found.setdefault(field, {})[getattr(other, field)] = None
    return {field: list(values) for field, values in found.items()}


def nearest_text(side: Side, others: Iterable[Side]) -> str:
    """'B has it at GBS 128 or FP8-MX'; empty where nothing is near."""
    found = dict.fromkeys(AT[field](other) for field, other in _differing_in_one(side, others))
    return f"B has it at {' or '.join(found)}" if found else ""


def _differing_in_one(side: Side, others: Iterable[Side]) -> Iterator[tuple[str, Result]]:
    work = _WORK(side.shown)
    for other in others:
        differs = list(map(ne, work, _WORK(other.shown)))
        if sum(differs) == 1 and (field := WORKLOAD_FIELDS[differs.index(True)]) in AT:
            yield field, other.shown
