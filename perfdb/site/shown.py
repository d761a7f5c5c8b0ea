"""Which columns a table has, by what its rows say in them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from perfdb.page_text import absent, parsed
from perfdb.pages.columns import has_no_field
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS
from perfdb.site.data import Result
from perfdb.site.markup import Cell, Content
from perfdb.site.profile import Column
from perfdb.units import UNKNOWN

_RAN: Final = (*WORKLOAD_FIELDS, *CONFIGURATION_FIELDS, "release", "container", "origin")
"""What is printed of a result besides its figures: its case, its release, and whose it is."""


def is_shown(column: Column, cells: Sequence[Cell], results: Sequence[Result]) -> bool:
    """Whether a column with these cells is, as it says of itself."""
    said = {cell.content for cell in cells}
    if column.shown == "always":
        return True
    if column.shown == "filled":
        return said != {UNKNOWN}
    return len(said) > 1 and (column.shown != "apart" or _tells_apart(column, cells, results))


def _tells_apart(column: Column, cells: Sequence[Cell], results: Sequence[Result]) -> bool:
    """Whether two results of a release differ in it and in nothing else that was run."""
    others = [field for field in _RAN if field not in column.fields]
    said: dict[str, Content] = {}
    for one, cell in zip(results, cells, strict=True):
        if said.setdefault(repr([getattr(one, it) for it in others]), cell.content) != cell.content:
            return True
    return False


def said_once(made: Mapping[Column, Sequence[Cell]]) -> Iterator[str]:
    """'Precision: FP8': of columns that a line stands in place of, what every row would say."""
    for column, cells in made.items():
        said = {cell.content for cell in cells}
        if column.shown == "once" and len(said) == 1 and said != {UNKNOWN}:
            yield f"{column.title}: {said.pop()}"


def extra_columns(results: Sequence[Result]) -> Iterator[Column]:
    """A column for each title without a field; its words wrap where they are no numbers."""
    for title in dict.fromkeys(title for result in results for title in result.extras):
        if not has_no_field(title):
            texts = (result.extras.get(title, "") for result in results)
            is_numeric = all(absent(text) or parsed(text) is not None for text in texts)
            yield Column(title, ("extras",), "extra", wide=not is_numeric)
