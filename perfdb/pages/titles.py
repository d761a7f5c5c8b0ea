"""What the title of a column says: what sets it apart, its unit, and what may stand behind it."""

import re
import unicodedata
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from perfdb import catalog

_PER = r"\s*(?:/|\bper\b)\s*"
_SECOND = r"s(?:ec(?:ond)?)?"
_PER_GPU = rf"{_PER}(?:{_SECOND}{_PER}(?:gpu|device)|(?:gpu|device){_PER}{_SECOND})"
_STEP = r"(?:global\s+)?(?:step|iter(?:ation)?)"
_SECONDS = r"\s*[(\[](?:in\s+)?s(?:ec(?:ond)?s?)?[)\]]"
_TOKENS = r"tok(?:en)?s?"
_ALL = r"(?:total|global|aggregated?|cluster|all\s+gpus)"
"""Words for all GPUs of a job together."""
_UNITS: Final = (
    (
        "tokens_per_sec_per_gpu",
        rf"(?:throughput\s*)?\(?(?:{_TOKENS}{_PER_GPU}|tps{_PER}(?:gpu|device))\)?",
    ),
    (
        "tokens_per_sec",
        rf"{_ALL}\s+(?:throughput\s*)?\(?{_TOKENS}{_PER}{_SECOND}\)?"
        rf"|(?:throughput\s*)?\(?{_TOKENS}{_PER}{_SECOND}(?:\s*\(|,?\s+){_ALL}\)?",
    ),
    (
        "model_tflops_per_sec_per_gpu",
        rf"(?:model\s+)?(?:throughput(?:{_PER}gpu)?\s*)?\(?(?:model\s+)?tflops?{_PER_GPU}\)?",
    ),
    (
        "step_time_s",
        rf"(?:elapsed\s+)?(?:{_STEP}\s+time|time{_PER}{_STEP}){_SECONDS}"
        rf"|s(?:ec(?:ond)?s?)?{_PER}{_STEP}",
    ),
)
_BY_UNIT: Final = tuple((name, re.compile(unit, re.IGNORECASE)) for name, unit in _UNITS)
"""Figures whose unit leaves no doubt. Signs count: `Tokens/GPU` is no `Token/s/GPU`."""

_BEHIND = re.compile(r"(.*\S)(?:\s*\(([^()]*)\)|[\s,]+([^\s,()]+))")
OTHER_SCALE: Final = re.compile(
    r"\b(?:[kmgp]|kilo|mega|giga|peta)[- ]?(?:tok|flop)|thousand|million", re.IGNORECASE
)
_IN_SECONDS = re.compile(r"\bs(?:ec(?:ond)?s?)?\b", re.IGNORECASE)
_MIDDLES: Final = frozenset({"median", "mean", "average", "avg", "avg."})
"""How a figure was taken of its steps; a maximum or a percentile is another figure."""
_MOST_PRECISIONS: Final = 2
_LONGEST: Final = 120
"""Characters of a title that may be one of a figure."""

_SAYS_ANOTHER: Final = frozenset({"Nd", "Sm", "Sc"})
"""Signs that make another title, as letters do: digits, those of mathematics and of money."""
_BETTER: Final = frozenset("↑↓")
"""Signs of mathematics that say only which values are better."""
_LETTER = re.compile("[a-z]")
_FEWEST_LETTERS: Final = 5
"""In titles that are shorter another letter makes another title."""


@lru_cache(maxsize=1024)
def squeezed(title: str) -> str:
    """What sets a title apart from others: `Tokens/s/GPU (%)` is no `Tokens/s/GPU`."""
    return "".join(filter(_counts, title.casefold()))


def _counts(sign: str) -> bool:
    kind = unicodedata.category(sign)
    return sign in "%‰" or kind[0] == "L" or (kind in _SAYS_ANOTHER and sign not in _BETTER)


def is_a_letter_off(title: str, known: str) -> bool:
    """Whether two squeezed titles differ by one letter; by another sign they are not alike."""
    if len(title) < _FEWEST_LETTERS or abs(len(title) - len(known)) > 1:
        return False
    if _LETTER.sub("", title) != _LETTER.sub("", known):
        return False
    steps = SequenceMatcher(None, title, known, autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for tag, a, b, c, d in steps if tag != "equal") == 1


def figure(title: str) -> str | None:
    """The figure that a title names by its unit; None where it names none, or leaves doubt."""
    if len(title) > _LONGEST:
        return None
    words = title.replace("_", " ")
    return next((name for name, unit in _BY_UNIT if unit.fullmatch(words)), None)


def of_gpu(title: str) -> bool:
    """Whether a title says that its values are of one GPU: `TPS/GPU`."""
    return re.search(r"(?:/|\bper\b)\s*(?:gpu|device)\b", title, re.IGNORECASE) is not None


def without_ends(title: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """A title without the words behind it that are understood, one word less each time.

    With each the precisions that were left out: of `MFU FP8-CS (FP8-MX)` both. A second one stands
    in brackets, as its values do.
    """
    precisions: tuple[str, ...] = ()
    second_in_brackets = False
    while len(title) <= _LONGEST and (found := _BEHIND.fullmatch(title)):
        title, inner, bare = found.groups()
        word = (bare or inner).strip()
        if catalog.precision_of(word):
            second_in_brackets = second_in_brackets if precisions else bare is None
            precisions = (word, *precisions)
        elif word.casefold() not in _MIDDLES:
            return
        if len(precisions) > (_MOST_PRECISIONS if second_in_brackets else 1):
            return
        yield title, precisions


def leaves_unit_open(title: str, field: str) -> bool:
    """Whether the values below a mistyped title may be in another unit: `kTokens/s/GPU`."""
    unsaid = field == "step_time_s" and not _IN_SECONDS.search(title)
    return unsaid or OTHER_SCALE.search(title) is not None
