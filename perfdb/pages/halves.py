"""Rows whose cells hold pairs such as `661 (624)`: two results, and what is said of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from perfdb import catalog
from perfdb.pages import cells, columns, names
from perfdb.pages.cells import Wrong
from perfdb.pages.columns import FIGURES, Column, fields_of
from perfdb.pages.markdown_text import words

BRACKETED: Final = "bracketed"
"""The variant of values in brackets, where the page does not say what sets them apart."""

_WORDS: Final = frozenset(
    {"model", *columns.OF_SYSTEM, *columns.OF_RELEASE, "task", "variant", "kernels"}
)
"""Fields in which brackets belong to the words and hold no second value."""

_MOST_UNLIKE: Final = 2
"""Times that one of two values is the other, of which nobody says what they are of."""


@dataclass(frozen=True)
class Texts:
    """The texts of a row's cells, by field; `bracketed`: those in brackets, nobody says of what."""

    cells: Mapping[str, str]
    bracketed: bool = False

    def of(self, name: str) -> str:
        """The text of a field; empty where the table has no column for it."""
        return self.cells.get(name, "")


def split(texts: Mapping[str, str]) -> tuple[Texts, ...]:
    """A row's texts by field; where some are pairs, the first values, then those in brackets.

    A size without brackets holds for both; a figure without is the first one's alone.
    """
    both = {name: _both(name, text) for name, text in texts.items()}
    if _says_which(texts):
        both["precision"] = (texts["precision"], texts["precision"])
    told_apart = both.get("precision", ("",))[0] != texts.get("precision", "")
    if not told_apart:
        has_figures = any(cells.pair(texts.get(name, "")) for name in FIGURES)
        may_be = FIGURES if has_figures else FIGURES | columns.SIZES
        apart = {name for name, pair in both.items() if name in may_be and _are_apart(pair)}
        both |= {name: (texts[name], "") for name in apart}
    first = Texts({name: one for name, (one, _) in both.items()})
    if first.cells == texts:
        return (first,)
    second = {name: other for name, (_, other) in both.items()}
    return first, Texts(second, bracketed=not told_apart)


def _says_which(texts: Mapping[str, str]) -> bool:
    """Whether `FP8 (MXFP8)` stands beside one value, of which it says a precision and which FP8."""
    two = cells.pair(texts.get("precision", ""))
    first, second = map(catalog.precision_of, two or ("", ""))
    is_which = first and second and second.startswith(f"{first}_")
    return bool(is_which) and not any(cells.pair(texts.get(name, "")) for name in FIGURES)


def _are_apart(pair: tuple[str, str]) -> bool:
    """Whether two values are too unlike to be of one work: `630.5 (2)` may be a footnote's mark."""
    values = [cells.decimal(text.removesuffix("%")) for text in pair]
    first, second = (value if isinstance(value, float) else 0 for value in values)
    unlike = not first / _MOST_UNLIKE <= second <= first * _MOST_UNLIKE
    return second > 0 and unlike


def read(texts: Mapping[str, str]) -> tuple[Texts, ...]:
    """Of the halves of a row those with a figure: `n/a` in `661 (n/a)` is no value.

    The first one where neither has any, and both where only sizes are pairs.
    """
    both = split(texts)
    if len(both) < 2:
        return both
    pairs = {name for name, text in texts.items() if cells.pair(text)}
    if pairs.isdisjoint(FIGURES) and pairs & columns.SIZES:
        return both
    return tuple(filter(_has_figure, both)) or both[:1]


def _has_figure(texts: Texts) -> bool:
    return any(cells.decimal(texts.of(name)) not in (None, 0) for name in FIGURES)


def _both(name: str, text: str) -> tuple[str, str]:
    two = None if name in _WORDS else cells.pair(text)
    if two and name == "precision" and not _are_precisions(two):
        two = None
    return two or (text, "" if name in FIGURES else text)


def _are_precisions(pair: tuple[str, str]) -> bool:
    """Whether what stands in brackets is a second precision: `MX` in `FP8 (MX)` says which FP8."""
    return cells.absent(pair[1]) or catalog.precision_of(pair[1]) is not None


def own(raw: Mapping[str, str], precision: str | None, variant: str | None) -> Mapping[str, str]:
    """The cells of a row, by title, as one of its results has them: of two values its own."""
    said = {title: cells.cleaned(words(text)) for title, text in raw.items()}
    halves = split(columns.texts((_column(title), text) for title, text in said.items()))
    if len(halves) < 2:
        return raw
    place = _place(halves, precision, variant)
    parts = {title: _titled(title, text)[place] for title, text in said.items()}
    return {title: raw[title] if part == said[title] else part for title, part in parts.items()}


@lru_cache(maxsize=1024)
def _column(title: str) -> Column:
    return Column(title, fields_of(title), known=True)


def _place(halves: Sequence[Texts], precision: str | None, variant: str | None) -> int:
    """Which half a result is of: by its precision, else by the variant of values in brackets."""
    if halves[1].bracketed:
        return int((variant or "").endswith(BRACKETED))
    said = [names.precision(half.of("precision")) for half in halves]
    return said.index(precision) if precision in said else 0


def _titled(title: str, text: str) -> tuple[str, str]:
    """The two texts of a cell; without a field of its own only two numbers are a pair."""
    fields = _column(title).fields
    if len(fields) == 1:
        return _both(fields[0], text)
    two = cells.pair(text)
    if two is None or any(isinstance(cells.decimal(one), Wrong) for one in two):
        return text, text
    return two
