"""AutoModel's training.jsonl: a JSON object for each step, counted from 0.

A step's time is not in it: it is num_tokens_per_step / tps. Tokens vary from step to step, so a
rate over steps is the sum of tokens over the sum of times. Up to 0.6.0 `tps_per_gpu` divides by
data and context parallelism only: with tensor or pipeline parallelism it is too high.
Source of the format: nemo_automodel/components/loggers/metric_logger.py, 0.1.0 to 0.7.0.
"""

import json
import re
from dataclasses import replace

from perfdb.errors import Diagnostic
from perfdb.formats.base import Content, ParsedLog, Reading
from perfdb.formats.ending import Account, training_log
from perfdb.formats.marked import marked
from perfdb.formats.numbers import count, finite, percent, positive, real, size_bytes
from perfdb.formats.scan import Piece, Scan
from perfdb.formats.steps import Settled, settle
from perfdb.log_text import plain
from perfdb.record import PartialCase

NAME = "automodel_training"

_DECODER = json.JSONDecoder()
_MARKER = b'"step":'
_LINE = re.compile(rb'\{"step": *\d+, [^\n]*?"tps": *[\d.eE+\-]+')


def recognises(head: bytes, name: str) -> int:
    """How many steps with their tokens per second are among the first bytes."""
    return len(_LINE.findall(plain(head)))


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a file tells of. How many steps there were to be, it does not say."""
    steps = settle(where, *marked(where, Scan(content, _MARKER), _MARKER, _reading))
    # The file holds steps and nothing else: where the last is whole, that is all it can tell.
    account = Account(None, done=not _is_cut_off(steps))
    steps = replace(steps, notes=(*steps.notes, *_notes(where, steps)))
    return (training_log(PartialCase(framework="automodel"), steps, account),)


def _reading(piece: Piece) -> Reading | str:
    try:
        said, _ = _DECODER.raw_decode(piece.text, max(piece.text.find("{"), 0))
    except (ValueError, RecursionError):
        return "a step that is not JSON"
    if not isinstance(said, dict):
        return "a step that is not a JSON object"
    number, rate = finite(said.get("step")), positive(said.get("tps"))
    # The recipe for diffusion language models has another word for it.
    tokens = count(said.get("num_tokens_per_step", said.get("tokens_per_step")))
    if number is None or number < 0 or not tokens or not rate:
        return "a step without 'step', 'num_tokens_per_step' or 'tps': its time does not follow"
    return Reading(
        line=piece.line,
        step=int(number) + 1,
        step_time_s=tokens / rate,
        loss=real(said.get("loss")),
        grad_norm=real(said.get("grad_norm")),
        peak_memory_bytes=size_bytes(said.get("mem"), 2**30),
        tokens=tokens,
        tokens_per_sec_per_gpu=positive(said.get("tps_per_gpu")),
        mfu=percent(said.get("mfu")),
    )


def _is_cut_off(steps: Settled) -> bool:
    last_step = max((reading.line for reading in steps.readings), default=0)
    return any((problem.line or 0) > last_step for problem in steps.problems)


def _notes(where: str, steps: Settled) -> tuple[Diagnostic, ...]:
    if not steps.readings:
        return ()
    rates = (
        "up to 0.6.0 is tokens per second over data and context parallelism: with tensor or "
        "pipeline parallelism it is too high, and it is not taken for a result"
    )
    end = "the file does not say how many steps there were to be: a killed run loses the last ones"
    return (Diagnostic(where, rates, field="tps_per_gpu"), Diagnostic(where, end))
