"""Speaks to Slurm: sbatch, squeue, sacct, scancel; one question for all jobs."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from perfdb.errors import Diagnostic, InputError, RunDirError, RunError
from perfdb.jsonfile import read_json
from perfdb.recipe.slurm import SlurmSettings
from perfdb.rundir import RunDir
from runner.processes import tethered
from runner.slurm.jobs import ACCOUNTED, FIELDS, JobEnd, JobState, of_sacct, of_squeue

TIMEOUT_S = 120
ACCOUNTED_EVERY_S = 60
SQUEUE = ("squeue", "--me", "--states=all", "--noheader",
          f"--Format={','.join(f'{name}:|' for name in FIELDS)}")  # fmt: skip
SACCT = ("sacct", "--allocations", "--duplicates", "--noheader", "--parsable2",
         "--starttime=now-30days", f"--format={','.join(ACCOUNTED)}")  # fmt: skip
"""With `--duplicates`, as a reused number would hide the job that had it before."""
USABLE = ("idle", "mixed", "allocated", "completing", "reserved", "planned")
SUFFIXES = "+-~#!%@^"
"""What sinfo adds to the state of a node that jobs may get; not * (no answer) and $ (maintenance).
"""
_LATER = re.compile(
    r"Unable to contact|timed out|communicat|temporarily|SubmitJobLimit|MaxSubmit|try again", re.I
)
"""What sbatch prints where it may be asked again."""


class LaterError(RunError):
    """Slurm could not be asked, and may be asked again; it may have done what it was asked."""


def check() -> None:
    """Raises InputError where there is no Slurm."""
    if shutil.which("sbatch") is None:
        remedy = "run it on a login node of the cluster"
        raise InputError(Diagnostic("--launcher", "no sbatch here", remedy=remedy))


def _ask(command: Sequence[str]) -> str:
    """What a program of Slurm prints. Raises RunError, LaterError where it may be asked again."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaterError(f"{command[0]}: {error}") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        kind = LaterError if _LATER.search(done.stderr) else RunError
        raise kind(said[-1])
    return done.stdout


def sbatch(run: RunDir) -> tuple[str, ...]:
    """What submits the script of a run."""
    return ("sbatch", "--parsable", str(run.job_script.absolute()))


def submit(run: RunDir) -> int:
    """The number of the job that sbatch makes of a run's script. Raises RunError, LaterError.

    sbatch ends with this process: it would else make a job that another runner does not expect.
    """
    name, *arguments = sbatch(run)
    printed = _ask(tethered((shutil.which(name) or name, *arguments)))
    return int(printed.strip().partition(";")[0])


def cancel(numbers: Iterable[int]) -> None:
    """Cancel jobs. Raises RunError."""
    if given := [str(number) for number in numbers]:
        _ask(("scancel", "--quiet", *given))


def nodes_of(settings: SlurmSettings) -> tuple[str, ...]:
    """The nodes that jobs of these settings may get, but for those that are down.

    Raises RunError, LaterError, InputError where there is none.
    """
    nodelist = settings.nodelist
    if settings.reservation and not nodelist:
        shown = _ask(("scontrol", "--oneliner", "show", "reservation", settings.reservation))
        nodelist = dict(word.partition("=")[::2] for word in shown.split()).get("Nodes")
    of = (f"--nodes={nodelist}",) if nodelist else ()
    printed = _ask(("sinfo", "--noheader", "--Node", "--format=%N %P %T", *of))
    listed = [line.split() for line in printed.splitlines()]
    left_out = _ask(("scontrol", "show", "hostnames", settings.exclude)) if settings.exclude else ""
    partitions = settings.partition.split(",") if settings.partition else ()
    found = dict.fromkeys(
        name for name, partition, state in listed
        if state.rstrip(SUFFIXES) in USABLE and name not in left_out.split()
        and (partition.rstrip("*") in partitions or (not partitions and partition.endswith("*")))
    )  # fmt: skip
    if not found:
        remedy = "look at sinfo, and at partition, nodelist and exclude"
        raise InputError(
            Diagnostic("--preflight", "no node is up that jobs may get", remedy=remedy)
        )
    return tuple(found)


def end_of(run: RunDir) -> JobEnd | None:
    """How the job of a run ended, as its own script says."""
    with suppress(RunDirError):
        return read_json(run.job_end, JobEnd)
    return None


def started_as(run: RunDir) -> int | None:
    """The number of the job that has started a run."""
    with suppress(OSError, ValueError):
        return int(run.job_id.read_text())
    return None


@dataclass
class Slurm:
    """The jobs of this user, asked for at once."""

    num_calls: int = 0
    problem: str = ""
    """Why it did not answer when it was last asked."""
    _accounts: bool = True
    _accounted_at: float = float("-inf")
    _accounted: dict[str, list[JobState]] = field(default_factory=dict)

    def jobs(self, names: Iterable[str]) -> dict[str, list[JobState]] | None:
        """All jobs by name; of names that squeue lacks what sacct knows. None: no answer."""
        self.num_calls += 1
        try:
            found = of_squeue(_ask(SQUEUE))
        except RunError as error:
            self.problem = str(error)
            return None
        self.problem = ""
        missing = [name for name in names if name not in found]
        if missing and self._accounts:
            self._ask_accounts()
        return {name: self._accounted[name] for name in missing if name in self._accounted} | found

    def _ask_accounts(self) -> None:
        """Ask sacct now and then; never again where there is no accounting."""
        if time.monotonic() - self._accounted_at < ACCOUNTED_EVERY_S:
            return
        self.num_calls += 1
        self._accounted_at = time.monotonic()
        try:
            user = f"--user={os.getuid()}"
            self._accounted = of_sacct(_ask((*SACCT, user)))
        except LaterError:
            return
        except RunError:
            self._accounts = False
