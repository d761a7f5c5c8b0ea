"""JSON: a list with an object for each row, on a line of its own; null where unknown."""

from collections.abc import Iterator

from pydantic_core import to_json

from perfdb.export.base import Table

NAME = "json"


def render(table: Table) -> bytes:
    """Every object has every column, in order."""
    return b"[\n" + b",\n".join(objects(table)) + b"\n]\n"


def objects(table: Table) -> Iterator[bytes]:
    """Each row as an object, on one line."""
    names = table.names
    return (to_json(dict(zip(names, row, strict=True))) for row in table.rows)
