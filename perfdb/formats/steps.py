"""Settles what the steps of a log are: each once and in order, and what is odd about them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from operator import attrgetter

import numpy as np

from perfdb.aggregation import LONGEST_STEP_S, SHORTEST_STEP_S
from perfdb.errors import Diagnostic
from perfdb.formats.back import back, is_backwards, start_of_last
from perfdb.formats.base import Reading
from perfdb.formats.begun import Starts, attempts
from perfdb.formats.numbers import count
from perfdb.formats.order import in_order
from perfdb.formats.piecewise import Cells, first, found, let_go, places, rises, zeros
from perfdb.formats.readings import Column, Flags, Floats, Ints, Readings
from perfdb.formats.shelf import Shelf, each, shelved
from perfdb.record import MOST
from perfdb.units import counted

MOST_KEPT = 1000
"""How many unreadable steps are remembered: a damaged log may hold millions."""

SEVERAL_RANKS = 1.9
"""A log that prints nearly every step so often has the lines of several ranks."""

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


def with_peaks(steps: Readings, peaks: Mapping[int, int]) -> Readings:
    """Steps with the peak memory, in bytes, that is told of some of them elsewhere."""
    known_of = [step for step, peak in peaks.items() if peak]
    if not known_of:
        return steps
    values, known = zeros(len(steps), np.int64), zeros(len(steps), np.bool_)
    values[:], known[:] = (peak := steps.column("peak_memory_bytes")).values, peak.known
    for place in places(lambda some: np.isin(some, known_of), steps.step).tolist():
        values[place], known[place] = peaks[int(steps.step[place])], True
    return steps.with_columns(peak_memory_bytes=Column(values, known))


@dataclass(frozen=True)
class Settled:
    """The steps of a log, each once and in order, with problems and notes."""

    readings: Sequence[Reading]
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    restarts: Sequence[int] = ()
    """The first step of each attempt but the first, as far as steps before it are kept; rising."""
    attempt_line: int = 0
    """The line of the last attempt's first step; 0 where there was no restart."""
    goes_on: bool = False
    """Whether the last attempt goes on with the step behind those before it."""
    earlier_until: int | None = None
    """The line of the last step of an earlier run, where the log holds several."""

    @property
    def restarted_at(self) -> int | None:
        """The first step of the last attempt, where those before it are of an earlier one."""
        return self.restarts[-1] if self.restarts else None


def settle(where: str, readings: Iterable[Reading], problems: Iterable[Diagnostic] = ()) -> Settled:
    """Each step once: of several attempts at a step the last one printed is kept, and counted."""
    told = list(problems)
    return settle_columns(where, countable(where, readings, told), told)


def countable(where: str, readings: Iterable[Reading], problems: list[Diagnostic]) -> Readings:
    """Readings as columns; those of steps that no column has room for become problems."""
    if isinstance(readings, Readings):
        return readings

    def counted() -> Iterator[Reading]:
        for reading in readings:
            if abs(reading.step) <= MOST:
                yield reading
            elif len(problems) < MOST_KEPT:
                problems.append(_impossible(where, reading))

    return shelved(counted())


def settle_columns(where: str, printed: Readings, problems: Iterable[Diagnostic] = ()) -> Settled:
    """The same of columns: of several runs the steps of the last."""
    odd = chain.from_iterable(found(_are_odd, printed.step, printed.step_time_s))
    impossible = [_impossible(where, printed[place]) for place in islice(odd, MOST_KEPT)]
    if impossible:
        problems = [*problems, *impossible]
        printed = each(printed, lambda some: some.at(~_are_odd(some.step, some.step_time_s)))
    if is_backwards(printed):
        return Settled((), few(where, [*problems, _backwards(where, printed)]))
    start = start_of_last(printed)
    until = int(printed.line[start - 1]) if start else None
    printed = printed.at(slice(start, None))
    kept = _last_of_each(printed)
    if _has_peaks_of_ranks(printed, kept):
        kept = kept.with_columns(peak_memory_bytes=_largest_peaks(printed, len(kept)))
    notes = (*_repeated(where, printed, kept), *_zero_rates(where, kept))
    restarts, line = _restarts(printed, kept)
    return Settled(kept, few(where, list(problems)), notes, restarts, line, earlier_until=until)


def begun_again(steps: Settled, starts: Starts) -> Settled:
    """The same with the attempts that go back to no step: the program tells that it begins."""
    kept = Readings.of(steps.readings)
    again = starts.again(int(kept.line[0])) if len(kept) else []
    begins = attempts(kept.line, again) if again else np.empty(0, np.int64)
    if not len(begins):
        return steps
    back = np.array([*steps.restarts], np.int64)
    restarts = np.union1d(back, kept.step[begins])
    return replace(
        steps,
        restarts=Cells(restarts),
        attempt_line=max(steps.attempt_line, int(kept.line[begins[-1]])),
        goes_on=restarts[-1] not in back,
    )


def timed(where: str, steps: Settled, size: Callable[[Reading], tuple[int, int]]) -> Settled:
    """Steps whose times are those of one token of one of the GPUs till now.

    `size`: how many tokens a step has, and of how many GPUs its time was.
    """

    def whole() -> Iterator[Reading]:
        for one in steps.readings:
            tokens, num_gpus = size(one)
            time = one.step_time_s * tokens / num_gpus
            yield one._replace(step_time_s=time, tokens=count(tokens))

    settled = settle(where, whole())
    problems = (*steps.problems, *settled.problems)
    return replace(steps, readings=settled.readings, problems=problems)


def _are_odd(steps: Ints, times: Floats) -> Flags:
    """Which steps are none, or have taken a time that none can take."""
    return np.asarray(~((steps > 0) & (times >= SHORTEST_STEP_S) & (times <= LONGEST_STEP_S)))


def _impossible(where: str, reading: Reading) -> Diagnostic:
    message = f"step {reading.step}: {reading.step_time_s:g} seconds is no duration"
    return Diagnostic(where, message, line=reading.line)


def _backwards(where: str, printed: Readings) -> Diagnostic:
    message = "its steps go backwards: the newest line stands first"
    remedy = "turn it around: tac FILE, logcli query --forward"
    return Diagnostic(where, message, line=int(printed.line[0]), remedy=remedy)


def _last_of_each(printed: Readings) -> Readings:
    if rises(printed.step):
        return printed
    kept = Shelf()
    for some, _, ends in _in_order(printed):
        kept.add(printed.at(some[ends]))
    return kept.readings()


def _largest_peaks(printed: Readings, num_steps: int) -> Column:
    """The peak memory of each step on the rank that had most."""
    peaks = printed.column("peak_memory_bytes")
    values, known, start = zeros(num_steps, np.int64), zeros(num_steps, np.bool_), 0
    for some, begins, _ in _in_order(printed):
        said, firsts = peaks.at(some), np.flatnonzero(begins)
        here = slice(start, start := start + len(firsts))
        values[here] = np.maximum.reduceat(np.where(said.known, said.values, 0), firsts)
        known[here] = np.logical_or.reduceat(said.known, firsts)
        let_go(values, known)
    return Column(values, known)


def _has_peaks_of_ranks(printed: Readings, kept: Readings) -> bool:
    known = printed.column("peak_memory_bytes").known
    return _is_of_ranks(printed, kept) and first(lambda some: some, known) is not None


def _is_of_ranks(printed: Readings, kept: Readings) -> bool:
    return len(printed) >= SEVERAL_RANKS * len(kept)


def _in_order(printed: Readings) -> Iterator[tuple[Ints, Flags, Flags]]:
    """The places by their steps, piece by piece, and which begin a step and which end one."""
    for some in in_order(printed.step):
        is_new = np.diff(printed.step[some], prepend=-1, append=-1) != 0
        yield some, is_new[:-1], is_new[1:]


def _restarts(printed: Readings, kept: Readings) -> tuple[Cells[int], int]:
    """The steps that a log goes back to, but for those of which a later attempt left nothing.

    And the line of the last of all. Where nearly every step is printed twice there are none: they
    are those of several ranks, one behind the other.
    """
    starts, line = np.empty(0, np.int64), 0
    for some in () if _is_of_ranks(printed, kept) else back(printed):
        steps, line = printed.step[some], int(printed.line[some[-1]])
        steps = steps[steps > kept.step[0]]
        lowest_behind = np.minimum.accumulate(np.append(steps, MOST)[::-1])[::-1]
        left = starts[: starts.searchsorted(lowest_behind[0])]
        starts = np.append(left, steps[steps < lowest_behind[1:]])
    return Cells(starts), line


def _repeated(where: str, printed: Readings, kept: Readings) -> tuple[Diagnostic, ...]:
    """A note on steps printed more than once; a bar drawn again unchanged repeats nothing."""
    if len(printed) == len(kept):
        return ()
    several = (
        one
        for some, begins, ends in _in_order(printed)
        for one in printed.at(some[~(begins & ends)])
    )
    times = (len(_different(lines)) for _, lines in groupby(several, attrgetter("step")))
    repeated = Counter(count for count in times if count > 1)
    if not repeated:
        return ()
    are = "is" if repeated.total() == 1 else "are"
    message = (
        f"{counted(repeated.total(), 'step')} {are} printed more than once, up to {max(repeated)} "
        f"times (a restart, or several ranks in one log): the last of each is kept"
    )
    if _has_peaks_of_ranks(printed, kept):
        message += ", with the largest peak memory"
    return (Diagnostic(where, message),)


def _different(readings: Iterable[Reading]) -> set[str]:
    """What several lines say of one step, each but once."""
    return {repr(reading._replace(line=0)) for reading in readings}


def _zero_rates(where: str, kept: Readings) -> tuple[Diagnostic, ...]:
    """A note on steps of 0 TFLOP/s: programs print it where they cannot count the FLOPs."""
    rate = kept.column("model_tflops_per_sec_per_gpu")
    num_zeros, first = 0, len(kept)
    for some in found(lambda values, known: known & (values == 0), rate.values, rate.known):
        num_zeros, first = num_zeros + len(some), min([first, *some[:1].tolist()])
    if not num_zeros:
        return ()
    message = f"{counted(num_zeros, 'step')} with 0 TFLOP/s: it is not known, and left out"
    return (Diagnostic(where, message, line=int(kept.line[first])),)


def few(where: str, problems: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The first problems in the order of their lines, and how many more are known of."""
    in_order = sorted(problems, key=lambda problem: problem.line or 0)
    rest = len(in_order) - MOST_PROBLEMS
    least = "at least " if len(in_order) >= MOST_KEPT else ""
    lines = f"{least}{counted(rest, 'more step line')}"
    more = (Diagnostic(where, f"{lines} that cannot be read"),) if rest > 0 else ()
    return (*in_order[:MOST_PROBLEMS], *more)
