"""The charts of the site: step times, bars, lines over numbers of GPUs or releases.

The words of each are here, for screen readers and labels; `drawing` draws them.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.site.data import RunData
from perfdb.site.templates import joined

# it reports the caches that it makes; a build prints its own warnings and nothing else
logging.getLogger("matplotlib").setLevel(logging.ERROR)

TEXT: Final = "var(--pst-color-text-base, currentColor)"
MUTED: Final = "var(--pst-color-text-muted, #666)"
RULE: Final = "var(--pst-color-border, #ccc)"
GROUND: Final = "var(--pst-color-surface, transparent)"

STEP: Final = "var(--perf-step, #0072b2)"
WARMUP: Final = "var(--perf-warmup, #e69f00)"
MEDIAN: Final = "var(--perf-median, #d55e00)"
GOOD: Final = "var(--perf-good, #00664d)"
BAD: Final = "var(--perf-bad, #b03a00)"
PUBLISHED: Final = "var(--perf-published, #7b3fb5)"
WARNING: Final = "var(--perf-warning, #8a5a00)"
FAINT: Final = f"color-mix(in srgb, {MUTED} 65%, var(--pst-color-background, #fff))"
"""A neutral bar: lighter than the good and the bad ones."""

SERIES: Final = (STEP, MEDIAN, GOOD, PUBLISHED, WARNING, MUTED)
"""The colours of lines that are next to each other."""

OF_PEAKS: Final = {"bf16": STEP, "fp8": MEDIAN, "fp4": GOOD}
"""The colours of bars, by the peak that their precision is held against."""

MOST_BARS: Final = 24
MOST_LINES: Final = 6
"""Bars and lines that a chart has at most; the tables below it have them all."""
MOST_TOGETHER: Final = 12
"""Bars that are below one another; more of them are two drawings, side by side where they fit."""


@dataclass(frozen=True)
class ChartBar:
    """A bar: what it is of, how long it is, what is written at its end, and its colour."""

    label: str
    value: float
    text: str
    colour: str = STEP


@dataclass(frozen=True)
class ChartLine:
    """A line through points; `text` are their values as tables print them.

    `ideal` is what would be if nothing were lost, of which nothing is text.
    """

    label: str
    points: tuple[tuple[float, float], ...]
    text: tuple[str, ...] = ()
    ideal: bool = False


def step_times(page: RunData) -> Markup | None:
    """Seconds over steps, warm-up shaded, with the median of the window; None without a step."""
    if not page.steps:
        return None
    # it loads matplotlib, which takes half a second, and few pages have a chart
    from perfdb.site import drawing  # noqa: PLC0415

    title = f"Step times of {page.run.run_id}"
    return drawing.steps(title, _of_steps(page), page)


def _of_steps(page: RunData) -> str:
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


def with_note(drawn: Markup, note: Markup) -> Markup:
    """A drawing and the note on it: to its right where there is room."""
    return Markup('<div class="perf-drawn">{}{}</div>\n').format(drawn, note)


def bars(title: str, axis: str, given: Sequence[ChartBar]) -> Markup:
    """A bar for each, from above down; to the right of zero, or to the left where it is below."""
    from perfdb.site import drawing  # noqa: PLC0415  as above

    together = len(given) if len(given) <= MOST_TOGETHER else ceil(len(given) / 2)
    parts = [given[start : start + together] for start in range(0, len(given), together)]
    return joined(
        drawing.bars(title, f"{axis}. {_ends(part)}.", axis, part, given) for part in parts
    )


def _ends(given: Sequence[ChartBar]) -> str:
    return "; ".join(f"{bar.label}: {bar.text}" for bar in given)


def over_gpus(title: str, axis: str, given: Sequence[ChartLine], low: float = 0.0) -> Markup:
    """Rates over numbers of GPUs, of which each doubling is as wide; an ideal line is dotted.

    `low` is where the axis of the rates begins.
    """
    from perfdb.site import drawing  # noqa: PLC0415  as above

    sentence = f"{axis} by number of GPUs. {_points(given)}"
    return drawing.over_gpus(title, sentence, axis, given, low)


def over_releases(
    title: str, axis: str, names: Sequence[str], given: Sequence[ChartLine]
) -> Markup:
    """Figures over releases, the oldest at the left; a point's x is the place of its release."""
    from perfdb.site import drawing  # noqa: PLC0415  as above

    text = f"{axis} by release: {', '.join(names)}. {_points(given)}"
    return drawing.over_releases(title, text, axis, names, given)


def _points(given: Sequence[ChartLine]) -> str:
    return " ".join(f"{line.label}: {', '.join(line.text)}." for line in given if line.text)
