"""Settles the steps of a log: each once and in order, and where it restarts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from perfdb import aggregation
from perfdb.aggregation import LONGEST_STEP_S, SHORTEST_STEP_S
from perfdb.errors import Diagnostic
from perfdb.formats.columns import Flags, Floats, Ints, Reading, StepColumn, Steps
from perfdb.formats.scan import Piece, Scan, pieces
from perfdb.formats.steplines import MOST_KEPT
from perfdb.record import MOST
from perfdb.units import counted

SEVERAL_RANKS: Final = 1.9
"""A log that prints nearly every step so often has the lines of several ranks."""
MOST_APART: Final = 3
"""How many step lines back the first step may be that another rank prints; else a run begins."""
MOSTLY: Final = 0.1
"""A log whose steps fall, but for so few of them, has its newest line first."""
MOST_PROBLEMS: Final = 20
"""How many problems of one log are listed one by one."""
_ALONE: Final = "give each run a file of its own"
_MADE_AT_ONCE: Final = 1 << 12


@dataclass(frozen=True)
class Settled:
    """The steps of a log, each once and in order, with problems and notes.

    `restarts`: the first step of each attempt but the first, as far as steps before it are kept;
    rising. `attempt_line`: the line of the first step of the last attempt, 0 without a restart.
    `goes_on`: the last attempt repeats no step of those before it.
    """

    steps: Steps = field(default_factory=lambda: Steps.of(()))
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    restarts: tuple[int, ...] = ()
    attempt_line: int = 0
    goes_on: bool = False


def marked(
    where: str,
    scan: Scan,
    marker: bytes,
    read: Callable[[Piece], Reading | str | None],
    *,
    is_appended: bool = False,
) -> Settled:
    """The settled steps of a log of which each piece with the marker is read one by one.

    `read` returns the reading of a piece, or what it lacks in words, or None where it is no step.
    `is_appended`: the program appends each of its runs to one file, of which the last one counts.
    """
    problems: list[Diagnostic] = []

    def readings() -> Iterator[Reading]:
        for piece in (piece for block in scan for piece in pieces(block, marker)):
            found = read(piece)
            if isinstance(found, Reading):
                yield found
            elif found and len(problems) < MOST_KEPT:
                remedy = "is the line cut off?"
                problems.append(Diagnostic(where, found, line=piece.line, remedy=remedy))

    printed = steps_of(where, readings(), problems)
    if is_appended and (start := _start_of_last(printed)):
        settled = settle(where, printed[start:], problems)
        return replace(settled, notes=(_earlier_run(where, printed, start), *settled.notes))
    return settle(where, printed, problems)


def _earlier_run(where: str, printed: Steps, start: int) -> Diagnostic:
    until = int(printed.line[start - 1])
    message = f"lines 1 to {until} are of an earlier run, or of another rank: they are left out"
    return Diagnostic(where, message, remedy=_ALONE)


def steps_of(where: str, readings: Iterable[Reading], problems: list[Diagnostic]) -> Steps:
    """Readings as columns; those of steps that no column has room for become problems."""
    parts, some = list[Steps](), list[Reading]()
    for reading in readings:
        if abs(reading.step) <= MOST:
            some.append(reading)
        elif len(problems) < MOST_KEPT:
            problems.append(_impossible(where, reading))
        if len(some) == _MADE_AT_ONCE:
            parts.append(Steps.of(some).slim())
            some = []
    return Steps.joined([*parts, Steps.of(some)])


def settle(where: str, printed: Steps, problems: Sequence[Diagnostic] = ()) -> Settled:
    """Each step once: of several attempts at a step the last one printed is kept, and counted."""
    odd = _are_odd(printed)
    if odd.any():
        places = np.flatnonzero(odd)[:MOST_KEPT].tolist()
        problems = [*problems, *(_impossible(where, printed[place]) for place in places)]
        printed = printed.at(~odd)
    if refused := _refused(where, printed):
        return Settled(problems=few(where, [*problems, refused]))
    order = printed.step.argsort(kind="stable")
    is_first = np.diff(printed.step[order], prepend=-1) != 0
    is_last = np.append(is_first[1:], True)[: len(order)]
    kept = printed if is_first.all() and _rises(printed.step) else printed.at(order[is_last])
    notes: list[Diagnostic] = []
    if len(kept) < len(printed):
        ranks_peak = _is_of_ranks(printed, kept) and printed.column("peak_memory_bytes").known.any()
        if ranks_peak:
            peak = _largest_peaks(printed.at(order), is_first)
            kept = kept.with_columns(peak_memory_bytes=peak)
        notes += _repeated(where, printed.at(order), is_first, with_peak=bool(ranks_peak))
    notes += _zero_rates(where, kept)
    restarts, line = _restarts(printed, kept)
    return Settled(kept, few(where, problems), tuple(notes), restarts, line)


def _are_odd(steps: Steps) -> Flags:
    """Which steps have no number, or a time that no step can take."""
    times = steps.step_time_s
    is_time = (times >= SHORTEST_STEP_S) & (times <= LONGEST_STEP_S)
    return np.asarray(~((steps.step > 0) & is_time))


def _impossible(where: str, reading: Reading) -> Diagnostic:
    message = f"step {reading.step}: {reading.step_time_s:g} seconds is no duration"
    return Diagnostic(where, message, line=reading.line)


def _rises(steps: Ints) -> bool:
    return bool((np.diff(steps) > 0).all())


def _goes_back(printed: Steps) -> Flags:
    """Which steps, but the first, are below the one on the line above."""
    return np.asarray((np.diff(printed.step) < 0) & (np.diff(printed.line) > 0))


def _is_repeated(printed: Steps) -> Flags:
    """Which steps, but the first, repeat the one above with another time, farther down than usual.

    A restart may begin with the very step that was printed last. Ranks and bars that are drawn
    again repeat a step sooner than the next one is printed.
    """
    gaps, rises = np.diff(printed.line), np.diff(printed.step) > 0
    usual = float(np.median(gaps[rises])) if rises.any() else np.inf
    is_again = (np.diff(printed.step) == 0) & (np.diff(printed.step_time_s) != 0)
    return np.asarray(is_again & (gaps > usual))


def _refused(where: str, printed: Steps) -> Diagnostic | None:
    """Why the steps of a log are not read: its newest line is first, or it holds several runs."""
    goes_back = _goes_back(printed)
    num_back = int(goes_back.sum())
    num_on = int(((np.diff(printed.step) > 0) & (np.diff(printed.line) > 0)).sum())
    if num_back >= MOST_APART and num_on <= MOSTLY * num_back:
        message = "its steps go backwards: the newest line stands first"
        remedy = "turn it around: tac FILE, logcli query --forward"
        return Diagnostic(where, message, line=int(printed.line[0]), remedy=remedy)
    if not (start := _start_of_last(printed)):
        return None
    message = "the log begins again with its first step: it holds several runs, or several ranks"
    return Diagnostic(where, message, line=int(printed.line[start]), remedy=_ALONE)


def _start_of_last(printed: Steps) -> int:
    """Where a log last goes back to its first step, or before it, from far behind it; else 0.

    A restart goes back to a checkpoint, and ranks that share a log are a few lines apart.
    """
    lowest = np.minimum.accumulate(printed.step)
    firsts = np.flatnonzero(_goes_back(printed) & (printed.step[1:] <= lowest[:-1])) + 1
    if not len(firsts):
        return 0
    places = np.unique(printed.step).searchsorted(printed.step)
    far = firsts[places[firsts - 1] - places[firsts] > MOST_APART]
    return int(far[-1]) if len(far) else 0


def _is_of_ranks(printed: Steps, kept: Steps) -> bool:
    return len(printed) >= SEVERAL_RANKS * len(kept)


def _largest_peaks(ordered: Steps, is_first: Flags) -> StepColumn:
    """The peak memory of each step on the rank that had most."""
    values, known = ordered.column("peak_memory_bytes")
    firsts = np.flatnonzero(is_first)
    largest = np.maximum.reduceat(np.where(known, values, 0), firsts)
    return StepColumn(largest, np.logical_or.reduceat(known, firsts))


def _restarts(printed: Steps, kept: Steps) -> tuple[tuple[int, ...], int]:
    """The steps that a log goes back to, but for those of which a later attempt left nothing.

    And the line of the last of all. Where nearly every step is printed twice there are none: the
    lines are those of several ranks.
    """
    back = np.flatnonzero(_goes_back(printed) | _is_repeated(printed)) + 1
    if not len(back) or _is_of_ranks(printed, kept):
        return (), 0
    steps = printed.step[back]
    steps = steps[steps > kept.step[0]]
    lowest_behind = np.minimum.accumulate(np.append(steps, MOST)[::-1])[::-1]
    return tuple(steps[steps < lowest_behind[1:]].tolist()), int(printed.line[back[-1]])


def _repeated(
    where: str, ordered: Steps, is_first: Flags, *, with_peak: bool
) -> Iterator[Diagnostic]:
    """A note on steps printed more than once; a bar drawn again unchanged repeats nothing."""
    is_new = is_first.copy()
    cells = [(ordered.step_time_s, np.broadcast_to(True, len(ordered))), *ordered.columns.values()]
    for values, known in cells:
        shown = np.where(known, values, 0)
        is_same = (shown[1:] == shown[:-1]) | (
            (shown[1:] != shown[1:]) & (shown[:-1] != shown[:-1])
        )
        is_new[1:] |= ~is_same | (known[1:] != known[:-1])
    times = np.add.reduceat(is_new.astype(np.int64), np.flatnonzero(is_first))
    repeated = Counter[int](times[times > 1].tolist())
    if repeated:
        are = "is" if repeated.total() == 1 else "are"
        peak = ", with the largest peak memory" if with_peak else ""
        message = (
            f"{counted(repeated.total(), 'step')} {are} printed more than once, up to "
            f"{max(repeated)} times (a restart, or several ranks in one log): the last of each is "
            f"kept{peak}"
        )
        yield Diagnostic(where, message)


def _zero_rates(where: str, kept: Steps) -> Iterator[Diagnostic]:
    """A note on steps of 0 TFLOP/s: programs print it where they cannot count the FLOPs."""
    values, known = kept.column("model_tflops_per_sec_per_gpu")
    zeros = np.flatnonzero(known & (values == 0))
    if len(zeros):
        steps = counted(len(zeros), "step")
        message = f"{steps} with 0 TFLOP/s: it is not known, and left out"
        yield Diagnostic(where, message, line=int(kept.line[zeros[0]]))


def few(where: str, problems: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The first problems in the order of their lines, and how many more there are."""
    in_order = sorted(problems, key=lambda problem: problem.line or 0)
    rest = len(in_order) - MOST_PROBLEMS
    least = "at least " if len(in_order) >= MOST_KEPT else ""
    lines = f"{least}{counted(rest, 'more step line')}"
    more = (Diagnostic(where, f"{lines} that cannot be read"),) if rest > 0 else ()
    return (*in_order[:MOST_PROBLEMS], *more)


def with_times(where: str, settled: Settled, tokens: Floats, num_gpus: Floats) -> Settled:
    """Steps whose times so far are those of one token, with their tokens and their times.

    `num_gpus`: of how many GPUs the time of a token was.
    """
    steps = settled.steps
    counts = amounts(StepColumn.full(tokens))
    times = steps.step_time_s * tokens / num_gpus
    timed = replace(steps, step_time_s=times).with_columns(tokens=counts)
    odd = _are_odd(timed)
    problems = [_impossible(where, timed[at]) for at in np.flatnonzero(odd)[:MOST_KEPT].tolist()]
    return replace(
        settled,
        steps=timed.at(~odd) if odd.any() else timed,
        problems=(*settled.problems, *few(where, problems)),
    )


def numbered(printed: StepColumn, base: int) -> Ints:
    """Step numbers from 1, of numbers counted from `base`; 0 where there is no number."""
    is_number = printed.known & (np.abs(printed.values) < MOST)
    numbers = np.where(is_number, printed.values, 0).astype(np.int64)
    return np.where(is_number, numbers + 1 - base, 0)


def amounts(printed: StepColumn) -> StepColumn:
    """Whole amounts, as of bytes or tokens, from 1 on."""
    known = printed.known & (printed.values >= 1) & (printed.values < MOST)
    return StepColumn(np.rint(np.where(known, printed.values, 0)).astype(np.int64), known)


def interval_note(where: str, steps: Ints) -> tuple[Diagnostic, ...]:
    """A note where each line of a log is of several steps."""
    usual = aggregation.usual_gap(aggregation.gap_counts(steps))
    counts = aggregation.steps_per_line(steps)
    seen = {usual, *(aggregation.intervals(counts[1:]) if any(counts.strides) else ())}
    if len(seen) > 1:
        message = "the log interval changes: each time is the mean of"
        return (Diagnostic(where, f"{message} {min(seen)} to {max(seen)} steps"),)
    if usual == 1:
        return ()
    first = ", the first of one step" if steps[0] == 1 else ""
    message = f"each time is the mean of the {usual} steps up to its own{first}"
    return (Diagnostic(where, message),)


def sampled_note(where: str, steps: Ints) -> tuple[Diagnostic, ...]:
    """A note where a file has the times of some of the steps only."""
    usual = aggregation.usual_gap(aggregation.gap_counts(steps))
    message = f"it has a time of one in {usual} steps: each counts as one step"
    return (Diagnostic(where, message),) if usual > 1 else ()
