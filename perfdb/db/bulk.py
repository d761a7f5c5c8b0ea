"""Adds many rows at once: prepared statements of many rows on SQLite, COPY on PostgreSQL.

SQLAlchemy's own insert builds a mapping for each row, which costs more than the row's storage. On
SQLite a statement for each row takes twice as long as one for many.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import chain, islice

from sqlalchemy import JSON, Connection, Date, Dialect, TableClause
from sqlalchemy.exc import DBAPIError

from perfdb.db.tables import Moment, NotesType, NoteType

Cells = tuple[object, ...]
Translation = Callable[[object], object]

TRANSLATED = (JSON, Date, Moment, NoteType, NotesType)
"""The types of columns with values that no driver takes as they are."""

AT_ONCE = 1 << 12
"""How many rows SQLAlchemy gets at once: a log may hold millions of steps."""

MOST_VALUES = 4096
"""Of one statement on SQLite, which takes 32,766; longer ones are no faster."""


def add(
    connection: Connection,
    table: TableClause,
    columns: Sequence[str],
    rows: Iterable[Cells],
    at_once: int = AT_ONCE,
) -> None:
    """Insert rows, each with the cells of these columns in this order.

    Raises what an insert raises: DataError for a value that no column can hold (OverflowError on
    SQLite for an integer of more than 64 bits), IntegrityError for a row that is there already.
    """
    quoted = connection.dialect.identifier_preparer
    names = ", ".join(map(quoted.quote, columns))
    target = f"{quoted.format_table(table)} ({names})"
    prepared = _translated(connection.dialect, table, columns, rows)
    if connection.dialect.name == "postgresql":
        _copy(connection, f"COPY {target} FROM STDIN", prepared)
        return
    row, left = f"({', '.join('?' * len(columns))})", iter(prepared)
    while given := list(islice(left, min(at_once, MOST_VALUES // len(columns)))):
        statement = f"INSERT INTO {target} VALUES {', '.join([row] * len(given))}"
        connection.exec_driver_sql(statement, tuple(chain.from_iterable(given)))


def _translated(
    dialect: Dialect, table: TableClause, columns: Sequence[str], rows: Iterable[Cells]
) -> Iterable[Cells]:
    """The rows with each cell as the driver takes it."""
    translations = []
    for place, name in enumerate(columns):
        kind = table.c[name].type
        if isinstance(kind, TRANSLATED):
            translated = kind.dialect_impl(dialect).bind_processor(dialect)
            if translated and isinstance(kind, Moment):
                translated = lru_cache(maxsize=1024)(translated)  # most rows have the same moment
            elif translated and isinstance(kind, JSON):
                translated = partial(_json_cell, translated)
            translations += [(place, translated)] if translated else []
    return (_cells(row, translations) for row in rows) if translations else rows


def _json_cell(translated: Translation, value: object) -> object:
    """A cell of JSON; most are empty."""
    return "{}" if value == {} else translated(value)


def _cells(row: Cells, translations: Sequence[tuple[int, Translation]]) -> Cells:
    cells = list(row)
    for place, translated in translations:
        cells[place] = translated(cells[place])
    return tuple(cells)


def _copy(connection: Connection, statement: str, rows: Iterable[Cells]) -> None:
    dbapi = connection.dialect.loaded_dbapi
    cursor = connection.connection.cursor()
    try:
        with cursor.copy(statement) as copying:
            for row in rows:
                copying.write_row(row)
    except dbapi.Error as error:
        raise DBAPIError.instance(statement, None, error, dbapi.Error) from error
    finally:
        cursor.close()
