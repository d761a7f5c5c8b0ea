"""Train one small model under different layouts: all must give the same losses and grad norms."""

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from perfdb import hardware, recipe
from perfdb.errors import Diagnostic, InputError
from perfdb.record import Outcome, Release
from perfdb.run_record import StepRecord
from runner.backends import BACKENDS, megatron_core
from runner.launchers import local
from runner.plan import ExecutionTarget, Planned
from runner.progress import watching
from runner.run import execute

STEPS = 4
TOLERANCE = 1e-5
"""A relative difference. Another order of sums gives 1e-6 in float32, a wrong gradient far more."""

RECIPE: Mapping[str, object] = {
    "framework": megatron_core.NAME,
    "precision": "fp32",
    "sequence_length": 64,
    "global_batch_size": 4,
    "micro_batch_size": 1,
    "options": {"init": "layout_invariant"},
    "warmup_steps": 0,
    "measured_steps": STEPS,
    "timeout_s": 300,
}
"""What all layouts share, as in a recipe."""

LAYOUTS: Mapping[str, Mapping[str, object]] = {
    "single": {"num_gpus": 1},
    "DP2": {"num_gpus": 2},
    "TP2-SP": {"num_gpus": 2, "tensor_parallel": 2, "sequence_parallel": True},
    "PP2": {"num_gpus": 2, "pipeline_parallel": 2},
    "PP2-VP2": {"num_gpus": 2, "pipeline_parallel": 2, "virtual_pipeline": 2},
    "CP2": {"num_gpus": 2, "context_parallel": 2},
    "TP2-PP2": {"num_gpus": 4, "tensor_parallel": 2, "pipeline_parallel": 2},
    "MoE-single": {"model": "moe-tiny", "num_gpus": 1},
    "MoE-EP2": {"model": "moe-tiny", "num_gpus": 2, "expert_parallel": 2},
}


@dataclass(frozen=True)
class LayoutResult:
    """The result of a layout: its largest relative difference from the reference, if it has one."""

    layout: str
    processes: int
    agrees: bool
    difference: float | None
    loss: float | None
    reason: str


def check(console: Console, max_processes: int) -> list[LayoutResult]:
    """Run every layout that fits, each compared with the first layout of its model.

    Raises InputError where this machine is unknown or Megatron-Core is not installed.
    """
    machine, version = hardware.detect(), megatron_core.version()
    if machine.system is None or version is None:
        missing = machine.reason if machine.system is None else "megatron-core is not installed"
        raise InputError(Diagnostic("selftest", missing, remedy="pip install 'perfdb[mcore]'"))
    limit = min(max_processes, machine.gpu_count) if machine.gpu_count else max_processes
    release = Release(framework=megatron_core.NAME, version=version)
    references: dict[str, tuple[StepRecord, ...]] = {}
    results = []
    with tempfile.TemporaryDirectory(prefix="perfdb-selftest-") as folder:
        target = ExecutionTarget(Path(folder), machine, local, BACKENDS)
        layouts = {
            name: {"model": "gpt-tiny", "systems": [machine.system], **fields}
            for name, fields in LAYOUTS.items()
            if int(str(fields["num_gpus"])) <= limit
        }
        for number, (name, fields) in enumerate(layouts.items(), start=1):
            path = target.output / f"{name}.yaml"  # JSON is YAML
            path.write_text(json.dumps({"name": f"selftest-{name.lower()}", **RECIPE, **fields}))
            [file] = recipe.load([path])
            planned = Planned(file, file.points[0], release)
            with watching(console, planned, f"[{number}/{len(layouts)}]") as watcher:
                run, record = execute(planned, target, watcher)
            processes = record.case.num_gpus
            if record.outcome is not Outcome.FINISHED:
                error = record.error or ""
                results.append(LayoutResult(name, processes, False, None, None, error))
                continue
            steps = run.read_steps()
            reference = references.setdefault(record.case.model, steps)
            difference = largest_difference(steps, reference)
            agrees = difference <= TOLERANCE
            reason = "" if agrees else f"differs by more than {TOLERANCE:g}"
            loss = steps[-1].loss
            results.append(LayoutResult(name, processes, agrees, difference, loss, reason))
    return results


def largest_difference(steps: Sequence[StepRecord], reference: Sequence[StepRecord]) -> float:
    """The largest relative difference of a loss or gradient norm; infinite if one is missing."""
    if len(steps) != STEPS or len(reference) != STEPS:
        return math.inf
    found = [0.0]
    for ours, theirs in zip(steps, reference, strict=True):
        for a, b in ((ours.loss, theirs.loss), (ours.grad_norm, theirs.grad_norm)):
            if a is None or b is None or not (math.isfinite(a) and math.isfinite(b)):
                return math.inf
            found.append(abs(a - b) / abs(b) if b else abs(a))
    return max(found)
