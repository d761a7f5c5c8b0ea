"""More GPUs at the same batch, of each GPU or of all, should not make each GPU faster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from perfdb.audit import layout, rates, workload
from perfdb.audit.interval import Interval
from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.groups import grouped
from perfdb.units import percent, significant

NAME = "scaling"
MEANING = (
    "the rate per GPU does not rise with the number of GPUs at equal batch per GPU or "
    "equal global batch"
)

ALLOWED_RISE = 0.02
"""What runs differ by anyway."""

_SERIES: Final[Mapping[str, Callable[[Subject], object]]] = {
    "batch per GPU": lambda row: (_job(row), row.global_batch_size / row.num_gpus),
    "global batch": lambda row: (_job(row), row.global_batch_size),
}
"""By what batch, which stays the same, rows are a series: of weak scaling, and of strong."""


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Neighbours in a scaling series of which the larger is faster per GPU."""
    tokens = rates.reader(rows)
    for batch, key in _SERIES.items():
        for series in grouped(rows, key).values():
            measured = [(row, one) for row in series if (one := tokens(row) or rates.tflops(row))]
            best = _best_by_size(measured)
            for (small, below), (large, above) in pairwise(best):
                if above.low > below.high * (1 + ALLOWED_RISE):
                    yield _remark(small, below, large, above, batch)


def _job(row: Subject) -> tuple[object, ...]:
    return (*workload.job(row), row.precision)


def _best_by_size(
    measured: Sequence[tuple[Subject, Interval]],
) -> list[tuple[Subject, Interval]]:
    """The fastest row at each number of GPUs, the smallest first."""
    ordered = sorted(measured, key=lambda one: (one[0].num_gpus, one[1].value))
    return list({row.num_gpus: (row, one) for row, one in ordered}.values())


def _remark(small: Subject, below: Interval, large: Subject, above: Interval, batch: str) -> Remark:
    rise = above.value / below.value - 1
    why = _explanation(small, large)
    measure = "tokens_per_sec_per_gpu" if rates.tokens(large) else "model_tflops_per_sec_per_gpu"
    return Remark(
        large,
        Severity.INFO if why else Severity.WARNING,
        (measure, "num_gpus"),
        f"{significant(below.value)} per GPU at most, as on {small.num_gpus:,} GPUs",
        f"{significant(above.value)} per GPU on {large.num_gpus:,} GPUs",
        f"{workload.name(large)}: each of {large.num_gpus:,} GPUs is {percent(rise)} faster than "
        f"each of {small.num_gpus:,}, at the same {batch}{why}",
    )


def _explanation(small: Subject, large: Subject) -> str:
    """What can make it true; empty where nothing in the rows does."""
    if any(layout.size(small, field) != layout.size(large, field) for field in layout.SPLITS):
        return "; their layouts differ"
    if large.fsdp_enabled or (large.fsdp_size or 0) > (small.fsdp_size or 0):
        return "; with FSDP each of more GPUs holds less of the model"
    return ""
