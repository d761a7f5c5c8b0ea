"""The JSON of a comparison: what `perfdb compare --json` prints."""

from collections.abc import Mapping

from perfdb.compare import words
from perfdb.compare.base import Comparison, Match, Side
from perfdb.compare.instead import instead
from perfdb.compare.result import Result
from perfdb.metrics import PREFERRED
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS

Fields = dict[str, object]

SHOWN = (
    "container", "case_key", "run_id", "source", "source_line", "step_time_stdev_s",
    "step_time_p10_s", "step_time_p90_s", "num_steps", "peak_memory_bytes",
)  # fmt: skip
"""Of a side that has several results these are of the one that is shown."""


def document(comparison: Comparison) -> Fields:
    """`matched`, `only_a` and `only_b`, each a list of flat objects; null is unknown."""
    return {
        "matched": [_matched(match) for match in comparison.matched],
        "only_a": [
            {**_unmatched(side), "instead_in_b": instead(side, comparison.only_b)}
            for side in comparison.only_a
        ],
        "only_b": [_unmatched(side) for side in comparison.only_b],
    }


def _matched(match: Match) -> Fields:
    """Identity, then figures. A field the two sides do not share is under `differences` alone."""
    judgement, a, b = match.judgement, match.a.shown, match.b.shown
    differing = {one.field: [one.a, one.b] for one in match.differences}
    identity = {name: value for name, value in _identity(a).items() if name not in differing}
    return {
        **identity,
        "level": match.level,
        "differences": differing,
        **_of_sides({"a": match.a, "b": match.b}),
        "metric": match.metric,
        "a": a.figure(match.metric),
        "b": b.figure(match.metric),
        "median_a": match.a.median(match.metric),
        "median_b": match.b.median(match.metric),
        "ratio": judgement.ratio,
        "low": judgement.low,
        "high": judgement.high,
        "verdict": words.named(judgement.verdict, match.metric),
        "reason": judgement.reason,
    }


def _of_sides(sides: Mapping[str, Side]) -> Fields:
    return {
        f"{field}_{name}": value
        for name, side in sides.items()
        for field, value in _of_side(side).items()
    }


def _of_side(side: Side) -> Fields:
    it = side.shown
    return {
        "release": it.release,
        "origin": it.origin,
        "outcome": it.outcome,
        "num_results": len(side.results),
        "num_containers": len(side.containers),
        "num_finished": len(side.finished),
        "failed": words.failed(side) or None,
        **{field: getattr(it, field) for field in SHOWN},
        "window": side.window,
        "has_open_errors": it.has_open_errors,
    }


def _unmatched(side: Side) -> Fields:
    it = side.shown
    return {
        **_identity(it),
        **_of_side(side),
        **{metric: it.figure(metric) for metric in PREFERRED},
    }


def _identity(result: Result) -> Fields:
    fields = (*WORKLOAD_FIELDS, *CONFIGURATION_FIELDS, "workload_key")
    return result.model_dump(mode="json", include=set(fields))
