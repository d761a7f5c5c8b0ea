"""The steps of a log as numpy columns: a log may hold millions of them.

How to use a `Steps`:

    steps.step, steps.line, steps.step_time_s   arrays with a value for each step
    values, known = steps.column("loss")        any other field; read values where known is True
    steps[10:20], steps.at(steps.step > 10)     some of the steps: by slice, mask or indexes
    steps[0], for reading in steps              `Reading` rows, for a few steps
    steps.rows("step", "loss")                  tuples for a bulk insert; None where unknown
    steps.with_columns(tokens=column)           the same steps with other values of a field
    len(steps)                                  a Steps is false if it is empty

Fields are those of `Reading`. A log may add columns of other names, such as
`global_batch_size`; no `Reading` has those.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_REQUIRED: Final = ("line", "step", "step_time_s")
_KINDS: Final[Mapping[str, type[np.generic]]] = {
    "skipped": np.bool_, "peak_memory_bytes": np.int64, "tokens": np.int64,
}  # fmt: skip
_ROWS_AT_ONCE: Final = 1 << 12


class Reading(NamedTuple):
    """A step as a log prints it. Steps count from 1; times in seconds, memory in bytes.

    The rates are those that the program printed: kept for comparison, never used as results.
    """

    line: int
    step: int
    step_time_s: float
    loss: float | None = None
    grad_norm: float | None = None
    peak_memory_bytes: int | None = None
    tokens: int | None = None
    skipped: bool = False
    model_tflops_per_sec_per_gpu: float | None = None
    tokens_per_sec_per_gpu: float | None = None
    mfu: float | None = None


class StepColumn(NamedTuple):
    """A number for each step. Where `known` is False the value means nothing."""

    values: Floats | Ints | Flags
    known: Flags

    @classmethod
    def of(cls, cells: Sequence[float | None], kind: type[np.generic] = np.float64) -> "StepColumn":
        """A column of numbers and None; a whole number that int64 cannot hold is unknown."""
        if None not in cells:
            with suppress(OverflowError):
                return cls(np.array(cells, kind), np.ones(len(cells), np.bool_))
        fits = [cell is not None and (kind is np.float64 or abs(cell) < 2**63) for cell in cells]
        values = [cell if fit else 0 for cell, fit in zip(cells, fits, strict=True)]
        return cls(np.array(values, kind), np.array(fits, np.bool_))

    @classmethod
    def full(cls, values: Floats | Ints | Flags) -> "StepColumn":
        """A column in which every value is known."""
        return cls(values, np.broadcast_to(True, values.shape))

    @classmethod
    def empty(cls, size: int, kind: type[np.generic] = np.float64) -> "StepColumn":
        """A column in which no value is known."""
        return cls(np.broadcast_to(kind(0), size), np.broadcast_to(False, size))

    @property
    def last(self) -> float | None:
        """The last known value."""
        values = self.values[self.known][-1:].tolist()
        return values[0] if values else None

    def slim(self) -> "StepColumn":
        """The same column in less memory if all values are equal."""
        known = self.known
        is_one = len(known) > 0 and (known == known[0]).all()
        slim = np.broadcast_to(known[0], known.shape) if is_one else known
        return StepColumn(_slim(self.values), slim)

    def at(self, places: slice | Ints | Flags) -> "StepColumn":
        """Some of the values."""
        return StepColumn(self.values[places], self.known[places])

    def cells(self) -> list[float | None]:
        """The values as Python numbers, None where unknown."""
        if not self.known.any():
            return [None] * len(self.known)
        cells: list[float | None] = self.values.tolist()
        for place in np.flatnonzero(~self.known).tolist():
            cells[place] = None
        return cells


@dataclass(frozen=True, eq=False, repr=False)
class Steps(Sequence[Reading]):
    """Steps in order, as columns. A field without a column is unknown for all steps."""

    line: Ints
    step: Ints
    step_time_s: Floats
    columns: Mapping[str, StepColumn] = field(default_factory=dict)

    @classmethod
    def of(cls, readings: Iterable[Reading]) -> "Steps":
        """Columns of readings; their steps must be below 2**63."""
        if isinstance(readings, cls):
            return readings
        rows = zip(*readings, strict=True)
        cells = dict(zip(Reading._fields, rows, strict=False)) or dict.fromkeys(_REQUIRED, ())
        others = (name for name in cells if name not in _REQUIRED)
        return cls(
            np.array(cells["line"], np.int64),
            np.array(cells["step"], np.int64),
            np.array(cells["step_time_s"], np.float64),
            {name: StepColumn.of(cells[name], kind_of(name)) for name in others},
        )

    @classmethod
    def joined(cls, parts: Sequence["Steps"]) -> "Steps":
        """The steps of all parts."""
        used = dict.fromkeys(
            name for part in parts for name, one in part.columns.items() if one.known.any()
        )
        columns = {}
        for name in used:
            values, known = zip(*(part.column(name) for part in parts), strict=True)
            columns[name] = StepColumn(np.concatenate(values), np.concatenate(known)).slim()
        return cls(
            np.concatenate([np.empty(0, np.int64), *(part.line for part in parts)]),
            np.concatenate([np.empty(0, np.int64), *(part.step for part in parts)]),
            np.concatenate([np.empty(0), *(part.step_time_s for part in parts)]),
            columns,
        )

    def column(self, name: str) -> StepColumn:
        """The values of a field, and for which steps they are known."""
        return self.columns.get(name) or StepColumn.empty(len(self), kind_of(name))

    def with_columns(self, **columns: StepColumn) -> "Steps":
        """The same steps with other values of some fields."""
        return replace(self, columns={**self.columns, **columns})

    def without(self, *names: str) -> "Steps":
        """The same steps without some columns."""
        return replace(self, columns={k: v for k, v in self.columns.items() if k not in names})

    def slim(self) -> "Steps":
        """The same steps in less memory."""
        return replace(self, columns={name: one.slim() for name, one in self.columns.items()})

    def at(self, places: slice | Ints | Flags) -> "Steps":
        """Some of the steps."""
        columns = {name: column.at(places) for name, column in self.columns.items()}
        return Steps(self.line[places], self.step[places], self.step_time_s[places], columns)

    def rows(self, *names: str) -> Iterator[tuple[float | None, ...]]:
        """A tuple of some fields for each step, None where unknown."""
        for part in self._parts():
            yield from zip(*(part._cells(name) for name in names), strict=True)

    def _parts(self) -> Iterator["Steps"]:
        starts = range(0, len(self), _ROWS_AT_ONCE)
        return (self.at(slice(start, start + _ROWS_AT_ONCE)) for start in starts)

    def _cells(self, name: str) -> list[float | None]:
        if name in _REQUIRED:
            cells: list[float | None] = getattr(self, name).tolist()
            return cells
        return self.column(name).cells()

    def __len__(self) -> int:
        return len(self.line)

    @overload
    def __getitem__(self, place: int) -> Reading: ...

    @overload
    def __getitem__(self, place: slice) -> "Steps": ...

    def __getitem__(self, place: int | slice) -> "Reading | Steps":
        if isinstance(place, slice):
            return self.at(place)
        start = range(len(self))[place]
        return next(iter(self.at(slice(start, start + 1))))

    def __iter__(self) -> Iterator[Reading]:
        defaults = Reading._field_defaults
        for part in self._parts():
            others = (
                part.columns[name].cells() if name in part.columns else repeat(default)
                for name, default in defaults.items()
            )
            required = (part._cells(name) for name in _REQUIRED)
            yield from map(Reading._make, zip(*required, *others, strict=False))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def kind_of(name: str) -> type[np.generic]:
    """The numpy type of a field's values."""
    return _KINDS.get(name, np.float64)


def _slim(numbers: Floats | Ints | Flags) -> Floats | Ints | Flags:
    """The same numbers in the memory of one if all have the same bits."""
    bits = numbers.view(f"u{numbers.itemsize}")
    is_one = len(bits) > 0 and (bits == bits[0]).all()
    return np.broadcast_to(numbers[0], numbers.shape) if is_one else numbers
