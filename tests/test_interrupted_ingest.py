"""Never a partial write: processes that are killed, full disks, stores that cannot be written."""

import os
import random
import resource
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.db import session
from perfdb.db.session import store_url, writer
from perfdb.errors import StoreError
from perfdb.ingest import LogOptions, Options, ingest
from perfdb.verify import verify
from tests import factories
from tests.archives import COMPRESSORS, of_folder, tar, zipped
from tests.logs import SET, TIMES, nemo
from tests.snapshots import snapshot
from tests.trees import PAGE

RUNS = 16
OPTIONS = Options(logs=LogOptions(("framework=nemo", "release=25.04", *SET)))
WORDS = ["--framework", "nemo", "--release", "25.04"]
INGEST = [*WORDS, *(word for said in SET for word in ("--set", said))]
PERFDB = [sys.executable, "-c", "from perfdb.cli import main; main()"]
WAITING = """
import sys
from perfdb.cli import main
import perfdb.cli.ingest
from perfdb.ingest import pipeline
pipeline.MOST_SOURCES = 4
print("ready", flush=True)
sys.stdin.readline()
main()
"""
"""The command, loaded, that begins when it is told to; with few runs in a transaction."""


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


def killed_after(seconds: float, url: URL, folder: Path) -> int:
    """How an ingest ended that was killed so long after it began."""
    address = url.render_as_string(hide_password=False)
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, "ingest", *INGEST, "--db", address, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdin
        assert process.stdout
        assert "ready\n" == process.stdout.readline()
        process.stdin.write("\n")
        process.stdin.flush()
        time.sleep(seconds)
        process.kill()
    return process.returncode


@pytest.mark.slow
def test_an_ingest_killed_anywhere_leaves_whole_sources_and_the_next_completes_it(
    sqlite: URL, mixed: Path, undisturbed: dict[str, list[str]]
) -> None:
    """Whatever is stored proves itself and is of the whole; later moments find more of it."""
    for number in range(6):
        killed_after(random.uniform(0, 0.25 * (number + 1)), sqlite, mixed)
        assert [] == faults(sqlite)
        found = snapshot(sqlite)
        for table in ("runs", "steps", "run_files", "results", "sources"):
            assert not Counter(found[table]) - Counter(undisturbed[table])

    ingest([mixed], sqlite, OPTIONS)
    assert [] == faults(sqlite)
    assert undisturbed == snapshot(sqlite)


def ingested(url: URL, folder: Path, prefix: Sequence[str] = (), most_bytes: int = 0) -> str:
    """What an ingest that fails tells: one line, of a command that leaves with 2."""

    def limit() -> None:
        if most_bytes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    address = url.render_as_string(hide_password=False)
    done = subprocess.run(
        [*prefix, *PERFDB, "ingest", *INGEST, "--db", address, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (2, 1) == (done.returncode, len(errors)), done.stderr
    assert "Traceback" not in done.stderr
    return errors[0]


@pytest.mark.parametrize("more", [0, 40_000, 150_000])
def test_a_file_that_may_not_grow_is_told_of_and_the_next_ingest_completes_the_store(
    sqlite: URL, mixed: Path, undisturbed: dict[str, list[str]], more: int
) -> None:
    """At whatever point there is no more room."""
    size = Path(str(sqlite.database)).stat().st_size
    error = ingested(sqlite, mixed, most_bytes=size + more)
    assert str(sqlite.database) in error

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
    ("options", "told"),
    [
        ("", "database or disk is full; make room and try again"),
        ("remount,ro", "unable to open database file; may files be made in"),
    ],
)
def test_a_full_disk_and_a_store_that_may_only_be_read_are_told_of(
    sqlite: URL, mixed: Path, tmp_path: Path, options: str, told: str
) -> None:
    """With the store, and in words that name what is wrong."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    store = folder / "store.sqlite"
    prefix = mounted(folder, options, f"cp {shlex.quote(str(sqlite.database))} {store}")
    error = ingested(store_url(str(store)), mixed, prefix)
    assert f"sqlite:///{store}: {told}" in error


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
