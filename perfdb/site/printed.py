"""What a page prints of a result: the words of its cells, and whether they say what it says."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol

from perfdb import catalog
from perfdb.page_text import parsed, seconds, share
from perfdb.pages import cells
from perfdb.pages.base import without_marks
from perfdb.pages.columns import field_of, is_in_ms, title_by_field
from perfdb.pages.markdown import words
from perfdb.site.data import Result

_SAME_FIELD: Final[Mapping[str, str]] = {
    "model_title": "model",
    "fsdp_size": "fsdp_enabled",
}
"""Fields of a result that pages know by another name."""


class Printed(Protocol):
    """What was read off a row of a page, or a revision of it."""

    @property
    def raw(self) -> Mapping[str, str]:
        """The text of each cell, by title."""

    @property
    def precision(self) -> str | None:
        """Its own, where the row has two."""

    @property
    def variant(self) -> str | None:
        """Its own, where the row has two."""


def cells_of(row: Printed) -> Mapping[str, str]:
    """The cells of its row by title; of one that holds two values, `4121 (3830)`, its own."""
    if "(" not in "".join(row.raw.values()):
        return row.raw
    return _own(tuple(row.raw.items()), row.precision, row.variant)


@lru_cache(maxsize=10_000)
def _own(
    raw: tuple[tuple[str, str], ...], precision: str | None, variant: str | None
) -> Mapping[str, str]:
    """A table is made column by column, and asks for each of its rows as often."""
    said = {title: _words(text) for title, text in raw}
    both = cells.halves({field: said[one] for field, one in title_by_field(tuple(said)).items()})
    if len(both) < 2:
        return dict(raw)
    named = [catalog.precision_of(half.get("precision", "")) for half in both]
    is_other = precision != named[0] and precision in named[1:]
    is_second = is_other or (variant or "").endswith("bracketed")
    half = both[is_second and 1]
    parts = {title: _part(title, said[title], half, is_second) for title, _ in raw}
    return {title: text if parts[title] == said[title] else parts[title] for title, text in raw}


def _part(title: str, said: str, half: Mapping[str, str], is_second: bool) -> str:
    """Of a cell with two values one; without a field of its own only two numbers are a pair."""
    two, field = cells.pair(said), field_of(title)
    if field:
        return half.get(field, said)
    return two[is_second] if two and all(map(parsed, two)) else said


def text_of(fields: tuple[str, ...], row: Printed) -> str | None:
    """The words of its cell under the title that means one of the fields, with the title's unit.

    Milliseconds are in seconds, with the same digits.

    None where its page has no such column.
    """
    title = _title(fields, tuple(row.raw))
    if title is None:
        return None
    said = _words(cells_of(row)[title])
    if is_in_ms(title):
        return seconds(said)
    return f"{said}%" if "%" in title and said[-1:].isdigit() else said


def is_packed(row: Printed) -> bool:
    """Whether its page says that its sequences are packed."""
    title = _title(("sequence_length",), tuple(row.raw))
    return title is not None and title.casefold().startswith("packed")


def extra_of(title: str, result: Result) -> str:
    """The words of a column that has no field; empty where its page has no such column."""
    said, own = result.extras.get(title, ""), cells_of(result).get(title)
    return said if own is None or own == result.raw[title] else own


def extras_of(results: Sequence[Result]) -> dict[str, list[str]]:
    """The words of each column that has no field, by its title."""
    titles = dict.fromkeys(title for result in results for title in result.extras)
    return {title: [extra_of(title, result) for result in results] for title in titles}


def says(text: str, value: object) -> bool:
    """Whether a printed text says this value and no other; words say what they say."""
    if isinstance(value, bool):
        return cells.switch(text) == value
    if not isinstance(value, int | float):
        return True
    if text.endswith("%"):
        return share(text) == value
    return parsed(cells.gpus(text)[0]) == value


@lru_cache(maxsize=10_000)
def _title(fields: tuple[str, ...], titles: tuple[str, ...]) -> str | None:
    """The title that one of the fields, and no other beside it, is read from."""
    read_from = title_by_field(titles)
    found = (read_from.get(_SAME_FIELD.get(field, field)) for field in fields)
    return next(filter(None, found), None)


@lru_cache(maxsize=10_000)
def _words(printed: str) -> str:
    """The words of a cell; pages print the same ones again and again."""
    return without_marks(words(printed))
