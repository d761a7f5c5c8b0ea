"""The text of pages and documents: its encoding, printed numbers, and what is no value."""

import codecs
import re
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Final

ABSENT: Final = frozenset(
    {"", "-", "--", "–", "—", "−", "n/a", "na", "n.a.", "none", "null", "nan", "tbd"}
)
"""What pages print where there is no value, in lower case."""

THOUSANDS: Final = ",_'’ \u00a0\u2009\u202f"
"""What may separate the thousands of a number, one of them throughout."""

_NO_SEPARATORS = str.maketrans("", "", THOUSANDS)


def grouped(marks: str = THOUSANDS) -> str:
    """The pattern of a whole number with such a separator between its thousands."""
    groups = "|".join(f"(?:{mark}[0-9]{{3}}){{1,12}}" for mark in marks)
    return f"[1-9][0-9]{{0,2}}(?:{groups})(?![0-9])"


NUMBER: Final = rf"(?:{grouped()}|[0-9]+)(?:\.[0-9]+)?"
"""The pattern of a printed number."""

_NUMBER = re.compile(NUMBER)
_LONGEST: Final = 30


def ungrouped(number: str) -> str:
    """A printed number without its thousands separators."""
    return number.translate(_NO_SEPARATORS)


def absent(text: str) -> bool:
    """Whether a cell holds no value."""
    return text.casefold() in ABSENT


def parsed(text: str) -> float | None:
    """The number that a text is as a whole; None where it is anything else."""
    return float(ungrouped(text)) if len(text) <= _LONGEST and _NUMBER.fullmatch(text) else None


def share(text: str) -> float | None:
    """The fraction that a percentage prints, exactly: `43.1%` is 0.431; None for other texts."""
    number = text.removesuffix("%").rstrip()
    if not text.endswith("%") or parsed(number) is None:
        return None
    return float(Decimal(ungrouped(number)).scaleb(-2))


def seconds(text: str) -> str:
    """Milliseconds in seconds with the same digits: `16,980` is `16.980`; other text unchanged."""
    return text if parsed(text) is None else f"{Decimal(ungrouped(text)).scaleb(-3):f}"


_CHARSET = re.compile(
    rb"""<(?:meta|\?xml)\b[^<>]{0,200}?\b(?:charset|encoding)\s*=\s*["']?\s*
    (utf-?16|iso-8859-\d{1,2}|latin-?\d{1,2}|(?:windows|cp)-?\d{3,4}|us-ascii)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HEAD: Final = 4096
"""The bytes in which HTML names its encoding."""


def decoded_page(content: bytes) -> str:
    """The text of a page: UTF-8, or the encoding of its byte order mark or its `<meta>`.

    Raises UnicodeDecodeError where it is none of these.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    try:
        return content.decode()
    except UnicodeDecodeError:
        named = _CHARSET.search(content[:_HEAD])
        if named:
            with suppress(LookupError):  # an encoding that Python does not know
                return content.decode(named[1].decode())
        raise


def lines(numbers: Sequence[int]) -> str:
    """`line 7`, or `lines 7-9, 12`; the numbers are sorted."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number <= groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    spans = (f"{one[0]}-{one[-1]}" if one[-1] > one[0] else f"{one[0]}" for one in groups)
    return f"line{'s' if len(set(numbers)) > 1 else ''} {', '.join(spans)}"
