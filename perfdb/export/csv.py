"""CSV as RFC 4180 has it, in UTF-8; numbers in full, empty where unknown."""

import csv
import io

from perfdb.export.base import Table, text

NAME = "csv"


def render(table: Table) -> bytes:
    """A header and a line for each row."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(table.names)
    lines.writerows([text(cell) for cell in row] for row in table.rows)
    return written.getvalue().encode()
