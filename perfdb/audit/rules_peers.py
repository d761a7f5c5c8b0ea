"""Rules over several rows: other pages, other systems and precisions, other numbers of GPUs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Final

from perfdb import fields, metrics
from perfdb.audit import equations, flop_counts, rules
from perfdb.audit.equations import (
    FIGURES,
    RATES,
    SPLITS,
    TOTAL,
    dense_peak,
    limit_tflops,
    peak_tflops,
)
from perfdb.audit.interval import Interval, figure, shown
from perfdb.audit.rules import ReleaseRows, identity, job, release_rule, row_rule
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.record import Finding, Result, Severity
from perfdb.units import number, percent, significant

Rated = tuple[Result, Interval]
"""A row and its rate."""


@row_rule("pages that print the same case of the same release print the same figures")
def two_pages(row: Result, release: ReleaseRows) -> Iterator[Finding]:
    """One finding for each other page that prints other figures of a current result."""
    for other in release.elsewhere.get(row.result_id, ()):
        pairs = [(name, figure(row, name), figure(other, name)) for name in (*FIGURES, TOTAL)]
        differing = {
            name: here.value / there.value - 1
            for name, here, there in pairs
            if here and there and not here.or_cut().agrees(there.or_cut())
        }
        if not differing:
            continue
        names, place = tuple(differing), other.place
        yield Finding(
            **identity("two_pages", row),
            severity=rules.severity(max(differing.values(), key=abs)),
            fields=names,
            expected=f"{shown(other, names)} ({place})",
            found=shown(row, names),
            message=f"two pages print {rules.name(row)}: here {shown(row, names)}, in {place} "
            f"{shown(other, names)}; this one was read last and holds",
            suggestion="mend the page that is wrong and ingest it again",
        )


FEWEST = 2
"""Figures that are the same; what is wrong with a single one other rules find."""
COARSEST = 0.0101
"""The last place of a figure of three digits, as a share of it; with fewer two are soon equal."""
FAR = 2.0
"""Peaks of systems so far apart leave no room for chance."""
COPIED: Final = tuple(field for field in FIGURES if field != "mfu")
"""What is copied from one precision to another; MFU is of the peak, and may be computed anew."""


@release_rule(
    "systems, or precisions of a system, with different peaks do not print the same two "
    "figures for the same work"
)
def same_figures(release: ReleaseRows) -> Iterator[Finding]:
    """Published rows with the figures of a row of another system or precision."""
    published = [row for row in release.rows if not row.is_measured]

    def is_fine(row: Result, names: Sequence[str]) -> bool:
        known = [one for name in names if (one := figure(row, name))]
        return sum(one.uncertainty <= COARSEST for one in known) >= FEWEST

    def in_one_precision(row: Result) -> tuple[object, ...]:
        return (*flop_counts.work(row), row.precision, *map(row.figure, FIGURES))

    def on_one_system(row: Result) -> tuple[object, ...]:
        size = (row.system, row.num_gpus, row.global_batch_size)
        return (*flop_counts.work(row), *size, *map(row.figure, COPIED))

    fine = [row for row in published if is_fine(row, FIGURES)]
    yield from _copies(fine, in_one_precision)
    precise = [row for row in published if row.precision and is_fine(row, COPIED)]
    yield from _copies(precise, on_one_system)


def _copies(
    rows: Sequence[Result], key: Callable[[Result], tuple[object, ...]]
) -> Iterator[Finding]:
    """Rows that print the same as one of another peak, of several the one furthest off."""
    for group in grouped(rows, key).values():
        known = [(peak, row) for row in group if (peak := limit_tflops(row))]
        ends = sorted(known, key=itemgetter(0))
        for peak, row in known:
            far, other = max(
                ((max(peak, one) / min(peak, one), there) for one, there in (ends[0], ends[-1])),
                key=itemgetter(0),
            )
            if far > 1:
                yield _copy(row, other, far)


def _copy(row: Result, other: Result, far: float) -> Finding:
    if row.system == other.system:
        names, here = COPIED, f"{rules.name(row)} in {titles.precision(row.precision)}"
        on, there = "in", titles.precision(other.precision)
        # a job that waits for its network or memory may be as fast in both
        severity = Severity.WARNING
    else:
        names, here, on, there = FIGURES, rules.name(row), "on", titles.system(other.system)
        severity = Severity.ERROR if far >= FAR else Severity.WARNING
    printed = tuple(name for name in names if row.figure(name))
    found = shown(row, printed)
    return Finding(
        **identity("same_figures", row),
        severity=severity,
        fields=printed,
        expected=f"other figures than {on} {there}",
        found=found,
        message=f"{here} has the figures of {there} to the digit, {found}; the dense peak of one "
        f"is {far:.3g} times that of the other",
        suggestion="correct the one of them that is a copy",
    )


@release_rule("a row has every figure that other rows of the table have and that it determines")
def missing_figure(release: ReleaseRows) -> Iterator[Finding]:
    """Published rows that lack a figure which their table has, with the value it should have."""
    published = [row for row in release.rows if not row.is_measured]
    for table in grouped(published, lambda row: (row.source, frozenset(row.raw))).values():
        printed = [name for name in FIGURES if any(row.figure(name) is not None for row in table)]
        lacking = [(row, name) for row in table for name in printed if row.figure(name) is None]
        for row, name in lacking:
            if (known := _value(row, name, release)) is None:
                continue
            value, how = known
            text = number(value, metrics.METRICS[name].digits if value < 100 else 0)
            short = fields.short(name)
            yield Finding(
                **identity("missing_figure", row),
                severity=Severity.WARNING,
                fields=(name,),
                expected=text,
                message=f"{short} is missing; other rows have it, and here it is {text}: {how}",
                suggestion=f"{short} {text}",
            )


def _value(row: Result, field: str, release: ReleaseRows) -> tuple[float, str] | None:
    """A figure by the others of its row, and how it follows; None where they do not give it."""
    speed, achieved = equations.tokens(row), equations.tflops(row)
    if field == "step_time_s":
        how = "GBS × sequence length ÷ tokens/s ÷ GPUs"
        rate = figure(row, "tokens_per_sec_per_gpu")
        return (equations.tokens_per_gpu(row) / rate.value, how) if rate else None
    if field == "mfu":
        peak = peak_tflops(row)
        how = f"of a dense peak of {peak or 0:,g} TFLOP/s"
        return (metrics.mfu(achieved.value, peak), how) if achieved and peak else None
    if field == "tokens_per_sec_per_gpu" and speed:
        return speed.value, "GBS × sequence length ÷ step time ÷ GPUs"
    count = release.expected(row, row)
    per_token = count.value if count else 0.0
    at = f"at {per_token:,.4g} GFLOP per token"
    if field == "tokens_per_sec_per_gpu" and achieved and per_token:
        return achieved.value * 1000 / per_token, f"model TFLOP/s/GPU {at}"
    return (speed.value * per_token / 1000, f"tokens/s/GPU {at}") if speed and per_token else None


def _rated(rows: Sequence[Result], release: ReleaseRows) -> list[Rated]:
    """Tokens/s; where the work is the same, model TFLOP/s are as good."""
    rates = ((row, release.tokens(row) or equations.tflops(row)) for row in rows)
    return [(row, rate) for row, rate in rates if rate]


def _neighbors(
    group: Sequence[Rated], place: Callable[[Result], float | None]
) -> Iterator[tuple[Rated, Rated]]:
    """The fastest rows at each place, such as the number of GPUs, next to one another."""
    ordered = sorted(group, key=lambda one: place(one[0]) or 0)
    places = grouped(ordered, lambda one: place(one[0])).values()
    return pairwise(max(rows, key=lambda one: one[1].value) for rows in places)


@release_rule("FP8 is not slower than BF16 at the same work, nor FP4 than FP8")
def faster_precision(release: ReleaseRows) -> Iterator[Finding]:
    """The best of a precision that is slower than the best of one with a lower peak."""
    # It is not known how fast a row is whose two rates do not go together.
    doubtful = {id(row) for (row, _), _ in release.outliers}
    rows = [row for row in release.rows if id(row) not in doubtful and dense_peak(row)]

    def series(one: Rated) -> tuple[object, ...]:
        return (*job(one[0]), one[0].num_gpus, one[0].global_batch_size)

    for group in grouped(_rated(rows, release), series).values():
        for (slow, above), (fast, below) in _neighbors(group, dense_peak):
            if below.high >= above.low:
                continue
            lower, higher = titles.precision(fast.precision), titles.precision(slow.precision)
            yield Finding(
                **identity("faster_precision", fast),
                severity=Severity.WARNING,
                fields=("tokens_per_sec_per_gpu", "precision"),
                expected=f"{significant(above.value)} or more, as with {higher}",
                found=significant(below.value),
                message=f"{rules.name(fast)} is slower in {lower} than in {higher}: "
                f"{significant(below.value)} against {significant(above.value)} on "
                f"{fast.num_gpus:,} GPUs",
            )


ALLOWED_RISE = 0.02
"""What runs differ by anyway."""
_BATCHES: Final[Mapping[str, Callable[[Result], float]]] = {
    "batch per GPU": lambda row: row.global_batch_size / row.num_gpus,
    "global batch": lambda row: row.global_batch_size,
}
"""The batch that stays the same in a series: of weak scaling, and of strong."""


@release_rule(
    "the rate per GPU does not rise with the number of GPUs at equal batch per GPU or equal global "
    "batch"
)
def scaling(release: ReleaseRows) -> Iterator[Finding]:
    """Neighbors in a scaling series of which the larger is faster per GPU."""
    rated = _rated(release.rows, release)
    for batch, of_row in _BATCHES.items():
        for group in grouped(rated, partial(_series, of_row)).values():
            for smaller, larger in _neighbors(group, lambda row: row.num_gpus):
                if larger[1].low > smaller[1].high * (1 + ALLOWED_RISE):
                    yield _faster(smaller, larger, batch)


def _series(batch: Callable[[Result], float], one: Rated) -> tuple[object, ...]:
    return (*job(one[0]), one[0].precision, batch(one[0]))


def _faster(smaller: Rated, larger: Rated, batch: str) -> Finding:
    (small, below), (large, above) = smaller, larger
    why = ""
    if any(equations.size(small, name) != equations.size(large, name) for name in SPLITS):
        why = "; their layouts differ"
    elif large.fsdp_enabled or (large.fsdp_size or 0) > (small.fsdp_size or 0):
        why = "; with FSDP each of more GPUs holds less of the model"
    return Finding(
        **identity("scaling", large),
        severity=Severity.INFO if why else Severity.WARNING,
        fields=(RATES[0] if equations.tokens(large) else RATES[1], "num_gpus"),
        expected=f"{significant(below.value)} per GPU at most, as on {small.num_gpus:,} GPUs",
        found=f"{significant(above.value)} per GPU on {large.num_gpus:,} GPUs",
        message=f"{rules.name(large)}: each of {large.num_gpus:,} GPUs is "
        f"{percent(above.value / below.value - 1)} faster than each of {small.num_gpus:,}, at the "
        f"same {batch}{why}",
    )
