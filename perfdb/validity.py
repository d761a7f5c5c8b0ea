"""Whether a run is whole and its parts agree: how it ended, and why it has no figures.

Used by the runner before it counts a run as done, and by ingest. All functions are pure.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Final

from perfdb import catalog
from perfdb.aggregation import LONGEST_STEP_S, SHORTEST_STEP_S
from perfdb.errors import Diagnostic
from perfdb.record import Case, Note, NoteCode, Outcome
from perfdb.run_record import NodeGroup, RunRecord, WorkerConfiguration, WorkerSummary
from perfdb.rundir import StepsRead, Worker

_PLANNED: Final = ("warmup_steps", "measured_steps", "seed")
"""What a record holds of its run next to the case, and a worker gets as arguments, too."""
_ARGUMENTS: Final = frozenset((*_PLANNED, *Case.model_fields))


def judged(record: RunRecord, steps: StepsRead, worker: Worker) -> tuple[Outcome, Note | None]:
    """How a run ended, and why it has no figures if it has none."""
    if broken := not_finite(steps):
        return broken
    if record.outcome is None:
        return Outcome.INCOMPLETE, Note(NoteCode.CUT_OFF)
    if record.outcome is not Outcome.FINISHED:
        return record.outcome, run_ended(record.outcome)
    if conflict := contradiction(record, steps, worker):
        return Outcome.FAILED, conflict
    gap = _gap(record, steps)
    return (Outcome.INCOMPLETE, gap) if gap else (Outcome.FINISHED, None)


def unlike_nodes(nodes: Sequence[NodeGroup]) -> tuple[Note, ...]:
    """In what the nodes of a run differ from one another, with the number of nodes of each value.

    None are returned where all are equal.
    """
    differing = []
    for name in nodes[0].facts if nodes else ():
        counts: Counter[str] = Counter()
        for group in nodes:
            counts[_shown(group.facts[name])] += group.num_nodes
        if len(counts) > 1:
            values = ", ".join(f"{value} ({count})" for value, count in counts.most_common())
            differing.append(f"{name} {values}")
    if not differing:
        return ()
    return (Note(NoteCode.UNLIKE_NODES, {"differences": "; ".join(differing)}),)


def _shown(fact: object) -> str:
    text = " + ".join(map(str, fact)) if isinstance(fact, tuple) else str(fact)
    return "unknown" if fact is None else text or "none"


def run_ended(outcome: Outcome) -> Note:
    """The note that a run has no figures because it ended so."""
    return Note(NoteCode.RUN_ENDED, {"outcome": outcome.value})


def not_finite(steps: StepsRead) -> tuple[Outcome, Note] | None:
    """The outcome and the reason of the first loss or gradient norm that is not finite."""
    losses, norms = steps.columns["loss"], steps.columns["grad_norm"]
    if all(map(math.isfinite, filter(None, chain(losses, norms)))):
        return None
    for step, *numbers in zip(steps.columns["step"], losses, norms, strict=True):
        for number, outcome, code in zip(numbers, *_OF_NOT_FINITE, strict=True):
            if number is not None and not math.isfinite(number):
                return outcome, Note.of(code, value=f"{number:g}", step=step)
    return None


_OF_NOT_FINITE: Final = (
    (Outcome.NAN_LOSS, Outcome.NAN_GRAD_NORM),
    (NoteCode.LOSS_NOT_FINITE, NoteCode.GRAD_NORM_NOT_FINITE),
)


def _gap(record: RunRecord, steps: StepsRead) -> Note | None:
    """How the steps are not the planned ones, each once and in order; None if they are."""
    for expected, step in enumerate(steps.columns["step"], start=1):
        if step > expected:
            return Note(NoteCode.MISSING_STEP, {"step": expected})
        if step < expected:
            return Note(NoteCode.REPEATED_STEP, {"step": step})
    num_steps, planned = len(steps), record.warmup_steps + record.measured_steps
    if num_steps < planned:
        return Note(NoteCode.TOO_FEW_STEPS, {"num_steps": num_steps, "planned": planned})
    return None


def damage(where: str, read: StepsRead) -> Diagnostic | None:
    """Why a steps file cannot be used; None if it can, also if a crash cut off its last line.

    It cannot if a line that is not the last is unreadable, or if a step has impossible values.
    """
    last = read.lines[-1] if read.lines else 0
    unreadable = [problem for problem in read.problems if (problem.line or 0) < last]
    if unreadable or len(read.problems) > 1:
        return (unreadable or read.problems)[0]
    wrong = [
        (line, name, f"{seconds:g} seconds is no duration of a step")
        for name in ("step_time_s", "step_time_min_s")
        for line, seconds in zip(read.lines, read.columns[name], strict=True)
        if seconds is not None and not SHORTEST_STEP_S <= seconds <= LONGEST_STEP_S
    ]
    wrong += [
        (line, name, f"{count} is less than nothing")
        for name in ("tokens", "peak_memory_bytes")
        for line, count in zip(read.lines, read.columns[name], strict=True)
        if count is not None and count < 0
    ]
    if not wrong:
        return None
    line, name, message = min(wrong, key=itemgetter(0))
    return Diagnostic(where, message, field=name, line=line)


def contradiction(record: RunRecord, steps: StepsRead, worker: Worker) -> Note | None:
    """How the worker or the steps contradict the record; None if they agree.

    A figure of such a run would be stored for what it was not measured on.
    """
    found: list[Note] = []
    if worker.summary:
        found += _of_summary(record, worker.summary)
    if worker.configuration:
        found += _of_arguments(record, worker.configuration)
    return next(iter(found), None) or next(_of_steps(record, steps), None)


def _of_summary(record: RunRecord, summary: WorkerSummary) -> Iterator[Note]:
    system, release = record.case.system, record.release
    on_cpu = summary.cpu_shim or summary.device == "cpu"
    gpu = catalog.system_of_gpu(summary.device)
    used = "cpu" if on_cpu else gpu and gpu.name
    if system in catalog.systems() and system != used:
        device = "the CPU" if on_cpu else summary.device
        yield Note(NoteCode.OTHER_DEVICE, {"device": device, "system": system})
    ran, version = summary.versions.get(release.framework), release.version
    if ran and version and ran != version:
        params = {"framework": release.framework, "ran": ran, "version": version}
        yield Note(NoteCode.OTHER_VERSION, params)
    if summary.world_size != record.case.num_gpus:
        sizes = {"world_size": summary.world_size, "num_gpus": record.case.num_gpus}
        yield Note(NoteCode.OTHER_WORLD_SIZE, sizes)


def _of_arguments(record: RunRecord, configuration: WorkerConfiguration) -> Iterator[Note]:
    for name, value in configuration.fields.items():
        if name not in _ARGUMENTS:
            continue
        expected = getattr(record if name in _PLANNED else record.case, name)
        if value != (list(expected) if isinstance(expected, tuple) else expected):
            params = {"name": name, "value": str(value), "expected": str(expected)}
            yield Note(NoteCode.OTHER_ARGUMENT, params)


def _of_steps(record: RunRecord, steps: StepsRead) -> Iterator[Note]:
    size, length = record.case.global_batch_size, record.case.sequence_length
    numbers, tokens = steps.columns["step"], steps.columns["tokens"]
    if odd := set(tokens) - {None, size * length}:
        step, count = next(it for it in zip(numbers, tokens, strict=True) if it[1] in odd)
        params = {"step": step, "tokens": count}
        sizes = {"global_batch_size": size, "sequence_length": length}
        yield Note(NoteCode.OTHER_TOKENS, {**params, **sizes})
    planned = record.warmup_steps + record.measured_steps
    last = max(numbers, default=0)
    if last > planned:
        yield Note(NoteCode.UNPLANNED_STEP, {"step": last, "planned": planned})


def model_shape(name: str, configuration: WorkerConfiguration | None) -> Note | None:
    """How the model that a worker trained is not the catalog's of this name.

    None if it is, or if one of the two is not known.
    """
    model, shape = catalog.models().get(name), configuration and configuration.model
    if model is None or not isinstance(shape, Mapping):
        return None
    known = model.model_dump()
    differences = ", ".join(
        f"{key} {value}, not {known[key]}"
        for key, value in shape.items()
        if key in known and value != known[key]
    )
    return Note(NoteCode.MODEL_SHAPE, {"differences": differences}) if differences else None
