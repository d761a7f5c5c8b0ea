"""What matplotlib draws, as SVG that stands in the page in its colours and its font.

The same values give the same bytes, whatever the settings of matplotlib are and whatever was drawn
before. Lengths are in units of the drawing, of which `WIDTH` are as wide as it is.
"""
# mypy: allow-untyped-calls
# the renderers of matplotlib have no types

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from matplotlib import get_data_path, rc_context, rcdefaults, rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font

from perfdb.site import palette
from perfdb.site.markup import Html, tag

WIDTH: Final = 380.0
"""As wide as a phone, so that a chart answers there without being scrolled."""
FONT_SIZE: Final = 12.0
FONT: Final = "DejaVu Sans"
"""What labels are measured in: it comes with matplotlib, and most fonts of pages are narrower."""

COLOURS: Final = (*palette.SERIES, palette.WARMUP, palette.BAD, palette.FAINT, palette.RULE)

_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_SVG: Final = "{http://www.w3.org/2000/svg}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
_PAINT: Final = re.compile("#([0-9a-f]{6})")
_NO_XML: Final = re.compile(r"[^\S ]+|[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What XML cannot hold, and what ends a line."""


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
class Kind:
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


def drawn(kind: Kind, title: str, sentence: str, draw: Callable[[Axes], Frame]) -> Html:
    """What `draw` puts on empty axes as a figure of the page; it says what room they need.

    A screen reader says the title and the sentence.
    """
    said = one_line(title), one_line(sentence)
    with rc_context():
        _set(" ".join(said))
        figure, axes = _blank(kind)
        for artist in (*axes.lines, *axes.collections, *axes.patches, *axes.texts):
            artist.remove()
        frame = draw(axes)
        written = _written(figure, axes, frame)
    shape = tag(
        "svg", (tag("title", said[0]), tag("desc", said[1]), *_shapes(written)), role="img",
        xmlns="http://www.w3.org/2000/svg", class_="perf-chart",
        viewBox=f"0 0 {WIDTH:g} {frame.height:g}", font_size=f"{FONT_SIZE:g}",
        style=f"fill: {palette.TEXT}",
    )  # fmt: skip
    return tag("figure", shape, class_="perf-figure")


def one_line(words: str) -> str:
    """Text for a label: on one line, and without what XML cannot hold."""
    return _NO_XML.sub(" ", words).strip()


def shortened(words: str, room: float) -> str:
    """Text for a label on one line; what is longer than its room ends in …"""
    said = one_line(words)
    if width(said) <= room:
        return said
    ends = accumulate(map(_advance, said), initial=_advance("…"))
    return said[: sum(end <= room for end in ends) - 1].rstrip() + "…"


def wrapped(words: str, room: float) -> list[str]:
    """A label whose parts stand between middle dots: on two lines where one is too short for it.

    The first of two ends in a dot. What is longer still ends in …
    """
    said = one_line(words)
    if width(said) <= room:
        return [said]
    parts = said.split(" · ")
    for count in range(len(parts) - 1, 0, -1):
        first = f"{' · '.join(parts[:count])} ·"
        if width(first) <= room:
            return [first, shortened(" · ".join(parts[count:]), room)]
    return [shortened(said, room)]


def width(said: str) -> float:
    """How wide a label is, in a font that is wider than most."""
    return sum(map(_advance, said))


def paint(colour: str) -> str:
    """What to draw with, so that a colour of the palette stands in the page."""
    return f"#{COLOURS.index(colour) + 1:06x}"


@cache
def _advance(character: str) -> float:
    """The width of a character; one that the font lacks, as an ideograph, is a square."""
    glyph = _font().get_char_index(ord(character))
    return _font().load_glyph(glyph).linearHoriAdvance / 0x10000 if glyph else FONT_SIZE


@cache
def _font() -> FT2Font:
    font = FT2Font(str(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")))
    font.set_size(FONT_SIZE, 72)
    return font


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
            "grid.color": paint(palette.RULE),
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
def _blank(kind: Kind) -> tuple[Figure, Axes]:
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


def _shapes(svg: str) -> Iterator[Html]:
    """What was drawn, without its groups: their names are the same in every chart.

    Coordinates have two decimals. The shape of a mark stands before its first use.
    """
    marks: dict[str, str] = {}
    for shape in ElementTree.fromstring(svg).iter():
        style = _style(shape)
        match shape.tag.removeprefix(_SVG):
            case "text":
                yield tag("text", shape.text or "", **_place(shape), style=style)
            case "path" if "id" in shape.attrib:
                marks[f"#{shape.attrib['id']}"] = _short(shape.attrib["d"])
            case "path":
                yield tag("path", "", d=_short(shape.attrib["d"]), style=style)
            case "use":
                mark = shape.attrib[_HREF]
                if outline := marks.pop(mark, None):
                    yield tag("defs", tag("path", "", id=mark[1:], d=outline, style=style))
                yield tag("use", "", href=mark, **_place(shape))
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
