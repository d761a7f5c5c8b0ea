"""Tables that look like figures and are not read: each is told with its reason."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final

from perfdb import catalog, units
from perfdb.errors import Diagnostic
from perfdb.pages import cells, columns, configured, names, titles
from perfdb.pages.base import Grid, Line, Page, Piece, Quoted, Row
from perfdb.pages.columns import Column
from perfdb.pages.outline import Table
from perfdb.pages.tables import NUMBER

_FIGURE: Final = re.compile(
    r"\btok(?:en)?s?\b|flop|\b[hm]fu\b|\btps\b|throughput|/\s*s(?:ec(?:ond)?)?\b"
    r"|\biter(?:ation)?s?\b|\bsteps?\b|\bper (?:second|step|gpu|device)\b|/\s*(?:gpu|device)\b"
    r"|\btime\b|\bm?sec(?:ond)?s?\b|\(m?s\)|\bmin(?:ute)?s?\b",
    re.IGNORECASE,
)
"""A unit of a rate or a time, or what is measured, in a title."""
_FEWEST: Final = 2
_DRAWN: Final = re.compile(r"\s*\+(?:[-=:]+\+){2,}\s*")
"""A rule of a table that is drawn with signs."""
_WIKI: Final = re.compile(r"\s*!.*!!.*")
"""The titles of a table of MediaWiki."""
_TABS: Final = 2
"""Of a line of text that may be a row, at the least."""
_HOW: Final = "give each figure a row with Model, System, #GPUs, GBS and Sequence Length"
_TITLES: Final = "write the titles of the columns above the rows"
_SEPARATED: Final = "write a table: with pipes, a list-table or HTML"
_UNQUOTED: Final = "put it outside of the code"
_HEADER: Final = "write `:header:` with the `:delim:` of the rows"


def of_page(
    where: str, page: Page, every: Sequence[Table], taken: Sequence[Table]
) -> Iterator[Diagnostic]:
    """Those of all tables of a page that look like figures, and are not `taken` to be read."""
    known = {table.header.line for table in taken} | {*map(configured.joined_from, taken)}
    widths = frozenset(len(table.header.cells) for table in taken)
    for table in every:
        if table.header.line not in known and (why := _why(table) or _untitled(table, widths)):
            message, remedy = why
            message = f"the table is not read: {message}"
            yield Diagnostic(where, message, line=table.header.line, remedy=remedy)
    yield from _of_lines(where, [piece for piece in page.pieces if isinstance(piece, Line)])
    yield from _of_code(where, page)
    yield from _drawn(where, page.pieces)


def _why(table: Table) -> tuple[str, str] | None:
    """Why a table that looks like figures is not read, and what to do; None where it does not."""
    header = columns.of(table)
    widest = max((len(row.cells) for row in table.rows), default=0)
    if widest > len(header) and any(map(_looks, header)):
        message = f"a row has {widest} cells, its header {units.counted(len(header), 'cell')}"
        return message, _HEADER if len(header) == 1 else _HOW
    filled = [one for place, one in enumerate(header) if _has_number(table, place)]
    spread = [one.title for one in filled if _names_work(one.title)]
    if len(spread) >= _FEWEST:
        return f"its columns {_listed(spread)} are what was run, and name no figure", _HOW
    figures = [one.title for one in filled if _looks(one)]
    of_work = _says_work(header) or any(map(titles.of_gpu, figures))
    if not figures or not of_work:
        return None
    return f"it does not say all of what {_listed(figures)} are of", _HOW


def _untitled(table: Table, widths: Collection[int]) -> tuple[str, str] | None:
    """Why a table without titles is not read; one as wide as a table that is may go on with it."""
    if any(cell.text for cell in table.header.cells):
        is_row, message = _is_row(table.header, widths), "its header is a row of figures"
    else:
        is_row = any(_is_row(row, widths) for row in table.rows)
        message = "its header is empty"
    return (message, _TITLES) if is_row else None


def _is_row(row: Row, widths: Collection[int]) -> bool:
    """Whether a row looks like one of results: numbers of something that was run."""
    texts = [cells.cleaned(cell.text) for cell in row.cells]
    values = (cells.decimal(text.removesuffix("%")) for text in texts)
    numbers = sum(isinstance(value, float) for value in values)
    of_work = len(texts) in widths or any(map(_names_work, texts))
    return numbers >= columns.FEWEST and of_work


def _of_lines(where: str, lines: Sequence[Line]) -> Iterator[Diagnostic]:
    """A line of titles with tabs between them, above a line of as many values."""
    for above, below in pairwise(lines):
        parts, under = above.text.split("\t"), below.text.split("\t")
        has_values = any(map(NUMBER.match, under)) and not any(map(NUMBER.match, parts))
        if _TABS < len(parts) == len(under) and has_values and any(map(_FIGURE.search, parts)):
            message = "the lines are not read as a table: their cells are set apart by tabs"
            yield Diagnostic(where, message, line=above.line, remedy=_SEPARATED)


def _of_code(where: str, page: Page) -> Iterator[Diagnostic]:
    """A table in a block of code that would be read, or told, elsewhere on the page."""
    for piece in page.pieces:
        if isinstance(piece, Quoted):
            table = Table(piece.grid.header, piece.grid.rows, ())
            if columns.are_results(columns.of(table)) or _why(table):
                message = "the table is not read: it stands in a block of code"
                yield Diagnostic(where, message, line=table.header.line, remedy=_UNQUOTED)


def _drawn(where: str, pieces: Sequence[Piece]) -> Iterator[Diagnostic]:
    """Titles of figures below the first rule of a drawn table, or in a table of MediaWiki."""
    for before, piece, below in zip([None, *pieces], pieces, [*pieces[1:], None], strict=False):
        if not isinstance(piece, Line):
            continue
        titles_: Sequence[str] = piece.text.split("!!") if _WIKI.fullmatch(piece.text) else ()
        if (
            _DRAWN.fullmatch(piece.text)
            and isinstance(below, Grid)
            and not isinstance(before, Grid)
        ):
            titles_ = [cell.text for row in (below.header, *below.rows) for cell in row.cells]
        if any(map(_FIGURE.search, titles_)):
            message = "the table is not read: it is in no markup that is known here"
            yield Diagnostic(where, message, line=piece.line, remedy=_SEPARATED)


def _looks(column: Column) -> bool:
    is_figure = not columns.FIGURES.isdisjoint(column.fields)
    title = column.title.replace("_", " ")
    return is_figure or (columns.may_be_figure(column) and bool(_FIGURE.search(title)))


def _says_work(header: Sequence[Column]) -> bool:
    return not {"model", "num_gpus", *columns.OF_SYSTEM}.isdisjoint(columns.all_fields(header))


def _has_number(table: Table, place: int) -> bool:
    texts = (row.cells[place].text for row in table.rows if place < len(row.cells))
    return any(NUMBER.match(cells.cleaned(text)) for text in texts)


def _names_work(title: str) -> bool:
    """Whether a title is a model, a system, or a precision, or two of these, or some GPUs."""
    bare, precision = names.captioned(title)
    known = catalog.named_model(bare) or catalog.named_system(bare)
    some_gpus = names.gpus(title).count != title
    return bool(known or precision or catalog.precision_of(title) or some_gpus)


def _listed(found: Sequence[str]) -> str:
    return ", ".join(map(repr, found))
