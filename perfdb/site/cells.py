"""How a value of a result prints in a table: as its page printed it, or by the column's kind.

Tables that follow a page keep the page's words where they have the same value; tables of rows from
many pages (`ours`) keep the digits, with our names and thousands separators. A figure leads to its
source line or run.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import isclose
from typing import Final, NamedTuple

from markupsafe import Markup

from perfdb import catalog, units
from perfdb.catalog import titles
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS, Outcome, Result
from perfdb.site import addresses, columns
from perfdb.site.addresses import result_row
from perfdb.site.columns import Kind, ShownColumn
from perfdb.site.data import SiteResult
from perfdb.site.grouping import release_title
from perfdb.site.templates import badge, escaped, href, joined, link, to
from perfdb.stated import MFU, figure, is_computed

COMPUTED: Final = " (computed)"
"""The mark of a figure that is not stated and follows from others that are."""
FLOPS: Final = "model_tflops_per_sec_per_gpu"
CHOSEN: Final = "the run with the median step time; of two in the middle, the faster"
"""Which of the runs of a case is shown; see `perfdb.queries.results`."""

_PRINTED_AS: Final = {"model_title": "model", "fsdp_size": "fsdp_enabled"}
"""Fields of a result that pages have under the name of another."""
_NAMED: Final[frozenset[Kind]] = frozenset({"model", "precision", "task"})
"""Kinds of columns with names of our own for their values."""
_SORTED: Final = re.compile(r"[\d.,]+ ?%?")
"""Numbers that sort by their text; `8 120` or `GPUs*6` do not."""
_ABSENT: Final = frozenset(
    {"", "-", "--", "–", "—", "−", "n/a", "na", "n.a.", "none", "null", "nan", "tbd"}
)
"""What pages print where there is no value, in lower case."""
_IDENTITY: Final = (*WORKLOAD_FIELDS, *CONFIGURATION_FIELDS, "release", "container", "origin")
"""What is printed of a result besides its figures."""


class HtmlCell(NamedTuple):
    """A cell; `sort` is what it is sorted by where its text will not do.

    `evidence` is the link target of what a figure is read or computed from.
    """

    content: str
    sort: float | str | None = None
    evidence: str = ""


def cells(column: ShownColumn, results: Iterable[SiteResult]) -> list[HtmlCell]:
    """A cell for each result. Those of a column with few values are made once for each."""
    if (printer := PRINTERS.get(column.kind)) is not None:
        return [printer(column, it) for it in results]
    made: dict[object, HtmlCell] = {}
    found = []
    for it in results:
        value, text = known(column, it), _text(column, it)
        key = text, value, type(value)  # True is 1, and prints otherwise
        if key not in made:
            made[key] = _plain(column, text, value)
        found.append(made[key])
    return found


def known(column: ShownColumn, result: SiteResult) -> object:
    """The first of the column's fields that the result has; None without one."""
    for field in column.fields:
        value: object = getattr(result, field)
        if value is not None and value != "":
            return value
    return None


def as_printed(column: ShownColumn, result: SiteResult) -> str | None:
    """What the page printed in this column, where that is still the result's value; else None."""
    return _as_printed(column, _text(column, result), known(column, result))


def _text(column: ShownColumn, result: SiteResult) -> str | None:
    """What the page printed in this column."""
    for field in column.fields:
        if (text := result.printed.get(_PRINTED_AS.get(field, field))) is not None:
            return text
    return None


def _as_printed(column: ShownColumn, text: str | None, value: object) -> str | None:
    if text is None or (column.ours and column.kind in _NAMED):
        return None
    if is_absent(text):
        return units.UNKNOWN if value is None else None
    if value is not None and not _has_value(text, value):
        return None
    if column.ours and column.kind == "percent" and isinstance(value, float) and "%" not in text:
        return units.percent(value, max(0, len(text.partition(".")[2]) - 2))
    return units.regrouped(text) if column.ours else text


def printed_value(printed: Mapping[str, str], field: str, value: object) -> str | None:
    """What a page printed of a field, where that is this value; else None."""
    text = printed.get(field)
    return text if text and _has_value(text, value) else None


def _has_value(text: str, value: object) -> bool:
    """Whether a printed number is this value; words and switches are taken as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    try:
        number = float(text.rstrip("%").replace(",", "").replace(" ", ""))
    except ValueError:
        return True
    return isclose(number / (100 if text.endswith("%") else 1), value, rel_tol=1e-9)


def is_absent(text: str) -> bool:
    """Whether a cell of a page says that there is no value."""
    return text.casefold() in _ABSENT


def formatted(column: ShownColumn, value: object) -> str:
    """A value by the column's kind and digits; – when unknown."""
    match value:
        case bool():
            return ("off", "on")[value] if column.ours else str(int(value))
        case int() | float() if column.kind == "figure":
            return units.figure(value, column.digits)
        case int() | float() if column.kind == "percent":
            return units.share(value, column.digits)
        case int() | float() if column.kind == "seconds":
            return units.significant(value, column.digits)
        case int() | float():
            return f"{value:,}" if column.ours else str(value)
        case _:
            return units.text(value)


def figure_text(result: SiteResult, metric: str) -> str:
    """A figure as tables print it, without the mark of one that is computed."""
    if is_computed(result, metric):
        value = figure(result, metric)
        return units.share(value) if metric == MFU else units.significant(value)
    column = columns.FIGURES[metric]
    return as_printed(column, result) or formatted(column, known(column, result))


def marked(result: SiteResult, metric: str) -> str:
    """A figure as tables print it, with the mark of one that is computed."""
    mark = COMPUTED if is_computed(result, metric) else ""
    return f"{figure_text(result, metric)}{mark}"


def figure_cell(result: SiteResult | None, metric: str) -> HtmlCell:
    """A figure that leads to the row of its result on its release's page; – without one."""
    if result is None:
        return HtmlCell(units.UNKNOWN)
    return HtmlCell(marked(result, metric), figure(result, metric), addresses.table_row(result))


def evidence(result: SiteResult) -> str:
    """The link target of what a result's figures are read or computed from."""
    if result.run_id is not None:
        return to(addresses.of_run(result.run_id), "figures")
    return to(addresses.of_source(result.source_sha256), result_row(result))


def reproduction(result: SiteResult) -> str:
    """The link target of how to have a result again, which opens the drawer that says it."""
    if result.run_id is not None:
        return to(addresses.of_run(result.run_id), addresses.drawer_anchor())
    return to(
        addresses.of_source(result.source_sha256), addresses.drawer_anchor(result_row(result))
    )


def source_line(result: SiteResult) -> str:
    """'data/published/dfm.md:74': the file that a result was read from, and the line in it.

    'run log-5f0c, job.log' where the path does not name the run.
    """
    line = f":{result.source_line}" if result.source_line else ""
    run = f"run {result.run_id}, " if result.run_id and result.run_id not in result.source else ""
    return f"{run}{result.source}{line}"


def flag_mark(result: SiteResult, *, sign: bool = False) -> Markup:
    """'⚑ 1 error', leading to what the audit found; empty where it objects to nothing.

    The `sign` alone is for the name of a row: the style sheet has it, it is no part of a name.
    """
    if result.flag is None:
        return Markup("")
    kind, counts = result.flag.kind, escaped(result.flag.counts)
    entry = addresses.audit_entry(result.framework, result.release, result.flag.anchor)
    by = "found by the audit"
    classes, title, behind = kind, by, f'><span aria-hidden="true">⚑</span> {counts}'
    if sign:
        classes, title = f"perf-sign {kind}", f"{counts} {by}"
        behind = f' aria-label="{title}">'
    return Markup(
        f'<a class="perf-flag {classes}" href="{escaped(entry)}" title="{title}"{behind}</a>'
    )


def origin(result: SiteResult) -> Markup:
    """Measured or published, what the audit found, and the run or line that the figures are of."""
    links = [flag_mark(result)]
    source = addresses.of_source(result.source_sha256)
    if result.run_id is not None:
        links.append(link(which(result), addresses.of_run(result.run_id)))
        if result.recipe is not None:
            links.append(link("recipe", addresses.of_recipe(result.recipe)))
    else:
        if result.num_results > 1:
            links.append(link(which(result), source))
        if result.source_line is not None:
            links.append(link(f"line {result.source_line}", source, f"L{result.source_line}"))
    links.append(href("reproduce", reproduction(result)))
    aside = Markup(f'<span class="perf-aside">{joined(links, " ")}</span>')
    return joined((badge(str(result.origin)), aside), " ")


def which(result: SiteResult) -> str:
    """'run', '1 of 3 runs', '1 of 3 runs, 2 finished'; of a page '1 of 2 results'."""
    if result.num_results == 1:
        return "run"
    if result.run_id is None:
        return f"1 of {result.num_results:,} results"
    unfinished = result.num_finished < result.num_results
    finished = f", {result.num_finished or 'none'} finished" if unfinished else ""
    return f"1 of {result.num_results:,} runs{finished}"


def gpus(count: int, system: str) -> str:
    """'1 GPU', '2,048 GPUs'; '2 processes' on a system without GPUs."""
    if catalog.has_gpus(system):
        return units.counted(count, "GPU")
    return f"{count:,} process{'' if count == 1 else 'es'}"


def work(result: Result) -> str:
    """'Llama 3 8B, Pre-training, 8 GPUs, BF16': what was trained, and on how much."""
    model = titles.qualified(result.model_title, result.qualifiers)
    precision = titles.precision(result.precision) or "precision unknown"
    size = gpus(result.num_gpus, result.system)
    return ", ".join((model, titles.task(result.task), size, precision))


def moment(when: datetime | None) -> str:
    """2026-01-02 03:04:05, in UTC, in which the store keeps all moments; – when unknown."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if when else units.UNKNOWN


def outcome_badge(outcome: str) -> Markup:
    """How a run ended, as a word in a box."""
    return badge(outcome.replace("_", " "), "good" if outcome == Outcome.FINISHED else "bad")


def is_shown(column: ShownColumn, made: Sequence[HtmlCell], results: Sequence[SiteResult]) -> bool:
    """Whether a table needs a column with these cells.

    One that is kept 'apart' is needed where two results differ in nothing else that was run.
    """
    values = {cell.content for cell in made}
    if column.shown == "always":
        return True
    if column.shown == "filled":
        return values != {units.UNKNOWN}
    if column.shown != "apart" or len(values) == 1:
        return len(values) > 1
    others = [field for field in _IDENTITY if field not in column.fields]
    seen: dict[str, str] = {}
    return any(
        seen.setdefault(repr([getattr(one, it) for it in others]), shown.content) != shown.content
        for one, shown in zip(results, made, strict=True)
    )


def _plain(column: ShownColumn, text: str | None, value: object) -> HtmlCell:
    shown = _as_printed(column, text, value) or formatted(column, value)
    if isinstance(value, bool) or not isinstance(value, int | float) or _SORTED.fullmatch(shown):
        return HtmlCell(shown)
    return HtmlCell(shown, sort=value)


def _figure(column: ShownColumn, result: SiteResult) -> HtmlCell:
    """A figure; in our own tables one that is not stated is computed from those that are."""
    name, value = column.fields[0], known(column, result)
    if column.ours and value is None and is_computed(result, name):
        return HtmlCell(marked(result, name), sort=figure(result, name))
    return _plain(column, _text(column, result), value)


def _titled(column: ShownColumn, result: SiteResult) -> HtmlCell:
    if column.kind == "precision":
        own = titles.precision(result.precision) or as_printed(column, result)
        return HtmlCell(own or units.UNKNOWN)
    return HtmlCell(as_printed(column, result) or titles.task(result.task) or units.UNKNOWN)


def _options(_: ShownColumn, result: SiteResult) -> HtmlCell:
    options = ", ".join(f"{name}={value}" for name, value in sorted(result.options.items()))
    return HtmlCell(options or units.UNKNOWN)


def _extra(column: ShownColumn, result: SiteResult) -> HtmlCell:
    """A column of the source that has no field, under its title."""
    text = result.extras.get(column.title, "")
    return HtmlCell(units.UNKNOWN if is_absent(text) else text)


def _spread(column: ShownColumn, result: SiteResult) -> HtmlCell:
    low, high = result.step_time_p10_s, result.step_time_p90_s
    if low is None or high is None:
        return HtmlCell(units.UNKNOWN)
    ends = (units.significant(end, column.digits) for end in (low, high))
    return HtmlCell("–".join(ends), sort=low)


def _linked(column: ShownColumn, result: SiteResult) -> HtmlCell:
    """The name of a model, system, run or recipe that leads to its page."""
    match column.kind:
        case "model":
            own = titles.qualified(result.model_title, result.qualifiers)
            text, document = as_printed(column, result) or own, addresses.of_model(result.model)
        case "system":
            text, document = result.system_title, addresses.of_system(result.system)
        case "run":
            text = result.run_id or units.UNKNOWN
            document = addresses.of_run(text)
        case _ if result.recipe is None:
            return HtmlCell(units.UNKNOWN)
        case _:
            return HtmlCell(link(result.recipe, addresses.of_recipe(result.recipe)))
    return HtmlCell(link(text, document), sort=text)


def _release(_: ShownColumn, result: SiteResult) -> HtmlCell:
    title = release_title(result.framework, result.release)
    tab = addresses.tab(result.framework, result.release, result.system)
    return HtmlCell(href(title, tab), sort=title)


PRINTERS: Final[Mapping[Kind, Callable[[ShownColumn, SiteResult], HtmlCell]]] = {
    "figure": _figure,
    "percent": _figure,
    "model": _linked,
    "system": _linked,
    "run": _linked,
    "recipe": _linked,
    "precision": _titled,
    "task": _titled,
    "extra": _extra,
    "options": _options,
    "spread": _spread,
    "outcome": lambda _, result: HtmlCell(outcome_badge(result.outcome)),
    "origin": lambda _, result: HtmlCell(origin(result), sort=str(result.origin)),
    "log": lambda _, it: HtmlCell(it.source if it.recipe is None else units.UNKNOWN),
    "release": _release,
    "moment": lambda _, result: HtmlCell(moment(result.started_at)),
}
"""Kinds that take more than one value to print. A run of a recipe is no log."""
