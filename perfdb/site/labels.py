"""The labels of charts: how wide a text is in the font of the chart, cut and wrapped to fit."""

import re
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Final

from matplotlib import get_data_path
from matplotlib.ft2font import FT2Font

FONT_SIZE: Final = 12.0
FONT: Final = "DejaVu Sans"
"""What labels are measured in: it comes with matplotlib, and most fonts of pages are narrower."""

_NO_XML: Final = re.compile(r"[^\S ]+|[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What XML cannot hold, and what ends a line."""


def one_line(words: str) -> str:
    """Text for a label: on one line, and without what XML cannot hold."""
    return _NO_XML.sub(" ", words).strip()


def shortened(words: str, room: float) -> str:
    """Text for a label on one line; what is longer than its room ends in …"""
    text = one_line(words)
    if width(text) <= room:
        return text
    ends = accumulate(map(_advance, text), initial=_advance("…"))
    return text[: sum(end <= room for end in ends) - 1].rstrip() + "…"


def wrapped(words: str, room: float) -> list[str]:
    """A label whose parts are between middle dots: on two lines where one is too short for it.

    The first of two ends in a dot. What is longer still ends in …
    """
    text = one_line(words)
    if width(text) <= room:
        return [text]
    parts = text.split(" · ")
    for count in range(len(parts) - 1, 0, -1):
        first = f"{' · '.join(parts[:count])} ·"
        if width(first) <= room:
            return [first, shortened(" · ".join(parts[count:]), room)]
    return [shortened(text, room)]


def width(text: str) -> float:
    """How wide a label is, in a font that is wider than most."""
    return sum(map(_advance, text))


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
