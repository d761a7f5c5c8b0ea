"""The rates that a program prints beside its steps must be those that follow from the steps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from perfdb.audit import flop_counts, layout, rates, workload
from perfdb.audit.interval import within
from perfdb.audit.subject import SHORT, Remark, Severity, Subject
from perfdb.catalog import titles
from perfdb.units import percent, significant

NAME = "emitted"
MEANING = "the rates that a program prints itself are those that follow from its steps"

_ROUNDING: Final = 0.005
"""By how much a rate may be off that is printed with three figures."""
_COMPUTED: Final = {"step_time_s": "step_time_mean_s"}
"""A program's own step time is a mean; the others are medians, as perfdb's are."""
_UNEXPLAINED: Final = {"tokens_per_sec_per_gpu": Severity.ERROR}
"""Tokens and time are counted in one way alone: the batch, the length or the GPUs are not those
that ran. FLOPs may be counted in a way that is not known, and a mean of times with pauses."""


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """A remark for each printed rate that is another than the computed one; why, where known."""
    for row in rows:
        for field, explain in _WHY.items():
            printed, computed = row.emitted.get(field), row.figure(_COMPUTED.get(field, field))
            if printed and computed and not _near(printed, computed):
                yield _remark(row, field, (printed, computed), explain(row, printed))


def _near(one: float, other: float) -> bool:
    return abs(one / other - 1) < workload.SMALL


def _remark(row: Subject, field: str, rates_: tuple[float, float], why: str | None) -> Remark:
    printed, computed = rates_
    found, expected = (_shown(field, rate) for rate in rates_)
    factor = printed / computed
    small = abs(factor - 1) < workload.LARGE
    return Remark(
        row,
        Severity.INFO if why or small else _UNEXPLAINED.get(field, Severity.WARNING),
        (field,),
        expected,
        found,
        f"the program prints {found}, {factor:.3g} times the {expected} that its steps come to; "
        f"{why or 'nothing known explains it'}",
    )


def _shown(field: str, rate: float) -> str:
    if field == "mfu":
        return f"{percent(rate, 2)} MFU"
    unit = "s a step" if field == "step_time_s" else SHORT[field]
    return f"{significant(rate)} {unit}"


def _nothing(row: Subject, printed: float) -> str | None:
    """A time has no convention."""
    return None


def _divisor(row: Subject, printed: float) -> str | None:
    """The ranks that a program leaves out when it divides the tokens of all by its GPUs."""
    tensor, pipeline, context = (layout.size(row, field) for field in layout.SPLITS)
    left_out = {
        "data and context parallelism, not by TP × PP": tensor * pipeline,
        "data parallelism, not by TP × PP × CP": tensor * pipeline * context,
    }
    factor = printed / (row.tokens_per_sec_per_gpu or printed)
    fitting = [divisor for divisor, ranks in left_out.items() if _near(factor, ranks)]
    return f"it divides by {fitting[0]}" if fitting else None


def _convention(row: Subject, printed: float) -> str | None:
    """The FLOPs convention by which the printed TFLOP/s follow from the steps."""
    if not row.tokens_per_sec_per_gpu:
        return None
    per_token = 1000 * printed / row.tokens_per_sec_per_gpu
    followed = flop_counts.explaining(row, within(per_token, _ROUNDING * per_token))
    return f"it follows the convention {followed[0].name!r}" if followed else None


def _peak(row: Subject, printed: float) -> str | None:
    """Another precision's peak that the MFU is of, else the convention of its TFLOP/s."""
    achieved = row.model_tflops_per_sec_per_gpu
    for name, peak in rates.peaks(row).items():
        if achieved and _near(printed * peak.tflops, achieved):
            return (
                f"it is of the system's peak at {titles.precision(name)}, {peak.tflops:,g} TFLOP/s"
            )
    own = rates.peak_tflops(row)
    return _convention(row, printed * own) if own else None


_WHY: Final[Mapping[str, Callable[[Subject, float], str | None]]] = {
    "step_time_s": _nothing,
    "tokens_per_sec_per_gpu": _divisor,
    "model_tflops_per_sec_per_gpu": _convention,
    "mfu": _peak,
}
