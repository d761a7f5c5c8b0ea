"""Which rows may be held against one another, and how a message names a row."""

from collections.abc import Iterable, Sequence

from perfdb.audit.subject import Severity, Subject
from perfdb.catalog import titles
from perfdb.groups import grouped

SMALL, LARGE = 0.01, 0.05
"""Deviations: below the first, two averages over different steps can explain it."""


def releases(rows: Iterable[Subject]) -> Iterable[Sequence[Subject]]:
    """The rows of each release and origin, in the order given.

    Rows that nobody attributed to a release belong together where they are of one source.
    """
    return grouped(rows, _release).values()


def _release(row: Subject) -> tuple[str | None, ...]:
    source = row.source if row.release is None else None
    return (row.framework, row.release, row.container, row.origin, source)


def job(row: Subject) -> tuple[object, ...]:
    """What was trained on what, whatever the precision, the size of the machine and the batch."""
    words = (row.model, row.qualifiers, row.task, row.variant, row.kernels)
    return (row.system, *words, row.sequence_length)


def name(row: Subject) -> str:
    """'Llama 3 70B (dropout) LoRA on DGX-GB200'."""
    model = titles.qualified(titles.model(row.model), row.qualifiers)
    return f"{model} {titles.task(row.task)} on {titles.system(row.system)}"


def names(rows: Sequence[Subject]) -> str:
    """The systems of several rows, each once."""
    return ", ".join(dict.fromkeys(titles.system(row.system) for row in rows))


def apart(row: Subject, others: Sequence[Subject]) -> tuple[str, str]:
    """What tells a row from others, and them from it: the systems, else the GPUs too."""
    if all(other.system != row.system for other in others):
        return name(row), names(others)
    precision = f" in {titles.precision(row.precision)}" if row.precision else ""
    systems = grouped(others, lambda other: other.system).values()
    return f"{name(row)} with {row.num_gpus:,} GPUs{precision}", ", ".join(map(_sizes, systems))


def _sizes(rows: Sequence[Subject]) -> str:
    """'DGX-H100 with 16 to 2,048 GPUs'."""
    sizes = [row.num_gpus for row in rows]
    most = f" to {max(sizes):,}" if min(sizes) < max(sizes) else ""
    return f"{titles.system(rows[0].system)} with {min(sizes):,}{most} GPUs"


def severity(deviation: float) -> Severity:
    """How sure it is that a relative deviation beyond rounding is a mistake."""
    if abs(deviation) < SMALL:
        return Severity.INFO
    return Severity.WARNING if abs(deviation) < LARGE else Severity.ERROR
