"""Checks of published results: their figures by the stored bytes of the page or file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from pydantic import ConfigDict
from sqlalchemy import Connection

from perfdb import formats, logged, pages
from perfdb.errors import DamagedBytesError
from perfdb.ingest.logs import LOG_PARSER_VERSION
from perfdb.ingest.page import PAGE_PARSER_VERSION
from perfdb.ingest.read import PAGE
from perfdb.pages import PageContext
from perfdb.queries import verify
from perfdb.record import Figures, Frozen, Method
from perfdb.units import counted
from perfdb.verify.base import Fault, Finding, PassedOver, Watch, content


class _Said(Frozen):
    """What a row says: its figures, how they were measured, and the text they were read from."""

    model_config = ConfigDict(extra="ignore")

    figures: Figures
    method: Method
    raw: Mapping[str, str]
    extras: Mapping[str, str]
    notes: tuple[str, ...]


class _Row(Frozen):
    """A row of `perfdb.queries.verify.published`."""

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
    """A row, and what it says."""

    row: _Row
    said: _Said


def published(connection: Connection, watch: Watch) -> Iterator[Finding]:
    """Every published result, superseded or not, says what its line of the stored bytes says."""
    rows = list(map(_stored, map(dict, connection.execute(verify.published()).mappings())))
    for _, group in groupby(watch(rows, len(rows)), key=lambda one: one.row.source_id):
        yield from _of_source(connection, list(group))


def _stored(row: Mapping[str, object]) -> _Stored:
    figures = Figures.model_validate({name: row[name] for name in Figures.model_fields})
    method = Method.model_validate({name: row[name] for name in Method.model_fields})
    said = _Said.model_validate({**row, "figures": figures, "method": method})
    return _Stored(_Row.model_validate(row), said)


def _of_source(connection: Connection, group: list[_Stored]) -> Iterator[Finding]:
    first, many = group[0].row, counted(len(group), "result")
    reason = _unreadable(first)
    if reason:
        yield PassedOver(first.path, f"{many}: {reason}")
        return
    try:
        bytes_ = b"".join(content(connection, first.source_id))
    except DamagedBytesError:
        yield PassedOver(first.path, f"{many}: the bytes are damaged")
        return
    for one in group:
        said = _by_bytes(one.row, bytes_)
        if not said:
            yield Fault(one.row.where, f"result {one.row.key}: nothing is read there")
        elif one.said not in said:
            yield Fault(one.row.where, f"result {one.row.key}: {_apart(one.said, said[0])}")


def _unreadable(row: _Row) -> str | None:
    """Why this version would read something else; None where it would not."""
    if row.parser != PAGE and row.parser not in formats.FORMATS:
        return f"read by {row.parser!r}, which this version does not know"
    newest = PAGE_PARSER_VERSION if row.parser == PAGE else LOG_PARSER_VERSION
    if row.parser_version == newest:
        return None
    return f"read by version {row.parser_version} of the parser; this is {newest}"


def _by_bytes(row: _Row, content: bytes) -> list[_Said]:
    """What is read at the row's line. A page may need to be told what it does not say of itself."""
    if row.parser == PAGE:
        context = PageContext(row.framework, row.release, row.container, row.system, row.precision)
        return _of_page(row.path, content, context).get(row.source_line, [])
    return _of_file(row.parser, row.path, content).get(row.source_line, [])


@lru_cache(maxsize=64)
def _of_page(where: str, content: bytes, context: PageContext) -> Mapping[int | None, list[_Said]]:
    found: dict[int | None, list[_Said]] = {}
    for row in pages.read(where, content.decode(), context).results:
        found.setdefault(row.line, []).append(_Said.model_validate(dict(row)))
    return found


@lru_cache(maxsize=8)
def _of_file(parser: str, where: str, content: bytes) -> Mapping[int | None, list[_Said]]:
    found: dict[int | None, list[_Said]] = {}
    for log in formats.FORMATS[parser].parse(where, [content]):
        method = Method(window=log.window)
        said = _Said(
            figures=logged.printed_figures(log), method=method, raw={}, extras=log.extras, notes=()
        )
        found.setdefault(log.emitted_line, []).append(said)
    return found


def _apart(kept: _Said, said: _Said) -> str:
    """Which of the figures and texts differ from those of the bytes."""
    stored, read = map(_flat, (kept, said))
    return ", ".join(
        f"{name} is {one}, and {read[name]} by the bytes"
        for name, one in stored.items()
        if one != read[name]
    )


def _flat(said: _Said) -> Mapping[str, object]:
    texts = {"raw": said.raw, "extras": said.extras, "notes": said.notes}
    return dict(said.figures) | dict(said.method) | texts
