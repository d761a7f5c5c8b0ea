"""What a cell could be besides a value: struck out, a table, or written as in much of Europe."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from perfdb.pages import cells
from perfdb.pages.base import Row
from perfdb.pages.cells import Wrong
from perfdb.pages.columns import FIGURES, SIZES, Column
from perfdb.pages.outline import Table

_DECIMAL_COMMA = re.compile(
    r"[0-9]+,(?:[0-9]{1,2}|[0-9]{4,})|(?:0|[0-9]{4,}),[0-9]+"
    r"|[0-9]{1,3}(?:[. \u00a0\u2009\u202f'’][0-9]{3})+,[0-9]+"
)
_DECIMAL_POINT = re.compile(
    r"[0-9]+\.(?:[0-9]{1,2}|[0-9]{4,})|(?:0|[0-9]{4,})\.[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+"
)
_POINTS_GROUP = re.compile(r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
_EITHER = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
"""A thousand and more in one notation, a number below a thousand in the other."""

_WITH_NUMBERS: Final = FIGURES | SIZES
_ENOUGH: Final = 2
"""Rows with a decimal point among which the only one with a decimal comma is mistyped."""


def wrong(column: Column, text: str, european: str | None) -> Wrong | None:
    """Why a cell of a field cannot be taken for what it says; None where it can.

    `european`: a number of its page that is written so, and where.
    """
    if not column.fields:
        return None
    if cells.struck(text):
        return Wrong(f"{text!r} is struck out", "remove the row, or write - or what holds now")
    if cells.TABLE in text:
        return Wrong("a table stands in the cell", "write its value as text")
    either = next((one for one in _numbers(text) if _EITHER.fullmatch(one)), None)
    if not european or not either or _WITH_NUMBERS.isdisjoint(column.fields):
        return None
    message = f"{either!r} leaves doubt: {european} has a decimal comma"
    remedy = "correct that one, or write all numbers of the page as 1022.26 or 1,022.26"
    return Wrong(message, remedy)


def european(tables: Iterable[tuple[Table, Sequence[Column]]]) -> Iterator[str]:
    """The numbers of a page's tables with their columns that can be read in no other way.

    None where they are all in one row, and rows of its table have a decimal point: what is mistyped
    there is no number, and rejects its row alone.
    """
    found = [
        (table, header, numbers)
        for table, header in tables
        for row in table.rows
        if (numbers := list(_european(row, header)))
    ]
    is_mistyped = len(found) == 1 and _has_points(*found[0][:2])
    yield from () if is_mistyped else chain.from_iterable(numbers for _, _, numbers in found)


def _has_points(table: Table, header: Sequence[Column]) -> bool:
    """Whether enough rows have a figure with a decimal point that nothing else can be."""
    at = [place for place, column in enumerate(header) if not FIGURES.isdisjoint(column.fields)]
    values = (
        [cells.value(row.cells[i].text) for i in at if i < len(row.cells)] for row in table.rows
    )
    pointed = (any(map(_DECIMAL_POINT.fullmatch, chain(*map(_numbers, row)))) for row in values)
    return sum(pointed) >= _ENOUGH


def _european(row: Row, header: Sequence[Column]) -> Iterator[str]:
    for column, cell in zip(header, row.cells, strict=False):
        for number in _numbers(cells.value(cell.text)):
            if len(column.fields) == 1 and _is_european(number, column.fields[0]):
                yield f"{number!r} on line {row.line}"


def _is_european(number: str, field: str) -> bool:
    """A comma in a size may stand between two of them; a point can in no whole number."""
    signs = _DECIMAL_COMMA if field in FIGURES else _POINTS_GROUP
    return field in _WITH_NUMBERS and signs.fullmatch(number) is not None


def _numbers(text: str) -> Iterator[str]:
    return (one.removesuffix("%").rstrip() for one in cells.pair(text) or (text,))
