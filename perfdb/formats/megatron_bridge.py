"""Megatron-Bridge logs: Megatron's iteration lines, and the model TFLOP/s from another rank.

`Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU` comes from rank 0, the iteration line
from the last rank; nothing keeps the two in step. See `perfdb.formats.rank_rates`.
Source of the format: src/megatron/bridge/training/utils/train_utils.py.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats import batch
from perfdb.formats.base import Content, ParsedLog
from perfdb.formats.begun import LOADED
from perfdb.formats.block import Block
from perfdb.formats.iterations import STEP_LINE, SYNTAX, iterations, log_of, planned, readings
from perfdb.formats.numbers import NUMBER
from perfdb.formats.printed import mentioned
from perfdb.formats.rank_rates import RATE, Paired, paired
from perfdb.formats.readings import Column, Readings
from perfdb.formats.scan import Scan
from perfdb.formats.shelf import Shelf, each
from perfdb.formats.steplines import StepLines
from perfdb.log_text import decoded, plain
from perfdb.record import Outcome
from perfdb.units import counted

NAME = "megatron_bridge"

_MARKER = b"Step Time :"
_START = b"ConfigContainer:"
_RATE = re.compile(
    rf"Step Time : *({NUMBER})s GPU utilization: *({NUMBER}) *(?:MODEL_)?TFLOP/s/GPU"
)
_RATE_HALVES = (
    re.compile(rb"Step Time : *[\d.]+s GPU utilization:"),
    re.compile(rb"GPU utilization: *[\d.]+ *(?:MODEL_)?TFLOP/s/GPU"),
)
"""Of a line that may be broken, the one or the other is whole; an alternation is slow to find."""
_OF_MEGATRON_LM = b"---- arguments ----"
_FOUND = "rate of rank 0"
"""The column of iterations that has it; no step is kept with it."""
_LONGEST_RATE = 160
"""How many bytes a rate takes at the most, over the ends of lines."""


def recognises(head: bytes, name: str) -> int:
    """How many steps are among the first bytes, with Megatron-Bridge's rates or configuration."""
    text = plain(head)
    rates = max(len(half.findall(text)) for half in _RATE_HALVES)
    steps = len(STEP_LINE.findall(text))
    is_of_other = _OF_MEGATRON_LM in text
    # Fewer rates are quoted ones: the program prints one for each step, if late.
    if rates and rates * (2 if is_of_other else 10) >= steps:
        return max(rates, steps)
    return steps if b"ConfigContainer" in text and not is_of_other else 0


class _Rates:
    """Reads the lines of rank 0; `num_unreadable` of them are none."""

    def __init__(self) -> None:
        self._found = Shelf()
        self.num_unreadable = 0

    def add(self, block: Block) -> None:
        """Take the rates of the next block of a log."""
        places, numbers = block.lines_with(_MARKER)
        printed: list[tuple[int, float, float]] = []
        for place, line in zip(places.tolist(), numbers.tolist(), strict=True):
            found = _rates_at(block, place)
            printed += [(line, float(time), float(rate)) for time, rate in found]
            self.num_unreadable += not found
        if printed:
            lines, times, rates = (np.array(cells) for cells in zip(*printed, strict=True))
            steps = np.zeros(len(printed), np.int64)
            self._found.add(Readings(lines, steps, times, {RATE: Column.full(rates)}))

    def all(self) -> Readings:
        """The rates of all the blocks, of steps that are not known."""
        return self._found.readings()


def _rates_at(block: Block, place: int) -> list[tuple[str, str]]:
    """The rates of a line from a marker on, or the one that goes on on the next."""
    _, end = block.line_around(place)
    whole = _RATE.findall(decoded(block.text[place:end]))
    if whole:
        return whole
    broken = block.text[place : min(place + _LONGEST_RATE, block.end)].translate(None, b"\r\n")
    one = _RATE.match(decoded(broken))
    return [(one[1], one[2])] if one else []


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    scan = Scan(content, SYNTAX.marker, _MARKER, starts=(_START, LOADED))
    lines = StepLines(where, SYNTAX, readings)
    reader = _Rates()
    for block in scan:
        reader.add(block)
        lines.add(block)
    printed, rates = lines.readings(), reader.all()
    pairs = paired(printed, rates, planned(lines))
    steps = iterations(where, _with_rates(printed, pairs.rates), lines)
    notes = (*steps.notes, *_notes(where, pairs, reader.num_unreadable))
    log = log_of(where, scan, lines, replace(steps, notes=notes))
    log = mentioned(scan.preamble, log).of(log, framework="megatron-bridge")
    return (_of_rank_zero(where, log) if rates and not printed else batch.stated(where, log),)


def _of_rank_zero(where: str, log: ParsedLog) -> ParsedLog:
    """A log with the rates and without an iteration: its steps are in another file."""
    message = "it has the 'Step Time' lines of rank 0 and no iteration line"
    remedy = (
        "ingest the last rank's log, which has them, with --format megatron_bridge; "
        "join the two for the TFLOP/s beside them"
    )
    error = message if log.outcome is Outcome.NO_DATA else log.error
    return replace(
        log, error=error, problems=(*log.problems, Diagnostic(where, message, remedy=remedy))
    )


def _with_rates(printed: Readings, rates: Column) -> Readings:
    def told(some: Readings) -> Readings:
        own, found = some.column(RATE), some.column(_FOUND)
        # A rate of 0 is not known: Megatron-Bridge 25.11 prints it for all hybrid models.
        is_better = found.known & ((found.values != 0) | ~own.known)
        values = np.where(is_better, found.values, own.values)
        return some.without(_FOUND).with_columns(**{RATE: Column(values, own.known | is_better)})

    return each(printed.with_columns(**{_FOUND: rates}), told)


def _notes(where: str, pairs: Paired, num_unreadable: int) -> Iterator[Diagnostic]:
    """What became of the rates that no iteration has, where there are any."""
    if pairs.lost and pairs.found:
        message = f"{pairs.lost} TFLOP/s figures belong to no iteration that the log holds"
        yield Diagnostic(where, message)
    if pairs.doubtful:
        message = f"{pairs.doubtful} TFLOP/s figures may belong to one of several iterations"
        yield Diagnostic(where, f"{message}: they are left out")
    if num_unreadable:
        lines = counted(num_unreadable, "'Step Time' line")
        yield Diagnostic(where, f"{lines} without a time and a rate")
