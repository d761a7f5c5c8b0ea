"""From the text of a cell to a value: numbers, flags, lists, pairs, and what stands for nothing."""

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

ABSENT = frozenset(
    {"", "-", "--", "–", "—", "−", "n/a", "na", "n.a.", "none", "null", "nan", "tbd"}
)
"""What pages print where there is no value, in lower case."""

LARGEST = 2**31 - 1
"""No size on a page is larger; the store's integer columns end here."""

APART = "\n"
"""Stands in a cell between numbers that no run of text holds together, as in `400<br>408`."""

TABLE = "\ufffc"
"""Stands in a cell for a table in it."""

EDGE = "\0"
"""Where a run of text begins or ends, while a cell's text is put together."""

_MARKS = (
    r"\[\^[^\]\s]{1,99}\]|\[[^\]\s]{1,99}\]_|\[(?:\d{1,2}|[*†‡§#])\](?!\()|<sup>[^<]*</sup>"
    r"|(?<![*†‡§⁰¹²³⁴-⁹])[*†‡§⁰¹²³⁴-⁹]++(?=\s|[()\[/,]|$)"
)
_NOTE = re.compile(rf"{_MARKS}|\[[a-z]\](?!\()")
_NOTE_OF_TITLE = re.compile(_MARKS)
"""A letter in brackets is a unit there: `Step time [s]`."""

_OF_NUMBER = "[0-9.,_'’]"
_APART = re.compile(
    rf"(?<={_OF_NUMBER})(?![ \u00a0\u2009\u202f]{_OF_NUMBER})[\s{EDGE}]+(?={_OF_NUMBER})"
)
"""Between digits, all but the one space that may group them."""

_HYPHENS = str.maketrans("\u2010\u2011", "--")
_STRUCK = re.compile(
    r"~~|</?(?:s|del|strike)\b|line-through|\{(?:s|del|strike|strikethrough)\}|^~[^~]+~$", re.I
)

THOUSANDS = ",_'’ \u00a0\u2009\u202f"
"""What may stand between the thousands of a number, one of them throughout."""

_NO_MARKS = str.maketrans("", "", THOUSANDS)


def grouped(marks: str = THOUSANDS) -> str:
    """The pattern of a whole number with such a mark between its thousands."""
    groups = "|".join(f"(?:{mark}[0-9]{{3}}){{1,12}}" for mark in marks)
    return f"[1-9][0-9]{{0,2}}(?:{groups})(?![0-9])"


def ungrouped(number: str) -> str:
    """A printed number without the marks between its thousands."""
    return number.translate(_NO_MARKS)


NUMBER = rf"(?:{grouped()}|[0-9]+)(?:\.[0-9]+)?"
"""The pattern of a printed number."""

_NUMBER = re.compile(NUMBER)
_NOT_APPLICABLE = re.compile(r"\bn/a\b", re.IGNORECASE)
_SEPARATORS = ("/", r",\s+", ",")
"""Between the values of one cell; a comma may also stand in a number."""

_PRODUCT = re.compile(r"(?:#-?)?GPUs? ?[*×] ?([0-9]{1,9})", re.IGNORECASE)
_FORMULA = re.compile(r"GPUs? ?[-+*/×÷]|[-+*/×÷] ?#?-?GPU", re.IGNORECASE)
_FORMULA_REMEDY = "write what it comes to: of formulas only products such as GPUs*6 are computed"
_NUMBER_REMEDY = "write it as 1022.26 or 1,022.26, or - where there is none"
_PAIR_REMEDY = "write one value, or say below the table what the one in brackets is"
_WHOLE_REMEDY = "write a whole number, such as 8 or 1,024, or - where there is none"
_PAIR = re.compile(r"([^()]*[^()\s])\s*\(([^()]+)\)")
_LONGEST = 30


@dataclass(frozen=True)
class Wrong:
    """Why a cell is not a value, and what to do."""

    message: str
    remedy: str


def together(text: str) -> str:
    """The runs of text of a cell as one, with single spaces; EDGE stands between them.

    Numbers of two runs, or on two lines, stay apart.
    """
    parts = _APART.split(text)
    return APART.join(" ".join(part.replace(EDGE, "").split()) for part in parts)


def value(text: str) -> str:
    """A cell's text without footnote marks; numbers that are apart in it stay apart."""
    return together(_NOTE.sub(EDGE, text)).translate(_HYPHENS)


def plain(text: str) -> str:
    """A cell's text for people to read."""
    return text.replace(APART, " ").replace(TABLE, "(table)")


def cleaned(text: str) -> str:
    """A text without footnote marks and with single spaces, its hyphens plain ones."""
    return " ".join(_NOTE.sub("", text).split()).translate(_HYPHENS)


def title(text: str) -> str:
    """A column's title without footnote marks; a letter in brackets is none, but a unit."""
    return " ".join(_NOTE_OF_TITLE.sub("", text).split()).translate(_HYPHENS)


def struck(text: str) -> bool:
    """Whether a text, or a part of it, is struck out: withdrawn, but still there to be seen."""
    return _STRUCK.search(text) is not None


def notes(text: str) -> tuple[str, ...]:
    """The footnote marks in a cell's text, as they stand there."""
    return tuple(_NOTE.findall(text))


def absent(text: str) -> bool:
    """Whether a cell says that there is no value."""
    return text.casefold() in ABSENT


def pair(text: str) -> tuple[str, str] | None:
    """The two values of a cell such as `661 (624)`; None where it holds one."""
    found = _PAIR.fullmatch(text)
    return (found[1], found[2].strip()) if found else None


def parts(text: str, count: int) -> tuple[str, ...] | None:
    """The values of `8/1/4`, or `8, 1, 4`; None where there are not `count` of them.

    Of `8/1 (4/2)` each is a pair: `8 (4)` and `1 (2)`. A cell without a value has none for any.
    """
    if absent(text):
        return (text,) * count
    if (two := pair(text)) and (first := parts(two[0], count)) and (second := parts(two[1], count)):
        return tuple(f"{a} ({b})" for a, b in zip(first, second, strict=True))
    plain = _NOT_APPLICABLE.sub("-", text)
    for separator in _SEPARATORS:
        values = tuple(value.strip() for value in re.split(separator, plain))
        if len(values) == count:
            return values
    return None


def decimal(text: str) -> float | Wrong | None:
    """A number, with or without thousands separators; None where there is none."""
    if absent(text):
        return None
    if APART in text:
        remedy = "write one number, with no markup or line break between its digits"
        return Wrong(f"{_shown(text)} is not one number", remedy)
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        remedy = _PAIR_REMEDY if pair(text) else _NUMBER_REMEDY
        return Wrong(f"{_shown(text)} is not a number", remedy)
    return float(ungrouped(text))


def seconds(text: str) -> str:
    """Milliseconds in seconds, of a pair both: `16,980` is `16.980`. Other text as it stands."""
    if two := pair(text):
        return f"{seconds(two[0])} ({seconds(two[1])})"
    if not isinstance(decimal(text), float):
        return text
    return f"{Decimal(ungrouped(text)).scaleb(-3):f}"


def whole(text: str) -> int | Wrong | None:
    """A whole number of 0 or more; None where there is none."""
    value = decimal(text)
    if isinstance(value, Wrong):
        return replace(value, remedy=_FORMULA_REMEDY if _FORMULA.search(text) else _WHOLE_REMEDY)
    if value is None:
        return None
    if "." in text:
        return Wrong(f"{_shown(text)} is not a whole number", _WHOLE_REMEDY)
    if value > LARGEST:
        remedy = f"write a whole number up to {LARGEST:,}"
        return Wrong(f"{_shown(text)} is not a whole number of that size", remedy)
    return int(value)


def positive(text: str) -> int | Wrong | None:
    """A whole number above 0."""
    value = whole(text)
    return (
        Wrong("0 is not possible", "write a number above 0, or - if unknown")
        if value == 0
        else value
    )


def product(text: str, num_gpus: int) -> int | None:
    """What `GPUs*6` comes to for so many GPUs; None for any other text."""
    found = _PRODUCT.fullmatch(text)
    return num_gpus * int(found[1]) if found else None


def required(text: str) -> int | Wrong:
    """A whole number above 0 that identifies the work: a row cannot do without it."""
    value = positive(text)
    return (
        Wrong("is missing", "fill it in: a row cannot be told from others without it")
        if value is None
        else value
    )


def size(text: str) -> int | Wrong | None:
    """A parallel size; 0 says that it is not used."""
    value = whole(text)
    return None if value == 0 else value


def figure(text: str) -> float | Wrong | None:
    """A rate or a time. 0 stands for a figure that is missing: nothing trains at rate 0."""
    value = decimal(text)
    return None if value == 0 else value


def fraction(text: str) -> float | Wrong | None:
    """A share of the peak: `43.1%` is 0.431."""
    value = decimal(text.removesuffix("%").rstrip())
    if value is None or isinstance(value, Wrong):
        return value
    if text.endswith("%"):
        return float(Decimal(str(value)).scaleb(-2))
    return value if value <= 1 else Wrong(f"{text} is above 1", f"write it as {text}%")


def flag(text: str) -> bool | Wrong | None:
    """0 or 1, no or yes, a tick or a cross."""
    if absent(text):
        return None
    known = ticked(text)
    return Wrong(f"{_shown(text)} is neither 0 nor 1", "write 0 or 1") if known is None else known


def ticked(text: str) -> bool | None:
    """Whether a cell says yes; None where it says neither yes nor no."""
    return _TICKS.get(text.removesuffix(_AS_EMOJI).casefold())


_TICKS: Final = {
    **dict.fromkeys(("1", "yes", "y", "true", "on", "✓", "✔", "✅", "☑"), True),
    **dict.fromkeys(("0", "no", "n", "false", "off", "✗", "✘", "✖", "❌", "☐"), False),
}
_AS_EMOJI: Final = "\N{VARIATION SELECTOR-16}"


def listed(text: str) -> tuple[str, ...]:
    """The parts of `TE + DeepEP`."""
    parts = (" ".join(part.split()) for part in text.split("+"))
    return () if absent(text) else tuple(part for part in parts if part)


def _shown(text: str) -> str:
    text = plain(text)
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
