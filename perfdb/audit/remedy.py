"""Which figure to change in a row that counts other FLOPs per token than it must."""

from collections.abc import Iterator, Sequence

from perfdb.audit import flop_counts, rates
from perfdb.audit.subject import SHORT, TOTAL, Subject
from perfdb.flops.base import Convention
from perfdb.units import percent, significant


def of_count(row: Subject, factor: float) -> str | None:
    """The changes of one figure that mend a row which counts so many times what it must.

    Where two figures agree on its tokens/s, only those of its FLOPs.
    """
    return one_of(_of_figures(row, factor))


def of_formula(
    row: Subject, factor: float, convention: Convention, lengths: Sequence[int]
) -> str | None:
    """Those, and of some sequence lengths the one with which the formula gives what it counts."""
    of_length = (f"{SHORT['sequence_length']} {n:,}" for n in lengths if _fits(row, convention, n))
    return one_of([*_of_figures(row, factor), *of_length])


def one_of(changes: Sequence[str]) -> str | None:
    """Changes of which each is enough, in words."""
    if len(changes) < 2:
        return changes[0] if changes else None
    return "one of: " + ", ".join(changes)


def _of_figures(row: Subject, factor: float) -> list[str]:
    of_rate = [] if rates.vouched(row) else _rates(row, factor)
    return [*of_rate, *of_work(row, factor)]


def _fits(row: Subject, convention: Convention, length: int) -> bool:
    """Whether a row of such a length counts by the formula; a step time may then be at odds."""
    other = row.model_copy(update={"sequence_length": length})
    if rates.vouched(row) and not rates.vouched(other):
        return False
    counted = flop_counts.counted([other], rates.tokens)
    return any(convention in flop_counts.explaining(other, given) for _, given in counted)


def _rates(row: Subject, factor: float) -> Iterator[str]:
    for field in ("tokens_per_sec_per_gpu", TOTAL):
        if value := row.figure(field):
            yield f"{SHORT[field]} {significant(value * factor)}"
    if row.step_time_s:
        yield f"step time {significant(row.step_time_s / factor)} s"


def of_work(row: Subject, factor: float) -> Iterator[str]:
    """The change of the FLOPs that a row has; none where no GPU of its system computes so many."""
    tflops, limit = rates.tflops(row), rates.limit_tflops(row)
    if tflops and limit and tflops.value / factor > limit:
        return
    if row.model_tflops_per_sec_per_gpu:
        yield f"model TFLOP/s/GPU {significant(row.model_tflops_per_sec_per_gpu / factor)}"
    elif row.mfu:
        yield f"MFU {percent(row.mfu / factor, 2)}"
