"""Every run as a table, whatever it was for, and the steps of runs as partitioned Parquet files.

A partition is a folder such as `release=25.04/system=dgx-h100`, as Hive has it; DuckDB, Spark,
Polars and pyarrow read the names of folders as columns. Memory holds `AT_ONCE` steps, however many
are written.
"""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sqlalchemy import Connection

from perfdb.errors import Diagnostic, InputError
from perfdb.export.formats import Cell, Column, Table, parquet_schema, pyarrow
from perfdb.queries import Rows, runs
from perfdb.run_record import Checkpoint

_RUN = (
    "run_id", "kind", "framework", "release", "system", "model", "recipe", "outcome", "started_at",
    "ended_at",
)  # fmt: skip
_CHECKPOINT = {"size_bytes": int, **dict.fromkeys((
    "save_time_s", "load_time_s", "loss", "loaded_loss", "resharded_load_time_s", "resharded_loss",
), float)}  # fmt: skip


UNKNOWN: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name that Hive gives to a partition with an unknown value."""
AT_ONCE: Final = 50_000
"""Steps of a row group."""


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


def write_steps(connection: Connection, folder: Path, by: Sequence[str]) -> None:
    """Write every step to a new folder, parted by some of `perfdb.queries.runs.PARTITIONS`.

    The folder appears when it is complete. Raises InputError if it is there already or cannot be
    written, and where pyarrow is not installed.
    """
    pyarrow()
    if folder.exists():
        remedy = "remove it, or name another one"
        raise InputError(Diagnostic(str(folder), "is there already", remedy=remedy))
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
            made = Path(scratch) / "dataset"
            made.mkdir()
            for values in connection.execute(runs.parts(by)).all() if by else [()]:
                _write_part(connection, made, dict(zip(by, values, strict=True)))
            made.rename(folder)
    except OSError as error:
        raise InputError(Diagnostic(str(folder), error.strerror or str(error))) from error


def _write_part(connection: Connection, folder: Path, values: Mapping[str, object]) -> None:
    """Write the steps of a partition to a file in its folder; none where it has no step."""
    question = runs.all_steps()
    for name, value in values.items():
        question = question.where(runs.PARTITIONS[name].is_not_distinct_from(value))
        folder /= f"{name}={UNKNOWN if value is None else quote(str(value), safe='')}"
    known = [it for it in question.selected_columns if it.name not in values]
    columns = [Column(it.name, it.type.python_type) for it in known]
    _write_file(connection, question.with_only_columns(*known), folder, columns)


def _write_file(
    connection: Connection, question: Rows, folder: Path, columns: Sequence[Column]
) -> None:
    arrow, schema = pyarrow(), parquet_schema(columns)
    answer = connection.execute(question, execution_options={"yield_per": AT_ONCE})
    with ExitStack() as opened:
        writer = None
        for rows in answer.partitions():
            if writer is None:
                folder.mkdir(parents=True, exist_ok=True)
                writer = opened.enter_context(
                    arrow.parquet.ParquetWriter(folder / "steps.parquet", schema)
                )
            arrays = [
                arrow.array(cells, field.type)
                for cells, field in zip(zip(*rows, strict=True), schema, strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
