"""The migrations make the tables the code expects, up and down, with data in them."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import URL, func, inspect, select

from perfdb.db import migrate, session
from perfdb.db.session import reading, store_url
from perfdb.db.tables import metadata, results
from perfdb.errors import InputError, StoreError
from perfdb.ingest import Options, ingest, preview
from tests import factories
from tests.snapshots import snapshot
from tests.trees import writing

TABLES = {table.name for table in metadata.sorted_tables}


def tables_of(url: URL) -> set[str]:
    with reading(url) as connection:
        return set(inspect(connection).get_table_names())


def test_a_migrated_database_is_what_the_code_expects(empty_database: URL) -> None:
    """The tables in perfdb/db/tables.py and those in migrations/ are the same; others differ."""
    migrate.upgrade(empty_database, session.HEAD)

    assert [] == migrate.differences(empty_database)
    assert session.HEAD == migrate.current(empty_database)
    assert TABLES | {"alembic_version"} == tables_of(empty_database)
    with writing(empty_database) as connection:
        connection.exec_driver_sql("ALTER TABLE models ADD COLUMN colour TEXT")
    [difference] = migrate.differences(empty_database)
    assert "colour" in difference


def test_a_new_store_is_made_as_the_migrations_make_it(tmp_path: Path) -> None:
    """It gets all tables at once; each has the very lines that it has from the migrations."""

    def made(revision: str) -> dict[str, list[str]]:
        path = tmp_path / f"{revision}.sqlite"
        migrate.upgrade(store_url(str(path)), revision)
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT name, sql FROM sqlite_schema").fetchall()
            rows += connection.execute("SELECT 'version', version_num FROM alembic_version")
        return {name: sorted(re.split(r",?\s*\n\s*", sql or "")) for name, sql in rows}

    assert made(session.HEAD) == made("head")


def test_up_and_down_and_up_again_with_data(store: URL, tmp_path: Path) -> None:
    """Down to nothing takes everything away; up again makes a store that can be filled."""
    written = factories.write_run(tmp_path, run_id="a"), factories.write_run(tmp_path, run_id="b")
    factories.stored(store, *written, factories.published())
    before = snapshot(store)
    migrate.upgrade(store)  # as every ingest does
    assert before == snapshot(store)

    assert () == migrate.downgrade(store, session.HEAD)
    assert ("everything",) == migrate.downgrade(store, "base")
    assert {"alembic_version"} == tables_of(store)
    assert None is migrate.current(store)

    factories.stored(store, *written, factories.published())
    assert before == snapshot(store)
    assert [] == migrate.differences(store)


def test_deleting_a_run_takes_its_steps_files_and_results_with_it(
    store: URL, tmp_path: Path
) -> None:
    """Foreign keys are enforced on SQLite too, where they are off unless asked for."""
    factories.stored(store, factories.write_run(tmp_path))
    with writing(store) as connection:
        connection.exec_driver_sql("DELETE FROM runs")

    with reading(store) as connection:
        for name in ("steps", "run_files", "results"):
            count = select(func.count()).select_from(metadata.tables[name])
            assert 0 == connection.scalar(count)


def test_no_store_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    """A reader does not make a store."""
    url = store_url(str(tmp_path / "none.sqlite"))

    with pytest.raises(StoreError, match=r"none\.sqlite: no database here; run `perfdb ingest`"):
        migrate.current(url)
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize(
    "name", ["ha#sh.sqlite", "what?mode=memory", "w%41.sqlite", "run#7/perfdb.sqlite", "a b+ü&"]
)
def test_a_reader_opens_the_very_file_that_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By its name, by its address, and from its folder, also with characters that SQLite reads."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path)
    with writing(store_url(name)) as connection:
        connection.exec_driver_sql("CREATE TABLE ingest_log (version_num TEXT)")

    address = store_url(name).render_as_string()
    for given in (name, str(path), address, store_url(str(path)).render_as_string()):
        assert {"ingest_log"} == tables_of(store_url(given))
    monkeypatch.chdir(path.parent)
    assert {"ingest_log"} == tables_of(store_url(path.name))
    made = {one.name.removesuffix("-wal").removesuffix("-shm") for one in tmp_path.iterdir()}
    assert {Path(name).parts[0]} == made


def test_an_address_that_is_not_one_file_is_refused() -> None:
    for given, message in {
        "sqlite:///x.sqlite?mode=ro": "'sqlite:///x.sqlite?mode=ro' has options, and a store",
        "sqlite:///what?.sqlite":
            "has options, and a store takes none; write a ? of the file's",
        "sqlite://x.sqlite": "names no file; write sqlite:///FILE, with three slashes",
        "sqlite:///a%00b.sqlite": "is not UTF-8, or holds a null character",
        "\udcff.sqlite": "is not UTF-8, or holds a null character; name another file",
        ":memory:": "a store in memory is gone at once",
        "mysql://host/x": "unknown database 'mysql'",
    }.items():  # fmt: skip
        with pytest.raises(InputError, match=re.escape(message)):
            store_url(given)


def test_a_database_that_is_not_ours_is_an_error(postgres_empty: URL) -> None:
    """It has tables, and none that says which schema it is. A server's may get ours beside them."""
    with writing(postgres_empty) as connection:
        connection.exec_driver_sql("CREATE TABLE notes (id INTEGER)")

    with (
        reading(postgres_empty) as connection,
        pytest.raises(StoreError, match="not a perfdb database; run `perfdb db upgrade --db here`"),
    ):
        session.require_current(connection, "here")


def test_a_file_of_another_program_is_neither_read_nor_written(tmp_path: Path) -> None:
    """Nor put into another mode; it may keep its own schema as ours is kept."""
    path = tmp_path / "photos.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (id TEXT)")
        connection.execute("CREATE TABLE alembic_version AS SELECT 'acf3f17fdcc7' AS it")
        connection.commit()
    before, url = path.read_bytes(), store_url(str(path))

    message = r"photos\.sqlite: not a perfdb database: .*, such as runs; name another file with"
    for act in (migrate.upgrade, migrate.current, lambda it: ingest([tmp_path], it, Options())):
        with pytest.raises(StoreError, match=message):
            act(url)
    assert before == path.read_bytes()


def test_a_command_quotes_the_store_for_a_shell_and_hides_its_password() -> None:
    for where, text in {
        "sqlite:////my stores/a.sqlite": "--db 'sqlite:////my stores/a.sqlite'",
        "postgres://me:secret@host/perfdb": "--db postgresql+psycopg://me@host/perfdb",
    }.items():
        assert text == session.option(store_url(where).render_as_string())


def test_a_store_of_a_newer_version_is_left_alone(store: URL, tmp_path: Path) -> None:
    """Neither read nor written: an older perfdb would misread it. Nor is there a way down."""
    with pytest.raises(StoreError, match=r"revision identified by 'nope'; known: base, 0001$"):
        migrate.downgrade(store, "nope")
    with writing(store) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    factories.write_run(tmp_path)
    with pytest.raises(StoreError, match=r"9999.*use the perfdb that wrote it, or a newer one"):
        ingest([tmp_path], store, Options())
    with pytest.raises(StoreError, match=f"^{re.escape(store.render_as_string())}: .*9999"):
        preview([tmp_path], store, Options())
    with reading(store) as connection:
        assert 0 == connection.scalar(select(func.count()).select_from(results))
        message = "here: schema 9999 is not 0001, this version's; use the perfdb that wrote it$"
        with pytest.raises(StoreError, match=message):
            session.require_current(connection, "here")
