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

from perfdb.formats import batch, settings
from perfdb.formats.attempts import settings_of, training_log, with_settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, RunSettings
from perfdb.formats.columns import Ints, Reading, StepColumn, Steps
from perfdb.formats.mentions import mentioned
from perfdb.formats.numbers import NUMBER, count
from perfdb.formats.outcome import DONE, Account
from perfdb.formats.scan import Piece, Scan
from perfdb.formats.settle import Settled, amounts, interval_note, marked, numbered, settle
from perfdb.formats.steplines import StepReader, StepTable, Syntax
from perfdb.log_text import plain

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


_BAR_MARKER = b"train_step_timing in s="
_CLOSED = r"(?=[ \t]*[,\]])"
"""Follows a number of a bar that the end of a line has not cut off: the line may be folded."""
_BAR = re.compile(
    rf"Epoch (\d{{1,9}}):[^\r\n]{{0,400}}?\b(\d{{1,9}})/(\d{{1,9}}) "
    rf"\[[^\]\r\n]{{0,1000}}?train_step_timing in s=({NUMBER}){_CLOSED}"
)
_GLOBAL_STEP = re.compile(r"global_step=(\d{1,9})(?:\.0*)?(?=[,\]])")
_LOSS = re.compile(rf"reduced_train_loss=({NUMBER}){_CLOSED}")
_TOKENS = re.compile(rf"tokens_per_sec_per_gpu=({NUMBER}){_CLOSED}")


def _recognizes_steps(head: bytes, name: str) -> int:
    return len(_STEP_LINE.findall(plain(head)))


def _parse_steps(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan, reader = Scan(content, _SYNTAX.marker), StepReader(where, _SYNTAX, _steps_of)
    for block in scan:
        reader.add(block)
    settled = settle(where, reader.steps(), reader.problems)
    notes = (*settled.notes, *interval_note(where, settled.steps.step))
    log = _log_of(scan, replace(settled, notes=notes), _planned(reader))
    return (batch.stated(where, log),)


def _log_of(scan: Scan, settled: Settled, planned: int | None) -> ParsedLog:
    done = bool(DONE["nemo"].search(scan.epilogue))
    account = Account(planned, scan.epilogue, done, scan.last_words)
    return with_settings(training_log(settled, account), settings_of(scan.sections, _described))


def _described(text: str) -> RunSettings:
    found = mentioned(text)
    known: dict[str, object] = {"framework": "nemo", **settings.gpus(found.settings)}
    return found.described(known)


def _steps_of(table: StepTable) -> Steps:
    return Steps(
        table.lines,
        _numbers(table),
        table.column(_TIME).values.astype(np.float64),
        {
            "loss": table.column("reduced_train_loss"),
            "peak_memory_bytes": amounts(table.column("peak_memory_usage")),
            "model_tflops_per_sec_per_gpu": table.column("TFLOPS_per_GPU"),
            batch.PRINTED: table.column(_GBS),
        },
    )


def _numbers(table: StepTable) -> Ints:
    """Steps from 1. The iteration starts again with each epoch; the global step does not."""
    printed, epoch, last = table.column(_STEP), table.column("epoch"), table.column(_LAST)
    with np.errstate(over="ignore", invalid="ignore"):  # what numbers no step is left out below
        counted = epoch.values * (last.values + 1) + table.column("iteration").values
    values = np.where(printed.known, printed.values, counted)
    return numbered(StepColumn.full(values), base=0)


def _planned(reader: StepReader) -> int | None:
    """The steps up to the end of the epoch that the log ends in."""
    epoch, last = reader.latest.get("epoch"), reader.latest.get(_LAST)
    return count((epoch + 1) * (last + 1)) if epoch is not None and last is not None else None


def _recognizes_bars(head: bytes, name: str) -> int:
    return plain(head).count(_BAR_MARKER)


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


NEMO1: Final = LogFormat("nemo1", _recognizes_bars, _parse_bars)
NEMO2: Final = LogFormat("nemo2", _recognizes_steps, _parse_steps, prints_means=True)
