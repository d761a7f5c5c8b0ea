"""MFU must be model TFLOP/s ÷ the dense peak."""

from collections.abc import Iterator, Sequence

from perfdb.audit import workload
from perfdb.audit.interval import Interval
from perfdb.audit.printed import figure
from perfdb.audit.rates import peak_tflops, peaks
from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.catalog import titles
from perfdb.units import percent, significant

NAME = "mfu"
MEANING = "MFU is model TFLOP/s ÷ the dense peak of the system at the precision"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows that print both, which do not fit."""
    for row in rows:
        given, achieved = figure(row, "mfu"), figure(row, "model_tflops_per_sec_per_gpu")
        peak = peak_tflops(row)
        if given and achieved and peak:
            computed = achieved.over(peak)
            if not given.or_cut().agrees(computed.or_cut()):
                yield _remark(row, given, computed, peak)


def _remark(row: Subject, given: Interval, computed: Interval, peak: float) -> Remark:
    used = (row.model_tflops_per_sec_per_gpu or 0) / given.value
    other = _named_peak(row, used, peak)
    return Remark(
        row,
        Severity.INFO if other else workload.severity(given.value / computed.value - 1),
        ("mfu", "model_tflops_per_sec_per_gpu"),
        percent(computed.value, 2),
        percent(given.value, 2),
        f"{significant(row.model_tflops_per_sec_per_gpu)} TFLOP/s of a peak of {peak:,g} is "
        f"{percent(computed.value, 2)}; the row says {percent(given.value, 2)}, which is of a "
        f"peak of {used:,.4g}{other}",
        f"one of: MFU {percent(computed.value, 2)}, model TFLOP/s/GPU "
        f"{significant(given.value * peak)}",
    )


def _named_peak(row: Subject, used: float, own: float) -> str:
    """', the system's at BF16', where a page measures against another precision's peak."""
    others = ((name, peak.tflops) for name, peak in peaks(row).items() if peak.tflops != own)
    near = [name for name, other in others if abs(used / other - 1) < workload.SMALL]
    return f", the system's at {titles.precision(near[0])}" if near else ""
