"""No GPU computes faster than its dense peak, none that trains comes close, nor below 1 % of it."""

from collections.abc import Iterator, Sequence

from perfdb.audit import flop_counts, rates
from perfdb.audit.interval import Interval
from perfdb.audit.printed import figure, shown
from perfdb.audit.subject import TOTAL, Remark, Severity, Subject
from perfdb.catalog import titles
from perfdb.record import Origin
from perfdb.units import percent, significant

NAME = "peak"
MEANING = (
    "model TFLOP/s, as printed or as tokens/s come to by the model's formula, are 85 % at the most "
    "of the dense peak of the system at the precision, and those of a page 1 % at the least"
)

MOST = 0.85
"""The highest MFU of the pages in `data/published` is 66.07 %."""
USUAL = f"{MOST * 100:g} %"
LEAST = 0.01
"""The lowest is 19 %: a published figure so far below is in another unit, or of another column."""
_OF_TOKENS = ("tokens_per_sec_per_gpu", "step_time_s", TOTAL)


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows too close to the peak or too far below; to every peak where no precision is known."""
    tokens = rates.reader(rows)
    for row in rows:
        achieved, peak = figure(row, "model_tflops_per_sec_per_gpu"), rates.limit_tflops(row)
        implied = flop_counts.implied(row, tokens(row))
        if achieved and peak and (limit := _limit(row, achieved, peak)):
            yield _of_rate(row, "model_tflops_per_sec_per_gpu", achieved, peak, limit)
        elif row.mfu and row.mfu > (1 if achieved and peak else MOST):
            yield _of_mfu(row, row.mfu)
        elif implied and peak and (limit := _limit(row, implied, peak)):
            field = next(name for name in _OF_TOKENS if row.figure(name))
            yield _of_rate(row, field, implied, peak, limit)


def _limit(row: Subject, rate: Interval, peak: float) -> float | None:
    """The share of the peak that a rate is above, or below; None where it is within all."""
    if row.origin is Origin.PUBLISHED and rate.high < LEAST * peak:
        return LEAST
    return next((share for share in (1.0, MOST) if rate.low > share * peak), None)


def _of_mfu(row: Subject, mfu: float) -> Remark:
    found = percent(mfu, 2)
    severity, most = (Severity.ERROR, "100 %") if mfu > 1 else (Severity.WARNING, USUAL)
    message = f"an MFU of {found} is above {most}"
    return Remark(row, severity, ("mfu",), f"{most} at most", found, message)


def _of_rate(row: Subject, field: str, rate: Interval, peak: float, limit: float) -> Remark:
    above, slow = limit == 1, limit == LEAST
    usual = f"; training stays {'above' if slow else 'below'} {limit * 100:g} %"
    found = f"{significant(rate.value)} TFLOP/s"
    by_formula = f"{shown(row, [field])} comes to {found} by the model's formula, which"
    return Remark(
        row,
        Severity.ERROR if above else Severity.WARNING,
        (field,),
        f"{limit * peak:,g} TFLOP/s at {'least' if slow else 'most'}",
        found,
        f"{by_formula if field in _OF_TOKENS else found} is {percent(rate.value / peak)} of the "
        f"dense peak of {titles.system(row.system)} at "
        f"{titles.precision(row.precision) or 'any precision'}, {peak:,g} TFLOP/s"
        f"{'' if above else usual}",
    )
