"""What the processes measure that `benchmarks.ingest_runs` starts: an ingest, its parts, the floor.

`python -m benchmarks.ingest_parts WHAT STORE PATH` prints seconds and memory as JSON.
"""

import gc
import json
import os
import pickle
import resource
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from io import FileIO
from itertools import islice
from pathlib import Path

from sqlalchemy import URL

from perfdb.db.session import store_url
from perfdb.db.tables import metadata

AT_ONCE = 500

Tables = dict[str, list[tuple[object, ...]]]


@dataclass(frozen=True)
class Took:
    """Seconds of the clock, and of this process on its processor, system calls included."""

    clock_s: float = 0.0
    cpu_s: float = 0.0

    def __add__(self, other: "Took") -> "Took":
        return Took(self.clock_s + other.clock_s, self.cpu_s + other.cpu_s)

    def over(self, other: "Took") -> str:
        """How many times the other it is, by either."""
        return f"{self.clock_s / other.clock_s:6.2f} {self.cpu_s / other.cpu_s:6.2f} ×"

    def __str__(self) -> str:
        return f"{self.clock_s:7.2f} {self.cpu_s:7.2f} s"


@contextmanager
def timed(into: dict[str, Took], part: str) -> Iterator[None]:
    """Add what is done inside to a part."""
    before = Took(time.perf_counter(), cpu_s())
    yield
    taken = Took(time.perf_counter() - before.clock_s, cpu_s() - before.cpu_s)
    into[part] = into.get(part, Took()) + taken


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ingested(url: URL, runs: Path) -> tuple[dict[str, Took], dict[str, float]]:
    """An ingest from the command to the report."""
    from perfdb.ingest import Options, ingest

    took: dict[str, Took] = {}
    with timed(took, "all"):
        report = ingest([runs], url, Options())
    assert not report.rejected
    return took, {"new": report.new, "unchanged": report.unchanged}


def peak_mib() -> float:
    """The most memory that this process has had; getrusage would count its parent's too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def in_parts(url: URL, runs: Path) -> tuple[dict[str, Took], dict[str, float]]:
    """Each part of an ingest: the same calls, timed one by one."""
    from perfdb.db.session import writer
    from perfdb.ingest.find import find
    from perfdb.ingest.pipeline import audited
    from perfdb.ingest.reads import RunRead
    from perfdb.ingest.runs import RunFound, find_run, parse_run
    from perfdb.ingest.store import put

    took: dict[str, Took] = {}
    engine = writer(url)
    with timed(took, "find"):
        sources = iter(find([runs]))
    run_ids: list[str] = []
    while some := list(islice(sources, AT_ONCE)):
        with timed(took, "open and hash"):
            found = [find_run(source) for source in some]
            hashed = [one for one in found if isinstance(one, RunFound) and one.files.content_hash]
        with timed(took, "parse"):
            read = [one for one in map(parse_run, hashed) if isinstance(one, RunRead)]
        with timed(took, "store"):
            assert len(list(put(engine, read))) == len(some)
        run_ids += [one.run.run.run_id for one in read]
    with timed(took, "audit"):
        audited(engine, run_ids, ())
    engine.dispose()
    return took, {}


def json_of(_: URL, runs: Path) -> tuple[dict[str, Took], dict[str, float]]:
    """Open every file, and parse the JSON of those that hold any; nothing more."""
    took: dict[str, Took] = {}
    with timed(took, "all"):
        for run in os.scandir(runs):
            for file in os.scandir(run.path):
                with FileIO(file.path) as opened:
                    content = opened.readall()
                if file.name.endswith(".json"):
                    json.loads(content)
                elif file.name.endswith(".jsonl"):
                    for line in content.splitlines():
                        json.loads(line)
    return took, {}


def bare(url: URL, rows: Path) -> tuple[dict[str, Took], dict[str, float]]:
    """Write rows that are there already into an empty store, in one transaction."""
    tables: Tables = pickle.loads(rows.read_bytes())
    if url.get_backend_name() == "sqlite":
        return bare_sqlite(str(url.database), tables), {}
    return bare_postgresql(url, tables), {}


def columns_of(name: str) -> Sequence[str]:
    return [f'"{column.name}"' for column in metadata.tables[name].c]


def bare_sqlite(path: str, tables: Tables) -> dict[str, Took]:
    took: dict[str, Took] = {}
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}")
    with timed(took, "all"):
        connection.execute("BEGIN IMMEDIATE")
        for name, rows in tables.items():
            columns = columns_of(name)
            places = ", ".join("?" * len(columns))
            statement = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({places})"
            connection.executemany(statement, rows)
        connection.execute("COMMIT")
    connection.close()
    return took


def bare_postgresql(url: URL, tables: Tables) -> dict[str, Took]:
    import psycopg

    took: dict[str, Took] = {}

    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with (
        psycopg.connect(address) as connection,
        connection.cursor() as cursor,
        timed(took, "all"),
    ):
        for name, rows in tables.items():
            with cursor.copy(f"COPY {name} ({', '.join(columns_of(name))}) FROM STDIN") as copying:
                for row in rows:
                    copying.write_row(row)
        connection.commit()
    return took


MEASURED = {"bare": bare, "ingest": ingested, "json": json_of, "parts": in_parts}


def measure(what: str, address: str, given: str) -> None:
    """Print what is measured."""
    gc.set_threshold(4_000_000)  # as perfdb.cli.main does
    took, counted = MEASURED[what](store_url(address), Path(given))
    seconds = {part: astuple(one) for part, one in took.items()}
    print(json.dumps({"took": seconds, "mib": peak_mib(), "counted": counted}))


if __name__ == "__main__":
    measure(*sys.argv[1:4])
