"""From results and a profile to a table: which cells, with which digits, linked to what."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from perfdb import catalog, units
from perfdb.pages.columns import ALIASES
from perfdb.record import Origin, Outcome
from perfdb.site import addresses
from perfdb.site.addresses import Address
from perfdb.site.data import Flag, Result
from perfdb.site.glossary import TERMS
from perfdb.site.markup import Cell, Content, Head, Html, Table, joined, link, tag
from perfdb.site.profiles import Column, Kind, Profile
from perfdb.site.words import release_title

PRINTED: Final[Mapping[str, str]] = {
    catalog.squeezed(title): field for field, titles in ALIASES.items() for title in titles
}
"""The field that a page means by the title of a column."""

_SAME_FIELD: Final[Mapping[str, str]] = {
    "model_title": "model",
    "fsdp_size": "fsdp",
    "fsdp_enabled": "fsdp",
}
"""Fields of a result that pages know by another name."""

_DASHES: Final = frozenset({"", "-", "–", "—", "−", "n/a", "N/A", "NA", "None"})
"""What pages print for unknown; printed again as the one sign that stands for it."""

Printer = Callable[[Column, Result, Address], Cell]


def results_table(
    label: str, results: Sequence[Result], profile: Profile, address: Address
) -> Table:
    """A row for each result; columns that say nothing are left out."""
    cells = {
        column: [printed(column, result, address) for result in results]
        for column in profile.columns
    }
    columns = [column for column, made in cells.items() if _is_shown(column, made)]
    rows = zip(*(cells[column] for column in columns), strict=True)
    return Table(label, [head(column) for column in columns], list(rows))


def printed(column: Column, result: Result, address: Address) -> Cell:
    """The cell of a result in a column."""
    return PRINTERS.get(column.kind, _plain)(column, result, address)


def head(column: Column) -> Head:
    """The head of a column, explained by its entry in the glossary."""
    hint = TERMS[column.term].hint if column.term else None
    return Head(column.title, hint, column.numeric, column.wide)


def as_printed(column: Column, result: Result) -> str | None:
    """What the page printed in this column, where it still says what the result says.

    None where the page has no such column, or where a correction has changed the value since.
    """
    wanted = {_SAME_FIELD.get(field, field) for field in column.fields}
    texts = [text for title, text in result.raw.items() if _field(title) in wanted]
    if not texts:
        return None
    text, value = texts[0].strip(), known(column, result)
    if text in _DASHES:
        return units.UNKNOWN if value is None else None
    return text if value is None or _says(text, value) else None


def known(column: Column, result: Result) -> object:
    """The first of the column's fields that the result knows; None where it knows none."""
    values = (getattr(result, field) for field in column.fields)
    return next((value for value in values if value is not None and value != ""), None)


def formatted(column: Column, value: object) -> str:
    """A value by the column's kind and digits; – when unknown."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float):
        return NUMBERS.get(column.kind, _whole)(column, value)
    return units.text(value)


def _whole(_column: Column, value: float) -> str:
    return str(value)


def _figure(column: Column, value: float) -> str:
    """With the column's digits, or more where these would say nothing: 0.00502, not 0.01."""
    enough = value == 0 or abs(value) >= 10 ** (1 - column.digits)
    return units.number(value, column.digits) if enough else units.significant(value, 3)


NUMBERS: Final[Mapping[Kind, Callable[[Column, float], str]]] = {
    "figure": _figure,
    "percent": lambda column, value: units.percent(value, column.digits),
    "seconds": lambda column, value: units.significant(value, column.digits),
}
"""How numbers of a kind are printed; the others are whole and stand without separators."""


def _is_shown(column: Column, cells: Sequence[Cell]) -> bool:
    if column.shown == "always":
        return True
    said = {cell.content for cell in cells}
    return len(said) > 1 if column.shown == "varies" else said != {units.UNKNOWN}


def _field(title: str) -> str | None:
    return PRINTED.get(catalog.squeezed(title))


def _says(text: str, value: object) -> bool:
    """Whether a printed text says a value; words say what they say."""
    try:
        said = float(text.replace(",", ""))
    except ValueError:
        return True
    return not isinstance(value, int | float) or said == float(value)


def _plain(column: Column, result: Result, _address: Address) -> Cell:
    return Cell(as_printed(column, result) or formatted(column, known(column, result)))


def _precision(column: Column, result: Result, _address: Address) -> Cell:
    entry = catalog.precisions().get(result.precision or "")
    title = entry.title if entry else units.text(result.precision)
    return Cell(as_printed(column, result) or title)


def _model(column: Column, result: Result, _address: Address) -> Cell:
    beside = f" ({result.qualifiers})" if result.qualifiers else ""
    return Cell(as_printed(column, result) or f"{result.model_title}{beside}")


def _spread(column: Column, result: Result, _address: Address) -> Cell:
    low, high = result.step_time_p10_s, result.step_time_p90_s
    if low is None or high is None:
        return Cell(units.UNKNOWN)
    ends = (units.significant(end, column.digits) for end in (low, high))
    return Cell("–".join(ends), sort=high - low)


def _outcome(_column: Column, result: Result, _address: Address) -> Cell:
    return Cell(outcome_badge(result.outcome))


def outcome_badge(outcome: str) -> Html:
    """How a run ended, as a word in a box."""
    good = outcome == Outcome.FINISHED.value
    return tag("span", outcome.replace("_", " "), class_=f"perf-badge {'good' if good else 'bad'}")


def _origin(_column: Column, result: Result, address: Address) -> Cell:
    badge = tag("span", result.origin, class_=f"perf-badge {_origin_class(result)}")
    mark = [flag_mark(result.flag, address)] if result.flag else []
    return Cell(joined((badge, *mark, *_evidence(result, address)), " "), sort=result.origin)


def flag_mark(flag: Flag, address: Address) -> Html:
    """'⚑ 1 error', leading to what the audit found; the sign itself says nothing to a reader."""
    return tag(
        "a",
        (tag("span", "⚑", aria_hidden="true"), f" {flag.said}"),
        class_=f"perf-flag {flag.kind}",
        href=addresses.of_entry(flag.anchor, address),
        title="found by the audit",
    )


def _origin_class(result: Result) -> str:
    return "measured" if result.origin == Origin.MEASURED.value else "published"


def _evidence(result: Result, address: Address) -> list[Content]:
    """Where a row's figures are from: its run, or the line of its page; and why it has none."""
    parts: list[Content] = []
    if result.run_id is not None:
        of_many = f" 1 of {result.num_results}" if result.num_results > 1 else ""
        parts.append(link(f"run{of_many}", address(addresses.of_run(result.run_id))))
    elif result.source_line is not None:
        line = f"line {result.source_line}"
        source = addresses.of_source(result.source_sha256)
        parts.append(link(line, f"{address(source)}#L{result.source_line}"))
    if result.withheld:
        parts.append(tag("span", f"no figures: {result.withheld}", class_="perf-withheld"))
    return parts


def _run(_column: Column, result: Result, address: Address) -> Cell:
    run_id = result.run_id or units.UNKNOWN
    return Cell(link(run_id, address(addresses.of_run(run_id))), sort=run_id)


def _release(_column: Column, result: Result, address: Address) -> Cell:
    title = release_title(result.framework, result.release)
    page = addresses.of_release(result.framework, result.release)
    return Cell(link(title, address(page)), sort=title)


def _moment(column: Column, result: Result, _address: Address) -> Cell:
    value = known(column, result)
    return Cell(moment(value) if isinstance(value, datetime) else units.UNKNOWN)


def moment(when: datetime | None) -> str:
    """2026-01-02 03:04:05, in UTC, in which the store keeps all moments; – when unknown."""
    if when is None:
        return units.UNKNOWN
    utc = when.astimezone(UTC) if when.tzinfo else when
    return f"{utc:%Y-%m-%d %H:%M:%S}"


PRINTERS: Final[Mapping[Kind, Printer]] = {
    "model": _model,
    "precision": _precision,
    "spread": _spread,
    "outcome": _outcome,
    "origin": _origin,
    "run": _run,
    "release": _release,
    "moment": _moment,
}
"""Kinds that take more than one value to print."""
