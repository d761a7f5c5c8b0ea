"""Megatron-Bridge logs: Megatron's iteration lines, and the model TFLOP/s from another rank.

`Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU` comes from rank 0, the iteration line
from the last rank; nothing keeps the two in step. A rate belongs to the iteration that is next to
it and whose time rounds to the same hundredth of a second.
Source of the format: src/megatron/bridge/training/utils/train_utils.py.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfdb.errors import Problem
from perfdb.formats import settings
from perfdb.formats.base import Content, ParsedLog
from perfdb.formats.block import Block
from perfdb.formats.iterations import STEP_LINE, SYNTAX, iterations, log_of, readings
from perfdb.formats.numbers import NUMBER
from perfdb.formats.readings import Column, Readings
from perfdb.formats.scan import Scan, pieces, plain
from perfdb.formats.steplines import StepLines

NAME = "megatron_bridge"

_MARKER = b"Step Time :"
_RATE = re.compile(
    rf"Step Time : *({NUMBER})s GPU utilization: *({NUMBER}) *(?:MODEL_)?TFLOP/s/GPU"
)
_RATE_LINE = re.compile(rb"Step Time : *[\d.]+s GPU utilization:")
_ROUNDING_S = 0.0051
"""Half of the hundredth that a rate's time is rounded to, and of the iteration's tenth of a ms."""
_NEAR = 8
"""How many iterations around a rate may be its own: the two ranks print a little apart."""


def recognises(head: bytes, name: str) -> bool:
    """Whether a rate of Megatron-Bridge or its configuration stands among the first bytes."""
    text = plain(head)
    return bool(_RATE_LINE.search(text)) or (
        b"ConfigContainer" in text and bool(STEP_LINE.search(text))
    )


@dataclass(frozen=True)
class _Rate:
    line: int
    step_time_s: float
    tflops: float


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    scan, lines = Scan(content, SYNTAX.marker, _MARKER), StepLines(where, SYNTAX, readings)
    rates: list[_Rate] = []
    for block in scan:
        rates += _rates(block)
        lines.add(block)
    printed = lines.readings()
    rate_of = _pairs(printed, rates)
    steps = iterations(where, _with_rates(printed, rate_of), lines)
    steps = replace(steps, notes=steps.notes + _lost_note(where, len(rates) - len(rate_of)))
    said = settings.mentioned(scan.preamble)
    return (log_of("megatron-bridge", said, scan, lines, steps),)


def _rates(block: Block) -> Iterator[_Rate]:
    for piece in pieces(block, _MARKER):
        for seconds, tflops in _RATE.findall(piece.text):
            yield _Rate(piece.line, float(seconds), float(tflops))


def _pairs(printed: Readings, rates: Sequence[_Rate]) -> dict[int, float]:
    """The rate of each iteration, by its place in the log: the next that fits, else one before."""
    lines, times = printed.line.tolist(), printed.step_time_s.tolist()
    taken: dict[int, float] = {}
    for rate in rates:
        place = bisect_left(lines, rate.line)
        near = (*range(place, place + _NEAR), *range(place - 1, place - 1 - _NEAR, -1))
        free = (one for one in near if 0 <= one < len(lines) and one not in taken)
        fits = (one for one in free if abs(rate.step_time_s - times[one]) <= _ROUNDING_S)
        found = next(fits, None)
        if found is not None:
            taken[found] = rate.tflops
    return taken


def _with_rates(printed: Readings, rate_of: Mapping[int, float]) -> Readings:
    # A rate of 0 is not known: Megatron-Bridge 25.11 prints it for all hybrid models.
    known = {place: rate for place, rate in rate_of.items() if rate}
    own = printed.column("model_tflops_per_sec_per_gpu")
    column = Column(own.values.copy(), own.known.copy())
    column.values[list(known)] = list(known.values())
    column.known[list(known)] = True
    return printed.with_columns(model_tflops_per_sec_per_gpu=column)


def _lost_note(where: str, lost: int) -> tuple[Problem, ...]:
    if not lost:
        return ()
    return (Problem(where, f"{lost} TFLOP/s figures belong to no iteration that the log holds"),)
