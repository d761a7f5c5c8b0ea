"""Comparisons and trends in words and as JSON: lines of cases, figures with their digits."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from perfdb import fields, units
from perfdb.audit.interval import in_cell
from perfdb.catalog import titles
from perfdb.compare.match import Comparison, Differences, Level, Match, nearest
from perfdb.compare.noise import BASELINE
from perfdb.compare.sides import Side, usable
from perfdb.compare.verdict import ENDED, Judgement, Verdict
from perfdb.groups import grouped
from perfdb.messages import note_text
from perfdb.metrics import CONVENTION_BOUND, METRICS, PREFERRED, Metric
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS, NoteCode, Origin, Outcome, Result
from perfdb.units import UNKNOWN, number, percent, share, significant, text

if TYPE_CHECKING:
    from perfdb.audit.restated import Restated
    from perfdb.compare.trend import Point, Series

Printed = Mapping[str, str]
"""The text of each cell of a row by field, as its page prints it; empty for a run."""

OPEN_ERRORS: Final = "⚑ open errors"
"""The mark of a figure in which the audit finds errors that nobody has accepted."""

NO_CHANGE: Final = percent(0.0)

SHORT: Final[Mapping[str, str]] = {
    name: fields.short(name) for name in CONFIGURATION_FIELDS if name != "options"
}
"""What pages print for a configuration field."""


def printed(metric: Metric, value: float | None, texts: Printed | None = None) -> str:
    """A figure in its metric's unit as text: with the digits its page printed; – when unknown.

    `value` is in the unit of the metric, seconds or tokens/s, and a share of 1 for MFU, which is
    printed in percent. A figure of a run has as many decimals as the metric has, or three
    significant digits where it would lose its digits so; a step time has four significant digits.
    """
    if value is None or isnan(value):
        return UNKNOWN
    found = decimals(texts, metric.name, value) if texts else None
    if metric.name == "step_time_s" and found is None:
        return significant(value, metric.digits)
    return with_digits(metric, value, found)


def with_digits(metric: Metric, value: float, found: int | None) -> str:
    """A figure with so many decimals; None: as many as its metric has, or enough to show it."""
    if metric.name == "mfu":
        return share(value) if found is None else percent(value, found)
    return units.figure(value, metric.digits) if found is None else number(value, found)


def decimals(texts: Printed, field: str, value: float) -> int | None:
    """How many decimals a figure has on its page; for MFU, how many its percentage has.

    None if the page has no such column, or prints another value: in another unit, or from before
    a correction.
    """
    unit, found = in_cell(value, field, texts.get(field, "")) or (None, 0)
    if field == "mfu" and unit == 1:
        return max(0, found - 2)
    return found if unit == (0.01 if field == "mfu" else 1) else None


def figure(result: Result, metric: str) -> str:
    """A figure as tables print it: of a page with its digits; – where it is not known."""
    return printed(METRICS[metric], usable(result, metric), result.printed)


def signed(fraction: float | None) -> str:
    """'+2.0%', '−1.3%', '0.0%'; – when unknown."""
    if fraction is None:
        return UNKNOWN
    words = percent(abs(fraction))
    sign = "" if words == NO_CHANGE else "+" if fraction > 0 else "−"
    return f"{sign}{words}"


def workload(result: Result) -> str:
    """'Llama 3 8B · Pre-training · FP8-CS · 8 × DGX-H100 · sequence 8,192 · GBS 128'."""
    parts = (
        titles.qualified(result.model_title, result.qualifiers),
        titles.task(result.task),
        titles.precision(result.precision) or "precision unknown",
        f"{result.num_gpus:,} × {result.system_title}",
        f"sequence {result.sequence_length:,}",
        f"GBS {result.global_batch_size:,}",
    )
    return " · ".join(parts)


def configuration(result: Result) -> str:
    """'MBS 1, TP 2, PP 1': the known layout of the work; – where nothing is known."""
    return ", ".join(_layout(result)) or UNKNOWN


def _layout(result: Result) -> list[str]:
    stated = [(short, getattr(result, field)) for field, short in SHORT.items()]
    stated += sorted(result.options.items())
    return [f"{name} {text(value)}" for name, value in stated if value not in (None, "")]


def changes(differences: Differences) -> str:
    """'TP 2 → 1, MBS 1 → 2'; empty where the configuration is equal."""
    known = (*WORKLOAD_FIELDS, *SHORT)
    return ", ".join(
        f"{fields.short(name) if name in known else name} {text(a)} → {text(b)}"
        for name, (a, b) in differences.items()
    )


def how(match: Match) -> str:
    """The configuration both sides share, or what the best configurations differ in."""
    if match.differences:
        words = "best of each, other sizes" if match.level is Level.BEST else "best of each"
        return f"{words}: {changes(match.differences)}"
    return configuration(match.a.shown)


def told_apart(labels: Sequence[str], matches: Sequence[Match]) -> list[str]:
    """The labels of matches; equal ones each with what its match differs in.

    'Llama 3 8B · measured · TP 2': the origin of its figures, and the layout of the work.
    """
    groups = grouped(zip(labels, matches, strict=True), itemgetter(0))
    same = {label: [match for _, match in some] for label, some in groups.items()}
    return [
        " · ".join(filter(None, (label, *_apart(match, same[label]))))
        for label, match in zip(labels, matches, strict=True)
    ]


def _apart(match: Match, same: Sequence[Match]) -> Iterator[str]:
    """What a match has, and not all matches with the same label."""

    def origins(one: Match) -> str:
        return " → ".join(dict.fromkeys((one.a.origin, one.b.origin)))

    if len(same) == 1:
        return
    if len(set(map(origins, same))) > 1:
        yield origins(match)
    if match.differences:
        yield how(match)
        return
    sides = [_layout(side.shown) for one in same for side in (one.a, one.b)]
    shared = set.intersection(*map(set, sides))
    yield ", ".join(part for part in _layout(match.b.shown) if part not in shared)


def verdict(judgement: Judgement, metric: str) -> str:
    """'faster'; for a failure also how it ended: 'failed: out of memory'."""
    failed = judgement.verdict is Verdict.FAILED
    word = named(judgement.verdict, metric)
    return f"{word}: {judgement.reason}" if failed else word


def named(verdict: Verdict, metric: str) -> str:
    """The word for a verdict by a metric: 'faster', for peak memory 'better'."""
    better, worse = METRICS[metric].words
    return {Verdict.FASTER: better, Verdict.SLOWER: worse}.get(verdict, str(verdict))


def interval(judgement: Judgement) -> str:
    """'1.012 – 1.041', with enough digits to show it if 1 is outside; – where there is none."""
    low, high = judgement.low, judgement.high
    if low is None or high is None:
        return UNKNOWN
    outside = [end for end in (low, high) if not low <= 1 <= high]
    enough = (n for n in range(3, 17) if all(round(end, n) != 1 for end in outside))
    digits = next(enough, 3)
    return f"{number(low, digits)} – {number(high, digits)}"


def remark(match: Match, *, has_flags: bool = True) -> str:
    """What a reader must know next to the ratio: where both figures come from, what failed.

    `has_flags`: and which of them has open errors.
    """
    a, b = (
        ", ".join(filter(None, (remark_of(side, has_flags), median(side, match.metric))))
        for side in (match.a, match.b)
    )
    words = a if a == b else f"A: {a}; B: {b}"
    count = match.judgement.num_baseline
    words += f"; {restated(match.judgement, match.metric)}" if match.judgement.restated else ""
    words += f"; baseline of {min(count, BASELINE)} releases" if count > 1 else ""
    failed = match.judgement.verdict is Verdict.FAILED
    return "; ".join(filter(None, (words, None if failed else match.judgement.reason)))


def restated(judgement: Judgement, metric: str) -> str:
    """'B restated from causal as full: 1,445.50 (identified by 51.47 GFLOP per token)'."""
    if (it := judgement.restated) is None:
        return ""
    value = printed(METRICS[metric], _figure_of(it, metric))
    words = f"B restated from {it.restated_from} as {it.convention}: {value}"
    return f"{words} ({it.note})" if it.note else words


def remark_of(side: Side, has_flag: bool = True) -> str:
    """'measured', 'measured, 3 runs, 2 containers', 'measured, the run was out of memory'."""
    mark = flag(side) if has_flag else ""
    words = str(side.origin), runs(side), containers(side), ended(side), mark
    return ", ".join(filter(None, words))


def footnotes(side: Side) -> list[str]:
    """The footnotes of a row of a page, such as a known issue."""
    return [note_text(note) for note in side.shown.notes if note.code is NoteCode.FOOTNOTE]


def median(side: Side, metric: str) -> str:
    """'median 10,550', which a verdict compares; empty where tables print the same figure."""
    if side.median(metric) == usable(side.shown, metric):
        return ""
    words = printed(METRICS[metric], side.median(metric), side.shown.printed)
    return "" if words == figure(side.shown, metric) else f"median {words}"


def runs(side: Side) -> str:
    """'3 runs', '1 of 3 runs (2 out of memory)', 'none of 2 runs (…)'; empty for a single one."""
    count, what = len(side.results), "runs" if side.origin == Origin.MEASURED else "results"
    if count == 1:
        return ""
    lost = Counter(_how_it_ended(one) for one in side.results if not one.counts)
    if not lost:
        return f"{count} {what}"
    counts = ", ".join(f"{number} {how}" for how, number in lost.items())
    return f"{len(side.finished) or 'none'} of {count} {what} ({counts})"


def containers(side: Side) -> str:
    """'2 containers' where its runs were in so many; empty where they were in the same."""
    count = len(side.containers)
    if count == 1:
        return ""
    return "with and without a container" if None in side.containers else f"{count} containers"


def failed(side: Side) -> str:
    """'2 of 3 runs failed: out of memory'; empty where none did, or none finished."""
    if not side.failed or not side.finished:
        return ""
    how = ", ".join(dict.fromkeys(map(_how_it_ended, side.failed)))
    return f"{len(side.failed)} of {len(side.results)} runs failed: {how}"


def _how_it_ended(result: Result) -> str:
    return ENDED.get(result.outcome, ENDED[Outcome.NO_DATA])


def flag(side: Side) -> str:
    """'⚑ open errors' where a side has some; else empty."""
    return OPEN_ERRORS if side.shown.has_open_errors else ""


def flags(match: Match) -> str:
    """'⚑ open errors in B'; empty where no side has some."""
    sides = [name for name, side in (("A", match.a), ("B", match.b)) if flag(side)]
    return f"{OPEN_ERRORS} in {' and '.join(sides)}" if sides else ""


def ended(side: Side) -> str:
    """Why a side has no figures, in words; empty where it has them."""
    it = side.shown
    unfinished = "" if it.outcome == Outcome.FINISHED else it.outcome.replace("_", " ")
    return note_text(it.withheld) if it.withheld else unfinished


def counting(metric: Metric, conventions: Iterable[str | None]) -> str:
    """That figures may count other FLOPs; empty where all of them state the same convention."""
    stated = set(conventions)
    if metric.name not in CONVENTION_BOUND or (len(stated) == 1 and None not in stated):
        return ""
    words = (
        f"{metric.title} of different programs or FLOPs conventions may count other FLOPs for the "
        "same work"
    )
    if None not in stated:
        return f"{words}."
    where = "here" if len(stated) == 1 else "where none is named"
    return f"{words}; no convention is stated {where}."


def summary(comparison: Comparison) -> str:
    """'3 matched: 1 faster, 2 same. 1 only in A, 0 only in B.'"""
    found = Counter((match.judgement.verdict, match.metric) for match in comparison.matched)
    counts = Counter[str]()
    for one in sorted(found, key=lambda one: list(Verdict).index(one[0])):
        counts[named(*one)] += found[one]
    verdicts = ", ".join(f"{count} {word}" for word, count in counts.items())
    matched = f"{len(comparison.matched)} matched" + (f": {verdicts}" if verdicts else "")
    return f"{matched}. {len(comparison.only_a)} only in A, {len(comparison.only_b)} only in B."


Fields = dict[str, object]

SHOWN = (
    "container", "case_key", "run_id", "source", "source_line", "step_time_stdev_s",
    "step_time_p10_s", "step_time_p90_s", "num_steps", "peak_memory_bytes",
)  # fmt: skip
"""The fields of the result that is shown for a side with several."""


def document(comparison: Comparison) -> Fields:
    """`matched`, `only_a` and `only_b`, each a list of flat objects; null is unknown."""
    of_a = [
        {**unmatched(side), "instead_in_b": nearest(side, comparison.only_b)}
        for side in comparison.only_a
    ]
    return {
        "matched": [matched(match) for match in comparison.matched],
        "best": [matched(match) for match in comparison.best],
        "only_a": of_a,
        "only_b": [unmatched(side) for side in comparison.only_b],
    }


def matched(match: Match) -> Fields:
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
        **_restated(judgement, metric),
        **_ratio(judgement),
        "verdict": named(judgement.verdict, metric),
        "reason": judgement.reason,
        "false_discovery_rate": judgement.rate,
        "num_baseline_releases": judgement.num_baseline,
    }


def _restated(judgement: Judgement, metric: str) -> Fields:
    it = judgement.restated
    return {
        "restated_b": None if it is None else _figure_of(it, metric),
        "convention": it and it.convention,
        "restated_from": it and it.restated_from,
    }


def _figure_of(it: "Restated", metric: str) -> float | None:
    return it.mfu if metric == "mfu" else it.tflops_per_sec_per_gpu


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
        "failed": failed(side) or None,
    }


def unmatched(side: Side) -> Fields:
    """A side without a match: identity, then the figures of `PREFERRED`."""
    it = side.shown
    figures = {metric: usable(it, metric) for metric in PREFERRED}
    return {**_identity(it), **_of_side(side), **figures}


def _identity(result: Result) -> Fields:
    names = (*WORKLOAD_FIELDS, *CONFIGURATION_FIELDS, "workload_key")
    return {name: result.value(name) for name in names}


def series(one: "Series", closed: Iterable[str]) -> Fields:
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
        "change_points": [
            {"release": release, "ratio": ratio} for release, ratio in one.change_points.items()
        ],
        "missing_in": one.missing_in,
        "gave_way": one.gave_way,
        "closes": sorted(closed),
    }


RUN = ("run_id", "source", "source_line", "started_at", "outcome")
"""The fields of a run of a point."""


def _point(point: "Point", metric: str) -> Fields:
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
        "verdict": named(point.verdict, metric) if point.verdict else None,
        "reason": judged.reason if judged else None,
        "has_open_errors": it.has_open_errors,
        "window": side.window,
        "num_steps": it.num_steps,
        "peak_memory_bytes": it.peak_memory_bytes,
        **_counts(side),
        "differences": _pairs(point.differences),
        "runs": runs,
    }
