"""Footnotes: the marks that cells bear, and the texts that stand right under a table."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from perfdb.pages import cells
from perfdb.pages.base import Cell, Line, Row
from perfdb.pages.outline import Table

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_SIGNS = "*†‡§"
_LABELLED = r"\[\^?([^\]\s]{1,40})\]_?|<sup>\s*([^<\s]{1,40})\s*</sup>"
_BRACKETS = r"\((?:[0-9]{1,2}|[a-z])\)"
"""A mark only where a text begins with it; else what stands in brackets is a value."""
_UNIT = re.compile(r"\[[a-z]\](?!_)")
_TEXT = re.compile(
    rf"(?!\[!)(?:{_LABELLED}|\\?([{_SIGNS}]{{1,3}})|([⁰¹²³⁴-⁹]+)|({_BRACKETS})(?=\s))\s*:?\s*"
    r"(?P<text>\S.*)|(?:Notes?\s*:|\[!(?:note|important|warning|caution)\])\s*(?P<note>.*)",
    re.IGNORECASE | re.DOTALL,
)


def marks(cell: Cell) -> tuple[str, ...]:
    """The marks of a cell without their dress: of `661[^a]` it is `a`, of `661<sup>1</sup>` `1`.

    Emphasis is no mark: of a raw `**661**` the text is plain.
    """
    shown = cells.notes(cell.text)
    hidden = [mark for mark in cells.notes(cell.raw) if mark[0] in "[<"]
    return tuple(dict.fromkeys(plain(mark) for mark in (*shown, *hidden)))


def plain(mark: str) -> str:
    """A mark as it is compared: `[^1]`, `<sup>1</sup>` and `¹` are all `1`."""
    found = re.fullmatch(_LABELLED, mark)
    bare = (found[1] or found[2]) if found else mark
    bare = bare.translate(_SUPERSCRIPTS).lstrip("\\^")
    return bare.lstrip("#") or bare


def begins(text: str) -> bool:
    """Whether a paragraph that begins so is the text of a footnote."""
    return _TEXT.fullmatch(text) is not None


@dataclass(frozen=True)
class Below:
    """What the lines right under a table say: texts by their mark, and of the whole table."""

    by_mark: Mapping[str, str]
    of_table: tuple[str, ...]


def marked(table: Table, of_page: Mapping[str, str]) -> Table:
    """The table with `[^(1)]` where a cell says `(1)`, and a text under it begins so.

    So with a letter in brackets in a title: without a text it is a unit.
    """
    under = below(table.below).by_mark
    known = {*under, *map(plain, of_page)}
    brackets = {mark for mark in under if re.fullmatch(_BRACKETS, mark)}
    letters = {f"[{mark}]" for mark in known if re.fullmatch("[a-z]", mark)}
    if not brackets | letters:
        return table
    header, *rows = (_with_marks(row, brackets | letters) for row in (table.header, *table.rows))
    return replace(table, header=header, rows=tuple(rows))


def _with_marks(row: Row, marks_: Collection[str]) -> Row:
    found = {}
    for cell in row.cells:
        text = cell.text
        for mark in marks_:
            text = text.replace(mark, f"[^{mark.strip('[]')}]")
        found[id(cell)] = replace(cell, text=text)
    return replace(row, cells=tuple(found[id(cell)] for cell in row.cells))


def below(lines: Sequence[Line]) -> Below:
    """The footnotes right under a table, up to the first text that is none.

    A text goes on to the end of its paragraph.
    """
    found = [one for text in _paragraphs(lines) if (one := _TEXT.fullmatch(text))]
    marked = [
        (plain(one[1] or one[2] or one[3] or one[4] or one[5]), one["text"])
        for one in found
        if one["text"]
    ]
    # Of two texts for one mark the first holds, as it does for a reader who looks down.
    return Below(dict(reversed(marked)), tuple(one["note"] for one in found if one["note"]))


def _paragraphs(lines: Sequence[Line]) -> Iterator[str]:
    """The texts that start as footnotes, each with the lines that go on with it."""
    text: list[str] = []
    last = 0
    for line in lines:
        # A star at the start of a line is what makes it an item of a list.
        words = f"* {line.text}" if line.listed else line.text
        if begins(words):
            yield " ".join(text)
            text = []
        elif not text or line.line != last + 1:
            break
        text.append(words)
        last = line.line
    yield " ".join(text)


@dataclass(frozen=True)
class Footnotes:
    """The footnotes of a table: those right under it, and those of its page, by their marks."""

    table: Table
    of_page: Mapping[str, str]

    def of(self, row: Row) -> tuple[str, ...]:
        """The texts that concern a row.

        They are those of its marks, those of the marks in the table's header, in the headings,
        captions and paragraphs of its section, and those of a note on the whole table; each once.
        """
        marked = [*_marks(row.cells), *self.of_all]
        texts = [self._texts[mark] for mark in marked if mark in self._texts]
        return tuple(dict.fromkeys((*texts, *self._below.of_table)))

    def unexplained(self, row: Row) -> tuple[str, ...]:
        """The marks in a row, or in the header, that nothing explains; `[s]` in that is a unit."""
        found = map(_without_unit, row.cells) if row is self.table.header else row.cells
        return tuple(mark for mark in _marks(found) if mark not in self._texts)

    @cached_property
    def _below(self) -> Below:
        return below(self.table.below)

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        of_page = {plain(mark): " ".join(text.split()) for mark, text in self.of_page.items()}
        return {**of_page, **self._below.by_mark}

    @cached_property
    def of_all(self) -> tuple[str, ...]:
        """The marks that are of all rows."""
        headings = [Cell(one.text, one.text) for one in self.table.said if one.heading]
        said = [one for one in self.table.said if not one.listed]
        paragraphs = [one.text for one in said if not one.heading]
        paragraphs += [line.text for line in self.table.below]
        above = [*_marks(self.table.header.cells), *_marks(headings)]
        return (*above, *(mark for text in paragraphs for mark in in_paragraph(text)))


def in_paragraph(text: str) -> tuple[str, ...]:
    """The marks in running text; a star or a raised digit may be of a formula: `2 * 3 m²`.

    The mark that a footnote's own text starts with refers to nothing.
    """
    own = _TEXT.fullmatch(text)
    if own and own["text"]:
        return ()
    return tuple(plain(mark) for mark in cells.notes(text) if mark[0] in "[<†‡§")


def _without_unit(title: Cell) -> Cell:
    return Cell(_UNIT.sub("", title.raw), _UNIT.sub("", title.text))


def _marks(found: Iterable[Cell]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mark for cell in found for mark in marks(cell)))
