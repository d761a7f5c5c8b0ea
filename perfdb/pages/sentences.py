"""What the words of a heading or a sentence say of precisions, and of figures nobody measured."""

import re
from collections.abc import Sequence
from functools import lru_cache, partial

from perfdb import catalog
from perfdb.pages import elsewhere, names
from perfdb.pages.cells import cleaned

_HALF = re.compile(r"\bhalf[- ]precision\b|\bhalf\b", re.IGNORECASE)
_WORDS = re.compile(r"\w+(?:[- ]\w+)*")
_MOST_OF_NAME = 5
"""Words that make the name of a precision: `FP8 with per-tensor current scaling`."""
_BRACKETED = re.compile(r"(?<![\w-])\w++(?:-\w++)*+ ?\([^()]{0,40}\)")
_OTHER_PRECISION = re.compile(
    r"(?:MX|NV)?(?:FP|FLOAT|INT|BF|TF|NF)[0-9]\w*|E[0-9]M[0-9]\w*", re.IGNORECASE
)
_OF_ELEMENTS = re.compile(r"E[0-9]M[0-9]\w*", re.IGNORECASE)
"""Says how the elements of a precision are coded: of `FP8-MX (E4M3)` no second precision."""
_SENTENCE_ENDS = re.compile(r"(?<=[.;!?])\s+")
_AT_PRECISION = re.compile(
    r"\b(?:with|at|in)\s+(?:the\s+)?(\w+(?:-\w+)*)(?:\s+precision\b|\s*[.;!]?\s*$)", re.IGNORECASE
)
BESIDE = re.compile(
    rf"\b(?:{names.COMPARING}|relative|baseline|reference|instead|unlike|not|no|except|unless|but)\b",
    re.IGNORECASE,
)
"""What is in a sentence, or a heading, that names a precision which the rows need not have."""
_SPEAKS_OF_ALL = re.compile(
    r"(?:(?:all|the|these|our|those|performance|throughput)\s+)*"
    r"(?:numbers|figures|results|values|rows|rates|throughputs?|measurements|data)\b"
    r"(?:\s(?:below|above|here|shown|given|listed|reported"
    r"|(?:in|of|on)\s(?:this|the)\s(?:table|section|page)))*"
    r"\s(?:are|is|were|was)\s(?:(?:all|only|partly|mostly|just)\s)?(.*)",
    re.IGNORECASE,
)
"""A sentence that says something of the figures below."""
_SPEAKS_OF_ONE = re.compile(
    r"(?:(?:the|this|these|that|our|its?)\s+)?(?:\S+\s+){0,2}?"
    r"(?:numbers?|figures?|results?|values?|rows?|rates?|throughputs?|measurements?|entry)"
    r"\s(?:is|are|was|were)\s(?:an?\s)?(.*)",
    re.IGNORECASE,
)
"""A sentence of a footnote that says something of the row that it is of."""
OF_OTHERS_BELOW = re.compile(r"\b(?:below|following|next)\b|:\W*\Z", re.IGNORECASE)
_PIECES = re.compile(r"[,;|+/&]|\s[–—-]\s|\b(?:with(?:out)?|using|and)\b", re.IGNORECASE)
"""Between what a title says of its rows: `FP8, fused attention` is of no FP8 attention."""
_MOST_WORDS = 6
"""Of a text below a table that says nothing but how its figures came about."""

_FINE_TUNED = r"(?:pre-?train|(?:\w+\s+)?fine-?tun|sft|(?:\w+\s+)?lora)"
_OF_RUNS = re.compile(
    rf"\b(?:{names.FIGURES}|tables?|rows?|rates?|speeds?|benchmark\w*|measur\w*|profil\w*"
    r"|achiev\w*|ran|runs?|t?flops?|tokens?|step times?|mfu|below|above|[0-9]+\s(?:\w+\s)?gpus?)\b"
    rf"|\b(?:we|all|it|are|is|was|were)\s+{_FINE_TUNED}"
    rf"|^{_FINE_TUNED}\w*\s*(?:$|[-,.:;(|–—]|(?:at|for|in|of|on|with)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_IN_PASSING = re.compile(
    r"\b(?:see|can|may|could|might|later|library|toolkit|tool|guide|tutorial|enables?|allows?|lets"
    r"|supports?|supported|designed|framework (?:for|that|to))\b",
    re.IGNORECASE,
)
"""What is in a sentence that names a task which nobody need have run."""


def parts(text: str) -> list[str]:
    """The sentences of a text."""
    return _SENTENCE_ENDS.split(text)


@lru_cache(maxsize=4096)
def precisions(text: str) -> tuple[str, ...]:
    """The words for precisions that a text has."""
    text = _without_half(text)
    exact = {name: one[0] for one in _BRACKETED.finditer(text) if (name := names.bracketed(one[0]))}
    found = tuple({**exact, **_named(_BRACKETED.sub(_unless_exact, text))}.values())
    return tuple(word for word in found if not _OF_ELEMENTS.fullmatch(word)) or found


def _named(text: str) -> dict[str, str]:
    """The words for precisions by what they name; of `FP8 tensorwise` both words."""
    found: dict[str, str] = {}
    for run in _WORDS.findall(text):
        words = run.split(" ")
        while words:
            size = next(filter(partial(_is_name, words), range(_MOST_OF_NAME, 1, -1)), 1)
            word = " ".join(words[:size])
            if name := _precision(word):
                found[name] = word
            del words[:size]
    return found


def _is_name(words: Sequence[str], size: int) -> bool:
    return catalog.precision_of(" ".join(words[:size])) is not None


def _without_half(text: str) -> str:
    """A text with the name of what is half precision; the second half of a year is none."""
    return _HALF.sub(lambda found: "FP16 precision" if found[0][4:] else " ", text)


def _unless_exact(found: re.Match[str]) -> str:
    return " " if names.bracketed(found[0]) else found[0]


def _precision(word: str) -> str | None:
    """The precision that a word names; of one that the catalogue lacks the word."""
    other = _OTHER_PRECISION.fullmatch(word)
    return catalog.precision_of(word) or (other[0].upper() if other else None)


def is_of_runs(sentence: str) -> bool:
    """Whether a sentence says what was run, and does not name its things in passing."""
    said = not BESIDE.search(sentence) and not _IN_PASSING.search(sentence)
    return said and _OF_RUNS.search(sentence) is not None


def only_precision(text: str) -> str | None:
    """The word for a precision, where a text names just one."""
    words = precisions(text)
    return words[0] if len(words) == 1 else None


def not_measured(text: str) -> str | None:
    """The word with which a sentence tells that the figures below are no measured ones."""
    return _not_measured(text, _SPEAKS_OF_ALL)


def _not_measured(text: str, speaks: re.Pattern[str]) -> str | None:
    said = (found[1] for one in parts(cleaned(text)) if (found := speaks.match(one)))
    # `measured, not projected` has such a word too.
    words = (word for one in said if (word := names.not_measured(one)) and one.startswith(word))
    return next(words, None)


def begins_not_measured(text: str) -> str | None:
    """The word, also where a cell or a footnote begins with it: `projected from 8 nodes`."""
    word = names.not_measured(cleaned(text))
    begins = word and cleaned(text).startswith(word)
    return word if begins else not_measured(text) or _not_measured(text, _SPEAKS_OF_ONE)


def not_measured_above(text: str) -> str | None:
    """The word with which a text right below a table tells it of the figures above."""
    if OF_OTHERS_BELOW.search(text):
        return None
    short = len(text.split()) <= _MOST_WORDS
    return begins_not_measured(text) if short else not_measured(text)


def precision(text: str) -> str | None:
    """The precision that sentences say, where they name no other to hold it against."""
    precision = only_precision(text)
    said = (_without_half(one) for one in parts(text) if not BESIDE.search(one))
    at = (match[1] for sentence in said for match in _AT_PRECISION.finditer(sentence))
    return precision if precision in at else None


def precision_of_title(words: str) -> str | None:
    """The precision that a title says of the rows below it, and not of a part of the work."""
    word = None if BESIDE.search(words) else only_precision(words)
    pieces = [one for one in _PIECES.split(words) if word and word in one]
    return None if any(map(elsewhere.is_said_of_a_part, pieces)) else word


def precision_of_rows(text: str) -> str | None:
    """The precision that sentences say, but not of a part of the work, nor how elements are coded.

    `The block scales are in E4M3` is said of NVFP4.
    """
    word = precision(" ".join(one for one in parts(text) if not elsewhere.is_said_of_a_part(one)))
    coded = word is not None and _OF_ELEMENTS.fullmatch(word)
    return None if coded or word != only_precision(text) else word
