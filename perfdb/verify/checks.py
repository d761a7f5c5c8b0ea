"""The checks of a store. Each looks at items one by one, and yields what is wrong.

Tables are compared with one another, figures with the stored steps, steps and published results
with the stored bytes.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, RowMapping

from perfdb import aggregation, catalog, flops, formats, measure
from perfdb.db import tables
from perfdb.db.rows import StepRow, step_rows
from perfdb.db.sources import content_of
from perfdb.db.tables import cases, models, releases, results, runs, systems
from perfdb.errors import DamagedBytesError, RunDirError
from perfdb.fields import FIGURES
from perfdb.groups import grouped
from perfdb.ingest.logs import number_in_log
from perfdb.ingest.reads import (
    LOG_PARSER_VERSION,
    PAGE,
    PAGE_PARSER_VERSION,
    RUN_DIRECTORY,
    RUN_PARSER_VERSION,
)
from perfdb.jsonfile import parse_json
from perfdb.messages import note_text
from perfdb.pages import columns, reader
from perfdb.pages.base import PageContext
from perfdb.queries import checks as questions
from perfdb.queries import results as result_queries
from perfdb.queries import runs as run_queries
from perfdb.record import Method, Outcome, PartialCase
from perfdb.run_record import RunRecord
from perfdb.rundir import RunDir, parse_steps, parse_worker
from perfdb.units import counted
from perfdb.verify import figures as recomputing
from perfdb.verify.figures import Asked, StoredRun, stored, with_steps


@dataclass(frozen=True)
class Fault:
    """Something in the store that does not follow from the rest of it."""

    where: str
    message: str


@dataclass(frozen=True)
class PassedOver:
    """Something that this version cannot check, and why."""

    where: str
    message: str


Watch = Callable[[Sequence[Any]], Iterator[Any]]
"""Gives the items that a check looks at one by one, counts them and shows the progress."""

Check = Callable[[Connection, Watch], Iterator[Fault | PassedOver]]


def sources(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """The bytes of every source decompress, and have its size and SHA-256."""
    for number, path, sha256, size_bytes in watch(connection.execute(questions.SOURCES).all()):
        digest, size = hashlib.sha256(), 0
        try:
            for chunk in content_of(connection, number):
                digest.update(chunk)
                size += len(chunk)
        except DamagedBytesError as error:
            yield Fault(path, f"source {number}: the bytes are damaged: {error}")
            continue
        if size != size_bytes:
            message = f"{size:,} bytes, not the {size_bytes:,} that were read"
            yield Fault(path, f"source {number}: {message}")
        elif digest.hexdigest() != sha256:
            yield Fault(path, f"source {number}: SHA-256 {digest.hexdigest()}, not {sha256}")


def references(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """Every row that another row refers to exists."""
    columns = [column for table in tables.metadata.sorted_tables for column in table.c]
    foreign = [(column, key.column) for column in columns for key in column.foreign_keys]
    for column, target in watch(foreign):
        if count := connection.scalar(questions.dangling(column, target)):
            refer = "refers" if count == 1 else "refer"
            message = f"{counted(count, 'row')} {refer} to {target.table.name} that are not there"
            yield Fault(f"{column.table.name}.{column.name}", message)


def revisions(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """Revisions count from 1 without a gap; at most one is in force, and that is the newest.

    Exactly one result of a run is in force, or none if the run was withdrawn.
    """
    for key, count, first, last, in_force, newest in watch(
        connection.execute(questions.REVISIONS).all()
    ):
        if (first, last) != (1, count):
            numbered = f"{counted(count, 'revision')} {_are(count)} numbered {first} to {last}"
            yield Fault(f"result {key}", numbered)
        if in_force > 1:
            yield Fault(f"result {key}", f"{in_force} revisions are in force")
        elif newest not in (None, last):
            message = f"revision {newest} is in force, not {last}, the newest"
            yield Fault(f"result {key}", message)
    for key, revision in connection.execute(questions.ENDED_IN_FORCE):
        yield Fault(f"result {key}", f"revision {revision} is in force and has superseded_at")
    for run_id, withdrawn, count in connection.execute(questions.RUNS_IN_FORCE):
        but = "" if withdrawn is None else ", and it is withdrawn"
        yield Fault(f"run {run_id}", f"{count} of its results {_are(count)} in force{but}")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


_ORPHANS: Final = (
    ("run without a result", runs.c.run_id, runs.c.id, results.c.run_id),
    ("case without a result", cases.c.key, cases.c.id, results.c.case_id),
    ("release without a result", releases.c.key, releases.c.id, results.c.release_id),
    ("system without a case", systems.c.name, systems.c.id, cases.c.system_id),
    ("model without a case", models.c.name, models.c.id, cases.c.model_id),
    ("measured result without a run", results.c.key, runs.c.id, results.c.run_id),
)
"""What is wrong, the name of a row, its id, and the column of another table that refers to it."""


def orphans(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """Runs have results, measured results a run; each case, release, system and model is used."""
    for message, name, identity, user in watch(_ORPHANS):
        question = (
            questions.MEASURED_WITHOUT_RUN
            if name is results.c.key
            else questions.unused(name, identity, user)
        )
        yield from (Fault(one, message) for one in connection.scalars(question))


WITHHELD: Final = tuple(
    name
    for name in recomputing.RECOMPUTED
    if name not in ("outcome", "withheld", "window", "emitted", "flops_convention", "notes")
)
"""The columns that are empty in a result whose figures are withheld."""


def figures(connection: Connection, watch: Watch) -> Iterator[Fault | PassedOver]:
    """Every measured current result follows from its stored steps."""
    for row in watch(connection.execute(result_queries.with_runs()).mappings().all()):
        [(run, its_steps)] = with_steps(connection, [row])
        where, result = f"run {run.run_id}", run.result
        made_by, now = result.formula_version, flops.FORMULA_VERSION
        older = f" (made by formulas {made_by}, these are {now})" if made_by != now else ""
        if reason := recomputing.lost(run):
            yield PassedOver(where, f"{reason}: its TFLOP/s and MFU cannot be recomputed")
            continue
        after = recomputing.recomputed(run, its_steps, Asked())
        for name, (kept, now_is) in recomputing.differences(result, after).items():
            message = f"{name} is {kept}, and {now_is} by its steps{older}"
            yield Fault(where, f"{message}; `perfdb recompute` would change it")
        present = [name for name in WITHHELD if getattr(result, name) is not None]
        if result.withheld is not None and present:
            reason = note_text(result.withheld)
            yield Fault(where, f"withheld ({reason}), and yet has {', '.join(present)}")
        if result.withheld is None and result.step_time_s is None:
            yield Fault(where, "has no figures and does not say why")


def steps(connection: Connection, watch: Watch) -> Iterator[Fault | PassedOver]:
    """The steps of every run are those that are read from the stored bytes of its files."""
    for row in watch(connection.execute(result_queries.with_runs()).mappings().all()):
        run, outcome = stored(row), Outcome(row["run_outcome"])
        where = f"run {run.run_id}"
        files = connection.execute(run_queries.files_of_row(run.run_row_id)).mappings().all()
        record = next((file for file in files if file["is_record"]), None)
        if reason := _unreadable(record):
            yield PassedOver(where, reason)
            continue
        assert record is not None
        try:
            of_directory = record["parser"] == RUN_DIRECTORY
            key, by_files, read = (
                _of_directory(connection, files)
                if of_directory
                else _of_log(connection, record, run)
            )
        except (RunDirError, DamagedBytesError) as error:
            yield PassedOver(where, f"its files cannot be read: {error}")
            continue
        if key != run.result.key:
            yield Fault(where, "its files are of another case or release than its result")
        if by_files not in (None, outcome):
            yield Fault(where, f"ended {outcome}, and {by_files} by its files")
        yield from (Fault(where, one) for one in _differing_steps(connection, run, read))


_PARSER_VERSIONS: Final[Mapping[str, int]] = {
    PAGE: PAGE_PARSER_VERSION,
    RUN_DIRECTORY: RUN_PARSER_VERSION,
    **dict.fromkeys(formats.FORMATS, LOG_PARSER_VERSION),
}


def _unreadable(source: RowMapping | None) -> str | None:
    """Why this version may read something else from a source; None if it reads the same."""
    if source is None:
        return "the file that says what it is is not kept"
    newest = _PARSER_VERSIONS.get(source["parser"])
    if newest is None:
        return f"read by {source['parser']!r}, which this version does not know"
    if source["parser_version"] != newest:
        return f"read by version {source['parser_version']} of the parser; this is {newest}"
    return None


Reread = tuple[str, Outcome | None, Sequence[StepRow]]
"""The key of a result, the outcome of its run, and the steps, by the stored bytes.

The outcome is None if it depends on the window, and not on the bytes alone.
"""


def _of_directory(connection: Connection, files: Sequence[RowMapping]) -> Reread:
    run = RunDir(Path(files[0]["path"]).parent)
    source_ids = {file["name"]: file["source_id"] for file in files}

    def content(name: str) -> bytes:
        return b"".join(content_of(connection, source_ids[name])) if name in source_ids else b""

    record = parse_json(str(run.record), content(run.record.name), RunRecord)
    lines = content(run.steps.name).decode(errors="replace").splitlines()
    worker = parse_worker(run, content)
    whole = measure.of_run(record, parse_steps(str(run.steps), lines), worker, "")
    return whole.result.key, whole.run.outcome, step_rows(whole.steps)


def _of_log(connection: Connection, record: RowMapping, run: StoredRun) -> Reread:
    parse = formats.FORMATS[record["parser"]].parse
    logs = parse(record["path"], content_of(connection, record["source_id"]))
    number, result = number_in_log(run.run_id), run.result
    if not 1 <= number <= len(logs):
        return result.key, None, ()
    log = logs[number - 1]
    window = aggregation.named(result.window) if result.window else measure.log_window(log, None)
    of = measure.LogRun(result.case, result.release, run.run_id, "", run.averages)
    return result.key, None, step_rows(measure.of_log(log, of, window).steps)


def _differing_steps(
    connection: Connection, run: StoredRun, read: Sequence[StepRow]
) -> Iterator[str]:
    """How the steps in the store differ from those that are read from the run's files."""
    columns = [tables.steps.c[name] for name in StepRow._fields]
    question = run_queries.steps_of_row(run.run_row_id).with_only_columns(*columns)
    by_files = {one.step: one for one in read}
    for row in connection.execute(
        question, execution_options={"yield_per": recomputing.STEPS_AT_ONCE}
    ):
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


COMPARED: Final = (
    *FIGURES, *Method.model_fields, "peak_tflops", "raw", "printed", "extras", "notes",
)  # fmt: skip
"""The columns that follow from the bytes of a page or file."""

ByLine = Mapping[int | None, Sequence[Mapping[str, object]]]
"""The columns of the results that each line of a source states."""


def published(connection: Connection, watch: Watch) -> Iterator[Fault | PassedOver]:
    """Every published result, superseded or not, is what its line of the stored bytes states."""
    rows = connection.execute(questions.PUBLISHED).mappings().all()
    for _, group in groupby(watch(rows), key=itemgetter("source_id")):
        some = list(group)
        first = some[0]
        reason, content = _unreadable(first), b""
        try:
            content = b"" if reason else b"".join(content_of(connection, first["source_id"]))
        except DamagedBytesError:
            reason = "the bytes are damaged"
        if reason:
            yield PassedOver(first["path"], f"{counted(len(some), 'result')}: {reason}")
            continue
        for row in some:
            if row["system"] not in catalog.systems():
                why = f"its system {row['system']!r} is not in the catalogue any more"
                yield PassedOver(f"{row['path']}:{row['source_line']}", why)
            elif problem := _difference(row, content):
                line = row["source_line"]
                where = f"{row['path']}:{line}" if line else row["path"]
                yield Fault(where, f"result {row['key']}: {problem}")


def _difference(row: RowMapping, content: bytes) -> str | None:
    """How the stored columns of a result differ from what the bytes state."""
    kept, line = {name: row[name] for name in COMPARED}, row["source_line"]
    if row["parser"] == PAGE:
        names = ("framework", "release", "container", "system", "precision")
        # What the page does not state.
        context = PageContext(**{name: row[name] for name in (*names, "peak_tflops")})
        read = _by_page(row["path"], content, context).get(line, ())
        if kept not in read:  # the page may not state all of the case: --set did
            case = {name: row[name] for name in ("model", "task", *columns.GIVEN)}
            context = replace(context, case=PartialCase.model_validate(case))
            read = _by_page(row["path"], content, context).get(line, ())
    else:
        read = _by_file(row["parser"], row["path"], content).get(line, ())
    if not read or kept in read:
        return None if read else "nothing is read there"
    return ", ".join(
        f"{name} is {value}, and {read[0][name]} by the bytes"
        for name, value in kept.items()
        if value != read[0][name]
    )


@lru_cache(maxsize=64)
def _by_page(where: str, content: bytes, context: PageContext) -> ByLine:
    found = reader.read(where, reader.decoded_page(content), context)
    lines = grouped(map(measure.of_page, found.results), lambda row: row.source_line)
    return {
        line: [{name: getattr(row, name) for name in COMPARED} for row in rows]
        for line, rows in lines.items()
    }


@lru_cache(maxsize=8)
def _by_file(parser: str, where: str, content: bytes) -> ByLine:
    found: dict[int | None, list[Mapping[str, object]]] = {}
    for log in formats.FORMATS[parser].parse(where, [content]):
        stated = dict(measure.printed_figures(log)) | dict(Method(window=log.window))
        stated["peak_tflops"] = log.peak_tflops if stated["mfu"] else None
        others = {"raw": {}, "printed": {}, "notes": (), "extras": log.extras}
        found.setdefault(log.emitted_line, []).append(stated | others)
    return found
