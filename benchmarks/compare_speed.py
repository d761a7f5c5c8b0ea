"""How much CPU comparisons and trends take on a large store, above that of `perfdb --help`.

`python -m benchmarks.compare_speed [--results 100000] [--profile NAME]`: 2,500 cases in as many
releases as there are results for, 40 by default, are written into a SQLite store as rows. Then each
command runs in a process of its own, a quick one several times; the least is printed, beside its
limit. With --profile only the functions in which one of them takes the longest. Exits with 1 where
a limit is missed.
"""

import argparse
import compileall
import cProfile
import os
import pstats
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection

import perfdb as package
from benchmarks import workload
from benchmarks.ingest_runs import emptied
from benchmarks.scale import perfdb, took
from perfdb.db import bulk, keys
from perfdb.db.session import store_url, writer
from perfdb.db.tables import results, runs, sources
from perfdb.record import Case, Release

RESULTS: Final = 100_000
BATCHES: Final = 10
"""How many global batch sizes each of the cases of `workload` is run with."""
MATCHES: Final = workload.NUM_CASES * BATCHES
REPEATS: Final = 5
ENOUGH_S: Final = 20.0
"""A command that has taken so much CPU is not measured again."""
HELP: Final = "perfdb --help"
LIMITS_S: Final[Mapping[str, float]] = {
    "compare A B": 0.2,
    "compare A B --only slower": 0.2,
    "trend of one model": 0.5,
    "trend of all": 5.0,
    "trend --fail-on regression": 5.0,
}
"""The most CPU above HELP, in seconds."""
Rows = Sequence[tuple[object, ...]]
ENVIRONMENT: Final = {
    "hostname": "node-1", "os": "Linux 6.1", "python": "3.12.3", "packages": {"torch": "2.9.0"},
    "variables": {"NCCL_DEBUG": "WARN", "CUDA_DEVICE_MAX_CONNECTIONS": "1"},
}  # fmt: skip


def cases() -> list[Case]:
    """The cases of `workload`, each with several global batch sizes."""
    of = product(
        workload.SYSTEMS, workload.MODELS, workload.PRECISIONS, workload.NUM_GPUS,
        range(1, BATCHES + 1),
    )  # fmt: skip
    found = []
    for system, model, precision, num_gpus, times in of:
        one = workload.case(system, model, precision, num_gpus)
        batch = one.global_batch_size * times
        found.append(one.model_copy(update={"global_batch_size": batch}))
    return found


def fill(url: URL, count: int) -> tuple[str, str]:
    """Write so many results into an empty store; the names of its last two releases."""
    emptied(url)
    some = cases()[: max(1, count // 2)]
    releases = [
        Release(framework="megatron-core", version=f"0.{minor}.0")
        for minor in range(-(-count // len(some)))
    ]
    engine = writer(url)
    with engine.begin() as connection:
        case_ids = keys.case_ids(connection, some)
        release_ids = keys.release_ids(connection, releases)
        ids = list(product(release_ids, zip(case_ids, some, strict=True)))[:count]
        _write(connection, [(release_id, *of) for release_id, of in ids])
    engine.dispose()
    return tuple(release.name for release in releases[-2:])  # type: ignore[return-value]


def _write(connection: Connection, given: Sequence[tuple[int, int, Case]]) -> None:
    """A source, a run and a result of each, as `perfdb ingest` would."""
    at = workload.STARTED
    of_source = ("sha256", "path", "parser", "parser_version", "size_bytes", "ingested_at",
                 "content")  # fmt: skip
    files: Iterator[tuple[object, ...]] = (
        (f"{number:064x}", f"runs/run-{number:06}/steps.jsonl", "run", 1, 9_000, at, b"0" * 100)
        for number, _ in enumerate(given)
    )
    bulk.add(connection, sources, of_source, files)
    of_run = ("run_id", "case_id", "release_id", "source_id", "recipe", "outcome", "exit_code",
              "attempt", "started_at", "ended_at", "warmup_steps", "measured_steps", "environment",
              "command", "content_hash")  # fmt: skip
    bulk.add(connection, runs, of_run, (
        (f"run-{number:06}", case_id, release_id, number + 1, case.model, "finished", 0, 1,
         at + timedelta(minutes=number), at + timedelta(minutes=number + 5), 10, 50, ENVIRONMENT,
         ["torchrun", "train.py"], f"{number:064x}")
        for number, (release_id, case_id, case) in enumerate(given)
    ))  # fmt: skip
    columns = (*_RESULT, "key", "revision", "content_hash", "case_id", "release_id", "run_id",
               "source_id", "created_at")  # fmt: skip
    bulk.add(connection, results, columns, _results(given))


_RESULT: Final = (
    "origin", "outcome", "window", "flops_convention", "formula_version", "num_steps",
    "step_time_s", "step_time_mean_s", "step_time_stdev_s", "step_time_p10_s", "step_time_p90_s",
    "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu", "peak_tflops",
    "peak_memory_bytes", "notes", "raw", "printed", "extras", "emitted", "stated",
)  # fmt: skip


def _results(given: Sequence[tuple[int, int, Case]]) -> Iterator[tuple[object, ...]]:
    """The rows of results: unchanged but for chance, and in the last release one in 50 slower."""
    chance, usual = random.Random(7), {}
    last = given[-1][0]
    for number, (release_id, case_id, case) in enumerate(given):
        if case_id not in usual:
            usual[case_id] = workload.usual_step_time_s(case)
        seconds = usual[case_id] * chance.gauss(1, workload.RUN_TO_RUN)
        if release_id == last and case_id % 50 == 0:
            seconds *= 1.05
        spread = seconds * workload.STEP_TO_STEP
        tokens = case.global_batch_size * case.sequence_length / seconds / case.num_gpus
        mfu = workload.USUAL_MFU * usual[case_id] / seconds
        yield (
            "measured", "finished", "skip_warmup(10)", "causal", 3, 50,
            seconds, seconds, spread, seconds - 1.28 * spread, seconds + 1.28 * spread,
            tokens, mfu * 1000, mfu, 1000.0, 60 * 2**30, (), {}, {}, {}, {}, {},
            f"{number:064x}", 1, f"{number:064x}", case_id, release_id, number + 1, number + 1,
            workload.STARTED,
        )  # fmt: skip


def commands(a: str, b: str) -> Mapping[str, Sequence[str]]:
    """What is measured, by its name: the words after `perfdb`."""
    return {
        HELP: ("--help",),
        "compare A B": ("compare", a, b),
        "compare A B --only slower": ("compare", a, b, "--only", "slower"),
        "trend of one model": ("trend", workload.MODELS[0]),
        "trend of all": ("trend",),
        "trend --fail-on regression": ("trend", "--fail-on", "regression"),
    }


def least_s(words: Sequence[str], url: URL) -> float:
    """The least CPU that a command takes, of several times or, where it is slow, of fewer."""
    found: list[float] = []
    while len(found) < REPEATS and sum(found) < ENOUGH_S:
        found.append(took(perfdb(*words), url).cpu_s)
    return min(found)


def profiled(words: Sequence[str], url: URL) -> None:
    """Print the functions in which a command takes the longest, in this process."""
    from perfdb.cli import main as entry

    sys.argv, os.environ["PERFDB_URL"] = ["perfdb", *words], url.render_as_string()
    profile = cProfile.Profile()
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), suppress(SystemExit):
        profile.runcall(entry)
    pstats.Stats(profile).sort_stats("tottime").print_stats(40)
    pstats.Stats(profile).sort_stats("cumtime").print_stats(70)


def main() -> int:
    """Measure each command; 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description="Measure compare and trend on a large store.")
    parser.add_argument("--results", type=int, default=RESULTS, metavar="N")
    parser.add_argument("--profile", metavar="NAME", help="only this command, by its functions")
    given = parser.parse_args()
    compileall.compile_dir(Path(package.__file__).parent, quiet=1)  # as pip leaves it
    folder = Path(tempfile.mkdtemp(prefix="perfdb-compare-"))
    missed = []
    try:
        url = store_url(str(folder / "store.sqlite"))
        asked = commands(*fill(url, given.results))
        if given.profile:
            profiled(asked[given.profile], url)
            return 0
        print(f"{given.results:,} results of {MATCHES:,} cases; load {os.getloadavg()[0]:.1f}")
        least = {name: least_s(words, url) for name, words in asked.items()}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"  {HELP:28} {least[HELP]:7.3f} s of CPU")
    for name, limit_s in LIMITS_S.items():
        above_s = least[name] - least[HELP]
        print(f"  {name:28} {above_s:7.3f} s above it, of {limit_s:g}")
        missed += [name] if above_s > limit_s else []
    print(f"missed: {', '.join(missed)}" if missed else "every limit is kept")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
