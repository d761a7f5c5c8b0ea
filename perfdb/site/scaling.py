"""The pages of scaling: the same work on more and more GPUs, against the smallest of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from perfdb import metrics, units
from perfdb.metrics import METRICS
from perfdb.record import Frozen
from perfdb.site import addresses, bests, charts, markup, tables
from perfdb.site.addresses import Address
from perfdb.site.charts import Line
from perfdb.site.contents import Contents
from perfdb.site.data import Result
from perfdb.site.markup import Cell, Head, Html, joined, link, tag
from perfdb.site.page import (
    NO_DATA,
    Kind,
    Page,
    document,
    numbered,
    part,
    section,
    shown,
    toctree,
)
from perfdb.site.profiles import CP, EP, ETP, FSDP, LBS, MBS, ORIGIN, PP, TP, VP
from perfdb.site.series import RATES, Rate, ScalingPage, Series, efficiency, groups, rate_of
from perfdb.site.words import release_title

TRILLION: Final = 1e12

MOST_LINES: Final = 6
"""Series that a chart has at most; each has its table."""

LAYOUT: Final = (MBS, LBS, TP, PP, CP, EP, ETP, VP, FSDP)
"""The columns of a configuration."""

Column = tuple[Head, list[Cell]]


class ScalingLine(Frozen):
    """A line of the list of scaling pages: a series, from its smallest to its largest scale."""

    document: str
    release: str
    title: str
    series: Series


class ScalingIndex(Frozen):
    """The list of scaling pages."""

    lines: tuple[ScalingLine, ...]


def _pages(contents: Contents) -> Iterator[Page]:
    pages = groups(contents.results)
    yield _index(pages)
    for page in pages:
        release = release_title(page.framework, page.release)
        title = f"{page.model_title} on {page.system_title}, {release}"
        parts = [
            section(series.title, shown("scaling-series", number))
            for number, series in enumerate(page.series)
        ]
        yield Page(page.document, document(title, shown("scaling-head"), *parts), page)


def _index(pages: Sequence[ScalingPage]) -> Page:
    if not pages:
        none = "The store has no work at two or more numbers of GPUs yet.\n"
        return Page(addresses.SCALING, document("Scaling", none, NO_DATA, orphan=True))
    lines = tuple(
        ScalingLine(
            document=page.document,
            release=release_title(page.framework, page.release),
            title=f"{page.model_title} on {page.system_title}",
            series=series,
        )
        for page in pages
        for series in page.series
    )
    text = document(
        "Scaling",
        "The same work on more and more GPUs. Efficiency is the rate of each GPU as a share of "
        "that at the smallest scale.\n",
        shown("scaling"),
        toctree(page.document for page in pages),
        orphan=True,
    )
    return Page(addresses.SCALING, text, ScalingIndex(lines=lines))


def index(page: ScalingIndex, address: Address) -> Html:
    """The list: each series with its smallest and largest scale, and the efficiency at the end."""
    heads = [Head("Work"), Head("Release"), Head("Series", wide=True)]
    heads += [Head(title, numeric=True) for title in ("GPUs", "Efficiency at the largest")]
    rows = [_index_row(line, address) for line in page.lines]
    return markup.table(markup.Table("Scaling", heads, rows))


def _index_row(line: ScalingLine, address: Address) -> list[Cell]:
    series = line.series
    scales = [point.num_gpus for point in series.points]
    share = efficiency(series)[scales[-1]]
    return [
        Cell(link(line.title, address(line.document)), sort=line.title),
        Cell(line.release),
        Cell(series.title),
        Cell(f"{scales[0]:,} to {scales[-1]:,}", sort=scales[-1]),
        Cell(units.percent(share), sort=share),
    ]


def head(page: ScalingPage, address: Address) -> Html:
    """Where the figures are from, what is computed, and the charts."""
    release = addresses.of_tab(page.framework, page.release, page.system, address)
    links = (
        link(release_title(page.framework, page.release), release),
        link(page.model_title, address(addresses.of_model(page.model))),
        link(page.system_title, address(addresses.of_system(page.system))),
    )
    said = (
        "Where several configurations were run at a scale, the fastest is shown; what of the "
        "configuration changes with the scale has a column. Efficiency and days are computed from "
        "the rates, and a rate that is not stated from the step time. Days are those of 10¹² "
        "tokens without a pause."
    )
    return joined((tag("p", joined(links, " · ")), tag("p", said), *_charts(page)))


def _charts(page: ScalingPage) -> list[Html]:
    """The rate of each GPU in every series against the ideal; a drawing for each kind of rate."""
    return [
        _chart(f"{page.model_title} on {page.system_title}", rate, series)
        for rate in RATES
        if (series := [one for one in page.series if one.rate == rate])
    ]


def _chart(title: str, rate: Rate, series: Sequence[Series]) -> Html:
    shown = series[:MOST_LINES]
    given = [[(float(it.num_gpus), rate_of(it, rate) or 0.0) for it in one.points] for one in shown]
    lines = [Line(_label(one), tuple(points)) for one, points in zip(shown, given, strict=True)]
    ideal = [
        Line(
            "ideal: as at the smallest scale",
            tuple((gpus, points[0][1]) for gpus, _ in points),
            True,
        )
        for points in given
    ]
    drawn = charts.over_gpus(title, METRICS[rate].title, [*lines, *ideal])
    if len(shown) == len(series):
        return drawn
    note = tag(
        "p", f"The first {len(shown)} of {len(series)} series are drawn.", class_="perf-note"
    )
    return joined((drawn, note))


def _label(series: Series) -> str:
    first = series.points[0]
    known = (
        bests.precision_of(first),
        f"sequence {first.sequence_length:,}",
        f"{series.scaling} scaling",
    )
    return " · ".join(filter(None, known))


def series_of(page: ScalingPage, number: int, address: Address) -> Html:
    """The table of a series."""
    series = page.series[number]
    title = f"{page.model_title} on {page.system_title}: {series.title}"
    return _table(title, series, address)


def _table(title: str, series: Series, address: Address) -> Html:
    columns = [
        *_figures(series),
        *_as_printed(series.points),
        *_layout(series.points, address),
        (Head("Origin"), [tables.printed(ORIGIN, one, address) for one in series.points]),
    ]
    said = [(head, cells) for head, cells in columns if _says_something(cells)]
    rows = list(zip(*(cells for _, cells in said), strict=True))
    return markup.table(markup.Table(title, [head for head, _ in said], rows))


def _says_something(cells: Iterable[Cell]) -> bool:
    return any(cell.content != units.UNKNOWN for cell in cells)


def _figures(series: Series) -> list[Column]:
    """The scale and its figures: as stated where it is stated, else computed."""
    shares = efficiency(series)
    return [
        _column("GPUs", None, (f"{one.num_gpus:,}" for one in series.points)),
        _column("GBS", None, (f"{one.global_batch_size:,}" for one in series.points)),
        _column("Step time (s)", None, (bests.said(one, "step_time_s") for one in series.points)),
        _column(METRICS[series.rate].title, None,
                (_rate(one, series.rate) for one in series.points)),
        _column("Tokens/s, all GPUs", "as stated, else tokens/s/GPU × GPUs",
                (units.number(_total(one)) for one in series.points)),
        _column("MFU", None, (bests.said(one, "mfu") for one in series.points)),
        _column("Efficiency", "the rate of each GPU ÷ that at the smallest scale",
                (units.percent(shares[one.num_gpus]) for one in series.points)),
        _column("Days to 1T tokens", "10¹² ÷ tokens/s of all GPUs ÷ 86,400",
                (units.significant(_days(one)) for one in series.points)),
    ]  # fmt: skip


def _as_printed(points: Sequence[Result]) -> list[Column]:
    """The columns of the source that are none of ours."""
    names = dict.fromkeys(name for one in points for name in one.extras)
    return [
        _column(
            f"{name} (as printed)", None, (one.extras.get(name, units.UNKNOWN) for one in points)
        )
        for name in names
    ]


def _layout(points: Sequence[Result], address: Address) -> list[Column]:
    """What of the configuration is not the same at every scale."""
    columns = [
        (tables.head(column), [tables.printed(column, one, address) for one in points])
        for column in LAYOUT
    ]
    return [(head, cells) for head, cells in columns if len({cell.content for cell in cells}) > 1]


def _column(title: str, hint: str | None, texts: Iterable[str]) -> Column:
    return Head(title, hint, numeric=True), [Cell(text) for text in texts]


def _rate(result: Result, rate: Rate) -> str:
    if bests.figure(result, rate) is not None:
        return bests.said(result, rate)
    return units.significant(rate_of(result, rate))


def _total(result: Result) -> float | None:
    """Tokens per second of all GPUs."""
    each = rate_of(result, "tokens_per_sec_per_gpu")
    if result.tokens_per_sec or each is None:
        return result.tokens_per_sec
    return metrics.global_tokens_per_sec(each, result.num_gpus)


def _days(result: Result) -> float | None:
    total = _total(result)
    return metrics.days_to_train(TRILLION, total) if total else None


KIND = Kind(
    _pages,
    {
        "scaling": part(ScalingIndex, index),
        "scaling-head": part(ScalingPage, head),
        "scaling-series": numbered(ScalingPage, series_of),
    },
)
