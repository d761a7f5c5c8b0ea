"""Settles what the steps of a log are: each once and in order, and what is odd about them."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfdb.errors import Problem
from perfdb.formats.base import Reading
from perfdb.formats.numbers import MOST

MOST_PROBLEMS = 20
"""How many problems of one log are told one by one."""


@dataclass(frozen=True)
class Settled:
    """The steps of a log, each once and in order, with problems and notes."""

    readings: tuple[Reading, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()


def settle(where: str, readings: Iterable[Reading], problems: Iterable[Problem] = ()) -> Settled:
    """Each step once: of several attempts at a step the last one printed is kept, and counted."""
    good, bad = [], list(problems)
    for reading in readings:
        if 0 < reading.step_time_s < math.inf and 0 < reading.step <= MOST:
            good.append(reading)
        else:
            message = f"step {reading.step}: {reading.step_time_s:g} seconds is no duration"
            bad.append(Problem(where, message, line=reading.line))
    last = {reading.step: reading for reading in good}
    kept = tuple(sorted(last.values(), key=lambda reading: reading.step))
    return Settled(kept, few(where, bad), _repeated(where, good, kept))


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
    more = (Problem(where, f"{rest} more problems of this kind"),) if rest > 0 else ()
    return (*in_order[:MOST_PROBLEMS], *more)


def interval_note(where: str, readings: Sequence[Reading]) -> tuple[Problem, ...]:
    """A note where each line of a log stands for several steps."""
    gaps = Counter(b.step - a.step for a, b in zip(readings, readings[1:], strict=False))
    usual, _ = gaps.most_common(1)[0] if gaps else (1, 0)
    if usual == 1:
        return ()
    first = ", the first of one step" if readings[0].step == 1 else ""
    message = f"each time is the mean of the {usual} steps up to its own{first}"
    return (Problem(where, message),)
