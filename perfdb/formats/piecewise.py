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

from perfdb.formats import unnamed

AT_ONCE: Final = 1 << 16
"""How many items a piece has."""

_WORD_BITS: Final = 16

Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
Holds = Callable[..., npt.NDArray[np.bool_]]
Counted = Callable[[], Iterator[tuple[Array, ...]]]
"""Goes through values piece by piece, with how often each of them counts."""
Cell = TypeVar("Cell", int, float)


def pieces(*columns: Array, overlap: int = 0) -> Iterator[tuple[Array, ...]]:
    """Pieces of columns of one length; each has the first `overlap` items of the next as well."""
    for start in range(0, len(columns[0]), AT_ONCE):
        yield tuple(column[start : start + AT_ONCE + overlap] for column in columns)
        let_go(*columns)


def found(holds: Holds, *columns: Array, overlap: int = 0) -> Iterator[Ints]:
    """At which places something holds, of columns of one length, piece by piece."""
    for number, some in enumerate(pieces(*columns, overlap=overlap)):
        yield np.flatnonzero(holds(*some)) + number * AT_ONCE


def first(holds: Holds, *columns: Array) -> int | None:
    """The first place at which something holds."""
    return next((int(some[0]) for some in found(holds, *columns) if len(some)), None)


def places(holds: Holds, *columns: Array, overlap: int = 0) -> Ints:
    """All the places at which something holds; there should be few of them."""
    return np.concatenate([np.empty(0, np.int64), *found(holds, *columns, overlap=overlap)])


def every(holds: Holds, *columns: Array, overlap: int = 0) -> bool:
    """Whether something holds everywhere, of columns of one length."""
    return all(holds(*some).all() for some in pieces(*columns, overlap=overlap))


def rises(numbers: Ints) -> bool:
    """Whether each number is larger than the one before."""
    return every(lambda some: np.diff(some) > 0, numbers, overlap=1)


def largest(numbers: Ints, least: int) -> int:
    """The largest of numbers; the least there can be, where there are none."""
    return max((int(some.max()) for (some,) in pieces(numbers)), default=least)


def total(numbers: Ints) -> int:
    """The sum of whole numbers."""
    return sum(int(some.sum()) for (some,) in pieces(numbers))


def zeros(size: int, kind: type[np.generic]) -> Array:
    """A column to be filled in: in a file where it is long. Raises OSError for want of room."""
    if size <= AT_ONCE:
        return np.zeros(size, kind)
    return np.frombuffer(unnamed.room(size * np.dtype(kind).itemsize), kind)


def fill(into: Array, make: Callable[..., Array], *columns: Array, overlap: int = 0) -> Array:
    """A column with what is made of each piece of others that are as long."""
    for number, some in enumerate(pieces(*columns, overlap=overlap)):
        made = make(*some)
        into[number * AT_ONCE :][: len(made)] = made
        let_go(into)
    return into


def let_go(*columns: Array) -> None:
    """Leave to their files what memory has of columns that are mapped from some."""
    for mapped in {id(one): one for one in map(_file_of, columns) if one}.values():
        mapped.madvise(mmap.MADV_DONTNEED)


def _file_of(column: Array) -> mmap.mmap | None:
    base: object = column
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, mmap.mmap) else None


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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

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
