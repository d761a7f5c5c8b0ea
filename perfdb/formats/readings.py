"""The numbers of step lines as they are read; `perfdb.formats.columns` has the steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdb.formats.columns import Flags, Floats, Ints
from perfdb.formats.columns import StepColumn as Column
from perfdb.formats.columns import Steps as Readings

__all__ = ["Column", "Columns", "Flags", "Floats", "Ints", "Readings", "distinct"]


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


def distinct(values: Floats | Ints | Flags) -> list[float]:
    """Each value once, in order; often there is but one."""
    alike = len(values) and (values == values[0]).all()
    once: list[float] = (values[:1] if alike else np.unique(values)).tolist()
    return once
