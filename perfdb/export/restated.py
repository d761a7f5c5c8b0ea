"""Figures that count FLOPs, restated in one convention so that releases compare.

The convention of a page is identified by its figures, as in the audit: TFLOP/s over tokens/s is the
FLOPs of a token, which the formula of a convention gives. Other figures are not restated.
"""

from typing import Final

from sqlalchemy import Connection

from perfdb.audit import check
from perfdb.audit.restated import Restated, counted_by, restate
from perfdb.audit.rules import ReleaseRows, releases
from perfdb.export import results
from perfdb.export.formats import Column, Table
from perfdb.flops.base import Convention
from perfdb.queries.scope import Scope

COLUMNS: Final = (
    Column("restated_convention", str),
    Column("restated_model_tflops_per_sec_per_gpu", float),
    Column("restated_mfu", float),
    Column("restated_from", str),
    Column("restated_note", str),
)


def table(connection: Connection, convention: Convention, scope: Scope | None = None) -> Table:
    """The current results as `perfdb.export.results` has them, with their restated figures.

    All rows of a release identify what its page counted, even if the scope has only some of them.
    """
    found = results.rows(connection, scope or Scope())
    plain = results.table_of(found)
    added: dict[object, Restated] = {}
    for rows in releases(check.stored(connection)[0]):
        release = ReleaseRows(rows)
        counts = {row.result_id: count for row, count in release.counted}
        for row in rows:
            known, note = counted_by(row, counts.get(row.result_id), release.usual)
            added[row.result_id] = restate(row, known, convention, note)
    restated = (
        (*cells, *added[row["result_id"]]) for row, cells in zip(found, plain.rows, strict=True)
    )
    return Table((*plain.columns, *COLUMNS), tuple(restated))
