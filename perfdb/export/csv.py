"""CSV in UTF-8, as RFC 4180 quotes it, with a line feed behind each row.

Numbers are in full; a cell is empty where a value is unknown.
"""

import csv

from perfdb.export.base import Table, text

NAME = "csv"
_END = "\r\n"


class _Lines(list[str]):
    """What csv writes to, a row at a time."""

    def write(self, line: str) -> None:
        """The writer quotes the characters that it ends lines with: it must know of both."""
        self.append(f"{line.removesuffix(_END)}\n")


def render(table: Table) -> bytes:
    """A header and a line for each row."""
    lines = _Lines()
    writer = csv.writer(lines, lineterminator=_END)
    writer.writerow(table.names)
    # What is unknown and every number csv writes just as text does, and sooner.
    writer.writerows(
        [text(cell) if isinstance(cell, bool) else cell for cell in row] for row in table.rows
    )
    return "".join(lines).encode()
