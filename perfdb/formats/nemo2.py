"""NeMo 2 logs: `Training epoch E, iteration I/LAST | key: value | …`, counted from 0.

A time is the mean over the log interval.
Source of the format: nemo/lightning/pytorch/callbacks/progress_printer.py.
"""

import re
from dataclasses import replace

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats import batch, settings
from perfdb.formats.base import Content, ParsedLog
from perfdb.formats.ending import Account, training_log
from perfdb.formats.folded import full_at
from perfdb.formats.nemo1 import DONE
from perfdb.formats.numbers import count
from perfdb.formats.piped import Syntax
from perfdb.formats.printed import mentioned
from perfdb.formats.readings import Column, Columns, Ints, Readings
from perfdb.formats.scan import Scan
from perfdb.formats.spans import interval_note
from perfdb.formats.steplines import Cut, StepLines
from perfdb.formats.steps import numbered, settle_columns, sizes
from perfdb.log_text import plain
from perfdb.record import PartialCase
from perfdb.units import counted

NAME = "nemo2"

_TIME, _STEP, _LAST, _GBS = (
    "train_step_timing in s", "global_step", "last iteration", "global_batch_size",
)  # fmt: skip
_SYNTAX = Syntax(
    marker=b"Training epoch ",
    start=r"Training epoch (\d+), *iteration *(\d+)/(\d+)",
    counters=("epoch", "iteration", _LAST),
    fields=(_STEP, _GBS, "peak_memory_usage", "reduced_train_loss", _TIME, "TFLOPS_per_GPU"),
    required=("iteration", _TIME),
    facts=("epoch", _LAST),
)
_STEP_LINE = re.compile(rb"Training epoch [\s\d]+,\s*iteration[\s\d]+/[\s\d]+\|")


def recognises(head: bytes, name: str) -> int:
    """How many step lines of NeMo 2 are among the first bytes."""
    return len(_STEP_LINE.findall(plain(head)))


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    scan, lines = Scan(content, _SYNTAX.marker), StepLines(where, _SYNTAX, _readings)
    steps = settle_columns(where, lines.of(scan), lines.problems)
    notes = (*steps.notes, *interval_note(where, steps.readings), *_cut_note(where, lines.cut))
    preamble = scan.preamble
    steps = replace(steps, notes=(*notes, *_fold_note(where, preamble)))
    done = bool(DONE.search(scan.epilogue))
    account = Account(_planned(lines), scan.epilogue, done, scan.before)
    log = training_log(PartialCase(), steps, account)
    said = mentioned(preamble, log)
    log = said.of(log, framework="nemo", **settings.gpus(said.settings))
    return (batch.stated(where, log),)


def _cut_note(where: str, cut: Cut) -> tuple[Diagnostic, ...]:
    """A note on steps whose last fields may stand on other lines, behind what others printed."""
    if not cut.num_steps:
        return ()
    lines = counted(cut.num_steps, "step line")
    message = f"{lines} may go on on others, as where a log is folded: the rest is left out"
    return (Diagnostic(where, message, line=cut.line),)


def _fold_note(where: str, preamble: str) -> tuple[Diagnostic, ...]:
    """A note on a log that is folded at the width of its steps.

    What a fold took from a step may stand too far behind it to be seen.
    """
    width = full_at(preamble, _SYNTAX)
    if width is None:
        return ()
    message = f"lines are folded at {width} columns: the last number of steps may be cut short"
    return (Diagnostic(where, message, remedy="fold no lines, or print them wider"),)


def _readings(columns: Columns) -> Readings:
    return Readings(
        columns.lines,
        _steps(columns),
        columns.of(_TIME).values.astype(np.float64),
        {
            "loss": columns.of("reduced_train_loss"),
            "peak_memory_bytes": sizes(columns.of("peak_memory_usage")),
            "model_tflops_per_sec_per_gpu": columns.of("TFLOPS_per_GPU"),
            batch.PRINTED: columns.of(_GBS),
        },
    )


def _steps(columns: Columns) -> Ints:
    """Steps from 1. The iteration starts again with each epoch; the global step does not."""
    printed, epoch, last = columns.of(_STEP), columns.of("epoch"), columns.of(_LAST)
    with np.errstate(over="ignore", invalid="ignore"):  # what numbers no step is left out below
        counted = epoch.values * (last.values + 1) + columns.of("iteration").values
    values = np.where(printed.known, printed.values, counted)
    return numbered(Column.full(values), base=0)


def _planned(lines: StepLines) -> int | None:
    """The steps up to the end of the epoch that the log ends in."""
    epoch, last = lines.last.get("epoch"), lines.last.get(_LAST)
    return count((epoch + 1) * (last + 1)) if epoch is not None and last is not None else None
