"""In which order rows of the same kind stand, wherever they are listed."""

from perfdb.compare.base import Result
from perfdb.versions import natural


def of_work(result: Result) -> tuple[object, ...]:
    """A key that sorts results by what was done: model, system, task, precision, then sizes."""
    work = (natural(result.model_title), natural(result.system_title), result.task)
    size = (result.num_gpus, result.sequence_length, result.global_batch_size)
    return (*work, result.precision or "", *size)
