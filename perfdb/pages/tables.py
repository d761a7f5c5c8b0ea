"""The tables of a page, each with what the page states above it and the notes below it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from perfdb import catalog
from perfdb.catalog import names
from perfdb.fields import FIGURES
from perfdb.pages import columns, context
from perfdb.pages.base import Cell, Grid, Line, ParsedPage, Row, marks, without_marks
from perfdb.pages.columns import PageColumn
from perfdb.pages.context import PageStatement
from perfdb.text import absent, parsed


@dataclass(frozen=True)
class PageTable:
    """A table with a result in each row, and what holds for it.

    `marks` are those of footnotes above it and in its header.
    """

    line: int
    columns: tuple[PageColumn, ...]
    rows: tuple[Row, ...]
    stated: PageStatement
    notes: tuple[str, ...]
    marks: tuple[str, ...]

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields that it has columns for."""
        return frozenset(one.field for one in self.columns if one.field)

    @property
    def are_results(self) -> bool:
        """Whether it holds results: a figure, and what was run."""
        return columns.are_results(self.columns)

    @property
    def are_configurations(self) -> bool:
        """Whether it states how GPUs are used, and no figure."""
        return columns.are_configurations(self.columns)

    def texts(self, row: Row) -> dict[str, str]:
        """The texts of a row by field, in the fields' units, without references to footnotes."""
        return {
            column.field: column.text("\n".join(map(without_marks, cell.text.split("\n"))).strip())
            for column, cell in zip(self.columns, row.cells, strict=False)
            if column.field
        }


def of_page(page: ParsedPage, own: str | None) -> list[PageTable]:
    """Every table of a page outside of code, in reading order; `own` is its framework."""
    found, above = [], _Above()
    for grid in page.grids:
        above = above.then(grid.above, own)
        found.append(_table(grid, above))
    sizes = [one for one in found if _states_sizes(one.fields)]
    return [_joined(table, sizes) for table in found]


def _states_sizes(fields: frozenset[str]) -> bool:
    """Whether a table may say of others on how many GPUs and with what batch they were run."""
    return {"num_gpus", "global_batch_size"} <= fields and not fields & {*FIGURES}


@dataclass(frozen=True)
class _Above:
    """What the lines above a table state, and the marks of footnotes in them."""

    lines: tuple[Line, ...] = ()
    stated: PageStatement = field(default_factory=PageStatement)
    marks: tuple[str, ...] = ()

    def then(self, lines: tuple[Line, ...], own: str | None) -> "_Above":
        """The same of the next table; lines that hold for both are not read again."""
        known = self if lines[: len(self.lines)] == self.lines else _Above()
        stated, added = known.stated, lines[len(known.lines) :]
        for line in added:
            stated = stated.then(context.of_line(line, own))
        found = (mark for line in added if not line.listed for mark in marks(line.text))
        return _Above(lines, stated, (*known.marks, *found))


def _table(grid: Grid, above: _Above) -> PageTable:
    header = [cell.text for cell in grid.header.cells]
    table = PageTable(
        grid.header.line,
        columns.of(header),
        grid.rows,
        above.stated,
        tuple(grid.notes),
        (*above.marks, *(mark for text in header for mark in marks(text))),
    )
    return table if table.are_results else _upright(grid, table)


def _upright(grid: Grid, table: PageTable) -> PageTable:
    """The table with a result in each row, also where the page has one in each column.

    NVIDIA's recipes (dgxc-benchmarking) have a row for each figure, below
    `Nemotron4 15b BF16 | 16x H100 GPUs | 32x H100 GPUs`. The line of such a result is that of
    the first row with a figure. A column without any value is no result.
    """
    figures = [row for row in grid.rows if row.cells and is_figure_row(row)]
    texts = [cell.text for cell in grid.header.cells]
    width = len(texts) - next((at for at, text in enumerate(reversed(texts)) if text), 0)
    lines = [_fitted(row.cells, width) for row in (grid.header, *grid.rows)]
    if not figures or any(len(cells) != width for cells in lines):
        return table
    titles, *results = zip(*lines, strict=True)
    corner, layout = columns.stated_sizes(without_marks(titles[0].text))
    scales = [columns.stated_sizes(one[0].text) for one in results]
    is_scale = not columns.field_of(corner) and all(
        columns.gpus(without_marks(text))[0] != text for text, _ in scales
    )
    if not is_scale:
        layout, scales = {}, [(one[0].text, {}) for one in results]
    named = tuple(dict.fromkeys(name for _, sizes in scales for name in sizes))
    found = columns.of([*(cell.text for cell in titles), *layout, *named])
    if is_scale:
        found = (PageColumn(found[0].title, "num_gpus"), *found[1:])
    rows = []
    for (first, *values), (scale, sizes) in zip(results, scales, strict=True):
        if any(not absent(cell.text) for cell in values):
            others = (*layout.values(), *(sizes.get(name, "") for name in named))
            cells = (Cell(first.raw, scale), *values, *(Cell(text, text) for text in others))
            rows.append(Row(figures[0].line, cells))
    stated = table.stated.then(_of_corner(corner))
    return replace(table, columns=found, rows=tuple(rows), stated=stated)


def _fitted(cells: Sequence[Cell], width: int) -> Sequence[Cell]:
    """The cells of a row as renderers show them: empty ones are added, or dropped, at its end."""
    added = (Cell("", ""),) * (width - len(cells))
    return cells if any(cell.text for cell in cells[width:]) else (*cells[:width], *added)


def _of_corner(words: str) -> PageStatement:
    """What the corner states: `Llama 3.1 70b 24.09 BF16`, `Llama3 8b Finetuning LORA FP8`."""
    others = words.split()
    precisions = [word for word in others if catalog.precision_of(word)]
    releases = [word for word in others if re.fullmatch(context.CALENDAR, word)]
    others = [it for it in others if not (it in precisions or it in releases or names.tasks(it))]
    model = " ".join(others)
    is_clear = len(precisions) <= 1 and len(releases) <= 1
    if not is_clear or not (precisions or catalog.named_model(model)):
        return context.of_title(words, None)
    stated = PageStatement(
        model=model, precision=next(iter(precisions), None), release=next(iter(releases), None)
    )
    return stated.then(context.of_task(words))


def is_figure_row(row: Row) -> bool:
    """Whether a row is titled as a figure and has a number."""
    title, *values = (without_marks(cell.text) for cell in row.cells)
    is_figure = columns.field_of(title) in FIGURES
    return is_figure and any(parsed(one.removesuffix("%")) is not None for one in values)


def _joined(table: PageTable, sizes: Sequence[PageTable]) -> PageTable:
    """A table of results with the columns that it lacks, from a table of configurations.

    The Nemotron-4 recipe states in tables of their own what was run on so many GPUs, for a size
    of the model and for precisions such as `BF16/FP8`.
    """
    here = table.fields
    if not here & {*FIGURES} or {"global_batch_size", "sequence_length"} <= here:
        return table
    for other in sizes:
        matches = [_match(other, table.texts(row), table.stated) for row in table.rows]
        if any(matches):
            break
    else:
        return table
    known = {*here, "num_gpus", "precision"}
    titles = {one.title for one in table.columns}
    places = [
        at
        for at, one in enumerate(other.columns)
        if one.field not in known and one.title not in titles
    ]
    added = tuple(other.columns[at] for at in places)
    rows = tuple(
        Row(row.line, (*row.cells, *(one.cells[at] if one else Cell("", "") for at in places)))
        for row, one in zip(table.rows, matches, strict=True)
    )
    notes = (*table.notes, *other.notes)
    return replace(table, columns=(*table.columns, *added), rows=rows, notes=notes)


def _match(other: PageTable, texts: Mapping[str, str], stated: PageStatement) -> Row | None:
    """The only row of a table of configurations that fits a row of results."""
    model = re.split(r"[\s_-]+", (texts.get("model") or stated.model or "").casefold())
    precision = texts.get("precision") or stated.precision or ""
    places = [at for at, one in enumerate(other.columns) if one.title.casefold() == "size"]
    fitting = [
        row
        for row in other.rows
        if len(row.cells) == len(other.columns)
        and (own := other.texts(row))
        and columns.gpus(own["num_gpus"])[0] == columns.gpus(texts.get("num_gpus", ""))[0]
        and all(row.cells[at].text.casefold() in model for at in places)
        and (absent(own.get("precision", "")) or precision in own["precision"].split("/"))
        and parsed(texts.get("global_batch_size", "")) in (None, parsed(own["global_batch_size"]))
    ]
    return fitting[0] if len(fitting) == 1 else None
