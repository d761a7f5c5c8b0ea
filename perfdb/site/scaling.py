"""The pages of scaling: the same work on more and more GPUs, against the smallest of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from docutils.nodes import make_id

from perfdb import metrics, units
from perfdb.metrics import CONVENTION_BOUND, METRICS, TRILLION
from perfdb.record import Frozen
from perfdb.site import (
    addresses,
    bests,
    columns,
    figures,
    markup,
    scaling_charts,
    superlinear,
    tables,
)
from perfdb.site.about import names
from perfdb.site.addresses import Address, slug
from perfdb.site.contents import Contents
from perfdb.site.data import Audited, Result
from perfdb.site.markup import Cell, Head, Html, joined, link, tag
from perfdb.site.page import (
    NO_DATA,
    Kind,
    Page,
    document,
    listing,
    numbered,
    part,
    section,
    shown,
)
from perfdb.site.printed import extras_of
from perfdb.site.profiles import LAYOUT, ORIGIN, ours
from perfdb.site.series import Rate, ScalingPage, Series
from perfdb.site.words import release_title

SAID: Final = (
    "The same work on more and more GPUs. Efficiency is the rate of each GPU as a share of that at "
    "the smallest scale. Rows with open errors are in no series.\n"
)
NONE: Final = "The store has no work at two or more numbers of GPUs yet.\n"


class ScalingIndex(Frozen):
    """The list of scaling pages."""

    pages: tuple[ScalingPage, ...]


def _pages(contents: Contents) -> Iterator[Page]:
    pages = contents.scaling
    said = SAID if pages else NONE if contents.results else NO_DATA
    data = ScalingIndex(pages=pages) if pages else None
    releases = units.counted(len({(it.framework, it.release) for it in pages}), "release")
    about = f"The same work on more and more GPUs, with its efficiency, in {releases}."
    yield listing(addresses.SCALING, about, said, data, [page.document for page in pages])
    yield from (_document(_with_entries(page, contents.audited)) for page in pages)


def _with_entries(page: ScalingPage, audited: Iterable[Audited]) -> ScalingPage:
    """The page with the entries of those of its results whose scaling the audit remarks on."""
    every = [series for scaled in page.models for series in scaled.series]
    shown = {result.result_id for series in every for result in series.points}
    entries = {
        entry.result.result_id: entry.anchor
        for entry in audited
        if entry.result.result_id in shown
        and any(finding.rule == superlinear.RULE for finding in entry.findings)
    }
    return page.model_copy(update={"audited": entries})


def _document(page: ScalingPage) -> Page:
    release = release_title(page.framework, page.release)
    parts = [
        section(model.title, shown("scaling-model", number))
        for number, model in enumerate(page.models)
    ]
    title = f"Scaling of {release} on {page.system_title}"
    about = (
        f"{title}: {names(one.title for one in page.models)}, with the efficiency at each scale."
    )
    text = document(title, about, shown("scaling-head"), *parts, contents=True)
    return Page(page.document, text, page)


def index(page: ScalingIndex, address: Address) -> Html:
    """The list: each series with its smallest and largest scale, and the efficiency at the end."""
    heads = [Head("Work"), Head("Series", wide=True)]
    heads.append(Head("GPUs", numeric=True))
    heads.append(Head("Efficiency at the largest", numeric=True, near=True))
    heads.append(Head("Release"))
    rows = [
        _index_row(f"{model.title} on {on.system_title}", series, on, address)
        for on in page.pages
        for model in on.models
        for series in model.series
    ]
    return markup.table(markup.Table("Scaling", heads, rows))


def _index_row(title: str, series: Series, on: ScalingPage, address: Address) -> list[Cell]:
    page = address(on.document)
    release = release_title(on.framework, on.release)
    release_page = address(addresses.of_release(on.framework, on.release))
    smallest, *_, largest = series.points
    return [
        Cell(link(title, f"{page}#{series.anchor}"), sort=title),
        Cell(series.title),
        Cell(f"{smallest.num_gpus:,} to {largest.num_gpus:,}", sort=largest.num_gpus),
        superlinear.efficiency_of(largest, series, page),
        Cell(link(markup.shortened(release), release_page), sort=release),
    ]


def head(page: ScalingPage, address: Address) -> Html:
    """Where the figures are from, and what is computed."""
    release = addresses.of_tab(page.framework, page.release, page.system, address)
    links = (
        link(release_title(page.framework, page.release), release),
        link(page.system_title, address(addresses.of_system(page.system))),
        link("every series", address(addresses.SCALING)),
    )
    text = (
        "Where several configurations were run at a scale, the fastest is shown; what of the "
        "configuration changes with the scale has a column. Efficiency and days are computed from "
        "the rates; a rate that is not stated is computed from those that are, or from the step "
        "time, and says so. Days are those of 10¹² tokens without a pause. Rows with open errors "
        "are in no series."
    )
    return joined((tag("p", joined(links, " · ")), tag("p", text)))


def model(page: ScalingPage, number: int, address: Address) -> Html:
    """The charts of a model, and the table of each series; #llama3-8b leads here."""
    scaled = page.models[number]
    title = f"{scaled.title} on {page.system_title}"
    every = link(f"Every result of {scaled.title}", address(addresses.of_model(scaled.model)))
    made = [_series(title, series, page.audited, address) for series in scaled.series]
    # the heading above it may be called the same
    anchor = None if make_id(scaled.title) == slug(scaled.model) else slug(scaled.model)
    parts = (*scaling_charts.of_series(title, scaled.series), *made, tag("p", every))
    return tag("div", parts, class_="perf-at", id=anchor)


def _series(title: str, series: Series, audited: Mapping[int, str], address: Address) -> Html:
    """The table of a series."""
    every = [
        *_figures(series, address),
        *_as_printed(series.points),
        *columns.described(ours(*LAYOUT), series.points, address),
        (Head("Origin"), [tables.printed(ORIGIN, point, address) for point in series.points]),
    ]
    same = _the_same(series.points)
    table = columns.table(
        f"{title}: {series.title}",
        [(head, cells) for head, cells in every if _says_something(cells)],
        ids=[f"{series.anchor}-{point.num_gpus}" for point in series.points],
        notes=[(*same, *_counted_by(point, series.rate)) for point in series.points],
    )
    heading = tag("h3", series.title, id=series.anchor)
    above = superlinear.note(series, audited, address)
    left_out = bests.note(bests.contradicted(series.wrong))
    return joined((heading, markup.table(table), above, left_out))


def _says_something(cells: Iterable[Cell]) -> bool:
    return any(cell.content != units.UNKNOWN for cell in cells)


def _figures(series: Series, address: Address) -> list[columns.Made]:
    """The scale and its figures: as stated where it is stated, else computed."""
    return [
        _column("GPUs", None, (f"{point.num_gpus:,}" for point in series.points)),
        _figure(METRICS[series.rate].title, series.rate, series, address),
        (Head("Efficiency", "the rate of each GPU ÷ that at the smallest scale", numeric=True),
         [superlinear.efficiency_of(point, series) for point in series.points]),
        _figure("MFU", "mfu", series, address),
        _figure("Step time (s)", "step_time_s", series, address),
        (Head("Tokens/s, all GPUs", "as stated, else tokens/s/GPU × GPUs", numeric=True),
         [_of_all(point) for point in series.points]),
        _column("Days to 1T tokens", "10¹² ÷ tokens/s of all GPUs ÷ 86,400",
                (units.significant(_days(point)) for point in series.points)),
        _column("GBS", None, (f"{point.global_batch_size:,}" for point in series.points)),
    ]  # fmt: skip


def _as_printed(points: Sequence[Result]) -> Iterator[columns.Made]:
    """The columns of the source that are none of ours and not the same at every scale."""
    for name, texts in extras_of(points).items():
        if len(set(texts)) > 1:
            yield _column(f"{name} (as printed)", None, (text or units.UNKNOWN for text in texts))


def _the_same(points: Sequence[Result]) -> tuple[str, ...]:
    """The footnote on what is known and the same at every scale: the layout, what was printed."""
    parts = []
    for column in ours(*LAYOUT):
        first, *others = (tables.known(column, point) for point in points)
        if first is not None and all(value == first for value in others):
            parts.append(f"{column.title} {tables.formatted(column, first)}")
    for name, texts in extras_of(points).items():
        if texts[0] and len(set(texts)) == 1:
            parts.append(f"{name} {texts[0]} (as printed)")
    return (f"{', '.join(parts)}.",) if parts else ()


def _figure(title: str, metric: str, series: Series, address: Address) -> columns.Made:
    cells = [columns.figure(point, metric, address) for point in series.points]
    return Head(title, numeric=True), cells


def _column(title: str, hint: str | None, texts: Iterable[str]) -> columns.Made:
    return Head(title, hint, numeric=True), [Cell(text) for text in texts]


def _counted_by(result: Result, rate: Rate) -> tuple[str, ...]:
    """The footnote on how FLOPs are counted in those of its figures that the table has."""
    shown = (rate, "mfu")
    is_bound = any(name in CONVENTION_BOUND and figures.figure(result, name) for name in shown)
    named = result.flops_convention if is_bound else None
    return (f"FLOPs convention: {named}.",) if named else ()


def _of_all(result: Result) -> Cell:
    total = _total(result)
    mark = "" if total is None or result.tokens_per_sec else figures.COMPUTED
    return Cell(f"{tables.formatted(bests.COLUMNS[bests.RATE], total)}{mark}", sort=total)


def _total(result: Result) -> float | None:
    """Tokens per second of all GPUs."""
    each = figures.figure(result, "tokens_per_sec_per_gpu")
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
        "scaling-model": numbered(ScalingPage, model),
    },
)
