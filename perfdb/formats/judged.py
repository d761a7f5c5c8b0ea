"""Tells which attempt a log is judged by: the window over it, and where the last began. Pure."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import NamedTuple

from perfdb.formats.begun import Starts
from perfdb.formats.piecewise import Cells
from perfdb.formats.readings import Readings
from perfdb.formats.spans import spans
from perfdb.formats.steps import Settled


class Judged(NamedTuple):
    """The window of a log, over the attempt that it is judged by."""

    window: str
    restarted_at: int | None = None
    """The first step of the last attempt, where steps before it are of an earlier one."""
    restarted_from: int | None = None
    """The earliest step that it may have begun with, where nothing says which it was."""


class _Began(NamedTuple):
    """The step that an attempt began with; `earliest`: or any from that one on."""

    step: int
    earliest: int | None = None


class _Lines:
    """The lines of a log, each the mean of several steps, and the attempts that they are of."""

    def __init__(self, kept: Readings, starts: Starts | None) -> None:
        self.lasts = Cells[int](kept.step)
        self._lines = Cells[int](kept.line)
        self._counts = spans(kept.step)
        self._told = starts.first_steps if starts else []

    def first_of(self, place: int) -> int:
        return self.lasts[place] - int(self._counts[place]) + 1

    def holds(self, first: int, behind: int) -> bool:
        """Whether there is a line of which all steps are among these."""
        place = bisect_left(self.lasts, first)
        end = bisect_left(self.lasts, behind)
        return any(self.first_of(one) >= first for one in range(place, min(place + 2, end)))

    def began(self, step: int) -> _Began:
        """Where the attempt began whose first line is that of a step.

        That line may be the mean of fewer steps than others: a checkpoint may lie between lines.
        """
        place = bisect_left(self.lasts, step)
        first, last = self.first_of(place), self.lasts[place]
        above = self._lines[place - 1] if place else 0
        told = [one for line, one in self._told if above < line < self._lines[place]]
        if told and first <= told[-1] <= last:
            return _Began(told[-1])
        if first == last or not place:
            return _Began(first)
        return _Began(last, first)


def judged(window: str, steps: Settled, starts: Starts | None = None) -> Judged:
    """The attempt that a log is judged by: a restart warms up again, and the window follows it.

    It is the last, if it is long enough, else the last before it that is; of steps over several
    attempts if none. Where nothing says within a line's steps at which an attempt began, its
    warm-up counts from the last of them.
    """
    warmup = re.fullmatch(r"skip_warmup\((\d+)\)", window)
    kept = Readings.of(steps.readings)
    if not (warmup and len(kept)):
        return Judged(window, steps.restarted_at)
    lines, skipped = _Lines(kept, starts), int(warmup[1])
    restarts = steps.restarts[: bisect_right(steps.restarts, lines.lasts[-1])]
    first, begin = lines.first_of(0), lines.began(lines.lasts[0]).step
    if not restarts:
        if begin > first:
            window = f"skip_warmup({begin - first + skipped})"
        return Judged(window, steps.restarted_at)
    again, earliest = lines.began(restarts[-1])
    if again + skipped > lines.first_of(-1):
        starts_of = (lines.began(one).step for one in reversed(restarts))
        for start, end in _attempts(starts_of, begin, again):
            if lines.holds(start + skipped, end):
                window = f"window({start + skipped},{end - 1})"
                return Judged(window, again, earliest)
    window = f"skip_warmup({again - first + skipped})"
    return Judged(window, again, earliest)


def _attempts(starts: Iterator[int], first: int, again: int) -> Iterator[tuple[int, int]]:
    """The steps of each attempt but the last, from the last on, and then those of all of them."""
    yield from ((start, end) for end, start in pairwise(chain(starts, [first])))
    yield first, again
