"""MFU must be model TFLOP/s ÷ the dense peak."""

from collections.abc import Iterator, Sequence

from perfdb.audit import equations, mended, rates, workload
from perfdb.audit.release import Release
from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.catalog import titles
from perfdb.units import percent, significant

NAME = "mfu"
MEANING = "MFU is model TFLOP/s ÷ the dense peak of the system at the precision"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows that print both, which do not fit."""
    release = Release(rows)
    for row in rows:
        if equations.mfu(row) is False:
            yield _remark(row, release)


def _remark(row: Subject, release: Release) -> Remark:
    given, achieved = row.mfu or 0.0, row.model_tflops_per_sec_per_gpu or 0.0
    peak = rates.peak_tflops(row) or 0.0
    computed, used = achieved / peak, achieved / given
    other = _named_peak(row, used, release)
    return Remark(
        row,
        Severity.INFO if other else workload.severity(given / computed - 1),
        ("mfu", "model_tflops_per_sec_per_gpu"),
        percent(computed, 2),
        percent(given, 2),
        f"{significant(achieved)} TFLOP/s of a peak of {peak:,g} is {percent(computed, 2)}; the "
        f"row says {percent(given, 2)}, which is of a peak of {used:,.4g}{other}",
        mended.suggestion(row, NAME, release),
    )


def _named_peak(row: Subject, used: float, release: Release) -> str:
    """', the system's at BF16', where a page measures against another precision's peak."""
    for name, peak in rates.peaks(row).items():
        near = abs(used / peak.tflops - 1) < workload.SMALL
        if near and peak.tflops != rates.peak_tflops(row) and not _is_told_apart(release, name):
            return f", the system's at {titles.precision(name)}"
    return ""


def _is_told_apart(release: Release, name: str) -> bool:
    """Whether another row's MFU is of its own precision's peak, and not of this one's."""
    others = ((row, rates.peaks(row).get(name)) for row in release.rows)
    return any(
        peak and peak.tflops != rates.peak_tflops(row) and equations.mfu(row)
        for row, peak in others
    )
