"""Cells across several columns, which say one value of what each column names."""

from collections.abc import Sequence

from perfdb.pages import cells
from perfdb.pages.base import Row
from perfdb.pages.columns import SIZES, Column
from perfdb.pages.outline import Table


def shared(table: Table, header: Sequence[Column], row: Row) -> int | None:
    """The place of the first value that is across columns of which each means another thing.

    None where there is none. In a turned table a cell is across results, and is the value of each.
    """
    across = [] if table.turned else zip(header, row.cells, strict=True)
    for place, (column, cell) in enumerate(across):
        is_value = column.fields and not cells.absent(cells.value(cell.text))
        if cell.wide and is_value and not _grouped(table, header, row, place):
            return place
    return None


def _grouped(table: Table, header: Sequence[Column], row: Row, place: int) -> bool:
    """Whether a cell is across sizes of one group, as 1 is below TP and PP of `Parallelism`."""
    if table.spanners is None:
        return False
    of_cell = [at for at, cell in enumerate(row.cells) if cell is row.cells[place]]
    fields = {field for at in of_cell for field in header[at].fields}
    above = {table.spanners.cells[at].text for at in of_cell}
    return len(above) == 1 and "" not in above and fields <= SIZES
