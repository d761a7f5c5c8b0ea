"""Puts together the steps that were broken over several lines, and those that share one.

A launcher, a terminal or a pager breaks a line at any place: before a key, behind a `|`, or inside
a number. What is put together must be a step and nothing else; if it is not, another rank may have
printed between its parts, and the step is read as far as its own line goes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise, takewhile

from perfdb.formats.piped import Syntax, is_spoilt

GOES_ON = r"[ \t]*\||[eE]?[+\-]?\.?\d[\d.]*(?:[eE][+\-]?\d*)?[ \t]*(?:\||\r?(?:\n|\Z))"
"""How a line begins that may go on with the number in which the line before ends."""
_GOES_ON = re.compile(GOES_ON)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_STARTS_ON = ((0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (0, 2), (0, 3))
"""How many lines before and behind the marker's the start of a step may be broken over."""


@dataclass(frozen=True)
class StepText:
    """The text of a step, and where it begins on its line.

    `is_open`: it is of several lines, or might be. `lines_before`: how many lines before the
    marker's it begins.
    """

    text: str
    offset: int
    is_open: bool
    lines_before: int = 0


@dataclass(frozen=True)
class Around:
    """A line with a marker, and what stands before and behind it."""

    before: str
    line: str
    behind: str

    def lines_before(self, syntax: Syntax) -> Sequence[str]:
        """Those that a step's start may be on, the nearest first."""
        return list(islice(_near(reversed(_LINE.findall(self.before)), syntax), 3))

    def lines_behind(self, syntax: Syntax) -> Iterator[str]:
        """Those that the step may go on on."""
        near = _near((line[0] for line in _LINE.finditer(self.behind)), syntax)
        return takewhile(lambda line: not syntax.starts.search(line), near)


def _near(lines: Iterable[str], syntax: Syntax) -> Iterator[str]:
    """Lines up to one that is blank or another step's."""
    marker = syntax.marker.decode()
    return takewhile(lambda line: bool(line.strip()) and marker not in line, lines)


@dataclass(frozen=True)
class _Begun:
    """The text that steps begin in, how many lines before the marker's, and the lines behind."""

    text: str
    lines_before: int
    behind: Iterator[str]


def step_texts(around: Around, syntax: Syntax) -> Iterator[StepText]:
    """The steps that stand on one line: ranks that print at once may share it."""
    begun = _begun(around, syntax)
    text = begun.text
    starts = [match.start() for match in syntax.starts.finditer(text)]
    for start, end in pairwise([*starts, len(text)]) if starts else [(0, len(text))]:
        piece = _to_return(text[start:end])
        goes_on = end == len(text) and len(piece) >= len(text[start:].rstrip("\n"))
        whole = _whole(piece, begun.behind, syntax) if goes_on else piece
        is_open = text != around.line or whole != piece or not syntax.is_closed(piece)
        yield StepText(whole, start, is_open, begun.lines_before)


def _begun(around: Around, syntax: Syntax) -> _Begun:
    """What stands before a step on its first line, as its rank, is left out of the others."""
    before = around.lines_before(syntax)
    for first, last in _STARTS_ON:
        behind = around.lines_behind(syntax)
        lines = [*reversed(before[:first]), around.line, *islice(behind, last)]
        start = syntax.starts.search(_joined(lines))
        if start and len(lines) == 1 + first + last:
            prefix = start.string[: start.start()]
            own = [lines[0], *(line.removeprefix(prefix) for line in lines[1:])]
            return _Begun(_joined(own), first, (line.removeprefix(prefix) for line in behind))
    return _Begun(around.line, 0, iter(()))


def _joined(lines: Sequence[str]) -> str:
    return "".join([*(line.rstrip("\r\n") for line in lines[:-1]), *lines[-1:]])


def _to_return(text: str) -> str:
    """Up to the carriage return that a progress bar overwrites its line with, if there is one."""
    return text[: text.find("\r") + 1] or text


def _whole(piece: str, behind: Iterator[str], syntax: Syntax) -> str:
    """A step's text with the lines that it was wrapped on to.

    Without its last number where the next line may go on with that, and nobody knows.
    """
    first = None if syntax.ends_in(piece) else next(behind, None)
    if first is None:
        return piece
    whole = joined = piece
    for line in chain([first], behind):
        joined = _joined([joined, line])
        whole = joined if syntax.is_whole(joined) else whole
        if syntax.ends_in(joined) or is_spoilt(joined):
            break
    doubtful = whole is piece or _only_a_number(first, piece, syntax)
    return piece[: piece.rfind("|") + 1] if doubtful and _GOES_ON.match(first) else whole


def _only_a_number(line: str, piece: str, syntax: Syntax) -> bool:
    """Whether a line with nothing but a number may be of a step's time, or of anything else."""
    key = piece.rpartition("|")[2].partition(":")[0].strip()
    return key in syntax.required and "|" not in line and syntax.is_whole(piece)
