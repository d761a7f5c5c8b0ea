"""Whether a real slowdown of 10 % is found on this machine, and none where there is none.

`python -m benchmarks.cpu_pair [--trials 20] [--runs 3] [--steps 200] [--core N]`: in each trial the
smallest recipe runs on one core, in turns as it is (A) and with an optimizer that is busy for a
tenth of the time of each step (B). B of each trial is compared with A of the same, and A with A of
the trial before, by `perfdb ingest` and `perfdb compare`. On a machine that has nothing else to do
it takes half an hour. Exits with 1 where a slowdown is missed or an A is called changed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final

from perfdb.rundir import find_runs

RECIPE: Final = Path(__file__).parents[1] / "recipes" / "smoke" / "single.yaml"
SLOWER: Final = 0.1
HOOK: Final = f"""\
import os, time

if "LOCAL_RANK" in os.environ:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    ended = []

    def be_busy(*_):
        now = time.perf_counter()
        if ended:
            until = now + {SLOWER} * (now - ended.pop())
            while time.perf_counter() < until:
                pass
        ended.append(time.perf_counter())

    register_optimizer_step_post_hook(be_busy)
"""
"""Python imports it as it starts; only a worker of torchrun has a local rank."""


def perfdb(words: Sequence[str], environment: Mapping[str, str], core: int | None = None) -> str:
    """What a command of perfdb prints, on one core or on any."""
    pinned = [] if core is None else ["taskset", "--cpu-list", str(core)]
    command = [*pinned, sys.executable, "-m", "perfdb", *words]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def run(name: str, number: int, folder: Path, asked: argparse.Namespace) -> None:
    """One run of a side, which is told from the others by its container."""
    (folder / "hook").mkdir(exist_ok=True)
    (folder / "hook" / "sitecustomize.py").write_text(HOOK)
    environment = {"PERFDB_CONTAINER": name, "OMP_NUM_THREADS": "1"}
    if name.startswith("b"):
        others = os.environ.get("PYTHONPATH")
        paths = [str(folder / "hook"), *([others] if others else [])]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    output = folder / "runs" / f"{name}-{number}"
    words = ["run", str(RECIPE), "--output", str(output), "--set", f"measured_steps={asked.steps}"]
    words += ["--set", "timeout_s=3600"]
    perfdb(words, environment, asked.core)
    [made] = find_runs(output)
    step_ms = 1000 * median(step.step_time_s for step in made.read_steps())
    print(f"  {name} run {number}: {step_ms:.3f} ms", flush=True)


def verdict(a: str, b: str, store: str) -> str:
    """What `perfdb compare` says of two sides."""
    release = f"megatron-core {version('megatron-core')}"
    words = ["compare", f"{release} [{a}]", f"{release} [{b}]", "--metric", "step_time_s", "--json"]
    [match] = json.loads(perfdb(words, {"PERFDB_URL": store}))["matched"]
    print(f"  {b} against {a}: × {match['ratio']:.3f}, {match['verdict']}", flush=True)
    return str(match["verdict"])


def main() -> int:
    """Run the trials; 1 where a verdict is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3, help="of each side in a trial")
    parser.add_argument("--steps", type=int, default=200, help="measured in each run")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    asked = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="perfdb-pair-") as kept:
        folder, store = Path(kept), f"sqlite:///{kept}/store.sqlite"
        for trial in range(asked.trials + 1):  # the first A has none before it
            names = [f"a{trial:02}", f"b{trial:02}"] if trial else ["a00"]
            for number in range(asked.runs):
                for name in names[:: -1 if number % 2 else 1]:  # neither is always the first
                    run(name, number, folder, asked)
        perfdb(["ingest", str(folder / "runs")], {"PERFDB_URL": store})
        trials = range(1, asked.trials + 1)
        slowed = Counter(verdict(f"a{one:02}", f"b{one:02}", store) for one in trials)
        same = Counter(verdict(f"a{one - 1:02}", f"a{one:02}", store) for one in trials)
    found, alarms = slowed["slower"], same["slower"] + same["faster"]
    print(f"{found} of {asked.trials} slowdowns found; {alarms} alarms of {asked.trials} unchanged")
    return int(found < asked.trials or alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
