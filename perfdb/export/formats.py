"""A table of results, and the ways to write it: CSV, JSON, Markdown and Parquet."""

import csv as csv_writer
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final

from pydantic_core import to_json

from perfdb.errors import Diagnostic, InputError
from perfdb.text import visible

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet takes for a formula."""

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Column:
    """A column and the type of its cells: str, int, float or bool."""

    name: str
    kind: type


@dataclass(frozen=True)
class Table:
    """Rows of cells in the order of the columns. None: unknown."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @cached_property
    def objects(self) -> list[bytes]:
        """Each row as a JSON object with every column, in order; null where unknown."""
        names = self.names
        return [to_json(dict(zip(names, row, strict=True))) for row in self.rows]

    @cached_property
    def lines(self) -> list[bytes]:
        """Each row as a line of CSV."""
        return _csv_lines(self.rows)

    @cached_property
    def arrow(self) -> Any:
        """The rows as a pyarrow.Table. Raises InputError where pyarrow is not installed."""
        return arrow_of(self.columns, self.objects)


@dataclass(frozen=True, kw_only=True)
class WrittenTable(Table):
    """A table of which nothing but what is written is known; `arrow` where pyarrow is installed."""

    rows: tuple[tuple[Cell, ...], ...] = ()
    objects: list[bytes]
    lines: list[bytes]
    arrow: Any = None


def arrow_of(columns: Iterable[Column], objects: Iterable[bytes]) -> Any:
    """Rows that are written as JSON, as a pyarrow.Table. Raises InputError without pyarrow."""
    schema = parquet_schema(columns)
    from pyarrow import json as reader  # noqa: PLC0415  not everyone who exports has it

    # Of Python's lists pyarrow makes arrays only after it has loaded pandas; not so of JSON.
    lines = b"\n".join(objects)
    options = reader.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    size = reader.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    return reader.read_json(io.BytesIO(lines), size, options) if lines else schema.empty_table()


@dataclass(frozen=True)
class ExportFormat:
    """A way to write a table, with nothing where a value is unknown; its name for `--format`."""

    NAME: str
    render: Callable[[Table], bytes]


def text(cell: Cell) -> str:
    """A cell in full precision: true or false for a flag; unknown is empty."""
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _plain(cell: bool | str) -> str:
    """A flag, or a text that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else text(cell)


def _csv(table: Table) -> bytes:
    """CSV in UTF-8, quoted as in RFC 4180; a line feed ends each row.

    A spreadsheet takes a text that begins with =, +, - or @ for a formula: it gets an apostrophe
    in front. The other formats hold every text as it is.
    """
    return b"".join([*_csv_lines([table.names]), *table.lines])


def _csv_lines(rows: Iterable[Iterable[Cell]]) -> list[bytes]:
    lines: list[str] = []
    # csv quotes the characters that its rows end with: a lone carriage return must be quoted too.
    writer = csv_writer.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")
    # csv writes unknown cells and numbers as `text` does, and faster.
    writer.writerows(
        [_plain(cell) if isinstance(cell, bool | str) else cell for cell in row] for row in rows
    )
    return [line.removesuffix("\r\n").encode() + b"\n" for line in lines]


def _json(table: Table) -> bytes:
    """A list with an object for each row that has every column, null if unknown."""
    return b"[\n%b\n]\n" % b",\n".join(table.objects)


def _markdown(table: Table) -> bytes:
    """A pipe table, to paste into a page or an issue, with numbers on the right."""
    escapes = str.maketrans({"\\": "\\\\", "|": "\\|", "\n": " "})
    rule = ["---" if column.kind is str else "---:" for column in table.columns]
    rows = [[visible(text(cell)).translate(escapes) for cell in row] for row in table.rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in [table.names, rule, *rows]).encode()


def pyarrow() -> Any:
    """The package that writes Parquet. Raises InputError where it is not installed."""
    try:
        import pyarrow.parquet  # noqa: PLC0415  not everyone who exports has it
    except ImportError as error:
        remedy = "pip install pyarrow, or choose another format"
        raise InputError(Diagnostic("--format", "parquet needs pyarrow", remedy=remedy)) from error
    return pyarrow


def parquet_schema(columns: Iterable[Column]) -> Any:
    """The pyarrow.Schema of some columns. Raises InputError where pyarrow is not installed."""
    arrow = pyarrow()
    types = {
        str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_(),
    }  # fmt: skip
    return arrow.schema([(column.name, types[column.kind]) for column in columns])


def _parquet(table: Table) -> bytes:
    """Apache Parquet of one row group, with the type of each column whatever the rows hold.

    Raises InputError where pyarrow is not installed.
    """
    written = io.BytesIO()
    pyarrow().parquet.write_table(table.arrow, written)
    return written.getvalue()


csv: Final = ExportFormat("csv", _csv)
json: Final = ExportFormat("json", _json)
markdown: Final = ExportFormat("markdown", _markdown)
parquet: Final = ExportFormat("parquet", _parquet)
