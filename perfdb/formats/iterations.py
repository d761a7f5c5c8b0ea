"""The iteration lines of Megatron-Core's training loop, which several programs print.

Iterations count from 1. A time is the mean over the log interval. A loss that is not a number is
left out of the line. Source of the format: megatron/training/training.py, `training_log`.
"""

import math
import re
from bisect import bisect, bisect_left
from dataclasses import replace

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats import batch
from perfdb.formats.base import ParsedLog
from perfdb.formats.ending import Account, training_log
from perfdb.formats.numbers import NUMBER, count, size_bytes
from perfdb.formats.piecewise import Cells
from perfdb.formats.piped import Syntax
from perfdb.formats.readings import Column, Columns, Flags, Readings
from perfdb.formats.scan import Scan
from perfdb.formats.spans import interval_note
from perfdb.formats.steplines import StepLines
from perfdb.formats.steps import Settled, numbered, settle_columns, with_peaks
from perfdb.record import Outcome, PartialCase

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
    start=r"(?: ?\[[\d\-:. ]{8,40}\])? ?iteration *(\d+)/ *(\d+)",
    counters=(_ITERATION, _PLANNED),
    fields=(_TIME, _TFLOPS, _TOKENS, _GBS, _LOSS, _NORM, _SKIPPED, _NAN),
    required=(_ITERATION, _TIME),
    facts=(_PLANNED, _NAN),
    last=_NAN,
)
STEP_LINE = re.compile(rb"iteration[\s\d]+/[\s\d]+\|[^|]{0,80}consumed samples:")
DONE = re.compile(
    r"\[after training is done\]|exiting program (?:at iteration|after [\d.]+ minutes)"
)
_OF_DEEPSPEED = re.compile(r"\|\s*consumed\s+tokens:|deepspeed \.{2,} True\b")
_MEMORY = re.compile(r"\(after (\d{1,9}) iterations\) memory \((MB|GB)\) \|")
_PEAK = re.compile(
    rf"max[ \-]?allocated(?:-gigabytes|-megabytes)?: ?({NUMBER}) ?\| ?(?:max|mem-|reserved)"
)
"""With the start of what follows it: a fold may cut the line anywhere, and take a blank."""
_LONGEST_MEMORY = 600
"""How many characters such a line has at the most, up to behind the peak."""
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
            batch.PRINTED: columns.of(_GBS),
        },
    )


def _losses(columns: Columns, skipped: Flags) -> Column:
    """The losses; one that is counted as none, or left out of a line, is no number.

    A step that was skipped may have none.
    """
    loss = columns.of(_LOSS)
    lost = (columns.of(_NAN).values > 0) | (~loss.known & ~skipped)
    return Column(np.where(lost, math.nan, loss.values), loss.known | lost)


def iterations(where: str, printed: Readings, lines: StepLines) -> Settled:
    """The iterations of a log, each once, with notes on what their lines mean."""
    steps = settle_columns(where, printed, lines.problems)
    kept = Readings.of(steps.readings)
    if not lines.seen[_NAN] - {0.0} and not any(map(_has_loss, kept.parts())):
        # No line has a loss, and none counts an iteration without one: it was not logged.
        kept = kept.with_columns(loss=Column.empty(len(kept)))
    notes = (*steps.notes, *interval_note(where, kept))
    return replace(steps, readings=kept, notes=notes)


def _has_loss(steps: Readings) -> bool:
    loss = steps.column("loss")
    return bool((loss.known & np.isfinite(loss.values)).any())


def planned(lines: StepLines) -> int | None:
    """How many iterations there were to be."""
    return count(lines.last.get(_PLANNED))


def log_of(where: str, scan: Scan, lines: StepLines, steps: Settled) -> ParsedLog:
    """What a log says of its run: its iterations, and how it ended."""
    preamble = scan.preamble
    other = _OF_DEEPSPEED.search(preamble)
    if other:
        return _of_deepspeed(where, preamble.count("\n", 0, other.start()) + 1)
    done = bool(DONE.search(scan.epilogue))
    account = Account(planned(lines), scan.epilogue, done, scan.before, scan.starts)
    return training_log(PartialCase(), _with_memory(steps, scan), account)


def _of_deepspeed(where: str, line: int) -> ParsedLog:
    """Nothing: the tokens of its steps, and what else its arguments mean, are another program's."""
    message = "a log of Megatron-DeepSpeed, whose sequences may change in length, is not read"
    problem = Diagnostic(
        where, message, line=line, remedy="write its figures into a table of a page"
    )
    return ParsedLog(PartialCase(), outcome=Outcome.NO_DATA, problems=(problem,))


def _with_memory(steps: Settled, scan: Scan) -> Settled:
    """The steps with the peak memory that is told of beside the log: the most of any rank's.

    A step that a later attempt printed again has what that one told of it.
    """
    kept, starts, preamble = Readings.of(steps.readings), scan.starts.lines, scan.preamble
    lines, numbers = Cells[int](kept.line), Cells[int](kept.step)
    peaks: dict[int, int] = {}
    line, seen = 1, 0
    for told in _MEMORY.finditer(preamble):
        line, seen = line + preamble.count("\n", seen, told.start()), told.start()
        step = int(told[1])
        place = bisect_left(numbers, step)
        if place == len(numbers) or bisect(starts, lines[place]) != bisect(starts, line):
            continue
        behind = preamble[told.end() : told.end() + _LONGEST_MEMORY].partition("(after ")[0]
        found = _PEAK.search(re.sub(r" ?\n", "", behind))
        size = size_bytes(found[1], _UNITS[told[2]]) if found else None
        peaks[step] = max(size or 0, peaks.get(step, 0))
    return replace(steps, readings=with_peaks(kept, peaks))
