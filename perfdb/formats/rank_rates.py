"""Which iteration each rate of another rank belongs to: nothing but the order of lines says it.

Each rank prints in its own order, and a rate comes with its step's time, rounded. Whether it stands
before its iteration's line or behind it, and by how many lines, is as a rule the same in all of a
log. What that leaves open is left unset: a rate on the wrong step is worse than none.

Rates are `Readings` with their lines and times; `step` is then the place of the iteration that
comes next, or stands on their line. A log may have any number of them: they are gone through some
at a time, and what is known of iterations meanwhile lies in files.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from perfdb.formats import piecewise
from perfdb.formats.piecewise import Array, Cells, every, fill, let_go, pieces, zeros
from perfdb.formats.readings import Column, Flags, Floats, Ints, Readings
from perfdb.formats.shelf import Shelf, each
from perfdb.formats.spans import spans

RATE = "model_tflops_per_sec_per_gpu"

_ROUNDING_S = 0.0051
"""Half of the hundredth that a rate's time is rounded to, and of the iteration's tenth of a ms."""
_NEAR = 8
"""How many iterations before and behind a rate may be its own."""


@dataclass(frozen=True, eq=False)
class Paired:
    """The rate of each iteration, by its place in the log; and how many have an iteration.

    `lost`: no iteration near them has their time. `doubtful`: it may be one of several.
    """

    rates: Column
    found: int
    lost: int
    doubtful: int


def paired(printed: Readings, rates: Readings, planned: int | None) -> Paired:
    """The iteration of each rate; `planned`: how many steps the run was to have.

    One that several ranks print one behind the other is one, and so are its rates.
    """
    if not len(printed) or not len(rates):
        return Paired(Column.empty(len(printed)), 0, len(rates), 0)
    is_first = zeros(len(printed), np.bool_)
    is_first[0] = True
    fill(is_first[1:], lambda some: np.diff(some) != 0, printed.step, overlap=1)
    once = printed
    if is_repeated := not every(lambda some: some, is_first):
        once = _once(printed, is_first)
    rates = _placed(rates, once.line)
    pairs = _Pairs(once, _without_repeated(rates) if is_repeated else rates, planned)
    found = pairs.one_by_one() or pairs.by_order()
    return replace(found, rates=_spread(found.rates, is_first)) if is_repeated else found


def _once(printed: Readings, is_first: Flags) -> Readings:
    flags = {"is_first": Column.full(is_first)}
    flagged = Readings(printed.line, printed.step, printed.step_time_s, flags)
    return each(flagged, lambda some: some.at(some.column("is_first").values != 0))


def _spread(rates: Column, is_first: Flags) -> Column:
    """What each iteration has, for all of its lines."""
    spread = Column(zeros(len(is_first), np.float64), zeros(len(is_first), np.bool_))
    start, last = 0, -1
    for (some,) in pieces(is_first):
        places = last + some.cumsum()
        spread.values[start : start + len(some)] = rates.values[places]
        spread.known[start : start + len(some)] = rates.known[places]
        start, last = start + len(some), int(places[-1])
        let_go(rates.values, rates.known, spread.values, spread.known)
    return spread


def _placed(rates: Readings, lines: Ints) -> Readings:
    """The rates with the place of the iteration that comes next after each, by all their lines."""
    placed, left = Shelf(), rates
    start = 0
    for (some,) in pieces(lines):
        own = some.copy()
        while len(left):
            first = left.at(slice(piecewise.AT_ONCE))
            num_before = int(first.line.searchsorted(own[-1], "right"))
            placed.add(_at_places(first.at(slice(num_before)), own, start))
            left = left.at(slice(num_before, None))
            if num_before < len(first):
                break
        start += len(own)
    for some_left in left.parts(piecewise.AT_ONCE):
        placed.add(_at_places(some_left, lines[:0], start))
    return placed.readings()


def _at_places(rates: Readings, lines: Ints, start: int) -> Readings:
    places = start + lines.searchsorted(rates.line)
    return Readings(rates.line, places, rates.step_time_s, rates.columns)


def _without_repeated(rates: Readings) -> Readings:
    """Rates without those that repeat the one before, with no iteration between them."""
    last: list[tuple[float, ...]] = []

    def new(some: Readings) -> Readings:
        cells = (some.step, some.step_time_s, some.column(RATE).values)
        is_new = np.ones(len(some), np.bool_)
        is_new[1:] = np.logical_or.reduce([one[1:] != one[:-1] for one in cells])
        is_new[0] = [tuple(one[0] for one in cells)] != last
        last[:] = [tuple(one[-1] for one in cells)]
        return some.at(is_new)

    return each(rates, new)


_SHIFTS = range(-_NEAR, _NEAR)
_BEFORE, _BEHIND = 0, -1
"""What the next iteration's place is off by where a rate stands before its own, or behind it."""
_NONE = -1


@dataclass(frozen=True, eq=False)
class _ByTime:
    """Some rates that no order tells the iteration of, by their places among others.

    `near`: the places of iterations near each. `may`: which of these have its time, and no rate.
    """

    rates: Ints
    near: Ints
    may: Flags

    @property
    def asked(self) -> Ints:
        """The places that each of them may have."""
        return np.asarray(self.near[self.may])

    @property
    def first(self) -> Ints:
        """The first place that each may have, if there is any."""
        return np.asarray(self.near[np.arange(len(self.rates)), self.may.argmax(axis=1)])


class _Pairs:
    """Finds the iterations of rates that have the place of the next one each."""

    def __init__(self, printed: Readings, rates: Readings, planned: int | None) -> None:
        steps, counts = printed.step, spans(printed.step)
        self._printed, self._size, self._rates = printed, len(printed), rates
        self._has_start = bool(steps[0] == counts[0])
        self._has_end = planned is not None and bool(steps[-1] >= planned)
        self._is_whole = every(_have_no_gap, steps, counts, overlap=1)

    def one_by_one(self) -> Paired | None:
        """In their order, where a log has all iterations of its run and as many rates."""
        whole = self._has_start and self._has_end and self._is_whole
        times = self._printed.step_time_s, self._rates.step_time_s
        same = whole and len(self._rates) == self._size and every(_near, *times)
        return Paired(self._rates.column(RATE), self._size, 0, 0) if same else None

    def by_order(self) -> Paired:
        """By how rates and iterations follow each other in all of the log, then by their times."""
        shift = self._shift()
        fits = self._counted(partial(self._fitting, shift=shift))
        asked = self._counted(lambda some: self._by_time(some, shift, fits).asked)
        rates = Column(zeros(self._size, np.float64), zeros(self._size, np.bool_))
        num_found = num_doubtful = 0
        for some in self._parts():
            places, left = self._by_shift(some, shift, fits), self._by_time(some, shift, fits)
            is_sure = (left.may.sum(axis=1) == 1) & (_of(asked, left.first) == 1)
            places[left.rates[is_sure]] = left.first[is_sure]
            num_doubtful += int((left.may.any(axis=1) & ~is_sure).sum())
            is_found = places >= 0
            num_found += int(is_found.sum())
            rates.values[places[is_found]] = some.column(RATE).values[is_found]
            rates.known[places[is_found]] = True
            let_go(fits, asked, rates.values, rates.known)
        num_lost = len(self._rates) - num_found - num_doubtful
        return Paired(rates, num_found, num_lost, num_doubtful)

    def _parts(self) -> Iterator[Readings]:
        """The rates, some at a time, that no more iterations stand among."""
        for some in self._rates.parts(piecewise.AT_ONCE // 4 or 1):
            left = some
            while len(left):
                size = int(left.step.searchsorted(left.step[0] + piecewise.AT_ONCE))
                yield left.at(slice(size))
                left = left.at(slice(size, None))
                pass

    def _counted(self, asked: Callable[[Readings], Ints]) -> Ints:
        """How many rates ask for each iteration. `asked`: what places some rates ask for."""
        counts = zeros(self._size, np.int32)
        for some in self._parts():
            places = asked(some)
            if len(places):
                first = int(places.min())
                found = np.bincount(places - first)
                counts[first : first + len(found)] += found.astype(np.int32)
                let_go(counts)
        return counts

    def _shift(self) -> int | None:
        """How many iterations further each rate's own is than the next; None where nothing tells.

        The times tell, if at no other place half as many fit. Else a rate stands right before its
        iteration or right behind it, whichever leaves fewer alone, and none is out of order.
        """
        num_fits = dict.fromkeys(_SHIFTS, 0)
        for some in self._parts():
            for shift in _SHIFTS:
                num_fits[shift] += len(self._fitting(some, shift))
        second, best = sorted(_SHIFTS, key=num_fits.__getitem__)[-2:]
        if 2 * num_fits[second] < num_fits[best]:
            return best
        fits = {one: self._counted(partial(self._fitting, shift=one)) for one in (_BEFORE, _BEHIND)}
        alone = {shift: self._num_alone(shift, counts) for shift, counts in fits.items()}
        shift = _BEFORE if alone[_BEFORE] < alone[_BEHIND] else _BEHIND
        is_told = alone[_BEFORE] != alone[_BEHIND]
        return shift if is_told and self._are_in_order(shift, fits[shift]) else None

    def _are_in_order(self, shift: int, fits: Ints) -> bool:
        """Whether all rates have an iteration so far off, but for those that are cut off."""
        return all(
            ((self._by_shift(some, shift, fits) >= 0) | ~self._are_held(some.step + shift)).all()
            for some in self._parts()
        )

    def _num_alone(self, shift: int, fits: Ints) -> int:
        """How many rates and iterations have no other, if rates were so many lines off.

        But for those whose other may be cut off with the start or the end of the log.
        """
        following, size = self._rates.step, self._size
        num_paired = sum(int((some == 1).sum()) for (some,) in pieces(fits))
        alone = len(following) + size - 2 * num_paired
        first, last = int(following[0]) + shift, int(following[-1]) + shift
        if not self._has_start:
            alone -= bisect_left(Cells[int](following), -shift) + min(max(first, 0), size)
        if not self._has_end:
            num_before = bisect_left(Cells[int](following), size - shift)
            alone -= len(following) - num_before + min(max(size - 1 - last, 0), size)
        return alone

    def _fitting(self, some: Readings, shift: int | None) -> Ints:
        """The places so far off of those rates that have the times of these iterations."""
        places = some.step + (shift or 0)
        return places[self._fit(some.step_time_s, places)] if shift is not None else places[:0]

    def _fit(self, times: Floats, places: Ints) -> Flags:
        """Whether the iterations at some places have these times."""
        return self._are_held(places) & _near(times, _of(self._printed.step_time_s, places))

    def _are_held(self, places: Ints) -> Flags:
        return np.asarray((places >= 0) & (places < self._size))

    def _by_shift(self, some: Readings, shift: int | None, fits: Ints) -> Ints:
        """The place of each rate that fits the iteration so far off, if no other does."""
        if shift is None:
            return np.full(len(some), _NONE)
        places = some.step + shift
        is_paired = self._fit(some.step_time_s, places) & (_of(fits, places) == 1)
        return np.where(is_paired, places, _NONE)

    def _by_time(self, some: Readings, shift: int | None, fits: Ints) -> _ByTime:
        """Those of the other rates that have an iteration so far off, and those near them."""
        is_open = self._by_shift(some, shift, fits) == _NONE
        if shift is not None:
            is_open &= self._are_held(some.step + shift)
        rest = np.flatnonzero(is_open)
        near = some.step[rest, None] + np.array(_SHIFTS)
        may = self._fit(some.step_time_s[rest, None], near) & (_of(fits, near) != 1)
        return _ByTime(rest, near, may)


def _of(numbers: Array, places: Ints) -> Array:
    """The numbers at some places; the first or the last for those before or behind them all."""
    return np.asarray(numbers[places.clip(0, len(numbers) - 1)])


def _have_no_gap(steps: Ints, counts: Ints) -> Flags:
    gaps = np.diff(steps)
    return np.asarray((gaps > 0) & (gaps == counts[1:]))


def _near(times: Floats, others: Floats) -> Flags:
    with np.errstate(invalid="ignore"):  # two that are infinite
        return np.asarray(np.abs(times - others) <= _ROUNDING_S)
