"""Never a partial write: processes that are killed, full disks, stores that cannot be written."""

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.db import session
from perfdb.db.session import store_url, writer
from perfdb.errors import StoreError
from perfdb.ingest import LogOptions, Options, ingest
from perfdb.pages.base import PageContext
from perfdb.verify import verify
from tests import factories
from tests.archives import COMPRESSORS, of_folder, tar, zipped
from tests.logs import SET, TIMES, nemo
from tests.snapshots import snapshot
from tests.trees import PAGE

RUNS = 16
OPTIONS = Options(PageContext(framework="nemo", release="25.04"), logs=LogOptions(SET))
WORDS = ["--framework", "nemo", "--release", "25.04"]
INGEST = [*WORDS, *(word for said in SET for word in ("--set", said))]
WAITING = """
import os, sys
from perfdb import cli
from perfdb.ingest import pipeline
pipeline.MOST_SOURCES = 4
sys.argv = {words!r}
print(os.getpid(), flush=True)
sys.stdin.readline()
cli.main()
"""
"""The command, that begins when it is told to; with few runs in a transaction."""
LIMITED = """
import resource, sys
from perfdb import cli
resource.setrlimit(resource.RLIMIT_FSIZE, ({most_bytes}, {most_bytes}))
sys.argv = {words!r}
cli.main()
"""
"""The command, that may write no longer file."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("mixed"))


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
def undisturbed(mixed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What an ingest that nobody disturbs stores."""
    url = store_url(str(tmp_path_factory.mktemp("one") / "store.sqlite"))
    ingest([mixed], url, OPTIONS)
    return snapshot(url)


def faults(url: URL) -> list[object]:
    """What `perfdb verify` finds wrong with a store."""
    return [fault for one in verify(url, lambda _, __: lambda: None) for fault in one.faults]


def command(url: URL, folder: Path) -> list[str]:
    address = url.render_as_string(hide_password=False)
    return ["perfdb", "ingest", *INGEST, "--db", address, str(folder)]


def kill_after(seconds: float, python: Path, words: Sequence[str]) -> None:
    """Kill an ingest so long after it began."""
    with subprocess.Popen(
        [python, "-c", WAITING.format(words=words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        ingesting = int(process.stdout.readline())
        process.stdin.write("\n")
        process.stdin.flush()
        time.sleep(seconds)
        with suppress(ProcessLookupError):
            os.kill(ingesting, signal.SIGKILL)


@pytest.mark.slow
def test_an_ingest_killed_anywhere_leaves_whole_sources_and_the_next_completes_it(
    sqlite: URL, mixed: Path, undisturbed: dict[str, list[str]], preloaded: Path
) -> None:
    """Whatever is stored proves itself and is of the whole; later moments find more of it."""
    for number in range(6):
        seconds = random.uniform(0, 0.25 * (number + 1))
        kill_after(seconds, preloaded / "python", command(sqlite, mixed))
        assert [] == faults(sqlite)
        found = snapshot(sqlite)
        for table in ("runs", "steps", "run_files", "results", "sources"):
            assert not Counter(found[table]) - Counter(undisturbed[table])

    ingest([mixed], sqlite, OPTIONS)
    assert [] == faults(sqlite)
    assert undisturbed == snapshot(sqlite)


def told(*command: str | Path) -> str:
    """What an ingest that fails tells: one line, of a command that leaves with 2."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (2, 1) == (done.returncode, len(errors)), done.stderr
    assert "Traceback" not in done.stderr
    return errors[0]


@pytest.mark.parametrize("more", [0, 40_000, 150_000])
def test_a_file_that_may_not_grow_is_told_of_and_the_next_ingest_completes_the_store(
    sqlite: URL, mixed: Path, undisturbed: dict[str, list[str]], more: int, preloaded: Path
) -> None:
    """At whatever point there is no more room."""
    size = Path(str(sqlite.database)).stat().st_size
    limited = LIMITED.format(words=command(sqlite, mixed), most_bytes=size + more)
    assert str(sqlite.database) in told(preloaded / "python", "-c", limited)

    assert [] == faults(sqlite)
    ingest([mixed], sqlite, OPTIONS)
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
    sqlite: URL, mixed: Path, tmp_path: Path, options: str, words: str
) -> None:
    """With the store, and in words that name what is wrong."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    store = folder / "store.sqlite"
    prefix = mounted(folder, options, f"cp {shlex.quote(str(sqlite.database))} {store}")
    error = told(*prefix, sys.executable, "-m", *command(store_url(str(store)), mixed))
    assert f"sqlite:///{store}: {words}" in error


def test_a_store_that_another_program_keeps_locked_is_told_of(
    sqlite: URL, mixed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time that it is waited for."""
    monkeypatch.setattr(session, "BUSY_TIMEOUT_S", 0.05)
    engine = writer(sqlite)
    with (
        engine.connect() as connection,
        connection.begin(),
        pytest.raises(StoreError, match="database is locked; another program keeps it locked"),
    ):
        ingest([mixed], sqlite, OPTIONS)
    engine.dispose()
    assert [] == faults(sqlite)
