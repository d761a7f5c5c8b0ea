"""The formats that are text: CSV, JSON and a Markdown table."""

import csv as csv_writer
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from perfdb.export.base import Table, text


@dataclass(frozen=True)
class TextFormat:
    """A way to write a table as text; its name on the command line."""

    NAME: str
    render: Callable[[Table], bytes]


_END: Final = "\r\n"


class _Lines(list[str]):
    """What csv writes to, a row at a time."""

    def write(self, line: str) -> None:
        """The writer quotes the characters that it ends lines with: it must know of both."""
        self.append(f"{line.removesuffix(_END)}\n")


def _csv(table: Table) -> bytes:
    """CSV in UTF-8, as RFC 4180 quotes it: a header and a line for each row, numbers in full.

    A line feed ends each row. A cell is empty where a value is unknown.
    """
    lines = _Lines()
    writer = csv_writer.writer(lines, lineterminator=_END)
    writer.writerow(table.names)
    # What is unknown and every number csv writes just as text does, and sooner.
    writer.writerows(
        [text(cell) if isinstance(cell, bool) else cell for cell in row] for row in table.rows
    )
    return "".join(lines).encode()


def _json(table: Table) -> bytes:
    """A list with an object for each row, on a line of its own; every column, null if unknown."""
    return b"[\n" + b",\n".join(table.objects) + b"\n]\n"


def _markdown(table: Table) -> bytes:
    """A pipe table, to paste into a page or an issue; numbers on the right, empty if unknown."""
    rule = ["---" if column.kind is str else "---:" for column in table.columns]
    rows = [[_escaped(text(cell)) for cell in row] for row in table.rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in [table.names, rule, *rows]).encode()


def _escaped(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


csv: Final = TextFormat("csv", _csv)
json: Final = TextFormat("json", _json)
markdown: Final = TextFormat("markdown", _markdown)
