"""Checks of published results: their figures by the stored bytes of the page or file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from pydantic import ConfigDict
from sqlalchemy import Connection

from perfdb import formats, measure
from perfdb.db.sources import content_of
from perfdb.errors import DamagedBytesError
from perfdb.formats import ParsedLog
from perfdb.groups import grouped
from perfdb.ingest.logs import LOG_PARSER_VERSION
from perfdb.ingest.page import PAGE_PARSER_VERSION
from perfdb.ingest.read import PAGE
from perfdb.page_text import decoded_page
from perfdb.pages import reader
from perfdb.pages.base import PageContext
from perfdb.queries import checks
from perfdb.record import Figures, Frozen, Method, Note
from perfdb.units import counted
from perfdb.verify.base import Fault, Finding, PassedOver, Watch, other_version


class _Read(Frozen):
    """What was read of a row: its figures, how they were measured, and their text."""

    model_config = ConfigDict(extra="ignore")

    figures: Figures
    method: Method
    raw: Mapping[str, str]
    extras: Mapping[str, str]
    notes: tuple[Note, ...]


class _Row(Frozen):
    """A row of `perfdb.queries.checks.published`."""

    model_config = ConfigDict(extra="ignore")

    key: str
    revision: int
    source_id: int
    source_line: int | None
    framework: str
    release: str | None
    container: str | None
    system: str
    precision: str | None
    path: str
    parser: str
    parser_version: int

    @property
    def where(self) -> str:
        """'data/published/dfm.md:17'."""
        return f"{self.path}:{self.source_line}" if self.source_line else self.path


@dataclass(frozen=True)
class _Stored:
    """A row, and what was read of it when it was stored."""

    row: _Row
    reading: _Read


def published(connection: Connection, watch: Watch) -> Iterator[Finding]:
    """Every published result, superseded or not, is what its line of the stored bytes says."""
    rows = list(map(_stored, map(dict, connection.execute(checks.published()).mappings())))
    for _, group in groupby(watch(rows, len(rows)), key=lambda stored: stored.row.source_id):
        yield from _of_source(connection, list(group))


def _stored(row: Mapping[str, object]) -> _Stored:
    figures = Figures.model_validate({name: row[name] for name in Figures.model_fields})
    method = Method.model_validate({name: row[name] for name in Method.model_fields})
    reading = _Read.model_validate({**row, "figures": figures, "method": method})
    return _Stored(_Row.model_validate(row), reading)


def _of_source(connection: Connection, group: list[_Stored]) -> Iterator[Finding]:
    first, many = group[0].row, counted(len(group), "result")
    reason = _unreadable(first)
    if reason:
        yield PassedOver(first.path, f"{many}: {reason}")
        return
    try:
        bytes_ = b"".join(content_of(connection, first.source_id))
    except DamagedBytesError:
        yield PassedOver(first.path, f"{many}: the bytes are damaged")
        return
    for stored in group:
        row, readings = stored.row, _by_bytes(stored.row, bytes_)
        if not readings:
            yield Fault(row.where, f"result {row.key}: nothing is read there")
        elif stored.reading not in readings:
            yield Fault(row.where, f"result {row.key}: {_apart(stored.reading, readings[0])}")


def _unreadable(row: _Row) -> str | None:
    """Why this version of the parser may read something else; None if it is the same version."""
    if row.parser != PAGE and row.parser not in formats.FORMATS:
        return f"read by {row.parser!r}, which this version does not know"
    newest = PAGE_PARSER_VERSION if row.parser == PAGE else LOG_PARSER_VERSION
    return other_version(row.parser_version, newest)


def _by_bytes(row: _Row, content: bytes) -> list[_Read]:
    """What is read at the row's line; the row gives what the page does not say of itself."""
    if row.parser == PAGE:
        context = PageContext(row.framework, row.release, row.container, row.system, row.precision)
        return _of_page(row.path, content, context).get(row.source_line, [])
    return _of_file(row.parser, row.path, content).get(row.source_line, [])


@lru_cache(maxsize=64)
def _of_page(where: str, content: bytes, context: PageContext) -> Mapping[int | None, list[_Read]]:
    found = reader.read(where, decoded_page(content), context)
    rows = grouped(found.results, lambda row: row.line)
    return {line: [_Read.model_validate(dict(row)) for row in some] for line, some in rows.items()}


@lru_cache(maxsize=8)
def _of_file(parser: str, where: str, content: bytes) -> Mapping[int | None, list[_Read]]:
    found = formats.FORMATS[parser].parse(where, [content])
    logs = grouped(found, lambda log: log.emitted_line)
    return {line: list(map(_of_log, some)) for line, some in logs.items()}


def _of_log(log: ParsedLog) -> _Read:
    figures, method = measure.printed_figures(log), Method(window=log.window)
    return _Read(figures=figures, method=method, raw={}, extras=log.extras, notes=())


def _apart(kept: _Read, reread: _Read) -> str:
    """Which of the stored figures and texts differ from those of the bytes, and how."""
    stored, read = map(_flat, (kept, reread))
    return ", ".join(
        f"{name} is {value}, and {read[name]} by the bytes"
        for name, value in stored.items()
        if value != read[name]
    )


def _flat(reading: _Read) -> Mapping[str, object]:
    texts = {"raw": reading.raw, "extras": reading.extras, "notes": reading.notes}
    return dict(reading.figures) | dict(reading.method) | texts
