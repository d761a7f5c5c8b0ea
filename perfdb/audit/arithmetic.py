"""Worked examples in a document: find `expression = number`, and say where the number is wrong."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, takewhile

from perfdb.audit import expression
from perfdb.audit.expression import NUMBER, Literal
from perfdb.audit.subject import Finding, Severity
from perfdb.errors import Diagnostic
from perfdb.page_text import THOUSANDS, grouped, ungrouped

NAME = "arithmetic"
MEANING = "a calculation that a document works out comes to the number it prints"

_EQUALS = re.compile(r"(?<![=<>!:+\-*/])=(?!=)")
_TOKEN = re.compile(
    rf"(?P<number>{NUMBER})|(?P<operator>[-+*/^()×·÷−∗]|x(?=\s|\(|\d+\b))|(?P<space>\s+)"
    r"|(?P<word>[^\W\d]\w*)|(?P<other>.)"
)
_BULLET = re.compile(r"\s*[-*+]\s+")
_SCALED = (
    r"\s*(?:(?:thousand|million|billion|trillion)s?|[bB]n?|[munµ]s|[kKMGTPE]"
    r"(?:i?[bB][a-z]{0,5}|[fF](?:[lL][oO][pP]\w*)?|[tT]ok\w*|[pP]aram\w*|[wW]h?|Hz)?)\b"
)
_CLOSE = THOUSANDS.replace(" ", "")
_RESULT = re.compile(
    rf"\s*+(-?(?>{grouped(' ')}(?:\.\d{{1,40}})?|{NUMBER}))(\s?%)?+"
    rf"(?!\w|[{_CLOSE}.]\d|\s*[-−–+*/^×·÷∗(]\s*[\d(]|{_SCALED})"
)
_HUNDRED = r"(?<![\d.,])100(?:\.0+)?(?!\d|[.,]\d)"
_IN_PERCENT = re.compile(rf"{_HUNDRED}\s*(?:[-−+*×x·∗]|[/÷].*[*×x·∗])|[-−+*×x·∗]\s*{_HUNDRED}")
"""A hundred that makes percent of a share, or is added to or taken from one; no mere divisor."""
_LABEL = re.compile(r"[A-Za-z][\w ./()-]*$")
LONGEST_LABEL = 60
_MOST_ZEROS = 2
"""An integer with more zeros at its end than this may have been rounded to them."""


@dataclass(frozen=True)
class Claim:
    """An expression and the number a document says it comes to."""

    line: int
    label: str | None
    """What the document calls it: 'attention flops'."""
    expression: str
    printed: str
    percent: bool


def claims(text: str) -> Iterator[Claim]:
    """Every `expression = number` of a text, of a chain of equals each one.

    A number with a unit of thousands or more (TFLOP, GB, million) is none: it may be scaled.
    Of `32 128` either the whole or the first number may be meant.
    """
    for line, words in enumerate(text.splitlines(), start=1):
        parts = _EQUALS.split(_BULLET.sub("", words, count=1) if _BULLET.match(words) else words)
        for place, (left, right) in enumerate(pairwise(parts)):
            result, said = _RESULT.match(right), _calculation(left)
            if result and said:
                label = _label(parts[0]) if place else None
                yield Claim(line, label, said, result[1], bool(result[2]))


def _calculation(left: str) -> str | None:
    """The expression that a text ends with; None where it ends with words or a single number."""
    tokens = list(_TOKEN.finditer(left))
    tail = list(takewhile(_belongs, reversed(tokens)))
    kinds = [token.lastgroup for token in tail]
    if kinds.count("number") < 2 or "operator" not in kinds:
        return None
    begins = left[: tail[-1].start()]
    said = left[tail[-1].start() :]
    return None if _continues(begins, said) else said.strip()


def _belongs(token: re.Match[str]) -> bool:
    return token.lastgroup in ("number", "operator", "space")


def _continues(begins: str, said: str) -> bool:
    """Whether the words before are part of the calculation: h^2 * 3, f(4 * 8), v1.2 * 3."""
    if said.lstrip()[0] in "+-*/^×·÷−∗x":
        return bool(begins.strip()) or not re.match(r"\s*[-−]\S", said)
    return bool(begins) and not said[0].isspace() and (begins[-1].isalnum() or begins[-1] in "_.,")


def _label(left: str) -> str | None:
    found = _LABEL.search(left.strip()[-LONGEST_LABEL:])
    return found[0].strip() if found else None


def nothing_in(where: str, content: bytes) -> Diagnostic | None:
    """Why there is nothing to audit in a document; None where there is a worked example."""
    if not content.strip():
        return Diagnostic(
            where, "nothing to audit: the file is empty", remedy="write or copy it again"
        )
    if b"\0" in content:
        return Diagnostic(
            where, "nothing to audit: the file is no text", remedy="save it as UTF-8 text"
        )
    if any(claims(content.decode(errors="replace"))):
        return None
    message = "nothing to audit: no worked example such as '4096 * 256 / 2.693 = 389371'"
    remedy = "to audit its tables, `perfdb ingest` it and audit the store"
    return Diagnostic(where, message, remedy=remedy)


def check(where: str, text: str) -> tuple[Finding, ...]:
    """A finding for each claim of a document that does not come out within rounding.

    Only information, where the rounding of the numbers that it starts from can explain it.
    """
    return tuple(finding for claim in claims(text) for finding in _judged(where, claim))


def _judged(where: str, claim: Claim) -> Iterator[Finding]:
    readings = [
        (_off(text, computed), computed, room)
        for computed, room in _values(claim)
        for text in (claim.printed, claim.printed.partition(" ")[0])
    ]
    off, computed, room = min(readings, default=(Fraction(0),) * 3)
    if off > 0:
        yield _finding(where, claim, computed, Severity.INFO if off <= room else Severity.ERROR)


def _values(claim: Claim) -> list[tuple[Fraction, Fraction]]:
    """What the expression can come to, each with its rounding; a hundred may make percent."""
    computed, room = expression.value(claim.expression), expression.range_of(claim.expression)
    if computed is None or room is None:
        return []
    as_it_stands, as_a_share = (computed, room), (computed * 100, room * 100)
    if not claim.percent:
        return [as_it_stands]
    return [as_a_share, as_it_stands] if _IN_PERCENT.search(claim.expression) else [as_a_share]


def _off(text: str, computed: Fraction) -> Fraction:
    printed = expression.literal(text)
    return abs(printed.value - computed) - _rounding(text, printed)


def _rounding(text: str, printed: Literal) -> Fraction:
    digits = ungrouped(text.lstrip("-"))
    zeros = len(digits) - len(digits.rstrip("0")) if digits.isdigit() else 0
    return printed.half_unit * 10**zeros if zeros > _MOST_ZEROS else printed.half_unit


def _finding(where: str, claim: Claim, computed: Fraction, severity: Severity) -> Finding:
    unit = "%" if claim.percent else ""
    expected = _shown(computed, claim.printed) + unit
    why = ", unless its numbers were rounded first" if severity is Severity.INFO else ""
    return Finding(
        rule=NAME,
        severity=severity,
        fields=(claim.label,) if claim.label else (),
        expected=expected,
        found=claim.printed + unit,
        message=f"{claim.expression} is {expected}, not {claim.printed}{unit}{why}",
        suggestion=f"write {expected}",
        model=None,
        system=None,
        release=None,
        source=where,
        source_line=claim.line,
        framework=None,
    )


def _shown(number: Fraction, like: str) -> str:
    """A number with as many decimals as another was printed with, and its thousands separators."""
    mantissa, _, exponent = like.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    units = round(number / Fraction(10) ** int(exponent or 0) * 10**decimals)
    mark = next((sign for sign in mantissa if sign in THOUSANDS), "")
    shown = f"{Decimal(units).scaleb(-decimals):,.{decimals}f}".replace(",", mark)
    return shown + (exponent and f"e{exponent}")
