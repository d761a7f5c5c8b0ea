"""What is to be said of a page as a whole: things that several of its rows or tables share."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from perfdb.errors import Diagnostic
from perfdb.jsonfile import content_hash
from perfdb.pages import footnotes, names, otherwise
from perfdb.pages.base import Enter, Grid, Heading, Line, Page
from perfdb.pages.rows import TableReader
from perfdb.record import PublishedResult


def of_page(
    where: str, page: Page, readers: Sequence[TableReader], results: Sequence[PublishedResult]
) -> Iterator[Diagnostic]:
    """What no table can say alone, each thing once, with the lines that it is of."""
    yield from _once(filter(None, (reader.unknown() for reader in readers)))
    yield from _once(_mistyped(where, results))
    yield from _without_figure(where, results)
    yield from _repeated(where, results)
    yield from _once(otherwise.told(where, results))
    yield from _unreached(where, page, readers)
    yield from skipped(where, page)


def _once(problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Each problem where it is first, with the other lines that have the same."""
    found: dict[Diagnostic, set[int]] = defaultdict(set)
    for problem in problems:
        found[replace(problem, line=None)].add(problem.line or 0)
    for problem, on in found.items():
        first, *others = sorted(on)
        also = f" (also on {lines(others)})" if others else ""
        yield replace(problem, line=first, message=problem.message + also)


def _mistyped(where: str, results: Iterable[PublishedResult]) -> Iterator[Diagnostic]:
    """Models that the catalogue lacks under a name that is near to one of its own."""
    for one in results:
        if meant := names.model_meant(one.case.model):
            message = f"no model {one.case.model!r} in the catalogue"
            yield Diagnostic(where, message, line=one.line, remedy=f"did you mean {meant!r}?")


def _without_figure(where: str, results: Iterable[PublishedResult]) -> Iterator[Diagnostic]:
    bare = [one.line for one in results if all(value is None for _, value in one.figures)]
    if bare:
        message = f"results without any figure: {len(bare)}, on {lines(bare)}"
        remedy = "they are kept as unknown; write the figures, or remove the rows"
        yield Diagnostic(where, message, line=bare[0], remedy=remedy)


def _repeated(where: str, results: Iterable[PublishedResult]) -> Iterator[Diagnostic]:
    """Results that say again all that an earlier one says; the store keeps one of them."""
    first: dict[str, int] = {}
    told: dict[int, int] = {}
    for one in results:
        said = content_hash(one.model_dump(mode="json", exclude={"line"}))
        if said in first:
            told.setdefault(one.line, first[said])
        first.setdefault(said, one.line)
    for again, line in told.items():
        message = f"the result says the same as that of line {line}; one is stored for both"
        yield Diagnostic(where, message, line=again, remedy="remove one of them")


def _unreached(where: str, page: Page, readers: Iterable[TableReader]) -> Iterator[Diagnostic]:
    """Footnotes that no row has: the text outside the tables' sections refers to them, or none."""
    if not page.footnotes:
        return
    left = {footnotes.plain(mark) for mark in page.footnotes} - set(_in_tables(page, readers))
    for text, line in _texts(page):
        for mark in footnotes.in_paragraph(text):
            if mark in left:
                left.remove(mark)
                yield _unreached_at(where, mark, line)
    left -= {mark for text in page.footnotes.values() for mark in footnotes.in_paragraph(text)}
    yield from (_unreached_at(where, mark, None) for mark in sorted(left))


def _unreached_at(where: str, mark: str, line: int | None) -> Diagnostic:
    message = f"the text of the footnote {mark!r} is kept with no row"
    remedy = "put its mark into a row, a title, or the section above a table"
    return Diagnostic(where, message, line=line, remedy=remedy)


def _in_tables(page: Page, readers: Iterable[TableReader]) -> Iterator[str]:
    """The marks in the cells of every table, and those that concern all rows of one."""
    for reader in readers:
        yield from reader.footnotes.of_all
    for piece in page.pieces:
        if isinstance(piece, Grid):
            for row in (piece.header, *piece.rows):
                yield from (mark for cell in row.cells for mark in footnotes.marks(cell))


def _texts(page: Page) -> Iterator[tuple[str, int]]:
    for piece in page.pieces:
        if isinstance(piece, Heading | Line):
            yield piece.text, piece.line
        elif isinstance(piece, Enter):
            yield piece.label, piece.line


def skipped(where: str, page: Page) -> Iterator[Diagnostic]:
    """What of a page is not read, be it in other files."""
    every = (Diagnostic(where, it.message, line=it.line, remedy=it.remedy) for it in page.skipped)
    yield from _once(every)


def lines(numbers: Sequence[int]) -> str:
    """`line 7`, or `lines 7-9, 12`; the numbers are sorted."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number <= groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    spans = (f"{one[0]}-{one[-1]}" if one[-1] > one[0] else f"{one[0]}" for one in groups)
    return f"line{'s' if len(set(numbers)) > 1 else ''} {', '.join(spans)}"
