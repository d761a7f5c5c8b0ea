"""Every run as a table, whatever it was for: how it ended, and what its checkpoint took."""

from sqlalchemy import Connection

from perfdb.export.formats import Cell, Column, Table
from perfdb.queries import runs
from perfdb.run_record import Checkpoint

_RUN = (
    "run_id", "kind", "framework", "release", "system", "model", "recipe", "outcome", "started_at",
    "ended_at",
)  # fmt: skip
_CHECKPOINT = {"size_bytes": int, **dict.fromkeys((
    "save_time_s", "load_time_s", "loss", "loaded_loss", "resharded_load_time_s", "resharded_loss",
), float)}  # fmt: skip


def table(connection: Connection) -> Table:
    """A row for each run that counts, by its run id; moments are in UTC."""
    columns = [Column(name, str) for name in _RUN]
    columns += [Column(f"checkpoint_{name}", kind) for name, kind in _CHECKPOINT.items()]
    rows: list[tuple[Cell, ...]] = []
    for row in connection.execute(runs.all_runs()).mappings():
        found = (row["summary"] or {}).get("checkpoint")
        it = Checkpoint.model_validate(found) if found else None
        texts = (None if row[name] is None else str(row[name]) for name in _RUN)
        rows.append((*texts, *(getattr(it, name, None) for name in _CHECKPOINT)))
    return Table(tuple(columns), tuple(rows))
