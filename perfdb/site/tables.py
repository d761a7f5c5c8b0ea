"""A table as it is on a page: heads, rows of cells, footnotes.

`results_table` makes the table of some results by a profile of `columns`; `table` that of columns
that are made in place.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

from markupsafe import Markup

from perfdb import units
from perfdb.site import cells as shown
from perfdb.site.addresses import result_row, run_row
from perfdb.site.cells import HtmlCell
from perfdb.site.columns import TERMS, Profile, ShownColumn
from perfdb.site.data import SiteResult
from perfdb.site.templates import escaped, render

Value = TypeVar("Value")


@dataclass(frozen=True)
class HtmlHead:
    """The head of a column; `hint` explains an abbreviation, `wide` holds sentences.

    `falling`: the first click sorts the largest up. `near`: on a narrow screen it is shown next to
    the name of the row, before the rates.
    """

    title: str
    hint: str | None = None
    numeric: bool = False
    wide: bool = False
    falling: bool = False
    near: bool = False

    @property
    def class_(self) -> Markup:
        """The class of its cells, as an attribute."""
        return _CLASS[self.numeric, self.wide]

    @property
    def head_class(self) -> Markup:
        """Its own classes: a title of one word does not wrap."""
        if " " in self.title:
            return self.class_
        return Markup(f'{self.class_[:-1]} s"') if self.class_ else Markup(' class="s"')


_CLASS: Final = {
    (False, False): Markup(""), (False, True): Markup(' class="w"'),
    (True, False): Markup(' class="n"'), (True, True): Markup(' class="n"'),
}  # fmt: skip


@dataclass(frozen=True)
class HtmlRow:
    """A row; the first cell names it. `id` is its anchor, `notes` are its footnotes.

    `sign` is a mark behind its name; `findings` and `source` are columns of its own where the
    table is copied.
    """

    cells: Sequence[HtmlCell]
    id: str = ""
    notes: Sequence[str] = ()
    sign: str = ""
    findings: str = ""
    source: str = ""

    @property
    def name(self) -> str:
        """The words of its first cell."""
        first = self.cells[0]
        return str(first.sort or "this row") if isinstance(first.content, Markup) else first.content


@dataclass(frozen=True)
class HtmlTable:
    """A table. `label` names it for screen readers; `above` are lines that hold for every row."""

    label: str
    heads: Sequence[HtmlHead]
    rows: Sequence[HtmlRow]
    sortable: bool = True
    above: Sequence[str] = ()

    @cached_property
    def shared_notes(self) -> tuple[str, ...]:
        """The footnotes that every row has: they need no mark."""
        return shared([row.notes for row in self.rows])

    @cached_property
    def numbered(self) -> dict[str, int]:
        """The footnotes of some rows with their numbers, in the order in which rows need them."""
        every = dict.fromkeys(text for row in self.rows for text in row.notes)
        some = [text for text in every if text not in self.shared_notes]
        return {text: number for number, text in enumerate(some, start=1)}

    @property
    def html(self) -> Markup:
        """The table in a box that scrolls by itself and can be reached with the keyboard.

        Its rows are made without a template: their cells are most of a site.
        """
        classes = [str(head.class_) for head in self.heads]
        rows = Markup("".join([self._row(row, classes) for row in self.rows]))
        notes = {text: self._note_id(number) for text, number in self.numbered.items()}
        return render("table", table=self, rows=rows, notes=notes)

    def _note_id(self, number: int) -> str:
        return f"{self.rows[0].id}-note-{number}"

    def _row(self, row: HtmlRow, classes: Sequence[str]) -> str:
        name, *cells = [_inner(*it) for it in zip(classes, row.cells, strict=True)]
        opening, behind = "", f" {escaped(row.sign)}" if row.sign else ""
        behind += self._marks(row)
        if row.id:
            opening = f' id="{escaped(row.id)}"'
            behind += _LINK.format(escaped(row.id), escaped(row.name))
        if row.source:
            findings, source = escaped(row.findings), escaped(row.source)
            opening += f' data-findings="{findings}" data-source="{source}"'
        others = "".join([f"<td{it}</td>\n" for it in cells])
        return f'<tr{opening}><th scope="row"{name}{behind}</th>\n{others}</tr>\n'

    def _marks(self, row: HtmlRow) -> str:
        """The numbers of its footnotes, each leading to its text."""
        marks = [
            _MARK.format(escaped(self._note_id(number)), escaped(text), number)
            for text in row.notes
            if (number := self.numbered.get(text))
        ]
        return f' <sup class="perf-mark">{", ".join(marks)}</sup>' if marks else ""


_LINK: Final = '&nbsp;<a class="perf-link" href="#{0}" aria-label="Link to {1}"></a>'
_MARK: Final = '<a href="#{0}" title="{1}" role="doc-noteref" aria-describedby="{0}">{2}</a>'


def _inner(class_: str, cell: HtmlCell) -> str:
    """A cell without the names of its tags: attributes and content."""
    content = escaped(cell.content)
    if cell.evidence:
        content = f'<a class="e" href="{escaped(cell.evidence)}">{content}</a>'
    if cell.sort is None:
        return f"{class_}>{content}"
    return f'{class_} data-sort="{escaped(cell.sort)}">{content}'


def shared(notes: Sequence[Sequence[Value]]) -> tuple[Value, ...]:
    """What each of several rows has."""
    if len(notes) < 2:
        return ()
    first, *others = notes
    return tuple(one for one in dict.fromkeys(first) if all(one in known for known in others))


def plain(
    label: str, heads: Sequence[HtmlHead], rows: Iterable[Sequence[HtmlCell | str]]
) -> Markup:
    """A table of rows without anchors and notes."""
    made = [[it if isinstance(it, HtmlCell) else HtmlCell(it) for it in row] for row in rows]
    return HtmlTable(label, heads, [HtmlRow(row) for row in made]).html


Made = tuple[HtmlHead, Sequence[HtmlCell]]
"""The head of a column, and its cell in each row."""


def table(
    label: str,
    made: Iterable[Made],
    ids: Sequence[str] = (),
    notes: Sequence[Sequence[str]] = (),
) -> Markup:
    """A table of columns, with the anchors and the footnotes of its rows."""
    heads, columns = zip(*made, strict=True)
    rows = [
        HtmlRow(row, ids[place] if ids else "", notes[place] if notes else ())
        for place, row in enumerate(zip(*columns, strict=True))
    ]
    return HtmlTable(label, heads, rows).html


def described(columns: Iterable[ShownColumn], results: Sequence[SiteResult]) -> Iterator[Made]:
    """What results are: the columns that are always shown, and those in which they differ."""
    for column in columns:
        cells = shown.cells(column, results)
        if column.shown == "always" or len({cell.content for cell in cells}) > 1:
            yield head(column), cells


def head(column: ShownColumn) -> HtmlHead:
    """The head of a column, explained by its entry in the glossary."""
    hint = TERMS[column.term].hint if column.term else None
    near = column.fields[0] in ("precision", "num_gpus")
    return HtmlHead(column.title, hint, column.numeric, column.wide, column.is_rate, near)


def results_table(
    label: str,
    results: Sequence[SiteResult],
    profile: Profile,
    ids: Sequence[str] = (),
    *,
    verbatim: bool = False,
) -> HtmlTable:
    """A row for each result; columns that the profile does not need are left out.

    `ids` are the anchors of the rows where these have others than everywhere. Numbers have
    thousands separators; in a `verbatim` table only where the page printed them so.
    """
    heads, made, above = [], [], []
    evidence = list(map(shown.evidence, results))
    for column in profile.columns:
        cells = shown.cells(column, results)
        if column.numeric and not verbatim:
            cells = list(map(_regrouped, cells))
        values = {cell.content for cell in cells}
        if column.shown == "once" and len(values) == 1 and values != {units.UNKNOWN}:
            above.append(f"{column.title}: {values.pop()}")
        if shown.is_shown(column, cells, results):
            heads.append(head(column))
            made.append(list(map(_led, cells, evidence)) if column.is_figure else cells)
    anchor = run_row if profile.is_of_runs else result_row
    rows = [
        HtmlRow(
            row,
            ids[place] if ids else anchor(result),
            result.note_texts,
            shown.flag_mark(result, sign=True),
            result.findings,
            shown.source_line(result),
        )
        for place, (row, result) in enumerate(zip(zip(*made, strict=True), results, strict=True))
    ]
    return HtmlTable(label, heads, rows, above=above)


def _regrouped(cell: HtmlCell) -> HtmlCell:
    """A cell with thousands separators; markup as it is."""
    if isinstance(cell.content, Markup):
        return cell
    text = units.regrouped(cell.content)
    return cell if text == cell.content else cell._replace(content=text)


def _led(cell: HtmlCell, evidence: str) -> HtmlCell:
    """A figure that leads to what it is read or computed from; – as it is."""
    is_known = cell.content != units.UNKNOWN
    return HtmlCell(cell.content, cell.sort, evidence) if is_known else cell
