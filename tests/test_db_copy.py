"""`perfdb db copy`: every row of a store, in another one, as it was."""

import os
import shutil
import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import JSON, URL, Text, cast, select

from perfdb import aggregation
from perfdb.db import migrate
from perfdb.db.packing import packed
from perfdb.db.session import reading, store_url
from perfdb.db.sources import content_of
from perfdb.db.tables import metadata, models, runs, sources
from perfdb.db.transfer import transfer
from perfdb.errors import StoreError
from perfdb.ingest import Options, ingest, withdraw
from perfdb.queries.scope import Scope
from perfdb.site import build, files
from perfdb.site.files import SiteLayout
from perfdb.verify.figures import Asked
from perfdb.verify.recompute import recompute
from tests import factories, logs
from tests.conftest import run_sql
from tests.shell import Shell
from tests.trees import NEMO, PAGE, counted, rows_of, writing

ODD = "tab\t, newline\n, \\N, \\., quotes '\", Ω, \u2028"
"""What the text form of PostgreSQL's COPY writes otherwise."""

Rows = dict[str, list[tuple[object, ...]]]


def fill(url: URL, folder: Path) -> None:
    """Everything of which a store may be the only memory, and what databases write otherwise.

    A run that is withdrawn, figures over other steps, a log whose release somebody has said, a page
    that was corrected and says when it was published, bytes that are rejected; both kinds of NULL.
    """
    factories.write_run(folder / "runs", run_id="a", error=ODD, command=(ODD, "Ω"))
    factories.write_run(folder / "runs", run_id="b", case=factories.case(num_gpus=16))
    infinite = factories.write_run(folder / "runs", run_id="c", case=factories.case(num_gpus=32))
    factories.write_steps(infinite, factories.steps(loss=float("inf"), step_time_s=1 / 3))
    page = folder / "nemo.md"
    page.write_text(f"---\nperfdb: {{published_on: 2025-10-02}}\n---\n{PAGE}")
    broken(folder / "runs" / "broken")
    ingest([folder / "runs", page], url, NEMO)
    page.write_text(page.read_text().replace("12273", "12274"))
    ingest([page], url, NEMO)
    ingest([logs.write(folder / "logs")], url, logs.GIVEN)
    recompute(url, Scope(), Asked(aggregation.named("last_n(4)")))
    withdraw(["b"], url, "the fans had failed")
    with writing(url) as connection:
        connection.exec_driver_sql("UPDATE runs SET summary = NULL WHERE run_id = 'a'")
        connection.exec_driver_sql("UPDATE runs SET summary = 'null' WHERE run_id = 'c'")


def broken(folder: Path) -> Path:
    """A run directory that is rejected."""
    folder.mkdir()
    (folder / "run.json").write_text("{")
    return folder


def everything(url: URL) -> Rows:
    """Every row of every table, with JSON as it is written and moments without their offset."""
    with reading(url) as connection:
        return {
            table.name: sorted(
                (
                    tuple(_in_utc(cell) for cell in row)
                    for row in connection.execute(
                        select(*(cast(one, Text) if _is_json(one) else one for one in table.c))
                    )
                ),
                key=repr,
            )
            for table in metadata.sorted_tables
        }


def _is_json(column: object) -> bool:
    return isinstance(getattr(column, "type", None), JSON)


def _in_utc(cell: object) -> object:
    offset = cell.utcoffset() if isinstance(cell, datetime) else None
    return cell.replace(tzinfo=None) - offset if isinstance(cell, datetime) and offset else cell


def is_empty(url: URL) -> bool:
    return not any(everything(url).values())


def nobody(_table: str, _count: int) -> Callable[[int], None]:
    """Who watches no row go by."""
    return lambda _: None


def address(url: URL) -> str:
    return url.render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def template(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> URL:
    """A filled SQLite store, to be copied."""
    folder = tmp_path_factory.mktemp("filled")
    shutil.copy(sqlite_template, folder / "store.sqlite")
    url = store_url(str(folder / "store.sqlite"))
    fill(url, folder)
    return url


@pytest.fixture
def filled(template: URL, store: URL) -> URL:
    """A filled store of one's own."""
    if store.get_backend_name() == "sqlite":
        shutil.copy(str(template.database), str(store.database))
    else:
        transfer(template, store, nobody)
    return store


@pytest.fixture
def target(empty_database: URL) -> URL:
    """A migrated, empty store beside `store`: a test is run from and to each database."""
    migrate.upgrade(empty_database)
    return empty_database


@pytest.fixture(scope="module")
def whole(kept_store: URL, tmp_path_factory: pytest.TempPathFactory) -> URL:
    """A store that ingest has filled, on SQLite and on PostgreSQL."""
    fill(kept_store, tmp_path_factory.mktemp("whole"))
    return kept_store


def test_every_row_of_every_table_is_copied_as_it_is(whole: URL, target: URL) -> None:
    """Also what no file says any more: what is withdrawn, recomputed, and said by hand."""
    before = everything(whole)
    assert all(before.values()), "a table without a row proves nothing"

    copied = transfer(whole, target, nobody)

    assert before == everything(target)
    assert sum(map(len, before.values())) == copied
    assert before == everything(whole)
    assert [] == migrate.differences(target)


def test_to_postgresql_and_back_is_the_same_file(
    template: URL, postgres: URL, postgres_server: URL, tmp_path: Path
) -> None:
    """Row by row as SQLite writes them, from a server whose clock is another."""
    run_sql(postgres_server, f"ALTER DATABASE {postgres.database} SET timezone='Asia/Tokyo'")
    back = store_url(str(tmp_path / "back.sqlite"))
    migrate.upgrade(back)

    transfer(template, postgres, nobody)
    transfer(postgres, back, nobody)

    assert inserts(template) == inserts(back)


def inserts(url: URL) -> list[str]:
    with closing(sqlite3.connect(str(url.database))) as connection:
        return [line for line in connection.iterdump() if line.startswith("INSERT")]


def test_both_stores_answer_alike(
    template: URL, postgres: URL, postgres_server: URL, perfdb: Shell, tmp_path: Path
) -> None:
    """Byte for byte: what the commands say, every export, and what the site is made of."""
    run_sql(postgres_server, f"ALTER DATABASE {postgres.database} SET timezone='Asia/Tokyo'")
    transfer(template, postgres, nobody)

    for words in (
        ["verify", "--json"],
        ["audit", "--json"],
        ["trend", "--json"],
        ["compare", "megatron-core 0.16.0", "nemo 25.04", "--json"],
        *(["export", "results", "--format", name] for name in ("csv", "json", "markdown")),
    ):
        ours, its = (perfdb(*words, "--db", address(url)) for url in (template, postgres))
        assert ours == its, words
        assert ours.stdout, words
    assert made(template, tmp_path / "ours") == made(postgres, tmp_path / "its")


def made(url: URL, folder: Path) -> dict[str, bytes]:
    """The pages of the site, what they are made from, and the files of results."""
    folder.mkdir()
    site = build.Site(SiteLayout(folder), files.BuildOptions(address(url), None))
    written = {str(path.relative_to(folder)): path.read_bytes() for path in site.write()
               if path.suffix != ".pickle"}  # fmt: skip
    return written | {name: key.encode() for name, key in site.keys.items()}


EACH_WAY = pytest.mark.parametrize(
    ("store", "empty_database"), [("sqlite", "postgres"), ("postgres", "sqlite")], indirect=True
)


@EACH_WAY
def test_a_copy_goes_on_where_the_store_was(filled: URL, target: URL, tmp_path: Path) -> None:
    """What is added to the copy has the ids that it would have had in the store."""
    transfer(filled, target, nobody)
    factories.write_run(tmp_path, run_id="d", case=factories.case(num_gpus=64))
    factories.write_run(tmp_path, run_id="a", error=ODD, command=(ODD, "Ω"))

    reports = [ingest([tmp_path], url, Options()) for url in (filled, target)]

    assert [(1, 0, 1, 0)] * 2 == [counted(report) for report in reports]
    ids = [rows_of(url, select(runs.c.id, runs.c.run_id)) for url in (filled, target)]
    assert sorted(ids[0]) == sorted(ids[1])
    assert (max(ids[1])[0], "d") == max(ids[1])


def test_the_command_says_what_it_copied(template: URL, perfdb: Shell) -> None:
    """From PERFDB_URL or --db to the address that is given."""
    perfdb("db", "upgrade", "--db", "copy.sqlite")

    code, out, err = perfdb("db", "copy", "copy.sqlite", "--db", address(template))

    count = sum(map(len, everything(template).values()))
    assert (0, f"sqlite:///copy.sqlite: {count} rows copied\n", "") == (code, out, err)
    assert everything(template) == everything(store_url("copy.sqlite"))


def test_a_target_that_cannot_take_the_store_is_refused(
    template: URL, target: URL, tmp_path: Path
) -> None:
    """Also one that has a rejection in its log and nothing else, or another schema, or none."""
    ingest([broken(tmp_path / "broken")], target, NEMO)
    before = everything(target)
    assert ["ingest_log"] == [name for name, found in before.items() if found]
    with pytest.raises(StoreError, match="is not empty, it has ingest_log; copy into a new one"):
        transfer(template, target, nobody)
    assert before == everything(target)

    upgrade = r"schema 0000 is not 0001, this version's; run `perfdb db upgrade --db "
    for there, message in (("'0000'", upgrade), ("NULL", "not a perfdb database")):
        with writing(target) as connection:
            connection.exec_driver_sql("DELETE FROM alembic_version")
            if there != "NULL":
                connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ({there})")
        for one, other in ((template, target), (target, template)):
            with pytest.raises(StoreError, match=message):
                transfer(one, other, nobody)

    none = store_url(str(tmp_path / "none.sqlite"))
    with pytest.raises(StoreError, match=r"none\.sqlite: no database here; make it with `perfdb "):
        transfer(template, none, nobody)
    assert not Path(str(none.database)).exists()


def test_a_store_is_not_copied_into_itself(store: URL, perfdb: Shell, tmp_path: Path) -> None:
    """However its address is written."""
    other = address(store).replace("postgresql+psycopg", "postgres").replace("?", "?user=postgres&")
    if store.get_backend_name() == "sqlite":
        other = "link"
        (tmp_path / other).symlink_to(str(store.database))

    code, out, err = perfdb("db", "copy", other, "--db", address(store))

    assert (2, "") == (code, out)
    assert "this is the store itself; name another to copy it into" in err


@pytest.mark.parametrize("table", ["sources", "steps", "ingest_log"])
def test_who_interrupts_a_copy_leaves_an_empty_store(
    template: URL, target: URL, table: str
) -> None:
    """At the first files, in the midst, and at the last rows: it can be copied afterwards."""

    def interrupting(name: str, _count: int) -> Callable[[int], None]:
        def done(_rows: int) -> None:
            if name == table:
                raise KeyboardInterrupt

        return done

    with pytest.raises(KeyboardInterrupt):
        transfer(template, target, interrupting)
    assert is_empty(target)

    transfer(template, target, nobody)
    assert everything(template) == everything(target)


def test_a_row_that_the_other_database_does_not_take_is_named(sqlite: URL, postgres: URL) -> None:
    """SQLite keeps a NUL in a text; PostgreSQL has none."""
    with writing(sqlite) as connection:
        connection.execute(models.insert().values(name="x", title="a\0b", specification={}))

    with pytest.raises(StoreError, match=r"a row of models cannot be kept there: .*; nothing is"):
        transfer(sqlite, postgres, nobody)
    assert is_empty(postgres)


def test_a_row_that_refers_to_none_is_named(sqlite: URL, target: URL, tmp_path: Path) -> None:
    """As after a row was deleted by hand: SQLite minds only where it is asked to."""
    factories.stored(sqlite, factories.write_run(tmp_path))
    with closing(sqlite3.connect(str(sqlite.database))) as connection, connection:
        connection.execute("DELETE FROM releases")

    with pytest.raises(StoreError, match=r"a row of runs cannot be kept there: .*(?i:foreign key)"):
        transfer(sqlite, target, nobody)
    assert is_empty(target)


def test_a_store_that_is_damaged_is_told_of_and_not_the_other(sqlite: URL, target: URL) -> None:
    """The pages of its rows are blank."""
    with writing(sqlite) as connection:
        connection.execute(source(0, os.urandom(1 << 16)))
    path = Path(str(sqlite.database))
    whole = path.read_bytes()
    path.write_bytes(whole[: -8 * 4096] + bytes(8 * 4096))

    with pytest.raises(StoreError, match=r"store\.sqlite: .*the file is damaged: take an older"):
        transfer(sqlite, target, nobody)
    assert is_empty(target)


def source(number: int, content: bytes) -> object:
    values = {"sha256": "0", "path": f"{number}", "parser": "x", "parser_version": 1}
    known = {"size_bytes": len(content), "ingested_at": factories.STARTED, "content": content}
    return sources.insert().values(values | known)


@EACH_WAY
def test_bytes_are_held_one_file_at_a_time_or_less(store: URL, target: URL) -> None:
    """Of twelve files no more than a few: one as it is read, and as the other takes it."""
    size_bytes, content = 1 << 20, os.urandom(1 << 20)
    with writing(store) as connection:
        for number in range(12):
            connection.execute(source(number, content))

    tracemalloc.start()
    transfer(store, target, nobody)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most_bytes < 8 * size_bytes
    assert 12 == len(everything(target)["sources"])

    if target.get_backend_name() == "sqlite":
        with writing(target) as connection:
            connection.execute(source(12, packed(os.urandom(8 << 20))))
        with reading(target) as connection:
            tracemalloc.start()
            assert 8 << 20 == sum(map(len, content_of(connection, 13)))
            _, most_bytes = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert most_bytes < 4 << 20, "one file is read a chunk at a time"
