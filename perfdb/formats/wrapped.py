"""Puts together the steps that were broken over several lines, and those that share one.

A launcher, a terminal or a pager breaks a line at any place: before a key, behind a `|`, or inside
a number. What is put together must be a step and nothing else; if it is not, another rank may have
printed between its parts, and the step is read as far as its own line goes.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise, takewhile

from perfdb.formats.folded import GOES_ON, StepLine, is_number, is_rest
from perfdb.formats.piped import Syntax, is_spoilt

_GOES_ON = re.compile(GOES_ON)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_STARTS_ON = ((0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (0, 2), (0, 3))
"""How many lines before and behind the marker's the start of a step may be broken over."""
MayBeCut = Callable[[], bool]
"""Whether a step that ends with its line, in a number, may go on somewhere behind the next."""


@dataclass(frozen=True)
class StepText:
    """The text of a step, and where it begins on its line.

    `is_open`: it is of several lines, or might be. `lines_before`: how many lines before the
    marker's it begins. `is_cut`: not all of the step is known to be there.
    """

    text: str
    offset: int
    is_open: bool
    lines_before: int = 0
    is_cut: bool = False


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
    """The lines that steps begin on, how many before the marker's, and the lines behind.

    `prefix`: what stands before the step on its first line, and is left out of the others.
    """

    lines: Sequence[str]
    lines_before: int
    behind: Sequence[str]
    prefix: str = ""

    @property
    def text(self) -> str:
        """The text that steps begin in."""
        return _joined(self.lines)

    def is_full(self, line: str) -> bool:
        """Whether a line is as wide as the first, with its prefix or without."""
        width, own = len(self.lines[0].rstrip("\r\n")), len(line.rstrip("\r\n"))
        return own in (width, width - len(self.prefix))


@dataclass(frozen=True)
class _Whole:
    """A step's text with the lines that it was wrapped on to."""

    text: str
    lines: Sequence[str] = ()
    is_cut: bool = False


def step_texts(around: Around, syntax: Syntax, may_be_cut: MayBeCut) -> Iterator[StepText]:
    """The steps that stand on one line: ranks that print at once may share it."""
    begun = _begun(around, syntax)
    text = begun.text
    starts = [match.start() for match in syntax.starts.finditer(text)]
    for start, end in pairwise([*starts, len(text)]) if starts else [(0, len(text))]:
        piece = _to_return(text[start:end])
        goes_on = end == len(text) and len(piece) >= len(text[start:].rstrip("\n"))
        whole = _whole(piece, begun, syntax) if goes_on else _Whole(piece)
        if goes_on and syntax.last is None and not whole.is_cut:
            whole = _without_cut(whole, begun, around, syntax, may_be_cut)
        is_same = text == around.line and whole == _Whole(piece)
        is_open = not is_same or not syntax.is_closed(piece) or _may_lack_keys(piece, syntax)
        yield StepText(whole.text, start, is_open, begun.lines_before, whole.is_cut)


def _begun(around: Around, syntax: Syntax) -> _Begun:
    before = around.lines_before(syntax)
    for first, last in _STARTS_ON:
        behind = around.lines_behind(syntax)
        lines = [*reversed(before[:first]), around.line, *islice(behind, last)]
        start = syntax.starts.search(_joined(lines))
        if start and len(lines) == 1 + first + last:
            prefix = start.string[: start.start()]
            own = [lines[0], *(line.removeprefix(prefix) for line in lines[1:])]
            return _Begun(own, first, [line.removeprefix(prefix) for line in behind], prefix)
    return _Begun([around.line], 0, [])


def _joined(lines: Sequence[str]) -> str:
    return "".join([*(line.rstrip("\r\n") for line in lines[:-1]), *lines[-1:]])


def _to_return(text: str) -> str:
    """Up to the carriage return that a progress bar overwrites its line with, if there is one."""
    return text[: text.find("\r") + 1] or text


def _whole(piece: str, begun: _Begun, syntax: Syntax) -> _Whole:
    """A step's text with the lines that it was wrapped on to.

    Without its last number where the next line may go on with that, and nobody knows.
    """
    whole, joined = _Whole(piece), piece
    behind = list(_up_to_word(begun))
    for num, line in enumerate(behind, 1):
        if syntax.ends_in(joined) or (num > 1 and is_spoilt(joined)):
            break
        if is_number(line) and syntax.field_of_end(joined):
            before = _without_last(joined, behind[: num - 1], syntax)
            return before if num == 1 or syntax.is_whole(before.text) else whole
        joined = _joined([joined, line])
        whole = _Whole(joined, behind[:num]) if syntax.is_whole(joined) else whole
    rest = behind[len(whole.lines) : len(whole.lines) + 1]
    if rest and syntax.open_key(whole.text) is not None and _GOES_ON.match(rest[0]):
        return _without_last(whole.text, whole.lines, syntax)
    return whole


def _up_to_word(begun: _Begun) -> Iterator[str]:
    """The lines behind up to one that is folded nowhere and holds no key: another's."""
    for line in begun.behind:
        yield line
        if not ("|" in line or ":" in line or begun.is_full(line)):
            break


def _without_last(text: str, lines: Sequence[str], syntax: Syntax) -> _Whole:
    return _Whole(text[: text.rfind("|") + 1], lines, bool(syntax.field_of_end(text)))


def _without_cut(
    whole: _Whole, begun: _Begun, around: Around, syntax: Syntax, may_be_cut: MayBeCut
) -> _Whole:
    """The same without the number that a fold may have cut; told as cut where one may have."""
    lines = (*begun.lines, *whole.lines)
    behind = _LINE.findall(around.behind)[len(lines) - 1 - begun.lines_before :]
    if _is_next_step(behind[:1], whole.text, begun.prefix, syntax):
        return whole
    if len(lines) > 1:
        is_cut = begun.is_full(lines[-1])
    else:
        is_cut = may_be_cut() or _is_key_cut(whole.text, behind, begun.prefix, syntax)
    if not is_cut:
        return whole
    if syntax.field_of_end(whole.text):
        return _without_last(whole.text, whole.lines, syntax)
    return replace(whole, is_cut=True)


def _is_next_step(lines: Sequence[str], step: str, prefix: str, syntax: Syntax) -> bool:
    """Whether the first of some lines is the next step of the same rank."""
    own = syntax.starts.match(step)
    other = syntax.starts.match(lines[0].removeprefix(prefix)) if lines else None
    return bool(own and other and own[0] != other[0])


def _may_lack_keys(step: str, syntax: Syntax) -> bool:
    return syntax.last is None and step.rstrip().endswith("|")


def _is_key_cut(step: str, behind: Sequence[str], prefix: str, syntax: Syntax) -> bool:
    """Whether a step ends in or before a key that a line behind it goes on with."""
    if syntax.open_key(step) is not None or is_spoilt(step):
        return False
    line = StepLine(prefix + step, len(prefix))
    return any(is_rest(line, one.removeprefix(prefix), syntax) for one in behind)
