"""How many steps each line of a log stands for, and which lines a window holds."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats import piecewise
from perfdb.formats.base import Reading
from perfdb.formats.piecewise import Cells, fill, largest, let_go, pieces, rises, zeros
from perfdb.formats.readings import Ints, Readings
from perfdb.windows import Window

REGULAR: Final = 5
"""So many gaps of one size, one behind the other, are no lines that are lost."""


def interval_note(where: str, readings: Sequence[Reading]) -> tuple[Diagnostic, ...]:
    """A note where each line of a log stands for several steps."""
    steps = Readings.of(readings).step
    usual, counts = _usual(_gaps(steps)), spans(steps)
    seen = {usual, *_often(counts[1:])}
    if len(seen) > 1:
        message = "the log interval changes: each time is the mean of"
        return (Diagnostic(where, f"{message} {min(seen)} to {max(seen)} steps"),)
    if usual == 1:
        return ()
    first = ", the first of one step" if steps[0] == 1 else ""
    message = f"each time is the mean of the {usual} steps up to its own{first}"
    return (Diagnostic(where, message),)


def sampled_note(where: str, readings: Sequence[Reading]) -> tuple[Diagnostic, ...]:
    """A note where a file has the times of some of the steps alone."""
    usual = _usual(_gaps(Readings.of(readings).step))
    message = f"it has a time of one in {usual} steps: each counts as one step"
    return (Diagnostic(where, message),) if usual > 1 else ()


def spans(steps: Ints) -> Ints:
    """How many steps each line stands for in a log whose times are means since the line before.

    Behind a gap, whose lines are lost, it is as many as usual, unless gap after gap is as large: a
    later attempt has another interval. Nothing tells of how many a log's only line is: it counts
    as one. Megatron-Core does not start anew behind the very first step; the line after it has that
    one in its mean, too.
    """
    seen = _gaps(steps)
    usual = _usual(seen)
    changes = any(gap > usual and often >= REGULAR for gap, often in seen.items())
    if usual == 1 and not changes and rises(steps) and (not len(steps) or steps[0] > 0):
        return np.broadcast_to(np.int64(1), len(steps))
    counts = zeros(len(steps), np.int64)
    counts[:1] = np.minimum(steps[:1], usual)
    fill(counts[1:], lambda some: np.minimum(np.diff(some), usual), steps, overlap=1)
    if changes:
        _fill_regular(counts[1:], steps, usual)
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


def _fill_regular(counts: Ints, steps: Ints, usual: int) -> None:
    """Put down those gaps above the usual one of which each has as large ones beside it."""
    for number, (some,) in enumerate(pieces(steps, overlap=2 * REGULAR - 1)):
        gaps = np.diff(some)
        bounds = np.flatnonzero(np.diff(gaps, prepend=-1, append=-1))
        lengths = np.diff(bounds, prepend=0, append=len(gaps))
        is_regular = np.repeat(lengths >= REGULAR, lengths) & (gaps > usual)
        into = counts[number * piecewise.AT_ONCE :][: len(gaps)]
        into[is_regular] = gaps[is_regular]
        let_go(counts)


def _gaps(steps: Ints) -> Mapping[int, int]:
    """How often there is each gap between lines, in the order in which they are first seen."""
    # Newer versions log the very first step too, whatever the interval.
    several = steps[1:] if len(steps) > 2 and steps[0] == 1 else steps
    seen = Counter[int]()
    for (some,) in pieces(several, overlap=1):
        gaps, firsts, counts = np.unique(np.diff(some), return_index=True, return_counts=True)
        in_order = firsts.argsort()
        seen.update(dict(zip(gaps[in_order].tolist(), counts[in_order].tolist(), strict=True)))
    return seen


def _usual(seen: Mapping[int, int]) -> int:
    """The gap that is seen most often, and first of several; 1 where there is none."""
    return max(seen, key=seen.__getitem__, default=1)


def _often(counts: Ints) -> Iterator[int]:
    """Of how many steps at least so many lines are that they are no exceptions."""
    seen = Counter[int]()
    for (some,) in pieces(counts) if any(counts.strides) else ():
        values, often = np.unique(some, return_counts=True)
        seen.update(dict(zip(values.tolist(), often.tolist(), strict=True)))
    return (value for value, often in seen.items() if often >= REGULAR)
