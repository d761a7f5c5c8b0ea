"""The tokens/s of all GPUs together must follow from the figures of one, and from the step time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfdb.audit import workload
from perfdb.audit.interval import Interval
from perfdb.audit.printed import figure
from perfdb.audit.subject import TOTAL, Remark, Subject
from perfdb.units import significant, told_apart

NAME = "total_throughput"
MEANING = "tokens/s of all GPUs is tokens/s/GPU × GPUs, and GBS × sequence length ÷ step time"


@dataclass(frozen=True)
class _Way:
    """One way to come to the total: by a field, and what this field would have to be."""

    field: str
    how: str
    total: Interval
    right: str


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows that print a total which does not fit; one remark a row."""
    for row in rows:
        if total := figure(row, TOTAL):
            wrong = [way for way in _ways(row, total) if not total.or_cut().agrees(way.total)]
            yield from [_remark(row, total, wrong[0])] if wrong else []


def _ways(row: Subject, total: Interval) -> Iterator[_Way]:
    """By the rate of one GPU, then by the step time; with room for digits that were cut off."""
    rate, step_time = figure(row, "tokens_per_sec_per_gpu"), figure(row, "step_time_s")
    if rate:
        how = f"{rate.value:,g} tokens/s/GPU × {row.num_gpus:,} GPUs"
        computed = rate.or_cut().times(row.num_gpus)
        right = f"tokens/s/GPU {significant(total.value / row.num_gpus, 5)}"
        yield _Way("tokens_per_sec_per_gpu", how, computed, right)
    if step_time:
        tokens = row.global_batch_size * row.sequence_length
        batch = f"GBS {row.global_batch_size:,} × sequence length {row.sequence_length:,}"
        how, computed = f"{batch} ÷ {step_time.value:g} s", step_time.or_cut().under(tokens)
        right = f"step time {significant(tokens / total.value, 5)} s"
        yield _Way("step_time_s", how, computed, right)


def _remark(row: Subject, total: Interval, way: _Way) -> Remark:
    right, found = told_apart(way.total.value, total.value, 6)
    return Remark(
        row,
        workload.severity(total.value / way.total.value - 1),
        (TOTAL, way.field),
        f"{way.total} tokens/s",
        f"{total} tokens/s",
        f"{way.how} is {right} tokens/s; the row says {found} for all GPUs",
        f"one of: tokens/s {right}, {way.right}",
    )
