"""Feeds every reader of perfdb damaged files for a while, one after the other: `make fuzz`."""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.seeds import DATA
from tests.fuzz.targets import TARGETS

FOUND = DATA / "fuzz"
MOST_SECONDS_TO_MINIMISE = 60
_RUNS = re.compile(r"stat::number_of_executed_units: (\d+)")
_PYTHON = [sys.executable, "-W", "error", "-m"]


def main() -> int:
    """0 where nothing was found, else 1; what was found lies in tests/data/fuzz/TARGET/."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all unless named")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    given = parser.parse_args()
    unknown = [name for name in given.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no target {', '.join(unknown)}")
    found = [fuzzed(name, given.seconds) for name in given.targets or TARGETS]
    return 1 if any(found) else 0


def fuzzed(name: str, seconds: int) -> list[Path]:
    """The faults of one target, each as a small file that the test suite feeds from now on."""
    with tempfile.TemporaryDirectory(prefix="perfdb-fuzz-") as temporary:
        folder = Path(temporary)
        worker = [*_PYTHON, "tests.fuzz.worker", name, str(seconds), temporary]
        done = subprocess.run(worker, stderr=subprocess.PIPE, check=False, cwd=DATA.parents[1])
        said = done.stderr.decode(errors="replace")
        runs = _RUNS.search(said)
        count = int(runs[1]) if runs else 0
        print(f"{name:24} {count:9,} inputs {count / seconds:8,.0f}/s  exit {done.returncode}")
        faults = sorted(folder.glob("fault-*"))
        if done.returncode:
            print(said[-3000:])
        return [_saved(name, fault) for fault in faults]


def _saved(name: str, fault: Path) -> Path:
    command = [*_PYTHON, "tests.fuzz.minimise", name, str(fault)]
    try:
        subprocess.run(command, check=False, timeout=MOST_SECONDS_TO_MINIMISE)
    except subprocess.TimeoutExpired:
        print("not made smaller any further: it takes too long")
    saved = FOUND / name / fault.name.removeprefix("fault-")[:20]
    saved.parent.mkdir(parents=True, exist_ok=True)
    saved.write_bytes(fault.read_bytes())
    print(f"  fault: {saved}")
    return saved


if __name__ == "__main__":
    sys.exit(main())
