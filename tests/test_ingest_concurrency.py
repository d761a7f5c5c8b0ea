"""Never a partial write: many processes at once, processes that are killed, and full disks."""

import multiprocessing
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine, event, func, select
from sqlalchemy.exc import DBAPIError

from perfdb import cli
from perfdb.db import results as store
from perfdb.db import session
from perfdb.db.rows import SourceFile
from perfdb.db.session import reading, store_url, writer
from perfdb.db.tables import results, runs
from perfdb.errors import StoreError
from perfdb.ingest import LogOptions, Options, ingest, pipeline
from perfdb.pages.base import PageContext
from tests import factories
from tests.archives import COMPRESSORS, of_folder, tar, zipped
from tests.logs import SET, TIMES, nemo
from tests.snapshots import snapshot
from tests.trees import PAGE, faults, read_at, writing

PROCESSES = 4
RUNS = 16
NEMO = Options(PageContext(framework="nemo", release="25.04"), logs=LogOptions(SET))
WORDS = ("ingest", "--framework", "nemo", "--release", "25.04", *(f"--set={it}" for it in SET))
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([__name__])  # imports take longer than what is tested
LIMITED = """
import resource, sys
from perfdb import cli
resource.setrlimit(resource.RLIMIT_FSIZE, ({most_bytes}, {most_bytes}))
sys.argv = {words!r}
cli.main()
"""
"""The command, that may write no longer file."""

Snapshot = dict[str, list[str]]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("tree"))


def written(folder: Path) -> Path:
    """Runs, pages, logs, compressed logs, archives of all of them, and what is damaged."""
    for number in range(RUNS):
        case = factories.case(num_gpus=8 * (1 + number % 7))
        factories.write_run(folder / "runs", run_id=f"run-{number:02}", case=case)
    factories.write_run(folder / "runs", run_id="damaged").record.write_text("{")
    logs = [nemo((20.0 + number, *TIMES[1:])).encode() for number in range(9)]
    (folder / "logs").mkdir()
    for number, log in enumerate(logs[:6]):
        (folder / "logs" / f"{number}.log").write_bytes(log[: len(log) - 40 * number])
    (folder / "logs" / "6.log.gz").write_bytes(COMPRESSORS[".gz"](logs[6][:-500]))
    (folder / "page.md").write_text(PAGE)
    factories.write_run(folder / "packed", run_id="packed")
    inside = of_folder(folder / "packed")
    (folder / "a.tar.gz").write_bytes(COMPRESSORS[".gz"](tar([("x.log", logs[7][:-600]), *inside])))
    (folder / "b.zip").write_bytes(zipped([("y.log", logs[8][:-700]), ("../z.log", log)]))
    return folder


@pytest.fixture(scope="module")
def undisturbed(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """What one process that nobody disturbs stores."""
    url = store_url(str(tmp_path_factory.mktemp("one") / "store.sqlite"))
    ingest([tree], url, NEMO)
    return snapshot(url)


def ingest_together(start: Barrier, address: str, tree: Path) -> None:
    """What each process does: wait for the others, then ingest. Leaves with 1 if it failed."""
    start.wait(60)
    ingest([tree], store_url(address), NEMO)


@pytest.mark.slow
def test_processes_at_once_store_what_one_stores(
    empty_database: URL, tree: Path, undisturbed: Snapshot
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


def command_line(url: URL, tree: Path) -> list[str]:
    """The command line of an ingest."""
    return ["perfdb", *WORDS, "--db", url.render_as_string(hide_password=False), str(tree)]


def command(*given: str) -> None:
    """The real command, with so few runs in a transaction that there are many to be killed in.

    Each is so long that who waits for one sees it before the next, however busy the machine is.
    """
    pipeline.MOST_SOURCES = 5
    event.listen(Engine, "commit", lambda _: time.sleep(0.1))
    sys.argv = [*given]
    with Path(os.devnull).open("w") as sys.stdout, Path(os.devnull).open("w") as sys.stderr:
        cli.main()


def killed_when(url: URL, tree: Path, is_time: Callable[[], bool]) -> int | None:
    """Start the real command and kill it with SIGKILL when it is time; how it ended."""
    process = FORKING.Process(target=command, args=command_line(url, tree))
    process.start()
    while not is_time() and process.is_alive():
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.1))  # anywhere inside the next transaction
    process.kill()
    process.join()
    return process.exitcode


def check_part(url: URL, whole: Snapshot) -> None:
    """What is stored proves itself, and each of its sources is whole."""
    assert [] == faults(url)
    found = snapshot(url)
    for table in ("runs", "steps", "run_files", "results", "sources"):
        assert not Counter(found[table]) - Counter(whole[table])


@pytest.mark.slow
def test_an_ingest_that_is_killed_leaves_whole_sources_and_the_next_one_completes_it(
    empty_database: URL, tree: Path, undisturbed: Snapshot
) -> None:
    """Killed while it makes the store, at the first run, amid the runs, and behind them."""
    url, every = empty_database, len(undisturbed["runs"])
    killed = [killed_when(url, tree, lambda: is_being_made(url))]
    for number in (1, 10):
        killed.append(killed_when(url, tree, lambda number=number: stored_runs(url) >= number))
        check_part(url, undisturbed)
    assert [-signal.SIGKILL] * 3 == killed
    assert stored_runs(url) < every
    killed_when(url, tree, lambda: stored_runs(url) >= every)
    check_part(url, undisturbed)

    ingest([tree], url, NEMO)
    assert [] == faults(url)
    assert undisturbed == snapshot(url)


def told(*command: str | Path) -> str:
    """What an ingest that fails tells: one line, of a command that leaves with 2."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (2, 1) == (done.returncode, len(errors)), done.stderr
    assert "Traceback" not in done.stderr
    return errors[0]


@pytest.mark.parametrize("more", [0, 40_000, 150_000])
def test_a_file_that_may_not_grow_is_told_of_and_the_next_ingest_completes_the_store(
    sqlite: URL, tree: Path, undisturbed: Snapshot, more: int, preloaded: Path
) -> None:
    """At whatever point there is no more room."""
    size = Path(str(sqlite.database)).stat().st_size
    limited = LIMITED.format(words=command_line(sqlite, tree), most_bytes=size + more)
    assert str(sqlite.database) in told(preloaded / "python", "-c", limited)

    assert [] == faults(sqlite)
    ingest([tree], sqlite, NEMO)
    assert undisturbed == snapshot(sqlite)


def mounted(folder: Path, options: str, *before: str) -> list[str]:
    """What runs a command beside a small file system that no other process sees."""
    mount = f"mount -t tmpfs -o size=300k tmpfs {shlex.quote(str(folder))}"
    lines = [mount, *before, *([f"mount -o {options} {folder}"] if options else []), 'exec "$@"']
    prefix = ["unshare", "--mount", "sh", "-ec", "\n".join(lines), "sh"]
    if (
        os.geteuid()
        or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("a file system cannot be mounted here")
    return prefix


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "database or disk is full; make room and try again"),
        ("remount,ro", "unable to open database file; may files be made in"),
    ],
)
def test_a_full_disk_and_a_store_that_may_only_be_read_are_told_of(
    sqlite: URL, tree: Path, tmp_path: Path, options: str, words: str
) -> None:
    """With the store, and in words that name what is wrong."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    store = folder / "store.sqlite"
    prefix = mounted(folder, options, f"cp {shlex.quote(str(sqlite.database))} {store}")
    error = told(*prefix, sys.executable, "-m", *command_line(store_url(str(store)), tree))
    assert f"sqlite:///{store}: {words}" in error


def test_a_store_that_another_program_keeps_locked_is_told_of(
    sqlite: URL, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time that it is waited for."""
    monkeypatch.setattr(session, "BUSY_TIMEOUT_S", 0.05)
    engine = writer(sqlite)
    with (
        engine.connect() as connection,
        connection.begin(),
        pytest.raises(StoreError, match="database is locked; another program keeps it locked"),
    ):
        ingest([tree], sqlite, NEMO)
    engine.dispose()
    assert [] == faults(sqlite)
