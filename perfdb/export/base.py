"""What an export format is given, a Table, and what it answers, bytes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from pydantic_core import to_json

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


class ExportFormat(Protocol):
    """One way to write a table down."""

    @property
    def NAME(self) -> str:
        """The word for it on the command line."""
        ...

    def render(self, table: Table) -> bytes:
        """The table, with nothing where a value is unknown."""
        ...


def text(cell: Cell) -> str:
    """A cell in full precision: true or false for a flag; unknown is empty."""
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
