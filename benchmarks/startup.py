"""How long `perfdb --help` takes, against an empty Python and an `import click`: the floor."""

import subprocess
import sys
import time
from pathlib import Path

REPEATS = 15
LIMIT_S = 0.3
PERFDB = str(Path(sys.executable).with_name("perfdb"))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import click'": [sys.executable, "-c", "import click"],
    "perfdb --help": [PERFDB, "--help"],
    "perfdb recipes --help": [PERFDB, "recipes", "--help"],
    "import perfdb.record": [sys.executable, "-c", "import perfdb.record"],
}


def best_s(command: list[str]) -> float:
    """The shortest of several wall times in seconds: the one with the least disturbance."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    """Print each command's time and its ratio to importing click; 1 where help is too slow."""
    found = {name: best_s(command) for name, command in COMMANDS.items()}
    floor = found["python -c 'import click'"]
    for name, seconds in found.items():
        print(f"{name:28} {seconds * 1000:7.1f} ms   {seconds / floor:5.2f} × import click")
    return int(found["perfdb --help"] > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
