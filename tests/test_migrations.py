"""The migrations make the tables the code expects, up and down, with data in them."""

import re
import sqlite3
import zlib
from contextlib import closing
from datetime import UTC
from pathlib import Path

import pytest
import zstandard
from sqlalchemy import URL, func, inspect, select

from perfdb import windows
from perfdb.db import migrate, schema
from perfdb.db.session import reading, store_url
from perfdb.db.tables import metadata, results, runs, sources
from perfdb.errors import InputError, StoreError
from perfdb.ingest import Options, ingest, preview, withdraw
from perfdb.queries.only import Scope
from perfdb.recompute import Asked, recompute
from perfdb.record import Outcome
from perfdb.verify import verify
from tests import factories
from tests.logs import GIVEN, megatron, write
from tests.snapshots import snapshot
from tests.trees import NEMO, PAGE, rows_of, writing

TABLES = {table.name for table in metadata.sorted_tables}


def tables_of(url: URL) -> set[str]:
    with reading(url) as connection:
        return set(inspect(connection).get_table_names())


def test_a_migrated_database_is_what_the_code_expects(empty_database: URL) -> None:
    """The tables in perfdb/db/tables.py and those in migrations/ are the same."""
    migrate.upgrade(empty_database)

    assert [] == migrate.differences(empty_database)
    assert schema.HEAD == migrate.current(empty_database)
    assert TABLES | {"alembic_version"} == tables_of(empty_database)


def test_a_column_that_no_migration_makes_is_a_difference(store: URL) -> None:
    """The comparison would show a table that was changed in the code alone."""
    with writing(store) as connection:
        connection.exec_driver_sql("ALTER TABLE models ADD COLUMN colour TEXT")

    [difference] = migrate.differences(store)
    assert "colour" in difference


def test_a_table_that_lacks_what_others_refer_to_is_a_difference(sqlite: URL) -> None:
    """SQLite says nothing until it is asked for the column, whose name lies in the file as text."""
    path = Path(str(sqlite.database))
    store = path.read_bytes()
    table = store.index(b"CREATE TABLE models")
    path.write_bytes(store[:table] + store[table:].replace(b"id INTEGER", b"ie INTEGER", 1)
                     .replace(b"PRIMARY KEY (id)", b"PRIMARY KEY (ie)", 1))  # fmt: skip

    [difference] = migrate.differences(sqlite)
    assert "table 'models' has no column named 'id'" in difference


def test_up_and_down_and_up_again_with_data(store: URL, tmp_path: Path) -> None:
    """Down to nothing takes everything away; up again makes a store that can be filled."""
    written = factories.write_run(tmp_path, run_id="a"), factories.write_run(tmp_path, run_id="b")
    factories.stored(store, *written, factories.published())
    before = snapshot(store)

    migrate.downgrade(store, "base")
    assert {"alembic_version"} == tables_of(store)
    assert None is migrate.current(store)

    factories.stored(store, *written, factories.published())
    assert before == snapshot(store)
    assert [] == migrate.differences(store)


def test_runs_keep_everything_when_their_recipe_becomes_nullable(
    store: URL, tmp_path: Path
) -> None:
    """Steps, files and results refer to the table that SQLite makes anew."""
    factories.stored(store, factories.write_run(tmp_path), factories.published())
    before = snapshot(store)

    migrate.downgrade(store, "0001")
    migrate.upgrade(store)

    assert before == snapshot(store)
    assert [] == migrate.differences(store)


def test_a_run_without_recipe_and_start_is_kept_on_the_way_down_and_up(
    store: URL, tmp_path: Path
) -> None:
    """The older schema has no NULL there: it shows an empty recipe and 1970."""
    factories.stored(store, factories.write_run(tmp_path))
    with writing(store) as connection:
        connection.exec_driver_sql("UPDATE runs SET recipe = NULL, started_at = NULL")
    before = snapshot(store)

    migrate.downgrade(store, "0001")
    with reading(store) as connection:
        [(recipe, started)] = connection.execute(select(runs.c.recipe, runs.c.started_at)).all()
        assert ("", 1970) == (
            recipe,
            started.astimezone(UTC).year if started.tzinfo else started.year,
        )
        assert 10 == connection.scalar(select(func.count()).select_from(metadata.tables["steps"]))

    migrate.upgrade(store)
    assert before == snapshot(store)


def test_a_run_that_was_withdrawn_stays_so_on_the_way_down_and_up(
    store: URL, tmp_path: Path
) -> None:
    """The older schema has no room for the reason, which stands in the log; others count again."""
    for name in ("a", "b"):
        factories.stored(store, factories.write_run(tmp_path, run_id=name))
    withdraw(["b"], store, "the fans had failed")

    migrate.downgrade(store, "0003")
    migrate.upgrade(store)

    said = rows_of(store, select(runs.c.run_id, runs.c.withdrawn).order_by(runs.c.run_id))
    assert [("a", None), ("b", "see the ingest log")] == said
    assert [] == migrate.differences(store)
    logged = rows_of(store, select(metadata.tables["ingest_log"].c.reason))
    assert ("withdrawn: the fans had failed",) in logged


def test_upgrading_an_up_to_date_store_keeps_its_data(store: URL, tmp_path: Path) -> None:
    """Every ingest does it."""
    factories.stored(store, factories.write_run(tmp_path))
    before = snapshot(store)

    migrate.upgrade(store)
    assert before == snapshot(store)


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
    ("name", "other"),
    [
        ("ha#sh.sqlite", "ha"),
        ("what?.sqlite", "what"),
        ("what?mode=memory", "what"),
        ("w%41.sqlite", "wA.sqlite"),
        ("run#7/perfdb.sqlite", "run"),
        ("100%41/perfdb.sqlite", "100A"),
        ("a b+ü&.sqlite", "a"),
    ],
)
def test_who_reads_opens_the_very_file_that_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, other: str
) -> None:
    """By its name, by its address, and from its folder; what SQLite takes for its own too."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for url, table in ((store_url(name), "ingest_log"), (store_url(other), "alembic_version")):
        with writing(url) as connection:
            connection.exec_driver_sql(f"CREATE TABLE {table} (version_num TEXT)")

    address = store_url(name).render_as_string()
    for given in (name, str(path), address, store_url(str(path)).render_as_string()):
        assert {"ingest_log"} == tables_of(store_url(given))
    monkeypatch.chdir(path.parent)
    assert {"ingest_log"} == tables_of(store_url(path.name))
    made = {one.name.removesuffix("-wal").removesuffix("-shm") for one in tmp_path.iterdir()}
    assert {Path(name).parts[0], other} == made


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            "sqlite:///x.sqlite?mode=ro",
            "'sqlite:///x.sqlite?mode=ro' has options, and a store take",
        ),
        ("sqlite:///what?.sqlite", "has options, and a store takes none; write a ? of the file's"),
        ("sqlite://folder/x.sqlite", "names no file; write sqlite:///FILE, with three slashes"),
        ("sqlite://x.sqlite", "names no file; write sqlite:///FILE, with three slashes"),
        ("sqlite:///a%00b.sqlite", "is not UTF-8, or holds a null character"),
        ("\udcff.sqlite", "is not UTF-8, or holds a null character; name another file"),
        (":memory:", "a store in memory is gone at once"),
        ("mysql://host/x", "unknown database 'mysql'"),
    ],
)
def test_an_address_that_is_not_one_file_is_refused(given: str, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        store_url(given)


def test_a_database_that_is_not_ours_is_an_error(postgres_empty: URL) -> None:
    """It has tables, and none that says which schema it is. A server's may get ours beside them."""
    with writing(postgres_empty) as connection:
        connection.exec_driver_sql("CREATE TABLE notes (id INTEGER)")

    with (
        reading(postgres_empty) as connection,
        pytest.raises(StoreError, match="not a perfdb database; run `perfdb db upgrade --db here`"),
    ):
        schema.require_current(connection, "here")


@pytest.mark.parametrize("versioned", [False, True])
def test_a_file_of_another_program_is_neither_read_nor_written(
    tmp_path: Path, versioned: bool
) -> None:
    """Nor put into another mode; it may keep its own schema as ours is kept."""
    path = tmp_path / "photos.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (id TEXT)")
        if versioned:
            connection.execute("CREATE TABLE alembic_version AS SELECT 'acf3f17fdcc7' AS it")
        connection.commit()
    before, url = path.read_bytes(), store_url(str(path))

    told = r"photos\.sqlite: not a perfdb database: .*, such as runs; name another file with --db"
    for act in (migrate.upgrade, migrate.current, lambda it: ingest([tmp_path], it, Options())):
        with pytest.raises(StoreError, match=told):
            act(url)
    assert before == path.read_bytes()


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("sqlite:///perfdb.sqlite", "--db sqlite:///perfdb.sqlite"),
        ("sqlite:////my stores/a.sqlite", "--db 'sqlite:////my stores/a.sqlite'"),
        ("postgresql://me:secret@host/perfdb", "--db postgresql+psycopg://me@host/perfdb"),
        ("postgres://me:secret@host/perfdb", "--db postgresql+psycopg://me@host/perfdb"),
    ],
)
def test_a_command_names_a_store_as_a_shell_takes_it_and_tells_no_password(
    where: str, text: str
) -> None:
    assert text == schema.option(store_url(where).render_as_string())


def test_a_store_of_a_newer_version_is_left_alone(store: URL, tmp_path: Path) -> None:
    """Neither read nor written: an older perfdb would misread it."""
    with writing(store) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    factories.write_run(tmp_path)
    with pytest.raises(StoreError, match=r"9999.*use the perfdb that wrote it, or a newer one"):
        ingest([tmp_path], store, Options())
    with pytest.raises(StoreError, match=f"^{re.escape(store.render_as_string())}: .*9999"):
        preview([tmp_path], store, Options())
    with reading(store) as connection:
        assert 0 == connection.scalar(select(func.count()).select_from(results))
        told = "here: schema 9999 is not 0010, this version's; use the perfdb that wrote it$"
        with pytest.raises(StoreError, match=told):
            schema.require_current(connection, "here")


def test_a_revision_that_does_not_exist_is_an_error(store: URL) -> None:
    """`perfdb db downgrade nope`"""
    known = "known: base, 0001, 0002, 0003, 0004, 0005, 0006, 0007, 0008, 0009, 0010"
    with pytest.raises(StoreError, match=f"Can't locate revision identified by 'nope'; {known}$"):
        migrate.downgrade(store, "nope")


def test_bytes_are_unpacked_as_they_were_on_the_way_down_and_up(store: URL, tmp_path: Path) -> None:
    """The older schema has them as zlib packs them; what is damaged stays as it is."""
    run = factories.write_run(tmp_path)
    factories.stored(store, run)
    of_steps = select(sources.c.content).where(sources.c.path == str(run.steps))
    with writing(store) as connection:
        console, record = sources.c.path == str(run.console), sources.c.path == str(run.record)
        connection.execute(sources.update().where(console).values(content=b"damaged"))
        cut = zstandard.compress(b"x" * 1000)[:-4]
        connection.execute(sources.update().where(record).values(content=cut))

    migrate.downgrade(store, "0004")
    [(packed,)] = rows_of(store, of_steps)
    assert isinstance(packed, bytes)
    assert run.steps.read_bytes() == zlib.decompress(packed)

    migrate.upgrade(store)
    [(packed,)] = rows_of(store, of_steps)
    assert isinstance(packed, bytes)
    assert run.steps.read_bytes() == zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    assert [(b"damaged",)] == rows_of(store, select(sources.c.content).where(console))
    assert [(cut,)] == rows_of(store, select(sources.c.content).where(record))
    assert [] == migrate.differences(store)


def test_what_pages_say_of_their_originals_is_read_anew_on_the_way_up(
    store: URL, tmp_path: Path
) -> None:
    """The older schema has no room for it; the bytes that say it, and the results, are kept."""
    page = tmp_path / "page.md"
    page.write_text(f"---\nperfdb: {{published_on: 2025-10-02}}\n---\n{PAGE}")
    ingest([page], store, NEMO)
    before = snapshot(store)
    assert 1 == len(before["originals"])

    migrate.downgrade(store, "0005")
    assert "originals" not in tables_of(store)
    migrate.upgrade(store)
    assert before | {"originals": []} == snapshot(store)
    assert [] == migrate.differences(store)

    ingest([page], store, NEMO)
    assert before == snapshot(store)


def test_what_an_old_schema_drops_is_named_and_read_again(store: URL, tmp_path: Path) -> None:
    """A page's notes, a log's rates and its skipped step; verify says meanwhile what to do."""
    (tmp_path / "page.md").write_text(f"{PAGE}\nNote: all of it on mock data.\n")
    given = ((tmp_path / "page.md", NEMO), (write(tmp_path / "log", megatron(15)), GIVEN))
    for path, options in given:
        ingest([path], store, options)
    said = select(
        results.c.key, results.c.notes, results.c.tokens_per_sec, results.c.emitted
    ).where(~results.c.superseded)
    before = sorted(rows_of(store, said), key=str)
    assert any(notes for _, notes, *_ in before)
    assert any(emitted for *_, emitted in before)

    dropped = migrate.downgrade(store, "0002")
    migrate.upgrade(store)

    assert "notes and footnotes, printed totals, rates that programs print" in dropped
    assert before != sorted(rows_of(store, said), key=str)
    found = verify(store, lambda *_: lambda: None)
    assert {"figures"} == {one.check for one in found if one.faults}
    [fault] = [it.message for one in found for it in one.faults]
    assert "notes is ()" in fault
    assert "`perfdb recompute` would change it" in fault
    passed_over = [it for one in found for it in one.passed_over]
    assert ["`perfdb ingest` of the file reads it anew"] * 2 == [
        it.message.partition("; ")[2] for it in passed_over
    ]
    assert len(before) == sum(ingest([path], store, options).revised for path, options in given)
    assert before == sorted(rows_of(store, said), key=str)
    assert () == migrate.downgrade(store, schema.HEAD)


def test_results_have_the_ga_and_dp_of_their_case_on_the_way_up(store: URL) -> None:
    """Those that were said last are a case's; so the way down keeps one of each case."""
    rows = [
        factories.published(release=factories.release(f"25.0{number}"), case=case_)
        for number, case_ in enumerate(
            factories.case(gradient_accumulation=ga, data_parallel=4) for ga in (88, 32)
        )
    ]
    factories.stored(store, *rows)
    said = select(results.c.gradient_accumulation, results.c.data_parallel).order_by(results.c.id)
    assert [(88, 4), (32, 4)] == rows_of(store, said)

    dropped = migrate.downgrade(store, "0009")
    assert ("what each result says of GA and DP, but for one of each case",) == dropped
    migrate.upgrade(store)
    assert [(32, 4), (32, 4)] == rows_of(store, said)


def test_the_peak_memory_of_results_is_made_of_the_steps_on_the_way_up(
    store: URL, tmp_path: Path
) -> None:
    """Of the last revision alone, and of no run whose figures are withheld; unknown stays NULL."""
    peaks_gb = {"high": 58, "low": 50, "unknown": None, "zero": 0, "full": 79}
    for name, peak_gb in peaks_gb.items():
        outcome = Outcome.OUT_OF_MEMORY if name == "full" else Outcome.FINISHED
        run = factories.write_run(tmp_path, run_id=name, outcome=outcome)
        peak = peak_gb and peak_gb * 10**9
        warmup, *others = factories.steps(peak_memory_bytes=peak)
        higher = warmup.model_copy(update={"peak_memory_bytes": 74 * 10**9})
        factories.write_steps(run, [higher if name == "high" else warmup, *others])
        factories.stored(store, run)
    factories.stored(store, factories.published())
    recompute(store, Scope(), Asked(windows.last()))
    withdraw(["low"], store, "the fans had failed")

    migrate.downgrade(store, "0006")
    with reading(store) as connection:
        columns = {column["name"] for column in inspect(connection).get_columns("results")}
    assert "peak_memory_bytes" not in columns
    migrate.upgrade(store)

    question = select(runs.c.run_id, results.c.revision, results.c.peak_memory_bytes)
    assert {
        *((name, 1, None) for name in (*peaks_gb, None)),
        ("high", 2, 74 * 10**9),
        ("low", 2, 50 * 10**9),
        ("unknown", 2, None),
        ("zero", 2, None),
    } == set(rows_of(store, question.select_from(results.outerjoin(runs))))
    assert [] == migrate.differences(store)
    faults = [it.message for one in verify(store, lambda *_: lambda: None) for it in one.faults]
    assert [] == [said for said in faults if "peak_memory_bytes" in said]
