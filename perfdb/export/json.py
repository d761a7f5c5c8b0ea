"""JSON: a list with an object for each row; null where unknown."""

import json

from perfdb.export.base import Table

NAME = "json"


def render(table: Table) -> bytes:
    """Every object has every column, in order."""
    rows = [dict(zip(table.names, row, strict=True)) for row in table.rows]
    return (json.dumps(rows, indent=1, ensure_ascii=False) + "\n").encode()
