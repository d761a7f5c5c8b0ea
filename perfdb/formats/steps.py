"""Settles what the steps of a log are: each once and in order, and what is odd about them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

import numpy as np

from perfdb.errors import Problem
from perfdb.formats import piecewise
from perfdb.formats.base import Reading
from perfdb.formats.numbers import count
from perfdb.formats.piecewise import held, pieces, places, rises
from perfdb.formats.readings import Column, Flags, Floats, Ints, Readings
from perfdb.formats.shelf import Shelf, picked, shelved
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
    told = list(problems)
    return settle_columns(where, countable(where, readings, told), told)


def countable(where: str, readings: Iterable[Reading], problems: list[Problem]) -> Readings:
    """Readings as columns; those of steps that no column has room for become problems."""
    if isinstance(readings, Readings):
        return readings

    def counted() -> Iterator[Reading]:
        for reading in readings:
            if abs(reading.step) <= MOST:
                yield reading
            else:
                problems.append(_impossible(where, reading))

    return shelved(counted())


def settle_columns(where: str, printed: Readings, problems: Iterable[Problem] = ()) -> Settled:
    """The same of columns: of several runs the steps of the last."""
    columns = (printed.step, printed.step_time_s)
    odd = printed.at(places(_are_odd, *columns))
    if len(odd):
        problems = [*problems, *(_impossible(where, one) for one in odd[:MOST_KEPT])]
        printed = picked(printed, places(lambda *some: ~_are_odd(*some), *columns))
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


def _are_odd(steps: Ints, times: Floats) -> Flags:
    """Which steps are none, or have taken a time that none can take."""
    return np.asarray(~((steps > 0) & (times >= SHORTEST_STEP_S) & (times <= LONGEST_STEP_S)))


def _impossible(where: str, reading: Reading) -> Problem:
    message = f"step {reading.step}: {reading.step_time_s:g} seconds is no duration"
    return Problem(where, message, line=reading.line)


def _start_of_last(printed: Readings) -> int:
    """The place at which a log last goes back to its first step, or before it, from far behind it.

    A restart goes back to a checkpoint, and ranks that share a log are a few lines apart.
    """
    back = _back(printed)
    if not len(back):
        return 0
    steps = held(printed.step)
    firsts = back[steps[back] <= np.minimum.accumulate(steps)[back - 1]]
    if not len(firsts):
        return 0
    each = np.unique(steps)
    apart = each.searchsorted(steps[firsts - 1]) - each.searchsorted(steps[firsts])
    far = firsts[apart > MOST_APART]
    return int(far[-1]) if len(far) else 0


def _back(printed: Readings) -> Ints:
    """The places of steps that a log goes back to; where the lines say nothing, so does order."""
    back = places(_are_back, printed.step, printed.line, overlap=1)
    return np.union1d(back, _at_last(printed)) + 1


def _are_back(steps: Ints, lines: Ints) -> Flags:
    return np.asarray((np.diff(steps) < 0) & (np.diff(lines) > 0))


def _at_last(printed: Readings) -> Ints:
    """The places of lines that are followed by a restart at the very step that they printed."""
    columns = (printed.step, printed.line, printed.step_time_s)
    again, none = places(_are_again, *columns, overlap=1), np.empty(0, np.int64)
    if not len(again):
        return none
    gaps, on = np.diff(held(printed.line)), np.diff(held(printed.step)) > 0
    if not on.any():
        return none
    is_often = len(again) > AGAIN_AND_AGAIN * len(printed)
    is_far = gaps[again].min() >= np.median(gaps[on]) + is_often
    return again if is_far else none


def _are_again(steps: Ints, lines: Ints, times: Floats) -> Flags:
    return np.asarray((np.diff(steps) == 0) & (np.diff(times) != 0) & (np.diff(lines) > 0))


def _last_of_each(printed: Readings) -> Readings:
    if rises(printed.step):
        return printed
    kept = Shelf()
    for some, _, ends in _in_order(printed):
        kept.add(printed.at(some[ends]))
    return kept.readings()


def _in_order(printed: Readings) -> Iterator[tuple[Ints, Flags, Flags]]:
    """The places by their steps, piece by piece, and which begin a step and which end one."""
    order = held(printed.step).argsort(kind="stable")
    last = -1
    for (some,) in pieces(order, overlap=1):
        steps = printed.step[some]
        is_new = np.diff(steps, prepend=last, append=-1) != 0
        own = some[: piecewise.AT_ONCE]
        yield own, is_new[: len(own)], is_new[1 : len(own) + 1]
        last = steps[len(own) - 1]
        printed.let_go()


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
    several = (
        one
        for some, begins, ends in _in_order(printed)
        for one in printed.at(some[~(begins & ends)])
    )
    times = [len(_different(lines)) for _, lines in groupby(several, attrgetter("step"))]
    repeated = [count for count in times if count > 1]
    if not repeated:
        return ()
    are = "is" if len(repeated) == 1 else "are"
    message = (
        f"{counted(len(repeated), 'step')} {are} printed more than once, up to {max(repeated)} "
        f"times (a restart, or several ranks in one log): the last of each is kept"
    )
    return (Problem(where, message),)


def _different(readings: Iterable[Reading]) -> set[str]:
    """What several lines say of one step, each but once."""
    return {repr(reading._replace(line=0)) for reading in readings}


def _zero_rates(where: str, kept: Readings) -> tuple[Problem, ...]:
    """A note on steps of 0 TFLOP/s: programs print it where they cannot count the FLOPs."""
    rate = kept.column("model_tflops_per_sec_per_gpu")
    zeros = places(lambda values, known: known & (values == 0), rate.values, rate.known)
    if not len(zeros):
        return ()
    message = f"{counted(len(zeros), 'step')} with 0 TFLOP/s: it is not known, and left out"
    return (Problem(where, message, line=int(kept.line[zeros[0]])),)


def few(where: str, problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """The first problems in the order of their lines, and how many more are known of."""
    in_order = sorted(problems, key=lambda problem: problem.line or 0)
    rest = len(in_order) - MOST_PROBLEMS
    least = "at least " if len(in_order) >= MOST_KEPT else ""
    lines = f"{least}{counted(rest, 'more step line')}"
    more = (Problem(where, f"{lines} that cannot be read"),) if rest > 0 else ()
    return (*in_order[:MOST_PROBLEMS], *more)
