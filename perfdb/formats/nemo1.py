"""NeMo 1 and early NeMo 2 logs: a progress bar drawn again and again, with carriage returns.

`Epoch 0: : 100%|███| 50/50 [31:51<00:00, reduced_train_loss=6.130, train_step_timing in s=5.900]`
The bar's own counter tells the step of an epoch. Its total is the steps of the epoch in NeMo 1, and
from NeMo 2.0 on those of the whole run; the global step beside it, which counts from 0 or from 1 by
version and is rounded where it is printed as 1e+3, tells the two apart.
Source of the format: nemo/collections/nlp/parts/nlp_overrides.py, nemo/utils/exp_manager.py and
nemo/lightning/pytorch/callbacks/progress_bar.py, 1.23 to 3.0.0.
"""

import re

from perfdb.formats import settings
from perfdb.formats.base import Content, ParsedLog, Reading
from perfdb.formats.ending import Account, training_log
from perfdb.formats.marked import marked
from perfdb.formats.numbers import NUMBER, count
from perfdb.formats.printed import mentioned
from perfdb.formats.scan import Piece, Scan
from perfdb.formats.steps import settle
from perfdb.log_text import plain
from perfdb.record import PartialCase

NAME = "nemo1"

_MARKER = b"train_step_timing in s="
_CLOSED = r"(?=[ \t]*[,\]])"
"""Follows a number of a bar that the end of a line has not cut off: the line may be folded."""
_BAR = re.compile(
    rf"Epoch (\d{{1,9}}):[^\r\n]{{0,400}}?\b(\d{{1,9}})/(\d{{1,9}}) "
    rf"\[[^\]\r\n]{{0,1000}}?train_step_timing in s=({NUMBER}){_CLOSED}"
)
_GLOBAL_STEP = re.compile(r"global_step=(\d{1,9})(?:\.0*)?(?=[,\]])")
_LOSS = re.compile(rf"reduced_train_loss=({NUMBER}){_CLOSED}")
_TOKENS = re.compile(rf"tokens_per_sec_per_gpu=({NUMBER}){_CLOSED}")
DONE = re.compile(r"Trainer\.fit`? stopped: `max_(?:steps|epochs)=\d+` reached")


def recognises(head: bytes, name: str) -> int:
    """How many progress bars with step times are among the first bytes."""
    return plain(head).count(_MARKER)


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    bars, scan = _Bars(), Scan(content, _MARKER)
    steps = settle(where, *marked(where, scan, _MARKER, bars.read))
    done = bool(DONE.search(scan.epilogue))
    account = Account(bars.planned, scan.epilogue, done, scan.before)
    log = training_log(PartialCase(), steps, account)
    said = mentioned(scan.preamble, log)
    return (said.of(log, framework="nemo", **settings.gpus(said.settings)),)


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
        said = _GLOBAL_STEP.search(piece.text)
        before = self._steps_before(epoch, done, total, int(said[1]) if said else None)
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
        """How many steps the epochs before had, by the last global step that tells."""
        if global_step is not None:
            if (first := global_step - done - epoch * total + 1) in (0, 1):
                self._first_global_step = first
            if epoch:
                self._before[epoch] = max(0, global_step + 1 - self._first_global_step - done)
        return self._before.get(epoch, epoch * total)
