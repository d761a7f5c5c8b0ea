"""The results of tables as files to be downloaded: made as pages are read, kept beside the HTML.

CSV goes into spreadsheets, which take a text that begins with =, +, - or @ for a formula: such a
text gets an apostrophe in front, there alone. JSON and Parquet hold every text as it is.
"""

from collections.abc import Container, Iterable, Sequence
from importlib.util import find_spec
from itertools import chain, count
from json import dumps
from pathlib import Path
from typing import Final

from perfdb.export import csv, json, parquet
from perfdb.export import results as exported
from perfdb.export.base import Cell, Column, ExportFormat, Table
from perfdb.site.data import Result
from perfdb.site.files import DOWNLOADS, EVERYTHING, write
from perfdb.site.markup import Content, Html, Offer, joined, tag

DICTIONARY: Final = "reference/data"
"""The page that says what the columns mean."""
ASIDE: Final = (Column("findings", str), Column("printed", str))
"""What the files of the site have beside the columns of `perfdb export results`."""

_FORMATS: Final[Sequence[ExportFormat]] = (
    (csv, json, parquet) if find_spec("pyarrow") else (csv, json)
)
_SAID: Final = {csv.NAME: "CSV", json.NAME: "JSON", parquet.NAME: "Parquet"}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def table(results: Iterable[Result]) -> Table:
    """Results in the columns of `perfdb export results`, what was found and what was printed."""
    shown = list(results)
    plain = exported.table_of(map(vars, shown))
    rows = ((*row, *_aside(one)) for row, one in zip(plain.rows, shown, strict=True))
    return Table((*plain.columns, *ASIDE), tuple(rows))


def _aside(result: Result) -> tuple[Cell, Cell]:
    """The audit's rules and a page's own cells as JSON; nothing where there are none."""
    raw = dumps(dict(result.raw), ensure_ascii=False) if result.raw else None
    return result.findings or None, raw


def for_spreadsheets(given: Table) -> Table:
    """A table in which no text is a formula."""
    rows = [
        tuple([f"'{it}" if isinstance(it, str) and it.startswith(_FORMULA) else it for it in row])
        for row in given.rows
    ]
    return Table(given.columns, tuple(rows))


def write_table(path: Path, given: Table) -> list[Path]:
    """Write the files of a table beside one another; what is there already stays as it is."""
    safe = for_spreadsheets(given)
    return [
        write(path.with_name(f"{path.name}.{one.NAME}"), one.render(safe if one is csv else given))
        for one in _FORMATS
    ]


def write_offer(folder: Path, offer: Offer, taken: Container[Path]) -> list[Path]:
    """Write the files of a table; a name that another table of the document has gets a number."""
    stems = chain([offer.name], (f"{offer.name}-{number}" for number in count(2)))
    stem = next(it for it in stems if folder / f"{it}.{csv.NAME}" not in taken)
    return write_table(folder / stem, table(offer.results))


def write_everything(root: Path, results: Sequence[Result]) -> list[Path]:
    """Write the files of all results in force; where there are none any more, remove them."""
    path = root / DOWNLOADS / EVERYTHING
    if results:
        return write_table(path, table(results))
    for gone in path.parent.glob(f"{path.name}.*"):
        gone.unlink()
    return []


def links(addresses: Sequence[str], dictionary: str | None, what: str = "") -> Html:
    """The links below a table, or to `what`; `dictionary` is the page on the columns."""
    parts: list[Content] = [
        tag("a", _SAID[address.rpartition(".")[2]], href=address, download="")
        for address in addresses
    ]
    if dictionary:
        parts.append(tag("a", "what the columns mean", href=dictionary))
    said = f"Download {what}: " if what else "Download "
    return tag("p", (said, joined(parts, " · ")), class_="perf-downloads")
