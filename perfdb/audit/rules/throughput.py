"""Tokens/s/GPU, step time, GBS, sequence length and GPUs must agree."""

from collections.abc import Iterator, Sequence

from perfdb.audit import equations, mended, workload
from perfdb.audit.interval import Interval
from perfdb.audit.printed import figure
from perfdb.audit.rates import tokens_by_step_time
from perfdb.audit.release import Release
from perfdb.audit.subject import Remark, Subject
from perfdb.units import significant, told_apart

NAME = "throughput"
MEANING = "tokens/s/GPU is GBS × sequence length ÷ step time ÷ GPUs"
FIELDS = (
    "tokens_per_sec_per_gpu", "step_time_s", "global_batch_size", "sequence_length", "num_gpus",
)  # fmt: skip


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows that print both a rate and a step time which do not fit."""
    release = Release(rows)
    for row in rows:
        given, computed = figure(row, "tokens_per_sec_per_gpu"), tokens_by_step_time(row)
        if given and computed and not equations.throughput(row):
            yield _remark(row, given, computed, release)


def _remark(row: Subject, given: Interval, computed: Interval, release: Release) -> Remark:
    factor = given.value / computed.value
    right, found = told_apart(computed.value, given.value, 5)
    return Remark(
        row,
        workload.severity(factor - 1),
        FIELDS,
        f"{computed} tokens/s/GPU",
        f"{given} tokens/s/GPU",
        f"GBS {row.global_batch_size:,} × sequence length {row.sequence_length:,} ÷ "
        f"{row.step_time_s:g} s ÷ {row.num_gpus:,} GPUs is {right} tokens/s/GPU; the row says "
        f"{found}, {_times(factor)}",
        mended.suggestion(row, NAME, release),
    )


def _times(factor: float) -> str:
    """'1.999 times that'; '0.012 % more' where it would be 1 times that."""
    times = f"{factor:.4g}"
    if times != "1":
        return f"{times} times that"
    return f"{significant(abs(factor - 1) * 100, 2)} % {'more' if factor > 1 else 'less'}"
