"""Results of the store as an ingest tells of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection

from perfdb.db import keys
from perfdb.db.tables import results
from perfdb.queries import shown as questions
from perfdb.units import UNKNOWN, number, significant


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
    outcome: str
    withheld: str | None
    source: str
    source_line: int | None

    @property
    def identity(self) -> str:
        """What a revision of it has too: the run, which may turn out to be of another case."""
        return self.run_id or self.key

    @property
    def figure(self) -> str:
        """'14,079 tokens/s/GPU': the first figure that is known."""
        if self.tokens_per_sec_per_gpu is not None:
            return f"{number(self.tokens_per_sec_per_gpu)} tokens/s/GPU"
        if self.model_tflops_per_sec_per_gpu is not None:
            return f"{significant(self.model_tflops_per_sec_per_gpu)} TFLOP/s/GPU"
        if self.step_time_s is not None:
            return f"{significant(self.step_time_s)} s a step"
        return UNKNOWN


def of_ids(connection: Connection, ids: Iterable[int]) -> Iterator[Shown]:
    """The results of these numbers."""
    for some in keys.chunks(ids):
        yield from of(connection, results.c.id.in_(some))


def of(connection: Connection, which: ColumnElement[bool]) -> Iterator[Shown]:
    """The results that are meant, by their source and line."""
    for row in connection.execute(questions.shown(which)).mappings():
        yield Shown(**row)
