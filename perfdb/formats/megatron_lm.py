"""Megatron-LM logs: the dump of the arguments, and Megatron-Core's line for each logged iteration.

Iterations count from 1. A time is the mean over the log interval. A loss that is not a number is
left out of the line. Megatron-Bridge prints such lines, too: they alone do not tell which of the
two it was. Source of the format: megatron/training/training.py, `training_log`.
"""

import math
import re
from dataclasses import replace
from itertools import takewhile
from typing import Final

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats.base import Content, LogFormat, ParsedLog
from perfdb.formats.columns import StepColumn, Steps
from perfdb.formats.numbers import NUMBER, count, size_bytes
from perfdb.formats.outcome import DONE
from perfdb.formats.precision import Pair
from perfdb.formats.scan import Scan
from perfdb.formats.settings import described
from perfdb.formats.settle import BATCH, Settled, interval_note, numbered, settle, training_log
from perfdb.formats.steplines import StepReader, Syntax
from perfdb.record import Outcome
from perfdb.text import plain

FRAMEWORK: Final = "megatron-lm"
ARGUMENTS: Final = b"---- arguments ----"
LOADED: Final = b"successfully loaded checkpoint "
"""What Megatron prints of the checkpoint that it goes on from."""

_ITERATION, _PLANNED, _GBS = "iteration", "planned iterations", "global batch size"
_TIME, _TFLOPS, _TOKENS = (
    "elapsed time per iteration (ms)",
    "throughput per GPU (TFLOP/s/GPU)",
    "tokens per GPU (tokens/s/GPU)",
)
_LOSS, _NORM, _SKIPPED, _NAN = (
    "lm loss", "grad norm", "number of skipped iterations", "number of nan iterations",
)  # fmt: skip
SYNTAX: Final = Syntax(
    marker=b"consumed samples:",
    start=r"(?: ?\[[\d\-:. ]{8,40}\])? ?iteration *(\d+)/ *(\d+)",
    counters=(_ITERATION, _PLANNED),
    fields=(_TIME, _TFLOPS, _TOKENS, _GBS, _LOSS, _NORM, _SKIPPED, _NAN),
    required=(_ITERATION, _TIME),
    last=_NAN,
)
_STEP_LINE: Final = re.compile(rb"iteration[\s\d]+/[\s\d]+\|[^|]{0,80}consumed samples:")
_OF_BRIDGE: Final = (
    re.compile(rb"Step Time : *[\d.]+s GPU utilization:"),
    re.compile(rb"GPU utilization: *[\d.]+ *(?:MODEL_)?TFLOP/s/GPU"),
)
"""Megatron-Bridge's rates: of a line that may be wrapped, the one or the other is whole."""
_OF_DEEPSPEED: Final = re.compile(r"\|\s*consumed\s+tokens:|deepspeed \.{2,} True\b")
_MEMORY: Final = re.compile(r"\(after (\d{1,9}) iterations\) memory \((MB|GB)\) \|")
_PEAK: Final = re.compile(rf"max[ \-]?allocated(?:-gigabytes|-megabytes)?: ?({NUMBER}) ?\|")
_LONGEST_MEMORY: Final = 600
"""How many characters such a line has at the most, up to behind the peak."""
_UNITS: Final = {"MB": 2.0**20, "GB": 1e9}
"""Megatron-LM's MB are 1024² bytes, Megatron-Bridge's GB 1000³."""
_ARGUMENT: Final = re.compile(r"\b(\w+) \.{2,} (\[[^\]\n]*\]|[^\s\"'\\\[][^\s\"'\\]*)")
_MOST_FOLDS: Final = 8
"""The lines that a list is looked for on if a terminal has folded it."""


def bridge_steps(head: bytes, _: str) -> int:
    """How many steps are among the first bytes, with Megatron-Bridge's rates or configuration."""
    text = plain(head)
    rates = max(len(half.findall(text)) for half in _OF_BRIDGE)
    steps = len(_STEP_LINE.findall(text))
    is_of_other = ARGUMENTS in text
    # Fewer rates are quoted ones: the program prints one for each step, if late.
    if rates and rates * (2 if is_of_other else 10) >= steps:
        return max(rates, steps)
    return steps if b"ConfigContainer" in text and not is_of_other else 0


def _recognizes(head: bytes, name: str) -> int:
    steps = len(_STEP_LINE.findall(plain(head)))
    return 0 if steps and bridge_steps(head, name) else steps


def _parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan = Scan(content, SYNTAX.marker, starts=(ARGUMENTS, LOADED))
    reader = StepReader(where, SYNTAX, steps_of)
    for block in scan:
        reader.add(block)
    settled = settle(where, reader.steps(), reader.problems, scan.starts)
    text = "".join(scan.sections(settled.first_line))
    settings = described(text, {}, _arguments)
    if settings.configuration.model_fields_set or ARGUMENTS.decode() in text:
        own = settings.configuration.model_copy(update={"framework": FRAMEWORK})
        settings = replace(settings, configuration=own)
    return (iterations_log(scan, settled, replace(settings, likely_framework=FRAMEWORK)),)


def _arguments(text: str) -> list[Pair]:
    """The arguments of a dump. A list may be folded over the next lines."""
    lines = text.split("\n")
    dotted = []  # a pattern that begins with any word is slow to find in all of the text
    for place, line in enumerate(lines):
        if " .." in line:
            _, is_list, items = line.partition(".. [")
            below = (
                lines[place + 1 : place + 1 + _MOST_FOLDS] if is_list and "]" not in items else ()
            )
            dotted.append("".join([line, *takewhile(lambda one: " .." not in one, below)]))
    return _ARGUMENT.findall("\n".join(dotted))


def steps_of(printed: Steps) -> Steps:
    """Iterations as steps. A loss that is counted as NaN, or left out of a line, is NaN.

    A step that was skipped may have none.
    """
    skips, loss = printed.column(_SKIPPED), printed.column(_LOSS)
    skipped = skips.known & (skips.values != 0)
    lost = (printed.column(_NAN).values > 0) | (~loss.known & ~skipped)
    return Steps(
        printed.line,
        numbered(printed.column(_ITERATION), base=1),
        printed.column(_TIME).values / 1000,
        {
            "loss": StepColumn(np.where(lost, math.nan, loss.values), loss.known | lost),
            "grad_norm": printed.column(_NORM),
            "skipped": StepColumn.full(skipped),
            "model_tflops_per_sec_per_gpu": printed.column(_TFLOPS),
            "tokens_per_sec_per_gpu": printed.column(_TOKENS),
            BATCH: printed.column(_GBS),
            _NAN: printed.column(_NAN),
            _PLANNED: printed.column(_PLANNED),
        },
    )


def iterations_log(scan: Scan, settled: Settled, settings: ParsedLog) -> ParsedLog:
    """What a log reports of its run: its iterations, how it ended, and what the lines mean."""
    preamble = scan.preamble
    if other := _OF_DEEPSPEED.search(preamble):
        message = "a log of Megatron-DeepSpeed, whose sequences may change in length, is not read"
        line, remedy = preamble.count("\n", 0, other.start()) + 1, "write its figures into a page"
        problem = Diagnostic(settled.where, message, line=line, remedy=remedy)
        return ParsedLog(outcome=Outcome.NO_DATA, problems=(problem,))
    steps = settled.steps
    planned, (nans, are_known) = count(steps.column(_PLANNED).last), steps.column(_NAN)
    losses, known = steps.column("loss")
    if not (nans[are_known] > 0).any() and not (known & np.isfinite(losses)).any():
        # No line has a loss, and none counts an iteration without one: it was not logged.
        steps = steps.without("loss")
    steps = _with_memory(steps.without(_PLANNED, _NAN), scan.sections(settled.first_line)[-1])
    notes = (*settled.notes, *interval_note(settled.where, steps.step))
    settled = replace(settled, steps=steps, notes=notes)
    return training_log(settled, settings, scan, planned=planned, done=DONE["megatron"])


def _with_memory(steps: Steps, text: str) -> Steps:
    """The steps with the peak memory that is printed with them: the most of any rank."""
    peaks: dict[int, int] = {}
    for report in _MEMORY.finditer(text):
        below = text[report.end() : report.end() + _LONGEST_MEMORY].partition("(after ")[0]
        peak = _PEAK.search(re.sub(r" ?\n", "", below))
        size = size_bytes(peak[1], _UNITS[report[2]]) if peak else None
        place = int(steps.step.searchsorted(int(report[1])))
        if size and place < len(steps) and steps.step[place] == int(report[1]):
            peaks[place] = max(size, peaks.get(place, 0))
    if not peaks:
        return steps
    values, known = np.zeros(len(steps), np.int64), np.zeros(len(steps), np.bool_)
    values[[*peaks]], known[[*peaks]] = [*peaks.values()], True
    return steps.with_columns(peak_memory_bytes=StepColumn(values, known))


FORMAT: Final = LogFormat("megatron_lm", _recognizes, _parse, prints_means=True)
