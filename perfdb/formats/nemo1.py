"""NeMo 1 and early NeMo 2 logs: a progress bar drawn again and again, with carriage returns.

`Epoch 0: : 100%|███| 50/50 [31:51<00:00, reduced_train_loss=6.130, train_step_timing in s=5.900]`
The bar's own counter tells the step: the global step beside it counts from 0 or from 1, by version.
Source of the format: nemo/collections/nlp/parts/nlp_overrides.py, nemo/utils/exp_manager.py and
nemo/lightning/pytorch/callbacks/progress_bar.py, 1.23 to 3.0.0.
"""

import re

from perfdb.formats import settings
from perfdb.formats.base import Content, ParsedLog, Reading
from perfdb.formats.ending import Account, training_log
from perfdb.formats.marked import MarkedSteps
from perfdb.formats.numbers import NUMBER, WHOLE, count
from perfdb.formats.scan import Piece, Scan, plain
from perfdb.formats.steps import settle

NAME = "nemo1"
WINDOW = "skip_warmup(10)"

_MARKER = b"train_step_timing in s="
_BAR = re.compile(
    rf"Epoch (\d{{1,9}}):[^\r\n]{{0,400}}?\b(\d{{1,9}})/(\d{{1,9}}) "
    rf"\[[^\]\r\n]{{0,1000}}?train_step_timing in s=({NUMBER}){WHOLE}"
)
_LOSS = re.compile(rf"reduced_train_loss=({NUMBER}){WHOLE}")
_TOKENS = re.compile(rf"tokens_per_sec_per_gpu=({NUMBER}){WHOLE}")
_DONE = re.compile(r"`?Trainer\.fit`? stopped: `max_(?:steps|epochs)=\d+` reached")


def recognises(head: bytes, name: str) -> bool:
    """Whether a progress bar with step times is among the first bytes."""
    return _MARKER in plain(head)


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    scan, marked = Scan(content, _MARKER), MarkedSteps(where, _MARKER, _reading)
    readings = list(marked.of(scan))
    steps = settle(where, readings, marked.problems)
    said = settings.mentioned(scan.preamble)
    configuration = settings.configuration(said, framework="nemo", **settings.gpus(said))
    done = bool(_DONE.search(scan.epilogue))
    account = Account(_planned(marked.last), scan.epilogue, done)
    return (training_log(configuration, steps, account, WINDOW),)


def _planned(last: Piece | None) -> int | None:
    """The steps up to the end of the epoch that the log ends in."""
    bar = _BAR.search(last.text) if last else None
    return count((int(bar[1]) + 1) * int(bar[3])) if bar else None


def _reading(piece: Piece) -> Reading | str:
    bar = _BAR.search(piece.text)
    if not bar:
        return "a progress bar without a step or 'train_step_timing in s'"
    epoch, done, of, seconds = bar.groups()
    loss, tokens = _LOSS.search(piece.text), _TOKENS.search(piece.text)
    return Reading(
        line=piece.line,
        step=int(epoch) * int(of) + int(done),
        step_time_s=float(seconds),
        loss=float(loss[1]) if loss else None,
        tokens_per_sec_per_gpu=float(tokens[1]) if tokens else None,
    )
