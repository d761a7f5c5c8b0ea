"""`perfdb trend`: the figures of the same work over releases, and where they got worse."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise, starmap
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from perfdb.cli import gates, options
from perfdb.compare import (
    Choice,
    Judgement,
    Level,
    Verdict,
    baselines,
    marked,
    releases,
    report,
    triage,
    unchanged,
)
from perfdb.compare import trend as trending
from perfdb.compare.report import series as series_document
from perfdb.compare.sides import figures_of
from perfdb.compare.trend import Point, Series
from perfdb.compare.unchanged import NONE_LEFT_OUT, UnchangedCases
from perfdb.db.session import reading_current, store_url
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.queries.scope import Scope
from perfdb.record import Result
from perfdb.units import UNKNOWN, counted, percent

BLOCKS = "▁▂▃▄▅▆▇█"
MOST_BARS = 20
"""From so many runs on, neighbors share a bar, and how many they are is printed."""

COLUMNS = ("Change", "99 % interval", "Verdict", "Runs")
"""Of a series, behind the release and its figure."""


@click.command(
    epilog=options.examples(
        "perfdb trend llama3-8b --system dgx-h100",
        "perfdb trend --framework nemo --fail-on regression,missing",
    )
)
@click.argument("asked", nargs=-1, metavar="[MODEL_OR_CASE]...")
@options.db_option
@options.only_options("framework", "system", several=True)
@options.metric_option("follow")
@options.gate_option(
    ("regression", "missing", "unknown"),
    "Exit with 1 on an open regression, on results that the newest release lacks or fails, or on "
    "unknown verdicts. Separate several with commas. This follows each case. [default: never]",
)
@click.option(
    "--all", "all_", flag_value="yes", help="Without a model, list unchanged results, too."
)
@click.option(
    "--each-case",
    flag_value="yes",
    help="Follow every case of a workload, not only its best.",
)
@options.format_option(
    triage.FORMATS, "The output format: markdown for pull requests, junit and github for CI."
)
@options.json_format_option
@options.wide_option
@click.option(
    "--since",
    metavar="RELEASE",
    help="Start at this release or baseline. --fail-on ignores what came before.",
)
@gates.verdict_options
def trend(
    asked: Sequence[str],
    gate: frozenset[str],
    least: gates.Least,
    reviewed: Path | None,
    *,
    style: str,
    **only: Any,
) -> int:
    """Follow results across releases, and find regressions.

    MODEL_OR_CASE is a model, such as llama3-8b, or six or more characters of a workload or case
    key. For a model or workload, the table shows each release's best configuration. Changes and
    verdicts compare with the release before, as `perfdb compare` does. A rolling branch, such as
    main, compares with the newest release. Bars show the runs of a release in order of time.
    Results with open audit errors have no verdict. ◆ is a change point: from that release on the
    series stays at another level.

    Without MODEL_OR_CASE, the table shows every workload that changed in the newest release.
    """
    metric, margin = only["metric"], only["margin"]
    scope, since = Scope(only["framework"], only["system"]), only["since"]
    only_news = not asked and not only["all_"]
    with reading_current(store_url(only["db"])) as connection:
        wrong = gates.unaccepted(connection, reviewed, only["judge_all"])
        choices = releases.known_releases(connection)
        versions, screened = releases.versions(connection, choices), None
        if only_news and style in ("table", "markdown") and not since:
            judging = releases.Judging(wrong, metric, margin)
            screened = unchanged.found(connection, scope, choices, versions, judging)
        results = (
            unchanged.others(connection, screened) if screened
            else releases.results_of_words(connection, asked, scope)
        )  # fmt: skip
        if since:
            starts = releases.all_named(since, choices, baselines.read())
            results = releases.since(results, choices, starts)
    keys = tuple(word.lower() for word in asked if releases.is_key(word))
    of_each = None if only["each_case"] or gate else keys
    hidden = screened or UnchangedCases(margin)
    how = metric, hidden
    followed = _followed(marked(results, wrong), choices, how, of_each)
    found = trending.noted_missing(followed, versions)
    closed = [gate & one.closes(least(one.metric)) for one in found]
    _print(found, closed, results, style, hidden if only_news else None)
    return _ended(found, closed, gate, hidden, err=style != "table")


def _ended(
    found: Sequence[Series],
    closed: "Closed",
    gate: frozenset[str],
    hidden: UnchangedCases,
    *,
    err: bool,
) -> int:
    """The exit code, after what is to be said of the gates."""
    gates.print_not_judged(sum(not it.is_judged for one in found for it in one.points), err=err)
    failed = sum(bool(one.failed) for one in found)
    unknown = sum(bool(one.unknown) for one in found) + hidden.num_unknown
    options.warn_of_ungated(failed, unknown, gate)
    unjudged = options.nothing_judged(_is_told(found, hidden), gate)
    return 1 if unjudged or any(closed) or ("unknown" in gate and hidden.num_unknown) else 0


def _is_told(found: Sequence[Series], hidden: UnchangedCases) -> bool:
    """Whether there is a verdict, or nothing to judge yet, as there is one release alone."""
    is_followed = any(point.judgement for one in found for point in one.points)
    return bool(hidden.num_cases) or not is_followed or any(one.is_judged for one in found)


def _followed(
    results: Sequence[Result],
    choices: Sequence[Choice],
    how: tuple[str | None, UnchangedCases],
    keys: tuple[str, ...] | None,
) -> list[Series]:
    """Each case that a key names and the work of the others; each case where `keys` is None."""
    if keys is None:
        return trending.follow_each(results, choices, *how)
    of_cases = [one for one in results if one.case_key.startswith(keys)]
    of_work = [one for one in results if not one.case_key.startswith(keys)]
    return [
        *trending.follow(of_work, choices, Level.WORKLOAD, *how),
        *trending.follow(of_cases, choices, Level.CONFIGURATION, *how),
    ]


Closed = Sequence[frozenset[str]]
"""The gates that close on each series."""


def _print(
    found: Sequence[Series],
    closed: Closed,
    results: Sequence[Result],
    style: str,
    hidden: UnchangedCases | None,
) -> None:
    """`hidden`: where only news are shown, what is known of the cases without any."""
    if style == "json":
        listed = [series_document(*one) for one in zip(found, closed, strict=True)]
        options.print_json({"closed": sorted(frozenset().union(*closed)), "series": listed})
    elif style == "junit":
        suites = grouped(zip(found, closed, strict=True), lambda one: one[0].shown.framework)
        click.echo(triage.junit((name, starmap(_check, some)) for name, some in suites.items()))
    elif style == "github":
        _print_commands(found, closed)
        click.echo(triage.command("notice", _summary(found, hidden)))
    else:
        _print_tables(found, style, only_news=hidden is not None)
        click.echo(_summary(found, hidden))
        shown = {it.case_key for one in found for point in one.points for it in point.side.results}
        if more := len({result.case_key for result in results} - shown):
            cases = counted(more, "further case")
            click.echo(f"Not shown: {cases} of the same workload (--each-case shows them)")


def _print_commands(found: Sequence[Series], closed: Closed) -> None:
    """What closes a gate, and what has news, as workflow commands of GitHub."""
    for one, its_gates in zip(found, closed, strict=True):
        if its_gates or one.has_news:
            level = "error" if its_gates else "warning" if one.is_slower() else "notice"
            check = _check(one, its_gates)
            click.echo(triage.command(level, f"{check.name}: {check.words}"))


def _print_tables(found: Sequence[Series], style: str, *, only_news: bool) -> None:
    for title, columns, rows, remark in _tables(found, only_news=only_news):
        if style == "markdown":
            heading, *more = title.split("\n")
            parts = (f"**{heading}**", *more, triage.table(columns, rows), remark)
            click.echo("\n\n".join(filter(None, parts)) + "\n")
            continue
        options.print_table(title, columns, rows)
        if remark:
            click.echo(f"  {remark}\n")


def _check(one: Series, closed: frozenset[str]) -> triage.GateCheck:
    """A series as a test case of CI: its remarks, and what is missing, failed or cannot be told."""
    failed = (f"failed in {point.release}: {_why_failed(point)}" for point in one.failed)
    unknown = (f"{point.release}: {_why_unknown(point)}" for point in one.unknown)
    last = (
        f"{it.release}: {_verdict(it.judgement, one.metric)}" for it in one.newest if it.judgement
    )
    words = "; ".join(dict.fromkeys((*_remarks(one), *failed, *unknown, *last)))
    name = ", ".join(_title(one).split("\n"))
    plain = words.replace("\n", ", ") or "in one release alone"
    return triage.GateCheck(name, plain, one.is_judged, bool(closed))


Table = tuple[str, Sequence[str], Sequence[Sequence[str]], str]
"""A title, columns, rows, and what is to be said below."""


def _tables(found: Sequence[Series], *, only_news: bool) -> Iterator[Table]:
    """Every table that has a row."""
    for one in found:
        if len(one.points) > 1 and (one.has_news or not only_news):
            columns = ("Release", METRICS[one.metric].title, *COLUMNS)
            rows = list(map(partial(_row, one), one.points))
            yield _title(one), columns, rows, "; ".join(_remarks(one))
    # What is in one release alone has nothing to be compared with yet.
    single = [one for one in found if len(one.points) == 1 and not one.missing_in]
    known = [row for row in map(_last, () if only_news else single) if UNKNOWN not in row]
    missing: dict[str, list[tuple[str, ...]]] = {}
    for one in found:
        if one.missing_in:
            name = f"Missing in {one.shown.framework} {one.missing_in}"
            missing.setdefault(name, []).append(_last(one))
    failed = [_because(one, point, _why_failed(point)) for one in found for point in one.failed]
    unknown = [_because(one, point, _why_unknown(point)) for one in found for point in one.untold]
    for title, names, some in (
        ("In one release only", ("Work", "Release", "Figure", "Runs"), known),
        *((title, ("Work", "Last in", "Figure", "Runs"), some) for title, some in missing.items()),
        ("Failed", ("Work", "Releases", "Why"), failed),
        ("Inconclusive", ("Work", "Releases", "Why"), unknown),
    ):
        if some:
            yield title, names, some, ""


def _title(one: Series) -> str:
    it = one.shown
    title = f"{report.workload(it)}\n{it.framework}, {it.origin}"
    if one.level is Level.CONFIGURATION:
        title += f", {report.configuration(it)}"
    return title


def _remarks(one: Series) -> Iterable[str]:
    worse = report.named(Verdict.SLOWER, one.metric)
    if one.regression:
        yield f"first {worse}: {one.regression.release}"
    if one.recovered:
        yield "made up for since"
    for release, ratio in one.change_points.items():
        yield f"change point: {release} ({_change(ratio)})"
    if it := one.decline:  # 1.20 is slower than the best release, 1.0: -21.2 % (0.777 – 0.799)
        within, change = report.interval(it.judgement), _change(it.judgement.ratio)
        of_best = f"{it.best.release}: {change}{'' if within == UNKNOWN else f' ({within})'}"
        yield f"{it.newest.release} is {worse} than the best release, {of_best}"
    yield from [f"missing in {one.missing_in}"] if one.missing_in else []
    yield from ["another layout has taken its place"] if one.gave_way else []
    apart = [point for point in one.points if point.is_apart]
    slower = [point for point in apart if point.verdict is Verdict.SLOWER]
    yield from (f"{worse} than {point.against}: {point.release}" for point in slower)
    if len(apart) > 1:
        names = ", ".join(point.release for point in apart)
        yield f"{names} have no order: none is compared with another"


def _because(one: Series, point: Point, why: str) -> tuple[str, ...]:
    return _work(one), f"{one.shown.framework} {point.against} → {point.release}", why


def _why_failed(point: Point) -> str:
    """How many runs failed; 'out of memory', and on the next line why it has no figures."""
    reason = point.judgement.reason if point.judgement else None
    return report.failed(point.side) or "\n".join(filter(None, (reason, report.ended(point.side))))


def _why_unknown(point: Point) -> str:
    if point.reason_unknown:
        return point.reason_unknown
    has_ratio = point.judgement is not None and point.judgement.ratio is not None
    return report.ended(point.side) or ("no spread" if has_ratio else "no figure of one of them")


def _work(one: Series, marks: str = "") -> str:
    """Its work, for a single case its layout, and marks: each on a line."""
    of_case = one.level is Level.CONFIGURATION
    layout = report.configuration(one.shown) if of_case else ""
    return options.cell(report.workload(one.shown), layout, marks)


def _last(one: Series) -> tuple[str, ...]:
    point, metric = (one.releases or one.points)[-1], METRICS[one.metric]
    figure = report.figure(point.side.shown, metric.name)
    marks = ", ".join(filter(None, (one.shown.origin, metric.title, report.flag(point.side))))
    return _work(one, marks), f"{one.shown.framework} {point.release}", figure, _runs(one, point)


def _row(series: Series, point: Point) -> tuple[str, ...]:
    judged, side = point.judgement, point.side
    notes = (
        point.release,
        f"against {point.against}" if point.is_apart and point.against else "",
        report.changes(point.differences),
        f"◆ moved {_change(moved)}" if (moved := series.change_points.get(point.release)) else "",
        report.runs(side) if side.finished != side.results else "",
        report.containers(side),
        report.ended(side),
        report.flag(side),
        report.median(side, series.metric),
        report.restated(judged, series.metric) if judged else "",
    )
    return (
        "\n".join(filter(None, notes)),
        report.figure(side.shown, series.metric),
        _change(judged.ratio if judged else None),
        report.interval(judged) if judged else UNKNOWN,
        _verdict(judged, series.metric) if judged else "",
        _runs(series, point),
    )


def _verdict(judged: Judgement, metric: str) -> str:
    """Its word; of what cannot be told also how much may be hidden."""
    is_open = judged.is_told and judged.verdict in (Verdict.UNKNOWN, Verdict.RECOVERED)
    reason = judged.reason if is_open else None
    return "\n".join(filter(None, (report.verdict(judged, metric), reason)))


def _runs(series: Series, point: Point) -> str:
    """A bar for each run; of many also how many they are, and from where to where."""
    figures = figures_of(point.side.results, series.metric)
    bars = sparkline(figures, series.extent)
    if len(figures) <= MOST_BARS:
        return bars
    low, high = (report.printed(METRICS[series.metric], end(figures)) for end in (min, max))
    return f"{bars}\n{len(figures)} runs, {low}–{high}"


def _change(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{'+' if ratio >= 1 else ''}{percent(ratio - 1)}"


def sparkline(figures: Sequence[float], between: tuple[float, float]) -> str:
    """A bar for each figure, from the lowest to the highest; half-way up where all are equal.

    Of more than MOST_BARS figures a bar is the mean of neighbors.
    """
    low, high = between
    top, means = len(BLOCKS) - 1, figures
    if len(figures) > MOST_BARS:
        cuts = [place * len(figures) // MOST_BARS for place in range(MOST_BARS + 1)]
        means = [fmean(figures[a:b]) for a, b in pairwise(cuts)]
    places = [(mean - low) / (high - low) if high > low else 0.5 for mean in means]
    return "".join(BLOCKS[round(place * top)] for place in places)


def _summary(found: Sequence[Series], hidden: UnchangedCases | None) -> str:
    followed, others = [one for one in found if len(one.points) > 1], hidden or NONE_LEFT_OUT
    counts = {
        "made up for": sum(one.recovered for one in found),
        "missing in the newest": sum(one.missing_in is not None for one in found),
        "failed": sum(bool(one.failed) for one in found),
        "inconclusive": sum(bool(one.unknown) for one in found) + others.num_unknown,
    }
    named = dict.fromkeys(report.named(Verdict.SLOWER, one.metric) for one in found)
    worse = " or ".join(named or [Verdict.SLOWER])
    parts = [f"{sum(one.is_slower() for one in found)} {worse} than before"]
    parts += [f"{count} {word}" for word, count in counts.items() if count]
    line = f"{len(followed) + others.num_cases} followed over releases: {', '.join(parts)}"
    if hidden is None:
        return line
    num_unchanged = sum(not (one.has_news or one.untold) for one in followed) + hidden.num_cases
    return (
        f"{line}; {num_unchanged} unchanged (hidden; --all shows them)" if num_unchanged else line
    )
