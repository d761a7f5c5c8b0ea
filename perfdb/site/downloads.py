"""The results of tables as files to download, next to the documents that offer them."""

import json
from collections.abc import Collection, Iterable, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Final

from perfdb.export import csv, parquet
from perfdb.export import json as json_export
from perfdb.export import results as exported
from perfdb.export.formats import Column, ExportFormat, Table, WrittenTable, arrow_of, pyarrow
from perfdb.site.data import SiteResult
from perfdb.site.files import write

EXTRA_COLUMNS: Final = (Column("findings", str), Column("printed", str))
"""The columns behind those of `perfdb export results`."""
FORMATS: Final[Sequence[ExportFormat]] = (
    (csv, json_export, parquet) if find_spec("pyarrow") else (csv, json_export)
)
FORMAT_TITLES: Final = {csv.NAME: "CSV", json_export.NAME: "JSON", parquet.NAME: "Parquet"}


WrittenRow = tuple[WrittenTable, int]
"""A table, and the place of a row in it."""


def table_of(results: Iterable[SiteResult]) -> Table:
    """Results in the columns of `perfdb export results`, with findings and printed cells."""
    shown = list(results)
    plain = exported.table_of(map(vars, shown))
    raw = [json.dumps(dict(it.raw), ensure_ascii=False) if it.raw else None for it in shown]
    rows = (
        (*row, one.findings or None, printed)
        for row, one, printed in zip(plain.rows, shown, raw, strict=True)
    )
    return Table((*plain.columns, *EXTRA_COLUMNS), tuple(rows))


def written(results: Iterable[SiteResult]) -> WrittenTable:
    made = table_of(results)
    arrow = made.arrow if parquet in FORMATS else None
    return WrittenTable(made.columns, objects=made.objects, lines=made.lines, arrow=arrow)


def joined(tables: Sequence[WrittenTable]) -> WrittenTable:
    """Several tables of the same columns, one or more, as one."""
    arrows = [it.arrow for it in tables if it.arrow is not None]
    return WrittenTable(
        tables[0].columns,
        objects=[one for it in tables for one in it.objects],
        lines=[one for it in tables for one in it.lines],
        arrow=pyarrow().concat_tables(arrows).combine_chunks() if arrows else None,
    )


def write_table(path: Path, table: Table) -> list[Path]:
    """Write a table in each format; a file that has the same content already stays as it is."""
    return [write(path.with_name(f"{path.name}.{it.NAME}"), it.render(table)) for it in FORMATS]


def selected(rows: Iterable[WrittenRow]) -> WrittenTable:
    """Some rows of written tables, one or more, as a table."""
    known = list(rows)
    columns, objects = known[0][0].columns, [table.objects[place] for table, place in known]
    return WrittenTable(
        columns,
        objects=objects,
        lines=[table.lines[place] for table, place in known],
        arrow=arrow_of(columns, objects) if parquet in FORMATS else None,
    )


def write_download(folder: Path, name: str, table: Table, taken: Collection[str]) -> list[Path]:
    """Write the files of a table; a name that another table of the document has gets a number.

    `taken` are the paths of the files of the document's other tables.
    """
    stems = (name if number == 1 else f"{name}-{number}" for number in count(1))
    stem = next(it for it in stems if str(folder / f"{it}.{csv.NAME}") not in taken)
    return write_table(folder / stem, table)
