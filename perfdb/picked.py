"""The lines of a log, or the steps of a run directory, that figures are taken over. Pure."""

from collections.abc import Iterable
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
    """The most that any line of the attempt says; 0 where none does."""
    skips: skipped.Skips | None = None


def of(
    steps: Iterable[Reading],
    window: windows.Window,
    *,
    averages: bool,
    attempt: tuple[int, int] = (0, MOST),
) -> Picked:
    """The lines that figures are taken over, of a log or of a run directory.

    `attempt`: the first step of the one that memory is told of, and the first of a later one.
    """
    readings = Readings.of(steps)
    lasts, all_spans = readings.step, np.broadcast_to(np.int64(1), len(readings))
    if averages:
        all_spans = spans(lasts)
    held, longest = held_by(window, lasts, all_spans), largest(all_spans, 1)
    memory = readings.column("peak_memory_bytes")
    peaks = (
        some[known & (attempt[0] <= number) & (number < attempt[1])].max(initial=0)
        for some, known, number in pieces(memory.values, memory.known, lasts)
    )
    peak, num_steps = int(max(peaks, default=0)), total(all_spans)
    return _without_skipped(Picked(readings.at(held), all_spans[held], num_steps, longest, peak))


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
