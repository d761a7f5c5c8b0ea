"""Apache Parquet with a type for each column, whatever the rows hold; null where unknown."""

import io

from perfdb.errors import InputError, Problem
from perfdb.export.base import Table

NAME = "parquet"


def render(table: Table) -> bytes:
    """One row group. Raises InputError where pyarrow is not installed."""
    try:
        import pyarrow  # noqa: PLC0415  not everyone who exports has it
        from pyarrow import parquet  # noqa: PLC0415  likewise
    except ImportError as error:
        remedy = "pip install pyarrow, or choose another format"
        raise InputError(Problem("--format", "parquet needs pyarrow", remedy=remedy)) from error
    types = {
        str: pyarrow.string(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
    }
    schema = pyarrow.schema([(column.name, types[column.kind]) for column in table.columns])
    rows = [dict(zip(table.names, row, strict=True)) for row in table.rows]
    written = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), written)
    return written.getvalue()
