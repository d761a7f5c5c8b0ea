"""The charts of the site: step times, bars, lines over numbers of GPUs or releases.

Each is an SVG in the colors and the font of the page, written by `templates/chart.j2`. Lengths are
in units of the drawing, which is `WIDTH` wide. Bars have their labels above them; lines have their
names below the axes.
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from math import ceil, floor, inf, isfinite, log2, log10
from typing import Final, Literal

from markupsafe import Markup

from perfdb import units
from perfdb.catalog.colors import Shade
from perfdb.site.data import RunData, RunStep
from perfdb.site.templates import joined, render

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
"""The colors of lines in one chart."""

MOST_BARS: Final = 24
MOST_LINES: Final = 6
"""Bars and lines in one chart; the tables below it have them all."""
MOST_TOGETHER: Final = 12
"""Bars in one column; more of them make two drawings."""
MOST_MARKS: Final = 100
"""Points that each have a mark; a line through more of them has none."""

WIDTH: Final = 380.0
"""As wide as a phone, so that nobody has to scroll a chart."""
ADVANCE: Final = 7.2
"""The width of a character at 12 units: an average of DejaVu Sans, wider than most fonts."""
UP: Final = 208.0
"""The height of the axes of lines."""
TOP: Final = 32.0
"""The room for the name of the axis above them."""
BELOW: Final = 48.0
"""The room for the ticks and the name of the horizontal axis."""
ROW: Final = 18.0
"""The height of the name of a line."""
LINE: Final = 15.0
"""The height of a line of a bar's label."""
BAR: Final = 12.0
GAP: Final = 8.0
SAMPLE: Final = 28.0
"""The length of the piece of a line in front of its name."""

Point = tuple[float, float]
Tick = tuple[float, str]
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class ChartBar:
    """A bar: its label, its value, the text at its end, and its color."""

    label: str
    value: float
    text: str
    colour: str = STEP


@dataclass(frozen=True)
class ChartLine:
    """A line through points. `text` has their values as tables print them.

    An `ideal` line shows what would be if nothing were lost; it has no texts. Without a `colour`
    it has the next of `SERIES`. `moved` are the places of those points with a ring, where it moved
    to another level.
    """

    label: str
    points: tuple[Point, ...]
    text: tuple[str, ...] = ()
    ideal: bool = False
    colour: str = ""
    moved: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Stroke:
    """A path of the drawing; a filled one has no outline."""

    d: str
    color: str
    width: float = 0.8
    dashes: str = ""
    opacity: float = 1.0
    filled: bool = False


@dataclass(frozen=True)
class _Label:
    x: float
    y: float
    text: str
    anchor: Anchor = "start"


@dataclass(frozen=True)
class _Curve:
    """A line as it is drawn; `mark` is the outline of its points. One without a name has no key."""

    name: str
    points: Sequence[Point]
    color: str
    dashes: str = ""
    mark: str = ""
    width: float = 1.6
    opacity: float = 1.0
    ringed: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Axes:
    """The axes of lines: the name and the start of the upright one, the other's range and ticks."""

    name: str
    across: str
    shown: Point
    ticks: Sequence[Tick]
    low: float = 0.0


CIRCLE: Final = "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z"
RING: Final = "m-7 0a7 7 0 1 0 14 0a7 7 0 1 0-14 0z"
MARKS: Final = (
    CIRCLE, "m-2.5-2.5h5v5h-5z", "m0-3.5l3.5 6h-7z", "m0-3.5l3.5 3.5l-3.5 3.5l-3.5-3.5z",
    "m0 3.5l3.5-6h-7z", "m-1.2-3.5h2.4v2.3h2.3v2.4h-2.3v2.3h-2.4v-2.3h-2.3v-2.4h2.3z",
)  # fmt: skip
DASHES: Final = ("", "8 2.4", "4 2.4", "11 2.4 2.4 2.4", "2 2", "")
STYLES: Final = tuple(zip(SERIES, DASHES, MARKS, strict=True))
"""Lines differ in color, dashes and marks, so that each of the three tells them apart."""


def with_note(drawn: Markup, note: Markup, key: str = "") -> Markup:
    """The key of a drawing, the drawing and the note on it, at its right where there is room."""
    return Markup('<div class="perf-drawn">{}{}{}</div>\n').format(key, drawn, note)


def colour(shade: Shade) -> str:
    """A color of the catalog, in light and in dark."""
    return f"light-dark({shade.light}, {shade.dark})"


def key(colours: Mapping[str, str]) -> Markup:
    """What each color of a drawing means."""
    return render("key", colours=colours) if colours else Markup("")


def step_times(page: RunData) -> Markup | None:
    """Seconds over steps, warm-up shaded, with the median of the window; None without a step."""
    if not page.steps:
        return None
    warmup, median = page.run.warmup_steps, page.result.step_time_s
    times = sorted({step.step: step.step_time_s for step in page.steps}.items())
    (first, _), (last, _) = times[0], times[-1]
    end = last + 0.5
    mark = CIRCLE if len(times) <= MOST_MARKS else ""
    curves = [_Curve("step", times, STEP, mark=mark)]
    if median is not None:
        line = [(0.5, median), (end, median)]
        curves.append(_Curve(f"median of {page.result.window}", line, MEDIAN, "6 2.6"))
    if warmup:
        shade = [(0.5, 0.0), (min(warmup + 0.5, end), 0.0)]
        curves.append(_Curve("warm-up", shade, WARMUP, width=ROW / 2, opacity=0.25))
    low, high = (units.significant(f(step.step_time_s for step in page.steps)) for f in (min, max))
    of = f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"
    shaded = f"those up to step {warmup:,} are warm-up and shaded" if warmup else "none is warm-up"
    sentence = (
        f"{units.counted(len(page.steps), 'step time')}, of {of}; {shaded}; "
        f"between {low} and {high} seconds, median of the window {units.significant(median)} "
        "seconds."
    )
    ticks = [tick for tick in _ticks(1, end) if tick[0] == int(tick[0])]
    title = f"Step times of {page.run.run_id}"
    return _lines(title, sentence, _Axes("step time (s)", "step", (0.5, end), ticks), curves)


def over_steps(
    page: RunData, axis: str, value_of: Callable[[RunStep], float | None]
) -> Markup | None:
    """A figure of each step over the steps; None where fewer than two steps have it, or it is 0."""
    known = {it.step: value for it in page.steps if (value := value_of(it)) is not None}
    times = sorted((step, value) for step, value in known.items() if isfinite(value))
    if len(times) < 2 or not any(value for _, value in times):
        return None
    least, most = (f(value for _, value in times) for f in (min, max))
    end = times[-1][0] + 0.5
    ticks = [tick for tick in _ticks(1, end) if tick[0] == int(tick[0])]
    ends = (units.significant(it) for it in (least, most))
    sentence = f"{axis} of {units.counted(len(times), 'step')}, between {' and '.join(ends)}."
    mark = CIRCLE if len(times) <= MOST_MARKS else ""
    axes = _Axes(axis, "step", (0.5, end), ticks, min(0.0, least))
    title = f"{axis} of {page.run.run_id}"
    return _lines(title, sentence, axes, [_Curve("", times, STEP, mark=mark)])


def over_gpus(title: str, axis: str, series: Sequence[ChartLine], low: float = 0.0) -> Markup:
    """Rates over numbers of GPUs on a logarithmic axis; an ideal line is dotted.

    The axis of the rates begins at `low`.
    """
    counts = sorted({gpus for line in series for gpus, _ in line.points})
    room = max(log2(counts[-1] / counts[0]), 1) * 0.04
    shown = (log2(counts[0]) - room, log2(counts[-1]) + room)
    ticks = [(log2(count), f"{int(count):,}") for count in counts]
    sentence = f"{axis} by number of GPUs. {_points(series)}"
    return _lines(title, sentence, _Axes(axis, "GPUs", shown, ticks, low), _curves(series, log2))


def over_releases(
    title: str, axis: str, names: Sequence[str], series: Sequence[ChartLine], low: float = 0.0
) -> Markup:
    """Figures over releases, the oldest at the left; the x of a point is its release's place.

    The axis of the figures begins at `low`.
    """
    last = len(names) - 1
    room = max(last, 1) * 0.04
    ticks = [(float(place), shortened(name, 100)) for place, name in enumerate(names)]
    moved = dict.fromkeys(names[int(line.points[at][0])] for line in series for at in line.moved)
    points = f" Change points: {', '.join(moved)}." if moved else ""
    sentence = f"{axis} by release: {', '.join(names)}. {_points(series)}{points}"
    axes = _Axes(axis, "", (-room, last + room), ticks, low)
    return _lines(title, sentence, axes, _curves(series, float))


def _points(series: Sequence[ChartLine]) -> str:
    texts = ((line.label, ", ".join(line.text)) for line in series if line.text)
    return " ".join(f"{': '.join(filter(None, it))}." for it in texts)


def _curves(series: Sequence[ChartLine], place: Callable[[float], float]) -> list[_Curve]:
    """The ideal lines, one of them with a name, and the others over them."""
    moved = [(line, [(place(x), y) for x, y in line.points]) for line in series]
    ideal = [(line.label, points) for line, points in moved if line.ideal]
    solid = [(line, points) for line, points in moved if not line.ideal]
    return [
        *(_Curve(name if n == 0 else "", points, MUTED, "1.6 2.6")
          for n, (name, points) in enumerate(ideal)),
        *(_Curve(line.label, points, line.colour or color, dashes, mark, ringed=line.moved)
          for (line, points), (color, dashes, mark) in zip(solid, cycle(STYLES))),
    ]  # fmt: skip


def _lines(title: str, sentence: str, axes: _Axes, curves: Sequence[_Curve]) -> Markup:
    """Lines over an axis that begins at zero, so that a small change looks small, and their key."""
    low, shown, ticks = axes.low, axes.shown, axes.ticks
    highest = max(y for curve in curves for _, y in curve.points)
    top = low + ((highest - low) * 1.08 or 1.0)
    upright = _ticks(low, top)
    left = max(width(ticks[0][1]) / 2, *(width(text) + 1.5 * GAP for _, text in upright))
    right = max(GAP, width(ticks[-1][1]) / 2)

    def x(value: float) -> float:
        return left + (value - shown[0]) / (shown[1] - shown[0]) * (WIDTH - left - right)

    def y(value: float) -> float:
        return TOP + (top - value) / (top - low) * UP

    made: list[_Stroke | _Label] = [_Label(left, 20, shortened(axes.name, WIDTH - left))]
    for value, text in upright:
        made.append(_Stroke(_path([(left, y(value)), (WIDTH - right, y(value))]), RULE))
        made.append(_Label(left - GAP, y(value) + 4, text, "end"))
    for curve in curves:
        points = [(x(at), y(value)) for at, value in curve.points]
        if curve.color == WARMUP:
            (start, _), (end, _) = points
            made.append(replace(_area(start, TOP, end - start, UP), opacity=curve.opacity))
        else:
            made += [*_drawn(curve, points, points), *_rings(curve, points)]
    made += _below(axes.across, [(x(value), text) for value, text in ticks], TOP + UP)
    height = TOP + UP + BELOW
    ranked = sorted((it for it in curves if it.name), key=lambda it: it.points[-1][1], reverse=True)
    for curve in ranked:
        middle = height + ROW / 2
        sample = [(0.0, middle), (SAMPLE / 2, middle), (SAMPLE, middle)]
        made += _drawn(curve, sample, sample[1:2])
        for line in wrapped(curve.name, WIDTH - SAMPLE - GAP):
            made.append(_Label(SAMPLE + GAP, height + ROW / 2 + 4, line))
            height += ROW
    return _figure(title, sentence, height, made)


def _drawn(curve: _Curve, points: Sequence[Point], marked: Iterable[Point]) -> list[_Stroke]:
    line = _Stroke(_path(points), curve.color, curve.width, curve.dashes, curve.opacity)
    if not curve.mark:
        return [line]
    outlines = "".join(f"M{x:.4g} {y:.4g}{curve.mark}" for x, y in marked)
    return [line, _Stroke(outlines, curve.color, filled=True)]


def _rings(curve: _Curve, points: Sequence[Point]) -> list[_Stroke]:
    """Around the points from which on a line is at another level."""
    outlines = "".join(f"M{x:.4g} {y:.4g}{RING}" for x, y in map(points.__getitem__, curve.ringed))
    return [_Stroke(outlines, curve.color, 1.4)] if outlines else []


def bars(title: str, axis: str, series: Sequence[ChartBar]) -> Markup:
    """A bar for each, from the top down; negative ones go to the left of zero."""
    together = len(series) if len(series) <= MOST_TOGETHER else ceil(len(series) / 2)
    parts = [series[start : start + together] for start in range(0, len(series), together)]
    return joined(_bars(title, axis, part, series) for part in parts)


def _bars(title: str, axis: str, part: Sequence[ChartBar], every: Sequence[ChartBar]) -> Markup:
    """Some of the bars, on the scale of every one."""
    low, high = (end(0.0, *(bar.value for bar in every)) for end in (min, max))
    high = high if low < high else 1.0
    ticks = _ticks(low, high)
    texts = [(bar.value, width(shortened(bar.text, 80)) + GAP) for bar in every]
    before = max((room for value, room in texts if value < 0), default=0.0)
    behind = max((room for value, room in texts if value >= 0), default=0.0)
    left = width(ticks[0][1]) / 2 + before
    right = max(behind, width(ticks[-1][1]) / 2)

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (WIDTH - left - right)

    made: list[_Stroke | _Label] = []
    height = GAP / 2
    for bar in part:
        for line in wrapped(bar.label, WIDTH):
            height += LINE
            made.append(_Label(0, height - 3, line))
        start, end = sorted((x(0), x(bar.value)))
        upright = [_path([(x(at), height), (x(at), height + BAR + 2)]) for at, _ in ticks]
        made.append(_Stroke("".join(upright), RULE))
        made.append(_area(start, height + 1, end - start, BAR, bar.colour))
        made.append(_Stroke(_path([(x(0), height), (x(0), height + BAR + 2)]), MUTED))
        anchor: Anchor = "start" if bar.value >= 0 else "end"
        away = GAP / 2 if bar.value >= 0 else -GAP / 2
        made.append(_Label(x(bar.value) + away, height + 11, shortened(bar.text, 80), anchor))
        height += BAR + 7
    made += _below(axis, [(x(value), text) for value, text in ticks], height)
    sentence = f"{axis}. {'; '.join(f'{bar.label}: {bar.text}' for bar in part)}."
    return _figure(title, sentence, height + BELOW, made)


def _below(axis: str, ticks: Sequence[Tick], start: float) -> list[_Label]:
    """The horizontal axis. Its last tick has a label, the others where there is room."""
    made, free = [], inf
    for x, text in reversed(ticks):
        if x + width(text) / 2 < free:
            made.append(_Label(x, start + 16, text, "middle"))
            free = x - width(text) / 2 - GAP / 2
    center = (ticks[0][0] + ticks[-1][0]) / 2
    name = shortened(axis, 2 * min(center, WIDTH - center))
    return [*made, _Label(center, start + 36, name, "middle")]


def _figure(
    title: str, sentence: str, height: float, elements: Sequence[_Stroke | _Label]
) -> Markup:
    """The drawing. A screen reader reads the title and the sentence."""
    return render(
        "chart", title=title, sentence=sentence, width=WIDTH, height=height, elements=elements,
        text=TEXT,
    )  # fmt: skip


def _path(points: Iterable[Point]) -> str:
    return "M" + "L".join(f"{x:.4g} {y:.4g}" for x, y in points)


def _area(x: float, y: float, across: float, up: float, color: str = WARMUP) -> _Stroke:
    return _Stroke(f"M{x:.4g} {y:.4g}h{across:.4g}v{up:.4g}h{-across:.4g}z", color, filled=True)


def _ticks(low: float, high: float) -> list[Tick]:
    """At most six multiples of 1, 2 or 5 times a power of ten, without a digit too many."""
    rough = (high - low) / 5
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    places = range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
    return [(place * step, f"{place * step:,.10g}".replace("-", "−")) for place in places]


def width(text: str) -> float:
    """About how wide a label is."""
    return ADVANCE * len(text)


def shortened(words: str, room: float) -> str:
    """A label on one line; what is longer than its room ends in …"""
    text, most = " ".join(words.split()), int(room / ADVANCE)
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def wrapped(words: str, room: float) -> list[str]:
    """A label on two lines where one is too short; what is longer still ends in …"""
    return textwrap.wrap(words, int(room / ADVANCE), max_lines=2, placeholder="…") or [""]
