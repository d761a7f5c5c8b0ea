"""What a printed number can have been before it was rounded: an interval, and its arithmetic."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from perfdb.units import significant

_DUST = 1e-9
"""What floating-point arithmetic may add; two intervals that touch agree."""


@dataclass(frozen=True)
class Interval:
    """A positive number and the bounds that it lies in."""

    value: float
    low: float
    high: float

    def times(self, other: "Interval | float") -> "Interval":
        """The product, with the bounds it can have."""
        by = other if isinstance(other, Interval) else exactly(other)
        return Interval(self.value * by.value, self.low * by.low, self.high * by.high)

    def over(self, other: "Interval | float") -> "Interval":
        """The quotient, with the bounds it can have."""
        by = other if isinstance(other, Interval) else exactly(other)
        return Interval(self.value / by.value, self.low / by.high, self.high / by.low)

    def under(self, dividend: float) -> "Interval":
        """A number divided by this one."""
        return exactly(dividend).over(self)

    def agrees(self, other: "Interval") -> bool:
        """Whether both can be the same number."""
        return self.low <= other.high * (1 + _DUST) and other.low <= self.high * (1 + _DUST)

    def or_cut(self) -> "Interval":
        """With room for a number whose last digits were cut off instead of rounded."""
        return Interval(self.value, self.low, self.high + (self.high - self.value))

    def with_cut(self) -> "Interval":
        """With room for digits that were cut off any of the numbers that it was computed from."""
        return Interval(self.value, 2 * self.low - self.value, 2 * self.high - self.value)

    @property
    def uncertainty(self) -> float:
        """The width of the bounds, as a share of the number."""
        return (self.high - self.low) / self.value

    def __str__(self) -> str:
        """'481.5 (481.4 to 481.7)'; the number alone where it is exact."""
        if self.high - self.low <= _DUST * self.value:
            return significant(self.value, 6)
        digits = next((n for n in range(4, 9) if self._shows(n)), 9)
        low, value, high = (significant(n, digits) for n in (self.low, self.value, self.high))
        return f"{value} ({low} to {high})"

    def _shows(self, figures: int) -> bool:
        """Whether so many figures tell the bounds from the value."""
        return len({significant(n, figures) for n in (self.low, self.value, self.high)}) == 3


def exactly(value: float) -> Interval:
    """A number that was not rounded."""
    return Interval(value, value, value)


def within(value: float, half_unit: float) -> Interval:
    """A printed number; half a unit in its last place either way."""
    return Interval(value, value - half_unit, value + half_unit)


def shared(intervals: Sequence[Interval]) -> Interval | None:
    """The numbers that lie in all of several intervals; None where they have none in common."""
    low, high = max(one.low for one in intervals), min(map(_upper, intervals))
    return Interval((low + high) / 2, low, high) if low <= high else None


def agreeing(intervals: Sequence[Interval]) -> frozenset[int]:
    """The places of the largest group that can all be the same number.

    Empty where no group is larger than half of them.
    """
    lows, highs = sorted(one.low for one in intervals), sorted(map(_upper, intervals))
    covered = [bisect_right(lows, point) - bisect_left(highs, point) for point in lows]
    if max(covered, default=0) * 2 <= len(intervals):
        return frozenset()
    point = lows[covered.index(max(covered))]
    holding = (one.low <= point <= _upper(one) for one in intervals)
    return frozenset(place for place, holds in enumerate(holding) if holds)


def _upper(one: Interval) -> float:
    return one.high * (1 + _DUST)
