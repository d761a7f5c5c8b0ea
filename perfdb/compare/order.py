"""In which order rows of the same kind stand, wherever they are listed."""

import re

from perfdb.compare.base import Result


def natural(words: str) -> list[str | int]:
    """A key that sorts numbers as numbers: 0.9 before 0.10, Llama 3 8B before Llama 3 70B."""
    parts = re.split(r"([0-9]+)", words)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


def of_work(result: Result) -> tuple[object, ...]:
    """A key that sorts results by what was done: model, system, task, precision, then sizes."""
    work = (natural(result.model_title), natural(result.system_title), result.task)
    size = (result.num_gpus, result.sequence_length, result.global_batch_size)
    return (*work, result.precision or "", *size)
