"""Train one small model under different layouts: all must give the same losses and grad norms."""

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from perfdb import hardware, recipe, units
from perfdb.errors import Diagnostic, InputError
from perfdb.record import Outcome, Release
from perfdb.run_record import StepRecord
from runner.backends import megatron_core
from runner.launchers import local
from runner.plan import PlanAction, Planned
from runner.progress import watching
from runner.run import ExecutionTarget, execute

STEPS = 4
TOLERANCE = 1e-5
"""A relative difference. Another order of sums gives 1e-6 in float32, a wrong gradient far more."""

TEMPLATE = """\
name: selftest-{name}
framework: megatron-core
model: {model}
systems: [{system}]
num_gpus: {processes}
precision: fp32
sequence_length: 64
global_batch_size: 4
micro_batch_size: 1
options: {{init: layout_invariant}}
warmup_steps: 0
measured_steps: 4
timeout_s: 300
{layout}
"""


@dataclass(frozen=True)
class SelftestLayout:
    """A layout of the model; `fields` are written as in a recipe."""

    name: str
    model: str
    processes: int
    fields: str = ""


LAYOUTS = (
    SelftestLayout("single", "gpt-tiny", 1),
    SelftestLayout("DP2", "gpt-tiny", 2),
    SelftestLayout("TP2-SP", "gpt-tiny", 2, "tensor_parallel: 2\nsequence_parallel: true"),
    SelftestLayout("PP2", "gpt-tiny", 2, "pipeline_parallel: 2"),
    SelftestLayout("PP2-VP2", "gpt-tiny", 2, "pipeline_parallel: 2\nvirtual_pipeline: 2"),
    SelftestLayout("CP2", "gpt-tiny", 2, "context_parallel: 2"),
    SelftestLayout("TP2-PP2", "gpt-tiny", 4, "tensor_parallel: 2\npipeline_parallel: 2"),
    SelftestLayout("MoE-single", "moe-tiny", 1),
    SelftestLayout("MoE-EP2", "moe-tiny", 2, "expert_parallel: 2"),
)


@dataclass(frozen=True)
class LayoutResult:
    """The result of a layout: its largest relative difference from the reference, if it has one."""

    layout: str
    processes: int
    agrees: bool
    difference: float | None
    loss: float | None
    reason: str


TABLE = ("SelftestLayout", "Processes", "Verdict", "Largest difference", "Loss, step 4", "Reason")
"""The columns of the report, of which `cells` makes a row."""


def cells(row: LayoutResult) -> tuple[object, ...]:
    """The row of a layout in the table of the report."""
    return (
        row.layout,
        row.processes,
        "same" if row.agrees else "WRONG",
        f"{row.difference:.1e}" if row.difference is not None else None,
        units.significant(row.loss, 7),
        row.reason,
    )


def check(console: Console, max_processes: int) -> list[LayoutResult]:
    """Run every layout that fits, each compared with the first layout of its model."""
    found = hardware.detect()
    if found.system is None or megatron_core.version() is None:
        missing = found.reason if found.system is None else "megatron-core is not installed"
        raise InputError(Diagnostic("selftest", missing, remedy="pip install 'perfdb[mcore]'"))
    limit = min(max_processes, found.gpu_count) if found.gpu_count else max_processes
    with tempfile.TemporaryDirectory(prefix="perfdb-selftest-") as folder:
        target = ExecutionTarget(Path(folder), found, local)
        return list(
            _verified(console, target, [layout for layout in LAYOUTS if layout.processes <= limit])
        )


def _verified(
    console: Console, target: ExecutionTarget, layouts: Sequence[SelftestLayout]
) -> Iterator[LayoutResult]:
    references: dict[str, tuple[StepRecord, ...]] = {}
    for number, layout in enumerate(layouts, start=1):
        planned = _planned(layout, target)
        with watching(console, planned, f"[{number}/{len(layouts)}]") as watcher:
            run, record = execute(planned, target, watcher)
        if record.outcome is not Outcome.FINISHED:
            yield LayoutResult(layout.name, layout.processes, False, None, None, record.error or "")
            continue
        steps = run.read_steps()
        reference = references.setdefault(layout.model, steps)
        yield _compared(layout, steps, reference)


def _planned(layout: SelftestLayout, target: ExecutionTarget) -> Planned:
    text = TEMPLATE.format(
        name=layout.name.lower(), model=layout.model, system=target.machine.system,
        processes=layout.processes, layout=layout.fields,
    )  # fmt: skip
    path = target.output / f"{layout.name}.yaml"
    path.write_text(text)
    [file] = recipe.load([path])
    release = Release(framework=megatron_core.NAME, version=megatron_core.version())
    return Planned(file, file.points[0], release, 1, PlanAction.RUN, "")


def _compared(
    layout: SelftestLayout, steps: Sequence[StepRecord], reference: Sequence[StepRecord]
) -> LayoutResult:
    difference = largest_difference(steps, reference)
    agrees = difference <= TOLERANCE
    reason = "" if agrees else f"differs by more than {TOLERANCE:g}"
    return LayoutResult(layout.name, layout.processes, agrees, difference, steps[-1].loss, reason)


def largest_difference(steps: Sequence[StepRecord], reference: Sequence[StepRecord]) -> float:
    """The largest relative difference of a loss or gradient norm; infinite if one is missing."""
    if len(steps) != STEPS or len(reference) != STEPS:
        return math.inf
    pairs = [
        (getattr(ours, name), getattr(theirs, name))
        for ours, theirs in zip(steps, reference, strict=True)
        for name in ("loss", "grad_norm")
    ]
    return max(_relative(ours, theirs) for ours, theirs in pairs)


def _relative(ours: float | None, theirs: float | None) -> float:
    if ours is None or theirs is None or not (math.isfinite(ours) and math.isfinite(theirs)):
        return math.inf
    return abs(ours - theirs) / abs(theirs) if theirs else abs(ours)
