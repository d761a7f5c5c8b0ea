"""Which cases run here, which are done, and which are skipped and why. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from perfdb.hardware import Machine
from perfdb.recipe import RecipeFile, RunSpec
from perfdb.recipe.slurm import SlurmSettings
from perfdb.record import MOST, Release
from runner.backends import NO_BACKEND, Backend
from runner.fit import Hardware, Proxy, fitted
from runner.history import History, Measurement, measurement
from runner.launchers import Launcher

AT_WORK: Final = "another runner is at work on it"
FINISHED: Final = "finished before"
"""Reasons to skip a case that may also arise after planning."""

PROCESSES_PER_CORE: Final = 8
"""The limit without GPUs; more processes only fill the memory and wait for each other."""


@dataclass(frozen=True)
class ExecutionTarget:
    """Where runs are executed: the folder they go to, the machine, and how they are started."""

    output: Path
    machine: Machine
    launcher: Launcher
    backends: Mapping[str, Backend]
    cores: int | None = None
    cluster: SlurmSettings | None = None
    """The nodes that runs are submitted to; None: they are started on this machine."""
    max_jobs: int = 500
    """The most jobs that are submitted at once."""
    preflight: bool = False
    """Whether the nodes are measured before anything is submitted."""
    after: tuple[int, ...] = ()
    """The jobs that those submitted wait for, however these end."""
    fit: Hardware | None = None
    """What cases are cut to that do not fit; None: they are skipped."""
    container: str | None = None
    """The image that the runner is in, from PERFDB_CONTAINER: a process cannot find out itself."""


class PlanAction(StrEnum):
    """What happens to a planned case."""

    RUN = "run"
    DONE = "done"
    SKIP = "skip"


@dataclass(frozen=True)
class Planned:
    """One attempt at a case: the `repeat`-th of it."""

    file: RecipeFile
    point: RunSpec
    release: Release
    repeat: int = 1
    action: PlanAction = PlanAction.RUN
    reason: str = ""
    changes: tuple[str, ...] = ()
    """Of a proxy: what was cut, in words."""

    @property
    def measurement(self) -> Measurement:
        """What a finished run must match to count as this attempt."""
        return measurement(self.point, self.release)


def plan(
    files: Iterable[RecipeFile], target: ExecutionTarget, before: History, *, repeat: int
) -> list[Planned]:
    """Every case, `repeat` times, with its action."""
    versions = {name: backend.version() for name, backend in target.backends.items()}
    taken = before.running if target.cluster else before.running | before.submitted.keys()
    planned = []
    for file in files:
        for spec in file.points:
            cut = fitted(spec, target.fit) if target.fit else None
            point, changes = (cut.spec, cut.changes) if isinstance(cut, Proxy) else (spec, ())
            version = versions.get(point.case.framework)
            release = _release(point, target, version)
            key = measurement(point, release)
            reason = cut if isinstance(cut, str) else obstacle(point, target, version)
            if not reason and key in taken:
                reason = AT_WORK
            for number in range(1, repeat + 1):
                action, why = PlanAction.RUN, ""
                if reason:
                    action, why = PlanAction.SKIP, reason
                elif len(before.finished.get(key, ())) >= number:
                    action, why = PlanAction.DONE, FINISHED
                planned.append(Planned(file, point, release, number, action, why, changes))
    return planned


def _release(point: RunSpec, target: ExecutionTarget, version: str | None) -> Release:
    """What is to run. The version that is in an image of a cluster is known once it has run."""
    container = target.container
    if target.cluster:
        container = point.container or target.cluster.changed(point.slurm).container_image
        version = None if container else version
    return Release(framework=point.case.framework, version=version, container=container)


def obstacle(point: RunSpec, target: ExecutionTarget, version: str | None) -> str:
    """Why a case cannot run with a version of its framework here; empty if it can."""
    case, backend = point.case, target.backends.get(point.case.framework)
    if backend is None:
        return NO_BACKEND.get(case.framework, f"no backend runs {case.framework} yet")
    cluster = target.cluster and target.cluster.changed(point.slurm)
    elsewhere = _not_on(cluster, point) if cluster else _too_large_or_elsewhere(point, target)
    if reason := backend.unsupported(point) or elsewhere:
        return reason
    if cluster and (point.container or cluster.container_image):
        return ""
    if point.container and point.container != target.container:
        return f"needs container {point.container}: run in it, with PERFDB_CONTAINER set to it"
    return "" if version else f"{case.framework} is not installed here"


def _not_on(cluster: SlurmSettings, point: RunSpec) -> str:
    case, of_node = point.case, cluster.gpus_per_node or 1
    if case.system != cluster.system:
        return f"needs {case.system}, the nodes are {cluster.system}"
    if case.num_gpus > of_node and case.num_gpus % of_node:
        return f"needs {case.num_gpus} GPUs, which fill no nodes of {of_node}"
    return ""


def _too_large_or_elsewhere(point: RunSpec, target: ExecutionTarget) -> str:
    case, machine = point.case, target.machine
    most = PROCESSES_PER_CORE * (target.cores or MOST)
    if machine.system is None:
        return f"this machine is no system of the catalogue: {machine.reason}"
    if case.system != machine.system:
        return f"needs {case.system}, this machine is {machine.system}"
    if machine.gpu_count and case.num_gpus > machine.gpu_count:
        return f"needs {case.num_gpus} GPUs, this machine has {machine.gpu_count}"
    if not machine.gpu_count and case.num_gpus > most:
        limit = f"{PROCESSES_PER_CORE} on each of its {target.cores} cores"
        return f"needs {case.num_gpus} processes, this machine takes {most}: {limit}"
    return ""
