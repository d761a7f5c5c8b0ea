"""What a sweep on Slurm costs its submitter, and whether one that is killed loses anything.

`python -m benchmarks.slurm_sweep [kills] [smoke] [queued] [launchers]`: as root, with Debian's
Slurm, which it starts on this machine by itself. Without a word it does all four:

- kills: `perfdb run` of ten cases is killed with SIGKILL at ten random moments and given again each
  time; each case must be done exactly once, and ingested.
- smoke: the same with the smoke recipes, which train for real, through to the site.
- queued: 20 and 200 jobs that wait for another one: calls to Slurm per minute, processor time and
  memory of the submitter, its programs included.
- launchers: the smallest smoke recipe by `local` and by `slurm`, in turns.
"""

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

from perfdb.record import Outcome
from perfdb.rundir import RunDir, find_runs
from tests.slurm import service

ROOT = Path(__file__).parents[1]
SMOKE = ROOT / "recipes" / "smoke"
SINGLE = SMOKE / "single.yaml"
FOLLOWED_S = 60
"""How long the submitter is watched once it has submitted all."""
KILLS, CASES, PAIRS = 10, 10, 3
SITE = """\
[slurm]
system = "cpu"
gpus_per_node = {processes}
exclusive = false
time_limit = "10"
poll_s = {poll_s}
sbatch_args = ["--overcommit"]
"""
WORKER = """\
#!/bin/bash
while [ $# -gt 1 ]; do [ "$1" = --steps ] && steps=$2; shift; done
for number in $(seq 25); do echo "{\\"step\\": $number, \\"step_time_s\\": 0.1}"; done >>"$steps"
"""
COUNTED = """\
#!/bin/sh
echo "$(basename "$0")" >>"{folder}/calls"
exec {program} "$@"
"""


@contextmanager
def cluster(
    poll_s: float = 1, worker: str | None = None, processes: int = 1
) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with the file of a Slurm that runs, and the environment to use it in.

    Calls of Slurm's programs are counted in the file `calls` of the folder.
    """
    with tempfile.TemporaryDirectory(prefix="sweep-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        site = SITE.format(poll_s=poll_s, processes=processes)
        if worker:
            (folder / "worker").write_text(worker)
            (folder / "worker").chmod(0o755)
            site += f'python = "{folder / "worker"}"\n'
        (folder / "perfdb.toml").write_text(site)
        (folder / "bin").mkdir()
        for name in ("sbatch", "squeue", "sacct", "scontrol", "scancel"):
            program = subprocess.run(["which", name], capture_output=True, text=True, check=True)
            counted = folder / "bin" / name
            counted.write_text(COUNTED.format(folder=folder, program=program.stdout.strip()))
            counted.chmod(0o755)
        (folder / "slurm").mkdir()
        with service.started(folder / "slurm") as slurm:
            path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
            yield folder, {**slurm.variables, "PATH": path, "PYTHONPATH": str(ROOT)}


def sweep(folder: Path, cases: int) -> None:
    """A recipe of so many cases, which differ in their seed."""
    text = SINGLE.read_text() + f"\nmatrix: {{seed: {list(range(1, cases + 1))}}}\n"
    (folder / "sweep.yaml").write_text(text)


def perfdb(folder: Path, variables: dict[str, str], *words: str) -> "subprocess.Popen[bytes]":
    """A command of perfdb that has been started there."""
    log = (folder / "printed").open("ab")
    with log:
        return subprocess.Popen(
            [sys.executable, "-m", "perfdb", *words],
            cwd=folder, env=variables, stdout=log, stderr=log,
        )  # fmt: skip


def kills() -> None:
    """Kill the submitter of ten cases, whose worker is a stand-in that ends at once."""
    with cluster(poll_s=1, worker=WORKER) as (folder, variables):
        sweep(folder, CASES)
        killed(folder, variables, "sweep.yaml", 8)


def smoke() -> None:
    """Kill the submitter of the smoke recipes, which train for real, and show them on the site."""
    with cluster(poll_s=1, processes=4) as (folder, variables):
        killed(folder, variables, str(SMOKE), 60)
        words = [sys.executable, "-m", "perfdb.site", "-nWq", str(ROOT / "docs"), "site"]
        store = {"PERFDB_URL": f"sqlite:///{folder / 'perfdb.sqlite'}"}
        code = subprocess.run(words, cwd=folder, env=variables | store, check=False).returncode
        text = "".join(page.read_text() for page in (folder / "site").rglob("*.html"))
        runs = [run.read_record().run_id for run in find_runs(folder / "runs")]
        shown = sum(run_id in text for run_id in runs)
        print(f"site: exit code {code}, {shown} of {len(runs)} runs shown")


def killed(folder: Path, variables: dict[str, str], recipes: str, longest_s: float) -> None:
    """Kill the submitter at random moments, until a last one ends by itself; then ingest."""
    words = ("run", recipes, "--launcher", "slurm", "--max-jobs", "3")
    moments = []
    for _ in range(KILLS):
        child = perfdb(folder, variables, *words)
        moments.append(random.uniform(0.5, longest_s))
        with suppress(subprocess.TimeoutExpired):
            child.wait(moments[-1])
        child.send_signal(signal.SIGKILL)
        child.wait()
    code = perfdb(folder, variables, *words).wait()
    runs = list(find_runs(folder / "runs"))
    records = [run.read_record() for run in runs]
    cases = {(record.case.key, record.kind) for record in records}
    whole = sum(is_whole(run) for run in runs)
    code += perfdb(folder, variables, "ingest", "runs").wait()
    said = (folder / "printed").read_text().splitlines()
    stored = [line for line in said if line.startswith(f"{len(runs)} new, ")]
    print(f"killed after {', '.join(f'{moment:.1f}' for moment in moments)} s")
    print(f"{len(cases)} cases, {len(runs)} runs, {whole} finished with all their steps")
    print(f"ingested: {stored or said[-3:]}, exit codes {code}")


def is_whole(run: RunDir) -> bool:
    """Whether a run finished and has each of its steps once."""
    record = run.read_record()
    steps = [step.step for step in run.read_steps()]
    wanted = record.warmup_steps + record.measured_steps
    return record.outcome is Outcome.FINISHED and steps == [*range(1, wanted + 1)]


def used(number: int) -> float:
    """The processor time of a process and of the children it has waited for, in seconds."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def peak_mib(number: int) -> float:
    """The most memory that a process has had."""
    status = Path(f"/proc/{number}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def queued() -> None:
    """Follow jobs that wait, few and many."""
    for cases in (20, 200):
        wait(cases)


def wait(cases: int) -> None:
    """Follow so many jobs, all of which wait."""
    with cluster(poll_s=10, worker=WORKER) as (folder, variables):
        sweep(folder, cases)
        command = ["sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap=true"]
        held = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        after = held.stdout.strip()
        start = time.monotonic()
        child = perfdb(
            folder, variables, "run", "sweep.yaml", "--launcher", "slurm", "--after", after
        )
        calls = folder / "calls"
        service.until(lambda: calls.read_text().count("sbatch") > cases, seconds=600)
        service.until(lambda: len(list(folder.glob("runs/*/slurm.json"))) == cases, seconds=60)
        wall_s, submitting_s = time.monotonic() - start, used(child.pid)
        before = calls.read_text().splitlines()
        time.sleep(FOLLOWED_S)
        following_s = used(child.pid) - submitting_s
        asked = calls.read_text().splitlines()[len(before) :]
        print(
            f"{cases} jobs: submitted in {wall_s:.1f} s with {submitting_s:.2f} s of processor "
            f"time ({submitting_s / cases * 1e3:.0f} ms a case); then in {FOLLOWED_S} s "
            f"{len(asked)} calls to Slurm and {following_s:.2f} s of processor time, "
            f"peak memory {peak_mib(child.pid):.0f} MiB"
        )
        child.send_signal(signal.SIGTERM)
        child.wait()


def launchers() -> None:
    """The same case on this machine and as a job of it."""
    took: dict[str, list[tuple[float, float, float]]] = {"local": [], "slurm": []}
    with cluster(poll_s=1) as (folder, variables):
        for number in range(PAIRS):
            for launcher, so_far in took.items():
                output = folder / f"{launcher}-{number}"
                before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                perfdb(
                    folder, variables, "run", str(SINGLE), "--launcher", launcher,
                    "--output", str(output),
                ).wait()  # fmt: skip
                wall_s, now = (
                    time.perf_counter() - start,
                    resource.getrusage(resource.RUSAGE_CHILDREN),
                )
                spent_s = now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime
                [run] = find_runs(output)
                steps = [step.step_time_s for step in run.read_steps()][5:]
                so_far.append((wall_s, spent_s, median(steps)))
    for launcher, some in took.items():
        wall_s, spent_s, step_s = (min(column) for column in zip(*some, strict=True))
        print(
            f"{launcher}: {wall_s:.1f} s of the clock, median step time {step_s * 1e3:.2f} ms, "
            f"processor time of perfdb and what it waits for {spent_s:.1f} s (least of {PAIRS})"
        )


PARTS: dict[str, Callable[[], None]] = {
    "kills": kills,
    "smoke": smoke,
    "queued": queued,
    "launchers": launchers,
}


if __name__ == "__main__":
    if reason := service.why_not():
        sys.exit(reason)
    for word in sys.argv[1:] or PARTS:
        print(f"-- {word}", flush=True)
        PARTS[word]()
