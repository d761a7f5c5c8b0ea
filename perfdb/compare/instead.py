"""What the other release has in place of work that it lacks: the same in all fields but one."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter, ne
from typing import Final

from perfdb.catalog import titles
from perfdb.compare.base import Side
from perfdb.compare.result import Result
from perfdb.record import WORKLOAD_FIELDS, Scalar

AT: Final[Mapping[str, Callable[[Result], str]]] = {
    "num_gpus": lambda it: f"{it.num_gpus:,} GPUs",
    "precision": lambda it: titles.precision(it.precision) or "an unknown precision",
    "sequence_length": lambda it: f"sequence {it.sequence_length:,}",
    "global_batch_size": lambda it: f"GBS {it.global_batch_size:,}",
}
"""The fields in which a recipe is changed on purpose, and how their values read."""

_WORK: Final = attrgetter(*WORKLOAD_FIELDS)


def instead(side: Side, others: Iterable[Side]) -> dict[str, list[Scalar | None]]:
    """The values that others have of a field, where they differ from a side in that field alone."""
    found: dict[str, list[Scalar | None]] = {}
    for field, other in _alike(side, others):
        value = getattr(other, field)
        if value not in found.setdefault(field, []):
            found[field].append(value)
    return found


def said(side: Side, others: Iterable[Side]) -> str:
    """'B has it at GBS 128 or FP8-MX'; empty where it has nothing of the kind."""
    found = dict.fromkeys(AT[field](other) for field, other in _alike(side, others))
    return f"B has it at {' or '.join(found)}" if found else ""


def _alike(side: Side, others: Iterable[Side]) -> Iterator[tuple[str, Result]]:
    work = _WORK(side.shown)
    for other in others:
        differs = list(map(ne, work, _WORK(other.shown)))
        if sum(differs) == 1 and (field := WORKLOAD_FIELDS[differs.index(True)]) in AT:
            yield field, other.shown
