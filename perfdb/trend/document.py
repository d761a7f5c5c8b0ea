"""The JSON of a trend: what `perfdb trend --json` prints."""

from collections.abc import Iterable

from perfdb.compare import Level, words
from perfdb.metrics import METRICS
from perfdb.record import WORKLOAD_FIELDS
from perfdb.trend.base import Decline, Point, Series, Timed

Fields = dict[str, object]


def document(one: Series, closed: Iterable[str]) -> Fields:
    """A series with its keys, every point with its runs, and the gates that closed on it.

    null is unknown.
    """
    it, metric = one.shown, METRICS[one.metric]
    return {
        "workload_key": it.workload_key,
        "case_key": it.case_key if one.level is Level.CONFIGURATION else None,
        "level": one.level,
        **{name: getattr(it, name) for name in WORKLOAD_FIELDS},
        "origin": it.origin,
        "metric": metric.name,
        "unit": metric.unit,
        "points": [_point(one, point) for point in one.points],
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


def _point(series: Series, point: Point) -> Fields:
    judged = point.judgement
    return {
        "release": point.release,
        "against": point.against,
        "container": point.side.shown.container,
        "num_containers": len(point.side.containers),
        "case_key": point.side.shown.case_key,
        "figure": point.side.shown.figure(series.metric),
        "median": point.side.median(series.metric),
        "ratio": judged.ratio if judged else None,
        "low": judged.low if judged else None,
        "high": judged.high if judged else None,
        "verdict": words.named(point.verdict, series.metric) if point.verdict else None,
        "reason": judged.reason if judged else None,
        "has_open_errors": point.has_open_errors,
        "window": point.side.window,
        "num_steps": point.side.shown.num_steps,
        "peak_memory_bytes": point.side.shown.peak_memory_bytes,
        "num_results": len(point.side.results),
        "num_finished": len(point.side.finished),
        "failed": words.failed(point.side) or None,
        "differences": {one.field: [one.a, one.b] for one in point.differences},
        "runs": [_run(run, series.metric) for run in point.runs],
    }


def _run(run: Timed, metric: str) -> Fields:
    return {
        "run_id": run.run_id,
        "source": run.source,
        "source_line": run.source_line,
        "started_at": run.started_at,
        "outcome": run.outcome,
        "figure": run.figure(metric),
    }
