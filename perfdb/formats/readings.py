"""The steps of a log as columns: a log may hold millions, of which few are looked at one by one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from typing import overload

import numpy as np
import numpy.typing as npt

from perfdb.formats.base import Reading
from perfdb.formats.piecewise import first, let_go, pieces

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_AT_ONCE = 1 << 12
"""How many readings are made at once where all of them are asked for."""

_PLACED = ("line", "step", "step_time_s")
_WHOLE = ("peak_memory_bytes", "tokens")

_reading: Callable[[tuple[object, ...]], Reading] = partial(tuple.__new__, Reading)
"""Makes a reading of a row three times as fast as calling it."""


@dataclass(frozen=True, eq=False)
class Column:
    """A number for each step, of which those that are not `known` stand for None."""

    values: Floats | Ints | Flags
    known: Flags

    @classmethod
    def of(cls, cells: Sequence[float | None], kind: type[np.generic] = np.float64) -> "Column":
        """A column of numbers and None."""
        known = np.array([cell is not None for cell in cells], np.bool_)
        return cls(np.array([0 if cell is None else cell for cell in cells], kind), known)

    @classmethod
    def full(cls, values: Floats | Ints | Flags) -> "Column":
        """A column without None."""
        return cls(values, np.broadcast_to(True, values.shape))

    @classmethod
    def empty(cls, size: int, kind: type[np.generic] = np.float64) -> "Column":
        """A column of None."""
        return cls(np.broadcast_to(kind(0), size), np.broadcast_to(False, size))

    @classmethod
    def joined(cls, parts: Sequence["Column"]) -> "Column":
        """Columns one below the other."""
        values = np.concatenate([part.values for part in parts])
        return cls(values, np.concatenate([part.known for part in parts])).slim()

    def distinct(self) -> list[float]:
        """Each number once, in order."""
        found: list[float] = []
        for values, known in pieces(self.values, self.known):
            found = distinct(np.array([*found, *distinct(values[known])]))
        return found

    def slim(self) -> "Column":
        """The same in less memory where all steps say the same, or nothing."""
        one, all_or_none = _is_one(self.values), _is_one(self.known)
        return Column(
            np.broadcast_to(self.values[0], self.values.shape) if one else self.values,
            np.broadcast_to(self.known[0], self.known.shape) if all_or_none else self.known,
        )

    def at(self, places: slice | Ints | Flags) -> "Column":
        """Some of the numbers."""
        return Column(self.values[places], self.known[places])

    def cells(self) -> list[float | None]:
        """The numbers as Python has them, and None."""
        if not self.known.any():
            return [None] * len(self.known)
        cells: list[float | None] = self.values.tolist()
        for place in np.flatnonzero(~self.known).tolist():
            cells[place] = None
        return cells


@dataclass(frozen=True, eq=False)
class Columns:
    """Steps of a log: their lines, and of each number that a step may have a row of them all."""

    lines: Ints
    names: tuple[str, ...]
    values: Floats
    known: Flags

    @classmethod
    def unknown(cls, lines: Ints, names: tuple[str, ...]) -> "Columns":
        """Steps of which no number is known yet."""
        size = len(names), len(lines)
        return cls(lines, names, np.zeros(size), np.zeros(size, np.bool_))

    @classmethod
    def joined(cls, parts: Sequence["Columns"]) -> "Columns":
        """Steps behind each other, all of the same names."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.lines for part in parts]),
            parts[0].names,
            np.concatenate([part.values for part in parts], axis=1),
            np.concatenate([part.known for part in parts], axis=1),
        )

    def fill(self, places: Ints | int, cells: Mapping[str, Floats | float]) -> None:
        """Put down numbers of some of the steps."""
        for name, values in cells.items():
            row = self.names.index(name)
            self.values[row][places] = values
            self.known[row][places] = True

    def of(self, name: str) -> Column:
        """The values of one of the numbers, by themselves: to keep them keeps no others."""
        row = self.names.index(name)
        return Column(self.values[row].copy(), self.known[row].copy())

    def at(self, places: Ints | Flags) -> "Columns":
        """Some of the steps."""
        values, known = self.values[:, places], self.known[:, places]
        return Columns(self.lines[places], self.names, values, known)

    def in_order(self) -> "Columns":
        """The steps by their lines."""
        if (np.diff(self.lines) >= 0).all():
            return self
        return self.at(self.lines.argsort(kind="stable"))


@dataclass(frozen=True, eq=False, repr=False)
class Readings(Sequence[Reading]):
    """Steps as columns, in their order; a Reading is made of a step when one is asked for.

    `columns` are those of a reading's other fields, by name; one that is missing is said nowhere.
    One of another name is of the log alone: no reading has it.
    """

    line: Ints
    step: Ints
    step_time_s: Floats
    columns: Mapping[str, Column] = field(default_factory=dict)

    @classmethod
    def of(cls, readings: Iterable[Reading]) -> "Readings":
        """Columns of readings, whose steps are below 2⁶³."""
        if isinstance(readings, cls):
            return readings
        rows = zip(*readings, strict=True)
        cells = dict(zip(Reading._fields, rows, strict=False)) or dict.fromkeys(_PLACED, ())
        others = (name for name in cells if name not in _PLACED)
        return cls(
            np.array(cells["line"], np.int64),
            np.array(cells["step"], np.int64),
            np.array(cells["step_time_s"], np.float64),
            {name: Column.of(cells[name], _kind(name)) for name in others},
        )

    @classmethod
    def joined(cls, parts: Sequence["Readings"]) -> "Readings":
        """Steps behind each other."""
        said = {
            name: None
            for part in parts
            for name, column in part.columns.items()
            if column.known.any()
        }
        return cls(
            np.concatenate([np.empty(0, np.int64), *(part.line for part in parts)]),
            np.concatenate([np.empty(0, np.int64), *(part.step for part in parts)]),
            np.concatenate([np.empty(0), *(part.step_time_s for part in parts)]),
            {name: Column.joined([part.column(name) for part in parts]) for name in said},
        )

    def column(self, name: str) -> Column:
        """The values of a field that not every step needs to have."""
        return self.columns.get(name) or Column.empty(len(self), _kind(name))

    def first_not_finite(self) -> int | None:
        """The place of the first step with a loss or a gradient norm that is no number."""
        said = (self.column("loss"), self.column("grad_norm"))
        odd = (first(_is_odd, one.values, one.known) for one in said)
        return min((place for place in odd if place is not None), default=None)

    def with_columns(self, **columns: Column) -> "Readings":
        """The same steps with other values of some fields."""
        return replace(self, columns={**self.columns, **columns})

    def slim(self) -> "Readings":
        """The same steps in less memory."""
        return replace(self, columns={k: v.slim() for k, v in self.columns.items()})

    def without(self, name: str) -> "Readings":
        """The same steps without a column."""
        return replace(self, columns={k: v for k, v in self.columns.items() if k != name})

    def at(self, places: slice | Ints | Flags) -> "Readings":
        """Some of the steps."""
        columns = {name: column.at(places) for name, column in self.columns.items()}
        return Readings(self.line[places], self.step[places], self.step_time_s[places], columns)

    def __len__(self) -> int:
        return len(self.line)

    @overload
    def __getitem__(self, place: int) -> Reading: ...

    @overload
    def __getitem__(self, place: slice) -> "Readings": ...

    def __getitem__(self, place: int | slice) -> "Reading | Readings":
        if isinstance(place, slice):
            return self.at(place)
        start = range(len(self))[place]
        return next(self.at(slice(start, start + 1))._made())

    def __iter__(self) -> Iterator[Reading]:
        for some in self.parts():
            yield from some._made()

    def parts(self, at_once: int | None = None) -> Iterator["Readings"]:
        """The same steps, few at a time."""
        size = at_once or _AT_ONCE
        for start in range(0, len(self), size):
            yield self.at(slice(start, start + size))
            self.let_go()

    def let_go(self) -> None:
        """Leave to their files what memory has of steps that are kept in some."""
        others = ((column.values, column.known) for column in self.columns.values())
        let_go(self.line, *chain.from_iterable(others))

    def _made(self) -> Iterator[Reading]:
        defaults = Reading._field_defaults
        others = (
            self.columns[name].cells() if name in self.columns else repeat(defaults[name])
            for name in defaults
        )
        placed = (self.line.tolist(), self.step.tolist(), self.step_time_s.tolist())
        return map(_reading, zip(*placed, *others, strict=False))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def _is_one(numbers: Floats | Ints | Flags) -> bool:
    """Whether there are numbers, all of the same bits."""
    bits = numbers.view(f"u{numbers.itemsize}")
    return len(bits) > 0 and bool((bits == bits[0]).all())


def _is_odd(values: Floats, known: Flags) -> Flags:
    return np.asarray(known & ~np.isfinite(values))


def distinct(values: Floats | Ints | Flags) -> list[float]:
    """Each value once, in order; often there is but one."""
    alike = len(values) and (values == values[0]).all()
    once: list[float] = (values[:1] if alike else np.unique(values)).tolist()
    return once


def _kind(name: str) -> type[np.generic]:
    if name == "skipped":
        return np.bool_
    return np.int64 if name in _WHOLE else np.float64
