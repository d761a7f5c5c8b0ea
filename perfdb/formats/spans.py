"""How many steps each line of a log stands for, and which lines a window holds."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from perfdb.errors import Problem
from perfdb.formats.base import Reading
from perfdb.formats.piecewise import Cells, held, pieces, rises
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
    return np.minimum(np.diff(held(steps), prepend=0), usual)


def held_by(window: Window, lasts: Ints, counts: Ints) -> slice:
    """The places of lines that a window holds, of lines in the order of their steps.

    `counts`: how many steps each stands for.
    """
    firsts = lasts if counts.max(initial=1) == 1 else held(lasts) - counts + 1
    is_held = window.holds(Cells[int](firsts), Cells[int](lasts))
    flags = np.fromiter(is_held, np.bool_, len(lasts))
    if not flags.any():
        return slice(0, 0)
    return slice(int(flags.argmax()), len(flags) - int(flags[::-1].argmax()))


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
