"""Columns of tables that follow no page: each a head with its cells, one for each row."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from perfdb import units
from perfdb.site import addresses, bests, figures, tables
from perfdb.site.addresses import Address
from perfdb.site.data import Result
from perfdb.site.markup import Cell, Head, Table
from perfdb.site.profile import Column
from perfdb.site.profiles import GBS, RELEASE, SEQUENCE, ours
from perfdb.site.rows import row_id

WORK: Final = ours(
    GBS,
    SEQUENCE,
    Column("Qualifiers", ("qualifiers",), "text", shown="varies"),
    Column("Variant", ("variant",), "text", shown="varies"),
    RELEASE,
    Column("Origin", ("origin",), "text", shown="always"),
)
"""What says which work a row is, behind its figures."""

Made = tuple[Head, Sequence[Cell]]
"""The head of a column, and its cell in each row."""


def table(
    label: str,
    made: Iterable[Made],
    ids: Sequence[str] = (),
    notes: Sequence[Sequence[str]] = (),
) -> Table:
    """The table of some columns, with the names and the footnotes of its rows."""
    heads, cells = zip(*made, strict=True)
    return Table(label, heads, list(zip(*cells, strict=True)), ids=ids, notes=notes)


def described(
    columns: Iterable[Column], results: Sequence[Result], address: Address
) -> Iterator[Made]:
    """What results are: the columns that always stand, and those in which they differ."""
    for column in columns:
        cells = [tables.printed(column, one, address) for one in results]
        if column.shown == "always" or len({cell.content for cell in cells}) > 1:
            yield tables.head(column), cells


def figure(result: Result | None, metric: str, address: Address) -> Cell:
    """A figure that leads to the row of its result on the page of its release; – without one."""
    if result is None:
        return Cell(units.UNKNOWN)
    row = addresses.of_row(result.framework, result.release, row_id(result), address)
    return Cell(bests.marked(result, metric), sort=figures.figure(result, metric), evidence=row)
