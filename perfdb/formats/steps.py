"""Settles what the steps of a log are: each once and in order, and what is odd about them."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, repeat
from operator import itemgetter

from perfdb.errors import Problem
from perfdb.formats.base import Reading
from perfdb.formats.numbers import MOST, size_bytes

MOST_KEPT = 1000
"""How many unreadable steps are remembered: a damaged log may hold millions."""

MOST_PROBLEMS = 20
"""How many problems of one log are told one by one."""


Column = Iterable[float | None]

_STEP = Reading._fields.index("step")
_reading = partial(tuple.__new__, Reading)
"""Makes a reading of a row three times as fast as calling it: a log may hold a million steps."""


def together(
    lines: Iterable[int], steps: Iterable[int], times: Column, **columns: Column
) -> Iterator[Reading]:
    """Readings from columns, by the names of a reading's fields; a missing column is not said."""
    defaults = Reading._field_defaults
    cells = [columns.get(name) or repeat(defaults[name]) for name in Reading._fields[3:]]
    rows = zip(lines, steps, times, *cells, strict=False)
    return map(_reading, rows)


def numbered(printed: Column, base: int) -> list[int]:
    """Steps counted from 1, of numbers counted from 0 or 1; 0 stands for what numbers no step."""
    return [
        int(number) + 1 - base if number is not None and abs(number) < MOST else 0
        for number in printed
    ]


def sizes(values: Column) -> Iterator[int | None]:
    """Amounts of memory in bytes; they hardly ever change, so each is converted once."""
    values = list(values)
    known = {value: size_bytes(value) for value in set(values)}
    return map(known.get, values)


@dataclass(frozen=True)
class Settled:
    """The steps of a log, each once and in order, with problems and notes."""

    readings: tuple[Reading, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()


def settle(where: str, readings: Iterable[Reading], problems: Iterable[Problem] = ()) -> Settled:
    """Each step once: of several attempts at a step the last one printed is kept, and counted."""
    printed = list(readings)
    good = [r for r in printed if 0 < r.step_time_s < math.inf and 0 < r.step <= MOST]
    impossible = [
        Problem(where, f"step {r.step}: {r.step_time_s:g} seconds is no duration", line=r.line)
        for r in (printed if len(good) < len(printed) else ())
        if not (0 < r.step_time_s < math.inf and 0 < r.step <= MOST)
    ]
    last = {reading.step: reading for reading in good}
    kept = tuple(sorted(last.values(), key=itemgetter(_STEP)))
    return Settled(kept, few(where, [*problems, *impossible]), _repeated(where, good, kept))


def _repeated(
    where: str, printed: Sequence[Reading], kept: Sequence[Reading]
) -> tuple[Problem, ...]:
    """A note on steps printed more than once; a bar drawn again unchanged repeats nothing."""
    if len(printed) == len(kept):
        return ()
    different = {reading._replace(line=0) for reading in printed}
    times = Counter(reading.step for reading in different)
    repeated = [step for step, count in times.items() if count > 1]
    if not repeated:
        return ()
    message = (
        f"{len(repeated)} steps are printed more than once, up to {max(times.values())} times "
        f"(a restart, or several ranks in one log): the last of each is kept"
    )
    return (Problem(where, message),)


def few(where: str, problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """The first problems in the order of their lines, and how many more there are."""
    in_order = sorted(problems, key=lambda problem: problem.line or 0)
    rest = len(in_order) - MOST_PROBLEMS
    more = (Problem(where, f"{rest} more step lines that cannot be read"),) if rest > 0 else ()
    return (*in_order[:MOST_PROBLEMS], *more)


def interval_note(where: str, readings: Sequence[Reading]) -> tuple[Problem, ...]:
    """A note where each line of a log stands for several steps."""
    # Newer versions log the very first step too, whatever the interval.
    regular = readings[1:] if len(readings) > 2 and readings[0].step == 1 else readings
    gaps = Counter(b.step - a.step for a, b in pairwise(regular))
    usual, _ = gaps.most_common(1)[0] if gaps else (1, 0)
    if usual == 1:
        return ()
    first = ", the first of one step" if readings[0].step == 1 else ""
    message = f"each time is the mean of the {usual} steps up to its own{first}"
    return (Problem(where, message),)
