"""The pages of scaling: the same work on more and more GPUs, against the smallest of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

from docutils.nodes import make_id
from markupsafe import Markup

from perfdb import metrics, units
from perfdb.audit.interval import half_unit
from perfdb.metrics import CONVENTION_BOUND, METRICS, TRILLION
from perfdb.site import addresses, charts
from perfdb.site.addresses import audit_entry, slug
from perfdb.site.cells import COMPUTED, HtmlCell, cell, figure_cell, figure_text, formatted, known
from perfdb.site.charts import ChartLine
from perfdb.site.columns import FIGURES, LAYOUT, ORIGIN, ours
from perfdb.site.data import Audited, SiteData, SiteResult
from perfdb.site.grouping import release_title
from perfdb.site.page import Block, Page, Section, no_data, summary_of_names
from perfdb.site.pages import best_results
from perfdb.site.pages.best_results import RATES, Rate
from perfdb.site.pages.comparisons import names
from perfdb.site.series import ScaledModel, ScalingPage, ScalingSeries, efficiency
from perfdb.site.tables import HtmlHead, Made, described, plain, table
from perfdb.site.templates import joined, link, paragraph, render_text, short_hash, to
from perfdb.stated import RATE, figure

RULE: Final = "scaling"
"""The audit's rule that remarks on it."""

_PRINTED: Final = 0.0005
"""Half a unit of an efficiency as it is printed: 100.0 %."""
_DUST: Final = 1e-9
"""What floating-point arithmetic may add."""


def points_above(series: ScalingSeries) -> tuple[SiteResult, ...]:
    """The points whose GPUs are faster than at the smallest scale, beyond rounding."""
    first, *others = series.points
    highest = (1 + _half_unit(first, series.rate)) * (1 + _DUST)
    shares = efficiency(series)
    return tuple(
        one
        for one in others
        if (share := shares[one.num_gpus]) > 1 + _PRINTED
        and share * (1 - _half_unit(one, series.rate)) > highest
    )


def _half_unit(result: SiteResult, rate: Rate) -> float:
    """Half a unit in the last digit of what a rate is stated by, as a share of that."""
    for name in (rate, "tokens_per_sec", "step_time_s"):
        stated: float | None = getattr(result, name)
        if stated:
            return half_unit(stated, name, result.printed.get(name)) / stated
    return 0.0


def efficiency_cell(point: SiteResult, series: ScalingSeries, page: str = "") -> HtmlCell:
    """The efficiency; where it is above 100 %, with a mark that leads to the note on the page."""
    share = efficiency(series)[point.num_gpus]
    text = units.percent(share)
    if point not in points_above(series):
        return HtmlCell(text, sort=share)
    mark = Markup(
        '{}<sup class="perf-mark"><a href="{}#{}" aria-label="why it is above 100 %">*</a></sup>'
    ).format(text, page, f"{series.anchor}-above")
    return HtmlCell(mark, sort=share)


def anomaly_note(series: ScalingSeries, audited: Mapping[int, str]) -> Markup:
    """Where the efficiency is above 100 %, and what is not as at the smallest scale.

    `audited` are the entries of results that the audit's rule remarks on, by their number.
    """
    above = points_above(series)
    if not above:
        return Markup("")
    counts = ", ".join(f"{one.num_gpus:,}" for one in above)
    first = series.points[0]
    batch = ["samples per GPU"] if series.scaling == "strong" else []
    other = ", ".join([*batch, *names(above, first)])
    why = (
        f"Not the same at both: {other}."
        if other
        else ("The rows state no difference in configuration.")
    )
    text = (
        f"* Above 100 % at {counts} GPUs: each GPU is faster there than at the smallest scale, "
        f"{units.counted(first.num_gpus, 'GPU')}. {why}"
    )
    found = [
        (
            units.counted(one.num_gpus, "GPU"),
            audit_entry(one.framework, one.release, audited[one.result_id]),
        )
        for one in series.points
        if one.result_id in audited
    ]
    return render_text(
        '<p class="perf-note" id="{{ anchor }}">{{ text }}'
        "{% if found %} The audit's findings: {% for gpus, entry in found %}"
        '<a href="{{ entry }}">{{ gpus }}</a>{% if not loop.last %}, {% endif %}{% endfor %}.'
        "{% endif %}</p>\n",
        anchor=f"{series.anchor}-above",
        text=text,
        found=found,
    )


BASELINE: Final = 80.0
"""In percent: where the axis of efficiencies begins at the highest, as else noise looks large."""


def of_series(title: str, given: Sequence[ScalingSeries]) -> list[Markup]:
    """The rate of each GPU in every series against the ideal, and what share of it that is.

    Two drawings for each kind of rate.
    """
    by_rate = {rate: [series for series in given if series.rate == rate] for rate in RATES}
    return [_chart(title, rate, some) for rate, some in by_rate.items() if some]


def _chart(title: str, rate: Rate, series: Sequence[ScalingSeries]) -> Markup:
    shown = series[: charts.MOST_LINES]
    drawn = joined((_rates(title, rate, shown), _efficiencies(title, shown)))
    which = f"The first {len(shown)} of {len(series)} series are drawn."
    return charts.with_note(drawn, best_results.note(which if len(series) > len(shown) else ""))


def _rates(title: str, rate: Rate, shown: Sequence[ScalingSeries]) -> Markup:
    lines = [
        ChartLine(
            _label(one),
            tuple((float(it.num_gpus), figure(it, rate) or 0.0) for it in one.points),
            tuple(figure_text(it, rate) for it in one.points),
        )
        for one in shown
    ]
    name = "ideal: as at the smallest scale"
    ideal = [
        ChartLine(name, tuple((gpus, line.points[0][1]) for gpus, _ in line.points), ideal=True)
        for line in lines
    ]
    return charts.over_gpus(title, METRICS[rate].title, [*lines, *ideal])


def _efficiencies(title: str, shown: Sequence[ScalingSeries]) -> Markup:
    """In percent, from so far below the lowest on that a loss of a few can be seen."""
    shares = [efficiency(one) for one in shown]
    lines = [
        ChartLine(
            _label(one),
            tuple((float(gpus), share * 100) for gpus, share in some.items()),
            tuple(map(units.percent, some.values())),
        )
        for one, some in zip(shown, shares, strict=True)
    ]
    ends = [end(gpus for some in shares for gpus in some) for end in (min, max)]
    ideal = ChartLine("ideal", tuple((float(gpus), 100.0) for gpus in ends), ideal=True)
    lowest = 100 * min(chain.from_iterable(some.values() for some in shares))
    low = max(0.0, min(BASELINE, lowest // 10 * 10 - 10))
    axis = f"Efficiency (%), axis from {low:g}"
    return charts.over_gpus(f"{title}: efficiency", axis, [*lines, ideal], low)


def _label(series: ScalingSeries) -> str:
    first = series.points[0]
    parts = (
        best_results.precision_of(first),
        f"sequence {first.sequence_length:,}",
        f"{series.scaling} scaling",
    )
    return " · ".join(filter(None, parts))


WHAT: Final = (
    "The same work on more and more GPUs. Efficiency is the rate of each GPU as a share of that at "
    "the smallest scale. Rows with open errors are in no series."
)
NONE: Final = "The store has no work at two or more numbers of GPUs yet."
HOW: Final = (
    "Where several configurations were run at a scale, the fastest is shown; what of the "
    "configuration changes with the scale has a column. Efficiency and days are computed from the "
    "rates; a rate that is not stated is computed from those that are, or from the step time, and "
    "says so. Days are those of 10¹² tokens without a pause. Rows with open errors are in no "
    "series."
)


def pages(data: SiteData) -> Iterator[Page]:
    """The page of each release over the numbers of GPUs of a system, and their list."""
    releases = len({(it.framework, it.release) for it in data.scaling})
    number = units.counted(releases, "release")
    about = f"The same work on more and more GPUs, with its efficiency, in {number}."
    below = [page.document for page in data.scaling]
    body = partial(_index, data.scaling, bool(data.results))
    yield Page(addresses.SCALING, "Scaling", about, body, below=below)
    for page in data.scaling:
        release = release_title(page.framework, page.release)
        title = f"Scaling of {release} on {page.system_title}"
        names = summary_of_names(one.title for one in page.models)
        about = f"{title}: {names}, with the efficiency at each scale."
        body = partial(_scaling, _with_entries(page, data.audited))
        yield Page(page.document, title, about, body, has_contents=True)


def _with_entries(page: ScalingPage, audited: Iterable[Audited]) -> ScalingPage:
    """The page with the entries of those of its results whose scaling the audit remarks on."""
    every = [series for scaled in page.models for series in scaled.series]
    shown = {result.result_id for series in every for result in series.points}
    entries = {
        entry.result.result_id: entry.anchor
        for entry in audited
        if entry.result.result_id in shown and any(it.rule == RULE for it in entry.findings)
    }
    return replace(page, audited=entries)


def _index(pages_: Sequence[ScalingPage], any_results: bool) -> list[Block]:
    """The list: each series with its smallest and largest scale, and the efficiency at the end."""
    if not pages_:
        return [paragraph(NONE) if any_results else no_data()]
    heads = [
        HtmlHead("Work"),
        HtmlHead("Series", wide=True),
        HtmlHead("GPUs", numeric=True),
        HtmlHead("Efficiency at the largest", numeric=True, near=True),
        HtmlHead("Release"),
    ]
    rows = [
        _index_row(f"{model.title} on {on.system_title}", series, on)
        for on in pages_
        for model in on.models
        for series in model.series
    ]
    return [paragraph(WHAT), plain("Scaling", heads, rows)]


def _index_row(title: str, series: ScalingSeries, on: ScalingPage) -> list[HtmlCell | str]:
    release = release_title(on.framework, on.release)
    page = to(addresses.of_release(on.framework, on.release))
    smallest, *_, largest = series.points
    sizes = f"{smallest.num_gpus:,} to {largest.num_gpus:,}"
    return [
        HtmlCell(link(title, on.document, series.anchor), sort=title),
        series.title,
        HtmlCell(sizes, sort=largest.num_gpus),
        efficiency_cell(largest, series, to(on.document)),
        HtmlCell(Markup('<a href="{}">{}</a>').format(page, short_hash(release)), sort=release),
    ]


def _scaling(page: ScalingPage) -> list[Block]:
    """The sources of the figures, what is computed, and a section for each model."""
    head = render_text(
        '<p><a href="{{ tab }}">{{ release }}</a> · {{ link(system_title, system) }} · '
        "{{ link('every series', scaling) }}</p>\n<p>{{ how }}</p>\n",
        tab=addresses.tab(page.framework, page.release, page.system),
        release=release_title(page.framework, page.release),
        system=addresses.of_system(page.system),
        system_title=page.system_title,
        scaling=addresses.SCALING,
        how=HOW,
    )
    return [head, *(Section(one.title, [_model(one, page)]) for one in page.models)]


def _model(scaled: ScaledModel, page: ScalingPage) -> Markup:
    """The charts of a model, and the table of each series; #llama3-8b leads here."""
    title = f"{scaled.title} on {page.system_title}"
    # the heading above it may have the same anchor
    is_same = make_id(scaled.title) == slug(scaled.model)
    return render_text(
        '<div class="perf-at"{% if anchor %} id="{{ anchor }}"{% endif %}>'
        "{% for part in parts %}{{ part }}{% endfor %}"
        "<p>{{ link('Every result of ' ~ model, document) }}</p>\n</div>\n",
        anchor="" if is_same else slug(scaled.model),
        parts=[
            *of_series(title, scaled.series),
            *(_series_table(title, series, page.audited) for series in scaled.series),
        ],
        model=scaled.title,
        document=addresses.of_model(scaled.model),
    )


def _series_table(title: str, series: ScalingSeries, audited: Mapping[int, str]) -> Markup:
    """The table of a series."""
    every = [
        *_figures(series),
        *_as_printed(series.points),
        *described(ours(*LAYOUT), series.points),
        (HtmlHead("Origin"), [cell(ORIGIN, point) for point in series.points]),
    ]
    same = _the_same(series.points)
    made = table(
        f"{title}: {series.title}",
        [
            (head, cells)
            for head, cells in every
            if any(it.content != units.UNKNOWN for it in cells)
        ],
        ids=[f"{series.anchor}-{point.num_gpus}" for point in series.points],
        notes=[(*same, *_counted_by(point, series.rate)) for point in series.points],
    )
    above = anomaly_note(series, audited)
    left_out = best_results.note(best_results.contradicted(series.wrong))
    return render_text(
        '<h3 id="{{ series.anchor }}">{{ series.title }}</h3>\n{{ table }}{{ above }}'
        "{{ left_out }}",
        series=series,
        table=made,
        above=above,
        left_out=left_out,
    )


def _figures(series: ScalingSeries) -> list[Made]:
    """The scale and its figures: as stated where it is stated, else computed."""
    return [
        _column("GPUs", None, (f"{point.num_gpus:,}" for point in series.points)),
        _figure(METRICS[series.rate].title, series.rate, series),
        (HtmlHead("Efficiency", "the rate of each GPU ÷ that at the smallest scale", numeric=True),
         [efficiency_cell(point, series) for point in series.points]),
        _figure("MFU", "mfu", series),
        _figure("Step time (s)", "step_time_s", series),
        (HtmlHead("Tokens/s, all GPUs", "as stated, else tokens/s/GPU × GPUs", numeric=True),
         [_of_all(point) for point in series.points]),
        _column("Days to 1T tokens", "10¹² ÷ tokens/s of all GPUs ÷ 86,400",
                (units.significant(_days(point)) for point in series.points)),
        _column("GBS", None, (f"{point.global_batch_size:,}" for point in series.points)),
    ]  # fmt: skip


def _as_printed(points: Sequence[SiteResult]) -> Iterator[Made]:
    """The columns of the source that are none of ours and not the same at every scale."""
    for name, texts in _extras(points).items():
        if len(set(texts)) > 1:
            yield _column(f"{name} (as printed)", None, (text or units.UNKNOWN for text in texts))


def _extras(points: Sequence[SiteResult]) -> dict[str, list[str]]:
    """The texts of each column of the source that has no field, by its title."""
    titles = dict.fromkeys(title for point in points for title in point.extras)
    return {title: [point.extras.get(title, "") for point in points] for title in titles}


def _the_same(points: Sequence[SiteResult]) -> tuple[str, ...]:
    """The footnote on what is known and the same at every scale: the layout, what was printed."""
    parts = []
    for column in ours(*LAYOUT):
        first, *others = (known(column, point) for point in points)
        if first is not None and all(value == first for value in others):
            parts.append(f"{column.title} {formatted(column, first)}")
    for name, texts in _extras(points).items():
        if texts[0] and len(set(texts)) == 1:
            parts.append(f"{name} {texts[0]} (as printed)")
    return (f"{', '.join(parts)}.",) if parts else ()


def _figure(title: str, metric: str, series: ScalingSeries) -> Made:
    cells = [figure_cell(point, metric) for point in series.points]
    return HtmlHead(title, numeric=True), cells


def _column(title: str, hint: str | None, texts: Iterable[str]) -> Made:
    return HtmlHead(title, hint, numeric=True), [HtmlCell(text) for text in texts]


def _counted_by(result: SiteResult, rate: Rate) -> tuple[str, ...]:
    """The footnote on how FLOPs are counted in those of its figures that the table has."""
    shown = (rate, "mfu")
    is_bound = any(name in CONVENTION_BOUND and figure(result, name) for name in shown)
    named = result.flops_convention if is_bound else None
    return (f"FLOPs convention: {named}.",) if named else ()


def _of_all(result: SiteResult) -> HtmlCell:
    total = _total(result)
    mark = "" if total is None or result.tokens_per_sec else COMPUTED
    return HtmlCell(f"{formatted(FIGURES[RATE], total)}{mark}", sort=total)


def _total(result: SiteResult) -> float | None:
    """Tokens per second of all GPUs."""
    each = figure(result, "tokens_per_sec_per_gpu")
    if result.tokens_per_sec or each is None:
        return result.tokens_per_sec
    return metrics.global_tokens_per_sec(each, result.num_gpus)


def _days(result: SiteResult) -> float | None:
    total = _total(result)
    return metrics.days_to_train(TRILLION, total) if total else None
