"""Rows that are titles of the rows below them: `DGX-H200` in one cell, nothing in the others."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Final

from perfdb import catalog
from perfdb.pages import cells, columns, scales, statements
from perfdb.pages.base import Row
from perfdb.pages.outline import Said, Table

_FEWEST_CELLS: Final = 3
"""Of a row of two, one may be empty because its value is not known."""
_MOST: Final = 20
"""Titles that hold at a time; more would be an attack, not a table."""
_WORD = re.compile("[^\\W\\d_]")
_KINDS: Final = {
    "system": ("system", "beside_model", "no_system"),
    "precision": ("precision",),
    "task": ("task", "no_task"),
    "release": ("framework", "release", "container", "unclear"),
    "model": ("model",),
    "not measured": ("not_measured",),
}


def of(every: Iterable[Table]) -> Iterator[Table]:
    """The tables of a page, those that cells across them divide with all titles that still hold.

    What a title says holds until another one of the table says something of the same kind: below
    `DGX-H200` and then `FP8` rows are of both, below `DGX-B200` they are of no FP8 any more.
    """
    # Parts of one table have one header; on a page in one line others have the same line.
    for _, found in groupby(every, key=lambda part: id(part.header)):
        yield from _with_titles_before(list(found))


def divided(table: Table) -> Iterator[Table]:
    """The parts of a table that rows with one cell divide it into, each with its titles."""
    groups: list[tuple[bool, tuple[Row, ...]]] = []
    if _may_be_divided(table):
        groups = [(titles, tuple(rows)) for titles, rows in groupby(table.rows, key=_is_title)]
    # Titles that end a table are of no rows.
    if not any(titles for titles, _ in groups[:-1]):
        yield table
        return
    yield from _with_titles_before(list(_parts(table, groups)))


def _parts(table: Table, groups: Sequence[tuple[bool, tuple[Row, ...]]]) -> Iterator[Table]:
    above: tuple[Said, ...] = ()
    for at, (titles, rows) in enumerate(groups, start=1):
        if titles and at < len(groups):
            above = tuple(map(_said, rows[-_MOST:]))
        else:
            detached = table.detached if at == len(groups) else ()
            yield replace(table, rows=rows, said=table.said + above, detached=detached)


def _may_be_divided(table: Table) -> bool:
    wide = len(table.header.cells) >= _FEWEST_CELLS
    return wide and not table.turned and columns.are_results(columns.of(table))


def _is_title(row: Row) -> bool:
    """Whether one cell of a row is filled; a model without any value is no title."""
    texts = [cells.cleaned(cell.text) for cell in row.cells]
    filled = [text for text in texts if not cells.absent(text)]
    if len(filled) != 1 or not _WORD.search(filled[0]) or catalog.named_model(filled[0]):
        return False
    return sum(map(bool, texts)) == 1 or bool(_kinds(_said(row)))


def _said(row: Row) -> Said:
    words = next(cell.text for cell in row.cells if not cells.absent(cells.cleaned(cell.text)))
    return Said(words, row.line, heading=True)


def _with_titles_before(parts: Sequence[Table]) -> Iterator[Table]:
    """The parts of one table, each with the earlier titles that still hold for it."""
    shared = _shared([part.said for part in parts])
    held: list[Said] = []
    for part in parts:
        above, own = part.said[:shared], part.said[shared:]
        kinds = {kind for one in own for kind in _kinds(one)}
        ended = (at for at, one in enumerate(held) if not kinds.isdisjoint(_kinds(one)))
        held = [*held[: next(ended, len(held))], *(one for one in own if _kinds(one))]
        del held[:-_MOST]
        yield replace(part, said=(*above, *(one for one in held if one not in own), *own))


def _shared(every: Sequence[tuple[Said, ...]]) -> int:
    """How many statements all parts begin with; the titles of a part are its own."""
    apart = (at for at, found in enumerate(zip(*every, strict=False)) if len(set(found)) > 1)
    return next(apart, min(map(len, every)))


@lru_cache(maxsize=1024)
def _kinds(one: Said) -> frozenset[str]:
    """What a title says something of."""
    said = statements.in_force([one]).model_dump(exclude_none=True)
    found = frozenset(kind for kind, names in _KINDS.items() if any(map(said.get, names)))
    return found | {"unit"} if scales.is_unit(one.text) else found
