"""Which figure to change in a row that counts other FLOPs per token than it must."""

from collections.abc import Iterator

from perfdb.audit import rates
from perfdb.audit.subject import SHORT, TOTAL, Subject
from perfdb.units import percent, significant


def of_count(row: Subject, factor: float) -> str | None:
    """The changes of one figure that mend a row which counts so many times what it must.

    Where two figures agree on its tokens/s, only those of its FLOPs.
    """
    of_rate = [] if rates.vouched(row) else _rates(row, factor)
    changes = [*of_rate, *_work(row, factor)]
    if len(changes) < 2:
        return changes[0] if changes else None
    return "one of: " + ", ".join(changes)


def _rates(row: Subject, factor: float) -> Iterator[str]:
    for field in ("tokens_per_sec_per_gpu", TOTAL):
        if value := row.figure(field):
            yield f"{SHORT[field]} {significant(value * factor)}"
    if row.step_time_s:
        yield f"step time {significant(row.step_time_s / factor)} s"


def _work(row: Subject, factor: float) -> Iterator[str]:
    if row.model_tflops_per_sec_per_gpu:
        yield f"model TFLOP/s/GPU {significant(row.model_tflops_per_sec_per_gpu / factor)}"
    elif row.mfu:
        yield f"MFU {percent(row.mfu / factor, 2)}"
