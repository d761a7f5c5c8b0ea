"""The charts of the site: step times, bars, bars that go both ways, lines over GPUs or releases.

What each says in words is here; how it is drawn, in `plots`.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from perfdb import units
from perfdb.site.data import RunPage
from perfdb.site.markup import Html, joined, tag
from perfdb.site.palette import STEP

# it tells of the caches that it makes; a build prints its own warnings and nothing else
logging.getLogger("matplotlib").setLevel(logging.ERROR)

MOST_BARS: Final = 24
MOST_LINES: Final = 6
"""Bars and lines that a chart has at most; the tables below it have them all."""
MOST_TOGETHER: Final = 12
"""Bars that stand below one another; more of them are two drawings, side by side where they fit."""


@dataclass(frozen=True)
class Bar:
    """A bar: what it is of, how long it is, what is written at its end, and its colour."""

    label: str
    value: float
    said: str
    colour: str = STEP


@dataclass(frozen=True)
class Line:
    """A line through points; `said` are their values as tables print them.

    `ideal` is what would be if nothing were lost, of which nothing is said.
    """

    label: str
    points: tuple[tuple[float, float], ...]
    said: tuple[str, ...] = ()
    ideal: bool = False


def step_times(page: RunPage) -> Html | None:
    """Seconds over steps, warm-up shaded, with the median of the window; None without a step."""
    if not page.steps:
        return None
    # it loads matplotlib, which takes half a second, and few pages have a chart
    from perfdb.site import plots  # noqa: PLC0415

    title = f"Step times of {page.run.run_id}"
    return plots.steps(title, _of_steps(page), page)


def _of_steps(page: RunPage) -> str:
    """The chart of step times in a sentence."""
    times = [step.step_time_s for step in page.steps]
    first, last = (end(step.step for step in page.steps) for end in (min, max))
    # a line of a log may stand for several steps, and a log may begin behind the first
    of = f"step {last:,}" if first == last else f"steps {first:,} to {last:,}"
    warmup = page.run.warmup_steps
    shaded = f"those up to step {warmup:,} are warm-up and shaded" if warmup else "none is warm-up"
    low, high = units.significant(min(times)), units.significant(max(times))
    median = units.significant(page.result.step_time_s)
    return (
        f"{units.counted(len(times), 'step time')}, of {of}; {shaded}; "
        f"between {low} and {high} seconds, median of the window {median} seconds."
    )


def beside(drawn: Html, said: Html) -> Html:
    """A drawing, and what is said of it: to its right where there is room."""
    return tag("div", (drawn, said), class_="perf-drawn")


def bars(title: str, axis: str, given: Sequence[Bar]) -> Html:
    """A bar for each, from above down; to the right of zero, or to the left where it is below."""
    from perfdb.site import plots  # noqa: PLC0415  as above

    together = len(given) if len(given) <= MOST_TOGETHER else ceil(len(given) / 2)
    parts = [given[start : start + together] for start in range(0, len(given), together)]
    return joined(plots.bars(title, f"{axis}. {_ends(part)}.", axis, part, given) for part in parts)


def _ends(given: Sequence[Bar]) -> str:
    return "; ".join(f"{bar.label}: {bar.said}" for bar in given)


def over_gpus(title: str, axis: str, given: Sequence[Line], low: float = 0.0) -> Html:
    """Rates over numbers of GPUs, of which each doubling is as wide; an ideal line is dotted.

    `low` is where the axis of the rates begins.
    """
    from perfdb.site import plots  # noqa: PLC0415  as above

    sentence = f"{axis} by number of GPUs. {_points(given)}"
    return plots.over_gpus(title, sentence, axis, given, low)


def over_releases(title: str, axis: str, names: Sequence[str], given: Sequence[Line]) -> Html:
    """Figures over releases, the oldest at the left; a point's x is the place of its release."""
    from perfdb.site import plots  # noqa: PLC0415  as above

    said = f"{axis} by release: {', '.join(names)}. {_points(given)}"
    return plots.over_releases(title, said, axis, names, given)


def _points(given: Sequence[Line]) -> str:
    return " ".join(f"{line.label}: {', '.join(line.said)}." for line in given if line.said)
