"""Megatron-LM logs: the dump of the arguments, and Megatron-Core's line for each logged iteration.

Iterations count from 1. A time is the mean over the log interval. A loss that is not a number is
left out of the line. Megatron-Bridge prints such lines, too: they alone do not tell which of the
two it was. Source of the format: megatron/training/training.py, `training_log`.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats import batch
from perfdb.formats.attempts import LOADED, settings_of, training_log, with_settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, RunSettings
from perfdb.formats.columns import Flags, StepColumn, Steps
from perfdb.formats.mentions import printed
from perfdb.formats.numbers import NUMBER, count, size_bytes
from perfdb.formats.outcome import DONE, Account
from perfdb.formats.precision import Pair
from perfdb.formats.scan import LogSection, Scan
from perfdb.formats.settle import Settled, interval_note, numbered, settle
from perfdb.formats.steplines import StepReader, StepTable, Syntax
from perfdb.log_text import plain
from perfdb.record import Outcome, PartialCase

FRAMEWORK: Final = "megatron-lm"
ARGUMENTS: Final = b"---- arguments ----"

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
    facts=(_PLANNED, _NAN),
    last=_NAN,
)
STEP_LINE: Final = re.compile(rb"iteration[\s\d]+/[\s\d]+\|[^|]{0,80}consumed samples:")
OF_BRIDGE: Final = (
    re.compile(rb"Step Time : *[\d.]+s GPU utilization:"),
    re.compile(rb"GPU utilization: *[\d.]+ *(?:MODEL_)?TFLOP/s/GPU"),
)
"""Megatron-Bridge's rates: of a line that may be wrapped, the one or the other is whole."""
_OF_DEEPSPEED = re.compile(r"\|\s*consumed\s+tokens:|deepspeed \.{2,} True\b")
_MEMORY = re.compile(r"\(after (\d{1,9}) iterations\) memory \((MB|GB)\) \|")
_PEAK = re.compile(rf"max[ \-]?allocated(?:-gigabytes|-megabytes)?: ?({NUMBER}) ?\|")
_LONGEST_MEMORY: Final = 600
"""How many characters such a line has at the most, up to behind the peak."""
_UNITS: Final = {"MB": 2.0**20, "GB": 1e9}
"""Megatron-LM's MB are 1024² bytes, Megatron-Bridge's GB 1000³."""
_ARGUMENT = re.compile(r"\b(\w+) \.{2,} (\[[^\]\n]*\]|[^\s\"'\\\[][^\s\"'\\]*)")
_MOST_FOLDS: Final = 8
"""The lines that a list is looked for on where a terminal has folded it."""


def bridge_steps(head: bytes) -> int:
    """How many steps are among the first bytes, with Megatron-Bridge's rates or configuration."""
    text = plain(head)
    rates = max(len(half.findall(text)) for half in OF_BRIDGE)
    steps = len(STEP_LINE.findall(text))
    is_of_other = ARGUMENTS in text
    # Fewer rates are quoted ones: the program prints one for each step, if late.
    if rates and rates * (2 if is_of_other else 10) >= steps:
        return max(rates, steps)
    return steps if b"ConfigContainer" in text and not is_of_other else 0


def _recognizes(head: bytes, name: str) -> int:
    steps = len(STEP_LINE.findall(plain(head)))
    return 0 if steps and bridge_steps(head) else steps


def _parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan = Scan(content, SYNTAX.marker, starts=(ARGUMENTS, LOADED))
    reader = StepReader(where, SYNTAX, steps_of)
    for block in scan:
        reader.add(block)
    log = log_of(where, scan, reader, iterations(where, reader.steps(), reader))
    found = settings_of(scan.sections, _described)
    log = batch.stated(where, with_settings(log, found))
    return (replace(log, likely_framework=FRAMEWORK),)


def _described(text: str) -> RunSettings:
    arguments = printed(text, _arguments)
    is_its = bool(arguments.configuration().model_fields_set) or ARGUMENTS.decode() in text
    return arguments.described({"framework": FRAMEWORK} if is_its else {})


def _arguments(text: str) -> list[Pair]:
    return _ARGUMENT.findall(_dotted(text))


def _dotted(text: str) -> str:
    """The lines that may hold an argument: a pattern that begins with any word is slow to find."""
    lines = text.split("\n")
    return "\n".join(_unfolded(lines, place) for place, one in enumerate(lines) if " .." in one)


def _unfolded(lines: Sequence[str], place: int) -> str:
    """A line, with those behind it where it ends within a list."""
    _, is_list, items = lines[place].partition(".. [")
    if not is_list or "]" in items:
        return lines[place]
    behind = lines[place + 1 : place + 1 + _MOST_FOLDS]
    return "".join([lines[place], *takewhile(lambda line: " .." not in line, behind)])


def steps_of(table: StepTable) -> Steps:
    """The iterations of a table as steps."""
    skips = table.column(_SKIPPED)
    skipped = skips.known & (skips.values != 0)
    return Steps(
        table.lines,
        numbered(table.column(_ITERATION), base=1),
        table.column(_TIME).values / 1000,
        {
            "loss": _losses(table, skipped),
            "grad_norm": table.column(_NORM),
            "skipped": StepColumn.full(skipped),
            "model_tflops_per_sec_per_gpu": table.column(_TFLOPS),
            "tokens_per_sec_per_gpu": table.column(_TOKENS),
            batch.PRINTED: table.column(_GBS),
        },
    )


def _losses(table: StepTable, skipped: Flags) -> StepColumn:
    """The losses; one that is counted as none, or left out of a line, is no number.

    A step that was skipped may have none.
    """
    loss = table.column(_LOSS)
    lost = (table.column(_NAN).values > 0) | (~loss.known & ~skipped)
    return StepColumn(np.where(lost, math.nan, loss.values), loss.known | lost)


def iterations(where: str, printed: Steps, reader: StepReader) -> Settled:
    """The iterations of a log, each once, with notes on what their lines mean."""
    settled = settle(where, printed, reader.problems)
    kept = settled.steps
    values, known = kept.column("loss")
    if not reader.seen[_NAN] - {0.0} and not (known & np.isfinite(values)).any():
        # No line has a loss, and none counts an iteration without one: it was not logged.
        kept = kept.without("loss")
    notes = (*settled.notes, *interval_note(where, kept.step))
    return replace(settled, steps=kept, notes=notes)


def planned(reader: StepReader) -> int | None:
    """How many iterations there were to be."""
    return count(reader.latest.get(_PLANNED))


def log_of(where: str, scan: Scan, reader: StepReader, settled: Settled) -> ParsedLog:
    """What a log reports of its run: its iterations, and how it ended."""
    preamble = scan.preamble
    other = _OF_DEEPSPEED.search(preamble)
    if other:
        return _of_deepspeed(where, preamble.count("\n", 0, other.start()) + 1)
    done = bool(DONE["megatron"].search(scan.epilogue))
    account = Account(planned(reader), scan.epilogue, done, scan.last_words, scan.sections)
    return training_log(_with_memory(settled, scan.sections), account)


def _of_deepspeed(where: str, line: int) -> ParsedLog:
    """Nothing: the tokens of its steps, and what else its arguments mean, are another program's."""
    message = "a log of Megatron-DeepSpeed, whose sequences may change in length, is not read"
    remedy = "write its figures into a table of a page"
    problem = Diagnostic(where, message, line=line, remedy=remedy)
    return ParsedLog(PartialCase(), outcome=Outcome.NO_DATA, problems=(problem,))


def _with_memory(settled: Settled, sections: Sequence[LogSection]) -> Settled:
    """The steps with the peak memory that is printed with them: the most of any rank's.

    A step that a later attempt printed again has the peak of that one.
    """
    steps = settled.steps
    number = np.array([one.line for one in sections]).searchsorted(steps.line, "right") - 1
    peaks: dict[int, int] = {}
    for section, one in enumerate(sections):
        for step, peak in _peaks(one.text):
            place = int(steps.step.searchsorted(step))
            if place < len(steps) and steps.step[place] == step and number[place] == section:
                peaks[place] = max(peak, peaks.get(place, 0))
    if not peaks:
        return settled
    values, known = steps.column("peak_memory_bytes")
    values, known, places = values.copy(), known.copy(), [*peaks]
    values[places], known[places] = [*peaks.values()], True
    column = StepColumn(values, known)
    return replace(settled, steps=steps.with_columns(peak_memory_bytes=column))


def _peaks(text: str) -> list[tuple[int, int]]:
    """The iterations behind which a text reports the peak memory of a rank, and the peak."""
    found = []
    for report in _MEMORY.finditer(text):
        behind = text[report.end() : report.end() + _LONGEST_MEMORY].partition("(after ")[0]
        peak = _PEAK.search(re.sub(r" ?\n", "", behind))
        size = size_bytes(peak[1], _UNITS[report[2]]) if peak else None
        if size:
            found.append((int(report[1]), size))
    return found


FORMAT: Final = LogFormat("megatron_lm", _recognizes, _parse, prints_means=True)
