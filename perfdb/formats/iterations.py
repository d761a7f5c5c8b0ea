"""The iteration lines of Megatron-Core's training loop, which several programs print.

Iterations count from 1. A time is the mean over the log interval. A loss that is not a number is
left out of the line. Source of the format: megatron/training/training.py, `training_log`.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfdb.errors import Problem
from perfdb.formats.base import Reading
from perfdb.formats.numbers import NUMBER, WHOLE, count, size_bytes
from perfdb.formats.piped import Columns, StepLines, Syntax
from perfdb.formats.steps import Settled, interval_note, numbered, settle, together

ITERATION, PLANNED, GBS = "iteration", "planned iterations", "global batch size"
_TIME, _TFLOPS, _TOKENS = (
    "elapsed time per iteration (ms)",
    "throughput per GPU (TFLOP/s/GPU)",
    "tokens per GPU (tokens/s/GPU)",
)
_LOSS, _NORM, _SKIPPED, _NAN = (
    "lm loss", "grad norm", "number of skipped iterations", "number of nan iterations",
)  # fmt: skip
SYNTAX = Syntax(
    marker=b"consumed samples:",
    start=r"iteration +(\d+)/ *(\d+)",
    counters=(ITERATION, PLANNED),
    fields=(_TIME, _TFLOPS, _TOKENS, GBS, _LOSS, _NORM, _SKIPPED, _NAN),
    required=(ITERATION, _TIME),
    facts=(PLANNED, GBS, _NAN),
)
STEP_LINE = re.compile(rb"iteration +\d+/ *\d+ *\| *consumed samples:")
DONE = re.compile(r"\[after training is done\]|exiting program at iteration")
_MEMORY = re.compile(r"\(after (\d{1,9}) iterations\) memory \((MB|GB)\) \|([^\n]*)")
_PEAK = re.compile(rf"max[ \-]allocated(?:-gigabytes|-megabytes)?: ({NUMBER}){WHOLE}")
_UNITS = {"MB": 2.0**20, "GB": 1e9}
"""Megatron-LM's MB are 1024² bytes, Megatron-Bridge's GB 1000³."""


def planned(lines: StepLines) -> int | None:
    """How many iterations there were to be, by the last line."""
    return count(lines.last.get(PLANNED))


def readings(columns: Columns) -> Iterator[Reading]:
    """The iterations of a block as steps."""
    skipped = [bool(count) for count in columns.of(_SKIPPED)]
    return together(
        columns.lines,
        numbered(columns.of(ITERATION), base=1),
        [(milliseconds or 0) / 1000 for milliseconds in columns.of(_TIME)],
        loss=_losses(columns, skipped),
        grad_norm=columns.of(_NORM),
        skipped=skipped,
        model_tflops_per_sec_per_gpu=columns.of(_TFLOPS),
        tokens_per_sec_per_gpu=columns.of(_TOKENS),
    )


def _losses(columns: Columns, skipped: Sequence[bool]) -> list[float | None]:
    """The losses; one left out of a line that is whole, and of no skipped step, is no number."""
    whole = (count is not None for count in columns.of(_NAN))
    rows = zip(columns.of(_LOSS), whole, skipped, strict=True)
    return [
        math.nan if loss is None and is_whole and not is_skipped else loss
        for loss, is_whole, is_skipped in rows
    ]


def iterations(where: str, printed: Iterator[Reading], lines: StepLines) -> Settled:
    """The iterations of a log, each once, with notes on what their lines mean."""
    steps = settle(where, printed, lines.problems)
    kept = steps.readings
    if not lines.seen[_NAN] - {0.0} and not any(map(_has_loss, kept)):
        # No line has a loss, and none counts an iteration without one: it was not logged.
        kept = tuple(reading._replace(loss=None) for reading in kept)
    notes = (*steps.notes, *interval_note(where, kept), *_batch_note(where, lines))
    return replace(steps, readings=kept, notes=notes)


def _has_loss(reading: Reading) -> bool:
    return reading.loss is not None and math.isfinite(reading.loss)


def _batch_note(where: str, lines: StepLines) -> tuple[Problem, ...]:
    sizes = sorted(lines.seen[GBS])
    if len(sizes) < 2:
        return ()
    message = f"the global batch size changes from {sizes[0]:g} to {sizes[-1]:g}: none is stated"
    return (Problem(where, message),)


def with_memory(steps: Settled, preamble: str) -> Settled:
    """The steps with the peak memory that is told of beside the log: the most of any rank's."""
    peaks: dict[int, int] = {}
    for step, unit, amounts in _MEMORY.findall(preamble):
        found = _PEAK.search(amounts)
        size = size_bytes(found[1], _UNITS[unit]) if found else None
        peaks[int(step)] = max(size or 0, peaks.get(int(step), 0))
    told = tuple(
        reading._replace(peak_memory_bytes=peaks.get(reading.step) or reading.peak_memory_bytes)
        for reading in steps.readings[: max(peaks, default=0)]
    )
    return replace(steps, readings=(*told, *steps.readings[len(told) :]))
