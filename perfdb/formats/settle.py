"""Settles the steps of a log, each once and in order, and makes them a result.

A log that a restarted run continues has the lines of several attempts. The last one counts: the
program warms up again, and may have other settings.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import numpy as np

from perfdb import aggregation
from perfdb.aggregation import LONGEST_STEP_S, SHORTEST_STEP_S, steps_per_line
from perfdb.errors import Diagnostic
from perfdb.formats.base import ParsedLog
from perfdb.formats.columns import Flags, Ints, Reading, StepColumn, Steps
from perfdb.formats.numbers import count
from perfdb.formats.outcome import ending
from perfdb.formats.scan import Piece, Scan, pieces
from perfdb.formats.steplines import MOST_KEPT
from perfdb.record import MOST, PartialCase
from perfdb.units import counted

WINDOW: Final = "skip_warmup(10)"
"""The steps to take figures over, unless a format names others."""
BATCH: Final = "global_batch_size"
"""The column of the global batch size that step lines print."""
SEVERAL_RANKS: Final = 1.9
"""A log that prints nearly every step so often has the lines of several ranks."""
MOST_APART: Final = 3
"""A log that goes back to its first step over more step lines than that has another run."""
MOSTLY: Final = 0.1
"""A log with falling steps, but for so few of them, has its newest line first."""
MOST_PROBLEMS: Final = 20
"""How many problems of one log are listed one by one."""
_ALONE: Final = "give each run a file of its own"
_MADE_AT_ONCE: Final = 1 << 12


@dataclass(frozen=True)
class Settled:
    """The steps of a log, each once and in order, with problems and notes.

    `where` names the log. `first_line`: the line of the first step of the last attempt; 0 if there
    is only one. `unread`: the step of the last line if its time cannot be used, else 0.
    """

    where: str
    steps: Steps = field(default_factory=lambda: Steps.of(()))
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    first_line: int = 0
    unread: int = 0


def marked(
    where: str,
    scan: Scan,
    marker: bytes,
    read: Callable[[Piece], Reading | str | None],
    *,
    is_appended: bool = False,
) -> Settled:
    """The settled steps of a log; its pieces with the marker are read one by one.

    `read` returns the reading of a piece, or what it lacks in words, or None if it is no step.
    `is_appended`: the program appends each of its runs to one file; the last one counts.
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
    return settle(where, printed, problems, scan.starts, is_appended=is_appended)


def steps_of(where: str, readings: Iterable[Reading], problems: list[Diagnostic]) -> Steps:
    """Readings as columns; those of steps that no column has room for become problems."""
    parts, left = list[Steps](), iter(readings)
    while some := list(islice(left, _MADE_AT_ONCE)):
        parts.append(Steps.of(one for one in some if abs(one.step) <= MOST).slim())
        odd = [_impossible(where, one) for one in some if abs(one.step) > MOST]
        problems += odd[: MOST_KEPT - len(problems)]
    return Steps.joined(parts)


def settle(
    where: str,
    printed: Steps,
    problems: Sequence[Diagnostic] = (),
    starts: Sequence[int] = (),
    *,
    is_appended: bool = False,
) -> Settled:
    """The steps of the last attempt, each once: of several lines of a step the last is kept.

    `starts`: the lines on which the program starts again.
    """
    odd = _are_odd(printed)
    unread = int(printed.step[-1]) if odd[-1:].any() else 0
    if odd.any():
        places = np.flatnonzero(odd)[:MOST_KEPT].tolist()
        problems = [*problems, *(_impossible(where, printed[place]) for place in places)]
        printed = printed.at(~odd)
    again = _start_of_last_run(printed)
    if refused := _refused(where, printed, 0 if is_appended else again):
        return Settled(where, problems=few(where, [*problems, refused]))
    start = max(again, _start_of_last_attempt(printed, starts))
    notes = [_left_out(where, int(printed.line[start - 1]))] if start else []
    first_line = int(printed.line[start]) if start else 0
    # How many steps the first mean of an attempt is of depends on where its checkpoint was.
    start += int(start > 0 and steps_per_line(printed.step[start:])[0] > 1)
    kept, repeated = _each_once(where, printed[start:])
    notes += [*repeated, *_zero_rates(where, kept)]
    return Settled(where, kept, few(where, problems), tuple(notes), first_line, unread)


def _left_out(where: str, until: int) -> Diagnostic:
    message = f"lines 1 to {until} are of an earlier attempt or run: they are left out"
    return Diagnostic(where, message, remedy=_ALONE)


def _are_odd(steps: Steps) -> Flags:
    """Which steps have no number, or a time that no step can take."""
    times = steps.step_time_s
    is_time = (times >= SHORTEST_STEP_S) & (times <= LONGEST_STEP_S)
    return np.asarray(~((steps.step > 0) & is_time))


def _impossible(where: str, reading: Reading) -> Diagnostic:
    message = f"step {reading.step}: {reading.step_time_s:g} seconds is no duration"
    return Diagnostic(where, message, line=reading.line)


def _goes_back(printed: Steps) -> Flags:
    """Which steps, but the first, are below the one on the line above."""
    return np.asarray((np.diff(printed.step) < 0) & (np.diff(printed.line) > 0))


def _refused(where: str, printed: Steps, again: int) -> Diagnostic | None:
    """Why the steps of a log are not read: its newest line is first, or it holds several runs."""
    num_back = int(_goes_back(printed).sum())
    num_on = int(((np.diff(printed.step) > 0) & (np.diff(printed.line) > 0)).sum())
    if num_back >= MOST_APART and num_on <= MOSTLY * num_back:
        message = "its steps go backwards: the newest line stands first"
        remedy = "turn it around: tac FILE, logcli query --forward"
        return Diagnostic(where, message, line=int(printed.line[0]), remedy=remedy)
    if not again:
        return None
    message = "the log begins again with its first step: it holds several runs, or several ranks"
    return Diagnostic(where, message, line=int(printed.line[again]), remedy=_ALONE)


def _start_of_last_run(printed: Steps) -> int:
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


def _start_of_last_attempt(printed: Steps, starts: Sequence[int]) -> int:
    """Where the program last started again, or a log last goes back to a step it has; else 0.

    If nearly every step is printed twice, the lines are those of several ranks. One of them may
    start late, and prints the first step, too.
    """
    goes_back = _goes_back(printed)
    if not (goes_back.any() or starts) or not len(printed):
        return 0
    steps, firsts, inverse = np.unique(printed.step, return_index=True, return_inverse=True)
    is_known = firsts[inverse] < np.arange(len(printed))
    back = np.flatnonzero(goes_back & is_known[1:])[-1:] + 1
    started = [
        at
        for at in np.searchsorted(printed.line, starts).tolist()
        if 0 < at < len(printed) and printed.step[at:].min() > steps[0]
    ]
    is_of_ranks = len(printed) >= SEVERAL_RANKS * len(steps)
    return int(max([0, *([] if is_of_ranks else back.tolist()), *started]))


def _each_once(where: str, printed: Steps) -> tuple[Steps, list[Diagnostic]]:
    """The last line of each step, in order, with a note if others have another time.

    Ranks that share a log have other peaks of memory: the largest is kept. A progress bar that is
    drawn again unchanged repeats nothing.
    """
    if (np.diff(printed.step) > 0).all():
        return printed, []
    ordered = printed.at(printed.step.argsort(kind="stable"))
    is_first = np.diff(ordered.step, prepend=-1) != 0
    firsts = np.flatnonzero(is_first)
    kept = ordered.at(np.append(is_first[1:], True))
    is_new = is_first.copy()
    is_new[1:] |= np.diff(ordered.step_time_s) != 0
    times = np.add.reduceat(is_new.astype(np.int64), firsts)
    values, known = ordered.column("peak_memory_bytes")
    with_peak = len(printed) >= SEVERAL_RANKS * len(kept) and known.any()
    if with_peak:
        largest = np.maximum.reduceat(np.where(known, values, 0), firsts)
        peak = StepColumn(largest, np.logical_or.reduceat(known, firsts))
        kept = kept.with_columns(peak_memory_bytes=peak)
    num_repeated = int((times > 1).sum())
    if not num_repeated:
        return kept, []
    are = "is" if num_repeated == 1 else "are"
    message = (
        f"{counted(num_repeated, 'step')} {are} printed more than once, up to {times.max()} times "
        f"(a restart, or several ranks in one log): the last of each is kept"
    )
    return kept, [Diagnostic(where, message + ", with the largest peak memory" * bool(with_peak))]


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


def training_log(
    settled: Settled,
    settings: ParsedLog,
    scan: Scan | None = None,
    *,
    planned: int | None = None,
    done: re.Pattern[str] | bool = False,
) -> ParsedLog:
    """What a log of steps reports, with how its run ended.

    `settings`: what the log says of the run. `planned`: how many steps there were to be. `done`:
    what the program prints when it is done, or whether it is.
    """
    epilogue = scan.epilogue if scan else ""
    is_done = done if isinstance(done, bool) else bool(done.search(epilogue))
    end = ending(
        settled.steps,
        planned=planned,
        done=is_done or (planned is not None and settled.unread >= planned),
        epilogue=epilogue,
        last_words=scan.last_words.since(settled.first_line).text if scan else "",
    )
    log = replace(
        settings,
        steps=settled.steps,
        planned_steps=planned,
        outcome=end.outcome,
        error=end.error,
        problems=settled.problems,
        notes=settled.notes,
    )
    log = _of_one_batch(settled.where, log)
    is_cut = settled.first_line > 0 or len(log.steps) < len(settled.steps)
    if is_cut and len(log.steps) == 1:  # its number does not tell how long the program was warm
        return replace(log, window=f"skip_warmup({log.steps.step[0]})")
    return replace(log, window=WINDOW)


def _of_one_batch(where: str, log: ParsedLog) -> ParsedLog:
    """A log with the global batch size of its step lines, whatever its settings state.

    A program may begin with small batches. Rates over steps of several would be wrong: only the
    steps since the batch has its last size are kept.
    """
    values, known = log.steps.column(BATCH)
    steps = log.steps.without(BATCH)
    size, notes, problems = count(log.steps.column(BATCH).last), [*log.notes], [*log.problems]
    if size is None:
        return replace(log, steps=steps)
    others = np.flatnonzero(known & (values != size))
    if len(others):
        start = int(others[-1]) + 1
        # A mean may be of steps before the change, too.
        start += int(start < len(steps) and steps_per_line(steps.step)[start] > 1)
        message = (
            f"the global batch size changes between {values[others[0]]:g} and {size}: the steps "
            f"up to {steps.step[start - 1]} are left out"
        )
        note = Diagnostic(where, message, line=int(steps.line[start - 1]))
        steps = steps[start:]
        (notes if steps else problems).append(note)
    other = log.configuration.global_batch_size
    if other not in (None, size):
        message = f"its settings say global batch size {other}, its step lines {size}"
        notes.append(Diagnostic(where, f"{message}: that is taken"))
    return replace(
        log,
        configuration=log.configuration.model_copy(update={BATCH: size}),
        doubts={name: one for name, one in log.doubts.items() if name != BATCH},
        steps=steps,
        problems=tuple(problems),
        notes=tuple(notes),
    )


def timed(where: str, log: ParsedLog, case: PartialCase) -> ParsedLog:
    """The log with the times of its steps, which a case gives if the log alone does not."""
    batch, length, gpus = case.global_batch_size, case.sequence_length, case.num_gpus
    if not (log.is_untimed and batch and length and gpus):
        return log
    settled = with_times(Settled(where, log.steps, log.problems), batch * length, gpus)
    others = [name for name in log.timed_by if name not in log.configuration.model_fields_set]
    message = f"its step times follow from tokens/s and from {', '.join(others)}, which it lacks"
    notes = (*log.notes, *([Diagnostic(where, message)] if others else []))
    timed = replace(log, steps=settled.steps, problems=settled.problems, notes=notes)
    return replace(timed, is_untimed=False)


def with_times(settled: Settled, tokens: int, num_gpus: int = 1) -> Settled:
    """Steps with their times, which were those of one token on one GPU, and their tokens."""
    steps, where = settled.steps, settled.where
    times = steps.step_time_s * tokens / num_gpus
    counts = amounts(StepColumn.full(np.full(len(steps), float(tokens))))
    timed = replace(steps, step_time_s=times).with_columns(tokens=counts)
    odd = _are_odd(timed)
    problems = [_impossible(where, timed[at]) for at in np.flatnonzero(odd)[:MOST_KEPT].tolist()]
    return replace(
        settled,
        steps=timed.at(~odd) if odd.any() else timed,
        problems=(*settled.problems, *few(where, problems)),
    )


def numbered(printed: StepColumn, base: int) -> Ints:
    """Step numbers from 1, from numbers counted from `base`; 0 where there is no number."""
    is_number = printed.known & (np.abs(printed.values) < MOST)
    numbers = np.where(is_number, printed.values, 0).astype(np.int64)
    return np.where(is_number, numbers + 1 - base, 0)


def amounts(printed: StepColumn) -> StepColumn:
    """Whole amounts, as of bytes or tokens, from 1 on."""
    known = printed.known & (printed.values >= 1) & (printed.values < MOST)
    return StepColumn(np.rint(np.where(known, printed.values, 0)).astype(np.int64), known)


def interval_note(where: str, steps: Ints) -> tuple[Diagnostic, ...]:
    """A note if each line of a log is the mean of several steps."""
    usual = aggregation.usual_gap(aggregation.gap_counts(steps))
    counts = steps_per_line(steps)
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
    """A note if a file has the times of some of the steps only."""
    usual = aggregation.usual_gap(aggregation.gap_counts(steps))
    message = f"it has a time of one in {usual} steps: each counts as one step"
    return (Diagnostic(where, message),) if usual > 1 else ()
