"""Evaluate an arithmetic expression as a document prints it, exactly and without eval."""

import ast
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from perfdb.page_text import THOUSANDS, grouped, ungrouped

LONGEST = 300
"""Characters of an expression; a longer one is no worked example."""
LARGEST_EXPONENT = 100
LARGEST_BITS = 4096
"""Of a numerator or denominator: towers of powers are refused."""

NUMBER = (
    rf"(?:{grouped(THOUSANDS.replace(' ', ''))}|\d{{1,40}})(?:\.\d{{1,40}})?(?:[eE][+-]?\d{{1,3}})?"
)
"""Numbers of a size that a document works with; a plain space may stand between two of them."""
_NUMBER = re.compile(NUMBER)
_TIMES = re.compile(r"(?<=[\d)\s])[x×·∗](?=[\s\d(])")


@dataclass(frozen=True)
class Literal:
    """A number as it was printed: its value, and half a unit in its last place."""

    value: Fraction
    half_unit: Fraction

    @property
    def exact(self) -> bool:
        """Whether it is a count, which is not rounded; 1e12 is one too."""
        return self.half_unit >= Fraction(1, 2) or self.half_unit == 0


def literal(text: str) -> Literal:
    """A printed number, thousands separators and exponent included."""
    number = Decimal(ungrouped(text))
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), f"{text} is no finite number"
    return Literal(Fraction(number), Fraction(10) ** exponent / 2)


def value(text: str) -> Fraction | None:
    """The value of numbers joined by + - * / ^ and brackets; None for anything else."""
    tree = parsed(text)
    return None if tree is None else _value(tree)


def range_of(text: str) -> Fraction | None:
    """By how much the rounding of the numbers in an expression can change its value.

    To first order: the sum of what each rounded number changes alone. None where it has no value.
    """
    here = value(text)
    if here is None:
        return None
    total = Fraction(0)
    for found in _NUMBER.finditer(text):
        number = literal(found[0])
        if not number.exact:
            nudged = f"({number.value + number.half_unit})"
            there = value(text[: found.start()] + nudged + text[found.end() :])
            total += abs(there - here) if there is not None else 0
    return total


def parsed(text: str) -> ast.expr | None:
    """The expression's tree; None where the text is no expression."""
    if len(text) > LONGEST:
        return None
    plain = _TIMES.sub("*", text).replace("^", "**").replace("÷", "/").replace("−", "-")
    written = _NUMBER.sub(lambda found: f"({literal(found[0]).value})", plain)
    try:
        return ast.parse(written.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _value(node: ast.expr) -> Fraction | None:
    match node:
        case ast.Constant(value=int(number)):
            return Fraction(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            below = _value(operand)
            return None if below is None else -below
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _value(left), _value(right)
            return None if a is None or b is None else _combined(a, operator, b)
        case _:
            return None


def _combined(a: Fraction, operator: ast.operator, b: Fraction) -> Fraction | None:
    match operator:
        case ast.Add():
            return _bounded(a + b)
        case ast.Sub():
            return _bounded(a - b)
        case ast.Mult():
            return _bounded(a * b)
        case ast.Div():
            return _bounded(a / b) if b else None
        case ast.Pow():
            return _power(a, b)
        case _:
            return None


def _power(base: Fraction, exponent: Fraction) -> Fraction | None:
    if exponent.denominator != 1 or not 0 <= exponent <= LARGEST_EXPONENT:
        return None
    return _bounded(base ** int(exponent))


def _bounded(number: Fraction) -> Fraction | None:
    bits = max(number.numerator.bit_length(), number.denominator.bit_length())
    return number if bits <= LARGEST_BITS else None
