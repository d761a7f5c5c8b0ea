"""Keeps the steps of a log while it is read: many of them in a temporary file."""

import mmap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import IO, Any, Final

import numpy as np

from perfdb.formats import piecewise, unnamed
from perfdb.formats.base import Reading
from perfdb.formats.piecewise import Array
from perfdb.formats.readings import Column, Readings

MOST_IN_MEMORY: Final = 1 << 17
"""Steps above which they are kept in a file."""

_AT_ONCE: Final = 1 << 12
"""How many readings are made columns at once."""

_KNOWN: Final = " known"
"""What stands behind the name of a column where it is that of its flags."""

_PLACED: Final = ("line", "step", "step_time_s")

Cells = Mapping[str, Array]


class Shelf:
    """Steps one behind the other: in memory, or where they are many as records in a file.

    The first steps say which columns there are. Another process that is given one, pickled, has to
    say in what file its records are.
    """

    def __init__(self, file: IO[bytes] | None = None) -> None:
        self._file = file
        self._held: list[Readings] = []
        self._first: Array | None = None
        """The first record of the file."""
        self._alike: set[str] = set()
        """The columns of which all records have the same bits."""
        self._size = 0

    def __len__(self) -> int:
        return self._size + sum(map(len, self._held))

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_file": None}

    def add(self, steps: Readings) -> None:
        """Keep the steps that come next. Raises OSError where there is no room for them."""
        self._held.append(steps.slim())
        if len(self) > MOST_IN_MEMORY:
            self._put_down()

    def readings(self, file: IO[bytes] | None = None) -> Readings:
        """All of the steps, of which the file is another process's if one is given."""
        if self._first is None:
            one = len(self._held) == 1
            return self._held[0] if one else Readings.joined(self._held)
        file = file or self._put_down()
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        records = np.frombuffer(mapped, self._first.dtype)
        return _readings({name: self._column(records, name) for name in _names(records)})

    def _put_down(self) -> IO[bytes]:
        self._file = self._file or unnamed.file_of(self)
        for steps in self._held:
            self._write(self._file, steps)
        self._held = []
        self._file.flush()
        return self._file

    def _write(self, file: IO[bytes], steps: Readings) -> None:
        if not len(steps):
            return
        records = _records(steps, None if self._first is None else self._first.dtype)
        if self._first is None:
            self._first, self._alike = records[:1].copy(), {*_names(records)}
        self._alike = {name for name in self._alike if _is_alike(records[name], self._first[name])}
        file.write(records.view(np.uint8).data)
        self._size += len(records)

    def _column(self, records: Array, name: str) -> Array:
        if name in self._alike and self._first is not None:
            return np.broadcast_to(self._first[name][0], records.shape)
        return records[name]


def shelved(readings: Iterable[Reading]) -> Readings:
    """Steps below 2⁶³ as columns, of which there may be more than memory holds."""
    shelf, left = Shelf(), iter(readings)
    while some := list(islice(left, _AT_ONCE)):
        shelf.add(Readings.of(some))
    return shelf.readings()


def each(steps: Readings, make: Callable[[Readings], Readings]) -> Readings:
    """Of many steps what is made of them, some at a time."""
    shelf = Shelf()
    for some in steps.parts(piecewise.AT_ONCE):
        shelf.add(make(some))
    return shelf.readings()


def _records(steps: Readings, layout: np.dtype[Any] | None) -> Array:
    """Steps as records of this layout, or of one with all of their own columns."""
    cells = {name: getattr(steps, name) for name in _PLACED}
    for name in _of_some(layout.names or ()) if layout else steps.columns:
        column = steps.column(name)
        cells |= {name: column.values, name + _KNOWN: column.known}
    largest_first = sorted(cells.items(), key=lambda cell: -cell[1].itemsize)
    kinds = [(name, cell.dtype) for name, cell in largest_first]
    records = np.empty(len(steps), layout or np.dtype(kinds, align=True))
    for name, cell in cells.items():
        records[name] = cell
    return records


def _readings(cells: Cells) -> Readings:
    """The steps of the columns of records, without those that none of them knows."""
    columns = {name: Column(cells[name], cells[name + _KNOWN]) for name in _of_some(cells)}
    said = {name: one for name, one in columns.items() if one.known.strides != (0,) or one.known[0]}
    return Readings(cells["line"], cells["step"], cells["step_time_s"], said)


def _names(records: Array) -> Sequence[str]:
    return records.dtype.names or ()


def _of_some(cells: Iterable[str]) -> list[str]:
    """The columns that not every step needs to have."""
    return [name for name in cells if name not in _PLACED and not name.endswith(_KNOWN)]


def _is_alike(cells: Array, first: Array) -> bool:
    bits = f"u{cells.itemsize}"
    return bool((cells.view(bits) == first.view(bits)).all())
