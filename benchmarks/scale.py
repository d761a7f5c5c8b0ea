"""Whether perfdb stays fast and small as a store grows, in SQLite and PostgreSQL.

`python -m benchmarks.scale [--results 100000] [--steps 10000000]`: run directories are made and
ingested in tenths, then each command and each query of the dashboard is measured in a process of
its own: seconds of the clock and of its processor (PostgreSQL's server is not in the latter), and
the most memory that it had. The limits: the last tenth is ingested at 0.8 × the rate of the first
or faster (on SQLite by the processor, on PostgreSQL by the clock), and the memory of a command.
The site is that of the last release. A run of 2,000 results takes a few minutes.
"""

import argparse
import compileall
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from sqlalchemy import URL, create_engine

import perfdb as package
from benchmarks import workload
from benchmarks.ingest_parts import peak_mib
from benchmarks.ingest_runs import emptied, stores

RESULTS, STEPS, PARTS = 100_000, 10_000_000, 10
LIMIT_RATE: Final = 0.8
"""Of the rate of the first tenth, that of the last."""
PARTIAL_MIB: Final = 400
"""What a command may have that looks at a part of the store or streams it."""
PER_RESULT_KIB: Final = 14
"""What a command may have more for each result, if it looks at every result."""
EVERYTHING: Final = ("trend", "export results", "dashboard")
"""What looks at every result."""


@dataclass(frozen=True)
class Took:
    """What a process took: seconds of the clock and of its processor, and its most memory."""

    clock_s: float
    cpu_s: float
    mib: float
    output: str

    def __str__(self) -> str:
        return f"{self.clock_s:9.2f} {self.cpu_s:9.2f} s {self.mib:7.0f} MiB"


def took(command: Sequence[str], url: URL) -> Took:
    """Run a command on a store; it may exit with 1, as a gate does."""
    store = {"PERFDB_URL": url.render_as_string(hide_password=False)}
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        ours = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | store)
        _, status, used = os.wait4(ours.pid, 0)
        ours.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        output.seek(0)
        text = output.read().decode()
    assert ours.returncode in (0, 1), text[-2000:]
    return Took(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text)


def perfdb(*words: str) -> list[str]:
    """The command line of a command of perfdb."""
    return [sys.executable, "-c", "from perfdb.cli import main; main()", *words]


def ingested(url: URL, folder: Path, count: int, num_steps: int) -> Iterator[tuple[int, Took]]:
    """Ingest the workload in tenths: how many results each has, and what it took."""
    results = workload.results(count, num_steps)
    for part in range(PARTS):
        some = tuple(islice(results, count * (part + 1) // PARTS - count * part // PARTS))
        runs = folder / f"part-{part}"
        workload.write_runs(runs, some)
        yield len(some), took(perfdb("ingest", str(runs)), url)
        shutil.rmtree(runs)


def size_mib(url: URL) -> float:
    """The size of a database on disk."""
    if url.get_backend_name() == "sqlite":
        return Path(url.database or "").stat().st_size / 2**20
    engine = create_engine(url)
    with engine.connect() as connection:
        question = "SELECT pg_database_size(current_database())"
        found = connection.exec_driver_sql(question).scalar_one()
    engine.dispose()
    return float(found) / 2**20


def commands(folder: Path, count: int) -> Mapping[str, list[str]]:
    """What is measured, by its name."""
    before, last = workload.last_releases(count)
    page, dataset = str(folder / "results.parquet"), str(folder / "steps")
    parquet = ("--format", "parquet", "--output")
    partition = ("--partition", "release,system")
    return {
        "compare": perfdb("compare", before, last),
        "trend --fail-on": perfdb("trend", "--fail-on", "regression"),
        "export results": perfdb("export", "results", *parquet, page),
        "export steps": perfdb("export", "steps", *parquet, dataset, *partition),
        "site of a release": perfdb("publish", last, "--output", str(folder / "site")),
        "dashboard": [sys.executable, "-m", "benchmarks.scale", "--dashboard"],
    }


def questions() -> Mapping[str, Callable[[], object]]:
    """The queries of the dashboard, without its cache."""
    from dashboards import data
    from perfdb.queries.best import Narrowing

    store = data.store()
    choice = data.releases(store)[-1]
    of_release = Narrowing.of(release_id=choice.release_ids)
    run = "run-00007"
    return {
        "releases": lambda: data.releases.__wrapped__(store),
        "results": lambda: data.rows.__wrapped__(store, of_release),
        "best of each group": lambda: data.ranked.__wrapped__(
            store, "tokens_per_sec_per_gpu", ("model", "system"), of_release
        ),
        "findings": lambda: data.findings_of(store),
        "runs": lambda: data.runs.__wrapped__(store, (), (run,)),
        "results of a run": lambda: data.results_of_run(store, run),
        "steps of a run": lambda: data.steps.__wrapped__(store, run),
    }


def ask() -> int:
    """Time each query of the dashboard, in this process."""
    for name, question in questions().items():
        began = time.perf_counter()
        question()
        print(f"    {name:18} {time.perf_counter() - began:9.2f} {peak_mib():23.0f} MiB")
    return 0


def measured(name: str, url: URL, folder: Path, count: int, num_steps: int) -> list[str]:
    """Print how one database does; the limits that it misses."""
    emptied(url)
    print(f"\n{name}{'clock':>36}{'CPU':>10}{'peak':>13}", flush=True)
    rates, missed = [], []
    for some, part in ingested(url, folder, count, num_steps):
        rates.append(some / (part.cpu_s if name == "SQLite" else part.clock_s))
        print(f"  ingest {some:>7,} more {part} {rates[-1]:7,.0f} results/s", flush=True)
        if part.mib > PARTIAL_MIB:
            missed.append(f"{name}: an ingest has {part.mib:.0f} MiB")
    if rates[-1] < LIMIT_RATE * rates[0]:
        missed.append(f"{name}: the last tenth at {rates[-1] / rates[0]:.2f} × the rate of the 1st")
    print(f"  database {size_mib(url):,.0f} MiB")
    out = folder / name
    out.mkdir()
    for command, words in commands(out, count).items():
        taken = took(words, url)
        print(f"  {command:20} {taken}", flush=True)
        print(taken.output if command == "dashboard" else "", end="", flush=True)
        allowed = PARTIAL_MIB + PER_RESULT_KIB * count / 1024 * command.startswith(EVERYTHING)
        if taken.mib > allowed:
            missed.append(f"{name}: {command} has {taken.mib:.0f} MiB, of {allowed:.0f}")
    return missed


def main() -> int:
    """Measure each database; 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description="Measure perfdb on a large store.")
    parser.add_argument("--results", type=int, default=RESULTS, metavar="N")
    parser.add_argument("--steps", type=int, metavar="N", help="of all results [100 each]")
    parser.add_argument("--database", metavar="NAME", help="only SQLite, or PostgreSQL")
    parser.add_argument("--dashboard", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.dashboard:
        return ask()
    num_steps = (given.steps or given.results * STEPS // RESULTS) // given.results
    print(f"{given.results:,} results of {num_steps} steps; load {os.getloadavg()[0]:.1f}")
    compileall.compile_dir(Path(package.__file__).parent, quiet=1)  # as pip leaves it
    folder = Path(tempfile.mkdtemp(prefix="perfdb-scale-"))
    try:
        with stores(folder) as urls:
            missed = [
                line
                for name, url in urls.items()
                if given.database in (None, name)
                for line in measured(name, url, folder, given.results, num_steps)
            ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n" + ("\n".join(missed) or "every limit is kept"))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
