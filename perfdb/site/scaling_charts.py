"""The charts of scaling: the rate of each GPU over numbers of GPUs, and its efficiency."""

from collections.abc import Sequence
from itertools import chain
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.metrics import METRICS
from perfdb.site import bests, charts
from perfdb.site.cells import figure_text
from perfdb.site.charts import ChartLine
from perfdb.site.series import RATES, Rate, Series, efficiency
from perfdb.site.templates import joined
from perfdb.stated import figure

BASELINE: Final = 80.0
"""In percent: where the axis of efficiencies begins at the highest, as else noise looks large."""


def of_series(title: str, given: Sequence[Series]) -> list[Markup]:
    """The rate of each GPU in every series against the ideal, and what share of it that is.

    Two drawings for each kind of rate.
    """
    by_rate = {rate: [series for series in given if series.rate == rate] for rate in RATES}
    return [_chart(title, rate, some) for rate, some in by_rate.items() if some]


def _chart(title: str, rate: Rate, series: Sequence[Series]) -> Markup:
    shown = series[: charts.MOST_LINES]
    drawn = joined((_rates(title, rate, shown), _efficiencies(title, shown)))
    which = f"The first {len(shown)} of {len(series)} series are drawn."
    return charts.with_note(drawn, bests.note(which if len(series) > len(shown) else ""))


def _rates(title: str, rate: Rate, shown: Sequence[Series]) -> Markup:
    lines = [
        ChartLine(
            _label(one),
            tuple((float(it.num_gpus), figure(it, rate) or 0.0) for it in one.points),
            tuple(figure_text(it, rate) for it in one.points),
        )
        for one in shown
    ]
    name = "ideal: as at the smallest scale"
    ideal = [
        ChartLine(name, tuple((gpus, line.points[0][1]) for gpus, _ in line.points), ideal=True)
        for line in lines
    ]
    return charts.over_gpus(title, METRICS[rate].title, [*lines, *ideal])


def _efficiencies(title: str, shown: Sequence[Series]) -> Markup:
    """In percent, from so far below the lowest on that a loss of a few can be seen."""
    shares = [efficiency(one) for one in shown]
    lines = [
        ChartLine(
            _label(one),
            tuple((float(gpus), share * 100) for gpus, share in some.items()),
            tuple(map(units.percent, some.values())),
        )
        for one, some in zip(shown, shares, strict=True)
    ]
    ends = [end(gpus for some in shares for gpus in some) for end in (min, max)]
    ideal = ChartLine("ideal", tuple((float(gpus), 100.0) for gpus in ends), ideal=True)
    lowest = 100 * min(chain.from_iterable(some.values() for some in shares))
    low = max(0.0, min(BASELINE, lowest // 10 * 10 - 10))
    axis = f"Efficiency (%), axis from {low:g}"
    return charts.over_gpus(f"{title}: efficiency", axis, [*lines, ideal], low)


def _label(series: Series) -> str:
    first = series.points[0]
    parts = (
        bests.precision_of(first),
        f"sequence {first.sequence_length:,}",
        f"{series.scaling} scaling",
    )
    return " · ".join(filter(None, parts))
