"""Which change of one size makes a row's GPUs, layout and batches agree with one another."""

from collections.abc import Iterator

from perfdb.audit import layout
from perfdb.audit.printed import figure
from perfdb.audit.remedy import one_of
from perfdb.audit.subject import SHORT, Subject


def suggestion(row: Subject) -> str | None:
    """Those changes in words: each alone leaves nothing of these sizes at odds.

    A row whose rate and step time agree has its GBS and GPUs right.
    """
    changes = [
        f"{SHORT[field]} {size:,}"
        for field, size in _changes(row)
        if size >= 1 and _agrees(row.model_copy(update={field: size}))
    ]
    return one_of(changes)


def _agrees(row: Subject) -> bool:
    """Whether the layout gives the DP, and the batches give the accumulation steps, as printed."""
    batch, ranks = layout.batch(row), layout.data_parallel(row)
    if row.num_gpus % layout.model_parallel(row) or row.data_parallel not in (None, ranks):
        return False
    if not batch or not ranks:
        return True
    steps, rest = divmod(row.global_batch_size, batch * ranks)
    return not rest and row.gradient_accumulation in (None, steps)


def _changes(row: Subject) -> Iterator[tuple[str, int]]:
    """Sizes that one equation of the row gives, by their fields; of those the others may hold."""
    batch, steps, gbs = layout.batch(row), row.gradient_accumulation, row.global_batch_size
    ranks = layout.data_parallel(row)
    if batch and ranks:
        yield "gradient_accumulation", gbs // (batch * ranks)
    if steps and ranks:
        yield layout.batch_field(row), gbs // (ranks * steps)
    if batch and steps and ranks and not figure(row, "step_time_s"):
        yield "global_batch_size", batch * ranks * steps
    if not layout.known(row):
        return
    copies = gbs // (batch * steps) if batch and steps else row.data_parallel
    if copies and not figure(row, "step_time_s"):
        yield "num_gpus", copies * layout.model_parallel(row)
    for field in layout.SPLITS:
        size = layout.size(row, field)
        others = layout.model_parallel(row) // size
        yield field, row.num_gpus // (copies * others) if copies else size // 2
