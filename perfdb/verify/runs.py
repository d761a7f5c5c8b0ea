"""Checks of measured results: figures by the stored steps, steps by the stored bytes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from sqlalchemy import Connection

from perfdb import flops, formats, logged, normalize, windows
from perfdb.db.rows import StepRow
from perfdb.db.tables import steps as steps_table
from perfdb.errors import DamagedBytesError, RunDirError
from perfdb.ingest import opened
from perfdb.ingest.logs import LOG_PARSER_VERSION
from perfdb.queries import measured, verify
from perfdb.recompute.figures import DERIVED, Asked, Stored, anew, differences
from perfdb.recompute.read import AT_ONCE, stored, with_steps
from perfdb.record import SCHEMA_VERSION, Outcome, RunRecord
from perfdb.rundir import RunDir, parse_json, parse_steps
from perfdb.verify.base import Fault, Finding, PassedOver, Watch, content

FIGURES = tuple(
    name
    for name in DERIVED
    if name not in ("outcome", "withheld", "window", "emitted", "flops_convention", "notes")
)
"""What a withheld result has none of."""


STEP = tuple(steps_table.c[name] for name in StepRow._fields)

_LOG_ID = re.compile(r"log-[0-9a-f]{16}(?:-(\d+))?")
"""The id of a run that was read from a log, with its number where the log holds several."""


@dataclass(frozen=True)
class _File:
    """A file of a run, as the store has it."""

    name: str
    source_id: int
    path: str
    parser: str
    parser_version: int
    is_record: bool


@dataclass(frozen=True)
class _Reread:
    """What the bytes of a run say now."""

    key: str
    outcome: Outcome | None
    """None: it depends on the window."""
    steps: Sequence[StepRow]


def figures(connection: Connection, watch: Watch) -> Iterator[Finding]:
    """Every measured result in force follows from its stored steps."""
    rows = connection.execute(measured.in_force()).mappings().all()
    for one, steps in watch(with_steps(connection, rows), len(rows)):
        where = f"run {one.run_id}"
        result = one.result
        for name, change in differences(result, anew(one, steps, Asked())).items():
            message = f"{name} is {change.before}, and {change.after} by its steps"
            yield Fault(where, message + _remedy(one))
        unsaid = [name for name in FIGURES if getattr(result, name) is not None]
        if result.withheld is not None and unsaid:
            yield Fault(where, f"withheld ({result.withheld}), and yet has {', '.join(unsaid)}")
        if result.withheld is None and result.step_time_s is None:
            yield Fault(where, "has no figures and does not say why")


def _remedy(one: Stored) -> str:
    made_by, now = one.result.formula_version, flops.FORMULA_VERSION
    older = f" (made by formulas {made_by}, these are {now})" if made_by != now else ""
    return f"{older}; `perfdb recompute` would change it"


def steps(connection: Connection, watch: Watch) -> Iterator[Finding]:
    """The steps of every run are those that the stored bytes of its files say."""
    rows = connection.execute(measured.in_force()).mappings().all()
    for row in watch(rows, len(rows)):
        one = stored(row)
        found = _reread(connection, one)
        if isinstance(found, str):
            yield PassedOver(f"run {one.run_id}", found)
        else:
            outcome = Outcome(row["run_outcome"])
            said = _compared(found, one, outcome, _stored_steps(connection, one))
            yield from (Fault(f"run {one.run_id}", message) for message in said)


def _compared(
    found: _Reread, one: Stored, outcome: Outcome, kept: Iterable[StepRow]
) -> Iterator[str]:
    if found.key != one.result.key:
        yield "its files are of another case or release than its result"
    if found.outcome not in (None, outcome):
        yield f"ended {outcome}, and {found.outcome} by its files"
    both = merge(
        ((step.step, "kept", step) for step in kept),
        ((step.step, "said", step) for step in found.steps),
        key=itemgetter(0),
    )
    for number, pair in groupby(both, key=itemgetter(0)):
        steps = {whose: step for _, whose, step in pair}
        if steps.get("kept") != steps.get("said"):
            yield f"step {number}: {_apart(steps.get('kept'), steps.get('said'))}"


def _apart(kept: StepRow | None, said: StepRow | None) -> str:
    """What of a step differs."""
    if kept is None or said is None:
        return "is not in the store" if kept is None else "is not in its files"
    return ", ".join(
        f"{name} is {one}, and {other} by its files"
        for name, one, other in zip(StepRow._fields, kept, said, strict=True)
        if one != other
    )


def _stored_steps(connection: Connection, one: Stored) -> Iterator[StepRow]:
    question = measured.steps_of(one.run_row_id).with_only_columns(*STEP)
    for row in connection.execute(question, execution_options={"yield_per": AT_ONCE}):
        yield StepRow(*row)


def _reread(connection: Connection, one: Stored) -> _Reread | str:
    """What the run's files say; a text where this version cannot tell."""
    rows = connection.execute(verify.files_of(one.run_row_id)).mappings()
    files = [_File(**row) for row in rows]
    record = next((file for file in files if file.is_record), None)
    if record is None:
        return "the file that says what it is is not kept"
    of_directory = record.parser == opened.PARSER
    newest = SCHEMA_VERSION if of_directory else LOG_PARSER_VERSION
    if record.parser_version != newest:
        return f"read by version {record.parser_version} of the parser; this is {newest}"
    try:
        if of_directory:
            return _of_directory(connection, files)
        return _of_log(connection, record, one)
    except (RunDirError, DamagedBytesError) as error:
        return f"its files cannot be read: {error}"


def _of_directory(connection: Connection, files: Sequence[_File]) -> _Reread:
    run = RunDir(Path(files[0].path).parent)
    there = {file.name: file.source_id for file in files}
    told, timed = (
        b"".join(content(connection, there[path.name])) if path.name in there else b""
        for path in (run.record, run.steps)
    )
    record = parse_json(str(run.record), told, RunRecord)
    read = parse_steps(str(run.steps), timed.decode(errors="replace").splitlines())
    whole = normalize.measured(record, read, None, "")
    return _Reread(whole.result.key, whole.run.outcome, whole.steps)


def _of_log(connection: Connection, record: _File, one: Stored) -> _Reread | str:
    member = formats.FORMATS.get(record.parser)
    if member is None:
        return f"read by {record.parser!r}, which this version does not know"
    named = _LOG_ID.fullmatch(one.run_id)
    logs = member.parse(record.path, content(connection, record.source_id))
    number = int(named[1] or 1) if named else 0
    if not 1 <= number <= len(logs):
        return _Reread(one.result.key, None, ())
    log, result = logs[number - 1], one.result
    window = windows.named(result.window) if result.window else logged.window_of(log, None)
    of = logged.LogRun(result.case, result.release, one.run_id, "", one.averages)
    return _Reread(result.key, None, logged.measured(log, of, window).steps)
