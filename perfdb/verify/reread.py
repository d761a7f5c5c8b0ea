"""The checks that read the stored bytes again, and compare every column that follows from them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Final

from sqlalchemy import Connection, RowMapping

from perfdb import catalog, flops, formats, measure
from perfdb.db import tables
from perfdb.db.rows import MeasuredRun, ResultRow, RunRow, SourceFile, StepRow, step_rows
from perfdb.db.sources import content_of
from perfdb.errors import DamagedBytesError, InputError, RunDirError
from perfdb.groups import grouped
from perfdb.ingest import identity
from perfdb.ingest.companions import Companion
from perfdb.ingest.find import Source, plain_name
from perfdb.ingest.logs import LogFile, parsed_log
from perfdb.ingest.options import BESIDE, Checked
from perfdb.ingest.pages import rows_of_page
from perfdb.ingest.reads import (
    LOG_PARSER_VERSION,
    PAGE,
    PAGE_PARSER_VERSION,
    RUN_DIRECTORY,
    RUN_PARSER_VERSION,
    Read,
    RunRead,
)
from perfdb.jsonfile import content_hash, parse_json
from perfdb.pages import reader
from perfdb.queries import checks as questions
from perfdb.queries import runs as run_queries
from perfdb.record import Original, Release
from perfdb.run_record import RunRecord
from perfdb.rundir import RECORD, STEPS, RunDir, parse_steps, parse_worker
from perfdb.units import counted
from perfdb.verify.checks import Fault, PassedOver, Watch
from perfdb.verify.figures import RECOMPUTED, STEPS_AT_ONCE, is_same, result_of, revised_hash

_PARSER_VERSIONS: Final[Mapping[str, int]] = {
    PAGE: PAGE_PARSER_VERSION,
    RUN_DIRECTORY: RUN_PARSER_VERSION,
    **dict.fromkeys(formats.FORMATS, LOG_PARSER_VERSION),
}
_COLUMNS: Final = tuple(
    it.name for it in fields(ResultRow) if it.name not in ("case", "release", "key")
)
_BY_STEPS: Final = {*RECOMPUTED} - {"outcome", "withheld", "emitted", "notes"}
"""The columns that `figures` checks, where a run has figures."""

_UNREADABLE: Final = (RunDirError, DamagedBytesError, InputError, ValueError)
"""What reading bytes again raises; ValueError also means options that nobody can state."""


def _unreadable(source: RowMapping) -> str | None:
    """Why this version may read something else from a source; None if it reads the same."""
    newest = _PARSER_VERSIONS.get(source["parser"])
    if newest is None:
        return f"read by {source['parser']!r}, which this version does not know"
    if source["parser_version"] != newest:
        return f"read by version {source['parser_version']} of the parser; this is {newest}"
    return None


def _lost(row: RowMapping) -> str | None:
    """What the catalogue no longer has of what a page or log names."""
    if row["parser"] == RUN_DIRECTORY or row["system"] in catalog.systems():
        return None
    return f"its system {row['system']!r} is not in the catalogue any more"


def _options(row: RowMapping) -> str:
    """What the options state that a result was read with, and its release, as JSON."""
    return json.dumps([row["stated"], row["framework"], row["release"]])


def _checked(options: str) -> Checked:
    """The same as options. Raises ValueError and InputError."""
    stated, framework, version = json.loads(options)
    return Checked.of_stated(stated, Release(framework=framework, version=version))


def originals(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """What the store has of the original of a page is what the page states."""
    for row in watch(connection.execute(questions.SOURCES).mappings().all()):
        stated = Original()
        if row["parser"] == PAGE and not _unreadable(row):
            try:
                stated = _original(b"".join(content_of(connection, row["id"])))
            except (DamagedBytesError, UnicodeDecodeError):
                continue  # `sources` has it
        elif row["parser"] == PAGE:
            continue
        for name, value in stated.model_dump().items():
            if row[name] != value:
                where = f"source {row['id']}"
                yield Fault(where, f"{name} is {row[name]}, and {value} by the bytes")


@lru_cache(maxsize=64)
def _original(content: bytes) -> Original:
    return reader.original(reader.decoded_page(content))


def published(connection: Connection, watch: Watch) -> Iterator[Fault | PassedOver]:
    """Every published result, superseded or not, is what the stored bytes state."""
    rows = connection.execute(questions.PUBLISHED).mappings().all()
    for number, group in groupby(watch(rows), key=itemgetter("source_id")):
        some = list(group)
        reason, content = _unreadable(some[0]), b""
        try:
            content = b"" if reason else b"".join(content_of(connection, number))
        except DamagedBytesError:
            reason = "the bytes are damaged"
        if reason:
            yield PassedOver(some[0]["path"], f"{counted(len(some), 'result')}: {reason}")
            continue
        for row in some:
            line = row["source_line"]
            where = f"{row['path']}:{line}" if line else row["path"]
            if lost := _lost(row):
                yield PassedOver(where, lost)
            elif problem := ", ".join(_differing_row(connection, row, content)):
                yield Fault(where, f"result {row['key']}: {problem}")


def _differing_row(connection: Connection, row: RowMapping, content: bytes) -> Iterator[str]:
    """How the stored columns of a published result differ from what the bytes state."""
    where, options = row["path"], _options(row)
    try:
        if row["parser"] == PAGE:
            read = _page(where, content, options)
        else:
            beside = tuple(row["stated"].get(BESIDE, ()))
            read = _summed(where, row["parser"], content, options, _beside(connection, beside))
    except _UNREADABLE as error:
        yield f"cannot be read again: {error}"
        return
    same = [it for it in read if row["key"] in _keys(it)]
    if not same:
        yield "its key is of nothing that is read there"
        same = [it for it in read if it.source_line == row["source_line"]]
    if same:
        yield from _differing(result_of(row), same[0], _COLUMNS)


def _keys(row: ResultRow) -> tuple[str, ...]:
    """The keys that a result may have: its own, and that next to another release's."""
    version = row.release.version
    return (row.key, identity.hashed(row.key, version)) if version else (row.key,)


@lru_cache(maxsize=64)
def _page(where: str, content: bytes, options: str) -> Sequence[ResultRow]:
    """The results of a page. Raises ValueError and InputError."""
    return rows_of_page(where, reader.decoded_page(content), _checked(options))[1]


@lru_cache(maxsize=8)
def _summed(
    where: str, parser: str, content: bytes, options: str, beside: tuple[SourceFile, ...]
) -> Sequence[ResultRow]:
    """The results of a file without steps. Raises ValueError and InputError."""
    found = _of_log(where, parser, [content], options, beside)
    return [row for read in found for row in read.results]


def _of_log(
    where: str, parser: str, chunks: Iterable[bytes], options: str, beside: Iterable[SourceFile]
) -> Sequence[Read]:
    """What a log or a file of results gives, with the files that were read beside it."""
    file, logs = parsed_log(where, formats.named(parser), chunks)
    source = Source(Path(where), "log", named=True)
    companions = [*map(_companion, beside)]
    return list(LogFile(source, file, len(logs), _checked(options), companions).reads(logs))


def _beside(connection: Connection, hashes: Sequence[str]) -> tuple[SourceFile, ...]:
    """The files of these hashes, in their order. Raises ValueError for one that is not there."""
    question = questions.of_hashes(hashes)
    found = {row["sha256"]: row for row in connection.execute(question).mappings()}
    if missing := [one for one in hashes if one not in found]:
        raise ValueError(f"no source has the SHA-256 {missing[0]}")
    return tuple(_source(connection, found[one]) for one in hashes)


def _source(connection: Connection, row: RowMapping) -> SourceFile:
    content = b"".join(content_of(connection, row["source_id"]))
    return SourceFile(row["path"], content, row["parser"], row["parser_version"])


def _companion(source: SourceFile) -> Companion:
    content = source.content
    assert isinstance(content, bytes)
    [log] = formats.named(source.parser).parse(source.path, [content])
    return Companion(source, log)


def _differing(kept: object, read: object, names: Iterable[str]) -> Iterator[str]:
    """The attributes that differ, those of a case and a release one by one."""
    if isinstance(kept, ResultRow) and isinstance(read, ResultRow):
        yield from _differing(kept.case, read.case, type(read.case).model_fields)
        yield from _differing(kept.release, read.release, Release.model_fields)
    for name in names:
        one, other = _plain(getattr(kept, name)), _plain(getattr(read, name))
        if not is_same(one, other):
            yield f"{name} is {one}, and {other} by the bytes"


def _plain(value: object) -> object:
    """A value in the types of JSON, which has lists and objects alone."""
    return list(value) if isinstance(value, tuple) else value


def runs(connection: Connection, watch: Watch) -> Iterator[Fault | PassedOver]:
    """Every run, its files, steps and results are what its stored files state."""
    rows = connection.execute(questions.MEASURED).mappings().all()
    by_run = grouped(sorted(rows, key=itemgetter("id")), itemgetter("run_id"))
    reread = _Runs(connection)
    for run in watch(connection.execute(questions.RUNS).mappings().all()):
        where, its = f"run {run['run_id']}", by_run.get(run["id"], [])
        files = connection.execute(run_queries.files_of_row(run["id"])).mappings().all()
        record = next((file for file in files if file["is_record"]), None)
        if record is None:
            yield Fault(where, "the file that says what it is is none of its files")
        elif reason := _unreadable(record) or next(filter(None, map(_lost, its)), None):
            yield PassedOver(where, reason)
        else:
            found = _of_run(reread, run, files, record, its)
            yield from (Fault(where, it) if isinstance(it, str) else it for it in found)


def _of_run(
    reread: "_Runs",
    run: RowMapping,
    files: Sequence[RowMapping],
    record: RowMapping,
    its: Sequence[RowMapping],
) -> Iterator[str | PassedOver]:
    """What is wrong with a run and with its results, oldest first."""
    yield from _misnamed(record, files)
    last: MeasuredRun | None = None
    earlier = 0
    for row in its:
        try:
            last = reread.run(run["run_id"], files, record, _options(row))
        except DamagedBytesError as error:
            yield PassedOver(f"run {run['run_id']}", f"its files cannot be read: {error}")
            return
        except _UNREADABLE as error:
            yield f"cannot be read again: {error}"
            return
        problems = list(_of_result(row, last, files, record))
        if row["superseded"] and problems and row["content_hash"] not in _hashes(row, last):
            earlier += 1
            continue
        yield from problems
    if earlier:
        message = f"{counted(earlier, 'superseded result')} of other bytes, which it had before"
        yield PassedOver(f"run {run['run_id']}", message)
    if last:
        yield from _differing_run(reread.connection, run, last)


def _differing_run(connection: Connection, run: RowMapping, read: MeasuredRun) -> Iterator[str]:
    """How the stored columns and steps of a run differ from what its files give."""
    names = [it.name for it in fields(RunRow)]
    kept = RunRow(**{name: run[name] for name in names})
    yield from _differing(kept, read.run, names)
    for name, of in (("case", read.result.case), ("release", read.result.release)):
        if run[name] != of.key:
            yield f"its {name} is another one by the bytes"
    yield from _differing_steps(connection, run["id"], step_rows(read.steps))


def _hashes(row: RowMapping, read: MeasuredRun) -> tuple[str, str]:
    """The content hashes that a result may have: as it was read, and recomputed."""
    return read.result.content_hash, revised_hash(result_of(row), read.run.content_hash)


def _of_result(
    row: RowMapping, read: MeasuredRun, files: Sequence[RowMapping], record: RowMapping
) -> Iterator[str]:
    """How a measured result differs from what its files give; `figures` has those of steps."""
    kept, (as_read, recomputed) = result_of(row), _hashes(row, read)
    names = {*_COLUMNS} - {"formula_version", "content_hash"}
    if kept.content_hash == recomputed != as_read:
        names -= {*RECOMPUTED}
    elif kept.content_hash != as_read:
        yield f"content_hash is {kept.content_hash}, and {as_read} by the bytes"
    elif (
        not row["superseded"] and kept.withheld is None
    ) or kept.formula_version != flops.FORMULA_VERSION:
        names -= _BY_STEPS
    if not 1 <= (kept.formula_version or 0) <= flops.FORMULA_VERSION:
        yield f"formula_version is {kept.formula_version}, which this version does not know"
    if kept.key != read.result.key:
        yield f"key is {kept.key}, and {read.result.key} by the bytes"
    measured_in = {file["name"]: file["source_id"] for file in files}.get(STEPS)
    of_directory = record["parser"] == RUN_DIRECTORY
    if row["source_id"] != (measured_in if of_directory and measured_in else record["source_id"]):
        yield f"the result of revision {row['revision']} is of another file"
    yield from _differing(kept, read.result, sorted(names))


def _misnamed(record: RowMapping, files: Sequence[RowMapping]) -> Iterator[str]:
    """Files that are not where their names are."""
    folder = str(PurePath(record["path"]).parent)
    for file in files:
        of_directory = record["parser"] == RUN_DIRECTORY
        path = f"{folder}/{file['name']}" if of_directory else plain_name(Path(file["path"]))
        if path != (str(PurePath(file["path"])) if of_directory else file["name"]):
            yield f"{file['name']} was read from {file['path']}"


class _Runs:
    """Reads runs again; those of a log or directory are kept for the next run or revision."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._known: tuple[object, Sequence[tuple[str, MeasuredRun]]] = ((), ())

    def run(
        self, run_id: str, files: Sequence[RowMapping], record: RowMapping, options: str
    ) -> MeasuredRun:
        """A run by its files. Raises `_UNREADABLE`."""
        is_directory = record["parser"] == RUN_DIRECTORY
        of = [*map(dict, files)] if is_directory else record["source_id"]
        if self._known[0] != (of, options):
            read = self._of_directory if is_directory else self._of_log
            self._known = (of, options), read(files, record, options)
        for read_id, run in self._known[1]:
            version = run.result.release.version
            if is_directory or run_id == read_id:
                return run
            if version and run_id == identity.of_other_release(read_id, version):
                return identity.with_id(run, run_id)
        raise ValueError("its files and the options that it was read with give no such run")

    def _of_directory(
        self, files: Sequence[RowMapping], _record: RowMapping, options: str
    ) -> list[tuple[str, MeasuredRun]]:
        run, by_name = RunDir(Path(files[0]["path"]).parent), {it["name"]: it for it in files}

        def content(name: str) -> bytes:
            return self._content(by_name[name]["source_id"]) if name in by_name else b""

        record = parse_json(str(run.record), content(RECORD), RunRecord)
        lines = content(STEPS).decode(errors="replace").splitlines()
        worker, steps = parse_worker(str(run.path), content), parse_steps(str(run.steps), lines)
        hashed = content_hash({name: it["sha256"] for name, it in by_name.items()})
        asked = _checked(options)
        read = measure.of_run(record, steps, worker, hashed, asked.window)
        stated = replace(read, result=replace(read.result, stated=asked.stated))
        return [(record.run_id, stated)]

    def _of_log(
        self, files: Sequence[RowMapping], record: RowMapping, options: str
    ) -> list[tuple[str, MeasuredRun]]:
        chunks = content_of(self.connection, record["source_id"])
        order = list(formats.FORMATS)
        sources = [_source(self.connection, it) for it in files if it is not record]
        beside = sorted(sources, key=lambda it: order.index(it.parser))
        found = _of_log(record["path"], record["parser"], chunks, options, beside)
        return [(read.run_id, read.run) for read in found if isinstance(read, RunRead)]

    def _content(self, source_id: int) -> bytes:
        return b"".join(content_of(self.connection, source_id))


def _differing_steps(
    connection: Connection, run_row_id: int, read: Sequence[StepRow]
) -> Iterator[str]:
    """How the steps in the store differ from those that are read from the run's files."""
    columns = [tables.steps.c[name] for name in StepRow._fields]
    question = run_queries.steps_of_row(run_row_id).with_only_columns(*columns)
    by_files = {one.step: one for one in read}
    for row in connection.execute(question, execution_options={"yield_per": STEPS_AT_ONCE}):
        kept, now = StepRow(*row), by_files.pop(row.step, None)
        if now is None:
            yield f"step {kept.step}: is not in its files"
        elif kept != now:
            apart = (
                f"{name} is {one}, and {other} by its files"
                for name, one, other in zip(StepRow._fields, kept, now, strict=True)
                if one != other
            )
            yield f"step {kept.step}: {', '.join(apart)}"
    yield from (f"step {number}: is not in the store" for number in sorted(by_files))
