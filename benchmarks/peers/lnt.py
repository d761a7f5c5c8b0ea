"""Import results into LNT on SQLite; run by LNT's own interpreter. Prints the seconds.

`python lnt.py RESULTS.jsonl SCRATCH`; a report for each release and system, as LNT has it: its
tests are the cases, its samples the steps.
"""

import json
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

SCHEMA = """\
format_version: '2'
name: perf
metrics:
- {name: step_time, bigger_is_better: false, type: Real}
- {name: tokens_per_sec_per_gpu, bigger_is_better: true, type: Real}
run_fields:
- {name: llvm_project_revision, order: true}
machine_fields:
- {name: hardware}
"""
"""The order must have this name: with another one LNT 0.4.20 fails after an import."""


def write_reports(results: Path, folder: Path) -> list[str]:
    """The reports to import, oldest release first."""
    tests: dict[tuple[str, str], list[object]] = defaultdict(list)
    with results.open() as file:
        for line in file:
            one = json.loads(line)
            tests[one["release"], one["system"]].append(
                {
                    "name": one["name"],
                    "step_time": one["step_times_s"],
                    "tokens_per_sec_per_gpu": one["tokens_per_sec_per_gpu"],
                }
            )
    paths = []
    for number, ((_, system), given) in enumerate(tests.items()):
        path = folder / f"{number:04}.json"
        moment = {"start_time": "2026-01-01T00:00:00", "end_time": "2026-01-01T01:00:00"}
        report = {
            "format_version": "2",
            "machine": {"name": system, "hardware": system},
            "run": {"llvm_project_revision": str(1000 + number)} | moment,
            "tests": given,
        }
        path.write_text(json.dumps(report))
        paths.append(str(path))
    return paths


def main(results: Path, scratch: Path) -> None:
    lnt = str(Path(sys.executable).with_name("lnt"))
    instance = scratch / "instance"
    subprocess.run([lnt, "create", str(instance)], check=True, capture_output=True)
    schemas = instance / "schemas"
    schemas.mkdir(exist_ok=True)
    (schemas / "perf.yaml").write_text(SCHEMA)
    reports = write_reports(results, scratch)
    start = time.perf_counter()
    command = [lnt, "import", str(instance), "-s", "perf", "-q", "--no-report", *reports]
    subprocess.run(command, check=True, capture_output=True)
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
