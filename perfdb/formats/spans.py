"""How many steps each line of a log stands for, and which lines a window holds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from perfdb import aggregation
from perfdb.errors import Diagnostic
from perfdb.formats.base import Reading
from perfdb.formats.piecewise import pieces
from perfdb.formats.readings import Ints, Readings

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


spans = aggregation.steps_per_line
held_by = aggregation.lines_held


_gaps = aggregation.gap_counts
_usual = aggregation.usual_gap


def _often(counts: Ints) -> Iterator[int]:
    """Of how many steps at least so many lines are that they are no exceptions."""
    seen = Counter[int]()
    for (some,) in pieces(counts) if any(counts.strides) else ():
        values, often = np.unique(some, return_counts=True)
        seen.update(dict(zip(values.tolist(), often.tolist(), strict=True)))
    return (value for value, often in seen.items() if often >= REGULAR)
