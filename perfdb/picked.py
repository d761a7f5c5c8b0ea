"""The lines of a log, or the steps of a run directory, that figures are taken over. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from perfdb import attempt_settings, normalize, skipped, windows
from perfdb.db.rows import ResultRow
from perfdb.formats import Reading
from perfdb.formats.piecewise import Cells, by_rank, largest, pieces, places, total
from perfdb.formats.readings import Column, Ints, Readings
from perfdb.formats.shelf import each
from perfdb.formats.spans import held_by, spans
from perfdb.record import MOST, Outcome

_SPAN = "span"
"""A column of lines: how many steps each of them stands for."""


class Picked(NamedTuple):
    """The lines of a log that figures are taken over, and how many steps each stands for.

    They are those of a window, without the ones in which the optimizer skipped a step.
    """

    lines: Readings
    spans: Ints
    num_steps: int
    """How many steps all lines of the log stand for."""
    longest: int
    """How many steps a line of the log stands for at the most."""
    peak_memory_bytes: int
    """The most that any line of their attempts says; 0 where none does."""
    skips: skipped.Skips | None = None


def of(
    steps: Iterable[Reading],
    window: windows.Window,
    *,
    averages: bool,
    restarts: Sequence[int] = (),
) -> Picked:
    """The lines that figures are taken over, of a log or of a run directory.

    `restarts`: the first step of each attempt but the first. Memory is that of the attempts that
    the lines are of.
    """
    readings = Readings.of(steps)
    lasts, all_spans = readings.step, np.broadcast_to(np.int64(1), len(readings))
    if averages:
        all_spans = spans(lasts)
    held, longest = held_by(window, lasts, all_spans), largest(all_spans, 1)
    within = _without_skipped(
        Picked(readings.at(held), all_spans[held], total(all_spans), longest, 0)
    )
    peak = _peak(readings, _attempts_of(within.lines.step, restarts))
    return within._replace(peak_memory_bytes=peak)


def _attempts_of(lasts: Ints, restarts: Sequence[int]) -> tuple[int, int]:
    """The first step of the attempts that lines are of, and the first of a later one."""
    if not len(lasts):
        return 0, 0
    begun, later = (bisect_right(restarts, int(lasts[place])) for place in (0, -1))
    first = restarts[begun - 1] if begun else 0
    return first, restarts[later] if later < len(restarts) else MOST


def _peak(readings: Readings, steps: tuple[int, int]) -> int:
    memory = readings.column("peak_memory_bytes")
    peaks = (
        some[known & (steps[0] <= number) & (number < steps[1])].max(initial=0)
        for some, known, number in pieces(memory.values, memory.known, readings.step)
    )
    return int(max(peaks, default=0))


def _without_skipped(within: Picked) -> Picked:
    lines, all_spans = within.lines, within.spans
    found = places(lambda values: values != 0, lines.column("skipped").values)
    if not len(found):
        return within
    skips = skipped.skips(
        Cells[int](lines.step[found]), Cells[int](all_spans[found]), total(all_spans)
    )
    kept = each(
        lines.with_columns(**{_SPAN: Column.full(all_spans)}),
        lambda some: some.at(some.column("skipped").values == 0),
    )
    counts = kept.column(_SPAN).values.astype(np.int64, copy=False)
    return within._replace(lines=kept.without(_SPAN), spans=counts, skips=skips)


def with_figures(result: ResultRow, within: Picked, window: windows.Window) -> ResultRow:
    """The result with what the lines amount to; incomplete where there are none.

    Likewise where the optimizer skipped most steps, of fewer of which a note tells, or where steps
    have other settings than the case.
    """
    noted = skipped.noted(result, within.skips)
    if noted.withheld is not None:
        return noted
    why_none = window.why_none(within.num_steps, within.longest)
    times, counts = within.lines.step_time_s, within.spans
    if len(times):
        first, last = int(within.lines.step[0]), int(within.lines.step[-1])
        if others := attempt_settings.why_none(result.notes, first, last):
            return replace(noted, outcome=Outcome.INCOMPLETE, withheld=others)
    ranked = by_rank(lambda: pieces(times, counts)) if len(times) else None
    summary = windows.summarise_times(Cells[float](times), Cells[int](counts), ranked)
    timed = normalize.with_times(noted, summary, window, why_none)
    return normalize.with_memory(timed, within.peak_memory_bytes)
