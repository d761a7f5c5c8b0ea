"""Megatron-Bridge logs: Megatron's iteration lines, and the model TFLOP/s from another rank.

`Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU` comes from rank 0, the iteration line
from the last rank; only the order of lines and the rounded time of the step show which iteration a
rate belongs to. A rate on the wrong step is worse than none: what remains open is left out. Source
of the format: src/megatron/bridge/training/utils/train_utils.py.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from perfdb.aggregation import steps_per_line
from perfdb.errors import Diagnostic
from perfdb.formats.base import Content, LogFormat, ParsedLog
from perfdb.formats.columns import Flags, Floats, Ints, StepColumn, Steps
from perfdb.formats.megatron_lm import LOADED, SYNTAX, bridge_steps, iterations_log, steps_of
from perfdb.formats.numbers import NUMBER
from perfdb.formats.scan import Block, Scan
from perfdb.formats.settings import described
from perfdb.formats.settle import settle
from perfdb.formats.steplines import StepReader
from perfdb.record import Outcome
from perfdb.text import decoded
from perfdb.units import counted

_MARKER: Final = b"Step Time :"
_START: Final = b"ConfigContainer:"
_RATE: Final = re.compile(
    rf"Step Time : *({NUMBER})s GPU utilization: *({NUMBER}) *(?:MODEL_)?TFLOP/s/GPU"
)
_LONGEST_RATE: Final = 160
"""How many bytes a rate takes at the most, over the ends of lines."""
_ROUNDING_S: Final = 0.0051
"""Half of the hundredth that a rate's time is rounded to, and of the iteration's tenth of a ms."""
_NEAR: Final = 8
"""How many iterations before and behind a rate may be its own."""
_NONE: Final = -1


def _parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan = Scan(content, SYNTAX.marker, _MARKER, starts=(_START, LOADED))
    reader, rates = StepReader(where, SYNTAX, steps_of), _RateReader()
    for block in scan:
        rates.add(block)
        reader.add(block)
    printed = reader.steps()
    places, doubtful = rates.places(printed)
    printed = _with_rates(printed, rates, places)
    settled = settle(where, printed, reader.problems, scan.starts)
    notes = (*settled.notes, *_notes(where, places, doubtful, rates.num_unreadable))
    text = "".join(scan.sections(settled.first_line))
    settings = described(text, {"framework": "megatron-bridge"})
    log = iterations_log(scan, replace(settled, notes=notes), settings)
    return (log if len(printed) or not len(places) else _of_rank_zero(where, log),)


class _RateReader:
    """Reads the lines of rank 0: times of steps in seconds, and TFLOP/s of a GPU.

    `num_unreadable`: how many of them have neither.
    """

    def __init__(self) -> None:
        self._lines: list[Ints] = []
        self._numbers: list[Floats] = []
        self.num_unreadable = 0

    def add(self, block: Block) -> None:
        """Take the rates of the next block of a log."""
        places, lines = block.lines_with(_MARKER)
        found = [_rates_at(block, place) for place in places.tolist()]
        self._lines.append(np.repeat(lines, list(map(len, found))))
        numbers = [pair for pairs in found for pair in pairs]
        self._numbers.append(np.array(numbers, np.float64).reshape(-1, 2))
        self.num_unreadable += sum(not pairs for pairs in found)

    @property
    def numbers(self) -> Floats:
        """A time and a rate in each row."""
        return np.concatenate([np.empty((0, 2)), *self._numbers])

    def places(self, printed: Steps) -> tuple[Ints, int]:
        """The index of the iteration of each rate, or -1; and how many rates fit several.

        If a log has all iterations of its run and as many rates, they are paired in order. Else a
        rate belongs to the only iteration near it with its time.
        """
        lines, times = np.concatenate([np.empty(0, np.int64), *self._lines]), self.numbers[:, 0]
        size, places = len(printed), np.full(len(times), _NONE)
        if not size or not len(times):
            return places, 0
        both = min(size, len(times))
        in_order = _near(times[:both], printed.step_time_s[:both]).all()
        if in_order and _is_whole(printed) and abs(len(times) - size) <= 1:
            places[:both] = np.arange(both)
            return places, 0
        next_ = printed.line.searchsorted(lines)
        num_near, asked = np.zeros(len(times), np.int64), np.zeros(size, np.int64)
        for shift in range(-_NEAR, _NEAR):
            at = (next_ + shift).clip(0, size - 1)
            fits = (at == next_ + shift) & _near(times, printed.step_time_s[at])
            num_near += fits
            places[fits] = at[fits]
            asked += np.bincount(at[fits], minlength=size)
        is_sure = (num_near == 1) & (asked[places] == 1)
        return np.where(is_sure, places, _NONE), int(((num_near > 0) & ~is_sure).sum())


def _rates_at(block: Block, place: int) -> list[tuple[str, str]]:
    """The rates of a line from a marker on, or the one that is wrapped on to the next."""
    _, end = block.line_around(place)
    whole: list[tuple[str, str]] = _RATE.findall(decoded(block.text[place:end]))
    if whole:
        return whole
    broken = block.text[place : min(place + _LONGEST_RATE, block.end)].translate(None, b"\r\n")
    one = _RATE.match(decoded(broken))
    return [(one[1], one[2])] if one else []


def _is_whole(printed: Steps) -> bool:
    """Whether a log has every iteration from the start of its run, once and in order."""
    steps, counts = printed.step, steps_per_line(printed.step)
    gaps = np.diff(steps)
    return bool(steps[0] == counts[0] and ((gaps > 0) & (gaps == counts[1:])).all())


def _near(times: Floats, others: Floats) -> Flags:
    with np.errstate(invalid="ignore"):  # two that are infinite
        return np.asarray(np.abs(times - others) <= _ROUNDING_S)


def _with_rates(printed: Steps, rates: _RateReader, places: Ints) -> Steps:
    """The steps with the rates of rank 0 in place of their own.

    A rate of 0 is not known: Megatron-Bridge 25.11 prints it for all hybrid models.
    """
    own = printed.column("model_tflops_per_sec_per_gpu")
    values, known = own.values.copy(), own.known.copy()
    at, found = places[places != _NONE], rates.numbers[places != _NONE, 1]
    is_better = (found != 0) | ~known[at]
    values[at[is_better]], known[at[is_better]] = found[is_better], True
    return printed.with_columns(model_tflops_per_sec_per_gpu=StepColumn(values, known))


def _of_rank_zero(where: str, log: ParsedLog) -> ParsedLog:
    """A log with the rates and without an iteration: its steps are in another file."""
    message = "it has the 'Step Time' lines of rank 0 and no iteration line"
    remedy = (
        "ingest the last rank's log, which has them, with --format megatron_bridge; "
        "join the two for the TFLOP/s beside them"
    )
    error = message if log.outcome is Outcome.NO_DATA else log.error
    problem = Diagnostic(where, message, remedy=remedy)
    return replace(log, error=error, problems=(*log.problems, problem))


def _notes(where: str, places: Ints, doubtful: int, num_unreadable: int) -> Iterator[Diagnostic]:
    """What became of the rates without an iteration."""
    lost = int((places == _NONE).sum()) - doubtful
    if lost and (places != _NONE).any():
        message = f"{lost} TFLOP/s figures belong to no iteration that the log holds"
        yield Diagnostic(where, message)
    if doubtful:
        message = f"{doubtful} TFLOP/s figures may belong to one of several iterations"
        yield Diagnostic(where, f"{message}: they are left out")
    if num_unreadable:
        lines = counted(num_unreadable, "'Step Time' line")
        yield Diagnostic(where, f"{lines} without a time and a rate")


FORMAT: Final = LogFormat("megatron_bridge", bridge_steps, _parse, prints_means=True)
