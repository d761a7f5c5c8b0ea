"""Checks of measured results: figures by the stored steps, steps by the stored bytes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from sqlalchemy import Connection

from perfdb import aggregation, flops, formats, measure
from perfdb.db.rows import StepRow, step_rows
from perfdb.db.sources import content_of
from perfdb.db.tables import steps as steps_table
from perfdb.errors import DamagedBytesError, RunDirError
from perfdb.ingest.logs import number_in_log
from perfdb.ingest.reads import LOG_PARSER_VERSION, RUN_DIRECTORY, RUN_PARSER_VERSION
from perfdb.jsonfile import parse_json
from perfdb.messages import note_text
from perfdb.queries import checks, results
from perfdb.queries import runs as run_queries
from perfdb.record import Outcome
from perfdb.run_record import RunRecord
from perfdb.rundir import RunDir, parse_steps, parse_worker
from perfdb.verify.base import Fault, Finding, PassedOver, Watch, other_version
from perfdb.verify.figures import RECOMPUTED, Asked, differences, recomputed
from perfdb.verify.stored import STEPS_AT_ONCE, StoredRun, stored, with_steps

FIGURES = tuple(
    name
    for name in RECOMPUTED
    if name not in ("outcome", "withheld", "window", "emitted", "flops_convention", "notes")
)
"""The columns that are empty in a result whose figures are withheld."""

STEP = tuple(steps_table.c[name] for name in StepRow._fields)


@dataclass(frozen=True)
class _File:
    """A file of a run, as it is stored."""

    name: str
    source_id: int
    path: str
    parser: str
    parser_version: int
    is_record: bool


@dataclass(frozen=True)
class _Reread:
    """What this version reads from the stored bytes of a run."""

    key: str
    outcome: Outcome | None
    """None: it cannot be judged from the bytes alone, as it depends on the window."""
    steps: Sequence[StepRow]


def figures(connection: Connection, watch: Watch) -> Iterator[Finding]:
    """Every measured current result follows from its stored steps."""
    rows = connection.execute(results.with_runs()).mappings().all()
    for run, steps in watch(with_steps(connection, rows), len(rows)):
        where = f"run {run.run_id}"
        result = run.result
        for name, change in differences(result, recomputed(run, steps, Asked())).items():
            message = f"{name} is {change.before}, and {change.after} by its steps"
            yield Fault(where, message + _remedy(run))
        present = [name for name in FIGURES if getattr(result, name) is not None]
        if result.withheld is not None and present:
            yield Fault(
                where, f"withheld ({note_text(result.withheld)}), and yet has {', '.join(present)}"
            )
        if result.withheld is None and result.step_time_s is None:
            yield Fault(where, "has no figures and does not say why")


def _remedy(run: StoredRun) -> str:
    made_by, now = run.result.formula_version, flops.FORMULA_VERSION
    older = f" (made by formulas {made_by}, these are {now})" if made_by != now else ""
    return f"{older}; `perfdb recompute` would change it"


def steps(connection: Connection, watch: Watch) -> Iterator[Finding]:
    """The steps of every run are those that are read from the stored bytes of its files."""
    rows = connection.execute(results.with_runs()).mappings().all()
    for row in watch(rows, len(rows)):
        run = stored(row)
        found = _reread(connection, run)
        if isinstance(found, str):
            yield PassedOver(f"run {run.run_id}", found)
        else:
            outcome = Outcome(row["run_outcome"])
            messages = _compared(found, run, outcome, _stored_steps(connection, run))
            yield from (Fault(f"run {run.run_id}", message) for message in messages)


def _compared(
    found: _Reread, run: StoredRun, outcome: Outcome, kept: Iterable[StepRow]
) -> Iterator[str]:
    if found.key != run.result.key:
        yield "its files are of another case or release than its result"
    if found.outcome not in (None, outcome):
        yield f"ended {outcome}, and {found.outcome} by its files"
    both = merge(
        ((step.step, "stored", step) for step in kept),
        ((step.step, "read", step) for step in found.steps),
        key=itemgetter(0),
    )
    for number, pair in groupby(both, key=itemgetter(0)):
        steps = {whose: step for _, whose, step in pair}
        if steps.get("stored") != steps.get("read"):
            yield f"step {number}: {_apart(steps.get('stored'), steps.get('read'))}"


def _apart(kept: StepRow | None, read: StepRow | None) -> str:
    """How a step differs between the store and its run's files."""
    if kept is None or read is None:
        return "is not in the store" if kept is None else "is not in its files"
    return ", ".join(
        f"{name} is {before}, and {now} by its files"
        for name, before, now in zip(StepRow._fields, kept, read, strict=True)
        if before != now
    )


def _stored_steps(connection: Connection, run: StoredRun) -> Iterator[StepRow]:
    question = run_queries.steps_of_row(run.run_row_id).with_only_columns(*STEP)
    for row in connection.execute(question, execution_options={"yield_per": STEPS_AT_ONCE}):
        yield StepRow(*row)


def _reread(connection: Connection, run: StoredRun) -> _Reread | str:
    """What this version reads from the run's files, or a text that says why it cannot."""
    rows = connection.execute(checks.files_of(run.run_row_id)).mappings()
    files = [_File(**row) for row in rows]
    record = next((file for file in files if file.is_record), None)
    if record is None:
        return "the file that says what it is is not kept"
    of_directory = record.parser == RUN_DIRECTORY
    newest = RUN_PARSER_VERSION if of_directory else LOG_PARSER_VERSION
    if reason := other_version(record.parser_version, newest):
        return reason
    try:
        if of_directory:
            return _of_directory(connection, files)
        return _of_log(connection, record, run)
    except (RunDirError, DamagedBytesError) as error:
        return f"its files cannot be read: {error}"


def _of_directory(connection: Connection, files: Sequence[_File]) -> _Reread:
    run = RunDir(Path(files[0].path).parent)
    source_ids = {file.name: file.source_id for file in files}

    def content(name: str) -> bytes:
        return b"".join(content_of(connection, source_ids[name])) if name in source_ids else b""

    record = parse_json(str(run.record), content(run.record.name), RunRecord)
    lines = content(run.steps.name).decode(errors="replace").splitlines()
    worker = parse_worker(run, content)
    whole = measure.of_run(record, parse_steps(str(run.steps), lines), worker, "")
    return _Reread(whole.result.key, whole.run.outcome, step_rows(whole.steps))


def _of_log(connection: Connection, record: _File, run: StoredRun) -> _Reread | str:
    member = formats.FORMATS.get(record.parser)
    if member is None:
        return f"read by {record.parser!r}, which this version does not know"

    logs = member.parse(record.path, content_of(connection, record.source_id))
    number = number_in_log(run.run_id)
    if not 1 <= number <= len(logs):
        return _Reread(run.result.key, None, ())
    log, result = logs[number - 1], run.result
    window = aggregation.named(result.window) if result.window else measure.log_window(log, None)
    of = measure.LogRun(result.case, result.release, run.run_id, "", run.averages)
    return _Reread(result.key, None, step_rows(measure.of_log(log, of, window).steps))
