"""The JSON of comparisons and trends: what `--json` prints."""

from collections.abc import Iterable, Mapping

from perfdb.compare import report
from perfdb.compare.match import nearest
from perfdb.compare.sides import Comparison, Level, Match, Side, usable
from perfdb.compare.trend import Decline, Point, Series
from perfdb.metrics import METRICS, PREFERRED
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS, Result

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
            {**_unmatched(side), "instead_in_b": nearest(side, comparison.only_b)}
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
        "a": usable(a, match.metric),
        "b": usable(b, match.metric),
        "median_a": match.a.median(match.metric),
        "median_b": match.b.median(match.metric),
        "ratio": judgement.ratio,
        "low": judgement.low,
        "high": judgement.high,
        "verdict": report.named(judgement.verdict, match.metric),
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
        "failed": report.failed(side) or None,
        **{field: it.value(field) for field in SHOWN},
        "window": side.window,
        "has_open_errors": it.has_open_errors,
    }


def _unmatched(side: Side) -> Fields:
    it = side.shown
    return {
        **_identity(it),
        **_of_side(side),
        **{metric: usable(it, metric) for metric in PREFERRED},
    }


def _identity(result: Result) -> Fields:
    names = (*WORKLOAD_FIELDS, *CONFIGURATION_FIELDS, "workload_key")
    return {name: result.value(name) for name in names}


def series(one: Series, closed: Iterable[str]) -> Fields:
    """A series with its keys, every point with its runs, and the gates that closed on it.

    null is unknown.
    """
    it, metric = one.shown, METRICS[one.metric]
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
        "decline": _decline(one.decline) if one.decline else None,
        "missing_in": one.missing_in,
        "gave_way": one.gave_way,
        "closes": sorted(closed),
    }


def _decline(found: Decline) -> Fields:
    judged = found.judgement
    return {
        "release": found.newest.release,
        "best": found.best.release,
        "ratio": judged.ratio,
        "low": judged.low,
        "high": judged.high,
    }


def _point(point: Point, metric: str) -> Fields:
    judged = point.judgement
    return {
        "release": point.release,
        "against": point.against,
        "container": point.side.shown.container,
        "num_containers": len(point.side.containers),
        "case_key": point.side.shown.case_key,
        "figure": usable(point.side.shown, metric),
        "median": point.side.median(metric),
        "ratio": judged.ratio if judged else None,
        "low": judged.low if judged else None,
        "high": judged.high if judged else None,
        "verdict": report.named(point.verdict, metric) if point.verdict else None,
        "reason": judged.reason if judged else None,
        "has_open_errors": point.has_open_errors,
        "window": point.side.window,
        "num_steps": point.side.shown.num_steps,
        "peak_memory_bytes": point.side.shown.peak_memory_bytes,
        "num_results": len(point.side.results),
        "num_finished": len(point.side.finished),
        "failed": report.failed(point.side) or None,
        "differences": {one.field: [one.a, one.b] for one in point.differences},
        "runs": [_run(run, metric) for run in point.runs],
    }


def _run(run: Result, metric: str) -> Fields:
    return {
        "run_id": run.run_id,
        "source": run.source,
        "source_line": run.source_line,
        "started_at": run.started_at,
        "outcome": run.outcome,
        "figure": usable(run, metric),
    }
