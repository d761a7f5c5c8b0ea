"""JSON: a list with an object for each row, on a line of its own; null where unknown."""

import json
from collections.abc import Iterator

from perfdb.export.base import Table

NAME = "json"


def render(table: Table) -> bytes:
    """Every object has every column, in order."""
    lines = ",\n".join(objects(table))
    return f"[\n{lines}\n]\n".encode()


def objects(table: Table) -> Iterator[str]:
    """Each row as an object, on one line."""
    names, encode = table.names, json.JSONEncoder(ensure_ascii=False).encode
    return (encode(dict(zip(names, row, strict=True))) for row in table.rows)
