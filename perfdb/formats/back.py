"""Finds where a log goes back to an earlier step: at a restart, or where another run begins."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from perfdb.formats.order import in_order
from perfdb.formats.piecewise import Array, found, pieces, places, rises
from perfdb.formats.readings import Flags, Floats, Ints, Readings

MOST_APART: Final = 3
"""How many step lines back the first step may stand that another rank prints; else a run begins."""

AGAIN_AND_AGAIN: Final = 0.1
"""Where so many of its lines go on with the step of the line before, a log has several ranks, or
bars drawn again, unless more stands between these lines than between others: that of a start."""

_Follow = Callable[[Ints, Ints, Floats], Flags]
"""Of which steps, but the last, the line is followed by one that goes back."""


def is_backwards(printed: Readings) -> bool:
    """Whether the newest line stands first, as collectors of logs export them."""
    if rises(printed.step):
        return False
    num_back, num_on = 0, 0
    for steps, lines in pieces(printed.step, printed.line, overlap=1):
        gaps = np.diff(steps)[np.diff(lines) > 0]
        num_back, num_on = num_back + int((gaps < 0).sum()), num_on + int((gaps > 0).sum())
    return num_back >= MOST_APART and num_on <= AGAIN_AND_AGAIN * num_back


def start_of_last(printed: Readings) -> int:
    """The place at which a log last goes back to its first step, or before it, from far behind it.

    A restart goes back to a checkpoint, and ranks that share a log are a few lines apart.
    """
    firsts = _firsts(printed)
    if not len(firsts):
        return 0
    lows, highs = printed.step[firsts], printed.step[firsts - 1]
    apart = np.zeros(len(firsts), np.int64)
    for some in in_order(printed.step):
        each = np.unique(printed.step[some])
        apart += each.searchsorted(highs) - each.searchsorted(lows)
    far = firsts[apart > MOST_APART]
    return int(far[-1]) if len(far) else 0


def back(printed: Readings) -> Iterator[Ints]:
    """The places of steps that a log goes back to; where the lines say nothing, so does order."""
    if not rises(printed.step):
        for some in found(_followed(printed), *_columns(printed), overlap=1):
            if len(some):
                yield some + 1


def _firsts(printed: Readings) -> Ints:
    """The places at which a log goes back as far as it ever was, or farther."""
    if rises(printed.step):
        return np.empty(0, np.int64)
    followed, low = _followed(printed), int(printed.step[0])

    def are_firsts(steps: Ints, lines: Ints, times: Floats) -> Flags:
        nonlocal low
        lows = np.minimum.accumulate(np.minimum(steps, low))
        low = int(lows[-1])
        return np.asarray(followed(steps, lines, times) & (steps[1:] <= lows[:-1]))

    return places(are_firsts, *_columns(printed), overlap=1) + 1


def _columns(printed: Readings) -> tuple[Array, ...]:
    return printed.step, printed.line, printed.step_time_s


def _followed(printed: Readings) -> _Follow:
    """Whether a line at the very step of the one before tells of a restart, too."""
    if not _restarts_at_last(printed):
        return _are_back
    return lambda *some: np.asarray(_are_back(*some) | _are_again(*some))


def _are_back(steps: Ints, lines: Ints, _: Floats) -> Flags:
    return np.asarray((np.diff(steps) < 0) & (np.diff(lines) > 0))


def _are_again(steps: Ints, lines: Ints, times: Floats) -> Flags:
    return np.asarray((np.diff(steps) == 0) & (np.diff(times) != 0) & (np.diff(lines) > 0))


def _restarts_at_last(printed: Readings) -> bool:
    """Whether lines are followed by a restart at the very step that they printed."""
    num_again, num_on, nearest = 0, 0, np.iinfo(np.int64).max
    for some in pieces(*_columns(printed), overlap=1):
        again, gaps = _are_again(*some), np.diff(some[1])
        num_again += int(again.sum())
        num_on += int((np.diff(some[0]) > 0).sum())
        nearest = gaps[again].min(initial=nearest)
    if not (num_again and num_on):
        return False

    gaps_on = np.diff(printed.line)[np.diff(printed.step) > 0].clip(0)
    is_often = num_again > AGAIN_AND_AGAIN * len(printed)
    return bool(nearest >= np.median(gaps_on) + is_often)
