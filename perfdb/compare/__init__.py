"""Compare releases: match results, judge each pair by its noise, follow them over time."""

from perfdb.compare.match import comparison, metric_for
from perfdb.compare.releases import Choice, both_named, named
from perfdb.compare.sides import (
    Comparison,
    Difference,
    Judgement,
    Level,
    Match,
    Side,
    Verdict,
    marked,
    together,
    usable,
)

__all__ = [
    "Choice", "Comparison", "Difference", "Judgement", "Level", "Match", "Side", "Verdict",
    "both_named", "comparison", "marked", "metric_for", "named", "together", "usable",
]  # fmt: skip
