"""`perfdb run --preflight`: a short job on every node that a sweep may get, before the sweep."""

import os
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from perfdb.errors import RunDirError, RunError
from perfdb.groups import grouped
from perfdb.hardware import secret_values, without_values
from perfdb.jsonfile import read_json, write_atomically
from perfdb.recipe import RunSpec
from perfdb.recipe.slurm import SlurmSettings
from perfdb.record import Frozen
from perfdb.rundir import RunDir
from perfdb.text import visible
from perfdb.units import significant
from runner.backends import Command
from runner.diagnosis import diagnose
from runner.launchers import slurm
from runner.plan import ExecutionTarget, Planned
from runner.run import log_lines, new_directory, redact_logs
from runner.slurm.client import Slurm, cancel, end_of, nodes_of, started_as, submit
from runner.slurm.follow import intent_of
from runner.slurm.jobs import JobIntent, ending, is_without, seen

FOLDER = ".preflight"
"""In the folder of the runs; ingest reads no hidden folder."""
LIMIT_S = 600
"""What the job may take, most of it for the image to arrive: measuring takes below two minutes."""
WORDS = {
    "matmul_tflops": ("matrix product", "TFLOP/s"),
    "node_gb_per_s": ("all-reduce in the node", "GB/s"),
    "pair_gb_per_s": ("all-reduce with its better neighbor", "GB/s"),
}


class SickNodeError(RunError):
    """A node fails, or is slower than the others."""


class RankFigures(Frozen):
    """What a process of the job leaves."""

    node: str
    matmul_tflops: float
    node_gb_per_s: float | None = None
    pairs_gb_per_s: tuple[float, ...] | None = None
    """With the nodes before and after its own. None: it did not come to an end."""


class NodeFigures(Frozen):
    """What a node can do: its slowest process. A slow pair is laid to the node of two slow ones."""

    node: str
    matmul_tflops: float | None = None
    node_gb_per_s: float | None = None
    pair_gb_per_s: float | None = None
    is_whole: bool = False
    """Whether each of its processes came to an end."""


class Preflight(Frozen):
    """The record of a preflight, in `preflight.json`."""

    written_at: datetime
    nodes: tuple[NodeFigures, ...]
    fraction: float
    sick: Mapping[str, str]
    """Why, by the names of nodes."""
    error: str | None = None
    """How the job itself failed."""


def of_nodes(
    ranks: Iterable[RankFigures], names: Sequence[str], per_node: int
) -> tuple[NodeFigures, ...]:
    """The figures of each node that was asked for."""
    of_name = grouped(ranks, lambda rank: rank.node)
    return tuple(_of_node(name, of_name.get(name, ()), per_node) for name in names)


def _of_node(name: str, ranks: Sequence[RankFigures], per_node: int) -> NodeFigures:
    in_node = [rank.node_gb_per_s for rank in ranks if rank.node_gb_per_s is not None]
    of_pairs = zip(*(rank.pairs_gb_per_s or () for rank in ranks), strict=False)
    return NodeFigures(
        node=name,
        matmul_tflops=min((rank.matmul_tflops for rank in ranks), default=None),
        node_gb_per_s=min(in_node, default=None),
        pair_gb_per_s=max(map(min, of_pairs), default=None),
        is_whole=sum(rank.pairs_gb_per_s is not None for rank in ranks) == per_node,
    )


def sick(nodes: Sequence[NodeFigures], fraction: float) -> dict[str, str]:
    """Why nodes are not to be used, by their names: below a fraction of the median of all.

    Of two nodes the better one is the median. Where no node came to an end, those are named that
    did not even begin, as the others waited for them; where none began, the job's error says why.
    """
    found: dict[str, str] = {}
    begun = [node for node in nodes if node.matmul_tflops is not None]
    for node in nodes:
        if node.matmul_tflops is None and begun:
            found[node.node] = "left no figures"
        elif not node.is_whole and len(begun) == len(nodes):
            found[node.node] = "did not come to the end of its all-reduces"
    for name, (what, unit) in WORDS.items():
        figures = {
            node.node: figure for node in nodes if (figure := getattr(node, name)) is not None
        }
        median = statistics.median_high(figures.values()) if figures else 0
        for node_name, figure in figures.items():
            if figure < fraction * median:
                here, there = significant(figure), significant(median)
                found.setdefault(node_name, f"{what}: {here} {unit}, the median is {there}")
    return found


@dataclass(frozen=True)
class _Job:
    run: RunDir
    intent: JobIntent
    names: tuple[str, ...]
    per_node: int


def check_nodes(console: Console, planned: Sequence[Planned], target: ExecutionTarget) -> None:
    """Have every node measured that the cases may get. Raises SickNodeError, RunError."""
    site, first = target.cluster, planned[0]
    assert site is not None, "the launcher has its settings"
    settings = site.changed(first.point.slurm)
    job = _submitted(first, site, settings, target)
    names, run = job.names, job.run
    _say(console, f"preflight: {len(names)} nodes, job {job.intent.job_id}, in {run.path}")
    hidden = secret_values(os.environ)
    error = _waited(console, job, settings.poll_s)
    redact_logs(run, hidden)
    nodes = of_nodes(_figures(run), names, job.per_node)
    fraction = settings.preflight_fraction
    found = Preflight(
        written_at=datetime.now(UTC), nodes=nodes, fraction=fraction,
        sick=sick(nodes, fraction), error=error and without_values(error, hidden),
    )  # fmt: skip
    write_atomically(run.path / "preflight.json", found.model_dump_json(indent=1))
    for name, (what, unit) in WORDS.items():
        figures = [it for node in nodes if (it := getattr(node, name)) is not None]
        if figures:
            least, most = significant(min(figures)), significant(max(figures))
            _say(console, f"  {what}: {least} to {most} {unit}")
    reasons = [f"{name}: {why}" for name, why in found.sick.items()]
    reasons += [found.error] if found.error else []
    if reasons:
        told = "; ".join(reasons)
        message = f"the preflight stops the sweep: {told}. Leave nodes out with --slurm exclude=…"
        raise SickNodeError(visible(f"{message} ({run.path})"))


def _say(console: Console, line: str) -> None:
    console.print(visible(line), markup=False)


def _submitted(
    first: Planned, site: SlurmSettings, settings: SlurmSettings, target: ExecutionTarget
) -> _Job:
    """The job, on all nodes, in the image of the first case."""
    names, per_node = nodes_of(settings), settings.gpus_per_node or 1
    run = new_directory("preflight", target.output / FOLDER)
    point = _point(first.point, settings, names)
    backend = target.backends[point.case.framework]
    python = backend.command(first.point, run).python
    (run.path / "figures").mkdir()
    command = Command(
        "runner.node_check", (str((run.path / "figures").absolute()),), per_node, python=python
    )
    intent = intent_of(replace(first, point=point), target)
    write_atomically(run.job, intent.model_dump_json(indent=1))
    write_atomically(run.job_script, slurm.script(point, site, command, run, intent))
    intent = intent.model_copy(update={"job_id": submit(run)})
    write_atomically(run.job, intent.model_dump_json(indent=1))
    return _Job(run, intent, names, per_node)


def _point(first: RunSpec, settings: SlurmSettings, names: Sequence[str]) -> RunSpec:
    """A case as the first one, of all nodes and a short time."""
    case = first.case.model_copy(update={"num_gpus": len(names) * (settings.gpus_per_node or 1)})
    on_nodes = settings.changed(SlurmSettings(
        nodelist=",".join(names), requeue=False,
        # Others have a minute to leave their figures, so that it is known who did not.
        srun_args=(*settings.srun_args, "--kill-on-bad-exit=0"),
    ))  # fmt: skip
    return replace(first, name="preflight", case=case, slurm=on_nodes, timeout_s=LIMIT_S)


def _waited(console: Console, job: _Job, poll_s: float) -> str | None:
    """Wait for the end of a job; why it failed, where it did. Ctrl-C cancels it."""
    slurm_, without_since, intent, said = Slurm(), None, job.intent, ""
    try:
        while True:
            now, known = time.monotonic(), slurm_.jobs([intent.name])
            end, told = end_of(job.run), seen(known or {}, intent, started_as(job.run))
            state = f"  {told.state.lower()} {told.reason}".removesuffix(" None") if told else said
            if state != said:
                _say(console, state)
                said = state
            if known is not None:
                without_since = (without_since or now) if is_without(end, told) else None
                without_s = now - without_since if without_since else 0
                if found := ending(intent, end, told, without_s):
                    break
            time.sleep(poll_s)
    except KeyboardInterrupt:
        cancel([intent.job_id] if intent.job_id else [])
        raise
    exit_code, why = found
    if exit_code == 0:
        return None
    return (why or diagnose(exit_code, (), 0, log_lines(job.run))).error


def _figures(run: RunDir) -> list[RankFigures]:
    found = []
    for file in sorted(Path(run.path / "figures").glob("*.json")):
        try:
            found.append(read_json(file, RankFigures))
        except RunDirError:  # a process was killed while it wrote
            continue
    return found
