"""The results of two systems side by side: at one release, or at two. Pure but for reading.

Two systems are no regression: there is a ratio, what differs, and no verdict.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from perfdb.catalog import titles
from perfdb.compare import releases, report
from perfdb.compare.match import Level, Match, at_other_sizes, goodness, in_pairs, kind, metric_for
from perfdb.compare.releases import Choice
from perfdb.compare.sides import Side, marked, sides_of, work_order
from perfdb.compare.verdict import Verdict, judge
from perfdb.errors import Diagnostic, InputError
from perfdb.groups import grouped
from perfdb.metrics import CONVENTION_BOUND, METRICS
from perfdb.queries.scope import Scope
from perfdb.record import Origin, Result
from perfdb.stated import RATE
from perfdb.units import figure

COLUMNS: Final = ("Work", "Figure", "A", "B", "B/A")
_METRICS: Final = (RATE, "model_tflops_per_sec_per_gpu")
"""The figures of a GPU: a step takes longer or shorter for its size alone."""
_NOT_OF_BOTH: Final = (
    "system", "workload_key", "verdict", "low", "high", "false_discovery_rate",
    "num_baseline_releases",
)  # fmt: skip
"""What a match has and a pair has not."""


@dataclass(frozen=True)
class SystemPairs:
    """The best of two systems for what both did, and how much only one of them did."""

    pairs: tuple[Match, ...]
    only_a: int
    only_b: int


def of_systems(
    connection: Connection,
    pair: tuple[Choice, Choice],
    only: Scope,
    wrong: Collection[int],
    metric: str | None,
) -> SystemPairs:
    """Release A on the first system of a scope, and release B on the second.

    Raises InputError where the scope does not have exactly two systems.
    """
    systems = only.options.get("system", ())
    if len(set(systems)) != 2 or len(systems) != 2:
        message = "takes two systems, that of A and that of B"
        remedy = "give --system twice, such as --system dgx-gb200 --system dgx-h100"
        raise InputError(Diagnostic("--across systems", message, remedy=remedy))
    of_a, of_b = (
        marked(releases.results_of(connection, choice, replace(only, system=system)), wrong)
        for choice, system in zip(pair, systems, strict=True)
    )
    return paired(of_a, of_b, metric)


def paired(a: Iterable[Result], b: Iterable[Result], metric: str | None = None) -> SystemPairs:
    """The best of both for each model, task, precision family and sequence length.

    Without `metric` it is tokens/s/GPU, else TFLOP/s/GPU where both have that alone. A figure with
    open errors is the best only where there is no other. Measured results are matched with measured
    ones and published with published ones, as in a comparison of releases.
    """
    of_a, of_b = (grouped(sides_of(some), lambda it: kind(it.shown)[1:]) for some in (a, b))
    shared = [name for name in of_a if name in of_b]
    pairs = [
        _match(one, other, asked)
        for name in shared
        for asked in [metric or _metric(of_a[name], of_b[name])]
        for one, other in in_pairs(_best(of_a[name], asked), _best(of_b[name], asked))
    ]
    pairs.sort(key=lambda it: (*work_order(it.a.shown), it.a.origin))
    return SystemPairs(tuple(pairs), len(of_a) - len(shared), len(of_b) - len(shared))


def _metric(a: Sequence[Side], b: Sequence[Side]) -> str:
    for metric in _METRICS:
        if all(any(it.median(metric) is not None for it in sides) for sides in (a, b)):
            return metric
    return metric_for(a, b, RATE)


def _best(sides: Sequence[Side], metric: str) -> Mapping[Origin, Side]:
    def key(side: Side) -> tuple[object, ...]:
        return side.is_usable(metric), *goodness(side, metric)

    return {side.origin: side for side in sorted(sides, key=key)}


def _match(a: Side, b: Side, metric: str) -> Match:
    """A match with a ratio in its judgement, and why there is none; nothing of it is a verdict."""
    found = judge(a, b, metric)
    is_apart = found.verdict is Verdict.NOT_COMPARABLE
    ratio = None if is_apart and metric in CONVENTION_BOUND else found.ratio
    judged = found._replace(
        ratio=ratio, low=None, high=None, rate=None, verdict=Verdict.NOT_JUDGED,
        why=found.why if is_apart else None,
    )  # fmt: skip
    apart = at_other_sizes(a.shown, b.shown)
    return Match(
        Level.SYSTEMS, a, b, metric, judged, {n: it for n, it in apart.items() if n != "system"}
    )


def cells(match: Match) -> tuple[str, ...]:
    """A match in `COLUMNS`, with lines between what the first cell has of several things."""
    a, b = match.a.shown, match.b.shown
    work = (
        titles.qualified(a.model_title, a.qualifiers),
        titles.task(a.task),
        titles.precision(a.precision) or "precision unknown",
        f"sequence {a.sequence_length:,}",
    )
    on = " → ".join(f"{it.num_gpus:,} × {it.system_title}" for it in (a, b))
    remark = report.remark(match, has_flags=False)
    # The flag comes first, as a narrow terminal cuts off what comes last.
    lines = (" · ".join(work), report.flags(match), on, report.how(match), remark)
    return (
        "\n".join(filter(None, lines)),
        METRICS[match.metric].title,
        report.figure(a, match.metric),
        report.figure(b, match.metric),
        figure(match.judgement.ratio, 3),
    )


def summary(found: SystemPairs) -> str:
    """'12 on both. 3 only on A, 0 only on B.'"""
    return f"{len(found.pairs)} on both. {found.only_a} only on A, {found.only_b} only on B."


def document(found: SystemPairs) -> dict[str, object]:
    """`pairs`, as the matches of a comparison without what is of verdicts, and two counts."""
    pairs = [
        {name: value for name, value in report.matched(it).items() if name not in _NOT_OF_BOTH}
        for it in found.pairs
    ]
    systems = [{"system_a": it.a.shown.system, "system_b": it.b.shown.system} for it in found.pairs]
    listed = [one | two for one, two in zip(systems, pairs, strict=True)]
    return {"pairs": listed, "only_a": found.only_a, "only_b": found.only_b}
