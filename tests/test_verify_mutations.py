"""Whatever is changed in a store behind perfdb's back, `perfdb verify` sees it and names it."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa
from sqlalchemy import URL, Column, Connection, Engine, create_engine

from perfdb import aggregation
from perfdb.db.packing import packed
from perfdb.db.session import store_url
from perfdb.db.tables import Moment, NotesType, NoteType, metadata
from perfdb.ingest import LogOptions, Options, ingest
from perfdb.pages.base import PageContext
from perfdb.queries.scope import Scope
from perfdb.verify import checked
from perfdb.verify.figures import Asked
from perfdb.verify.recompute import recompute
from tests import factories, logs, seeds
from tests.conftest import database

pytestmark = pytest.mark.slow

DATA = Path(__file__).parent / "data" / "formats"
GOLDEN = DATA / "megatron_golden" / "good"

FREE: Final = {
    "sources.ingested_at": "orders the states of a page; nothing else follows from it",
    "runs.stamp": "of the file system, to know files unread; wrong, they are read again",
    **dict.fromkeys(
        (f"{name}.id" for name in ("results", "findings", "ingest_log")),
        "surrogate: nothing, or only findings, refer to it",
    ),
    "sources.id": "surrogate: it is seen, by the rows that refer to it",
}
"""Columns that may change, and why."""

PASSED_OVER: Final = {
    "sources.parser_version": "what another version has read, this one cannot read again",
    "sources.parser": "likewise, of a parser that this version does not know",
    "releases.audited_version": "what another version has audited is audited again by `ingest`",
}
"""Columns whose change is said, though it is no fault."""

KINDS: Final = {
    "sources": "parser", "runs": "id", "run_files": "run_id", "steps": "run_id",
    "results": "source_id, superseded",
}  # fmt: skip
"""By what the rows of a table are told apart: one of each is changed. Else any row is."""

OTHER_NOTE: Final = json.dumps({"code": "reported", "params": {"text": "x"}})


def fill(url: URL, folder: Path) -> None:
    """Rows of a seed page, a run whose figures are recomputed, golden values and logs."""
    page = folder / "automodel.md"
    seed = seeds.ROOT / "data" / "published" / "automodel.md"
    page.write_text(seed.read_text().partition("| Kimi K2")[0])
    run = factories.write_run(folder / "runs", run_id="a")
    ingest([page, run.path], url, Options())
    recompute(url, Scope(), Asked(aggregation.last_n(4)))
    golden = next(iter(sorted(GOLDEN.glob("*.json"))))
    stated = LogOptions((*logs.SET, "global_batch_size=128", "framework=megatron-lm"))
    given = Options(PageContext(release="0.15.0"), logs=stated)
    shutil.copy(golden, folder / golden.name)
    ingest([folder / golden.name, logs.write(folder / "logs")], url, given)
    ingest([logs.write(folder / "summed", logs.SUMMARY, "benchmark.json")], url, logs.GIVEN)


@pytest.fixture(scope="module")
def store(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine of a filled SQLite store, on which no foreign key is watched."""
    path = tmp_path_factory.mktemp("filled") / "store.sqlite"
    shutil.copy(sqlite_template, path)
    fill(store_url(str(path)), path.parent)
    engine = create_engine(f"sqlite:///{path}")
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def postgres_filled(
    postgres_server: URL, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """The same on PostgreSQL."""
    with contextmanager(database)(postgres_server, postgres_template) as url:
        fill(url, tmp_path_factory.mktemp("filled"))
        engine = create_engine(url)
        yield engine
        engine.dispose()


def other_document(value: str | None) -> str:
    """Another document, be it an object, a list, or a list of notes."""
    document = json.loads(value or "null") or {}
    more = json.loads(OTHER_NOTE)
    return json.dumps([*document, more] if isinstance(document, list) else document | {"x": 1})


OTHER: Final[tuple[tuple[type[Any], Callable[[Any], object]], ...]] = (
    (sa.LargeBinary, lambda _: packed(b"other")),
    (NoteType, lambda value: None if value else OTHER_NOTE),
    (NotesType, other_document),
    (sa.JSON, other_document),
    (Moment, lambda _: "2020-01-02 03:04:05.000006"),
    (sa.Date, lambda _: "2020-01-02"),
    (sa.Boolean, lambda value: 1 - value if value is not None else 1),
    (sa.Double, lambda value: 7.5 if value is None else value * 1.5 + 1),
    (sa.Integer, lambda value: 7 if value is None else value + 1),
    (sa.Text, lambda value: f"{value or ''}x"),
)
"""Another value of each type of column, as the driver takes it."""


def other(column: Column[Any], value: Any, connection: Connection) -> Any:
    """Another value for a column: of a reference, another row that there is."""
    for key in column.foreign_keys:
        ids = connection.exec_driver_sql(f"SELECT id FROM {key.column.table.name} ORDER BY id")
        return next((it for it in ids.scalars() if it != value), (value or 0) + 999)
    if column.primary_key and isinstance(column.type, sa.Integer):
        return value + 10_000
    return next(made for kind, made in OTHER if isinstance(column.type, kind))(value)


NAMES: Final = {
    "results": "SELECT runs.run_id, results.key, 'results {id}' FROM results LEFT JOIN runs "
    "ON runs.id = results.run_id WHERE results.id = {id}",
    "runs": "SELECT run_id FROM runs WHERE id = {id}",
    "sources": "SELECT 'source {id}', path, (SELECT key FROM results WHERE source_id = {id}) "
    "FROM sources WHERE id = {id}",
    "steps": "SELECT run_id FROM runs WHERE id = {run_id}",
    "run_files": "SELECT run_id FROM runs WHERE id = {run_id}",
}
"""What names a row in a fault: any of these."""


def rows(connection: Connection, table: sa.Table) -> list[dict[str, Any]]:
    """The raw keys of one row of each kind of a table."""
    by = f"GROUP BY {KINDS[table.name]}" if table.name in KINDS else "LIMIT 1"
    keys = ", ".join(one.name for one in table.primary_key)
    found = connection.exec_driver_sql(f"SELECT {keys} FROM {table.name} {by}")
    return [dict(row) for row in found.mappings()]


def where(key: dict[str, Any]) -> str:
    """The condition for a row."""
    return " AND ".join(f"{name} = {value!r}" for name, value in key.items())


def changes(connection: Connection, column: Column[Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The statements that change a column in one row of each kind of its table."""
    table = column.table.name
    for key in rows(connection, metadata.tables[table]):
        question = f"SELECT {column.name} FROM {table} WHERE {where(key)}"
        value = other(column, connection.exec_driver_sql(question).scalar(), connection)
        yield f"UPDATE {table} SET {column.name} = ? WHERE {where(key)}", (value,)


def after(
    connection: Connection, *made: tuple[str, tuple[Any, ...]]
) -> tuple[list[str], list[str]]:
    """The faults after changes, which are undone, and what is passed over."""
    try:
        for change, values in made:
            connection.exec_driver_sql(change, values)
        found = checked(connection, lambda *_: lambda: None)
        faults = [f"{it.where}: {it.message}" for one in found for it in one.faults]
        return faults, [f"{it.where}: {it.message}" for one in found for it in one.passed_over]
    except sa.exc.IntegrityError as error:
        return [f"the database refuses it: {error}"], []
    finally:
        connection.rollback()


def unnamed(connection: Connection, table: sa.Table, found: list[str]) -> list[str]:
    """The rows of each kind that what is said does not name; of other tables, if nothing is."""
    if table.name not in NAMES or any("refuses" in one for one in found):
        return [] if found else [table.name]
    text = "\n".join(found)
    asked = (NAMES[table.name].format(**key) for key in rows(connection, table))
    names = [connection.exec_driver_sql(one).one() for one in asked]
    return [str(of) for of in names if not any(name and name in text for name in of)]


def is_figure(column: Column[Any]) -> bool:
    """Whether it holds a number that nothing is found by, and that hides no other's change.

    By `formula_version`, a figure is known that other formulas made, and not computed again.
    """
    is_number = isinstance(column.type, (sa.Double, sa.Integer, sa.Boolean))
    is_key = column.foreign_keys or column.name == "formula_version"
    return bool(is_number and column.nullable and not is_key)


def test_every_change_of_a_column_is_seen_and_its_row_named(store: Engine) -> None:
    """In each kind of row. A change that is seen as damage names the row itself.

    The figures of a table at once, where a fault names each column; all others one by one.
    """
    with store.connect() as connection:
        assert ([], []) == after(connection)
        unseen, count = {}, 0
        for table in metadata.sorted_tables:
            made = {one: [*changes(connection, one)] for one in table.c if str(one) not in FREE}
            count += sum(map(len, made.values()))
            together, _ = after(
                connection, *(it for of in made if is_figure(of) for it in made[of])
            )
            for column, its in made.items():
                own = [it for it in together if f" {column.name} is " in it]
                if own and not unnamed(connection, table, own):
                    continue
                faults, passed = after(connection, *its)
                found = faults + passed if str(column) in PASSED_OVER else faults
                missing = unnamed(connection, table, found)
                if missing and not (found and str(column) in PASSED_OVER):
                    unseen[str(column)] = missing, found[:3]
        assert count > 400
        assert {} == unseen


def test_every_deletion_is_seen(store: Engine) -> None:
    with store.connect() as connection:
        unseen = []
        for table in metadata.sorted_tables:
            for key in rows(connection, table):
                faults, _ = after(connection, (f"DELETE FROM {table.name} WHERE {where(key)}", ()))
                if not faults:
                    unseen.append((table.name, key))
        assert [] == unseen


def test_changes_are_seen_on_postgresql(postgres_filled: Engine) -> None:
    with postgres_filled.connect() as connection:
        assert ([], []) == after(connection)
        for change in (
            "UPDATE cases SET precision = 'fp8_cs' WHERE id = 1",
            "UPDATE releases SET version = '99' WHERE id = 1",
            "UPDATE runs SET command = '[\"x\"]' WHERE id = 1",
            "UPDATE results SET peak_memory_bytes = 7 WHERE id = 1",
            "UPDATE results SET notes = '[1]' WHERE id = 1",
            "UPDATE results SET outcome = 'x' WHERE id = 1",
            "UPDATE ingest_log SET at = at + interval '1 day' WHERE id = 1",
            "DELETE FROM findings",
        ):
            assert [] != after(connection, (change, ()))[0], change
