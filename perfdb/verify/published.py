"""Checks of published results: their figures by the stored bytes of the page or file."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final

from sqlalchemy import Connection, RowMapping

from perfdb import formats, measure
from perfdb.db.sources import content_of
from perfdb.errors import DamagedBytesError
from perfdb.fields import FIGURES
from perfdb.groups import grouped
from perfdb.ingest.reads import LOG_PARSER_VERSION, PAGE, PAGE_PARSER_VERSION
from perfdb.pages import reader
from perfdb.pages.base import PageContext
from perfdb.queries import checks
from perfdb.record import Method
from perfdb.units import counted
from perfdb.verify.base import Fault, Finding, PassedOver, Watch, other_version

COMPARED: Final = (*FIGURES, *Method.model_fields, "raw", "printed", "extras", "notes")
"""The columns that follow from the bytes of a page or file."""

Cells = Mapping[str, object]
ByLine = Mapping[int | None, Sequence[Cells]]


def published(connection: Connection, watch: Watch) -> Iterator[Finding]:
    """Every published result, superseded or not, is what its line of the stored bytes states."""
    rows = connection.execute(checks.published()).mappings().all()
    for _, group in groupby(watch(rows, len(rows)), key=lambda row: row["source_id"]):
        yield from _of_source(connection, list(group))


def _of_source(connection: Connection, rows: Sequence[RowMapping]) -> Iterator[Finding]:
    first, many = rows[0], counted(len(rows), "result")
    if reason := _unreadable(first):
        yield PassedOver(first["path"], f"{many}: {reason}")
        return
    try:
        content = b"".join(content_of(connection, first["source_id"]))
    except DamagedBytesError:
        yield PassedOver(first["path"], f"{many}: the bytes are damaged")
        return
    for row in rows:
        if problem := _difference(row, content):
            line = row["source_line"]
            where = f"{row['path']}:{line}" if line else row["path"]
            yield Fault(where, f"result {row['key']}: {problem}")


def _unreadable(row: RowMapping) -> str | None:
    """Why this version of the parser may read something else; None if it is the same version."""
    if row["parser"] != PAGE and row["parser"] not in formats.FORMATS:
        return f"read by {row['parser']!r}, which this version does not know"
    newest = PAGE_PARSER_VERSION if row["parser"] == PAGE else LOG_PARSER_VERSION
    return other_version(row["parser_version"], newest)


def _difference(row: RowMapping, content: bytes) -> str | None:
    """Which of the stored columns differ from what the bytes state, and how."""
    stated = _by_bytes(row, content).get(row["source_line"], ())
    if not stated:
        return "nothing is read there"
    stored = {name: row[name] for name in COMPARED}
    if stored in stated:
        return None
    return ", ".join(
        f"{name} is {value}, and {stated[0][name]} by the bytes"
        for name, value in stored.items()
        if value != stated[0][name]
    )


def _by_bytes(row: RowMapping, content: bytes) -> ByLine:
    """What each line states; the row has what the page does not state of itself."""
    if row["parser"] == PAGE:
        names = ("framework", "release", "container", "system", "precision")
        return _of_page(row["path"], content, PageContext(*(row[name] for name in names)))
    return _of_file(row["parser"], row["path"], content)


@lru_cache(maxsize=64)
def _of_page(where: str, content: bytes, context: PageContext) -> ByLine:
    found = reader.read(where, reader.decoded_page(content), context)
    lines = grouped(map(measure.of_page, found.results), lambda row: row.source_line)
    return {
        line: [{name: getattr(row, name) for name in COMPARED} for row in rows]
        for line, rows in lines.items()
    }


@lru_cache(maxsize=8)
def _of_file(parser: str, where: str, content: bytes) -> ByLine:
    found = formats.FORMATS[parser].parse(where, [content])
    lines = grouped(found, lambda log: log.emitted_line)
    return {line: list(map(_of_log, logs)) for line, logs in lines.items()}


def _of_log(log: formats.ParsedLog) -> Cells:
    others = {"raw": {}, "printed": {}, "notes": (), "extras": log.extras}
    method = Method(window=log.window)
    return {**dict(measure.printed_figures(log)), **dict(method), **others}
