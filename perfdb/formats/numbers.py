"""Numbers as logs print them: one by one, and as arrays of lines that differ in digits only."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from stringzilla import translate

from perfdb.formats.columns import Flags, Floats, Ints
from perfdb.record import MOST

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+|nan|NaN|inf)"
"""A number in a log. It is whole only if no part of a number follows it: see WHOLE."""

WHOLE = r"(?=[^\d.eE+\-])"
"""Follows a number that is not cut off by the end of the file."""


def real(printed: object) -> float | None:
    """A number, which may be infinite or NaN; None for anything else."""
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
    """A finite number above zero: a program that prints 0 does not know."""
    value = finite(printed)
    return value if value is not None and value > 0 else None


def count(printed: object) -> int | None:
    """A whole number from 1 on, as programs print it: 64, '64', '64.0'."""
    value = positive(printed)
    return int(value) if value is not None and value.is_integer() and value <= MOST else None


def size_bytes(printed: object, unit_bytes: float = 1) -> int | None:
    """An amount of memory in bytes, printed in units of `unit_bytes`."""
    value = finite(printed)
    fits = value is not None and 1 <= value * unit_bytes <= MOST
    return round(value * unit_bytes) if value is not None and fits else None


def percent(printed: object) -> float | None:
    """A percentage above zero, as a fraction."""
    value = positive(printed)
    return None if value is None else value * 0.01


Bytes = npt.NDArray[np.uint8]
Span = tuple[int, int]
"""Where a number starts and ends in a line."""

EXACT_DIGITS: Final = 15
"""A whole number of 15 digits is exact as a float, and so is 10²²: their product and quotient are
rounded once, as float() rounds. Source: Clinger, How to read floating point numbers accurately,
1990."""
_POWERS: Final = np.array([float(10**exponent) for exponent in range(23)])
_MOST_EXPONENT_DIGITS: Final = 4
_MULTIPLIED: Final = 1 << 10
_DECIMAL = re.compile(rb"[-+]?(?P<whole>\d*)\.?(?P<part>\d*)(?:[eE](?P<sign>[-+]?)(?P<power>\d+))?")
_ZERO: Final = ord("0")
_ZEROED = bytes(range(256)).translate(bytes.maketrans(b"123456789", b"000000000"))


@dataclass(frozen=True)
class _Decimal:
    """A number at the same place in each line: the columns of its digits."""

    name: str
    span: Span
    mantissa: tuple[int, ...]
    num_part: int
    power: tuple[int, ...]
    power_sign: int
    sign: int


@dataclass(frozen=True, eq=False)
class LineShape:
    """How a line looks, and where the numbers of a step are in it.

    `base` is the line with a 0 for each digit. `digits` are the columns that are read, `weights`
    what each is worth in the mantissa of each decimal, then in the exponents. `texts` are the
    numbers with too many digits for that. `marker_at`: where the marker is.
    """

    marker_at: int
    base: Bytes
    digits: Ints
    weights: Floats
    divisors: Floats
    decimals: tuple[_Decimal, ...]
    texts: Mapping[str, Span]

    def matches(self, lines: Bytes) -> Flags:
        """Which lines of the same length differ from this one in digits only."""
        zeroed = translate(lines.tobytes(), _ZEROED)
        if zeroed == self.base.tobytes() * len(lines):
            return np.ones(len(lines), np.bool_)
        same = np.equal(np.frombuffer(zeroed, np.uint8).reshape(lines.shape), self.base)
        return np.asarray(same.all(axis=1))

    def read(self, lines: Bytes) -> dict[str, Floats]:
        """The numbers of lines that match, as float() reads them."""
        worth = (lines[:, self.digits] - _ZERO).astype(np.float64).T
        # A larger product is computed by several threads, which take longer together than one.
        parts = np.split(worth, range(_MULTIPLIED, len(lines), _MULTIPLIED), axis=1)
        found = np.concatenate([self.weights @ part for part in parts], axis=1)
        powers = iter(found[len(self.decimals) :])
        found = found[: len(self.decimals)] / self.divisors
        values = {name: _floats(lines, span) for name, span in self.texts.items()}
        for row, one in zip(found, self.decimals, strict=True):
            values[one.name] = _scaled(row, next(powers), one, lines) if one.power else row
        return values


def _scaled(mantissas: Floats, powers: Floats, of: _Decimal, lines: Bytes) -> Floats:
    scale = powers.astype(np.int64) - of.num_part
    factors = _POWERS[np.minimum(np.abs(scale), len(_POWERS) - 1)]
    values: Floats = np.where(scale < 0, mantissas / factors, mantissas * factors)
    inexact = np.abs(scale) >= len(_POWERS)
    if inexact.any():
        values[inexact] = _floats(lines[inexact], of.span)
    return values


def _floats(lines: Bytes, span: Span) -> Floats:
    start, end = span
    texts = np.ascontiguousarray(lines[:, start:end]).view(f"S{end - start}").ravel()
    return np.array([float(text) for text in texts.tolist()], np.float64)


def shape_of(line: bytes, marker_at: int, spans: Mapping[str, Span]) -> LineShape:
    """The shape of a line with a marker and numbers at these places."""
    read = {name: _decimal(name, line, span) for name, span in spans.items()}
    decimals = tuple(one for one in read.values() if one)
    digits = sorted({column for one in decimals for column in (*one.mantissa, *one.power)})
    column = {digit: place for place, digit in enumerate(digits)}
    rows = [(one.mantissa, 1) for one in decimals]
    rows += [(one.power, one.power_sign) for one in decimals if one.power]
    weights = np.zeros((len(rows), len(digits)))
    for row, (columns, sign) in enumerate(rows):
        for place, digit in enumerate(reversed(columns)):
            weights[row, column[digit]] = sign * _POWERS[place]
    divisors = [[one.sign * (1 if one.power else _POWERS[one.num_part])] for one in decimals]
    return LineShape(
        marker_at=marker_at,
        base=np.frombuffer(translate(line, _ZEROED), np.uint8),
        digits=np.array(digits, np.int64),
        weights=weights,
        divisors=np.array(divisors, np.float64).reshape(-1, 1),
        decimals=decimals,
        texts={name: spans[name] for name, one in read.items() if not one},
    )


def _decimal(name: str, line: bytes, span: Span) -> _Decimal | None:
    """Where the digits of a number are; None if there are too many, or none."""
    found = _DECIMAL.fullmatch(line, *span)
    if not found:
        return None
    mantissa = (*range(*found.span("whole")), *range(*found.span("part")))
    power = tuple(range(*found.span("power"))) if found["power"] else ()
    if not 0 < len(mantissa) <= EXACT_DIGITS or len(power) > _MOST_EXPONENT_DIGITS:
        return None
    power_sign = -1 if found["sign"] == b"-" else 1
    sign = -1 if line[span[0]] == ord("-") else 1
    return _Decimal(name, span, mantissa, len(found["part"]), power, power_sign, sign)
