"""Megatron-Bridge logs: Megatron's iteration lines, and the model TFLOP/s from another rank.

`Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU` comes from rank 0, the iteration line
from the last rank; nothing but the order of lines and the rounded time of the step shows which
iteration a rate belongs to. A rate on the wrong step is worse than none: what remains open is left
out. Source of the format: src/megatron/bridge/training/utils/train_utils.py.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from perfdb.aggregation import steps_per_line
from perfdb.errors import Diagnostic
from perfdb.formats import batch
from perfdb.formats.attempts import LOADED, settings_of, with_settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, RunSettings
from perfdb.formats.columns import Flags, Floats, Ints, StepColumn, Steps
from perfdb.formats.megatron_lm import (
    SYNTAX,
    bridge_steps,
    iterations,
    log_of,
    steps_of,
)
from perfdb.formats.mentions import mentioned
from perfdb.formats.numbers import NUMBER
from perfdb.formats.scan import Block, Scan
from perfdb.formats.steplines import StepReader
from perfdb.log_text import decoded
from perfdb.record import Outcome
from perfdb.units import counted

_MARKER: Final = b"Step Time :"
_START: Final = b"ConfigContainer:"
_RATE = re.compile(
    rf"Step Time : *({NUMBER})s GPU utilization: *({NUMBER}) *(?:MODEL_)?TFLOP/s/GPU"
)
_LONGEST_RATE: Final = 160
"""How many bytes a rate takes at the most, over the ends of lines."""
_ROUNDING_S: Final = 0.0051
"""Half of the hundredth that a rate's time is rounded to, and of the iteration's tenth of a ms."""
_NEAR: Final = 8
"""How many iterations before and behind a rate may be its own."""
_NONE: Final = -1


def _recognizes(head: bytes, name: str) -> int:
    return bridge_steps(head)


def _parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan = Scan(content, SYNTAX.marker, _MARKER, starts=(_START, LOADED))
    reader, rates = StepReader(where, SYNTAX, steps_of), _RateReader()
    for block in scan:
        rates.add(block)
        reader.add(block)
    printed = reader.steps()
    pairs = paired(printed, rates.rates())
    settled = iterations(where, _with_rates(printed, pairs.rates), reader)
    notes = (*settled.notes, *_notes(where, pairs, rates.num_unreadable))
    log = log_of(where, scan, reader, replace(settled, notes=notes))
    log = with_settings(log, settings_of(scan.sections, _described))
    of_rank_zero = len(pairs.places) and not printed
    return (_of_rank_zero(where, log) if of_rank_zero else batch.stated(where, log),)


def _described(text: str) -> RunSettings:
    return mentioned(text).described({"framework": "megatron-bridge"})


@dataclass(frozen=True, eq=False)
class Rates:
    """What rank 0 prints: on which lines, the times of steps in seconds, and TFLOP/s of a GPU."""

    lines: Ints
    times: Floats
    values: Floats


class _RateReader:
    """Reads the lines of rank 0; `num_unreadable` of them are none."""

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

    def rates(self) -> Rates:
        """The rates of all the blocks."""
        numbers = np.concatenate([np.empty((0, 2)), *self._numbers])
        lines = np.concatenate([np.empty(0, np.int64), *self._lines])
        return Rates(lines, numbers[:, 0], numbers[:, 1])


def _rates_at(block: Block, place: int) -> list[tuple[str, str]]:
    """The rates of a line from a marker on, or the one that is wrapped on to the next."""
    _, end = block.line_around(place)
    whole: list[tuple[str, str]] = _RATE.findall(decoded(block.text[place:end]))
    if whole:
        return whole
    broken = block.text[place : min(place + _LONGEST_RATE, block.end)].translate(None, b"\r\n")
    one = _RATE.match(decoded(broken))
    return [(one[1], one[2])] if one else []


@dataclass(frozen=True, eq=False)
class PairedRates:
    """The rate of each iteration; `places`: the iteration of each rate, or -1.

    `lost`: rates near which no iteration has their time. `doubtful`: they fit several.
    """

    rates: StepColumn
    places: Ints
    lost: int = 0
    doubtful: int = 0


def paired(printed: Steps, rates: Rates) -> PairedRates:
    """The iteration of each rate.

    Where a log has all iterations of its run and as many rates, they are paired in order. Else a
    rate is as many lines before or behind its iteration as most of the others, by their times; one
    that is not there is that of the only iteration near it with its time.
    """
    size = len(printed)
    if not size or not len(rates.lines):
        empty = np.full(len(rates.lines), _NONE)
        return PairedRates(StepColumn.empty(size), empty, lost=len(empty))
    both = min(size, len(rates.lines))
    in_order = _near(rates.times[:both], printed.step_time_s[:both]).all()
    if _is_whole(printed) and abs(len(rates.lines) - size) <= 1 and in_order:
        places = np.arange(both)
        rates = Rates(rates.lines[:both], rates.times[:both], rates.values[:both])
        return PairedRates(_placed(rates, places, size), places)
    pairs = _Pairs(printed, rates)
    places, doubtful = pairs.places()
    lost = int((places == _NONE).sum()) - doubtful
    return PairedRates(_placed(rates, places, size), places, lost, doubtful)


def _placed(rates: Rates, places: Ints, size: int) -> StepColumn:
    values, known = np.zeros(size), np.zeros(size, np.bool_)
    is_found = places != _NONE
    values[places[is_found]] = rates.values[is_found]
    known[places[is_found]] = True
    return StepColumn(values, known)


def _is_whole(printed: Steps) -> bool:
    """Whether a log has every iteration from the start of its run, once and in order."""
    steps, counts = printed.step, steps_per_line(printed.step)
    gaps = np.diff(steps)
    return bool(steps[0] == counts[0] and ((gaps > 0) & (gaps == counts[1:])).all())


def _near(times: Floats, others: Floats) -> Flags:
    with np.errstate(invalid="ignore"):  # two that are infinite
        return np.asarray(np.abs(times - others) <= _ROUNDING_S)


class _Pairs:
    """Finds the iterations of rates by the place of the one that comes next after each."""

    def __init__(self, printed: Steps, rates: Rates) -> None:
        self._size = len(printed)
        self._times = printed.step_time_s
        self._rate_times = rates.times
        self._next = printed.line.searchsorted(rates.lines)

    def places(self) -> tuple[Ints, int]:
        """The iteration of each rate, or -1; and how many rates fit several iterations."""
        shifts = range(-_NEAR, _NEAR)
        fits = {shift: self._fits(shift) for shift in shifts}
        second, best = sorted(shifts, key=lambda one: int(fits[one].sum()))[-2:]
        places = np.full(len(self._next), _NONE)
        if 2 * fits[second].sum() < fits[best].sum():
            at = self._next + best
            places = np.where(fits[best] & self._once(at, fits[best]), at, _NONE)
        is_taken = np.zeros(self._size, np.bool_)
        is_taken[places[places != _NONE]] = True
        return self._by_time(places, is_taken, fits)

    def _fits(self, shift: int) -> Flags:
        """Which rates have the time of the iteration so far off."""
        at = self._next + shift
        inside = (at >= 0) & (at < self._size)
        times = self._times[at.clip(0, self._size - 1)]
        return np.asarray(inside & _near(self._rate_times, times))

    def _once(self, at: Ints, fits: Flags) -> Flags:
        """Which places are asked for by one rate only."""
        counts = np.bincount(at[fits], minlength=self._size)
        return np.asarray(counts[at.clip(0, self._size - 1)] == 1)

    def _by_time(self, places: Ints, is_taken: Flags, fits: dict[int, Flags]) -> tuple[Ints, int]:
        num_near, asked = np.zeros(len(places), np.int64), np.zeros(self._size, np.int64)
        latest, is_open = np.full(len(places), _NONE), places == _NONE
        for shift, fit in fits.items():
            at = (self._next + shift).clip(0, self._size - 1)
            may = is_open & fit & ~is_taken[at]
            num_near += may
            latest[may] = at[may]
            asked += np.bincount(at[may], minlength=self._size)
        is_sure = (num_near == 1) & (asked[latest] == 1)
        return np.where(is_sure, latest, places), int(((num_near > 0) & ~is_sure).sum())


def _with_rates(printed: Steps, found: StepColumn) -> Steps:
    own = printed.column("model_tflops_per_sec_per_gpu")
    # A rate of 0 is not known: Megatron-Bridge 25.11 prints it for all hybrid models.
    is_better = found.known & ((found.values != 0) | ~own.known)
    values = np.where(is_better, found.values, own.values)
    rates = StepColumn(values, own.known | is_better)
    return printed.with_columns(model_tflops_per_sec_per_gpu=rates)


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


def _notes(where: str, pairs: PairedRates, num_unreadable: int) -> Iterator[Diagnostic]:
    """What became of the rates that no iteration has, where there are any."""
    if pairs.lost and (pairs.places != _NONE).any():
        message = f"{pairs.lost} TFLOP/s figures belong to no iteration that the log holds"
        yield Diagnostic(where, message)
    if pairs.doubtful:
        message = f"{pairs.doubtful} TFLOP/s figures may belong to one of several iterations"
        yield Diagnostic(where, f"{message}: they are left out")
    if num_unreadable:
        lines = counted(num_unreadable, "'Step Time' line")
        yield Diagnostic(where, f"{lines} without a time and a rate")


FORMAT: Final = LogFormat("megatron_bridge", _recognizes, _parse, prints_means=True)
