"""How a verdict looks. Each has its own sign, word and shape; colours are shared by some."""

from collections.abc import Mapping
from typing import NamedTuple

from dashboards.look import GREY
from perfdb.compare import Verdict, words


class Look(NamedTuple):
    """The sign before its word, its colour and its shape in a chart, and how its cell is filled.

    A fill is a tint, through which the theme's own background and words show.
    """

    sign: str
    colour: str
    shape: str
    fill: str = ""


BLUE, VERMILION = "#0072B2", "#D55E00"
"""Of Okabe and Ito (2008): distinct in every common colour blindness."""
_FASTER = "background-color: rgba(0, 114, 178, 0.22)"
_SLOWER = "background-color: rgba(213, 94, 0, 0.25)"

LOOKS: Mapping[Verdict, Look] = {
    Verdict.FASTER: Look("▲", BLUE, "triangle-up", _FASTER),
    Verdict.SLOWER: Look("▼", VERMILION, "triangle-down", _SLOWER),
    Verdict.FAILED: Look("✗", GREY, "cross", _SLOWER),
    Verdict.SAME: Look("=", GREY, "circle"),
    Verdict.UNKNOWN: Look("?", GREY, "diamond"),
    Verdict.NOT_JUDGED: Look("⚑", GREY, "square"),
}


def verdict_mark(verdict: Verdict, metric: str) -> str:
    """A verdict as it is printed: '▲ faster'."""
    return f"{LOOKS[verdict].sign} {words.named(verdict, metric)}"
