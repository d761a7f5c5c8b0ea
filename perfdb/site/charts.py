"""The charts of the site: step times, bars, bars that go both ways, lines over GPUs or releases."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from perfdb import units
from perfdb.site.data import RunPage, Step
from perfdb.site.drawing import (
    CHARACTER,
    MEDIAN,
    MUTED,
    SERIES,
    STEP,
    WARMUP,
    Caption,
    Frame,
    Scale,
    Tick,
    box,
    dots,
    drawn,
    floor,
    one_line,
    path,
    rule,
    side,
    text,
    ticks,
    upright,
)
from perfdb.site.markup import Html

LONGEST_LABEL: Final = 52
"""Characters of a label; what is longer ends in ….  The table beside a chart has all of it."""
BAR: Final = 19.5
"""The height of a bar with the room around it."""
MOST_DOTS: Final = 100
"""Steps of which each has a mark; more of them are a line alone."""
LINES: Final = Frame(height=245.0)


@dataclass(frozen=True)
class Bar:
    """A bar: what it is of, how long it is, what is written at its end, and its colour."""

    label: str
    value: float
    said: str
    colour: str = STEP


@dataclass(frozen=True)
class Line:
    """A line through points; `ideal` is what would be if nothing were lost."""

    label: str
    points: tuple[tuple[float, float], ...]
    ideal: bool = False


Named = tuple[str, str, bool]
"""A line in the list beside a chart: its label, its colour, and whether it is dashed."""


def step_times(page: RunPage) -> Html | None:
    """Seconds over steps, warm-up shaded, with the median of the window; None without a step."""
    if not page.steps:
        return None
    caption = Caption(f"Step times of {page.run.run_id}", description(page.steps, page))
    median = page.result.step_time_s
    names: list[Named] = [("step", STEP, False)]
    if median is not None:
        names.append((f"median of {page.result.window}", MEDIAN, True))
    frame = _beside(Frame(), names)
    return drawn(caption, [*_steps(page, frame, median), *_legend(frame, names)], frame)


def _steps(page: RunPage, frame: Frame, median: float | None) -> Iterable[Html]:
    times = {step.step: step.step_time_s for step in page.steps}
    across = Scale(0.5, max(times) + 0.5, frame.left, frame.end)
    up = _from_zero([*times.values(), median or 0.0], frame)
    if page.run.warmup_steps:
        end = across(min(page.run.warmup_steps + 0.5, across.high))
        shade = f"color-mix(in srgb, {WARMUP} 18%, transparent)"
        yield box(frame.left, frame.top, end - frame.left, frame.ground - frame.top, shade)
        yield text("warm-up", frame.left + 3, frame.ground - 4)
    yield from side(frame, upright(up, ticks(up.low, up.high)), "step time (s)")
    yield from floor(frame, upright(across, ticks(1, across.high, whole=True)), "step")
    places = [(across(step), up(seconds)) for step, seconds in times.items()]
    yield path(places, STEP)
    yield from dots(places, STEP) if len(places) <= MOST_DOTS else ()
    if median is not None:
        yield path([(frame.left, up(median)), (frame.end, up(median))], MEDIAN, dashed=True)


def description(steps: Sequence[Step], page: RunPage) -> str:
    """The chart of step times in a sentence."""
    times = [step.step_time_s for step in steps]
    low, high = units.significant(min(times)), units.significant(max(times))
    median = units.significant(page.result.step_time_s)
    return (
        f"{len(times)} steps, of which {page.run.warmup_steps} are warm-up and shaded; "
        f"between {low} and {high} seconds, median of the window {median} seconds."
    )


def bars(title: str, axis: str, given: Sequence[Bar]) -> Html:
    """A bar for each, from above down; to the right of zero, or to the left where it is below."""
    said = "; ".join(f"{bar.label}: {bar.said}" for bar in given)
    longest = max(len(_label(bar.label)) for bar in given)
    frame = Frame(
        height=50.0 + BAR * len(given), left=14.0 + CHARACTER * longest, top=8.0, bottom=42.0
    )
    return drawn(Caption(title, f"{axis}. {said}."), _bars(axis, given, frame), frame)


def _bars(axis: str, given: Sequence[Bar], frame: Frame) -> Iterable[Html]:
    values = [bar.value for bar in given]
    low, high = min(0.0, *values), max(0.0, *values)
    room = (high - low or 1.0) * 0.14
    across = Scale(low - room if low < 0 else 0.0, high + room, frame.left, frame.end)
    marks = upright(across, ticks(across.low, across.high))
    yield from (rule((mark.place, frame.top), (mark.place, frame.ground)) for mark in marks)
    yield from floor(frame, marks, axis)
    zero = across(0.0)
    for place, bar in enumerate(given):
        middle = frame.top + BAR * (place + 0.5)
        end = across(bar.value)
        yield box(min(zero, end), middle - BAR * 0.34, abs(end - zero), BAR * 0.68, bar.colour)
        yield text(_label(bar.label), frame.left - 7, middle + 3.2, "end")
        away, anchor = (4.0, "start") if bar.value >= 0 else (-4.0, "end")
        yield text(bar.said, end + away, middle + 3.2, anchor)
    yield rule((zero, frame.top), (zero, frame.ground), MUTED)


def over_gpus(title: str, axis: str, given: Sequence[Line]) -> Html:
    """Rates over numbers of GPUs, which double from tick to tick; an ideal line is dashed."""
    caption = Caption(title, f"{axis} by number of GPUs. {_points(given)}")
    counts = sorted({gpus for line in given for gpus, _ in line.points})
    doubled = [
        replace(line, points=tuple((math.log2(gpus), rate) for gpus, rate in line.points))
        for line in given
    ]
    marks = [Tick(math.log2(count), f"{int(count):,}") for count in counts]
    return _of_lines(caption, (axis, "GPUs"), marks, doubled)


def over_releases(title: str, axis: str, names: Sequence[str], given: Sequence[Line]) -> Html:
    """Figures over releases, the oldest at the left; a point's x is the place of its release."""
    caption = Caption(title, f"{axis} by release: {', '.join(names)}. {_points(given)}")
    marks = [Tick(float(place), _label(name)) for place, name in enumerate(names)]
    return _of_lines(caption, (axis, ""), marks, given)


def _of_lines(
    caption: Caption, axes: tuple[str, str], marks: Sequence[Tick], given: Sequence[Line]
) -> Html:
    """Lines from zero on, so that a small change looks small. `axes`: of the side and below."""
    solid = [line for line in given if not line.ideal]
    ideal = [line for line in given if line.ideal]
    names: list[Named] = [
        (line.label, SERIES[place % len(SERIES)], False) for place, line in enumerate(solid)
    ]
    names += [(line.label, MUTED, True) for line in ideal[:1]]
    frame = _beside(LINES, names)
    first, last = marks[0].place, marks[-1].place
    room = (last - first or 1.0) * 0.04
    across = Scale(first - room, last + room, frame.left, frame.end)
    up = _from_zero([value for line in given for _, value in line.points], frame)
    parts = side(frame, upright(up, ticks(up.low, up.high)), axes[0])
    parts += floor(frame, [replace(mark, place=across(mark.place)) for mark in marks], axes[1])
    for place, line in enumerate([*ideal, *solid]):
        places = [(across(x), up(y)) for x, y in line.points]
        colour = MUTED if line.ideal else SERIES[(place - len(ideal)) % len(SERIES)]
        parts.append(path(places, colour, dashed=line.ideal))
        parts += [] if line.ideal else dots(places, colour)
    return drawn(caption, [*parts, *_legend(frame, names)], frame)


def _from_zero(values: Iterable[float], frame: Frame) -> Scale:
    return Scale(0.0, max(values) * 1.08 or 1.0, frame.ground, frame.top)


def _beside(frame: Frame, names: Sequence[Named]) -> Frame:
    """A frame with room at its right for the names of its lines."""
    longest = max(len(_label(label)) for label, _, _ in names)
    return replace(frame, right=40.0 + CHARACTER * longest)


def _legend(frame: Frame, names: Sequence[Named]) -> Iterable[Html]:
    """The names of the lines at the right, one below the other."""
    height = 15.0
    top = (frame.top + frame.ground - height * (len(names) - 1)) / 2
    for place, (label, colour, dashed) in enumerate(names):
        middle, left = top + height * place, frame.end + 10
        yield path([(left, middle), (left + 18, middle)], colour, dashed=dashed)
        yield text(_label(label), left + 23, middle + 3.2)


def _points(given: Sequence[Line]) -> str:
    said = [
        f"{line.label}: {', '.join(units.significant(y) for _, y in line.points)}."
        for line in given
        if not line.ideal
    ]
    return " ".join(said)


def _label(words: str) -> str:
    said = one_line(words)
    return said if len(said) <= LONGEST_LABEL else f"{said[: LONGEST_LABEL - 1]}…"
