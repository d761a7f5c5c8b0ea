"""What is to be said of a table beside its results: what was not understood, or assumed."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from perfdb.errors import Diagnostic
from perfdb.pages import (
    cells,
    columns,
    contradicted,
    halves,
    names,
    sentences,
    spoken,
    statements,
    systems,
    values,
)
from perfdb.pages.attributed import Attributed
from perfdb.pages.base import Row
from perfdb.pages.cells import Wrong
from perfdb.pages.columns import FIGURES
from perfdb.pages.rows import TableReader


def of_table(reader: TableReader) -> Iterator[Diagnostic]:
    """What is kept of the table but not understood, or taken for granted."""
    table = reader.table
    own = [reader.of_itself(row) for row in table.rows]
    read = [one for one in own if one]
    yield from _unexplained(reader, table.header)
    if table.rows and reader.has_figure() and _lacks_task(reader, own):
        message = "the page does not say the task; its rows count as pre-training"
        yield reader.problem(table.header, message, "put the task in a heading")
    if reader.has_figure() and not _have_precisions(reader):
        yield from _half_said(reader, read)
    yield from _contradicted(reader, read)
    for row in table.rows:
        if not reader.no_row(row):
            yield from _of_row(reader, row)


def _contradicted(reader: TableReader, own: Sequence[Attributed]) -> Iterator[Diagnostic]:
    where, table, setting = reader.where, reader.table, reader.setting
    found = [systems.of_row(one.texts, setting.system, setting.said.system) for one in own]
    yield from contradicted.above(where, table, setting)
    yield from contradicted.no_release(where, table, setting)
    yield from contradicted.in_rows(where, table, setting, [one.setting.whose for one in own])
    on = [one for one in found if isinstance(one, str)]
    yield from contradicted.on_systems(where, table, setting, on)
    if reader.has_figure():
        held = [(one.texts.get("precision", ""), _precision(one)) for one in own]
        yield from contradicted.recipes(where, table, held)
        yield from spoken.of_table(where, table, own, on)


def _precision(row: Attributed) -> str | Wrong | None:
    return values.precision(halves.Texts(row.texts), row.setting)


def _of_row(reader: TableReader, row: Row) -> Iterator[Diagnostic]:
    printed = reader.texts(row)
    if any(texts.bracketed for texts in halves.read(printed)):
        message = "the page does not say what the values in brackets are of"
        yield reader.problem(row, message, "put both precisions in the Precision column")
    for name, text in sorted(printed.items()):
        if name in FIGURES and 0 in map(cells.decimal, cells.pair(text) or (text,)):
            title = columns.title_of(name, reader.header)
            message = f"a figure of 0 counts as unknown{reader.column(row)}"
            yield Diagnostic(reader.where, message, title, line=row.line, remedy="write - for it")
    yield from _unexplained(reader, row)


def _unexplained(reader: TableReader, row: Row) -> Iterator[Diagnostic]:
    for mark in reader.footnotes.unexplained(row):
        message = f"the footnote mark {mark!r} has no text on the page"
        yield reader.problem(row, message, "say below the table what it means, or remove it")


def _lacks_task(reader: TableReader, own: Sequence[Attributed | None]) -> bool:
    """Whether a row counts as pre-training because nobody says its task."""
    said = reader.setting.said
    told = said.task or said.no_task or said.not_measured
    if told or "task" in columns.all_fields(reader.header):
        return False
    return not all(one and (one.texts.get("task") or one.setting.said.task) for one in own)


def _half_said(reader: TableReader, own: Sequence[Attributed]) -> Iterator[Diagnostic]:
    """What is said nearest to a table of a precision that its rows need not have."""
    setting, recipe = reader.setting, reader.setting.said.recipe
    stated = setting.said.precision or setting.fallback.precision
    if recipe and names.precision(recipe.name) in map(_precision, own):
        stated = recipe.name
    held = f"the rows count as {stated}" if stated else "the rows' precision stays unknown"
    named = [(one, sentences.precisions(one.text)) for one in reversed(reader.table.said)]
    # An item of a list may be of a glossary: `- FP8: a format of eight bits`.
    spoken = [
        (one, words)
        for one, words in named
        if words and (not one.listed or sentences.precision(one.text))
    ]
    nearer = list(takewhile(lambda pair: not statements.alone(pair[0]).precision, spoken))
    for one, words in reversed(nearer):
        if not names.are_precisions(words, stated or ""):
            message = f"the text speaks of {' and '.join(words)}; {held}"
            remedy = "put theirs in a heading, a column, or a line `Precision: BF16`"
            yield Diagnostic(reader.where, message, line=one.line, remedy=remedy)


def _have_precisions(reader: TableReader) -> bool:
    """Whether the rows say their precisions themselves, or the titles of their figures do."""
    return bool(columns.precision(reader.header)) or "precision" in columns.all_fields(
        reader.header
    )
