"""The iteration lines of Megatron-Core's training loop, which several programs print.

Iterations count from 1. A time is the mean over the log interval. A loss that is not a number is
left out of the line. Source of the format: megatron/training/training.py, `training_log`.
"""

import math
import re
from dataclasses import replace

import numpy as np

from perfdb.errors import Problem
from perfdb.formats import settings
from perfdb.formats.base import ParsedLog
from perfdb.formats.ending import Account, training_log
from perfdb.formats.numbers import MOST, NUMBER, WHOLE, count, size_bytes
from perfdb.formats.piped import Syntax
from perfdb.formats.readings import Column, Columns, Flags, Readings
from perfdb.formats.scan import Scan
from perfdb.formats.settings import Settings
from perfdb.formats.steplines import StepLines
from perfdb.formats.steps import Settled, interval_note, numbered, settle_columns

_ITERATION, _PLANNED, _GBS = "iteration", "planned iterations", "global batch size"
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
    counters=(_ITERATION, _PLANNED),
    fields=(_TIME, _TFLOPS, _TOKENS, _GBS, _LOSS, _NORM, _SKIPPED, _NAN),
    required=(_ITERATION, _TIME),
    facts=(_PLANNED, _GBS, _NAN),
    last=_NAN,
)
STEP_LINE = re.compile(rb"iteration +\d+/ *\d+ *\| *consumed samples:")
WINDOW = "skip_warmup(10)"
_DONE = re.compile(r"\[after training is done\]|exiting program at iteration")
_MEMORY = re.compile(r"\(after (\d{1,9}) iterations\) memory \((MB|GB)\) \|([^\n]*)")
_PEAK = re.compile(rf"max[ \-]allocated(?:-gigabytes|-megabytes)?: ({NUMBER}){WHOLE}")
_UNITS = {"MB": 2.0**20, "GB": 1e9}
"""Megatron-LM's MB are 1024² bytes, Megatron-Bridge's GB 1000³."""


def readings(columns: Columns) -> Readings:
    """The iterations of a log as steps."""
    skips = columns.of(_SKIPPED)
    skipped = skips.known & (skips.values != 0)
    return Readings(
        columns.lines,
        numbered(columns.of(_ITERATION), base=1),
        columns.of(_TIME).values / 1000,
        {
            "loss": _losses(columns, skipped),
            "grad_norm": columns.of(_NORM),
            "skipped": Column.full(skipped),
            "model_tflops_per_sec_per_gpu": columns.of(_TFLOPS),
            "tokens_per_sec_per_gpu": columns.of(_TOKENS),
        },
    )


def _losses(columns: Columns, skipped: Flags) -> Column:
    """The losses; one left out of a line that is whole, and of no skipped step, is no number."""
    loss, is_whole = columns.of(_LOSS), columns.of(_NAN).known
    lost = ~loss.known & is_whole & ~skipped
    return Column(np.where(lost, math.nan, loss.values), loss.known | lost)


def iterations(where: str, printed: Readings, lines: StepLines) -> Settled:
    """The iterations of a log, each once, with notes on what their lines mean."""
    steps = settle_columns(where, printed, lines.problems)
    kept = Readings.of(steps.readings)
    loss = kept.column("loss")
    if not lines.seen[_NAN] - {0.0} and not (loss.known & np.isfinite(loss.values)).any():
        # No line has a loss, and none counts an iteration without one: it was not logged.
        kept = kept.with_columns(loss=Column.empty(len(kept)))
    notes = (*steps.notes, *interval_note(where, kept), *_batch_note(where, lines))
    return replace(steps, readings=kept, notes=notes)


def _batch_note(where: str, lines: StepLines) -> tuple[Problem, ...]:
    sizes = sorted(lines.seen[_GBS])
    if len(sizes) < 2:
        return ()
    message = f"the global batch size changes from {sizes[0]:g} to {sizes[-1]:g}: none is stated"
    return (Problem(where, message),)


def log_of(
    framework: str, said: Settings, scan: Scan, lines: StepLines, steps: Settled
) -> ParsedLog:
    """What a log says of its run: its settings, its iterations, and how it ended."""
    known = settings.batch(lines.only(_GBS))
    configuration = settings.configuration(said, framework=framework, **known)
    planned = count(lines.last.get(_PLANNED))
    account = Account(planned, scan.epilogue, bool(_DONE.search(scan.epilogue)))
    return training_log(configuration, _with_memory(steps, scan.preamble), account, WINDOW)


def _with_memory(steps: Settled, preamble: str) -> Settled:
    """The steps with the peak memory that is told of beside the log: the most of any rank's."""
    peaks: dict[int, int] = {}
    for step, unit, amounts in _MEMORY.findall(preamble):
        found = _PEAK.search(amounts)
        size = size_bytes(found[1], _UNITS[unit]) if found else None
        peaks[int(step)] = max(size or 0, peaks.get(int(step), 0))
    kept = Readings.of(steps.readings)
    memory = kept.column("peak_memory_bytes")
    values, known = memory.values.astype(np.int64), memory.known.copy()
    for step, peak in peaks.items():
        place = int(np.searchsorted(kept.step, min(step, MOST)))
        if peak and place < len(kept) and kept.step[place] == step:
            values[place], known[place] = peak, True
    return replace(steps, readings=kept.with_columns(peak_memory_bytes=Column(values, known)))
