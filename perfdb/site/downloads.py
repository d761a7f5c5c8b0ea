"""The results of tables as files to be downloaded, next to the documents that offer them.

A spreadsheet takes a text that begins with =, +, - or @ for a formula: in CSV such a text gets an
apostrophe in front. JSON and Parquet hold every text as it is."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Final

from markupsafe import Markup

from perfdb.export import csv, parquet
from perfdb.export import json as json_export
from perfdb.export import results as exported
from perfdb.export.formats import Cell, Column, ExportFormat, Table
from perfdb.site.data import SiteResult
from perfdb.site.files import DOWNLOADS, EVERYTHING, SiteLayout, write
from perfdb.site.page import (
    AllDownloads,
    Block,
    Code,
    Download,
    FileLinks,
    IndexEntry,
    Section,
    Tabs,
)

EXTRA_COLUMNS: Final = (Column("findings", str), Column("printed", str))
"""What the files of the site have after the columns of `perfdb export results`."""
FORMATS: Final[Sequence[ExportFormat]] = (
    (csv, json_export, parquet) if find_spec("pyarrow") else (csv, json_export)
)
FORMAT_TITLES: Final = {csv.NAME: "CSV", json_export.NAME: "JSON", parquet.NAME: "Parquet"}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet takes for a formula."""


def table_of(results: Iterable[SiteResult]) -> Table:
    """Results in the columns of `perfdb export results`, with findings and printed cells."""
    shown = list(results)
    plain = exported.table_of(map(vars, shown))
    rows = ((*row, *_extra(one)) for row, one in zip(plain.rows, shown, strict=True))
    return Table((*plain.columns, *EXTRA_COLUMNS), tuple(rows))


def _extra(result: SiteResult) -> tuple[Cell, Cell]:
    raw = json.dumps(dict(result.raw), ensure_ascii=False) if result.raw else None
    return result.findings or None, raw


def _without_formulas(table: Table) -> Table:
    """A table for spreadsheets: a text that one takes for a formula gets an apostrophe in front."""
    rows = [
        tuple([f"'{it}" if isinstance(it, str) and it.startswith(_FORMULA) else it for it in row])
        for row in table.rows
    ]
    return Table(table.columns, tuple(rows))


def write_table(path: Path, results: Iterable[SiteResult]) -> list[Path]:
    """Write the files of a table; those that have the same content already stay as they are."""
    table = table_of(results)
    safe = _without_formulas(table)
    return [
        write(path.with_name(f"{path.name}.{it.NAME}"), it.render(safe if it is csv else table))
        for it in FORMATS
    ]


def write_download(
    folder: Path, name: str, results: Iterable[SiteResult], taken: Collection[Path]
) -> list[Path]:
    """Write the files of a table; a name that another table of the document has gets a number."""
    stems = (name if number == 1 else f"{name}-{number}" for number in count(1))
    stem = next(it for it in stems if folder / f"{it}.{csv.NAME}" not in taken)
    return write_table(folder / stem, results)


def write_everything(root: Path, results: Sequence[SiteResult]) -> list[Path]:
    """Write the files of all results; where there are none any more, remove them."""
    path = root / DOWNLOADS / EVERYTHING
    if results:
        return write_table(path, results)
    for gone in path.parent.glob(f"{path.name}.*"):
        gone.unlink()
    return []


Stored = Mapping[str, object]
"""A block as it is kept: JSON."""


def blocks_of(path: Path) -> list[Stored]:
    """The blocks of a page as they are kept."""
    blocks: list[Stored] = json.loads(path.read_bytes().split(b"\n", 2)[2])
    return blocks


@dataclass(frozen=True)
class Keeper:
    """Turns the blocks of a document into JSON and writes the files of its downloads.

    `taken` are files of the document that another part of it has.
    """

    layout: SiteLayout
    document: str
    files: list[str] = field(default_factory=list)

    def blocks(self, blocks: Iterable[Block], taken: Collection[Path] = ()) -> list[Stored]:
        """Blocks as JSON."""
        return [self._block(block, taken) for block in blocks if block != ""]

    def _block(self, block: Block, taken: Collection[Path]) -> Stored:
        match block:
            case Markup():
                return {"html": str(block)}
            case Section(title, inner):
                return {"section": title, "blocks": self.blocks(inner, taken)}
            case Tabs(group, tabs):
                inner_tabs = [
                    {"name": it.name, "title": it.title, "blocks": self.blocks(it.blocks, taken)}
                    for it in tabs
                ]
                return {"tabs": inner_tabs, "group": group}
            case Download(results):
                return self._download(block, results, taken)
            case _:
                return self._leaf(block)

    def _leaf(self, block: Code | FileLinks | IndexEntry | AllDownloads) -> Stored:
        match block:
            case Code(text, language):
                return {"code": text, "language": language}
            case FileLinks(run_files, before, after):
                listed = [
                    {"path": self._relative(self.layout.run_file(it)), "name": it.name,
                     "size": it.size_bytes}
                    for it in run_files
                ]  # fmt: skip
                return {"files": listed, "before": before, "after": after}
            case IndexEntry(words):
                return {"entry": words}
            case AllDownloads():
                return {"everything": True}

    def _download(
        self, block: Download, results: Sequence[SiteResult], taken: Collection[Path]
    ) -> Stored:
        """The files of a table, and the titles of its models: the search finds it by these."""
        known = {*taken, *(self.layout.root / name for name in self.files)}
        folder = self.layout.downloads(self.document)
        made = write_download(folder, block.name, results, known)
        names = [self._relative(path) for path in made]
        self.files.extend(names)
        models = list(dict.fromkeys(result.model_title for result in results))
        return {"downloads": names, "models": models}

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.layout.root).as_posix()
