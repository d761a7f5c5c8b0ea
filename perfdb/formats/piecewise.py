"""Goes through arrays of any length piece by piece, with no copy as long as they are.

Those of large logs lie in a file, of which a map is memory once it is looked at, until it is let
go: then the file alone has it.
"""

import mmap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

AT_ONCE: Final = 1 << 16
"""How many items a piece has."""

_WORD_BITS: Final = 16

Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
Counted = Callable[[], Iterator[tuple[Array, ...]]]
"""Goes through values piece by piece, with how often each of them counts."""
Cell = TypeVar("Cell", int, float)


def pieces(*columns: Array, overlap: int = 0) -> Iterator[tuple[Array, ...]]:
    """Pieces of columns of one length; each has the first `overlap` items of the next as well."""
    for start in range(0, len(columns[0]), AT_ONCE):
        yield tuple(column[start : start + AT_ONCE + overlap] for column in columns)
        for column in columns:
            let_go(column)


def places(holds: Callable[..., npt.NDArray[np.bool_]], *columns: Array, overlap: int = 0) -> Ints:
    """At which places something holds, of columns of one length; there should be few of them."""
    found = [np.empty(0, np.int64)]
    for number, some in enumerate(pieces(*columns, overlap=overlap)):
        found.append(np.flatnonzero(holds(*some)) + number * AT_ONCE)
    return np.concatenate(found)


def rises(numbers: Ints) -> bool:
    """Whether each number is larger than the one before."""
    return not len(places(lambda some: np.diff(some) <= 0, numbers, overlap=1))


def held(column: Array) -> Array:
    """A column in memory alone, and not what lies between its items in a file."""
    if column.flags.c_contiguous:
        return column
    copy = np.empty(len(column), column.dtype)
    for number, (some,) in enumerate(pieces(column)):
        copy[number * AT_ONCE :][: len(some)] = some
    return copy


def let_go(column: Array) -> None:
    """Leave to its file what memory has of a column that is mapped from one."""
    base: object = column
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)


class Cells(Sequence[Cell], Generic[Cell]):
    """The numbers of a column as Python has them, of which few are there at a time."""

    def __init__(self, column: Array) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, place: int) -> Cell: ...

    @overload
    def __getitem__(self, place: slice) -> "Cells[Cell]": ...

    def __getitem__(self, place: int | slice) -> "Cell | Cells[Cell]":
        if isinstance(place, slice):
            return Cells(self._column[place])
        cell: Cell = self._column[place].item()
        return cell

    def __iter__(self) -> Iterator[Cell]:
        for (some,) in pieces(self._column):
            yield from some.tolist()


def by_rank(counted: Counted) -> Callable[[int], float]:
    """What tells the value of a rank, from 0 on, of positive values in order."""
    first = list(islice(counted(), 2))
    if len(first) > 1:
        return partial(_ranked, counted)
    [(values, counts)] = first
    order = values.argsort()
    ends = counts[order].cumsum()
    return lambda rank: float(values[order[ends.searchsorted(rank, side="right")]])


def _ranked(counted: Counted, rank: int) -> float:
    """Positive numbers are in the order of their bits, of which each pass tells 16 more."""
    found = 0
    for shift in range(64 - _WORD_BITS, -1, -_WORD_BITS):
        totals = np.zeros(1 << _WORD_BITS)
        for some, often in counted():
            bits = np.ascontiguousarray(some).view(np.int64) >> shift
            fits = bits >> _WORD_BITS == found
            words = bits[fits] & ((1 << _WORD_BITS) - 1)
            totals += np.bincount(words, often[fits], minlength=len(totals))
        ends = totals.cumsum()
        word = int(ends.searchsorted(rank, side="right"))
        rank -= int(ends[word - 1]) if word else 0
        found = found << _WORD_BITS | word
    return float(np.int64(found).view(np.float64))
