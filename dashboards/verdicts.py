"""How a verdict looks: a sign, a word, a colour and a shape, so that no colour is needed."""

from collections.abc import Mapping

from dashboards.look import GREY
from perfdb.compare import Verdict, words

SIGNS: Mapping[Verdict, str] = {
    Verdict.FASTER: "▲",
    Verdict.SLOWER: "▼",
    Verdict.FAILED: "✗",
    Verdict.SAME: "=",
    Verdict.UNKNOWN: "?",
    Verdict.NOT_JUDGED: "⚑",
}
"""What stands before its word."""

COLOURS: Mapping[Verdict, str] = {
    Verdict.FASTER: "#0072B2",
    Verdict.SLOWER: "#D55E00",
    Verdict.FAILED: GREY,
    Verdict.SAME: GREY,
    Verdict.UNKNOWN: GREY,
    Verdict.NOT_JUDGED: GREY,
}
"""Blue and vermilion of Okabe and Ito (2008), apart in every common colour blindness."""

SHAPES: Mapping[Verdict, str] = {
    Verdict.FASTER: "triangle-up",
    Verdict.SLOWER: "triangle-down",
    Verdict.FAILED: "cross",
    Verdict.SAME: "circle",
    Verdict.UNKNOWN: "cross",
    Verdict.NOT_JUDGED: "cross",
}

FILLS: Mapping[Verdict, str] = {
    Verdict.FASTER: "background-color: rgba(0, 114, 178, 0.22)",
    Verdict.SLOWER: "background-color: rgba(213, 94, 0, 0.25)",
    Verdict.FAILED: "background-color: rgba(213, 94, 0, 0.25)",
    Verdict.SAME: "",
    Verdict.UNKNOWN: "",
    Verdict.NOT_JUDGED: "",
}
"""The same for a cell: a tint, through which the theme's own background and words show."""


def verdict_mark(verdict: Verdict, metric: str) -> str:
    """A verdict as it is printed: '▲ faster'."""
    return f"{SIGNS[verdict]} {words.named(verdict, metric)}"
