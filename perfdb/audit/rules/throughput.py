"""Tokens/s/GPU, step time, GBS, sequence length and GPUs must agree."""

from collections.abc import Iterator, Sequence

from perfdb.audit import workload
from perfdb.audit.interval import Interval
from perfdb.audit.printed import figure
from perfdb.audit.rates import tokens_by_step_time, tokens_in
from perfdb.audit.subject import SHORT, Remark, Subject
from perfdb.units import significant, told_apart

NAME = "throughput"
MEANING = "tokens/s/GPU is GBS × sequence length ÷ step time ÷ GPUs"
FIELDS = (
    "tokens_per_sec_per_gpu", "step_time_s", "global_batch_size", "sequence_length", "num_gpus",
)  # fmt: skip


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows that print both a rate and a step time which do not fit."""
    for row in rows:
        given = figure(row, "tokens_per_sec_per_gpu")
        step_time, computed = figure(row, "step_time_s"), tokens_by_step_time(row)
        if not (given and step_time and computed):
            continue
        if not given.or_cut().agrees(tokens_in(row, step_time.or_cut())):
            yield _remark(row, given, computed)


def _remark(row: Subject, given: Interval, computed: Interval) -> Remark:
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
        _suggestion(row, given, factor),
    )


def _times(factor: float) -> str:
    """'1.999 times that'; '0.012 % more' where it would be 1 times that."""
    times = f"{factor:.4g}"
    if times != "1":
        return f"{times} times that"
    return f"{significant(abs(factor - 1) * 100, 2)} % {'more' if factor > 1 else 'less'}"


def _suggestion(row: Subject, given: Interval, factor: float) -> str:
    """The changes of one field that make the row consistent; counts only where they come whole."""
    changes = [
        f"tokens/s/GPU {significant(given.value / factor, 5)}",
        f"step time {significant((row.step_time_s or 0) / factor, 5)} s",
    ]
    by = {"global_batch_size": factor, "sequence_length": factor, "num_gpus": 1 / factor}
    for field, scale in by.items():
        value = getattr(row, field) * scale
        if round(value) != getattr(row, field) and abs(value - round(value)) < 1e-3 * value:
            changes.append(f"{SHORT[field]} {round(value):,}")
    return "one of: " + ", ".join(changes)
