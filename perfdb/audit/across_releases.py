"""Whether releases count the same FLOPs per token: else their TFLOP/s cannot be compared."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from perfdb import flops
from perfdb.audit import equations, flop_counts
from perfdb.audit.equations import RATES
from perfdb.audit.flop_counts import Counted, Work
from perfdb.audit.rules import ReleaseRows, identity
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.record import Finding, Result, Severity
from perfdb.units import significant, told_apart
from perfdb.versions import version_order

NAME: Final = "flops_across_releases"
MEANING: Final = (
    "published TFLOP/s ÷ tokens/s is the same for a model, task and sequence length in each "
    "release of a framework"
)
DETAIL: Final = 1.05
"""Up to here a detail of the architecture may be counted otherwise."""


def check(rows: Iterable[Result]) -> Iterator[Finding]:
    """A finding for each work and release that counts other FLOPs than the release before it.

    Of a release counts what most of its rows of the work agree on. Rounding of the printed
    figures, and digits that were cut off, are allowed for.
    """
    known = [row for row in rows if row.release and not row.is_measured and row.withheld is None]
    for of_framework in grouped(known, lambda row: row.framework).values():
        counted: dict[Work, list[list[Counted]]] = {}
        for some in _by_version(of_framework):
            for work, agreed in ReleaseRows(some).agreed.items():
                if agreed:
                    counted.setdefault(work, []).append(agreed)
        for releases in counted.values():
            for before, after in pairwise(releases):
                yield from _change(before, after)


def _by_version(rows: Iterable[Result]) -> list[list[Result]]:
    """The rows of each release, the oldest first."""
    found = grouped(rows, lambda row: row.release)
    return [found[version] for version in sorted(found, key=version_order)]


def _change(before: Sequence[Counted], after: Sequence[Counted]) -> Iterator[Finding]:
    earlier, later = (flop_counts.together([one for _, one in some]) for some in (before, after))
    (old, _), (row, _) = before[0], after[0]
    if later.agrees(earlier):
        return
    factor = later.value / earlier.value
    known_by = [flop_counts.explaining(one, its) for one, its in ((old, earlier), (row, later))]
    if set(known_by[0]) & set(known_by[1]):
        return
    names = [some[0].name if some else "no known convention" for some in known_by]
    is_detail = all(known_by) or 1 / DETAIL < factor < DETAIL
    yield Finding(
        **identity(NAME, row),
        severity=Severity.INFO if is_detail else Severity.WARNING,
        fields=RATES,
        expected=f"{earlier} GFLOP per token, as in {row.framework} {old.release}",
        found=f"{later} GFLOP per token",
        message=f"{titles.qualified(titles.model(row.model), row.qualifiers)} "
        f"{titles.task(row.task)} at {row.sequence_length:,} counts {significant(later.value)} "
        f"GFLOP per token in {row.framework} {row.release} ({names[1]}) and "
        f"{significant(earlier.value)} in {old.release} ({names[0]}), "
        f"{told_apart(factor, 1, 3)[0]} times as much: their TFLOP/s cannot be "
        f"compared{_restated(old, row)}",
    )


def _restated(old: Result, row: Result) -> str:
    """The TFLOP/s of both rows by the formula of their model; empty where it is not known."""
    count = flop_counts.formula(row, flops.DEFAULT)
    if count is None:
        return ""
    texts = [
        f"{significant(speed.value * count / 1000)} in {one.release} ({one.num_gpus:,} "
        f"{titles.system(one.system)} GPUs"
        + (f", {significant(printed.value)} printed)" if printed else ")")
        for one in (row, old)
        if (speed := equations.tokens(one))
        for printed in [equations.tflops(one)]
    ]
    by = f"the model's formula, {significant(count)} GFLOP per token ({flops.DEFAULT.name})"
    return f"; by {by}, TFLOP/s/GPU are {' and '.join(texts)}"
