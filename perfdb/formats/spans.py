"""How many steps each line of a log stands for, and which lines a window holds."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np

from perfdb.errors import Problem
from perfdb.formats import piecewise
from perfdb.formats.base import Reading
from perfdb.formats.piecewise import Cells, fill, largest, pieces, rises, zeros
from perfdb.formats.readings import Ints, Readings
from perfdb.windows import Window


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
    usual = _interval(steps)
    if usual == 1 and rises(steps) and (not len(steps) or steps[0] > 0):
        return np.broadcast_to(np.int64(1), len(steps))
    counts = zeros(len(steps), np.int64)
    counts[:1] = np.minimum(steps[:1], usual)
    fill(counts[1:], lambda some: np.minimum(np.diff(some), usual), steps, overlap=1)
    return counts


def held_by(window: Window, lasts: Ints, counts: Ints) -> slice:
    """The places of lines that a window holds, of lines in the order of their steps.

    `counts`: how many steps each stands for.
    """
    firsts = lasts
    if largest(counts, 1) > 1:
        firsts = zeros(len(lasts), np.int64)
        fill(firsts, lambda some, spans: some - spans + 1, lasts, counts)
    is_held = iter(window.holds(Cells[int](firsts), Cells[int](lasts)))
    start, stop = len(lasts), 0
    for place in range(0, len(lasts), piecewise.AT_ONCE):
        found = np.flatnonzero(np.fromiter(islice(is_held, piecewise.AT_ONCE), np.bool_))
        if len(found):
            start, stop = min(start, place + int(found[0])), place + int(found[-1]) + 1
    return slice(start, stop) if stop else slice(0, 0)


def _interval(steps: Ints) -> int:
    """The gap that is seen most often, and first of several; 1 where there is none."""
    # Newer versions log the very first step too, whatever the interval.
    several = steps[1:] if len(steps) > 2 and steps[0] == 1 else steps
    seen = Counter[int]()
    for (some,) in pieces(several, overlap=1):
        gaps, firsts, counts = np.unique(np.diff(some), return_index=True, return_counts=True)
        in_order = firsts.argsort()
        seen.update(dict(zip(gaps[in_order].tolist(), counts[in_order].tolist(), strict=True)))
    return max(seen, key=seen.__getitem__, default=1)
