"""Tables that say what was run, joined to tables that say how fast."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from perfdb import catalog
from perfdb.groups import grouped
from perfdb.pages import cells, columns, names, releases, statements, systems
from perfdb.pages.base import Cell, Row
from perfdb.pages.columns import FIGURES
from perfdb.pages.held import Statement
from perfdb.pages.outline import Said, Table
from perfdb.pages.releases import Whose

_NEEDED = frozenset({"global_batch_size", "sequence_length"})
"""What a row of results cannot do without; a table that lacks one needs a configuration."""

_SIZE = "size"
"""The title of a column that holds a part of the model's name: `15b`."""

ByField = Mapping[str, str]
"""A row's texts by field."""


@dataclass(frozen=True)
class _Joined(Row):
    """A row with the cells of a configuration behind its `num_own` ones, and where that stands."""

    num_own: int
    configured_at: int


def line_of(row: Row, place: int) -> int:
    """The line that a cell of a row stands on, be it joined to the row from a configuration."""
    if isinstance(row, _Joined) and place >= row.num_own:
        return row.configured_at
    return row.line


def joined_from(table: Table) -> int | None:
    """The line of the table of configurations that a table was joined with; None if with none."""
    header = table.header
    return header.configured_at if isinstance(header, _Joined) else None


def are_configurations(table: Table) -> bool:
    """Whether a table says what was run, and nothing of how fast."""
    fields = set(columns.all_fields(columns.of(table)))
    return "num_gpus" in fields and bool(fields & _NEEDED) and not fields & FIGURES


def joined(table: Table, configurations: Iterable[Table]) -> Table:
    """A table of results with the columns that it lacks, from the first table that has them.

    Rows are joined by the number of GPUs, the model, the precision, the system, the task and the
    release, as far as both tables say them or stand below them; one of `BF16/FP8` is enough. A row
    that matches none, or several of all configurations, stays without.
    """
    fields = set(columns.all_fields(columns.of(table)))
    if fields >= _NEEDED:
        return table
    every = [(other, row) for other in configurations for row in _whole(other)]
    by_gpus = grouped(every, lambda found: _gpus(found[1].texts))
    fitting = (
        [found for found in by_gpus.get(_gpus(one.texts), ()) if _fits(found[1], one)]
        for one in _rows(table)
    )
    matches = [found[0] if len(found) == 1 else None for found in fitting]
    used = next((other for other, _ in filter(None, matches)), None)
    if used is None:
        return table
    of_it = [one[1].row if one and one[0] is used else None for one in matches]
    return _widened(table, used, of_it)


@dataclass(frozen=True)
class _Row:
    """A row, its texts by field and by `size`, and what is said above it."""

    row: Row
    texts: ByField
    said: Statement

    @cached_property
    def systems(self) -> frozenset[str]:
        """The systems that the row may be of; empty where nothing says it."""
        return systems.possible(
            {"beside_model": self.said.beside_model or "", **self.texts}, self.said.system
        )

    @cached_property
    def task(self) -> str | None:
        """The task of the row; None where nothing says it."""
        printed = self.texts.get("task")
        return names.task(printed) or printed if printed else self.said.task

    @cached_property
    def whose(self) -> Whose:
        """The framework and release of the row, as far as they are said."""
        own = releases.of_cells(self.texts)
        return self.said.whose.then(own) if isinstance(own, Whose) else self.said.whose


def _rows(table: Table) -> list[_Row]:
    header = columns.of(table)
    above = statements.in_force(table.said)
    titled = table.turned and not header[0].fields
    found = []
    for row in table.rows:
        texts: dict[str, str] = {}
        for column, cell in zip(header, row.cells, strict=False):
            text = cells.cleaned(cell.text)
            texts.update(column.texts(text) or {})
            if column.title.casefold() == _SIZE:
                texts[_SIZE] = text
        own = {name: text for name, text in texts.items() if not cells.absent(text)}
        title = [Said(row.cells[0].text, row.line, True)] if titled else []
        found.append(_Row(row, own, above.then(statements.in_force(title))))
    return found


def _whole(table: Table) -> list[_Row]:
    """The rows with a cell for each column: of others nobody can tell which cell is missing."""
    return [one for one in _rows(table) if len(one.row.cells) == len(table.header.cells)]


def _gpus(texts: ByField) -> str:
    return names.gpus(texts.get("num_gpus", "")).count.replace(",", "")


def _fits(configuration: _Row, result: _Row) -> bool:
    """Whether nothing that is said of both is at odds."""
    size = configuration.texts.get(_SIZE, "")
    model, printed = (_named("model", one) for one in (configuration, result))
    precision, stated = (_named("precision", one) for one in (configuration, result))
    return (
        (not size or size.casefold() in re.split(r"[\s_-]+", printed.casefold()))
        and ("" in (model, printed) or names.model(model) == names.model(printed))
        and ("" in (precision, stated) or bool(_precisions(precision) & _precisions(stated)))
        and _agree(configuration.systems, result.systems)
        and (None in (configuration.task, result.task) or configuration.task == result.task)
        and not releases.contradict(configuration.whose, result.whose)
    )


def _named(field: Literal["model", "precision"], one: _Row) -> str:
    return one.texts.get(field) or getattr(one.said, field) or ""


def _agree(first: frozenset[str], second: frozenset[str]) -> bool:
    return not (first and second) or not first.isdisjoint(second)


def _precisions(printed: str) -> set[str | None]:
    return {catalog.precision_of(word) or word for word in printed.split("/")}


def _widened(table: Table, other: Table, matches: Sequence[Row | None]) -> Table:
    """The table with the columns of another, as far as it says nothing of them itself."""
    said = statements.in_force(table.said).model_dump(exclude_none=True)
    here = {"num_gpus", *said, *columns.all_fields(columns.of(table))}
    places = [
        place for place, column in enumerate(columns.of(other)) if here.isdisjoint(column.fields)
    ]
    blank = (Cell("", ""),) * len(other.header.cells)
    rows = zip(table.rows, matches, strict=True)
    return replace(
        table,
        header=_with(table.header, other.header, places),
        rows=tuple(_with(row, match or replace(row, cells=blank), places) for row, match in rows),
        below=table.below + other.below,
    )


def _with(row: Row, other: Row, places: Sequence[int]) -> Row:
    cells_ = (*row.cells, *(other.cells[place] for place in places))
    return _Joined(row.line, cells_, len(row.cells), other.line)
