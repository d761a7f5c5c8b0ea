"""Columns that hold a switch on some pages and a size on others: FSDP and SP."""

from typing import Final

from perfdb.pages import cells, columns
from perfdb.pages.outline import Table

_FIELDS: Final = frozenset({"fsdp", "sequence_parallel"})


def of(table: Table) -> frozenset[str]:
    """Of these fields those that a table gives a size above 1: a 1 is no switch there."""
    header = columns.of(table)
    texts = (
        (name, text)
        for row in table.rows
        for column, cell in zip(header, row.cells, strict=False)
        if not _FIELDS.isdisjoint(column.fields)
        for name, text in (column.texts(cells.value(cell.text)) or {}).items()
    )
    return frozenset(name for name, text in texts if name in _FIELDS and _is_size(text))


def _is_size(text: str) -> bool:
    values = map(cells.whole, cells.pair(text) or (text,))
    return any(isinstance(value, int) and value > 1 for value in values)
