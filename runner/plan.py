"""Which cases run here, which are done, and which are skipped and why. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from perfdb.hardware import Machine
from perfdb.recipe import RecipeFile, RunSpec
from perfdb.record import MOST, Case, Release
from runner.history import Measurement, measurement

AT_WORK: Final = "another runner is at work on it"
FINISHED: Final = "finished before"
"""Reasons to skip a case that may also arise after planning."""

PROCESSES_PER_CORE: Final = 8
"""Processes without GPUs; of more, the memory and the time they take are of no use to anybody."""


class PlanAction(StrEnum):
    """What happens to a planned case."""

    RUN = "run"
    DONE = "done"
    SKIP = "skip"


@dataclass(frozen=True)
class Support:
    """A framework: its installed version, and why it cannot run a case, if it cannot."""

    version: str | None
    unsupported: Callable[[Case], str | None]


@dataclass(frozen=True)
class Planned:
    """One attempt at a case: the `repeat`-th of it."""

    file: RecipeFile
    point: RunSpec
    release: Release
    repeat: int
    action: PlanAction
    reason: str

    @property
    def measurement(self) -> Measurement:
        """What a finished run must match to count as this attempt."""
        return measurement(self.point, self.release)


@dataclass(frozen=True)
class Availability:
    """What this machine has, and what has finished or is running on it."""

    machine: Machine
    frameworks: Mapping[str, Support]
    done: Mapping[Measurement, int]
    """How many runs of each measurement have finished."""
    running: frozenset[Measurement] = frozenset()
    """The measurements that another runner is working on."""
    cores: int | None = None
    container: str | None = None
    """The image that the runner is in, as PERFDB_CONTAINER says; a process cannot tell itself."""


def plan(
    files: Iterable[RecipeFile], available: Availability, *, only: str, repeat: int
) -> list[Planned]:
    """Every case whose name matches `only`, `repeat` times, with its action."""
    return [
        _planned(file, point, available, number)
        for file in files
        for point in file.points
        if fnmatchcase(point.name, only)
        for number in range(1, repeat + 1)
    ]


def _planned(file: RecipeFile, point: RunSpec, available: Availability, number: int) -> Planned:
    release = release_of(point, available)
    reason = obstacle(point, available)
    key = measurement(point, release)
    if not reason and key in available.running:
        reason = AT_WORK
    if reason:
        action = PlanAction.SKIP
    elif available.done.get(key, 0) >= number:
        action, reason = PlanAction.DONE, FINISHED
    else:
        action, reason = PlanAction.RUN, ""
    return Planned(file, point, release, number, action, reason)


def release_of(point: RunSpec, available: Availability) -> Release:
    """The release that a case would be run with: the framework as it is installed available."""
    framework = point.case.framework
    support = available.frameworks.get(framework)
    return Release(
        framework=framework,
        version=support.version if support else None,
        container=available.container,
    )


def obstacle(point: RunSpec, available: Availability) -> str:
    """Why a case cannot run here; empty if it can."""
    return _of_the_machine(point.case, available) or _of_the_software(point, available)


def _of_the_machine(case: Case, available: Availability) -> str:
    machine, most = available.machine, PROCESSES_PER_CORE * (available.cores or MOST)
    if machine.system is None:
        return f"this machine is no system of the catalogue: {machine.reason}"
    if case.system != machine.system:
        return f"needs {case.system}, this machine is {machine.system}"
    if machine.gpu_count and case.num_gpus > machine.gpu_count:
        return f"needs {case.num_gpus} GPUs, this machine has {machine.gpu_count}"
    if not machine.gpu_count and case.num_gpus > most:
        limit = f"{PROCESSES_PER_CORE} on each of its {available.cores} cores"
        return f"needs {case.num_gpus} processes, this machine takes {most}: {limit}"
    return ""


def _of_the_software(point: RunSpec, available: Availability) -> str:
    framework = point.case.framework
    if point.container and point.container != available.container:
        return f"needs container {point.container}: run in it, with PERFDB_CONTAINER set to it"
    support = available.frameworks.get(framework)
    if support is None:
        return f"no backend runs {framework} yet"
    if support.version is None:
        return f"{framework} is not installed here"
    return support.unsupported(point.case) or ""
