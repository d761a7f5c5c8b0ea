"""How charts are drawn by matplotlib: SVG in the colors and the font of the page.

The same values give the same bytes, whatever the settings of matplotlib are and whatever was drawn
before. Lengths are in units of the drawing, which is `WIDTH` wide. Bars are below their labels,
lines above their names.
"""
# mypy: allow-untyped-calls
# the renderers of matplotlib have no types

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate, cycle
from typing import Final
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib import rc_context, rcdefaults, rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from perfdb.site import charts
from perfdb.site.charts import ChartBar, ChartLine
from perfdb.site.data import RunData
from perfdb.site.labels import FONT, FONT_SIZE, one_line, shortened, width, wrapped
from perfdb.site.templates import render

WIDTH: Final = 380.0
"""As wide as a phone, so that a chart answers there without being scrolled."""

COLOURS: Final = (*charts.SERIES, charts.WARMUP, charts.BAD, charts.FAINT, charts.RULE)

_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_SVG: Final = "{http://www.w3.org/2000/svg}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
_PAINT: Final = re.compile("#([0-9a-f]{6})")


@dataclass(frozen=True)
class Frame:
    """The height of a chart, and the room around its axes."""

    height: float
    left: float
    right: float
    bottom: float
    top: float = 32.0

    @property
    def across(self) -> float:
        """How wide the axes are."""
        return WIDTH - self.left - self.right

    @property
    def up(self) -> float:
        """How high the axes are."""
        return self.height - self.top - self.bottom


@dataclass(frozen=True)
class Axis:
    """What charts on the same axes have in common: lines at the ticks of the left axis; the scale.

    The scale is that of the axis below.
    """

    grid: bool = True
    scale: str = "linear"


class _Renderer(RendererSVG):
    """The SVG renderer with our measure of texts, which is quick and the same everywhere."""

    def get_text_width_height_descent(
        self, s: str, _prop: FontProperties, _ismath: object
    ) -> tuple[float, float, float]:
        return width(s), FONT_SIZE, FONT_SIZE / 4


def drawn(kind: Axis, title: str, sentence: str, draw: Callable[[Axes], Frame]) -> Markup:
    """A figure of what `draw` puts on empty axes; it returns what room they need.

    A screen reader reads the title and the sentence.
    """
    names = one_line(title), one_line(sentence)
    with rc_context():
        _set(" ".join(names))
        figure, axes = _blank(kind)
        for artist in (*axes.lines, *axes.collections, *axes.patches, *axes.texts):
            artist.remove()
        frame = draw(axes)
        written = _written(figure, axes, frame)
    return render(
        "chart",
        title=names[0],
        sentence=names[1],
        width=f"{WIDTH:g}",
        height=f"{frame.height:g}",
        font_size=f"{FONT_SIZE:g}",
        color=charts.TEXT,
        shapes=list(_shapes(written)),
    )


def paint(colour: str) -> str:
    """What to draw with, so that a colour of the palette is in the page."""
    return f"#{COLOURS.index(colour) + 1:06x}"


def _set(salt: str) -> None:
    """The settings of all charts. Names of marks are made of the salt: no two charts share one."""
    rcdefaults()
    rcParams.update(
        {
            "svg.hashsalt": salt,
            "svg.fonttype": "none",
            "text.parse_math": False,
            "font.family": [FONT],
            "font.size": FONT_SIZE,
            "figure.dpi": 72,
            "axes.titlelocation": "left",
            "axes.titlesize": FONT_SIZE,
            "axes.titley": 1.0,
            "axes.titlepad": 10.0,
            "grid.color": paint(charts.RULE),
            "grid.linewidth": 0.8,
            "lines.markersize": 5.0,
            "lines.solid_capstyle": "butt",
            "xtick.bottom": False,
            "ytick.left": False,
            "xtick.major.pad": 8.0,
            "ytick.major.pad": 8.0,
        }
    )


@cache
def _blank(kind: Axis) -> tuple[Figure, Axes]:
    """The axes that all charts of a kind are drawn on: to make them takes longer than to draw."""
    figure = Figure(frameon=False)
    axes = figure.add_axes((0, 0, 1, 1), frameon=False, xscale=kind.scale)
    axes.set_autoscale_on(False)
    axes.minorticks_off()
    axes.grid(visible=kind.grid, axis="y")
    axes.yaxis.set_label_coords(0.0, 0.5)
    return figure, axes


def _written(figure: Figure, axes: Axes, frame: Frame) -> str:
    figure.set_size_inches(WIDTH / 72, frame.height / 72)
    corner = frame.left / WIDTH, frame.bottom / frame.height
    axes.set_position((*corner, frame.across / WIDTH, frame.up / frame.height))
    axes.xaxis.set_label_coords(0.5, -30 / frame.up)
    file = io.StringIO()
    renderer = _Renderer(WIDTH, frame.height, file, metadata=_NO_METADATA)
    figure.draw(renderer)
    renderer.finalize()
    return file.getvalue()


@dataclass(frozen=True)
class Shape:
    """An element of the drawing: its attributes, its text, and the mark that it uses first."""

    tag: str
    attributes: Mapping[str, str]
    text: str = ""
    defines: "Shape | None" = None


def _shapes(svg: str) -> Iterator[Shape]:
    """What was drawn, without its groups: their names are the same in every chart.

    Coordinates have two decimals. The shape of a mark is defined at its first use.
    """
    marks: dict[str, str] = {}
    for shape in ElementTree.fromstring(svg).iter():
        style = {"style": it} if (it := _style(shape)) else {}
        match shape.tag.removeprefix(_SVG):
            case "text":
                yield Shape("text", {**_place(shape), **style}, shape.text or "")
            case "path" if "id" in shape.attrib:
                marks[f"#{shape.attrib['id']}"] = _short(shape.attrib["d"])
            case "path":
                yield Shape("path", {"d": _short(shape.attrib["d"]), **style})
            case "use":
                mark, defined = shape.attrib[_HREF], None
                if outline := marks.pop(mark, None):
                    defined = Shape("path", {"id": mark[1:], "d": outline, **style})
                yield Shape("use", {"href": mark, **_place(shape)}, defines=defined)
            case _:  # a group, or an element of none
                pass


def _place(shape: ElementTree.Element) -> dict[str, str]:
    return {name: _short(shape.attrib[name]) for name in ("x", "y")}


def _short(numbers: str) -> str:
    rounded = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), numbers)
    return " ".join(rounded.split())


def _style(shape: ElementTree.Element) -> str | None:
    """The style of a shape in the colours of the theme; the font is the page's."""
    parts = shape.get("style", "").split("; ")
    kept = "; ".join(part for part in parts if not part.startswith("font"))
    return _PAINT.sub(lambda found: COLOURS[int(found[1], 16) - 1], kept) or None


BARS: Final = Axis(grid=False)
LINES: Final = Axis()
DOUBLING: Final = Axis(scale="log")

BAR: Final = 12.0
"""The height of a bar."""
LABEL: Final = 15.0
"""The height of a line of a label."""
BAR_ROW: Final = 19.0
"""The height of a bar with the room around it, without its label."""
AXIS: Final = 48.0
"""The height of the axis below: its ticks and its name."""
ROW: Final = 18.0
"""The height of a line of the name of a line, with the room around it."""
GAP: Final = 8.0
"""Between a label and what it belongs to."""
SAMPLE: Final = 28.0
"""How long the piece of a line is that is before its name."""
LONGEST_TICK: Final = 100.0
LONGEST_VALUE: Final = 80.0
"""Of a release, at the end of a bar; what is longer ends in …"""
MARGIN: Final = 0.04
"""The room before the first and after the last point, as a fraction of what is between them."""
MOST_MARKS: Final = 100
"""Points of which each has a mark; more of them are a line alone."""


Dashes = str | tuple[float, tuple[float, ...]]
DASHES: Final[tuple[Dashes, ...]] = (
    "solid", (0, (5, 1.5)), (0, (2.5, 1.5)), (0, (7, 1.5, 1.5, 1.5)), (0, (1.2, 1.2)), "solid"
)  # fmt: skip
MARKS: Final = ("o", "s", "^", "D", "v", "P")


@dataclass(frozen=True)
class Style:
    """How a line is drawn: its colour, its dashes, the marks of its points."""

    colour: str
    dashes: Dashes = "solid"
    mark: str = ""
    width: float = 1.6
    alpha: float | None = None


STYLES: Final = tuple(map(Style, charts.SERIES, DASHES, MARKS))
"""Lines that are next to each other: colour, dashes and marks each tell them apart."""
IDEAL: Final = Style(charts.MUTED, "dotted")
WARMUP: Final = Style(charts.WARMUP, width=ROW / 2, alpha=0.25)
MEDIAN: Final = Style(charts.MEDIAN, "dashed")


@dataclass(frozen=True)
class _Curve:
    """A line, how it is drawn, and what is below: nothing where its name is empty."""

    name: str
    points: Sequence[tuple[float, float]]
    style: Style


@dataclass(frozen=True)
class _Across:
    """The axis below: its name, the range that it shows, its ticks and what they say."""

    name: str
    shown: tuple[float, float]
    ticks: Sequence[tuple[float, str]]


def steps(title: str, sentence: str, page: RunData) -> Markup:
    """Seconds over steps, warm-up shaded, with the median of the window."""
    return drawn(LINES, title, sentence, partial(_steps, page))


def bars(
    title: str, sentence: str, axis: str, given: Sequence[ChartBar], every: Sequence[ChartBar]
) -> Markup:
    """A bar for each, from above down; to the right of zero, or to the left where it is below.

    `every` are all those that have one scale with them.
    """
    return drawn(BARS, title, sentence, partial(_bars, axis, given, every))


def over_gpus(
    title: str, sentence: str, axis: str, given: Sequence[ChartLine], low: float
) -> Markup:
    """Lines over numbers of GPUs, of which each doubling is as wide; an ideal line is dotted."""
    counts = sorted({gpus for line in given for gpus, _ in line.points})
    room = max(counts[-1] / counts[0], 2.0) ** MARGIN
    ticks = [(count, f"{int(count):,}") for count in counts]
    across = _Across("GPUs", (counts[0] / room, counts[-1] * room), ticks)
    draw = partial(_curves, axis, across, _compared(given), low=low)
    return drawn(DOUBLING, title, sentence, draw)


def over_releases(
    title: str, sentence: str, axis: str, names: Sequence[str], given: Sequence[ChartLine]
) -> Markup:
    """Lines over releases, the oldest at the left; a point's x is the place of its release."""
    last = len(names) - 1
    room = max(last, 1) * MARGIN
    ticks = [(float(place), shortened(name, LONGEST_TICK)) for place, name in enumerate(names)]
    across = _Across("", (-room, last + room), ticks)
    return drawn(LINES, title, sentence, partial(_curves, axis, across, _compared(given)))


def _compared(given: Sequence[ChartLine]) -> list[_Curve]:
    """The ideal lines, of which one is named, and over them the others."""
    ideal = [line.points for line in given if line.ideal]
    name = next((line.label for line in given if line.ideal), "")
    solid = [line for line in given if not line.ideal]
    return [
        *(_Curve("" if place else name, points, IDEAL) for place, points in enumerate(ideal)),
        *(_Curve(line.label, line.points, style) for line, style in zip(solid, cycle(STYLES))),
    ]


def _steps(page: RunData, axes: Axes) -> Frame:
    times = sorted({step.step: step.step_time_s for step in page.steps}.items())
    end = times[-1][0] + 0.5
    curves = [_Curve("step", times, Style(charts.STEP, mark="o" * (len(times) <= MOST_MARKS)))]
    if (median := page.result.step_time_s) is not None:
        curves.append(
            _Curve(f"median of {page.result.window}", [(0.5, median), (end, median)], MEDIAN)
        )
    if page.run.warmup_steps:
        shaded = min(page.run.warmup_steps + 0.5, end)
        axes.axvspan(
            0.5, shaded, color=paint(WARMUP.colour), alpha=WARMUP.alpha, linewidth=0, clip_on=False
        )
        curves.append(_Curve("warm-up", [(0.5, 0.0)], WARMUP))
    across = _Across("step", (0.5, end), _round_ticks(1, end, whole=True))
    return _curves("step time (s)", across, curves, axes)


def _curves(
    axis: str, across: _Across, curves: Sequence[_Curve], axes: Axes, low: float = 0.0
) -> Frame:
    """Lines from zero on, so that a small change looks small; from `low` where the axis says so."""
    highest = max(y for curve in curves for _, y in curve.points)
    top = low + ((highest - low) * 1.08 or 1.0)
    ticks = _round_ticks(low, top)
    first, last = (width(across.ticks[end][1]) / 2 for end in (0, -1))
    named = [curve for curve in curves if curve.name]
    below = AXIS + ROW * sum(len(_name(curve)) for curve in named)
    frame = Frame(
        height=240.0 + below,
        left=max(first, *(width(text) + 1.5 * GAP for _, text in ticks)),
        right=max(GAP, last),
        bottom=below,
    )
    for curve in curves:
        _draw(axes, curve.points, curve.style)
    axes.set_title(shortened(axis, frame.across + frame.right))
    axes.set_ylim(low, top)
    axes.set_yticks([tick for tick, _ in ticks], [text for _, text in ticks])
    _below(axes, frame, across)
    _names(axes, frame, named)
    return frame


def _draw(axes: Axes, points: Iterable[tuple[float, float]], style: Style) -> Line2D:
    xs, ys = zip(*points, strict=True)
    [line] = axes.plot(
        xs, ys, color=paint(style.colour), linestyle=style.dashes, marker=style.mark,
        linewidth=style.width, alpha=style.alpha, clip_on=False,
    )  # fmt: skip
    return line


def _names(axes: Axes, frame: Frame, named: Iterable[_Curve]) -> None:
    """The names of lines below the axes, that of the line which ends highest above the others."""
    ranked = sorted(named, key=lambda curve: curve.points[-1][1], reverse=True)
    starts = (0.0, SAMPLE / 2, SAMPLE, SAMPLE + GAP)
    places = [(start - frame.left) / frame.across for start in starts]
    rows = [(curve, *line) for curve in ranked for line in enumerate(_name(curve))]
    for row, (curve, line, text) in enumerate(rows):
        height = -(AXIS + ROW * (row + 0.5)) / frame.up
        axes.text(places[3], height, text, transform=axes.transAxes, va="center_baseline")
        if line == 0:
            sample = _draw(axes, [(place, height) for place in places[:3]], curve.style)
            sample.set(transform=axes.transAxes, markevery=[1])


def _name(curve: _Curve) -> list[str]:
    return wrapped(curve.name, WIDTH - SAMPLE - GAP)


def _bars(axis: str, given: Sequence[ChartBar], every: Sequence[ChartBar], axes: Axes) -> Frame:
    values = [bar.value for bar in given]
    low, high = (end(0.0, *(bar.value for bar in every)) for end in (min, max))
    high = high if low < high else 1.0
    ticks = _round_ticks(low, high)
    first, last = (width(ticks[end][1]) / 2 for end in (0, -1))
    labels = [wrapped(bar.label, WIDTH) for bar in given]
    ends = list(accumulate(LABEL * len(label) + BAR_ROW for label in labels))
    frame = Frame(
        height=GAP / 2 + ends[-1] + AXIS,
        left=first,
        right=max(last, _room(bar for bar in every if bar.value >= 0)),
        bottom=AXIS,
        top=GAP / 2,
    )
    before = _room(bar for bar in every if bar.value < 0)
    unit = (high - low) / (frame.across - before)
    # as lines, which are one artist: as many rectangles take twice as long
    paints = [paint(bar.colour) for bar in given]
    middles = [end - BAR_ROW / 2 for end in ends]
    _beside(axes, [tick for tick, _ in ticks], middles, charts.RULE)
    axes.hlines(middles, 0.0, values, paints, linewidth=BAR, clip_on=False)
    _beside(axes, [0.0], middles, charts.MUTED)
    axes.set_yticks([])
    axes.set_ylim(frame.up, 0.0)
    _below(axes, frame, _Across(axis, (low - before * unit, high), ticks))
    start = low - (before + frame.left) * unit
    for bar, label, middle in zip(given, labels, middles, strict=True):
        away, side = (unit, "left") if bar.value >= 0 else (-unit, "right")
        axes.text(bar.value + away * GAP / 2, middle, _value(bar), va="center_baseline", ha=side)
        for line, text in enumerate(reversed(label), 1):
            axes.text(start, middle - LABEL * line, text, va="center_baseline")
    return frame


def _beside(axes: Axes, places: Iterable[float], middles: Sequence[float], colour: str) -> None:
    """Upright lines next to the bars alone: whole ones would run through the labels."""
    half = BAR / 2 + 1
    rows = [(middle - half, middle + half, math.nan) for middle in middles]
    points = [(place, height) for place in places for row in rows for height in row]
    xs, ys = zip(*points, strict=True)
    axes.plot(xs, ys, color=paint(colour), linewidth=0.8, clip_on=False)


def _room(given: Iterable[ChartBar]) -> float:
    """What the texts at the ends of bars need beyond them: nothing where there are none."""
    return max((width(_value(bar)) + GAP for bar in given), default=0.0)


def _value(bar: ChartBar) -> str:
    return shortened(bar.text, LONGEST_VALUE)


def _below(axes: Axes, frame: Frame, across: _Across) -> None:
    """The axis below. Its last tick has a label, and the others as far as there is room."""
    axes.set_xlabel(shortened(across.name, frame.across))
    axes.set_xlim(*across.shown)
    shares = axes.transScale + axes.transLimits
    ticks, labels, free = [], [], math.inf
    for tick, text in reversed(across.ticks):
        middle, half = shares.transform((tick, 0.0))[0] * frame.across, width(text) / 2
        if middle + half < free:
            ticks.append(tick)
            labels.append(text)
            free = middle - half - GAP / 2
    axes.set_xticks(ticks[::-1], labels[::-1])


def _round_ticks(low: float, high: float, *, whole: bool = False) -> list[tuple[float, str]]:
    """A few multiples of 1, 2 or 5 times a power of ten, written without a digit too many."""
    found = MaxNLocator(5, steps=[1, 2, 5, 10], integer=whole, min_n_ticks=1).tick_values(low, high)
    known = [float(tick) for tick in found if low <= tick <= high]
    return [(tick, f"{tick:,.10g}".replace("-", "−")) for tick in known]
