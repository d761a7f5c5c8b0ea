"""Compare releases: match results, judge each pair by its noise, follow them over time."""

from perfdb.compare.match import Comparison, Level, Match, comparison, metric_for, together
from perfdb.compare.releases import Choice, both_named, named
from perfdb.compare.sides import Side, marked, usable
from perfdb.compare.verdict import Judgement, Verdict

__all__ = [
    "Choice", "Comparison", "Judgement", "Level", "Match", "Side", "Verdict", "both_named",
    "comparison", "marked", "metric_for", "named", "together", "usable",
]  # fmt: skip
