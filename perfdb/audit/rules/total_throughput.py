"""The tokens/s of all GPUs together must follow from the figures of one, and from the step time."""

from collections.abc import Iterator, Sequence

from perfdb.audit import mended, rates, workload
from perfdb.audit.interval import Interval
from perfdb.audit.printed import figure
from perfdb.audit.release import Release
from perfdb.audit.subject import TOTAL, Remark, Subject
from perfdb.units import told_apart

NAME = "total_throughput"
MEANING = "tokens/s of all GPUs is tokens/s/GPU × GPUs, and GBS × sequence length ÷ step time"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows that print a total which does not fit; one remark a row."""
    release = Release(rows)
    for row in rows:
        if total := figure(row, TOTAL):
            ways = rates.totals(row).items()
            wrong = [way for way in ways if not total.or_cut().agrees(way[1])]
            yield from [_remark(row, total, *wrong[0], release)] if wrong else []


def _remark(
    row: Subject, total: Interval, field: str, computed: Interval, release: Release
) -> Remark:
    right, found = told_apart(computed.value, total.value, 6)
    return Remark(
        row,
        workload.severity(total.value / computed.value - 1),
        (TOTAL, field),
        f"{computed} tokens/s",
        f"{total} tokens/s",
        f"{_how(row, field)} is {right} tokens/s; the row says {found} for all GPUs",
        mended.suggestion(row, NAME, release),
    )


def _how(row: Subject, field: str) -> str:
    """How a total is computed by a field."""
    if field == "tokens_per_sec_per_gpu":
        return f"{row.tokens_per_sec_per_gpu:,g} tokens/s/GPU × {row.num_gpus:,} GPUs"
    batch = f"GBS {row.global_batch_size:,} × sequence length {row.sequence_length:,}"
    return f"{batch} ÷ {row.step_time_s:g} s"
