"""What a cell's number could be besides: struck out, or written as in much of Europe."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from perfdb.pages import cells
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


@dataclass(frozen=True)
class Notation:
    """How a page writes its numbers: `european` is the first that can be read in no other way."""

    european: str | None = None

    def wrong(self, column: Column, text: str) -> Wrong | None:
        """Why a cell of a field cannot be taken for what it says; None where it can."""
        if not column.fields:
            return None
        if cells.struck(text):
            remedy = "remove the row, or write - or what holds now"
            return Wrong(f"{text!r} is struck out", remedy)
        either = next((one for one in _numbers(text) if _EITHER.fullmatch(one)), None)
        if not self.european or not either or _WITH_NUMBERS.isdisjoint(column.fields):
            return None
        message = f"{either!r} leaves doubt: {self.european} has a decimal comma"
        return Wrong(message, "write all numbers of the page as 1022.26 or 1,022.26")


def of_page(tables: Iterable[tuple[Table, Sequence[Column]]]) -> Notation:
    """The notation of a page from its tables with their columns."""
    return Notation(
        next((one for table, header in tables for one in _european(table, header)), None)
    )


def _european(table: Table, header: Sequence[Column]) -> Iterator[str]:
    for row in table.rows:
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
