"""Settles what the steps of a log are: each once and in order, and what is odd about them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdb.errors import Problem
from perfdb.formats.base import Reading
from perfdb.formats.numbers import count
from perfdb.formats.readings import Column, Flags, Ints, Readings
from perfdb.record import MOST
from perfdb.units import counted
from perfdb.windows import LONGEST_STEP_S, SHORTEST_STEP_S

MOST_KEPT = 1000
"""How many unreadable steps are remembered: a damaged log may hold millions."""

SEVERAL_RANKS = 1.9
"""A log that prints nearly every step so often has the lines of several ranks."""

MOST_APART = 3
"""How many step lines back the first step may stand that another rank prints; else a run begins."""

AGAIN_AND_AGAIN = 0.1
"""Where so many of its lines go on with the step of the line before, a log has several ranks, or
bars drawn again, unless more stands between these lines than between others: that of a start."""

MOST_PROBLEMS = 20
"""How many problems of one log are told one by one."""


def numbered(printed: Column, base: int) -> Ints:
    """Steps counted from 1, of numbers counted from 0 or 1; 0 stands for what numbers no step."""
    is_number = printed.known & (np.abs(printed.values) < MOST)
    numbers = np.where(is_number, printed.values, 0).astype(np.int64)
    return np.where(is_number, numbers + 1 - base, 0)


def sizes(printed: Column) -> Column:
    """Whole amounts, as of bytes or tokens, from 1 on."""
    known = printed.known & (printed.values >= 1) & (printed.values < MOST)
    return Column(np.rint(np.where(known, printed.values, 0)).astype(np.int64), known)


@dataclass(frozen=True)
class Settled:
    """The steps of a log, each once and in order, with problems and notes."""

    readings: Sequence[Reading]
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    restarts: tuple[int, ...] = ()
    """The first step of each attempt but the first, as far as steps before it are kept."""
    attempt_line: int = 0
    """The line of the last attempt's first step; 0 where there was no restart."""
    earlier_until: int | None = None
    """The line of the last step of an earlier run, where the log holds several."""

    @property
    def restarted_at(self) -> int | None:
        """The first step of the last attempt, where those before it are of an earlier one."""
        return self.restarts[-1] if self.restarts else None


def settle(where: str, readings: Iterable[Reading], problems: Iterable[Problem] = ()) -> Settled:
    """Each step once: of several attempts at a step the last one printed is kept, and counted."""
    printed = list(readings)
    countable = [reading for reading in printed if abs(reading.step) <= MOST]
    others = [_impossible(where, reading) for reading in printed if abs(reading.step) > MOST]
    return settle_columns(where, Readings.of(countable), [*problems, *others])


def settle_columns(where: str, printed: Readings, problems: Iterable[Problem] = ()) -> Settled:
    """The same of columns: of several runs the steps of the last."""
    times = printed.step_time_s
    possible = (printed.step > 0) & (times >= SHORTEST_STEP_S) & (times <= LONGEST_STEP_S)
    if not possible.all():
        problems = [*problems, *(_impossible(where, one) for one in printed.at(~possible))]
        printed = printed.at(possible)
    start = _start_of_last(printed)
    until = int(printed.line[start - 1]) if start else None
    printed = printed.at(slice(start, None))
    kept = _last_of_each(printed)
    notes = (*_repeated(where, printed, kept), *_zero_rates(where, kept))
    again = printed.at(_restarted(printed, kept))
    restarts, line = _restarts(again, kept), int(again.line[-1]) if len(again) else 0
    return Settled(kept, few(where, list(problems)), notes, restarts, line, until)


def timed(where: str, steps: Settled, tokens: int, num_gpus: int = 1) -> Settled:
    """Steps of so many tokens, whose times are those of one token of one of the GPUs till now."""
    whole = (
        one._replace(step_time_s=one.step_time_s * tokens / num_gpus, tokens=count(tokens))
        for one in steps.readings
    )
    settled = settle(where, whole, steps.problems)
    return replace(steps, readings=settled.readings, problems=settled.problems)


def _impossible(where: str, reading: Reading) -> Problem:
    message = f"step {reading.step}: {reading.step_time_s:g} seconds is no duration"
    return Problem(where, message, line=reading.line)


def _start_of_last(printed: Readings) -> int:
    """The place at which a log last goes back to its first step, or before it, from far behind it.

    A restart goes back to a checkpoint, and ranks that share a log are a few lines apart.
    """
    back = _back(printed)
    firsts = back[printed.step[back] <= np.minimum.accumulate(printed.step)[back - 1]]
    if not len(firsts):
        return 0
    _, order = np.unique(printed.step, return_inverse=True)
    far = firsts[order[firsts - 1] - order[firsts] > MOST_APART]
    return int(far[-1]) if len(far) else 0


def _back(printed: Readings) -> Ints:
    """The places of steps that a log goes back to; where the lines say nothing, so does order."""
    is_back = ((np.diff(printed.step) < 0) & (np.diff(printed.line) > 0)) | _at_last(printed)
    return np.flatnonzero(is_back) + 1


def _at_last(printed: Readings) -> Flags:
    """Which lines are followed by a restart at the very step that they printed."""
    gaps, on = np.diff(printed.line), np.diff(printed.step) > 0
    is_new = (np.diff(printed.step_time_s) != 0) & (gaps > 0)
    again: Flags = (np.diff(printed.step) == 0) & is_new
    if not (again.any() and on.any()):
        return np.zeros_like(again)
    is_often = again.sum() > AGAIN_AND_AGAIN * len(printed)
    is_far = gaps[again].min() >= np.median(gaps[on]) + is_often
    return again if is_far else np.zeros_like(again)


def _last_of_each(printed: Readings) -> Readings:
    if (np.diff(printed.step) > 0).all():
        return printed
    order = np.argsort(printed.step, kind="stable")
    is_last = np.diff(printed.step[order], append=-1) != 0
    return printed.at(order[is_last])


def _restarted(printed: Readings, kept: Readings) -> Ints:
    """The places at which an attempt begins again.

    Where nearly every step is printed twice they are those of several ranks, one behind the other.
    """
    is_of_ranks = len(printed) >= SEVERAL_RANKS * len(kept)
    return np.empty(0, np.int64) if is_of_ranks else _back(printed)


def _restarts(again: Readings, kept: Readings) -> tuple[int, ...]:
    """The steps that a log goes back to, but for those of which a later attempt left nothing."""
    starts: list[int] = []
    for step in again.step[::-1].tolist():
        if step > kept.step[0] and (not starts or step < starts[-1]):
            starts.append(step)
    return tuple(reversed(starts))


def _repeated(where: str, printed: Readings, kept: Readings) -> tuple[Problem, ...]:
    """A note on steps printed more than once; a bar drawn again unchanged repeats nothing."""
    if len(printed) == len(kept):
        return ()
    numbers, counts = np.unique(printed.step, return_counts=True)
    several = printed.at(np.isin(printed.step, numbers[counts > 1]))
    different = {repr(reading._replace(line=0)): reading.step for reading in several}
    times = Counter(different.values())
    repeated = [step for step, count in times.items() if count > 1]
    if not repeated:
        return ()
    message = (
        f"{len(repeated)} steps are printed more than once, up to {max(times.values())} times "
        f"(a restart, or several ranks in one log): the last of each is kept"
    )
    return (Problem(where, message),)


def _zero_rates(where: str, kept: Readings) -> tuple[Problem, ...]:
    """A note on steps of 0 TFLOP/s: programs print it where they cannot count the FLOPs."""
    rate = kept.column("model_tflops_per_sec_per_gpu")
    zeros = np.flatnonzero(rate.known & (rate.values == 0))
    if not len(zeros):
        return ()
    message = f"{counted(len(zeros), 'step')} with 0 TFLOP/s: it is not known, and left out"
    return (Problem(where, message, line=int(kept.line[zeros[0]])),)


def few(where: str, problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """The first problems in the order of their lines, and how many more there are."""
    in_order = sorted(problems, key=lambda problem: problem.line or 0)
    rest = len(in_order) - MOST_PROBLEMS
    more = (Problem(where, f"{rest} more step lines that cannot be read"),) if rest > 0 else ()
    return (*in_order[:MOST_PROBLEMS], *more)


def interval_note(where: str, readings: Sequence[Reading]) -> tuple[Problem, ...]:
    """A note where each line of a log stands for several steps."""
    steps = Readings.of(readings).step
    usual = _interval(steps)
    if usual == 1:
        return ()
    first = ", the first of one step" if steps[0] == 1 else ""
    message = f"each time is the mean of the {usual} steps up to its own{first}"
    return (Problem(where, message),)


def spans(steps: Ints) -> Ints:
    """How many steps each line stands for in a log whose times are means since the line before.

    Behind a gap, whose lines are lost, it is as many as usual. Nothing tells of how many a log's
    only line is: it counts as one. Megatron-Core does not start anew behind the very first step;
    the line after it has that one in its mean, too.
    """
    return np.minimum(np.diff(steps, prepend=0), _interval(steps))


def _interval(steps: Ints) -> int:
    # Newer versions log the very first step too, whatever the interval.
    return _most_common(np.diff(steps[1:] if len(steps) > 2 and steps[0] == 1 else steps))


def _most_common(gaps: Ints) -> int:
    """The gap that is seen most often, and first of several; 1 where there is none."""
    if not len(gaps):
        return 1
    distinct, places, counts = np.unique(gaps, return_index=True, return_counts=True)
    return int(distinct[np.lexsort((places, -counts))[0]])
