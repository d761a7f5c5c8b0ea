"""What a row, or a footnote on what is read of it, says of figures that nobody measured."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final

from perfdb.pages import cells, names, sentences
from perfdb.pages.base import Row
from perfdb.pages.columns import Column
from perfdb.pages.footnotes import Footnotes, begins
from perfdb.pages.outline import Table

_NAMED: Final = frozenset({"model", "task"})
"""Fields beside whose names such a word may stand: `Pre-training (projected)`."""


@dataclass(frozen=True)
class Unmeasured:
    """Tells which rows of a table say of themselves that nobody measured them."""

    table: Table
    header: Sequence[Column]
    footnotes: Footnotes

    def of(self, row: Row) -> str | None:
        """What tells that a row's figures are projected, or the like; None where nothing does."""
        for column, cell in zip(self.header, row.cells, strict=True):
            text = cells.value(cell.text)
            named = names.not_measured(text) if _NAMED & {*column.fields} else None
            if word := named or (None if column.known else self._said(column.title, text)):
                return f"the column {column.title!r} says {word!r}"
        noted = self._noted.of(self._of_fields(row))
        word = next(filter(None, map(sentences.begins_not_measured, noted)), None)
        return f"a footnote says {word!r}" if word else self._below

    def _said(self, title: str, text: str) -> str | None:
        """The word with which a column of its own says it: a status, or a tick below `Projected`.

        A 1 is a tick below a switch alone, and only where no row of the column has a number.
        """
        title_, meant = title.replace("_", " "), _legend(title).get(text.casefold(), text)
        is_ticked, switch = cells.ticked(meant), _SWITCH.fullmatch(title_)
        if is_ticked is None:
            return sentences.begins_not_measured(meant)
        if meant in _DIGITS and (title in self._counted or not switch):
            return None
        named = switch[1] if switch else title_
        says = sentences.begins_not_measured(named) if is_ticked else _MEASURED.fullmatch(named)
        return text if says else None

    @cached_property
    def _counted(self) -> frozenset[str]:
        """The titles of columns with a number that is neither 0 nor 1."""
        both = (one for row in self.table.rows for one in zip(self.header, row.cells, strict=False))
        printed = ((column.title, cells.value(cell.text)) for column, cell in both)
        numbers = (one for one in printed if isinstance(cells.decimal(one[1]), float))
        return frozenset(title for title, text in numbers if text not in _DIGITS)

    @cached_property
    def _below(self) -> str | None:
        """What the text right below the table says of all its figures; its footnotes are apart."""
        texts = (it.text for it in self.table.below if not it.titled and not begins(it.text))
        word = next(filter(None, map(sentences.not_measured_above, texts)), None)
        return f"the text below says {word!r}" if word else None

    @cached_property
    def _noted(self) -> Footnotes:
        """The footnotes of the columns that are read: a time that is an extra may be estimated."""
        header = self._of_fields(self.table.header)
        return Footnotes(replace(self.table, header=header), self.footnotes.of_page)

    def _of_fields(self, row: Row) -> Row:
        beside = zip(self.header, row.cells, strict=True)
        return Row(row.line, tuple(cell for column, cell in beside if column.fields))


@lru_cache(maxsize=1024)
def _legend(title: str) -> Mapping[str, str]:
    """What a title says that signs in its cells mean: `Projected (1 = yes)`."""
    return {sign.casefold(): meant for sign, meant in _SIGN.findall(title)}


_MEASURED: Final = re.compile(r"measured\W*", re.IGNORECASE)
"""A title below which `no` says that nobody measured."""
_DIGITS: Final = frozenset({"0", "1"})
"""Ticks that may be numbers."""
_MEANS: Final = r"(?: ?[=:→–-] ?| (?:is|if|means|for) )"
_SIGN: Final = re.compile(
    rf"(?<!\w)(?<![01]/)([^\W_]{{1,3}}|[✓✔✅☑✗✘✖❌☐]){_MEANS}([^,;/|()\[\]]{{1,30}}?)"
    rf"(?= ?(?:[,;/|)\]]|and\b|or\b|\S{{1,3}}{_MEANS}|\Z))",
    re.IGNORECASE,
)
_TICK: Final = r"(?:[01]|yes|no|[yn]|true|false)"
_SWITCH: Final = re.compile(
    r"(?:is )?((?:not (?:yet )?)?\w+)(?: (?:row|result|run|entry|flag))?"
    rf"(?:\W*[(\[](?:{_TICK}(?:{_MEANS}| ?[,/|] ?| or )[^()\[\]]*|flag|boolean)[)\]])?\W*",
    re.IGNORECASE,
)
"""The title of a switch, of which nothing is counted: its word, and what else may explain it."""
