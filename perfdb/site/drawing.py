"""How a chart is drawn: an SVG that stands in the page, its colours and fonts from the theme.

The same values give the same bytes. Every chart has a title and a sentence for screen readers.
Lengths are in units of the drawing, of which `WIDTH` are as wide as it is.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from perfdb.site.markup import Html, tag

TEXT: Final = "var(--pst-color-text-base, currentColor)"
RULE: Final = "var(--pst-color-border, #ccc)"
STEP: Final = "var(--perf-step, #0072b2)"
WARMUP: Final = "var(--perf-warmup, #e69f00)"
MEDIAN: Final = "var(--perf-median, #d55e00)"
GOOD: Final = "var(--perf-good, #00664d)"
BAD: Final = "var(--perf-bad, #b03a00)"
PUBLISHED: Final = "var(--perf-published, #5a4b8a)"
MUTED: Final = "var(--pst-color-text-muted, #666)"

SERIES: Final = (STEP, MEDIAN, GOOD, PUBLISHED, WARMUP, MUTED)
"""The colours of lines that stand beside one another."""

WIDTH: Final = 648.0
FONT_SIZE: Final = 9.5
CHARACTER: Final = 5.6
"""About how wide a character of a label is."""
MOST_TICKS: Final = 6

_NO_XML: Final = re.compile(r"[^\S ]+|[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What XML cannot hold, and what ends a line."""


@dataclass(frozen=True)
class Caption:
    """What a screen reader says of a chart: its title, and the chart in a sentence."""

    title: str
    sentence: str


@dataclass(frozen=True)
class Frame:
    """The height of a drawing, and the room around what is drawn for labels."""

    height: float = 216.0
    left: float = 54.0
    top: float = 24.0
    right: float = 13.0
    bottom: float = 37.0

    @property
    def end(self) -> float:
        """The right side of what is drawn."""
        return WIDTH - self.right

    @property
    def ground(self) -> float:
        """The lower side of what is drawn."""
        return self.height - self.bottom


@dataclass(frozen=True)
class Scale:
    """Where the values of an axis stand: `low` at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True)
class Tick:
    """A place on an axis and what is written there."""

    place: float
    said: str


def drawn(caption: Caption, parts: Iterable[Html], frame: Frame) -> Html:
    """Parts of a drawing as a figure of the page."""
    title = tag("title", one_line(caption.title))
    said = tag("desc", one_line(caption.sentence))
    shape = tag(
        "svg", (title, said, *parts), xmlns="http://www.w3.org/2000/svg", role="img",
        class_="perf-chart", viewBox=f"0 0 {number(WIDTH)} {number(frame.height)}",
        font_family="inherit", font_size=number(FONT_SIZE), fill=TEXT,
    )  # fmt: skip
    return tag("figure", shape, class_="perf-figure", tabindex="0")


def one_line(words: str) -> str:
    """Text for a label: on one line, and without what XML cannot hold."""
    return _NO_XML.sub(" ", words).strip()


def number(length: float) -> str:
    """A length with two decimals at most: '12', '3.5'."""
    return f"{length:.2f}".rstrip("0").rstrip(".")


def ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Round numbers between two: a few multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    step = max(step, 1.0) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [count * step for count in range(first, last + 1)]


def upright(scale: Scale, values: Iterable[float]) -> list[Tick]:
    """Values of an axis as its ticks: with separators, and no more digits than they have."""
    return [Tick(scale(value), f"{value:,.10g}") for value in values]


def text(said: str, x: float, y: float, anchor: str = "start") -> Html:
    """A label; `anchor` says which of its ends stands at the place: start, middle or end."""
    known = None if anchor == "start" else anchor
    return tag("text", one_line(said), x=number(x), y=number(y), text_anchor=known)


def path(points: Sequence[tuple[float, float]], colour: str, *, dashed: bool = False) -> Html:
    """A line through places."""
    way = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    dash = "5 3" if dashed else None
    wide = "1" if dashed else "1.4"
    return tag("path", "", d=f"M{way}", fill="none", stroke=colour, stroke_width=wide,
               stroke_dasharray=dash)  # fmt: skip


def rule(start: tuple[float, float], end: tuple[float, float], colour: str = RULE) -> Html:
    """A thin straight line: an axis, or a line of the grid."""
    (x, y), (to_x, to_y) = start, end
    way = f"M{number(x)} {number(y)}L{number(to_x)} {number(to_y)}"
    return tag("path", "", d=way, fill="none", stroke=colour, stroke_width="0.8")


def box(left: float, top: float, width: float, height: float, colour: str) -> Html:
    """A filled rectangle."""
    return tag("rect", "", x=number(left), y=number(top), width=number(width),
               height=number(height), fill=colour)  # fmt: skip


def dots(points: Iterable[tuple[float, float]], colour: str) -> list[Html]:
    """A mark at each place."""
    return [tag("circle", "", cx=number(x), cy=number(y), r="2.2", fill=colour) for x, y in points]


def floor(frame: Frame, given: Iterable[Tick], name: str) -> list[Html]:
    """The axis below: its ticks, those that would be written over others left out, and its name."""
    parts = [rule((frame.left, frame.ground), (frame.end, frame.ground))]
    free = -math.inf
    for tick in given:
        half = len(tick.said) * CHARACTER / 2
        parts.append(rule((tick.place, frame.ground), (tick.place, frame.ground + 3)))
        if tick.place - half >= free:
            parts.append(text(tick.said, tick.place, frame.ground + 14, "middle"))
            free = tick.place + half + CHARACTER
    middle = (frame.left + frame.end) / 2
    return [*parts, text(name, middle, frame.height - 6, "middle")]


def side(frame: Frame, given: Iterable[Tick], name: str) -> list[Html]:
    """The axis at the left with the lines of its grid; its name stands above it."""
    parts = [text(name, frame.left, frame.top - 8)]
    for tick in given:
        parts.append(rule((frame.left, tick.place), (frame.end, tick.place)))
        parts.append(text(tick.said, frame.left - 6, tick.place + 3.2, "end"))
    return parts
