"""JSON: a list with an object for each row, on a line of its own; null where unknown."""

import json

from perfdb.export.base import Table

NAME = "json"


def render(table: Table) -> bytes:
    """Every object has every column, in order."""
    rows = (dict(zip(table.names, row, strict=True)) for row in table.rows)
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]\n".encode()
