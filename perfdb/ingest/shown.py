"""Results of the store as an ingest tells of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection

from perfdb.db import keys
from perfdb.db.tables import results
from perfdb.queries import results as questions
from perfdb.record import Note
from perfdb.units import UNKNOWN, number, percent, significant

FIGURES: Mapping[str, Callable[[float | None], str]] = {
    "step_time_s": significant,
    "tokens_per_sec_per_gpu": number,
    "model_tflops_per_sec_per_gpu": significant,
    "mfu": percent,
}
"""The figures of a result, and how each is printed."""

_UNITS = {
    "tokens_per_sec_per_gpu": "tokens/s/GPU",
    "model_tflops_per_sec_per_gpu": "TFLOP/s/GPU",
    "step_time_s": "s a step",
}


def exactly(field: str, value: float) -> str:
    """A figure with every digit that it was read with."""
    return f"{value * 100:.10g}%" if field == "mfu" else f"{value:,.10g}"


@dataclass(frozen=True)
class Shown:
    """A result: what it is of, its figures, and where it was read."""

    result_id: int
    key: str
    revision: int
    created_at: datetime
    run_id: str | None
    framework: str
    release: str | None
    system: str
    model: str
    task: str
    precision: str | None
    num_gpus: int
    global_batch_size: int
    step_time_s: float | None
    tokens_per_sec_per_gpu: float | None
    model_tflops_per_sec_per_gpu: float | None
    mfu: float | None
    tokens_per_sec: float | None
    flops_convention: str | None
    window: str | None
    raw: Mapping[str, str]
    notes: Sequence[Note]
    outcome: str
    withheld: Note | None
    source: str
    source_line: int | None

    @property
    def identity(self) -> str:
        """What a revision of it has too: the run, which may turn out to be of another case."""
        return self.run_id or self.key

    @property
    def figure(self) -> str:
        """'14,079 tokens/s/GPU': the first figure that is known."""
        for field, unit in _UNITS.items():
            if getattr(self, field) is not None:
                return f"{self.said(field)} {unit}"
        return UNKNOWN

    def said(self, field: str) -> str:
        """A figure by its field: with all digits of a page, and with those that a run's means."""
        value: float | None = getattr(self, field)
        if value is None or self.run_id is not None:
            return FIGURES[field](value)
        return exactly(field, value)


def of_ids(connection: Connection, ids: Iterable[int]) -> Iterator[Shown]:
    """The results of these numbers."""
    for some in keys.chunks(ids):
        yield from of(connection, results.c.id.in_(some))


def of(connection: Connection, which: ColumnElement[bool]) -> Iterator[Shown]:
    """The results that are meant, by their source and line."""
    for row in connection.execute(questions.listed(which)).mappings():
        yield Shown(**row)
