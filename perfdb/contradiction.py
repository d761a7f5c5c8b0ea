"""Whether a run's worker was where, and had what, the run's record says. Pure."""

from collections.abc import Iterator

from perfdb import catalog
from perfdb.record import RunRecord, WorkerSummary


def contradiction(record: RunRecord, summary: WorkerSummary) -> str | None:
    """What the worker says of itself that the record does not; None where they agree.

    A figure of such a run would be stored for a system or a release that it was not measured on.
    """
    return next(_contradictions(record, summary), None)


def _contradictions(record: RunRecord, summary: WorkerSummary) -> Iterator[str]:
    system, release = record.case.system, record.release
    if system in catalog.systems() and system != _system_of(summary):
        yield f"the worker computed on {_device(summary)}, which is not {system}"
    version = summary.versions.get(release.framework)
    if version and release.version and version != release.version:
        yield f"the worker ran {release.framework} {version}, not {release.version}"


def _system_of(summary: WorkerSummary) -> str | None:
    if _on_cpu(summary):
        return "cpu"
    known = catalog.system_of_gpu(summary.device)
    return known.name if known else None


def _device(summary: WorkerSummary) -> str:
    return "the CPU" if _on_cpu(summary) else summary.device


def _on_cpu(summary: WorkerSummary) -> bool:
    return summary.cpu_shim or summary.device == "cpu"
