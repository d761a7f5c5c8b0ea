"""Markers in a document that somebody wrote: what is between two of them is replaced, no more.

    <!-- perfdb:begin nemo/25.04/pretrain/dgx-h100 -->
    <!-- perfdb:end -->

Each stands on a line of its own. The name is that of a fragment of `perfdb publish`. Pure.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Final

from perfdb.errors import Diagnostic, InputError, suggestion

_ANY: Final = re.compile(r"<!--\s*perfdb:")
_BEGIN: Final = re.compile(r"([ \t]*)<!--[ \t]*perfdb:begin[ \t]+(\S+)[ \t]*-->\s*")
_END: Final = re.compile(r"[ \t]*<!--[ \t]*perfdb:end[ \t]*-->\s*")
_WRITE: Final = "write <!-- perfdb:begin NAME --> or <!-- perfdb:end --> on a line of its own"


@dataclass(frozen=True)
class MarkedBlock:
    """A pair of markers: its name, and the indices of its two lines."""

    name: str
    first: int
    last: int
    indent: str


def blocks(where: str, text: str) -> list[MarkedBlock]:
    """The blocks of a document. Raises InputError where a marker is damaged, or there is none."""
    lines = text.splitlines(keepends=True)
    marks = [(place, line) for place, line in enumerate(lines) if _ANY.search(line)]
    problems = [
        Diagnostic(where, f"is no marker: {line.strip()[:60]}", line=place + 1, remedy=_WRITE)
        for place, line in marks
        if not (_BEGIN.fullmatch(line) or _END.fullmatch(line))
    ]
    if not marks:
        problems = [Diagnostic(where, "has no markers", remedy=_WRITE)]
    found = [] if problems else list(_paired(where, marks, problems))
    names = Counter(one.name for one in found)
    problems += [
        Diagnostic(where, f"{one.name!r} is there twice", line=one.first + 1, remedy="remove one")
        for one in found
        if names[one.name] > 1
    ]
    if problems:
        raise InputError(problems)
    return found


def _paired(
    where: str, marks: Iterable[tuple[int, str]], problems: list[Diagnostic]
) -> Iterator[MarkedBlock]:
    """A block for each begin and the end behind it; what has no other half is a problem."""
    opened: tuple[int, re.Match[str]] | None = None
    for place, line in [*marks, (-1, "")]:
        begin = _BEGIN.fullmatch(line)
        if opened and (begin or not line):
            remedy = "write <!-- perfdb:end --> below it"
            message = f"{opened[1][2]!r} has no end"
            problems.append(Diagnostic(where, message, line=opened[0] + 1, remedy=remedy))
        elif opened:
            yield MarkedBlock(opened[1][2], opened[0], place, opened[1][1])
        elif line and not begin:
            remedy = "write its <!-- perfdb:begin NAME --> above it, or remove it"
            problems.append(Diagnostic(where, "an end without a begin", line=place + 1,
                                       remedy=remedy))  # fmt: skip
        opened = (place, begin) if begin else None


def unknown(where: str, known: Sequence[MarkedBlock], names: Sequence[str]) -> list[Diagnostic]:
    """Each block that no fragment is called as."""
    return [
        Diagnostic(where, f"nothing is called {one.name!r}", line=one.first + 1,
                   remedy=suggestion(one.name, names))
        for one in known
        if one.name not in names
    ]  # fmt: skip


def filled(text: str, known: Sequence[MarkedBlock], parts: Mapping[str, str]) -> str:
    """The document with what is between its markers; every other line stays as it is."""
    return "".join(_pieces(text.splitlines(keepends=True), known, parts))


def _pieces(
    lines: Sequence[str], known: Sequence[MarkedBlock], parts: Mapping[str, str]
) -> Iterator[str]:
    at = 0
    for one in known:
        yield from lines[at : one.first + 1]
        newline = "\r\n" if lines[one.first].endswith("\r\n") else "\n"
        part = indent(f"\n{parts[one.name]}\n", one.indent)
        yield part.replace("\n", newline)
        at = one.last
    yield from lines[at:]
