"""NeMo logs: the step lines of NeMo 2, and the progress bars of NeMo 1 and early NeMo 2.

NeMo 2 prints `Training epoch E, iteration I/LAST | key: value | …`, counted from 0; a time is the
mean over the log interval. Source: nemo/lightning/pytorch/callbacks/progress_printer.py.

A bar is drawn again and again, with carriage returns:
`Epoch 0: : 100%|███| 50/50 [31:51<00:00, reduced_train_loss=6.130, train_step_timing in s=5.900]`
Its counter is that of the step in an epoch. Its total is the steps of the epoch in NeMo 1, and from
NeMo 2.0 on those of the whole run; the global step with it, which counts from 0 or from 1 by
version and is rounded where it is printed as 1e+3, sets the two apart.
Source: nemo/collections/nlp/parts/nlp_overrides.py, nemo/utils/exp_manager.py and
nemo/lightning/pytorch/callbacks/progress_bar.py, 1.23 to 3.0.0.
"""

import re
from dataclasses import replace
from typing import Final

import numpy as np

from perfdb.formats.base import Content, LogFormat, ParsedLog, showing
from perfdb.formats.columns import Ints, Reading, StepColumn, Steps
from perfdb.formats.numbers import NUMBER, count
from perfdb.formats.outcome import DONE
from perfdb.formats.scan import Piece, Scan
from perfdb.formats.settings import described
from perfdb.formats.settle import (
    BATCH,
    Settled,
    amounts,
    interval_note,
    marked,
    numbered,
    settle,
    training_log,
)
from perfdb.formats.steplines import StepReader, Syntax

_TIME, _STEP, _EPOCH, _LAST = "train_step_timing in s", "global_step", "epoch", "last iteration"
_SYNTAX: Final = Syntax(
    marker=b"Training epoch ",
    start=r"Training epoch (\d+), *iteration *(\d+)/(\d+)",
    counters=(_EPOCH, "iteration", _LAST),
    fields=(_STEP, BATCH, "peak_memory_usage", "reduced_train_loss", _TIME, "TFLOPS_per_GPU"),
    required=("iteration", _TIME),
)
_STEP_LINE: Final = rb"Training epoch [\s\d]+,\s*iteration[\s\d]+/[\s\d]+\|"

_BAR_MARKER: Final = b"train_step_timing in s="
_CLOSED: Final = r"(?=[ \t]*[,\]])"
"""Follows a number of a bar that the end of a line has not cut off: the line may be folded."""
_BAR: Final = re.compile(
    rf"Epoch (\d{{1,9}}):[^\r\n]{{0,400}}?\b(\d{{1,9}})/(\d{{1,9}}) "
    rf"\[[^\]\r\n]{{0,1000}}?train_step_timing in s=({NUMBER}){_CLOSED}"
)
_GLOBAL_STEP: Final = re.compile(r"global_step=(\d{1,9})(?:\.0*)?(?=[,\]])")
_LOSS: Final = re.compile(rf"reduced_train_loss=({NUMBER}){_CLOSED}")
_TOKENS: Final = re.compile(rf"tokens_per_sec_per_gpu=({NUMBER}){_CLOSED}")


def _parse_steps(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan, reader = Scan(content, _SYNTAX.marker), StepReader(where, _SYNTAX, _steps_of)
    for block in scan:
        reader.add(block)
    settled = settle(where, reader.steps(), reader.problems)
    steps = settled.steps
    epoch, last = steps.column(_EPOCH).last, steps.column(_LAST).last
    # The log may end in any epoch: the steps up to the end of that one are planned.
    planned = count((epoch + 1) * (last + 1)) if epoch is not None and last is not None else None
    notes = (*settled.notes, *interval_note(where, steps.step))
    settled = replace(settled, steps=steps.without(_EPOCH, _LAST), notes=notes)
    return (_log_of(scan, settled, planned),)


def _log_of(scan: Scan, settled: Settled, planned: int | None) -> ParsedLog:
    settings = described("".join(scan.sections(settled.first_line)), {"framework": "nemo"})
    return training_log(settled, settings, scan, planned=planned, done=DONE["nemo"])


def _steps_of(printed: Steps) -> Steps:
    return Steps(
        printed.line,
        _numbers(printed),
        printed.column(_TIME).values.astype(np.float64),
        {
            "loss": printed.column("reduced_train_loss"),
            "peak_memory_bytes": amounts(printed.column("peak_memory_usage")),
            "model_tflops_per_sec_per_gpu": printed.column("TFLOPS_per_GPU"),
            BATCH: printed.column(BATCH),
            _EPOCH: printed.column(_EPOCH),
            _LAST: printed.column(_LAST),
        },
    )


def _numbers(printed: Steps) -> Ints:
    """Steps from 1. The iteration starts again with each epoch; the global step does not."""
    step, epoch, last = (printed.column(name) for name in (_STEP, _EPOCH, _LAST))
    with np.errstate(over="ignore", invalid="ignore"):  # what numbers no step is left out below
        counted = epoch.values * (last.values + 1) + printed.column("iteration").values
    return numbered(StepColumn.full(np.where(step.known, step.values, counted)), base=0)


def _parse_bars(where: str, content: Content) -> tuple[ParsedLog, ...]:
    bars, scan = _Bars(), Scan(content, _BAR_MARKER)
    settled = marked(where, scan, _BAR_MARKER, bars.read)
    return (_log_of(scan, settled, bars.planned),)


class _Bars:
    """Reads bars, one after the other. `planned`: how many steps there were to be, by the last."""

    def __init__(self) -> None:
        self.planned: int | None = None
        self._first_global_step = 0
        self._before: dict[int, int] = {0: 0}

    def read(self, piece: Piece) -> Reading | str:
        """The step of a bar, or what it lacks."""
        bar = _BAR.search(piece.text)
        if not bar:
            return "a progress bar without a step or 'train_step_timing in s'"
        epoch, done, total = map(int, bar.groups()[:3])
        found = _GLOBAL_STEP.search(piece.text)
        before = self._steps_before(epoch, done, total, int(found[1]) if found else None)
        self.planned = count(total if before < epoch * total else before + total)
        loss, tokens = _LOSS.search(piece.text), _TOKENS.search(piece.text)
        return Reading(
            line=piece.line,
            step=before + done,
            step_time_s=float(bar[4]),
            loss=float(loss[1]) if loss else None,
            tokens_per_sec_per_gpu=float(tokens[1]) if tokens else None,
        )

    def _steps_before(self, epoch: int, done: int, total: int, global_step: int | None) -> int:
        """How many steps the epochs before had, by the last global step that is exact."""
        if global_step is not None:
            if (first := global_step - done - epoch * total + 1) in (0, 1):
                self._first_global_step = first
            if epoch:
                self._before[epoch] = max(0, global_step + 1 - self._first_global_step - done)
        return self._before.get(epoch, epoch * total)


NEMO1: Final = LogFormat("nemo1", showing(_BAR_MARKER), _parse_bars)
NEMO2: Final = LogFormat("nemo2", showing(_STEP_LINE), _parse_steps, prints_means=True)
