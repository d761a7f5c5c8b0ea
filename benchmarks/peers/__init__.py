"""Other systems that keep benchmark results, given the results that perfdb is timed with."""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.workload import Result

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "perfdb" / "peers"
"""Where their virtual environments are, made when they are first asked for."""


@dataclass(frozen=True)
class Peer:
    """A system: what to install, how many results it is given, and how it is called."""

    name: str
    requirement: str
    share: float
    """The part of the results that it is given, where all of them would take too long."""


PEERS = (Peer("lnt", "llvm-lnt[server]", 1.0), Peer("mlflow", "mlflow", 0.1))


def python_of(peer: Peer) -> Path:
    """The interpreter of a peer's own virtual environment, installed if need be."""
    folder = CACHE / peer.name
    python, installed = folder / "bin" / "python", folder / ".installed"
    if not installed.exists():
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", peer.requirement]
        if subprocess.run(install, stdout=sys.stderr, check=False).returncode:
            sys.exit(f"{peer.requirement} cannot be installed in {folder}: run without --peers")
        installed.touch()
    return python


def seconds(peer: Peer, results: Path, scratch: Path) -> float:
    """How long a peer takes to store the results of a file."""
    script = Path(__file__).with_name(f"{peer.name}.py")
    command = [str(python_of(peer)), str(script), str(results), str(scratch)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(said.splitlines()[-1])


def write_results(path: Path, given: Iterable[Result]) -> None:
    """The results as lines of JSON, which every peer's script reads."""
    with path.open("w") as file:
        for result in given:
            case = result.case.model_dump(mode="json", exclude_none=True)
            seconds_per_step = median(result.step_times_s)
            tokens = case["global_batch_size"] * case["sequence_length"] / case["num_gpus"]
            line = {
                "release": result.release.version,
                "system": case["system"],
                "name": f"{case['model']}-{case['precision']}-{case['num_gpus']}",
                "case": case,
                "step_times_s": result.step_times_s,
                "tokens_per_sec_per_gpu": tokens / seconds_per_step,
            }
            file.write(json.dumps(line) + "\n")
