"""Ingest by many processes at once, and by processes that are killed: the same rows in the end."""

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine, event, func, select
from sqlalchemy.exc import DBAPIError

from perfdb import cli
from perfdb.db import results as store
from perfdb.db.rows import SourceFile
from perfdb.db.session import reading
from perfdb.db.tables import results, run_files, runs, steps
from perfdb.errors import StoreError
from perfdb.ingest import Options, ingest, pipeline
from perfdb.pages.base import PageContext
from tests import factories
from tests.snapshots import snapshot
from tests.trees import read_at, writing

PROCESSES = 4
RUNS = 30
PAGE_ROWS = 80
FILES_OF_A_RUN = 6
NEMO = Options(PageContext(framework="nemo", release="25.04", precision="bf16"))
WORDS = ("ingest", "--framework", "nemo", "--release", "25.04", "--precision", "bf16")
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([__name__])  # imports take longer than what is tested


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of ten cases, one of them damaged, and a page of many rows."""
    folder = tmp_path_factory.mktemp("tree")
    for number in range(RUNS):
        case = factories.case(num_gpus=8 * (1 + number % 10))
        factories.write_run(folder / "runs", run_id=f"run-{number:03}", case=case)
    factories.write_run(folder / "runs", run_id="damaged").record.write_text("{")
    head = "## DGX-H100\n\n| Model | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU |\n"
    rows = [
        f"| LLAMA3-8B | {8 * n} | 128 | 8192 | {10_000 + n} |\n" for n in range(1, PAGE_ROWS + 1)
    ]
    (folder / "page.md").write_text(head + "|---|---|---|---|---|\n" + "".join(rows))
    return folder


@pytest.fixture(scope="module")
def undisturbed(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What one process that nobody disturbs stores."""
    url = URL.create("sqlite", database=str(tmp_path_factory.mktemp("one") / "store.sqlite"))
    report = ingest([tree], url, NEMO)
    assert (RUNS + PAGE_ROWS, 1) == (report.new, len(report.rejected))
    return snapshot(url)


def ingest_together(start: Barrier, address: str, tree: Path) -> None:
    """What each process does: wait for the others, then ingest. Leaves with 1 if it failed."""
    from perfdb.db.session import store_url

    start.wait(60)
    report = ingest([tree], store_url(address), NEMO)
    assert RUNS + PAGE_ROWS == report.new + report.unchanged


@pytest.mark.slow
def test_processes_at_once_store_what_one_stores(
    empty_database: URL, tree: Path, undisturbed: dict[str, list[str]]
) -> None:
    """From a database that does not exist yet: they migrate it and fill it together."""
    start = FORKING.Barrier(PROCESSES)
    address = empty_database.render_as_string(hide_password=False)
    processes = [
        FORKING.Process(target=ingest_together, args=(start, address, tree))
        for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)

    assert [0] * PROCESSES == [process.exitcode for process in processes]
    assert undisturbed == snapshot(empty_database)


def is_waiting(url: URL) -> bool:
    """Whether a PostgreSQL transaction waits for another one's lock."""
    with reading(url) as connection:
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = %s"
        )
        return bool(connection.exec_driver_sql(waiting, (url.database, "Lock")).scalar_one())


def test_two_pages_that_state_the_same_result_at_once_become_two_revisions(
    postgres: URL, tmp_path: Path
) -> None:
    """The second to come waits, is refused revision 1, and starts anew from what it finds."""
    head = "## DGX-H100\n\n| Model | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU |\n"
    for name, tokens in (("early", 100), ("late", 200)):
        row = f"| LLAMA3-8B | 8 | 128 | 8192 | {tokens} |\n"
        (tmp_path / f"{name}.md").write_text(head + "|---|---|---|---|---|\n" + row)
    [early], _ = read_at(tmp_path / "early.md", NEMO)
    source = SourceFile("early.md", b"", "page", 1)

    with ThreadPoolExecutor(1) as pool:
        with writing(postgres) as connection:
            store.put_page(connection, source, [early], factories.STARTED)
            late = pool.submit(ingest, [tmp_path / "late.md"], postgres, NEMO)
            while not is_waiting(postgres):
                assert not late.done()
                time.sleep(0.005)
        report = late.result(60)

    assert (0, 1) == (report.new, report.revised)
    with reading(postgres) as connection:
        columns = (results.c.revision, results.c.superseded, results.c.tokens_per_sec_per_gpu)
        rows = connection.execute(select(*columns).order_by(results.c.revision))
        assert [(1, True, 100.0), (2, False, 200.0)] == [tuple(row) for row in rows]


def stored_runs(url: URL) -> int:
    """How many runs a store holds; 0 where there is no store yet."""
    try:
        with reading(url) as connection:
            return connection.scalar(select(func.count()).select_from(runs)) or 0
    except (DBAPIError, StoreError):
        return 0


def is_being_made(url: URL) -> bool:
    """Whether another process has begun to make the store."""
    if url.get_backend_name() == "sqlite":
        return Path(str(url.database)).exists()
    with reading(url) as connection:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND state = %s"
        found = connection.exec_driver_sql(others, (url.database, "active")).scalar_one()
    return int(found) > 1


def command(*words: str) -> None:
    """The real command, with so few runs in a transaction that there are many to be killed in.

    Each is so long that who waits for one sees it before the next, however busy the machine is.
    """
    pipeline.MOST_SOURCES = 5
    event.listen(Engine, "commit", lambda _: time.sleep(0.1))
    sys.argv = ["perfdb", *words]
    with Path(os.devnull).open("w") as sys.stdout, Path(os.devnull).open("w") as sys.stderr:
        cli.main()


def killed_when(url: URL, tree: Path, is_time: Callable[[], bool]) -> int | None:
    """Start the real command and kill it with SIGKILL when it is time; how it ended."""
    address = url.render_as_string(hide_password=False)
    process = FORKING.Process(target=command, args=(*WORDS, "--db", address, str(tree)))
    process.start()
    while not is_time() and process.is_alive():
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.1))  # anywhere inside the next transaction
    process.kill()
    process.join()
    return process.exitcode


def assert_every_source_is_whole_or_absent(url: URL) -> None:
    """A run has all its steps, files and its result; a page has all its rows or none."""
    with reading(url) as connection:
        count = connection.scalar(select(func.count()).select_from(runs))
        parts = {
            table.name: connection.scalar(
                select(func.count()).select_from(table).where(table.c.run_id.is_not(None))
            )
            for table in (steps, run_files, results)
        }
        published = connection.scalar(
            select(func.count()).select_from(results).where(results.c.run_id.is_(None))
        )
    assert count is not None
    expected = {"steps": 10 * count, "run_files": FILES_OF_A_RUN * count, "results": count}
    assert expected == parts
    assert published in (0, PAGE_ROWS)


@pytest.mark.slow
def test_an_ingest_that_is_killed_leaves_whole_sources_and_the_next_one_completes_it(
    empty_database: URL, tree: Path, undisturbed: dict[str, list[str]]
) -> None:
    """Killed while it makes the store, at the first run, amid the runs, and at the page."""
    url = empty_database
    killed = [killed_when(url, tree, lambda: is_being_made(url))]
    for number in (1, 10):
        killed.append(killed_when(url, tree, lambda number=number: stored_runs(url) >= number))
        assert_every_source_is_whole_or_absent(url)
    assert [-signal.SIGKILL] * 3 == killed
    assert stored_runs(url) < RUNS

    killed_when(url, tree, lambda: stored_runs(url) >= RUNS)
    assert_every_source_is_whole_or_absent(url)

    report = ingest([tree], url, NEMO)
    assert RUNS + PAGE_ROWS == report.new + report.unchanged
    assert undisturbed == snapshot(url)
