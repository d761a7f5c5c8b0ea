"""AutoModel's training recipes on the console: `step 0 | epoch 0 | loss 2.5 | … | tps 1028.12(…)`.

Steps count from 0. `tps` is tokens per second of all GPUs, padding left out, and how many tokens a
step had is not printed. Its time follows where the label tokens, which are at most as many, are all
that the global batch can have; of other data training.jsonl says more.
Source of the format: nemo_automodel/recipes/llm/train_ft.py and base_recipe.py, 0.1.0 to 0.7.0.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from perfdb.errors import Diagnostic
from perfdb.formats import settings
from perfdb.formats.base import Content, ParsedLog, Reading
from perfdb.formats.ending import Account, training_log
from perfdb.formats.marked import marked
from perfdb.formats.numbers import NUMBER, WHOLE, count, positive, real, size_bytes
from perfdb.formats.printed import judged, mentioned
from perfdb.formats.scan import Piece, Scan
from perfdb.formats.steps import Settled, settle, timed
from perfdb.log_text import plain
from perfdb.record import PartialCase

NAME = "automodel_console"

SHIFTED: Final = 0.01
"""By how much label tokens may fall short of all: a sample's last token has no label."""

_START = b"Experiment_details:"
_MARKER = b"| tps "
_STEP = re.compile(r"\bstep (\d{1,15}) \| epoch \d+ \|")
_STEP_LINE = re.compile(rb"\bstep \d+ \| epoch \d+ \| [^\n]*?\| tps [\d.]+")
_VALUE = re.compile(rf"\| (loss|grad_norm|mem|num_label_tokens) ({NUMBER}){WHOLE}")
_RATE = re.compile(rf"\| tps ({NUMBER})(?!/gpu)(?:\(({NUMBER})/gpu\))?{WHOLE}")
_WORLD = re.compile(r"\bWorld size: (\d{1,9})\b")
_MODEL = re.compile(r"\bModel name: (\S+)")
_PLANNED = re.compile(r"\bmax_steps: (\d{1,15})\b")
_VERSION = re.compile(r"- nemo_automodel: (\d[\w.+]*) \(")
_ADAPTER = re.compile(r"peft:(?:(?<=\npeft:)|(?<=\S[ \t]peft:))[ \t]*\n.{0,199}[ \t]{2}\w+:")
"""With one blank behind what a launcher puts before it: with more it is within another group."""


def recognises(head: bytes, name: str) -> int:
    """How many steps with their tokens per second are among the first bytes."""
    return len(_STEP_LINE.findall(plain(head)))


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    scan = Scan(content, _MARKER, starts=(_START,))
    settled = settle(where, *marked(where, scan, _MARKER, _reading))
    planned = _PLANNED.findall(scan.preamble)
    last = count(planned[-1]) if planned else None
    account = Account(last, scan.epilogue, before=scan.before, starts=scan.starts)
    untimed = training_log(PartialCase(), settled, account)
    own = judged(scan.preamble, untimed)
    printed, known = mentioned(scan.preamble, untimed), known_of(own)
    said = printed.configuration(**known)
    log = printed.of(training_log(said, _timed(where, settled, said), account), **known)
    timed_by = ("global_batch_size", "sequence_length")
    return (replace(log, framework_version=version(own), timed_by=timed_by),)


def version(preamble: str) -> str | None:
    """AutoModel's version, which every recipe prints among those of its libraries."""
    found = _VERSION.findall(preamble)
    return found[-1] if found else None


def _reading(piece: Piece) -> Reading | str:
    """A step with its label tokens, whose time is that of one token, until the batch is known."""
    step, rate = _STEP.search(piece.text), _RATE.search(piece.text)
    said = dict(_VALUE.findall(piece.text))
    tokens = count(said.get("num_label_tokens"))
    if not step or not rate or not positive(rate[1]) or not tokens:
        return "a step without its number, 'tps' of all GPUs or 'num_label_tokens'"
    return Reading(
        line=piece.line,
        step=int(step[1]) + 1,
        step_time_s=1 / float(rate[1]),
        loss=real(said.get("loss")),
        grad_norm=real(said.get("grad_norm")),
        peak_memory_bytes=size_bytes(said.get("mem"), 2**30),
        tokens=tokens,
        tokens_per_sec_per_gpu=positive(rate[2]),
    )


def known_of(preamble: str) -> dict[str, object]:
    """What a recipe says of itself before its first step: a summary, and its YAML."""
    worlds, models = _WORLD.findall(preamble), _MODEL.findall(preamble)
    model = models[-1].rpartition("/")[2] if models else "null"
    name = settings.model(model) if model != "null" else None
    fields = {
        "framework": "automodel",
        "model": name,
        "num_gpus": count(worlds[-1]) if worlds else None,
        "task": "lora" if _ADAPTER.search(preamble) else None,
    }
    return {field: value for field, value in fields.items() if value}


def _timed(where: str, steps: Settled, said: PartialCase) -> Settled:
    """The steps with their times; without any where it is not certain how many tokens one had."""
    if not steps.readings:
        return steps
    tokens = (said.global_batch_size or 0) * (said.sequence_length or 0)
    reason, line = _uncertain(steps.readings, tokens)
    if reason:
        message = f"no step time follows from tps: {reason}"
        remedy = "read training.jsonl, which says the tokens of each step"
        problem = Diagnostic(where, message, line=line, remedy=remedy)
        return replace(steps, readings=(), problems=(*steps.problems, problem))
    return timed(where, steps, lambda _: (tokens, 1))


def _uncertain(readings: Sequence[Reading], tokens: int) -> tuple[str | None, int]:
    """Why the tokens of a step are not known, and the line that shows it."""
    if not tokens:
        return "the log does not say global batch size and sequence length", readings[0].line
    for one in readings:
        if not (1 - SHIFTED) * tokens <= (one.tokens or 0) <= tokens:
            reason = f"step {one.step} has {one.tokens:,} label tokens, its batch up to {tokens:,}"
            return reason, one.line
    return None, 0
