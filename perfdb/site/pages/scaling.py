"""The pages of scaling: the same work on more and more GPUs, against the smallest of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Final

from docutils.nodes import make_id
from markupsafe import Markup

from perfdb import catalog, metrics, units
from perfdb.audit.interval import half_unit
from perfdb.catalog import colors
from perfdb.compare.scaling import RATES, Rate, Scaled, qualifiers, same_work, series_of
from perfdb.compare.scaling import efficiency as shares_of
from perfdb.groups import grouped
from perfdb.metrics import CONVENTION_BOUND, METRICS, TRILLION
from perfdb.site import addresses, charts
from perfdb.site.addresses import slug
from perfdb.site.cells import COMPUTED, HtmlCell, cells, figure_cell, figure_text, formatted, known
from perfdb.site.charts import ChartLine
from perfdb.site.columns import FIGURES, LAYOUT, ORIGIN, ours
from perfdb.site.data import Audited, SiteData, SiteResult
from perfdb.site.grouping import (
    is_on_gpus,
    newest_first,
    release_title,
    section_title,
    system_order,
)
from perfdb.site.page import Block, Section, SitePage, no_data, summary_of_names
from perfdb.site.pages.comparisons import names
from perfdb.site.pages.parts import heads, label, link_cell, note, precision_of, rows_left_out
from perfdb.site.tables import HtmlHead, Made, described, plain, table
from perfdb.site.templates import href, joined, paragraph, render, to
from perfdb.stated import RATE, figure
from perfdb.versions import natural

RULE: Final = "scaling"
"""The rule of the audit that notes where work does not scale."""
BASELINE: Final = 80.0
"""In percent: where the axis of efficiencies begins at the highest, as else noise looks large."""
WHAT: Final = (
    "The same work on more GPUs. Efficiency is the rate per GPU ÷ that at the smallest scale. Rows "
    "with open errors are left out."
)
NONE: Final = "No work has results on two or more GPU counts yet."

_PRINTED: Final = 0.0005
"""Half a unit of an efficiency as it is printed: 100.0 %."""
_DUST: Final = 1e-9
"""What floating-point arithmetic may add."""


@dataclass(frozen=True)
class ScalingSeries(Scaled[SiteResult]):
    """The same work on two or more numbers of GPUs, with its place on a page."""

    @property
    def anchor(self) -> str:
        """What it is called on its page, the same in every build and whatever its figures."""
        first = self.points[0]
        known = (first.model, *same_work(first, self.scaling), self.scaling, self.rate)
        return addresses.hashed("series", known)

    @property
    def title(self) -> str:
        """'Pre-training, FP8, sequence 4,096: weak scaling, 4 samples per GPU'."""
        first = self.points[0]
        per_gpu = Fraction(first.global_batch_size, first.num_gpus)
        samples = f"{per_gpu} sample{'' if per_gpu == 1 else 's'} per GPU"
        batch = samples if self.scaling == "weak" else f"GBS {first.global_batch_size:,}"
        known = (
            section_title(first.task, first.variant),
            qualifiers(first),
            precision_of(first),
            f"sequence {first.sequence_length:,}",
            first.origin,
        )
        return f"{', '.join(filter(None, known))}: {self.scaling} scaling, {batch}"


@dataclass(frozen=True, kw_only=True)
class ScaledModel:
    """The series of a model."""

    model: str
    title: str
    series: tuple[ScalingSeries, ...]


@dataclass(frozen=True, kw_only=True)
class ScalingPage:
    """Everything on the page of a release over numbers of GPUs of a system.

    `audited` are the entries of results whose scaling the audit remarks on, by their number in the
    store.
    """

    framework: str
    release: str | None
    system: str
    system_title: str
    models: tuple[ScaledModel, ...]
    audited: Mapping[int, str] = field(default_factory=dict)

    @property
    def document(self) -> str:
        return addresses.of_scaling(self.framework, self.release, self.system)


def of_results(results: Iterable[SiteResult]) -> list[ScalingPage]:
    """A page for each release and system with a series."""
    found = grouped(results, lambda one: (one.framework, one.release, one.system))
    pages = []
    for (framework, release, system), some in found.items():
        models = grouped(some, lambda one: one.model).values()
        scaled = [
            ScaledModel(model=of_model[0].model, title=of_model[0].model_title, series=series)
            for of_model in sorted(models, key=lambda rows: natural(rows[0].model_title))
            # every way in which they are the same work at several scales, weak scaling first
            if (series := tuple(ScalingSeries(**vars(one)) for one in series_of(of_model)))
        ]
        if scaled:
            pages.append(
                ScalingPage(
                    framework=framework,
                    release=release,
                    system=system,
                    system_title=some[0].system_title,
                    models=tuple(scaled),
                )
            )
    return pages


def in_order(pages: Iterable[ScalingPage], results: Sequence[SiteResult]) -> list[ScalingPage]:
    """Pages of these results, the newest release first; of CPUs where there is nothing else."""
    known = sorted(pages, key=lambda page: system_order(page.system))
    on_gpus = [page for page in known if catalog.has_gpus(page.system)]
    return newest_first(on_gpus if any(map(is_on_gpus, results)) else known, results)


def efficiency(series: ScalingSeries) -> dict[int, float]:
    """The rate of each GPU as a share of that at the smallest scale, by number of GPUs."""
    return shares_of(series.points, series.rate)


def pages(data: SiteData) -> Iterator[SitePage]:
    """The page of each release over the numbers of GPUs of a system, and their list."""
    releases = len({(it.framework, it.release) for it in data.scaling})
    number = units.counted(releases, "release")
    about = f"The same work on more GPUs, with its efficiency, in {number}."
    below = [page.document for page in data.scaling]
    body = partial(_index, data.scaling, bool(data.results))
    yield SitePage(addresses.SCALING, "Scaling", about, body, below=below)
    for page in data.scaling:
        release = release_title(page.framework, page.release)
        title = f"Scaling of {release} on {page.system_title}"
        models = summary_of_names(one.title for one in page.models)
        about = f"{title}: {models}, with the efficiency at each scale."
        body = partial(_scaling, _with_entries(page, data.audited))
        yield SitePage(page.document, title, about, body, has_contents=True)


def _with_entries(page: ScalingPage, audited: Iterable[Audited]) -> ScalingPage:
    """The page with the audit's entries on the scaling of its results."""
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
    rows: list[list[HtmlCell | str]] = []
    for page in pages_:
        release = release_title(page.framework, page.release)
        at = to(addresses.of_release(page.framework, page.release))
        for scaled, series in ((one, it) for one in page.models for it in one.series):
            smallest, *_, largest = series.points
            sizes = f"{smallest.num_gpus:,} to {largest.num_gpus:,}"
            title = f"{scaled.title} on {page.system_title}"
            work = link_cell(title, page.document, series.anchor)
            share = efficiency_cell(largest, series, to(page.document))
            gpus = HtmlCell(sizes, sort=largest.num_gpus)
            link = HtmlCell(href(release, at), sort=release)
            rows.append([work, series.title, gpus, share, link])
    titles = heads("Work", "~Series", "#GPUs", "Efficiency at the largest", "Release")
    titles[3] = replace(titles[3], numeric=True, near=True)
    return [paragraph(WHAT), plain("Scaling", titles, rows)]


def _scaling(page: ScalingPage) -> list[Block]:
    """Where the figures are from, what is computed, and a section for each model."""
    head = render(
        "scaling_head",
        tab=addresses.tab(page.framework, page.release, page.system),
        release=release_title(page.framework, page.release),
        system=addresses.of_system(page.system),
        system_title=page.system_title,
        scaling=addresses.SCALING,
    )
    return [head, *(Section(one.title, [_model(one, page)]) for one in page.models)]


def _model(scaled: ScaledModel, page: ScalingPage) -> Markup:
    """The charts of a model, and the table of each series; #llama3-8b leads here."""
    title = f"{scaled.title} on {page.system_title}"
    # the heading above it may have the same anchor
    is_same = make_id(scaled.title) == slug(scaled.model)
    return render(
        "scaled_model",
        anchor="" if is_same else slug(scaled.model),
        charts=[
            _charts(title, rate, some)
            for rate in RATES
            if (some := [series for series in scaled.series if series.rate == rate])
        ],
        series=[_series(title, series, page.audited) for series in scaled.series],
        model=scaled.title,
        document=addresses.of_model(scaled.model),
    )


def _charts(title: str, rate: Rate, series: Sequence[ScalingSeries]) -> Markup:
    """The rate of each GPU against the ideal, and the share of the ideal that it is."""
    shown = series[: charts.MOST_LINES]
    rates, shares = [], []
    for one in shown:
        first, values = one.points[0], efficiency(one)
        named = label(("precision", "sequence length"), first) + f" · {one.scaling} scaling"
        colour = charts.colour(colors.of_precision(first.precision))
        points = tuple((float(it.num_gpus), figure(it, rate) or 0.0) for it in one.points)
        texts = tuple(figure_text(it, rate) for it in one.points)
        rates.append(ChartLine(named, points, texts, colour=colour))
        points = tuple((float(gpus), share * 100) for gpus, share in values.items())
        texts = tuple(map(units.percent, values.values()))
        shares.append(ChartLine(named, points, texts, colour=colour))
    name = "ideal"
    ideal = [
        ChartLine(name, tuple((gpus, line.points[0][1]) for gpus, _ in line.points), ideal=True)
        for line in rates
    ]
    every = [point for line in shares for point in line.points]
    ends = min(every)[0], max(every)[0]
    # from so far below the lowest on that a loss of a few percent can be seen
    low = max(0.0, min(BASELINE, min(share for _, share in every) // 10 * 10 - 10))
    flat = ChartLine("ideal", tuple((gpus, 100.0) for gpus in ends), ideal=True)
    axis = f"Efficiency (%), axis from {low:g}"
    drawn = (
        charts.over_gpus(title, METRICS[rate].title, [*rates, *ideal]),
        charts.over_gpus(f"{title}: efficiency", axis, [*shares, flat], low),
    )
    which = f"The chart shows {len(shown)} of {len(series)} series."
    return charts.with_note(joined(drawn), note(which if len(series) > len(shown) else ""))


def _series(title: str, series: ScalingSeries, audited: Mapping[int, str]) -> dict[str, object]:
    """The heading of a series, its table and its notes."""
    every = [*_figures(series), *_layout(series.points)]
    made = table(
        f"{title}: {series.title}",
        [one for one in every if any(cell.content != units.UNKNOWN for cell in one[1])],
        ids=[f"{series.anchor}-{point.num_gpus}" for point in series.points],
        notes=list(_notes(series)),
    )
    above = points_above(series)
    return {
        "anchor": series.anchor,
        "title": series.title,
        "table": made,
        "above": above,
        "first": series.points[0].num_gpus,
        "other": [
            *(["samples per GPU"] if series.scaling == "strong" else []),
            *names(above, series.points[0]),
        ],
        "findings": [
            (
                units.counted(it.num_gpus, "GPU"),
                addresses.audit_entry(it.framework, it.release, audited[it.result_id]),
            )
            for it in series.points
            if it.result_id in audited
        ],
        "left_out": rows_left_out(series.wrong),
    }


def points_above(series: ScalingSeries) -> tuple[SiteResult, ...]:
    """The points at which a GPU is faster than at the smallest scale, beyond rounding."""
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
    """Half a unit in the last digit of the figure that states a rate, as a share of the figure."""
    for name in (rate, "tokens_per_sec", "step_time_s"):
        stated: float | None = getattr(result, name)
        if stated:
            return half_unit(stated, name, result.printed.get(name)) / stated
    return 0.0


def efficiency_cell(point: SiteResult, series: ScalingSeries, page: str = "") -> HtmlCell:
    """The efficiency; above 100 % it has a mark that leads to the note on the page."""
    share = efficiency(series)[point.num_gpus]
    text = units.percent(share)
    if point not in points_above(series):
        return HtmlCell(text, sort=share)
    mark = Markup(
        '{}<sup class="perf-mark"><a href="{}#{}-above" aria-label="why it is above 100 %">*</a>'
        "</sup>"
    ).format(text, page, series.anchor)
    return HtmlCell(mark, sort=share)


def _figures(series: ScalingSeries) -> list[Made]:
    """The scale and its figures: as stated where it is stated, else computed."""
    points = series.points
    days = [metrics.days_to_train(TRILLION, it) if it else None for it in map(_total, points)]
    columns = {
        "#GPUs": [HtmlCell(f"{it.num_gpus:,}") for it in points],
        f"#{METRICS[series.rate].title}": [figure_cell(it, series.rate) for it in points],
        "#Efficiency|the rate of each GPU ÷ that at the smallest scale": [
            efficiency_cell(it, series) for it in points
        ],
        "#MFU": [figure_cell(it, "mfu") for it in points],
        "#Step time (s)": [figure_cell(it, "step_time_s") for it in points],
        "#Tokens/s, all GPUs|as stated, else tokens/s/GPU × GPUs": [
            HtmlCell(
                formatted(FIGURES[RATE], total)
                + ("" if total is None or it.tokens_per_sec else COMPUTED),
                sort=total,
            )
            for it in points
            for total in (_total(it),)
        ],
        "#Days to 1T tokens|10¹² ÷ tokens/s of all GPUs ÷ 86,400": [
            HtmlCell(units.significant(it)) for it in days
        ],
        "#GBS": [HtmlCell(f"{it.global_batch_size:,}") for it in points],
    }
    return list(zip(heads(*columns), columns.values(), strict=True))


def _total(result: SiteResult) -> float | None:
    """Tokens per second of all GPUs."""
    each = figure(result, RATE)
    if result.tokens_per_sec or each is None:
        return result.tokens_per_sec
    return metrics.global_tokens_per_sec(each, result.num_gpus)


def _layout(points: Sequence[SiteResult]) -> Iterator[Made]:
    """What differs between the scales: columns of the source without a field, and the layout."""
    for title, texts in _extras(points).items():
        if len(set(texts)) > 1:
            head = HtmlHead(f"{title} (as printed)", numeric=True)
            yield head, [HtmlCell(text or units.UNKNOWN) for text in texts]
    yield from described(ours(*LAYOUT), points)
    yield HtmlHead("Origin"), cells(ORIGIN, points)


def _extras(points: Sequence[SiteResult]) -> dict[str, list[str]]:
    """The texts of each column of the source that has no field of ours, by its title."""
    titles = dict.fromkeys(title for point in points for title in point.extras)
    return {title: [point.extras.get(title, "") for point in points] for title in titles}


def _notes(series: ScalingSeries) -> Iterator[list[str]]:
    """The footnotes of each point: what is known and the same at every scale, and how FLOPs count.

    The same are the layout, and what the source printed.
    """
    same = []
    for column in ours(*LAYOUT):
        first, *others = (known(column, point) for point in series.points)
        if first is not None and all(value == first for value in others):
            same.append(f"{column.title} {formatted(column, first)}")
    for title, (first_text, *texts) in _extras(series.points).items():
        if first_text and {*texts} == {first_text}:
            same.append(f"{title} {first_text} (as printed)")
    for point in series.points:
        figures = [it for it in (series.rate, "mfu") if figure(point, it)]
        is_bound = any(it in CONVENTION_BOUND for it in figures)
        convention = point.flops_convention if is_bound else None
        notes = [f"{', '.join(same)}."] if same else []
        yield [*notes, *([f"FLOPs convention: {convention}."] if convention else [])]
