"""What a cell could be besides a value: struck out, a table, or written as in much of Europe."""

import re
from collections.abc import Iterable, Iterator, Sequence
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
_POINTS_GROUP = re.compile(r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
_EITHER = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
"""A thousand and more in one notation, a number below a thousand in the other."""

_WITH_NUMBERS: Final = FIGURES | SIZES


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
    return Wrong(message, "write all numbers of the page as 1022.26 or 1,022.26")


def european(tables: Iterable[tuple[Table, Sequence[Column]]]) -> Iterator[str]:
    """The numbers of a page's tables with their columns that can be read in no other way."""
    for table, header in tables:
        for row in table.rows:
            yield from _european(row, header)


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
