"""The results of tables as files to be downloaded: made as pages are read, kept beside the HTML.

CSV goes into spreadsheets, which take a text that begins with =, +, - or @ for a formula: such a
text gets an apostrophe in front, there alone. JSON and Parquet hold every text as it is.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from json import dumps
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from perfdb.audit import Finding
from perfdb.export import csv, json, parquet
from perfdb.export import results as exported
from perfdb.export.base import Cell, Column, ExportFormat, Table
from perfdb.queries import findings
from perfdb.queries import results as queries
from perfdb.site.data import Result
from perfdb.site.files import DOWNLOADS, EVERYTHING, write
from perfdb.site.markup import Content, Html, Offer, joined, tag
from perfdb.site.rows import findings_said

DICTIONARY: Final = "reference/data"
"""The page that says what the columns mean."""
ASIDE: Final = (Column("findings", str), Column("printed", str))
"""What the files of the site have beside the columns of `perfdb export results`."""

_SAID: Final = {csv.NAME: "CSV", json.NAME: "JSON", parquet.NAME: "Parquet"}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def formats() -> Iterator[ExportFormat]:
    """CSV, JSON, and Parquet where pyarrow is installed."""
    yield csv
    yield json
    if find_spec("pyarrow"):
        yield parquet


def table(results: Iterable[Result]) -> Table:
    """Results in the columns of `perfdb export results`, what was found and what was printed."""
    columns = _columns()
    rows = (
        (*(getattr(one, column.name) for column in columns), *_aside(one.findings, one.raw))
        for one in results
    )
    return Table((*columns, *ASIDE), tuple(rows))


def everything(connection: Connection) -> Table:
    """The results in force as `perfdb export results` has them, with what the others also have."""
    found: dict[int, list[Finding]] = defaultdict(list)
    for row in connection.execute(findings.current()).mappings():
        found[row["result_id"]].append(Finding.model_validate(dict(row)))
    plain = exported.table(connection)
    rows = connection.execute(queries.current()).mappings()
    asides = [_aside(findings_said(found[row["result_id"]]), row["raw"]) for row in rows]
    cells = ((*row, *aside) for row, aside in zip(plain.rows, asides, strict=True))
    return Table((*plain.columns, *ASIDE), tuple(cells))


def _aside(found: str, raw: Mapping[str, str]) -> tuple[Cell, Cell]:
    """The audit's rules and a page's own cells as JSON; nothing where there are none."""
    return found or None, dumps(dict(raw), ensure_ascii=False) if raw else None


def for_spreadsheets(given: Table) -> Table:
    """A table in which no text is a formula."""
    return Table(given.columns, tuple(tuple(map(_harmless, row)) for row in given.rows))


def write_table(path: Path, given: Table) -> list[Path]:
    """Write the files of a table beside one another; what is there already is not made again."""
    paths = {one: path.with_name(f"{path.name}.{one.NAME}") for one in formats()}
    # JSON says all that a table says, and is far quicker than starting what writes Parquet.
    said = json.render(given)
    is_new = not all(one.is_file() for one in paths.values()) or paths[json].read_bytes() != said
    if is_new:
        write(paths[csv], csv.render(for_spreadsheets(given)))
        write(paths[json], said)
        for one in (one for one in paths if one not in (csv, json)):
            write(paths[one], one.render(given))
    return list(paths.values())


def write_offer(folder: Path, offer: Offer, taken: Container[Path]) -> list[Path]:
    """Write the files of a table; a name that another table of the document has gets a number."""
    stem, number = offer.name, 1
    while folder / f"{stem}.{csv.NAME}" in taken:
        number += 1
        stem = f"{offer.name}-{number}"
    return write_table(folder / stem, table(offer.results))


def write_everything(root: Path, connection: Connection) -> list[Path]:
    """Write the files of all results in force."""
    return write_table(root / DOWNLOADS / EVERYTHING, everything(connection))


def remove_everything(root: Path) -> None:
    """Remove the files of all results: there are none any more."""
    for path in (root / DOWNLOADS).glob(f"{EVERYTHING}.*"):
        path.unlink()


def links(addresses: Sequence[str], dictionary: str | None) -> Html:
    """The links below a table; `dictionary` is the address of the page on the columns."""
    parts: list[Content] = [
        tag("a", _SAID[address.rpartition(".")[2]], href=address, download="")
        for address in addresses
    ]
    if dictionary:
        parts.append(tag("a", "what the columns mean", href=dictionary))
    return tag("p", ("Download ", joined(parts, " · ")), class_="perf-downloads")


@cache
def _columns() -> tuple[Column, ...]:
    known = queries.current().selected_columns
    return tuple(Column(name, known[name].type.python_type) for name in exported.COLUMNS)


def _harmless(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
