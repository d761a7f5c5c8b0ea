"""The checks of the store: values, tables with one another, and figures with stored steps.

Each looks at items one by one, and yields what is wrong.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, RowMapping

from perfdb import catalog, flops
from perfdb.audit.check import AUDIT_VERSION, audit
from perfdb.audit.check import stored as audited
from perfdb.db import findings as kept_findings
from perfdb.db import keys as kept_keys
from perfdb.db import tables
from perfdb.db.sources import Action, content_of, log_hash
from perfdb.db.tables import cases, ingest_log, models, releases, results, runs, systems
from perfdb.errors import DamagedBytesError, InputError
from perfdb.groups import grouped
from perfdb.queries import checks as questions
from perfdb.queries import results as result_queries
from perfdb.record import Origin, Outcome, Release, Result, RunKind, Severity
from perfdb.units import counted
from perfdb.verify import figures as recomputing
from perfdb.verify.figures import STEPS_AT_ONCE, Asked, with_steps


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

_INVALID: Final = "SELECT conname FROM pg_constraint WHERE NOT convalidated ORDER BY conname"

_TYPES: Final[Mapping[type[Any], str]] = {
    sa.Double: "real", sa.Integer: "integer", sa.Boolean: "integer", sa.LargeBinary: "blob",
}  # fmt: skip
"""What SQLite calls the values of a type of column; those of all others are text."""

_ENUMS: Final[Mapping[sa.Column[Any], Callable[[str], object]]] = {
    results.c.outcome: Outcome,
    results.c.origin: Origin,
    runs.c.outcome: Outcome,
    runs.c.kind: RunKind,
    tables.findings.c.severity: Severity,
    ingest_log.c.action: Action,
}


def database(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """The database's own check finds nothing wrong; no constraint waits to be checked."""
    if connection.dialect.name == "sqlite":
        answers = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        yield from (Fault("database", one) for one in watch(answers) if one != "ok")
    else:
        for names in watch([connection.exec_driver_sql(_INVALID).scalars().all()]):
            yield from (Fault(name, "the constraint is not validated") for name in names)


def values(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """Every value is of its column's type; what is kept as text can be read."""
    every = [column for table in tables.metadata.sorted_tables for column in table.c]
    for of_table in grouped(watch(every), lambda it: it.table).values():
        if connection.dialect.name == "sqlite":
            yield from _of_other_types(connection, of_table)
        if readable := [it for it in of_table if _reader(it)]:
            yield from _unreadable(connection, readable)


def _of_other_types(connection: Connection, columns: Sequence[sa.Column[Any]]) -> Iterator[Fault]:
    kinds = tuple(
        next((kind for of, kind in _TYPES.items() if isinstance(column.type, of)), "text")
        for column in columns
    )
    question = questions.of_other_types(tuple(columns), kinds)
    for row in connection.execute(question, execution_options={"yield_per": STEPS_AT_ONCE}):
        for column, kind, found in zip(columns, kinds, row[-len(columns) :], strict=True):
            if found not in (kind, "null"):
                yield _fault(column, row, f"holds a value of the type {found}")


def _unreadable(connection: Connection, columns: Sequence[sa.Column[Any]]) -> Iterator[Fault]:
    readers = [(column, read) for column in columns if (read := _reader(column))]
    question = questions.texts(tuple(columns))
    for row in connection.execute(question, execution_options={"yield_per": STEPS_AT_ONCE}):
        for (column, read), value in zip(readers, row[-len(columns) :], strict=True):
            try:
                if value is not None:
                    read(value)
            except (ValueError, KeyError, TypeError) as error:
                yield _fault(column, row, f"{str(value)[:60]!r} cannot be read: {error}")


def _reader(column: sa.Column[Any]) -> Callable[[str], object] | None:
    """What reads the text of a column. Raises ValueError, KeyError or TypeError."""
    readers: tuple[tuple[type[Any], Callable[[str], object]], ...] = (
        (tables.NoteType, lambda text: tables.of_json(json.loads(text))),
        (tables.NotesType, lambda text: [tables.of_json(one) for one in json.loads(text)]),
        (sa.JSON, _document), (tables.Moment, datetime.fromisoformat),
        (sa.Date, date.fromisoformat),
    )  # fmt: skip
    of_type = next((read for kind, read in readers if isinstance(column.type, kind)), None)
    return _ENUMS.get(column, of_type)


def _document(text: str) -> object:
    document = json.loads(text)
    if not isinstance(document, dict | list | None):
        raise TypeError("neither an object nor a list")
    return document


def _fault(column: sa.Column[Any], row: Sequence[object], message: str) -> Fault:
    """A fault in a row, which begins with its key."""
    key = ", ".join(map(str, row[: len(column.table.primary_key)]))
    return Fault(f"{column.table.name} {key}", f"{column.name} {message}")


def sources(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """The bytes of every source decompress, and have its size and SHA-256."""
    for row in watch(connection.execute(questions.SOURCES).all()):
        number, path, size_bytes, sha256 = row.id, row.path, row.size_bytes, row.sha256
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
    """Revisions count from 1 without a gap; at most one is current, and that is the newest.

    Exactly one result of a run is current, or none if the run was withdrawn.
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
    for key, revision, superseded in connection.execute(questions.WRONGLY_ENDED):
        state = "superseded and has no" if superseded else "in force and has"
        yield Fault(f"result {key}", f"revision {revision} is {state} superseded_at")
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
    ("measured result without a run, or published one with a run", results.c.key, runs.c.id,
     results.c.run_id),
)  # fmt: skip
"""What is wrong, the name of a row, its id, and the column of another table that refers to it."""


def orphans(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """Runs have results, measured results a run; each case, release, system and model is used."""
    for message, name, identity, user in watch(_ORPHANS):
        question = (
            questions.WITHOUT_RUN
            if name is results.c.key
            else questions.unused(name, identity, user)
        )
        yield from (Fault(one, message) for one in connection.scalars(question))


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
        try:
            after = recomputing.recomputed(run, its_steps, Asked())
        except InputError as error:
            yield Fault(where, f"cannot be recomputed: {error}")
            continue
        for name, (kept, now_is) in recomputing.differences(result, after).items():
            message = f"{name} is {kept}, and {now_is} by its steps{older}"
            yield Fault(where, f"{message}; `perfdb recompute` would change it")


def keys(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """The keys of cases and releases follow from their columns; systems and models are today's."""
    for row in watch(connection.execute(questions.CASES).mappings().all()):
        yield from _unlike(
            f"case {row['id']}", row, lambda it: kept_keys.case_row(kept_keys.case_of(it))
        )
    for row in watch(connection.execute(questions.RELEASES).mappings().all()):
        yield from _unlike(f"release {row['id']}", row, _release_row)
    for table, number, row in watch(kept_keys.outdated(connection)):
        message = f"the {table.name[:-1]} {row['name']} is not as the catalog has it"
        yield Fault(f"{table.name} {number}", f"{message}; the next `perfdb ingest` renews it")


def _release_row(row: RowMapping) -> kept_keys.Row:
    return kept_keys.release_row(Release.model_validate({n: row[n] for n in Release.model_fields}))


def _unlike(
    where: str, row: RowMapping, canonical: Callable[[RowMapping], kept_keys.Row]
) -> Iterator[Fault]:
    """The columns of a row that differ from what its other columns give."""
    try:
        expected = canonical(row)
    except ValueError as error:
        yield Fault(where, f"cannot be: {error!s}")
        return
    for name, value in expected.items():
        if row[name] != value:
            yield Fault(where, f"{name} is {row[name]}, and {value} by its other columns")


def findings(connection: Connection, watch: Watch) -> Iterator[Fault | PassedOver]:
    """The findings of every release are those that the audit makes of its results."""
    rows, others = audited(connection)
    by_release = grouped(rows, lambda row: row.release_id)
    for row in watch(connection.execute(questions.RELEASES).all()):
        if reason := _unaudited(row.audited_version, by_release.get(row.id, ())):
            yield PassedOver(f"release {row.id}", reason)
            continue
        found = audit(by_release.get(row.id, ()), others)
        extra, missing = kept_findings.differences(connection, row.id, found)
        yield from (
            Fault(f"finding {id_}", "the audit does not make this finding") for id_ in extra
        )
        for result_id, rule, *_ in missing:
            yield Fault(
                f"result {result_id}", f"the finding of the rule {rule} is not in the store"
            )


def _unaudited(version: int | None, rows: Sequence[Result]) -> str | None:
    """Why the audit may find something else in the results of a release now."""
    if version is None:
        return "its results have changed since they were audited"
    if version != AUDIT_VERSION:
        return f"audited by version {version} of the audit; this is {AUDIT_VERSION}"
    for row in rows:
        for name, title, known in (
            (row.system, row.system_title, catalog.systems()),
            (row.model, row.model_title, catalog.models()),
        ):
            if name not in known and title != name:
                return f"{name!r} is not in the catalogue any more"
    return None


def log(connection: Connection, watch: Watch) -> Iterator[Fault]:
    """Entries of the ingest log are as they were written, and every result has one."""
    for row in watch(connection.execute(questions.LOG).mappings().all()):
        if row["content_hash"] != log_hash(row):
            yield Fault(f"ingest_log {row['id']}", "its columns have another content hash")
    for _, key, revision in watch(connection.execute(questions.UNLOGGED).all()):
        message = f"the log has no entry of when revision {revision} was stored or superseded"
        yield Fault(f"result {key}", message)
    for run_id, reason in watch(connection.execute(questions.WITHDRAWN_UNLOGGED).all()):
        yield Fault(f"run {run_id}", f"withdrawn: {reason}, which the log does not have")
