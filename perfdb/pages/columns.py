"""Which field each column of a table is, by the titles in `perfdb.fields`."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from perfdb import fields
from perfdb.page_text import seconds
from perfdb.pages import cells
from perfdb.pages.base import Row, without_marks

MILLISECONDS: Final = (
    "Step Time (ms)", "Time per Global Step (ms)", "Time per Step (ms)", "Iteration Time (ms)",
    "Time per Iteration (ms)",
    "Elapsed Time per Iteration (ms)", "Training step time (milliseconds per step)",
)  # fmt: skip
"""Titles of a step time in milliseconds."""

EXTRAS: Final = (
    "Est. time to train in days (10T tokens, 1K GPUs)",
    "Est. time to finetune in mins (10M tokens)",
    "Time to train 1T tokens in days",
    "Layers",
    "Size",
)
"""Columns that are understood but have no field: they follow from others, or add nothing."""

FEWEST: Final = 3
"""Fields that a table of results has at the least; a glossary of the figures has fewer."""

_FIGURE_LIKE = re.compile(
    r"\btok(?:en)?s?\b|flop|\b[hm]fu\b|\btps\b|throughput|/\s*s(?:ec(?:ond)?)?\b|\bsteps? time"
    r"|\biter(?:ation)?s?\b|\bper (?:second|step|gpu|device)\b|/\s*(?:gpu|device)\b|\(m?s\)",
    re.IGNORECASE,
)
"""A unit of a rate or a time, or what is measured, in a title."""


@lru_cache(maxsize=4096)
def squeezed(title: str) -> str:
    """What sets a title apart from others: letters, digits, and signs of another quantity."""
    return "".join(
        sign
        for sign in title.casefold()
        if sign in "%‰"
        or (sign not in "↑↓" and unicodedata.category(sign)[0] in "LN")
        or (sign not in "↑↓" and unicodedata.category(sign) in ("Sm", "Sc"))
    )


_IN_MS: Final = frozenset(map(squeezed, MILLISECONDS))
_FIELDS: Final = {
    **{squeezed(title): name for title, name in fields.by_title().items()},
    **dict.fromkeys(_IN_MS, "step_time_s"),
    squeezed("TFLOPS (per GPU, model)"): "model_tflops_per_sec_per_gpu",
}
_KNOWN_EXTRAS: Final = frozenset(map(squeezed, EXTRAS))


@dataclass(frozen=True)
class PageColumn:
    """A column: its title as raw text is kept under, and its field, if any."""

    title: str
    field: str | None

    @property
    def is_known(self) -> bool:
        """Whether the title is understood, be it without a field."""
        return self.field is not None or squeezed(self.title) in _KNOWN_EXTRAS

    def text(self, printed: str) -> str:
        """The text of a cell in the unit of the field, with the same digits."""
        if squeezed(self.title) in _IN_MS:
            both = cells.pair(printed)
            return f"{seconds(both[0])} ({seconds(both[1])})" if both else seconds(printed)
        if self.field == "mfu" and "%" in self.title:
            return re.sub(r"(?<=[0-9])(?=\s*\(|\)?\Z)", "%", printed)
        return printed


def field_of(title: str) -> str | None:
    """The field that a title means; None where it is not known."""
    return _FIELDS.get(squeezed(title))


def of(header: Row) -> tuple[PageColumn, ...]:
    """The columns of a table. A title that is there twice gets a number; next to a step time in
    seconds one in milliseconds has no field.
    """
    titles = [without_marks(cell.text) for cell in header.cells]
    seen: Counter[str] = Counter()
    has_seconds = any(
        field_of(one) == "step_time_s" and squeezed(one) not in _IN_MS for one in titles
    )
    found = []
    for title in titles:
        seen[title] += 1
        numbered = title if seen[title] == 1 else f"{title} ({seen[title]})"
        repeats = has_seconds and squeezed(title) in _IN_MS
        found.append(PageColumn(numbered, None if repeats else field_of(title)))
    return tuple(found)


@lru_cache(maxsize=1024)
def title_by_field(titles: tuple[str, ...]) -> Mapping[str, str]:
    """The title of the column that each field of a table is read from."""
    return {field: title for title in titles if (field := field_of(title))}


def fields_in(header: Sequence[PageColumn]) -> list[str]:
    """The fields of a table, a field as often as it has columns."""
    return [column.field for column in header if column.field]


def are_results(header: Sequence[PageColumn]) -> bool:
    """Whether a table holds results: a figure, and what was run."""
    found = {*fields_in(header)} - {"framework", "release", "container"}
    return bool(found & {*fields.FIGURES}) and len(found) >= FEWEST


def look_like_results(header: Sequence[PageColumn]) -> bool:
    """Whether a table has what was run, and columns that may be figures under unknown titles."""
    return len({*fields_in(header)}) >= FEWEST and any(map(may_be_figure, header))


def may_be_figure(column: PageColumn) -> bool:
    """Whether a column may be a figure under a title that is not known."""
    return not column.is_known and _FIGURE_LIKE.search(column.title) is not None


def repeated(header: Sequence[PageColumn]) -> list[str]:
    """The titles of columns that mean the same field as another one."""
    counts = Counter(fields_in(header))
    return [column.title for column in header if column.field and counts[column.field] > 1]


def title_of(field: str, header: Sequence[PageColumn]) -> str:
    """What the page calls a field; its usual title where the page has no column for it."""
    usual = fields.BY_NAME[field].titles[:1] if field in fields.BY_NAME else ()
    return next((one.title for one in header if one.field == field), next(iter(usual), field))
