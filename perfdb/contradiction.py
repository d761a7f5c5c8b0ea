"""Whether the parts of a run say the same of it: its record, its worker and its steps. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from perfdb import catalog
from perfdb.record import Case, RunRecord, StepRecord, WorkerConfiguration, WorkerSummary
from perfdb.rundir import Worker

_PLANNED: Final = ("warmup_steps", "measured_steps", "seed")
"""What a record says of its run beside the case, and a worker is told, too."""


def contradiction(record: RunRecord, steps: Sequence[StepRecord], worker: Worker) -> str | None:
    """What the worker or the steps say that the record does not; None where they agree.

    A figure of such a run would be stored for what it was not measured on.
    """
    return next(_contradictions(record, steps, worker), None)


def _contradictions(
    record: RunRecord, steps: Sequence[StepRecord], worker: Worker
) -> Iterator[str]:
    if worker.summary:
        yield from _at_the_end(record, worker.summary)
    if worker.configuration:
        yield from _told(record, worker.configuration)
    yield from _measured(record, steps)


def _at_the_end(record: RunRecord, summary: WorkerSummary) -> Iterator[str]:
    system, release = record.case.system, record.release
    if system in catalog.systems() and system != _system_of(summary):
        yield f"the worker computed on {_device(summary)}, which is not {system}"
    version = summary.versions.get(release.framework)
    if version and release.version and version != release.version:
        yield f"the worker ran {release.framework} {version}, not {release.version}"
    if summary.world_size != record.case.num_gpus:
        yield f"the worker had {summary.world_size} ranks, not {record.case.num_gpus}"


def _told(record: RunRecord, configuration: WorkerConfiguration) -> Iterator[str]:
    for name, told in configuration.fields.items():
        if name in Case.model_fields:
            said = getattr(record.case, name)
        elif name in _PLANNED:
            said = getattr(record, name)
        else:
            continue
        if told != (list(said) if isinstance(said, tuple) else said):
            yield f"the worker was told {name} {told}, not {said}"


def _measured(record: RunRecord, steps: Sequence[StepRecord]) -> Iterator[str]:
    size, length = record.case.global_batch_size, record.case.sequence_length
    for step in steps:
        if step.tokens is not None and step.tokens != size * length:
            yield f"step {step.step} is of {step.tokens} tokens, not {size} × {length}"
            break
    planned = record.warmup_steps + record.measured_steps
    last = max((step.step for step in steps), default=0)
    if last > planned:
        yield f"there is a step {last}, and {planned} were planned"


def _system_of(summary: WorkerSummary) -> str | None:
    if _on_cpu(summary):
        return "cpu"
    known = catalog.system_of_gpu(summary.device)
    return known.name if known else None


def _device(summary: WorkerSummary) -> str:
    return "the CPU" if _on_cpu(summary) else summary.device


def _on_cpu(summary: WorkerSummary) -> bool:
    return summary.cpu_shim or summary.device == "cpu"
