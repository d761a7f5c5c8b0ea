"""What a page prints of a result: the words of its cells, and whether they say what it says."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol

from perfdb.pages import cells, halves, names
from perfdb.pages.columns import fields_of, is_in_ms, title_by_field
from perfdb.pages.markdown_text import words
from perfdb.site.data import Result

_SAME_FIELD: Final[Mapping[str, str]] = {
    "model_title": "model",
    "fsdp_size": "fsdp",
    "fsdp_enabled": "fsdp",
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
    return halves.own(dict(raw), precision, variant)


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
        return cells.seconds(said)
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
        return cells.flag(text) == value
    if not isinstance(value, int | float):
        return True
    if text.endswith("%"):
        return cells.fraction(text) == value
    return cells.product(text, 1) is not None or cells.decimal(names.gpus(text).count) == value


@lru_cache(maxsize=10_000)
def _title(fields: tuple[str, ...], titles: tuple[str, ...]) -> str | None:
    """The title that one of the fields, and no other beside it, is read from."""
    read_from = title_by_field(titles)
    found = (read_from.get(_SAME_FIELD.get(field, field)) for field in fields)
    return next((title for title in found if title and len(fields_of(title)) == 1), None)


@lru_cache(maxsize=10_000)
def _words(printed: str) -> str:
    """The words of a cell; pages print the same ones again and again."""
    return cells.cleaned(words(printed))
