"""What a row's parallel sizes and batch sizes say of one another. Sizes not given count as 1."""

from math import prod

from perfdb import metrics
from perfdb.audit.subject import Subject

SPLITS = ("tensor_parallel", "pipeline_parallel", "context_parallel")


def size(row: Subject, field: str) -> int:
    """A parallel size; a page leaves out the column of one that is 1 in every row."""
    value: int | None = getattr(row, field)
    return value or 1


def known(row: Subject) -> bool:
    """Whether the row says anything of how its GPUs are split."""
    return any(getattr(row, field) is not None for field in SPLITS)


def model_parallel(row: Subject) -> int:
    """GPUs that hold one copy of the model: TP × PP × CP."""
    return prod(size(row, field) for field in SPLITS)


def data_parallel(row: Subject) -> int | None:
    """DP by the layout; as printed where the layout is unknown; None where it is not whole."""
    if not known(row):
        return row.data_parallel
    if row.num_gpus % model_parallel(row):
        return None
    sizes = (size(row, field) for field in SPLITS)
    return metrics.data_parallel(row.num_gpus, *sizes)


def batch_field(row: Subject) -> str:
    """Which batch size a gradient accumulation counts: the local one where there is one."""
    return "micro_batch_size" if row.local_batch_size is None else "local_batch_size"


def batch(row: Subject) -> int | None:
    """The samples of one gradient-accumulation step on one data-parallel rank."""
    return row.local_batch_size or row.micro_batch_size


def swapped(row: Subject) -> Subject | None:
    """The row with GBS and MBS exchanged, where MBS cannot be below GBS; None where it can."""
    micro = row.micro_batch_size
    if micro is None or micro <= row.global_batch_size:
        return None
    update = {"global_batch_size": micro, "micro_batch_size": row.global_batch_size}
    return row.model_copy(update=update)
