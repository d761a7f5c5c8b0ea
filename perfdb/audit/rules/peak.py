"""No GPU computes faster than its dense peak, and none that trains comes close to it."""

from collections.abc import Iterator, Sequence

from perfdb.audit.interval import Interval
from perfdb.audit.printed import figure
from perfdb.audit.rates import limit_tflops
from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.catalog import titles
from perfdb.units import percent, significant

NAME = "peak"
MEANING = "model TFLOP/s is at most 85 % of the dense peak of the system at the precision"

MOST = 0.85
"""The highest MFU of the pages in `data/published` is 66.07 %."""
USUAL = f"{MOST * 100:g} %"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows too close to the peak; to every peak of the system where the precision is not known."""
    for row in rows:
        achieved, peak = figure(row, "model_tflops_per_sec_per_gpu"), limit_tflops(row)
        if achieved and peak and achieved.low > MOST * peak:
            yield _of_rate(row, achieved, peak)
        elif row.mfu and row.mfu > (1 if achieved and peak else MOST):
            yield _of_mfu(row, row.mfu)


def _of_mfu(row: Subject, mfu: float) -> Remark:
    found = percent(mfu, 2)
    severity, most = (Severity.ERROR, "100 %") if mfu > 1 else (Severity.WARNING, USUAL)
    message = f"an MFU of {found} is above {most}"
    return Remark(row, severity, ("mfu",), f"{most} at most", found, message)


def _of_rate(row: Subject, achieved: Interval, peak: float) -> Remark:
    above = achieved.low > peak
    return Remark(
        row,
        Severity.ERROR if above else Severity.WARNING,
        ("model_tflops_per_sec_per_gpu",),
        f"{peak if above else MOST * peak:,g} TFLOP/s at most",
        f"{significant(achieved.value)} TFLOP/s",
        f"{significant(achieved.value)} TFLOP/s is {percent(achieved.value / peak)} of the dense "
        f"peak of {titles.system(row.system)} at "
        f"{titles.precision(row.precision) or 'any precision'}, {peak:,g} TFLOP/s"
        f"{'' if above else f'; training stays below {USUAL}'}",
    )
