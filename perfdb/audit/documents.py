"""Worked examples in a document: find `expression = number`, and report where it is wrong.

Expressions are numbers joined by + - * / ^ and brackets. They are evaluated exactly, without eval.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Final

from perfdb.errors import Diagnostic
from perfdb.record import Finding, Severity

NAME = "arithmetic"
MEANING = "a calculation in a document gives the number that it prints"
LONGEST = 300
"""Characters of an expression; a longer one is no worked example."""
LARGEST_EXPONENT = 100
LARGEST_BITS = 4096
"""Of a numerator or denominator: towers of powers are refused."""
MOST_ZEROS = 2
"""An integer with more zeros at its end than this may have been rounded to them."""

_NUMBER: Final = (
    r"(?>[1-9]\d{0,2}(?:,\d{3}){1,12}(?!\d)|\d{1,40})(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3})?"
)
_OPERATOR: Final = r"(?:\*\*|[-+*/^×÷−]|x(?=[\s(]))"
_EQUALS = re.compile(r"(?<![=<>!:+\-*/])=(?!=)")
_BULLET = re.compile(r"\s*[-*+]\s+")
_CALCULATION = re.compile(
    rf"(?<![\w.,^])[-(]*{_NUMBER}[\s)]*(?:{_OPERATOR}[\s(]*-?{_NUMBER}[\s)]*)+$"
)
_SCALED: Final = (
    r"\s*(?:(?:thousand|million|billion|trillion)s?|bn|[bB]|[munµ]s|[kKMGTP](?!PU)\w{0,6})\b"
)
_RESULT = re.compile(
    rf"\s*(-?{_NUMBER})(\s?%)?(?!\w|[,.']\d|\s\d{{3}}(?!\d)|\s*[-−+*/^×÷(]\s*[\d(]|{_SCALED})"
)
_LABEL = re.compile(r"[A-Za-z][\w ./()-]{0,59}$")
_HUNDRED = re.compile(r"(?<![\d.,])100(?![\d.,])")
"""A hundred that may make percent of a share."""


@dataclass(frozen=True)
class Claim:
    """An expression and the number that a document prints for it.

    `label` is what the document calls it, such as 'attention flops'; `unit` is '%' or empty.
    """

    line: int
    label: str | None
    expression: str
    printed: str
    unit: str


def claims(text: str) -> Iterator[Claim]:
    """Every `expression = number` of a text; in a chain of equals each one.

    A number with a unit of thousands or more (TFLOP, GB, million) is no claim: it may be scaled.
    """
    for line, words in enumerate(text.splitlines(), start=1):
        parts = _EQUALS.split(_BULLET.sub("", words, count=1) if _BULLET.match(words) else words)
        for position, (left, right) in enumerate(pairwise(parts)):
            result, expression = _RESULT.match(right), _calculation(left)
            if result and expression:
                label = _LABEL.search(parts[0].strip()[-60:]) if position else None
                name, unit = label[0].strip() if label else None, "%" if result[2] else ""
                yield Claim(line, name, expression, result[1], unit)


def _calculation(left: str) -> str | None:
    """The expression that a text ends with; None where it continues something else."""
    tail = left[-LONGEST:]
    found = _CALCULATION.search(tail)
    before = tail[: found.start()].rstrip()[-1:] if found else ""
    return None if not found or re.match(r"[-+*/^×÷()\d]", before) else found[0].strip()


def nothing_in(where: str, text: str) -> Diagnostic | None:
    """Why there is nothing to audit in a document; None where there is a worked example."""
    if not text.strip():
        why, remedy = "the file is empty", "write or copy it again"
    elif "\0" in text:
        why, remedy = "the file is no text", "save it as UTF-8 text"
    elif any(claims(text)):
        return None
    else:
        why = "no worked example such as '4096 * 256 / 2.693 = 389371', nor table of configurations"
        remedy = "to audit tables of results, `perfdb ingest` it and audit the store"
    return Diagnostic(where, f"nothing to audit: {why}", remedy=remedy)


def check(where: str, text: str) -> tuple[Finding, ...]:
    """A finding for each claim of a document that does not come out within rounding.

    Only information, where the rounding of the numbers in the expression can explain it.
    """
    found = (_checked(where, claim) for claim in claims(text))
    return tuple(finding for finding in found if finding)


def _checked(where: str, claim: Claim) -> Finding | None:
    if (value := evaluate(claim.expression)) is None:
        return None
    digits = claim.printed.lstrip("-").replace(",", "")
    zeros = len(digits) - len(digits.rstrip("0")) if digits.isdigit() else 0
    rounding = _half_unit(claim.printed) * (10**zeros if zeros > MOST_ZEROS else 1)
    # A share in percent is a hundredfold, unless the expression says so itself.
    factors: tuple[int, ...] = (100,) if claim.unit else (1,)
    if claim.unit and _HUNDRED.search(claim.expression):
        factors = (100, 1)
    off, factor = min(
        (abs(_value(claim.printed) - value * factor) - rounding, factor) for factor in factors
    )
    if off <= 0:
        return None
    is_sure = off > _uncertainty(claim.expression, value) * factor
    found = f"{claim.printed}{claim.unit}"
    expected = _like(claim.printed, value * factor) + claim.unit
    why = "" if is_sure else ", unless its numbers were rounded first"
    return Finding(
        rule=NAME,
        severity=Severity.ERROR if is_sure else Severity.INFO,
        fields=(claim.label,) if claim.label else (),
        expected=expected,
        found=found,
        message=f"{claim.expression} is {expected}, not {found}{why}",
        suggestion=f"write {expected}",
        source=where,
        source_line=claim.line,
    )


def _like(printed: str, number: Fraction) -> str:
    """A number with as many decimals as another was printed with, and with its commas."""
    mantissa, _, exponent = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    units = round(number / Fraction(10) ** int(exponent or 0) * 10**decimals)
    shown = f"{Decimal(units).scaleb(-decimals):,.{decimals}f}"
    shown = shown if "," in mantissa else shown.replace(",", "")
    return shown + (exponent and f"e{exponent}")


def _value(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))


def _half_unit(text: str) -> Fraction:
    """Half a unit in the last place of a printed number."""
    exponent = Decimal(text.replace(",", "")).as_tuple().exponent
    assert isinstance(exponent, int), f"{text} is no finite number"
    return Fraction(10) ** exponent / 2


def _uncertainty(text: str, here: Fraction) -> Fraction:
    """By how much the rounding of the numbers in an expression can change its value.

    To first order: the sum of what each rounded number changes alone. A whole number is a count,
    which is not rounded; 1e12 is one, too.
    """
    total = Fraction(0)
    for found in re.finditer(_NUMBER, text):
        half_unit = _half_unit(found[0])
        if half_unit < Fraction(1, 2):
            nudged = f"({_value(found[0]) + half_unit})"
            there = evaluate(text[: found.start()] + nudged + text[found.end() :])
            total += abs(there - here) if there is not None else 0
    return total


def evaluate(text: str) -> Fraction | None:
    """The value of an expression; None for anything else."""
    plain = re.sub(r"[x×](?=[\s(\d])", "*", text)
    plain = plain.replace("^", "**").replace("÷", "/").replace("−", "-")
    written = re.sub(_NUMBER, lambda found: f"({_value(found[0])})", plain)
    try:
        return _evaluated(ast.parse(written.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or not 0 <= exponent <= LARGEST_EXPONENT:
        raise ValueError("too large")
    return base ** int(exponent)


_OPERATIONS: Final[Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _power,
}


def _evaluated(node: ast.expr) -> Fraction:
    """The value of a tree. Raises ValueError for what is no arithmetic, or too large."""
    match node:
        case ast.Constant(value=int(number)):
            return Fraction(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluated(operand)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATIONS:
            found = _OPERATIONS[type(sign)](_evaluated(left), _evaluated(right))
            if max(found.numerator.bit_length(), found.denominator.bit_length()) > LARGEST_BITS:
                raise ValueError("too large")
            return found
    raise ValueError("no arithmetic")
