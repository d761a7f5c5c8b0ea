"""Reads numbers as logs print them; what is no number of that kind is None."""

import math

from perfdb.record import MOST

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+|nan|NaN|inf)"
"""A number in a log. It is whole only if what follows it is no part of a number: see WHOLE."""

WHOLE = r"(?=[^\d.eE+\-])"
"""Follows a number that is not cut off: the end of a file may have cut it."""


def real(printed: object) -> float | None:
    """A number, be it infinite or not a number; None for anything else."""
    if isinstance(printed, bool) or not isinstance(printed, int | float | str):
        return None
    try:
        return float(printed)
    except (ValueError, OverflowError):
        return None


def finite(printed: object) -> float | None:
    """A finite number."""
    value = real(printed)
    return value if value is not None and math.isfinite(value) else None


def positive(printed: object) -> float | None:
    """A finite number above zero: where a program prints 0, it does not know."""
    value = finite(printed)
    return value if value is not None and value > 0 else None


def count(printed: object) -> int | None:
    """A whole number from 1 on, as programs print it: 64, '64', '64.0'."""
    value = positive(printed)
    return int(value) if value is not None and value.is_integer() and value <= MOST else None


def size_bytes(printed: object, unit_bytes: float = 1) -> int | None:
    """An amount of memory in bytes, from one in units of so many bytes."""
    value = finite(printed)
    fits = value is not None and 1 <= value * unit_bytes <= MOST
    return round(value * unit_bytes) if value is not None and fits else None


def percent(printed: object) -> float | None:
    """A percentage above zero, as a fraction."""
    value = positive(printed)
    return None if value is None else value * 0.01
