"""From the rows of a table, and what holds for them, to published results and problems."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from perfdb.errors import Diagnostic
from perfdb.pages import (
    attributed,
    cells,
    columns,
    configured,
    elsewhere,
    halves,
    names,
    notation,
    scales,
    titles,
    values,
    wide,
)
from perfdb.pages.attributed import Attributed
from perfdb.pages.base import Page, Row
from perfdb.pages.cells import Wrong
from perfdb.pages.columns import FIGURES, Column
from perfdb.pages.context import PageSetting, Setting
from perfdb.pages.emptied import EmptyNames
from perfdb.pages.footnotes import Footnotes
from perfdb.pages.outline import Table
from perfdb.pages.unmeasured import Unmeasured
from perfdb.pages.values import Faults, Values
from perfdb.record import Note, NoteCode, PublishedResult, Release

_NO_UNIT = re.compile(r"(?<=[0-9])(?=\s*\(|\)?\Z)")
"""Where the unit of a number is missing, or those of a pair."""


@dataclass(frozen=True)
class TableReader:
    """Reads one table. `where` is the name of its page; `european`: see `notation.wrong`."""

    where: str
    table: Table
    header: Sequence[Column]
    setting: Setting
    footnotes: Footnotes
    european: str | None

    def results(self) -> Iterator[PublishedResult | Diagnostic]:
        """The result of each row, two where it holds pairs, or why it cannot be read."""
        for row in self.table.rows:
            yield from self._row(row)
        for row in self.table.detached:
            message = "the row is not part of a table: a blank line cuts it off"
            yield self.problem(row, message, "put it right below the table")

    def unknown(self) -> Diagnostic | None:
        """The columns that are kept but not understood."""
        unknown = [repr(column.title) for column in self.header if not column.known]
        if not unknown or not (self.has_figure() or self._meant()):
            return None
        message = f"no field for the columns {', '.join(unknown)}; they are kept as extras"
        return self.problem(self.table.header, message, self._meant())

    def _meant(self) -> str | None:
        """What to write in place of titles that are mistyped, or of another unit."""
        found = columns.mistyped(self.header).items()
        said = ", ".join(f"{columns.ALIASES[field][0]!r} for {title!r}" for title, field in found)
        if any(titles.leaves_unit_open(title, field) for title, field in found):
            return f"write {said}, and the values in that unit"
        return f"did you mean {said}?" if found else None

    def of_itself(self, row: Row) -> Attributed | None:
        """What a row says of itself; None where it cannot be read."""
        own = None if self.no_row(row) else attributed.read(self.texts(row), self._setting_of(row))
        return own if isinstance(own, Attributed) else None

    def texts(self, row: Row) -> dict[str, str]:
        """The texts of a row by field."""
        printed = list(self._printed(row))
        own = columns.texts(printed) | self._pair_above
        return elsewhere.said(printed, own, self.setting.framework)

    @cached_property
    def _pair_above(self) -> dict[str, str]:
        """`FP8-CS (FP8-MX)` said above the table: what its pairs of values are of."""
        said = self.setting.said.precision or ""
        is_above = len(names.precisions(said)) > 1 and not columns.precision(self.header)
        in_cells = "precision" in columns.all_fields(self.header)
        return {"precision": said} if is_above and not in_cells else {}

    def _row(self, row: Row) -> Sequence[PublishedResult | Diagnostic]:
        if problem := self.no_row(row):
            return [problem]
        own = attributed.read(self.texts(row), self._setting_of(row))
        if isinstance(own, Wrong):
            return [self.problem(row, own.message, own.remedy)]
        if isinstance(own, Faults):
            return [self._faulty(row, own)]
        read = [values.read(one, own.setting) for one in halves.read(own.texts)]
        if faults := [one for one in read if isinstance(one, Faults)]:
            return [self._faulty(row, faults[0])]
        return [self._result(row, one, own.setting) for one in read if isinstance(one, Values)]

    def no_row(self, row: Row) -> Diagnostic | None:
        """Why a row cannot be read whatever its cells hold."""
        if len(row.cells) != len(self.header):
            message = f"the row has {len(row.cells)} cells, its table {len(self.header)} columns"
            return self.problem(row, message, "give each column a cell, - where it has no value")
        if self._wrong_titles:
            return self.problem(row, *self._wrong_titles)
        if said := self._setting_of(row).said.not_measured or self._unmeasured.of(row):
            message = f"{said}: the figures are no measured ones"
            return self.problem(row, message, "put what was measured below another heading")
        return self._wrong_cell(row) or self._emptied(row) or self._shared(row)

    @cached_property
    def _unmeasured(self) -> Unmeasured:
        return Unmeasured(self.table, self.header, self.footnotes)

    def _setting_of(self, row: Row) -> Setting:
        """What holds for a row; of a turned one, also the title that stood above its column."""
        if not self.table.turned or self.header[0].fields:
            return self.setting
        return self._by_title[row.cells[0].text]

    @cached_property
    def _by_title(self) -> Mapping[str, Setting]:
        firsts = {row.cells[0].text for row in self.table.rows}
        return {title: self.setting.below(cells.cleaned(title)) for title in firsts}

    def _wrong_cell(self, row: Row) -> Diagnostic | None:
        """The first cell that cannot be taken for what it says."""
        printed = list(self._printed(row))
        for find in (self._refused, _uneven, self._misstated):
            for place, (column, text) in enumerate(printed):
                if wrong := find(column, text):
                    problem = Diagnostic(
                        self.where, wrong.message, column.title, None, wrong.remedy
                    )
                    return self._at(row, place, problem)
        return None

    def _refused(self, column: Column, text: str) -> Wrong | None:
        """A cell that is struck out, or a number that is another one in another notation."""
        return notation.wrong(column, text, self.european)

    def _misstated(self, column: Column, text: str) -> Wrong | None:
        """A cell that says another precision than the title of the figure."""
        titled = column.fields == ("precision",) and columns.precision(self.header)
        if not titled:
            return None
        said, stated = names.precisions(text), names.precisions(titled)
        if said == stated[: len(said)]:
            return None
        message = f"{text!r} is not {titled!r}, which the title of a figure says"
        return Wrong(message, "correct one of them")

    def _emptied(self, row: Row) -> Diagnostic | None:
        """An empty cell of what other rows name: it may mean the row above, or the heading."""
        name = self._empty.of(row, task_above=self.setting.said.task is not None)
        if name is None:
            return None
        message = "the cell is empty, and those of other rows are not"
        problem = self.problem(row, message, "write it in each row")
        return replace(problem, field=columns.title_of(name, self.header))

    def _shared(self, row: Row) -> Diagnostic | None:
        place = wide.shared(self.table, self.header, row)
        if place is None:
            return None
        message = f"one cell, {cells.plain(row.cells[place].text)!r}, stands across several columns"
        problem = Diagnostic(
            self.where, message, self.header[place].title, None, "give each its own"
        )
        return self._at(row, place, problem)

    @property
    def _titled_above(self) -> Mapping[str, str]:
        return {name.capitalize(): text for name, text in self._pair_above.items()}

    @cached_property
    def _empty(self) -> EmptyNames:
        return EmptyNames(self.table, self.header)

    @cached_property
    def _wrong_titles(self) -> tuple[str, str] | None:
        """Why no row can be read below the table's titles, and what to do."""
        if apart := columns.at_odds(self.header):
            message = f"the columns {', '.join(map(repr, apart))} state different precisions"
            return message, "give each precision a table, or rows, of its own"
        if twice := columns.given_twice(self.header):
            return f"the columns {', '.join(map(repr, twice))} mean the same", "keep one of them"
        other_unit = scales.wrong(self.table, self.header)
        return other_unit if self.has_figure() else self._without_figure()

    def has_figure(self) -> bool:
        """Whether a column of the table is one of a figure."""
        return not FIGURES.isdisjoint(columns.all_fields(self.header))

    def _without_figure(self) -> tuple[str, str]:
        """What is wrong with a table of which no figure is known, and what to do."""
        message = "the table has no column of a figure that is known"
        if meant := self._meant():
            return message, meant
        unknown = ", ".join(repr(it.title) for it in self.header if columns.may_be_figure(it))
        remedy = "name the figure with its unit: 'Tokens / sec / GPU', 'Step Time (s)', 'MFU'"
        return f"{message}; not known: {unknown}", remedy

    def _printed(self, row: Row) -> Iterator[tuple[Column, str]]:
        for column, cell in zip(self.header, row.cells, strict=True):
            yield column, _with_unit(cells.value(cell.text), column)

    def _faulty(self, row: Row, faults: Faults) -> Diagnostic:
        """One problem for a row, on its first wrong cell; it names the others."""
        titled = {columns.title_of(name, self.header): w for name, w in faults.wrong.items()}
        order = [column.title for column in self.header]
        places = {title: order.index(title) if title in order else -1 for title in titled}
        (title, first), *rest = sorted(titled.items(), key=lambda item: places[item[0]])
        also = "".join(f"; {other}: {wrong.message}" for other, wrong in rest)
        remedy = (self._meant() if places[title] < 0 else None) or first.remedy
        problem = Diagnostic(self.where, f"{first.message}{also}", title, remedy=remedy)
        return self._at(row, places[title], problem)

    def _at(self, row: Row, place: int, problem: Diagnostic) -> Diagnostic:
        """A problem of a cell: on its line, of a configuration's elsewhere, and of which result."""
        line = configured.line_of(row, place)
        of = self.column(row) or (f" (for line {row.line})" if line != row.line else "")
        return replace(problem, message=problem.message + of, line=line)

    def column(self, row: Row) -> str:
        """Which of the results of a turned table is meant: they share their line."""
        whole = len(row.cells) == len(self.header) and row is not self.table.header
        turned = whole and self.table.turned
        return f" (column {cells.cleaned(row.cells[0].text)!r})" if turned else ""

    def problem(self, row: Row, message: str, remedy: str | None = None) -> Diagnostic:
        """A problem of a row, with its line."""
        return Diagnostic(self.where, message + self.column(row), line=row.line, remedy=remedy)

    def _result(self, row: Row, read: Values, setting: Setting) -> PublishedResult:
        release = Release(
            framework=read.case.framework,
            version=setting.whose.release,
            container=setting.whose.container,
        )
        printed = list(zip(self.header, row.cells, strict=True))
        return PublishedResult(
            case=read.case,
            release=release,
            figures=read.figures,
            method=setting.method,
            line=row.line,
            raw={**{column.title: cell.raw for column, cell in printed}, **self._titled_above},
            extras={
                column.title: cells.plain(cell.text)
                for column, cell in printed
                if not column.fields
            },
            notes=tuple(
                Note(NoteCode.FOOTNOTE, {"text": text})
                for text in (*self.footnotes.of(row), *self._computed(read))
            ),
        )

    def _computed(self, read: Values) -> Iterator[str]:
        """What of a result is computed, and is not printed on the page."""
        for name, how in read.computed.items():
            title, gpus = columns.title_of(name, self.header), read.case.num_gpus
            yield f"{title} is computed: {how} for {gpus} GPUs"


def _uneven(column: Column, text: str) -> Wrong | None:
    """A cell of `TP/PP/CP` that holds more or fewer values than that."""
    if column.texts(text) is not None:
        return None
    remedy = "write one for each name in the title, with / between, - where there is none"
    return Wrong(f"{text!r} is not {len(column.fields)} values", remedy)


def _with_unit(text: str, column: Column) -> str:
    """A share under a title such as `MFU (%)` is in percent, though its cell does not say.

    Of a pair `43 (41)` both are.
    """
    in_percent = column.fields == ("mfu",) and "%" in column.title
    return _NO_UNIT.sub("%", text) if in_percent else text


def readers(
    where: str, page: Page, to_read: Iterable[Table], setting: PageSetting
) -> list[TableReader]:
    """A reader for each table of a page that is to be read; `where` is the name of the page."""
    found = [(table, columns.of(table)) for table in to_read]
    european = next(notation.european(found), None)
    return [
        TableReader(
            where, table, header, setting.of(table), Footnotes(table, page.footnotes), european
        )
        for table, header in found
    ]
