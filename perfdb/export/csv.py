"""CSV in UTF-8, as RFC 4180 quotes it, with a line feed behind each row.

Numbers are in full; a cell is empty where a value is unknown.
"""

import csv
import io
from collections.abc import Iterable

from perfdb.export.base import Table, text

NAME = "csv"
_END = "\r\n"


def render(table: Table) -> bytes:
    """A header and a line for each row."""
    rows = (map(text, row) for row in table.rows)
    return "".join(map(_line, [table.names, *rows])).encode()


def _line(cells: Iterable[str]) -> str:
    """A row. The writer quotes the characters that it ends lines with: it must know of both."""
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator=_END).writerow(cells)
    return f"{written.getvalue().removesuffix(_END)}\n"
