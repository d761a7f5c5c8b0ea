"""Puts numbers of any count in order: sorts some at a time, and merges them in files."""

from collections.abc import Iterator, Sequence

import numpy as np

from perfdb.formats import piecewise
from perfdb.formats.piecewise import Ints, let_go, zeros

SORTED_AT_ONCE = 1 << 19

_Run = tuple[int, int]
"""Where numbers in order begin and end."""


def in_order(numbers: Ints) -> Iterator[Ints]:
    """The places of numbers from the smallest on, and of equal ones all at once, in their order."""
    keys, places = zeros(len(numbers), np.int64), zeros(len(numbers), np.int64)
    runs = [
        _sorted(numbers, start, keys, places) for start in range(0, len(numbers), SORTED_AT_ONCE)
    ]
    while runs:
        last = _last(keys, runs)
        ends = [start + int(keys[start:end].searchsorted(last, "right")) for start, end in runs]
        taken = [slice(start, end) for (start, _), end in zip(runs, ends, strict=True)]
        order = np.concatenate([keys[some] for some in taken]).argsort(kind="stable")
        yield np.concatenate([places[some] for some in taken])[order]
        let_go(keys, places)
        runs = [(end, stop) for end, (_, stop) in zip(ends, runs, strict=True) if end < stop]


def _sorted(numbers: Ints, start: int, keys: Ints, places: Ints) -> _Run:
    """Put some of the numbers in order, and their places beside them."""
    some = numbers[start : start + SORTED_AT_ONCE].copy()
    end, order = start + len(some), some.argsort(kind="stable")
    keys[start:end], places[start:end] = some[order], order + start
    let_go(numbers, keys, places)
    return start, end


def _last(keys: Ints, runs: Sequence[_Run]) -> int:
    """A number up to which there are about as many as a piece has."""
    most = _reached(keys, runs, piecewise.AT_ONCE)
    near = [(start, end) for start, end in runs if keys[start] <= most]
    return _reached(keys, near, max(1, piecewise.AT_ONCE // len(near)))


def _reached(keys: Ints, runs: Sequence[_Run], size: int) -> int:
    return min(int(keys[min(start + size, end) - 1]) for start, end in runs)
