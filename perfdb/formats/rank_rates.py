"""Which iteration each rate of another rank belongs to: nothing but the order of lines says it.

Each rank prints in its own order, and a rate comes with its step's time, rounded. Whether it stands
before its iteration's line or behind it, and by how many lines, is as a rule the same in all of a
log. What that leaves open is left unset: a rate on the wrong step is worse than none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perfdb.formats.readings import Flags, Floats, Ints, Readings
from perfdb.formats.spans import spans

_ROUNDING_S = 0.0051
"""Half of the hundredth that a rate's time is rounded to, and of the iteration's tenth of a ms."""
_NEAR = 8
"""How many iterations before and behind a rate may be its own."""


@dataclass(frozen=True, eq=False)
class Rates:
    """The rates of a log in their order, with their lines and times."""

    line: Ints
    step_time_s: Floats
    tflops: Floats

    def __len__(self) -> int:
        return len(self.line)


@dataclass(frozen=True)
class Paired:
    """The rate of each iteration, by its place in the log; and how many rates have none.

    `lost`: no iteration near them has their time. `doubtful`: it may be one of several.
    """

    rate_of: Mapping[int, float]
    lost: int
    doubtful: int


def paired(printed: Readings, rates: Rates, planned: int | None) -> Paired:
    """The iteration of each rate; `planned`: how many steps the run was to have.

    One that several ranks print one behind the other is one, and so are its rates.
    """
    if not len(printed) or not len(rates):
        return Paired({}, len(rates), 0)
    is_first = np.diff(printed.step, prepend=printed.step[0] - 1) != 0
    once = printed.at(is_first)
    rates = rates if is_first.all() else _once(rates, once)
    pairs = _Pairs(once, rates, planned)
    places = pairs.one_by_one()
    if places is None:
        places = pairs.by_order()
    known = np.flatnonzero(places >= 0)
    rate_of = dict(zip(places[known].tolist(), rates.tflops[known].tolist(), strict=True))
    copies = enumerate((is_first.cumsum() - 1).tolist())
    doubtful = int((places == _DOUBTFUL).sum())
    return Paired(
        {place: rate_of[first] for place, first in copies if first in rate_of},
        len(rates) - len(known) - doubtful,
        doubtful,
    )


def _once(rates: Rates, printed: Readings) -> Rates:
    """Rates without those that repeat the one before, with no iteration between them."""
    cells = (np.searchsorted(printed.line, rates.line), rates.step_time_s, rates.tflops)
    is_new = np.ones(len(rates), np.bool_)
    is_new[1:] = np.logical_or.reduce([one[1:] != one[:-1] for one in cells])
    return Rates(rates.line[is_new], rates.step_time_s[is_new], rates.tflops[is_new])


_NONE, _DOUBTFUL = -1, -2
_SHIFTS = range(-_NEAR, _NEAR)
_BEFORE, _BEHIND = 0, -1
"""What the next iteration's place is off by where a rate stands before its own, or behind it."""


class _Pairs:
    def __init__(self, printed: Readings, rates: Rates, planned: int | None) -> None:
        steps, counts = printed.step, spans(printed.step)
        self._times, self._of_rates = printed.step_time_s, rates.step_time_s
        self._next = np.searchsorted(printed.line, rates.line).astype(np.int64)
        """The iteration that comes next after each rate, or stands on its line."""
        self._has_start = bool(steps[0] == counts[0])
        self._has_end = planned is not None and bool(steps[-1] >= planned)
        gaps = np.diff(steps)
        self._is_whole = bool(((gaps > 0) & (gaps == counts[1:])).all())

    def one_by_one(self) -> Ints | None:
        """The places in order, where a log has all iterations of its run and as many rates."""
        places = np.arange(len(self._of_rates))
        whole = self._has_start and self._has_end and self._is_whole
        same = whole and len(places) == len(self._times)
        return places if same and self._fits(places).all() else None

    def by_order(self) -> Ints:
        """The places by how rates and iterations follow each other in all of the log."""
        places, open_ = np.full(len(self._next), _NONE), np.ones(len(self._next), np.bool_)
        shift = self._shift()
        if shift is not None:
            there = self._next + shift
            fits = self._paired(there)
            places[fits] = there[fits]
            open_ = ~fits & self._is_held(there)
        return self._by_time(places, open_)

    def _shift(self) -> int | None:
        """How many iterations further each rate's own is than the next; None where nothing tells.

        The times tell, if at no other place half as many fit. Else a rate stands right before its
        iteration or right behind it, whichever leaves fewer alone, and none is out of order.
        """
        fits = {shift: int(self._fits(self._next + shift).sum()) for shift in _SHIFTS}
        second, best = sorted(_SHIFTS, key=fits.__getitem__)[-2:]
        if 2 * fits[second] < fits[best]:
            return best
        alone = [self._num_alone(shift) for shift in (_BEFORE, _BEHIND)]
        shift = _BEFORE if alone[0] < alone[1] else _BEHIND
        there = self._next + shift
        in_order = bool((self._paired(there) | ~self._is_held(there)).all())
        return shift if in_order and alone[0] != alone[1] else None

    def _paired(self, places: Ints) -> Flags:
        """Which rates fit the iteration at their place, and no other does."""
        fits = self._fits(places)
        counts = np.bincount(places[fits], minlength=1)
        return np.asarray(fits & (counts.take(places, mode="clip") == 1))

    def _is_held(self, places: Ints) -> Flags:
        return np.asarray((places >= 0) & (places < len(self._times)))

    def _fits(self, places: Ints) -> Flags:
        """Whether the iteration at each rate's place has its time."""
        return self._is_held(places) & _near(self._of_rates, self._times.take(places, mode="clip"))

    def _num_alone(self, shift: int) -> int:
        """How many rates and iterations have no other, if rates were so many lines off.

        But for those whose other may be cut off with the start or the end of the log.
        """
        places, size = self._next + shift, len(self._times)
        alone = len(places) + size - 2 * int(self._paired(places).sum())
        if not self._has_start:
            alone -= int((places < 0).sum()) + int(np.clip(places[0], 0, size))
        if not self._has_end:
            alone -= int((places >= size).sum()) + int(np.clip(size - 1 - places[-1], 0, size))
        return alone

    def _by_time(self, places: Ints, open_: Flags) -> Ints:
        """The places with those of open rates of which one iteration has the time, and only it."""
        rest = np.flatnonzero(open_)
        near = self._next[rest, None] + np.array(_SHIFTS)
        taken = np.zeros(len(self._times), np.bool_)
        taken[places[places >= 0]] = True
        times = self._times.take(near, mode="clip")
        may = _near(self._of_rates[rest, None], times)
        may &= self._is_held(near) & ~taken.take(near, mode="clip")
        asked = np.bincount(near[may], minlength=len(taken))
        first = near[np.arange(len(rest)), may.argmax(axis=1)]
        one = may.sum(axis=1) == 1
        sure = one & (asked.take(first, mode="clip") == 1)
        places[rest[sure]] = first[sure]
        places[rest[~sure & may.any(axis=1)]] = _DOUBTFUL
        return places


def _near(times: Floats, others: Floats) -> Flags:
    with np.errstate(invalid="ignore"):  # two that are infinite
        return np.asarray(np.abs(times - others) <= _ROUNDING_S)
