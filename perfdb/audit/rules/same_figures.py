"""Two GPUs, or precisions, of which one is faster by far train at other rates to the digit."""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

from perfdb.audit import flop_counts, workload
from perfdb.audit.printed import figure, shown
from perfdb.audit.rates import limit_tflops
from perfdb.audit.subject import FIGURES, Remark, Severity, Subject
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.record import Origin

NAME = "same_figures"
MEANING = (
    "systems, or precisions of a system, of different peaks do not print the same two figures for "
    "the same work"
)

FEWEST = 2
"""Figures that are the same; what is wrong with a single one other rules find."""
COARSEST = 0.0101
"""The last place of a figure of three digits, as a share of it; with fewer two are soon equal."""
FAR = 2.0
"""Peaks of systems so far apart leave no room for chance."""
RATES = tuple(field for field in FIGURES if field != "mfu")
"""What is copied from one precision to another; MFU is of the peak, and may be computed anew."""


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Published rows with the figures of a row of another system or precision."""
    published = [row for row in rows if row.origin is Origin.PUBLISHED]
    fine = [row for row in published if _num_fine(row, FIGURES) >= FEWEST]
    precise = [row for row in published if row.precision and _num_fine(row, RATES) >= FEWEST]
    found = [*_copies(fine, _in_one), *_copies(precise, _on_one)]
    told = {id(remark.row) for remark in found}
    yield from found
    yield from (one for one in _copies(precise, _anywhere, FAR) if id(one.row) not in told)


def _copies(
    rows: Sequence[Subject], said: Callable[[Subject], tuple[object, ...]], least: float = 1
) -> Iterator[Remark]:
    """Rows that say the same as one of another peak, which of several is the one furthest off."""
    for alike in grouped(rows, said).values():
        known = [(peak, row) for row in alike if (peak := limit_tflops(row))]
        ends = sorted(known, key=itemgetter(0))
        for peak, row in known:
            other, there = max(ends[0], ends[-1], key=lambda one: _apart(peak, one[0]))
            if other != peak and _apart(peak, other) >= least:
                yield _remark(row, there, _apart(peak, other))


def _num_fine(row: Subject, fields: Sequence[str]) -> int:
    given = filter(None, (figure(row, field) for field in fields))
    return sum(one.uncertainty <= COARSEST for one in given)


def _in_one(row: Subject) -> tuple[object, ...]:
    """What was done in which precision, and all figures."""
    return (*flop_counts.work(row), row.precision, *map(row.figure, FIGURES))


def _on_one(row: Subject) -> tuple[object, ...]:
    """What was done on which GPUs, and the rates."""
    return (row.system, *_anywhere(row))


def _anywhere(row: Subject) -> tuple[object, ...]:
    """What was done on how many GPUs of whichever system, and the rates."""
    size = (row.num_gpus, row.global_batch_size)
    return (*flop_counts.work(row), *size, *map(row.figure, RATES))


def _apart(peak: float, other: float) -> float:
    """How many times one peak is the other."""
    return max(peak, other) / min(peak, other)


def _remark(row: Subject, other: Subject, far: float) -> Remark:
    if row.system == other.system:
        fields, here = RATES, f"{workload.name(row)} in {titles.precision(row.precision)}"
        on, there = "in", titles.precision(other.precision)
        # a job that waits for its network or memory may be as fast in both
        severity = Severity.WARNING
    else:
        fields, here, on, there = FIGURES, workload.name(row), "on", workload.names([other])
        severity = Severity.ERROR if far >= FAR else Severity.WARNING
    printed = tuple(field for field in fields if row.figure(field))
    found = shown(row, printed)
    return Remark(
        row,
        severity,
        printed,
        f"other figures than {on} {there}",
        found,
        f"{here} has the figures of {there} to the digit, {found}; the dense peak of one is "
        f"{far:.3g} times that of the other",
        "correct the one of them that is a copy",
    )
