"""Tables that say what was run, joined to tables that say how fast."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from perfdb import catalog
from perfdb.groups import grouped
from perfdb.pages import cells, columns, names, statements
from perfdb.pages.base import Cell, Row
from perfdb.pages.columns import FIGURES
from perfdb.pages.outline import Table

_NEEDED = frozenset({"global_batch_size", "sequence_length"})
"""What a row of results cannot do without; a table that lacks one needs a configuration."""

_SIZE = "size"
"""The title of a column that holds a part of the model's name: `15b`."""

ByField = Mapping[str, str]
"""A row's texts by field."""


@dataclass(frozen=True)
class _Joined(Row):
    """A row with the cells of a configuration behind its `num_own` ones, and where that stands."""

    num_own: int
    configured_at: int


def line_of(row: Row, place: int) -> int:
    """The line that a cell of a row stands on, be it joined to the row from a configuration."""
    if isinstance(row, _Joined) and place >= row.num_own:
        return row.configured_at
    return row.line


def joined_from(table: Table) -> int | None:
    """The line of the table of configurations that a table was joined with; None if with none."""
    header = table.header
    return header.configured_at if isinstance(header, _Joined) else None


def are_configurations(table: Table) -> bool:
    """Whether a table says what was run, and nothing of how fast."""
    fields = set(columns.all_fields(columns.of(table)))
    return "num_gpus" in fields and bool(fields & _NEEDED) and not fields & FIGURES


def joined(table: Table, configurations: Iterable[Table]) -> Table:
    """A table of results with the columns that it lacks, from the first table that has them.

    Rows are joined by the number of GPUs, the model and the precision, as far as both tables say
    them; one of `BF16/FP8` is enough. A row that matches none, or several, stays without.
    """
    fields = set(columns.all_fields(columns.of(table)))
    if fields >= _NEEDED:
        return table
    keys = _keys(table)
    for other in configurations:
        by_gpus = grouped(_whole(other), lambda row: _gpus(row.texts))
        matches = [_match(key, by_gpus.get(_gpus(key), ())) for key in keys]
        if any(matches):
            return _widened(table, other, matches)
    return table


@dataclass(frozen=True)
class _Row:
    """A row, and its texts by field and by `size`."""

    row: Row
    texts: ByField


def _rows(table: Table) -> list[_Row]:
    header = columns.of(table)
    found = []
    for row in table.rows:
        texts: dict[str, str] = {}
        for column, cell in zip(header, row.cells, strict=False):
            text = cells.cleaned(cell.text)
            texts.update(column.texts(text) or {})
            if column.title.casefold() == _SIZE:
                texts[_SIZE] = text
        found.append(_Row(row, texts))
    return found


def _whole(table: Table) -> list[_Row]:
    """The rows with a cell for each column: of others nobody can tell which cell is missing."""
    return [one for one in _rows(table) if len(one.row.cells) == len(table.header.cells)]


def _keys(table: Table) -> list[ByField]:
    """What each row is joined by; what it does not say itself is said above the table."""
    said = statements.in_force(table.said)
    above = {"model": said.model or "", "precision": said.precision or ""}
    return [{**above, **one.texts} for one in _rows(table)]


def _match(key: ByField, rows: Sequence[_Row]) -> Row | None:
    """The one of the configurations for so many GPUs that fits."""
    found = [one.row for one in rows if _fits(one.texts, key)]
    return found[0] if len(found) == 1 else None


def _gpus(texts: ByField) -> str:
    return names.gpus(texts.get("num_gpus", "")).count.replace(",", "")


def _fits(texts: ByField, key: ByField) -> bool:
    size, model, precision = (texts.get(name, "") for name in (_SIZE, "model", "precision"))
    printed, stated = key["model"], key["precision"]
    return (
        (not size or size.casefold() in re.split(r"[\s_-]+", printed.casefold()))
        and ("" in (model, printed) or names.model(model) == names.model(printed))
        and ("" in (precision, stated) or bool(_precisions(precision) & _precisions(stated)))
    )


def _precisions(printed: str) -> set[str | None]:
    return {catalog.precision_of(word) or word for word in printed.split("/")}


def _widened(table: Table, other: Table, matches: Sequence[Row | None]) -> Table:
    """The table with the columns of another, as far as it says nothing of them itself."""
    said = statements.in_force(table.said).model_dump(exclude_none=True)
    here = {"num_gpus", *said, *columns.all_fields(columns.of(table))}
    places = [
        place for place, column in enumerate(columns.of(other)) if here.isdisjoint(column.fields)
    ]
    blank = (Cell("", ""),) * len(other.header.cells)
    rows = zip(table.rows, matches, strict=True)
    return replace(
        table,
        header=_with(table.header, other.header, places),
        rows=tuple(_with(row, match or replace(row, cells=blank), places) for row, match in rows),
        below=table.below + other.below,
    )


def _with(row: Row, other: Row, places: Sequence[int]) -> Row:
    cells_ = (*row.cells, *(other.cells[place] for place in places))
    return _Joined(row.line, cells_, len(row.cells), other.line)
