"""What a printed number can have been before it was rounded: an interval, and its arithmetic."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import inf, isclose
from typing import Final, NamedTuple

from perfdb import fields
from perfdb.record import Result
from perfdb.units import significant

NUMBER: Final = r"(?<![\w.,])((?>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?)"
"""A number in a text, with or without commas between its thousands, and its only group."""
COARSEST: Final[Mapping[str, float]] = {"mfu": 0.01}
"""The largest unit a figure is printed in: MFU in whole percent, others in whole numbers."""

_NUMBER = re.compile(rf"{NUMBER}(?![\w⁰¹²³⁴-⁹]|[.,]\d)")
_SCALES: Final[Mapping[str, tuple[float, ...]]] = {"mfu": (1, 0.01), "step_time_s": (1, 0.001)}
"""What the number of a cell is multiplied by when it is read: percent, milliseconds."""
_ROUNDOFF = 1e-9
"""The relative error that floating-point arithmetic may add; two intervals that touch agree."""


class Interval(NamedTuple):
    """A positive number and its bounds."""

    value: float
    low: float
    high: float

    def times(self, other: "Interval | float") -> "Interval":
        """The product and its bounds."""
        by = other if isinstance(other, Interval) else exactly(other)
        return Interval(self.value * by.value, self.low * by.low, self.high * by.high)

    def over(self, other: "Interval | float") -> "Interval":
        """The quotient and its bounds."""
        by = other if isinstance(other, Interval) else exactly(other)
        return Interval(self.value / by.value, self.low / by.high, self.high / by.low)

    def under(self, dividend: float) -> "Interval":
        """A number divided by this one."""
        return exactly(dividend).over(self)

    def agrees(self, other: "Interval") -> bool:
        """Whether both can be the same number."""
        return self.low <= other.upper and other.low <= self.upper

    def or_cut(self) -> "Interval":
        """Room for a printed number with its last digits cut off instead of rounded."""
        return Interval(self.value, self.low, self.high + (self.high - self.value))

    def with_cut(self) -> "Interval":
        """Room for digits that were cut off any of the numbers that it was computed from."""
        return Interval(self.value, 2 * self.low - self.value, 2 * self.high - self.value)

    @property
    def upper(self) -> float:
        """The upper bound with the roundoff of floating-point arithmetic."""
        return self.high * (1 + _ROUNDOFF)

    @property
    def uncertainty(self) -> float:
        """The width of the bounds as a share of the number."""
        return (self.high - self.low) / self.value

    def __str__(self) -> str:
        """'481.5 (481.4 to 481.7)'; the number alone where it is exact."""
        if self.high - self.low <= _ROUNDOFF * self.value:
            return significant(self.value, 6)
        for digits in range(4, 10):
            low, value, high = (significant(n, digits) for n in (self.low, self.value, self.high))
            if len({low, value, high}) == 3:
                break
        return f"{value} ({low} to {high})"


def exactly(value: float) -> Interval:
    """A number that was not rounded."""
    return Interval(value, value, value)


def within(value: float, half_unit: float) -> Interval:
    """A printed number, half a unit in its last place either way."""
    return Interval(value, value - half_unit, value + half_unit)


def shared(intervals: Sequence[Interval]) -> Interval | None:
    """The numbers that lie in every interval; None where there are none."""
    low, high = max(one.low for one in intervals), min(one.upper for one in intervals)
    return Interval((low + high) / 2, low, high) if low <= high else None


def agreeing(intervals: Sequence[Interval]) -> list[int]:
    """The indexes of the largest group that can all be the same number.

    Empty where no group is larger than half of them.
    """
    lows, highs = sorted(one.low for one in intervals), sorted(one.upper for one in intervals)
    covered = [bisect_right(lows, point) - bisect_left(highs, point) for point in lows]
    if max(covered, default=0) * 2 <= len(intervals):
        return []
    point = lows[covered.index(max(covered))]
    return [place for place, one in enumerate(intervals) if one.low <= point <= one.upper]


def shown(row: Result, names: Sequence[str]) -> str:
    """'tokens/s/GPU 12,040, MFU 28%': figures of a row, as printed."""
    texts = ((name, row.printed.get(name) or f"{row.figure(name):g}") for name in names)
    return ", ".join(f"{fields.short(name)} {text}" for name, text in texts)


def figure(row: Result, field: str) -> Interval | None:
    """A figure with its rounding; exact where it was measured, None where it is not usable."""
    value = row.figure(field)
    if value is None or not 0 < value < inf:
        return None
    if row.is_measured:
        return exactly(value)
    return within(value, half_unit(value, field, row.printed.get(field)))


def number(text: str) -> Interval | None:
    """The first number of a text, with its rounding; None where there is none above 0.

    A number before letters, such as 1.2K, does not count: it may be scaled. A raised digit is a
    footnote mark.
    """
    found = _NUMBER.search(text)
    value = ungrouped(found[1]) if found else 0.0
    return within(value, 10 ** -_decimals(found[1]) / 2) if found and 0 < value < inf else None


def in_cell(value: float, field: str, cell: str) -> tuple[float, int] | None:
    """The unit in which a cell prints a figure, and with how many decimals; None if it does not.

    The unit is 0.01 for percent, 0.001 for milliseconds, else 1.
    """
    for text in _NUMBER.findall(cell):
        for scale in _SCALES.get(field, (1,)):
            if isclose(ungrouped(text) * scale, value):
                return scale, _decimals(text)
    return None


def half_unit(value: float, field: str, printed: str | None) -> float:
    """Half a unit in the last place of a figure, as its cell prints it.

    Where the cell does not print it, by the shortest spelling of the figure.
    """
    if found := in_cell(value, field, printed or ""):
        scale, decimals = found
        return float(scale * 10**-decimals / 2)
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    assert isinstance(exponent, int), f"{value} is not a printed figure"
    return min(10.0**exponent, COARSEST.get(field, 1.0)) / 2


def ungrouped(text: str) -> float:
    """The value of a printed number."""
    return float(text.replace(",", ""))


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])
