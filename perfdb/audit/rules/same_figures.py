"""Two GPUs of which one is faster by far do not train at the same rate to the digit."""

from collections.abc import Iterator, Sequence
from operator import itemgetter

from perfdb.audit import flop_counts, workload
from perfdb.audit.printed import figure, shown
from perfdb.audit.rates import limit_tflops
from perfdb.audit.subject import FIGURES, Remark, Severity, Subject
from perfdb.groups import grouped
from perfdb.record import Origin

NAME = "same_figures"
MEANING = "systems of different peaks do not print the same two figures for the same work"

FEWEST = 2
"""Figures that are the same; what is wrong with a single one other rules find."""
COARSEST = 0.0101
"""The last place of a figure of three digits, as a share of it; with fewer two are soon equal."""
FAR = 2.0
"""Peaks so far apart leave no room for chance."""


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Published rows with the figures of a row of another system."""
    telling = [row for row in rows if row.origin is Origin.PUBLISHED and _num_fine(row) >= FEWEST]
    for alike in grouped(telling, _said).values():
        known = [(peak, row) for row in alike if (peak := limit_tflops(row))]
        ends = sorted(known, key=itemgetter(0))
        for peak, row in known:
            other, there = max(ends[0], ends[-1], key=lambda one: _apart(peak, one[0]))
            if other != peak:
                yield _remark(row, there, _apart(peak, other))


def _num_fine(row: Subject) -> int:
    given = filter(None, (figure(row, field) for field in FIGURES))
    return sum(one.uncertainty <= COARSEST for one in given)


def _said(row: Subject) -> tuple[object, ...]:
    """What was done in which precision, and all figures."""
    return (*flop_counts.work(row), row.precision, *map(row.figure, FIGURES))


def _apart(peak: float, other: float) -> float:
    """How many times one peak is the other."""
    return max(peak, other) / min(peak, other)


def _remark(row: Subject, other: Subject, far: float) -> Remark:
    fields = tuple(field for field in FIGURES if row.figure(field))
    found, there = shown(row, fields), workload.names([other])
    return Remark(
        row,
        Severity.ERROR if far >= FAR else Severity.WARNING,
        fields,
        f"other figures than on {there}",
        found,
        f"{workload.name(row)} has the figures of {there} to the digit, {found}; the dense peak of "
        f"one is {far:.3g} times that of the other",
        "correct the one of them that is a copy",
    )
