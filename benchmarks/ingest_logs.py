"""How fast logs are read, against `grep -c` for the marker and a regex over every line.

`python -m benchmarks.ingest_logs [MEGABYTES]`; all in one run, each in a process of its own so that
its memory is its own, and in turns with grep: what else runs on the machine slows both. Sparse: a
step in 500 lines; dense: in 12 % of them. Processor time is what one core alone would take; elapsed
time is with two, and longer where other programs want them.

Parsing takes no longer than grep on sparse logs, and up to three times as long on dense ones. Most
of what `perfdb ingest` takes beyond are its imports, and on dense logs the rows of the steps.

Memory grows with the steps alone: they are columns in memory, of 30 to 60 bytes for each step.
"""

import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path

CASE = (
    "model=llama3-8b", "system=dgx-h100", "num_gpus=8", "sequence_length=4096", "task=pretrain",
    "global_batch_size=128", "precision=bf16",
)  # fmt: skip
OURS, INGEST = "parsing", "perfdb ingest"
REPEATS = {OURS: 12}
"""How often a way is measured; the others once: they take long, and have no limit."""
CHUNK_BYTES = 4 << 20
LIMITS = {"sparse": 1.1, "dense": 3.0}
"""How many times grep's processor time parsing may take."""
LIMIT_MIB = 500
NOISE = (
    b"[NeMo I 2025-08-26 13:43:03 nemo_logging:405] rank %d: "
    b"bucket %d has %d elements of bfloat16\n"
)
NEMO = (
    b"Training epoch 0, iteration %d/999999 | lr: 2.699e-06 | global_batch_size: 128 | "
    b"global_step: %d | peak_memory_usage: 72972500992 | memory_allocated: 34466545664 | "
    b"reduced_train_loss: %.4f | train_step_timing in s: %.4f | consumed_samples: %d\n"
)
MEGATRON = (
    b" [2026-01-16 07:32:24] iteration %8d/  999999 | consumed samples: %12d | elapsed time per "
    b"iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): 490.0 | learning rate: 4.134000E-07 "
    b"| global batch size:  2048 | lm loss: %.6E | loss scale: 1.0 | grad norm: 2.870 | "
    b"number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)


@dataclass(frozen=True)
class Kind:
    """A format's log: its marker, what a plain regex would take of its step line, that, its end."""

    marker: str
    regex: str
    line: Callable[[int], bytes]
    end: bytes


KINDS = {
    "nemo2": Kind(
        "Training epoch ",
        r"iteration (\d+)/(\d+) \|.*?global_batch_size: (\d+) \|.*?global_step: (\d+) \|"
        r".*?peak_memory_usage: (\d+) \|.*?reduced_train_loss: ([\d.]+) \|"
        r".*?train_step_timing in s: ([\d.]+)",
        lambda n: NEMO % (n, n, 2 + n % 97 / 10, 12 + n % 89 / 100, n * 128),
        b"`Trainer.fit` stopped: `max_steps=9` reached.\n",
    ),
    "megatron_lm": Kind(
        "consumed samples:",
        r"iteration +(\d+)/ *(\d+) \|.*?\(ms\): ([\d.]+) \|.*?GPU\): ([\d.]+) \|"
        r".*?batch size: +(\d+) \|.*?lm loss: (\S+) \|.*?norm: ([\d.]+) \|"
        r".*?skipped iterations: +(\d+)",
        lambda n: MEGATRON % (n + 1, n * 2048, 15000 + n % 997, 2 + n % 97 / 10),
        b"[after training is done] datetime: 2026-01-16 09:12:24\n",
    ),
}


def write_log(path: Path, kind: Kind, every: int, megabytes: int) -> None:
    """A log of that size with a step every so many lines."""
    noise = [NOISE % (n % 8, n % 900, n * 7919) for n in range(5000)]
    with path.open("wb") as file:
        written = number = 0
        while written < megabytes * 10**6:
            number += 1
            step = kind.line(number // every - 1) if number % every == 0 else b""
            written += file.write(step or noise[number % 5000])
        file.write(kind.end)


def chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def ours(path: Path, name: str) -> int:
    """Every field of every step; the number of steps."""
    from perfdb import formats

    (log,) = formats.named(name).parse(str(path), chunks(path))
    return len(log.steps)


def ingested(path: Path, name: str) -> int:
    """All of `perfdb ingest` into a new store: the file packed, the steps stored, the result."""
    from perfdb.db.session import store_url
    from perfdb.ingest import LogOptions, Options, ingest

    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "perfdb.sqlite"
        ingest([path], store_url(str(store)), Options(logs=LogOptions(CASE, format=name)))
        with closing(sqlite3.connect(store)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM steps").fetchone()
    return int(count)


def line_by_line(path: Path, name: str) -> int:
    """The same fields with their lines, by a regex on each line."""
    pattern = re.compile(KINDS[name].regex)
    with path.open() as file:
        searched = ((number, pattern.search(line)) for number, line in enumerate(file, start=1))
        steps = [(number, *map(float, found.groups())) for number, found in searched if found]
    return len(steps)


def grep(path: Path, name: str) -> int:
    command = ["grep", "-c", KINDS[name].marker, str(path)]
    found = subprocess.run(
        command, env={"LC_ALL": "C", "PATH": os.environ["PATH"]}, capture_output=True, check=True
    )
    return int(found.stdout)


WAYS = {
    OURS: ours,
    INGEST: ingested,
    "line by line": line_by_line,
    "grep -c": grep,
}


@dataclass(frozen=True)
class Measured:
    """The number of steps, the best times in seconds and the peak memory in MiB."""

    steps: int
    processor_s: float
    elapsed_s: float
    memory_mib: int


def processor_s() -> float:
    """The processor time of this process and of those it has started and waited for."""
    spent = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in spent)


def memory_mib() -> int:
    """The peak memory of this process, or of the largest that it has started."""
    of_whom = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in of_whom) // 1024


def measure(way: str, path: Path, name: str) -> None:
    """Print what one way takes, and what grep takes in turns with it, as JSON."""
    if way == OURS:
        ours(path.with_name("tiny"), name)  # the import is not part of it
    best = {one: Measured(0, float("inf"), float("inf"), 0) for one in (way, "grep -c")}
    for _ in range(REPEATS.get(way, 1)):
        for one, before in best.items():
            start, spent = time.perf_counter(), processor_s()
            steps = WAYS[one](path, name)
            processor, elapsed = processor_s() - spent, time.perf_counter() - start
            best[one] = Measured(
                steps,
                min(before.processor_s, processor),
                min(before.elapsed_s, elapsed),
                memory_mib(),
            )
    print(json.dumps([astuple(best[one]) for one in (way, "grep -c")]))


def in_its_own_process(way: str, path: Path, name: str) -> tuple[Measured, Measured]:
    """What a way takes, and what grep took beside it."""
    command = [sys.executable, "-m", "benchmarks.ingest_logs", "--measure", way, str(path), name]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    mine, floor = (Measured(*figures) for figures in json.loads(said))
    return mine, floor


def compare(name: str, density: str, path: Path) -> bool:
    """Print a line for each way; whether ours keeps its limits and finds what grep finds."""
    found = {way: in_its_own_process(way, path, name) for way in WAYS}
    for way, (one, floor) in found.items():
        print(
            f"{name:12} {density:7} {way:20} {one.steps:8} steps "
            f"{one.processor_s:7.3f} s of processor {one.processor_s / floor.processor_s:6.2f} × "
            f"{one.elapsed_s:7.3f} s elapsed {one.elapsed_s / floor.elapsed_s:6.2f} × grep "
            f"{one.memory_mib:5} MiB",
            flush=True,
        )
    limit, (one, grep_one) = LIMITS[density], found[OURS]
    print(f"limits: {limit:.1f} × processor for parsing, {LIMIT_MIB} MiB")
    return (
        one.steps == grep_one.steps
        and one.processor_s <= limit * grep_one.processor_s
        and max(found[way][0].memory_mib for way in (OURS, INGEST)) < LIMIT_MIB
    )


def main(megabytes: int = 1000) -> int:
    """Compare all ways on all logs; 1 where ours misses a limit."""
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in KINDS.items():
            for density, every in (("sparse", 500), ("dense", 8)):
                path = Path(folder) / f"{density}.log"
                write_log(path, kind, every, megabytes)
                write_log(path.with_name("tiny"), kind, 2, 0)
                kept.append(compare(name, density, path))
    return int(not all(kept))


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measure(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
    else:
        sys.exit(main(*map(int, sys.argv[1:])))
