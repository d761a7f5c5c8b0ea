"""Apache Parquet with a type for each column, whatever the rows hold; null where unknown."""

import io

from perfdb.errors import Diagnostic, InputError
from perfdb.export.base import Table

NAME = "parquet"


def render(table: Table) -> bytes:
    """One row group. Raises InputError where pyarrow is not installed."""
    try:
        import pyarrow  # noqa: PLC0415  not everyone who exports has it
        from pyarrow import json as reader  # noqa: PLC0415  likewise
        from pyarrow import parquet  # noqa: PLC0415  likewise
    except ImportError as error:
        remedy = "pip install pyarrow, or choose another format"
        raise InputError(Diagnostic("--format", "parquet needs pyarrow", remedy=remedy)) from error
    types = {
        str: pyarrow.string(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
    }
    schema = pyarrow.schema([(column.name, types[column.kind]) for column in table.columns])
    # Of Python's lists pyarrow makes arrays only after it has loaded pandas; of JSON it does not.
    lines = b"\n".join(table.objects)
    options = reader.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    size = reader.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    made = reader.read_json(io.BytesIO(lines), size, options) if lines else schema.empty_table()
    written = io.BytesIO()
    parquet.write_table(made, written)
    return written.getvalue()
