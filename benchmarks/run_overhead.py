"""How much longer `perfdb run` takes than bare torchrun of the same worker on the same case.

`python -m benchmarks.run_overhead [PAIRS] [STEPS]`: both run in turns, each with its start-up. What
else runs on the machine lengthens both: each figure is the least of its runs. Processor time is of
all processes, the runner's own included; the step time is the worker's median.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from perfdb.rundir import RunDir, find_runs
from runner.launchers import local

PAIRS, STEPS = 3, 2000
LIMIT = 1.05
RECIPE = Path(__file__).parents[1] / "recipes" / "smoke" / "single.yaml"
FIGURES = ("wall time", "processor time", "median step time")
Took = tuple[float, float, float]


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of the clock and of the processor that a command and its children take."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}
    environment |= {"TMPDIR": str(folder)}  # its own locks: to wait for another run is no overhead
    subprocess.run(
        command, check=True, capture_output=True, cwd=folder, env=environment | local.imports()
    )
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def step_s(run: RunDir) -> float:
    """The median step time of a run in seconds."""
    return median(step.step_time_s for step in run.read_steps())


def with_perfdb(folder: Path) -> tuple[Took, RunDir]:
    """What `perfdb run` of the recipe takes, and its run directory."""
    command = [sys.executable, "-m", "perfdb", "run", "long.yaml", "--output", "runs"]
    took = timed(command, folder)
    [run] = find_runs(folder)
    return (*took, step_s(run)), run


def bare(folder: Path, made: RunDir) -> Took:
    """What the same worker takes under torchrun alone, with the configuration of a run."""
    run = RunDir(folder)
    recorded = json.loads(made.record.read_text())["command"]
    command = [word.replace(str(made.path.absolute()), str(folder)) for word in recorded]
    run.worker_config.write_text(made.worker_config.read_text())
    took = timed(command, folder)
    return (*took, step_s(run))


def main() -> int:
    """Print the figures of both and their ratio; 1 where wall time is over the limit."""
    pairs, steps = (*map(int, sys.argv[1:]), *(PAIRS, STEPS)[len(sys.argv) - 1 :])
    ours: list[Took] = []
    theirs: list[Took] = []
    for number in range(1, pairs + 1):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            text = RECIPE.read_text().replace("measured_steps: 20", f"measured_steps: {steps}")
            Path(one, "long.yaml").write_text(text.replace("timeout_s: 300", "timeout_s: 3600"))
            took, run = with_perfdb(Path(one))
            ours.append(took)
            theirs.append(bare(Path(other), run))
        of_both = (
            f"{who} {took[0]:.1f} s ({took[1]:.1f} s of the processor)"
            for who, took in (("perfdb", ours[-1]), ("bare", theirs[-1]))
        )
        print(f"pair {number}: {', '.join(of_both)}", flush=True)
    print(f"\n{'least of ' + str(pairs):18} {'perfdb run':>12} {'torchrun':>12}   ratio")
    ratios = []
    for name, mine, its in zip(FIGURES, zip(*ours, strict=True), zip(*theirs, strict=True),
                               strict=True):  # fmt: skip
        ratios.append(min(mine) / min(its))
        print(f"{name:18} {min(mine):10.3f} s {min(its):10.3f} s   {ratios[-1]:.3f}")
    return int(ratios[0] > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
