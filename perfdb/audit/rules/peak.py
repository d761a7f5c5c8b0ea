"""No GPU computes faster than its dense peak: MFU cannot be above 100 %."""

from collections.abc import Iterator, Sequence

from perfdb import catalog
from perfdb.audit.printed import figure
from perfdb.audit.rates import peak_tflops
from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.catalog import titles
from perfdb.units import percent, significant

NAME = "peak"
MEANING = "model TFLOP/s is below the dense peak of the system at the precision"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows above the peak; above every peak of the system where the precision is not known."""
    for row in rows:
        achieved, peak = figure(row, "model_tflops_per_sec_per_gpu"), _peak(row)
        if achieved and peak and achieved.low > peak:
            yield _above(row, achieved.value, peak)
        elif row.mfu and row.mfu > 1:
            found = percent(row.mfu, 2)
            message = f"an MFU of {found} is above 100 %"
            yield Remark(row, Severity.ERROR, ("mfu",), "100 % at most", found, message)


def _peak(row: Subject) -> float | None:
    system = catalog.systems().get(row.system)
    known = peak_tflops(row)
    if known or system is None or row.precision:
        return known
    return max((peak.tflops for peak in system.peaks.values()), default=None)


def _above(row: Subject, achieved: float, peak: float) -> Remark:
    return Remark(
        row,
        Severity.ERROR,
        ("model_tflops_per_sec_per_gpu",),
        f"{peak:,g} TFLOP/s at most",
        f"{significant(achieved)} TFLOP/s",
        f"{significant(achieved)} TFLOP/s is {percent(achieved / peak)} of the dense peak of "
        f"{titles.system(row.system)} at {titles.precision(row.precision) or 'any precision'}, "
        f"{peak:,g} TFLOP/s",
    )
