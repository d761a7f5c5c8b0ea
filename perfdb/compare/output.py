"""The JSON of comparisons and trends: what `--json` prints."""

from collections.abc import Iterable, Mapping

from perfdb.compare import report
from perfdb.compare.match import Comparison, Differences, Level, Match, nearest
from perfdb.compare.sides import Side, usable
from perfdb.compare.trend import Point, Series
from perfdb.compare.verdict import Judgement
from perfdb.metrics import METRICS, PREFERRED
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS, Result

Fields = dict[str, object]

SHOWN = (
    "container", "case_key", "run_id", "source", "source_line", "step_time_stdev_s",
    "step_time_p10_s", "step_time_p90_s", "num_steps", "peak_memory_bytes",
)  # fmt: skip
"""The fields of the result that is shown for a side with several."""


def document(comparison: Comparison) -> Fields:
    """`matched`, `only_a` and `only_b`, each a list of flat objects; null is unknown."""
    of_a = [
        {**_unmatched(side), "instead_in_b": nearest(side, comparison.only_b)}
        for side in comparison.only_a
    ]
    return {
        "matched": [_matched(match) for match in comparison.matched],
        "only_a": of_a,
        "only_b": [_unmatched(side) for side in comparison.only_b],
    }


def _matched(match: Match) -> Fields:
    """Identity, then figures. A field the two sides do not share is under `differences` alone."""
    judgement, metric = match.judgement, match.metric
    of_sides = {
        f"{field}_{name}": value
        for name, side in (("a", match.a), ("b", match.b))
        for field, value in _of_side(side).items()
    }
    identity = _identity(match.a.shown)
    return {
        **{name: value for name, value in identity.items() if name not in match.differences},
        "level": match.level,
        "differences": _pairs(match.differences),
        **of_sides,
        "metric": metric,
        "a": usable(match.a.shown, metric),
        "b": usable(match.b.shown, metric),
        "median_a": match.a.median(metric),
        "median_b": match.b.median(metric),
        **_ratio(judgement),
        "verdict": report.named(judgement.verdict, metric),
        "reason": judgement.reason,
    }


def _pairs(differences: Differences) -> Mapping[str, object]:
    return {name: list(values) for name, values in differences.items()}


def _ratio(judged: Judgement | None) -> Fields:
    return {name: getattr(judged, name, None) for name in ("ratio", "low", "high")}


def _of_side(side: Side) -> Fields:
    it = side.shown
    return {
        "release": it.release,
        "origin": it.origin,
        "outcome": it.outcome,
        **_counts(side),
        **{field: it.value(field) for field in SHOWN},
        "window": side.window,
        "has_open_errors": it.has_open_errors,
    }


def _counts(side: Side) -> Fields:
    return {
        "num_results": len(side.results),
        "num_containers": len(side.containers),
        "num_finished": len(side.finished),
        "failed": report.failed(side) or None,
    }


def _unmatched(side: Side) -> Fields:
    it = side.shown
    figures = {metric: usable(it, metric) for metric in PREFERRED}
    return {**_identity(it), **_of_side(side), **figures}


def _identity(result: Result) -> Fields:
    names = (*WORKLOAD_FIELDS, *CONFIGURATION_FIELDS, "workload_key")
    return {name: result.value(name) for name in names}


def series(one: Series, closed: Iterable[str]) -> Fields:
    """A series with its keys, every point with its runs, and the gates that closed on it.

    null is unknown.
    """
    it, metric = one.shown, METRICS[one.metric]
    decline: Fields | None = None
    if found := one.decline:
        releases = {"release": found.newest.release, "best": found.best.release}
        decline = {**releases, **_ratio(found.judgement)}
    return {
        "workload_key": it.workload_key,
        "case_key": it.case_key if one.level is Level.CONFIGURATION else None,
        "level": one.level,
        **{name: it.value(name) for name in WORKLOAD_FIELDS},
        "origin": it.origin,
        "metric": metric.name,
        "unit": metric.unit,
        "points": [_point(point, one.metric) for point in one.points],
        "first_regression": one.regression.release if one.regression else None,
        "recovered": one.recovered,
        "decline": decline,
        "missing_in": one.missing_in,
        "gave_way": one.gave_way,
        "closes": sorted(closed),
    }


RUN = ("run_id", "source", "source_line", "started_at", "outcome")
"""The fields of a run of a point."""


def _point(point: Point, metric: str) -> Fields:
    judged, it, side = point.judgement, point.side.shown, point.side
    runs = [
        {**{name: run.value(name) for name in RUN}, "figure": usable(run, metric)}
        for run in side.results
    ]
    return {
        "release": point.release,
        "against": point.against,
        "container": it.container,
        "case_key": it.case_key,
        "figure": usable(it, metric),
        "median": side.median(metric),
        **_ratio(judged),
        "verdict": report.named(point.verdict, metric) if point.verdict else None,
        "reason": judged.reason if judged else None,
        "has_open_errors": it.has_open_errors,
        "window": side.window,
        "num_steps": it.num_steps,
        "peak_memory_bytes": it.peak_memory_bytes,
        **_counts(side),
        "differences": _pairs(point.differences),
        "runs": runs,
    }
