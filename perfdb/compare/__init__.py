"""Compare two releases: match their results, judge each pair by its noise, say it in words."""

from perfdb.compare.base import (
    Comparison,
    Difference,
    Judgement,
    Level,
    Match,
    Side,
    Verdict,
    together,
)
from perfdb.compare.match import comparison, metric_for
from perfdb.compare.releases import Choice, both_named, named
from perfdb.compare.result import Result, marked

__all__ = [
    "Choice", "Comparison", "Difference", "Judgement", "Level", "Match", "Result", "Side",
    "Verdict", "both_named", "comparison", "marked", "metric_for", "named", "together",
]  # fmt: skip
