"""Tables with a metric in each row and a result in each column, turned to rows of results."""

from collections.abc import Sequence
from dataclasses import replace

from perfdb import catalog
from perfdb.pages import cells, columns, names
from perfdb.pages.base import Row
from perfdb.pages.columns import FIGURES
from perfdb.pages.outline import Said, Table


def upright(table: Table) -> Table:
    """The table with a result in each row: as it is, or turned if it has one in each column.

    The line of a turned result is that of the first row with a figure. What stands in the corner
    and is no column's title is a caption: `Nemotron4 15b BF16` above `16x H100 GPUs` and
    `32x H100 GPUs` says the model and the precision of both. A table of which a row is too short
    or too long is not turned: nobody can tell which of its cells are in the wrong column.
    """
    rows = (table.header, *table.rows)
    first = _figure_row(rows) if all(row.cells for row in rows) else None
    if first is None or columns.are_results(columns.of(table)):
        return table
    corner = _corner(table.header)
    titled = {field for row in rows for field in _fields(row)}
    if len({*titled, corner} - {None}) < columns.FEWEST:
        return table
    if odd := tuple(row for row in rows if len(row.cells) != len(table.header.cells)):
        return replace(table, rows=odd, turned=True)
    heads, *results = zip(*(row.cells for row in rows), strict=True)
    titled_corner = columns.fields_of(_title(table.header))
    weaker, caption = ((), ()) if titled_corner else _caption(table.header)
    return replace(
        table,
        header=Row(first.line, heads),
        rows=tuple(Row(first.line, result) for result in results),
        said=(*weaker, *table.said, *caption),
        turned=True,
        corner=corner,
    )


def _figure_row(rows: Sequence[Row]) -> Row | None:
    """The first row that is titled as a figure and holds a number."""
    return next((row for row in rows if _fields(row) & FIGURES and _has_number(row)), None)


def _fields(row: Row) -> set[str]:
    return set(columns.fields_of(_title(row)))


def _title(row: Row) -> str:
    return cells.title(row.cells[0].text)


def _has_number(row: Row) -> bool:
    texts = (cells.cleaned(cell.text) for cell in row.cells[1:])
    first_values = ((cells.pair(text) or (text,))[0] for text in texts)
    return any(isinstance(cells.decimal(text.removesuffix("%")), float) for text in first_values)


def _corner(header: Row) -> str | None:
    """The field that the cells beside an untitled corner hold: GPUs, or models; None if neither."""
    corner, *beside = (cells.cleaned(cell.text) for cell in header.cells)
    if columns.fields_of(corner) or not beside:
        return None
    if all(names.gpus(one).count != one for one in beside):
        return "num_gpus"
    return "model" if all(map(catalog.named_model, beside)) else None


def _caption(header: Row) -> tuple[tuple[Said, ...], tuple[Said, ...]]:
    """What a corner says where nothing else does, and what it says whatever else is said.

    A model that the catalogue lacks is taken for one where a precision follows it.
    """
    words = _title(header)
    model, precision = names.captioned(words)
    if precision is None or catalog.named_model(model):
        return (), (Said(words, header.line, True),)
    weaker = Said(f"Model: {model}", header.line, True)
    return (weaker,), (Said(f"Precision: {precision}", header.line, True),)
