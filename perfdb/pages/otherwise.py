"""Footnotes and cells without a field that name something else than what their result is of."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from perfdb import versions
from perfdb.errors import Diagnostic
from perfdb.messages import note_text
from perfdb.pages import cells, columns, elsewhere, names, releases, sentences, systems
from perfdb.record import PublishedResult

_OUTSIDE: Final = re.compile(r"\b(?:since|before|until|than|over)\b", re.IGNORECASE)
"""What is in a footnote that names something which its row need not have."""
_LENGTH: Final = re.compile(
    rf"\bseq(?:uence)?[ _-]?len(?:gth)?s?\s*(?:of|is|was|=|:)?\s*({cells.grouped(',')}|[0-9]+)"
    r"(k?)(?!\w|\.[0-9])",
    re.IGNORECASE,
)
_LENGTH_BEFORE: Final = re.compile(
    r"(?<![\w.,])([0-9]+)(k?)[ -](?:tokens? )?seq(?:uence)?[ _-]?len(?:gth)?\b", re.IGNORECASE
)
_PARTS: Final = re.compile(r"[+,;/&]")
_MEAN: Final = re.compile(r"\b(?:average|avg|mean|median)\b", re.IGNORECASE)
_NOTED: Final = "put what the row is of into its cells, or a heading"

_Otherwise = tuple[str, str]
"""What a footnote says, and what its row counts as."""


def told(where: str, results: Iterable[PublishedResult]) -> Iterator[Diagnostic]:
    """A problem for each footnote, or cell without a field, that says something else than it."""
    for one in results:
        for note in map(note_text, one.notes):
            if found := [*_precision(note, one), *_rest(note, one)]:
                said = " and ".join(words for words, _ in found)
                held = ", ".join(held for _, held in found)
                message = f"a footnote speaks of {said}; the row counts as {held}"
                yield Diagnostic(where, message, line=one.line, remedy=_NOTED)
        for title, text in one.extras.items():
            if words := _beside(title, text, one.case.precision or ""):
                said, held = " and ".join(words), one.case.precision or "of unknown precision"
                message = f"a cell below {title!r} speaks of {said}; the row counts as {held}"
                yield Diagnostic(where, message, line=one.line, remedy=_NOTED)


def _beside(title: str, text: str, held: str) -> list[str]:
    """The precisions in a cell without a field that are not its row's: `compile + FP8`."""
    if columns.fields_of(title) or elsewhere.of_a_part(title):
        return []
    parts = [one for one in _PARTS.split(text) if not elsewhere.of_a_part(one)]
    said = (sentences.precisions(one) for one in parts if not sentences.BESIDE.search(one))
    return [word for words in said for word in words if not names.are_precisions([word], held)]


def _precision(note: str, of: PublishedResult) -> Iterator[_Otherwise]:
    word, held = sentences.precision(note), of.case.precision or ""
    if word and held and not names.are_precisions([word], held):
        yield word, held


def _rest(note: str, of: PublishedResult) -> Iterator[_Otherwise]:
    """What else it says, unless it holds the result against something."""
    if sentences.BESIDE.search(note) or _OUTSIDE.search(note):
        return
    release, held = releases.of_heading(note, of.release.framework).whose.release, of.release
    if release and held.version and not versions.is_same(release, held.version):
        yield release, held.version
    named = systems.mentioned(note)
    if named and not any(systems.may_be(one, of.case.system) for one in named):
        yield " and ".join(named), of.case.system
    tasks = [*filter(None, [names.other_task(note)])] or names.tasks(note)
    if tasks and of.case.task not in tasks:
        yield " and ".join(tasks), of.case.task
    lengths = [] if _MEAN.search(note) else list(_lengths(note))
    if lengths and not any(_is_length(one, of.case.sequence_length) for one in lengths):
        yield f"sequence length {' and '.join(lengths)}", f"{of.case.sequence_length:,}"


def _lengths(note: str) -> Iterator[str]:
    found = (*_LENGTH.finditer(note), *_LENGTH_BEFORE.finditer(note))
    yield from (one[1] + one[2] for one in found)


def _is_length(printed: str, tokens: int) -> bool:
    number = cells.ungrouped(printed.rstrip("kK"))
    thousands = (1000, 1024) if printed != printed.rstrip("kK") else (1,)
    return tokens in (int(number) * thousand for thousand in thousands)
