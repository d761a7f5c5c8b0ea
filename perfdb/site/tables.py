"""From results and a profile to a table: which cells, with which digits, linked to what."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from perfdb import units
from perfdb.catalog import titles
from perfdb.page_text import absent
from perfdb.record import Outcome
from perfdb.site import addresses, figures, profiles, shown
from perfdb.site.addresses import Address
from perfdb.site.data import Result
from perfdb.site.glossary import TERMS
from perfdb.site.markup import Beside, Cell, Head, Html, Offer, Table, link, shortened, tag
from perfdb.site.origin import flag_sign, origin
from perfdb.site.printed import extra_of, is_packed, says, text_of
from perfdb.site.profile import Column, Kind, Profile
from perfdb.site.rows import evidence, offer_name, row_id, run_id, source_said
from perfdb.site.words import release_title

_NAMED: Final[frozenset[Kind]] = frozenset({"model", "precision", "task"})
"""Kinds whose values have names of our own."""

_SORTED: Final = re.compile(r"[\d.,]+ ?%?")
"""Numbers that sort by their text; `8 120` or `GPUs*6` do not."""

_NEAR: Final = ("precision", "num_gpus")
"""What tells the rows of a model apart: a narrow screen has it beside their names."""

Printer = Callable[[Column, Result, Address], Cell]


def results_table(
    label: str, results: Sequence[Result], profile: Profile, address: Address
) -> Table:
    """A row for each result; columns that say nothing are left out where the profile says so."""
    behind = [evidence(result, address) for result in results]
    cells = {column: _cells(column, results, address) for column in profile.columns}
    columns = [column for column, made in cells.items() if shown.is_shown(column, made, results)]
    rows = [
        list(map(_believed, cells[column], behind)) if column.is_figure else cells[column]
        for column in columns
    ]
    of_runs = columns[0].kind == "run"
    return Table(
        label,
        [head(column) for column in columns],
        list(zip(*rows, strict=True)),
        ids=[run_id(result) if of_runs else row_id(result) for result in results],
        notes=[result.notes for result in results],
        beside=[_beside(result, address) for result in results],
        offer=Offer(offer_name(results), results) if profile.offered else None,
        said=[*shown.said_once(cells)],
    )


def _cells(column: Column, results: Sequence[Result], address: Address) -> list[Cell]:
    """The cells of a column; results that say the same of it share theirs."""
    if column.kind in PRINTERS:
        return [printed(column, result, address) for result in results]
    made: dict[tuple[object, ...], Cell] = {}
    cells = []
    for result in results:
        value = known(column, result)
        key = (text_of(column.fields, result), value, type(value))
        if key not in made:
            made[key] = printed(column, result, address)
        cells.append(made[key])
    return cells


def _beside(result: Result, address: Address) -> Beside:
    """What the audit objects to and where the row is from, by the row's name and in its copies."""
    return Beside(flag_sign(result, address) or "", result.findings, source_said(result))


def of_results(results: Sequence[Result]) -> Profile:
    """The profile of a release's table: as its framework prints the task.

    Other figures that its pages state, and what only measured rows know, stand behind that, and
    last are the columns of its pages that perfdb has no field for.
    """
    first = results[0]
    of_all_gpus = any(result.tokens_per_sec is not None for result in results)
    profile = profiles.of_table(first.framework, first.task, of_all_gpus=of_all_gpus)
    if not all(map(is_packed, results)):
        plain = {profiles.PACKED: profiles.PLAIN}
        profile = replace(profile, columns=tuple(plain.get(one, one) for one in profile.columns))
    beside = [one for one in profiles.beside(profile) if _is_beside(one, results)]
    return replace(profile, columns=(*profile.columns, *beside, *shown.extra_columns(results)))


def _is_beside(column: Column, results: Sequence[Result]) -> bool:
    """Whether a row states it, as a figure or how that was measured, or a row is measured."""
    is_stated = column.is_figure or column in (profiles.CONVENTION, profiles.STEPS)
    stated = is_stated and any(known(column, result) is not None for result in results)
    return stated or any(result.is_measured for result in results)


def printed(column: Column, result: Result, address: Address) -> Cell:
    """The cell of a result in a column."""
    return PRINTERS.get(column.kind, _plain)(column, result, address)


def _believed(cell: Cell, evidence: str) -> Cell:
    """A figure that leads to its evidence."""
    return cell if cell.content == units.UNKNOWN else Cell(cell.content, cell.sort, evidence)


def head(column: Column) -> Head:
    """The head of a column, explained by its entry in the glossary."""
    hint = TERMS[column.term].hint if column.term else None
    near = column.fields[0] in _NEAR
    return Head(column.title, hint, column.numeric, column.wide, column.is_rate, near)


def as_printed(column: Column, result: Result) -> str | None:
    """The words that the page printed in this column, where they say what this result says alone.

    None where the page has no such column, where a correction has changed the value since, or where
    ours are other words. Of a number ours are the same digits.
    """
    text, value = text_of(column.fields, result), known(column, result)
    if text is None or (column.ours and (column.kind in _NAMED or isinstance(value, bool))):
        return None
    if absent(text) or (column.ours and value is None and column.kind == "integer"):
        return units.UNKNOWN if value is None else None
    if value is not None and not says(text, value):
        return None
    return _respelled(column, text, value) if column.ours else text


def _respelled(column: Column, text: str, value: object) -> str:
    if column.kind == "percent" and isinstance(value, float) and "%" not in text:
        return units.percent(value, max(0, len(text.partition(".")[2]) - 2))
    return units.regrouped(text)


def known(column: Column, result: Result) -> object:
    """The first of the column's fields that the result knows; None where it knows none."""
    for field in column.fields:
        value: object = getattr(result, field)
        if value is not None and value != "":
            return value
    return None


def formatted(column: Column, value: object) -> str:
    """A value by the column's kind and digits; – when unknown."""
    if isinstance(value, bool):
        return ("off", "on")[value] if column.ours else str(int(value))
    if isinstance(value, int | float):
        return NUMBERS.get(column.kind, _whole)(column, value)
    return units.text(value)


def _whole(column: Column, value: float) -> str:
    return f"{value:,}" if column.ours else str(value)


NUMBERS: Final[Mapping[Kind, Callable[[Column, float], str]]] = {
    "figure": lambda column, value: units.figure(value, column.digits),
    "percent": lambda column, value: units.share(value, column.digits),
    "seconds": lambda column, value: units.significant(value, column.digits),
}
"""How numbers of a kind are printed; the others are whole, with separators in our own tables."""


def _plain(column: Column, result: Result, _address: Address) -> Cell:
    value = known(column, result)
    said = as_printed(column, result) or formatted(column, value)
    if isinstance(value, bool) or not isinstance(value, int | float) or _SORTED.fullmatch(said):
        return Cell(said)
    return Cell(said, sort=value)


def _figure_cell(column: Column, result: Result, address: Address) -> Cell:
    """A figure; in our own tables one that is not stated is computed from those that are."""
    name = column.fields[0]
    if column.ours and known(column, result) is None and figures.is_computed(result, name):
        return Cell(figures.computed(result, name), sort=figures.figure(result, name))
    return _plain(column, result, address)


def _task(column: Column, result: Result, _address: Address) -> Cell:
    return Cell(as_printed(column, result) or titles.task(result.task))


def _options(_column: Column, result: Result, _address: Address) -> Cell:
    """The options of the framework that a run was given."""
    said = ", ".join(f"{name}={value}" for name, value in sorted(result.options.items()))
    return Cell(said or units.UNKNOWN)


def _extra(column: Column, result: Result, _address: Address) -> Cell:
    """A column of the source that has no field, under its title."""
    text = extra_of(column.title, result)
    return Cell(units.UNKNOWN if absent(text) else text)


def _precision(column: Column, result: Result, _address: Address) -> Cell:
    said = as_printed(column, result) or titles.precision(result.precision)
    return Cell(said or units.UNKNOWN)


def _model(column: Column, result: Result, address: Address) -> Cell:
    name = as_printed(column, result) or titles.qualified(result.model_title, result.qualifiers)
    return Cell(link(name, address(addresses.of_model(result.model))), sort=name)


def _system(_column: Column, result: Result, address: Address) -> Cell:
    page = address(addresses.of_system(result.system))
    return Cell(link(result.system_title, page), sort=result.system_title)


def _spread(column: Column, result: Result, _address: Address) -> Cell:
    low, high = result.step_time_p10_s, result.step_time_p90_s
    if low is None or high is None:
        return Cell(units.UNKNOWN)
    ends = (units.significant(end, column.digits) for end in (low, high))
    return Cell("–".join(ends), sort=low)


def outcome_badge(outcome: str) -> Html:
    """How a run ended, as a word in a box."""
    good = outcome == Outcome.FINISHED.value
    return tag("span", outcome.replace("_", " "), class_=f"perf-badge {'good' if good else 'bad'}")


def _run(_column: Column, result: Result, address: Address) -> Cell:
    run_id = result.run_id or units.UNKNOWN
    return Cell(link(run_id, address(addresses.of_run(run_id))), sort=run_id)


def _log(_column: Column, result: Result, _address: Address) -> Cell:
    """The file that a run was read from, where it is no run directory, which has a recipe."""
    return Cell(result.source if result.recipe is None else units.UNKNOWN)


def _release(_column: Column, result: Result, address: Address) -> Cell:
    title = release_title(result.framework, result.release)
    tab = addresses.of_tab(result.framework, result.release, result.system, address)
    return Cell(link(shortened(title), tab), sort=title)


def _recipe(_column: Column, result: Result, address: Address) -> Cell:
    if result.recipe is None:
        return Cell(units.UNKNOWN)
    return Cell(link(result.recipe, address(addresses.of_recipe(result.recipe))))


def _moment(column: Column, result: Result, _address: Address) -> Cell:
    value = known(column, result)
    return Cell(moment(value) if isinstance(value, datetime) else units.UNKNOWN)


def moment(when: datetime | None) -> str:
    """2026-01-02 03:04:05, in UTC, in which the store keeps all moments; – when unknown."""
    if when is None:
        return units.UNKNOWN
    utc = when.astimezone(UTC)
    return f"{utc:%Y-%m-%d %H:%M:%S}"


PRINTERS: Final[Mapping[Kind, Printer]] = {
    "figure": _figure_cell,
    "percent": _figure_cell,
    "model": _model,
    "precision": _precision,
    "task": _task,
    "extra": _extra,
    "options": _options,
    "spread": _spread,
    "outcome": lambda _, result, __: Cell(outcome_badge(result.outcome)),
    "origin": lambda _, result, address: Cell(origin(result, address), sort=result.origin),
    "run": _run,
    "log": _log,
    "release": _release,
    "system": _system,
    "recipe": _recipe,
    "moment": _moment,
}
"""Kinds that take more than one value to print."""
