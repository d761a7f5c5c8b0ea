"""From a parsed log to what is stored: a run with its steps, or the figures it prints. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import overload

import numpy as np

from perfdb import flops, picked, uneven, windows
from perfdb.content_hash import content_hash
from perfdb.db.rows import MeasuredRun, ResultRow, RunRow, StepRow
from perfdb.ended import WITHHELD
from perfdb.formats import ParsedLog, Reading, batch
from perfdb.formats.ending import WINDOW
from perfdb.formats.numbers import positive
from perfdb.formats.piecewise import by_rank, pieces
from perfdb.formats.readings import Column, Floats, Ints, Readings
from perfdb.metrics import EMITTED
from perfdb.picked import Picked
from perfdb.record import Case, Figures, Origin, Outcome, Release

KEPT = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu")
"""Those of EMITTED that are stored with each step."""

_TOLD = (Outcome.INCOMPLETE, Outcome.NO_DATA, Outcome.NAN_LOSS, Outcome.NAN_GRAD_NORM)
"""Outcomes that the log's own error explains best; the others' errors are lines of a program."""

_EARLIER = "of an earlier attempt"
_RESTARTED = re.compile(rf"(\d+)\D* {_EARLIER}$")


@dataclass(frozen=True)
class LogRun:
    """What a log is of, under which id its run is stored, and the hash of all it was read from."""

    case: Case
    release: Release
    run_id: str
    content: str
    averages: bool = False
    """Whether its format is one of those in `perfdb.formats.AVERAGES`."""
    notes: tuple[str, ...] = ()
    """What the files beside the log say of its figures."""


def window_of(log: ParsedLog, asked: windows.Window | None) -> windows.Window:
    """The steps to take figures over: those asked for, else those that the format names."""
    return asked or windows.named(log.window or WINDOW)


def measured(log: ParsedLog, of: LogRun, window: windows.Window) -> MeasuredRun:
    """A run with its steps and its one result, by the same arithmetic as a run directory's."""
    log = batch.with_tokens(log, of.case.sequence_length)
    within = picked.of(log.readings, window, averages=of.averages, restarts=log.restarts)
    outcome, withheld = judged(log)
    identity = {"case": of.case.key, "release": of.release.key, "run": of.run_id}
    said = {"files": of.content, "case": of.case.model_dump(mode="json"), "window": window.name}
    content = content_hash(said | {"release": of.release.key})
    result = ResultRow(
        case=of.case,
        release=of.release,
        key=content_hash(identity | {"origin": Origin.MEASURED}),
        content_hash=content,
        origin=Origin.MEASURED,
        outcome=outcome,
        withheld=withheld,
        formula_version=flops.FORMULA_VERSION,
        notes=(*_notes(log), *filter(None, [log.changed_settings]), *of.notes),
    )
    if withheld is None:
        result = picked.with_figures(result, within, window)
        result = uneven.rated(result, within.lines, within.spans)
    if result.withheld is None:
        result = replace(result, emitted=emitted(log, window, within, of.case))
    run = _run_row(log, of.run_id, result, within)
    return MeasuredRun(run, StepRows(Readings.of(log.readings)), result)


def emitted(
    log: ParsedLog, window: windows.Window, within: Picked, case: Case
) -> Mapping[str, float]:
    """What the program itself says of a window's steps, beside what is computed of them.

    What its steps print, else the average that the log ends with where that is over the same
    window. A rate of 0 is not known.
    """
    same = within.lines and window.name == log.window
    said = log.emitted.model_dump() if same else {}
    said |= rates(within, EMITTED, case)
    return {field: value for field, value in said.items() if positive(value)}


def rates(within: Picked, fields: Sequence[str], case: Case) -> Mapping[str, float]:
    """Of each rate that some lines print, the median over these; a rate of 0 is not known.

    Tokens/s of steps of many lengths are over all of their tokens, as those computed of them.
    """
    found = {name: _median(within.lines.column(name), within.spans) or 0.0 for name in fields}
    if uneven.first(within.lines, case) is not None:
        found["tokens_per_sec_per_gpu"] = uneven.printed(within.lines, within.spans) or 0.0
    return {field: value for field, value in found.items() if positive(value)}


def _median(rate: Column, spans: Ints) -> float | None:
    def printed() -> Iterator[tuple[Floats, Ints]]:
        for values, known, some in pieces(rate.values, rate.known, spans):
            is_rate = _positive(Column(values, known)).known
            yield values[is_rate], some[is_rate]

    num_steps = sum(int(some.sum()) for _, some in printed())
    if not num_steps:
        return None
    one_each = all(some.max(initial=1) == 1 for _, some in printed())
    median = windows.median if one_each else partial(windows.decile, 5)
    return median(num_steps, by_rank(printed))


@dataclass(frozen=True, eq=False)
class StepRows(Sequence[StepRow]):
    """The rows of a log's steps, of which there may be millions: each is made when it is read."""

    readings: Readings

    def __len__(self) -> int:
        return len(self.readings)

    @overload
    def __getitem__(self, place: int) -> StepRow: ...

    @overload
    def __getitem__(self, place: slice) -> "StepRows": ...

    def __getitem__(self, place: int | slice) -> "StepRow | StepRows":
        if isinstance(place, slice):
            return StepRows(self.readings[place])
        start = range(len(self))[place]
        return next(iter(self[start : start + 1]))

    def __iter__(self) -> Iterator[StepRow]:
        for some in self.readings.parts():
            yield from map(_step_row, _storable(some))


def _storable(readings: Readings) -> Readings:
    """Steps with the rates that were printed beside them; what no column holds is None."""
    rules = {"loss": _finite, "grad_norm": _finite, **dict.fromkeys(KEPT, _positive)}
    known = {name: rules[name](one) for name, one in readings.columns.items() if name in rules}
    return readings.with_columns(**known)


def _finite(column: Column) -> Column:
    return Column(column.values, column.known & np.isfinite(column.values))


def _positive(column: Column) -> Column:
    """A rate of 0 is not known."""
    finite = _finite(column)
    return Column(finite.values, finite.known & (finite.values > 0))


def _step_row(reading: Reading) -> StepRow:
    return StepRow(
        step=reading.step,
        step_time_s=reading.step_time_s,
        step_time_min_s=None,
        loss=reading.loss,
        grad_norm=reading.grad_norm,
        tokens=reading.tokens,
        peak_memory_bytes=reading.peak_memory_bytes,
        skipped=reading.skipped,
        source_line=reading.line,
        tokens_per_sec_per_gpu=reading.tokens_per_sec_per_gpu,
        model_tflops_per_sec_per_gpu=reading.model_tflops_per_sec_per_gpu,
    )


def judged(log: ParsedLog) -> tuple[Outcome, str | None]:
    """How the run ended, by its log, and why it has no figures if it did not finish."""
    outcome = log.outcome or Outcome.INCOMPLETE
    if outcome is Outcome.FINISHED:
        return outcome, None
    told = _plain(log.error) if outcome in _TOLD else None
    return outcome, told or WITHHELD[outcome]


def printed(log: ParsedLog, of: LogRun) -> ResultRow:
    """A result of a file that sums up, with its figures as they were printed.

    It is known by its bytes, as a run is: another file of the same case is a repeat of it.
    """
    outcome = log.outcome or Outcome.INCOMPLETE
    finished = outcome is Outcome.FINISHED
    withheld = None if finished else _plain(log.error) or WITHHELD[outcome]
    figures = printed_figures(log).model_dump(mode="json")
    peak = log.peak_memory_bytes if finished else None
    said = {
        "case": of.case.key,
        "release": of.release.key,
        "figures": figures,
        "window": log.window,
        "withheld": withheld,
        "extras": log.extras,
        **({"peak_memory_bytes": peak} if peak else {}),
    }
    return ResultRow(
        case=of.case,
        release=of.release,
        key=content_hash({"file": of.run_id, "origin": Origin.PUBLISHED}),
        content_hash=content_hash(said),
        origin=Origin.PUBLISHED,
        outcome=outcome,
        withheld=withheld,
        source_line=log.emitted_line,
        window=log.window,
        extras=log.extras,
        peak_memory_bytes=peak,
        **figures,
    )


def printed_figures(log: ParsedLog) -> Figures:
    """What a file that sums up states: of a run that did not finish, nothing."""
    return log.emitted if log.outcome is Outcome.FINISHED else Figures()


def _notes(log: ParsedLog) -> tuple[str, ...]:
    """What holds of the run's steps, whatever the window."""
    if log.restarted_at is None:
        return ()
    earliest = "" if log.restarted_from is None else f"one of the steps {log.restarted_from} to "
    at = f"{earliest or 'step '}{log.restarted_at}"
    if log.goes_on:
        return (f"the program begins again at {at}: the steps before it are {_EARLIER}",)
    message = (
        f"the log goes back to {at} (a restart, or several ranks in one log): "
        f"the steps before it may be {_EARLIER}"
    )
    return (message,)


def restarted_at(notes: Sequence[str]) -> int | None:
    """The first step of the last attempt, by the notes of a result; None of one attempt."""
    found = next(filter(None, map(_RESTARTED.search, notes)), None)
    return int(found[1]) if found else None


def _run_row(log: ParsedLog, run_id: str, result: ResultRow, within: Picked) -> RunRow:
    last = log.readings[-1].step if log.readings else 0
    starts = [within.lines[0].step - int(within.spans[0])] if within.lines else []
    starts += [within.skips.first - 1] if within.skips else []
    warmup = min(starts, default=last)
    return RunRow(
        run_id=run_id,
        recipe=None,
        outcome=result.outcome,
        error=_plain(log.error),
        exit_code=None,
        attempt=1,
        started_at=None,
        ended_at=None,
        warmup_steps=warmup,
        measured_steps=max(0, (log.planned_steps or last) - warmup),
        environment=_environment(log),
        command=(),
        summary=None,
        content_hash=result.content_hash,
    )


def _environment(log: ParsedLog) -> Mapping[str, object]:
    """What is known of the machine, by the fields of perfdb.record.Environment."""
    said = {"variables": dict(log.environment), "gpu_memory_bytes": log.gpu_memory_bytes}
    return {name: value for name, value in said.items() if value}


def _plain(text: str | None) -> str | None:
    """Text without the character that PostgreSQL refuses."""
    return text.replace("\0", "\ufffd") if text else None
