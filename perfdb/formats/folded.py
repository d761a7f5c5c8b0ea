"""Finds where a log is folded, and which of its steps that cuts.

A launcher or a terminal folds lines at a width, and what others print may stand between the parts.
A step of that width may then be cut inside its last number, and looks like one that is whole. But
somewhere in such a log stand lines that steps of that width go on on.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from perfdb.formats.block import Bytes, Flags, Places
from perfdb.formats.piped import Syntax
from perfdb.log_text import decoded

if TYPE_CHECKING:
    from perfdb.formats.lines import Lines  # which imports this module

_NUMBER = r"[eE]?[+\-]?\.?\d[\d.]*(?:[eE][+\-]?\d*)?"
GOES_ON = rf"[ \t]*\||{_NUMBER}[ \t]*(?:\||\r?(?:\n|\Z))"
"""How a line begins that may go on with the number in which the line before ends."""
_BARE_NUMBER = re.compile(rf"\s*{_NUMBER}\s*")
_REST = rb"(?=[ \t|eE+\-.\d])[\d.eE+\-]*+[ \t]*+(?=[|\r\n])"
"""How such a line begins, of which much is no such line: quicker to search for."""
_LONGEST_PREFIX = 64
_MOST_PREFIXES = 8
_MOST_RESTS = 32
"""Of so many lines behind a step that may be its rest it is looked whether they are."""
_MANY_FULL = 3
"""So many lines of one width, and none that is wider, are not so by chance."""
_MOST_RANKS = 16
"""How many step lines up the one may stand that a line goes on with: others are other ranks'."""


@dataclass(frozen=True)
class StepLine:
    """A step's line. `offset`: where its marker stands in it; `place`: where in the whole text."""

    text: str
    offset: int
    place: int = -1

    @property
    def prefix(self) -> str:
        """What stands before the step, as its rank."""
        return self.text[: self.offset]

    @property
    def step(self) -> str:
        """The step, without the end of its line."""
        return self.text[self.offset :].rstrip("\r\n")

    @property
    def widths(self) -> tuple[int, int]:
        """How wide it is with its prefix and without: a fold counts that, or does not."""
        return self.offset + len(self.step), len(self.step)


@dataclass(frozen=True)
class _Cuts:
    """How wide the lines are that are folded, and where those stand whose step may be cut."""

    widths: frozenset[tuple[bool, int]] = frozenset()
    places: frozenset[int] = frozenset()


class Folds:
    """Tells which steps of a text are cut though they end in a number. Looks at it when asked."""

    def __init__(self, lines: "Lines", syntax: Syntax) -> None:
        self._lines = lines
        self._syntax = syntax

    def may_cut(self, line: str, place: int) -> bool:
        """Whether the last step of a line, whose marker stands at a place, may go on further on."""
        marker = decoded(self._syntax.marker)
        first, last = line.find(marker), line.rfind(marker)
        return self._may_cut(StepLine(line, last, place + last - first))

    def _may_cut(self, line: StepLine) -> bool:
        cuts = self._cuts
        widths = zip((True, False), line.widths, strict=True)
        return line.place in cuts.places or not cuts.widths.isdisjoint(widths)

    def may_cut_alike(self, base: Bytes, marker_at: int, places: Places) -> Flags:
        """The same of the steps at some places, all of them in lines like one."""
        line = StepLine(decoded(base.tobytes()), marker_at)
        if not self._ends_in_field(line.step):
            # That the shape was learned says that lines like it are not folded.
            return np.zeros(len(places), np.bool_)
        return np.isin(places, list(self._cuts.places)) | self._may_cut(line)

    def _ends_in_field(self, step: str) -> bool:
        return self._syntax.open_key(step) in self._syntax.by_letters

    @cached_property
    def _cuts(self) -> _Cuts:
        widths, numbered = set[tuple[bool, int]](), set[StepLine]()
        for line, rest in self._rests():
            if not is_number(rest):
                if is_rest(line, rest, self._syntax):
                    widths |= set(zip((True, False), line.widths, strict=True))
            elif self._ends_in_field(line.step):
                numbered.add(line)
        return _Cuts(frozenset(widths), self._widest(numbered) if numbered else frozenset())

    def _widest(self, some: set[StepLine]) -> frozenset[int]:
        """The places of those lines that none is wider than: others are not folded."""
        text, places = self._lines.text, self._lines.places.tolist()
        widths = [
            StepLine(decoded(text[start:end]), place - start).widths
            for place, (start, end, _) in zip(places, self._lines.spans(), strict=True)
        ]
        widest = tuple(map(max, zip(*widths, strict=True)))
        return frozenset(line.place for line in some if any(map(int.__ge__, line.widths, widest)))

    def _rests(self) -> Iterator[tuple[StepLine, str]]:
        """Step lines, each with the lines behind it that may be of its rest."""
        text, limits = self._lines.text, self._lines.limits
        found = self._found()
        if not found:
            return
        marker = re.compile(re.escape(self._syntax.marker))
        markers = np.array([one.start() for one in marker.finditer(text, 0, int(limits[-1]))])
        starts = [one.start() for one in found]
        owners, parts = np.searchsorted(markers, starts), np.searchsorted(limits, starts, "right")
        seen = Counter[int]()
        for one, owner, part in zip(found, owners.tolist(), parts.tolist(), strict=True):
            seen[owner] += 1
            if seen[owner] <= _MOST_RESTS and part < len(limits):
                low, limit = int(limits[part - 1]) if part else 0, int(limits[part])
                start = one.start() + 1
                prefix = self._prefixes.match(text, start)
                behind = prefix.end() if prefix else start
                near = markers[max(0, owner - _MOST_RANKS) : owner]
                lines = [self._line(place, low) for place in near[near >= low].tolist()]
                end = text.find(b"\n", behind, limit) + 1 or limit
                if lines:
                    yield _of_prefix(lines, decoded(text[start:behind])), decoded(text[behind:end])

    def _found(self) -> list[re.Match[bytes]]:
        """The lines, from the end of the one before, that may be the rest of any step."""
        numbers = self._lines.numbers
        if self._syntax.last or not len(numbers):
            return []
        # Where one step follows on the other nothing stands between.
        first = int((np.diff(numbers, append=-1) != 1).argmax())
        behind = re.compile(rb"\n(?:%s)?+%s" % (self._prefixes.pattern, _REST))
        place, end = int(self._lines.places[first]), int(self._lines.limits[-1])
        return list(behind.finditer(self._lines.text, place, end))

    @cached_property
    def _prefixes(self) -> re.Pattern[bytes]:
        """What stands before steps, of which digits differ from rank to rank."""
        places = self._lines.places
        some = places[:: max(1, len(places) // _MOST_PREFIXES)].tolist()
        lines = {self._line(place, 0).prefix.encode() for place in some}
        short = sorted(re.escape(one) for one in lines if len(one) <= _LONGEST_PREFIX)
        return re.compile(b"|".join(re.sub(rb"\d+", rb"\\d+", one) for one in short if one))

    def _line(self, place: int, low: int) -> StepLine:
        text = self._lines.text
        start = max(text.rfind(b"\n", low, place) + 1, low)
        end = text.find(b"\n", place)
        line = decoded(text[start : end if end >= 0 else len(text)])
        return StepLine(line, len(decoded(text[start:place])), place)


def _of_prefix(lines: list[StepLine], prefix: str) -> StepLine:
    """The last line with a prefix, if one is known to have it: the last of all if not."""
    return next((line for line in reversed(lines) if line.prefix == prefix), lines[-1])


def full_at(text: str, syntax: Syntax) -> int | None:
    """The width that the start of a log is folded at, where a step so wide may have been cut.

    Lines that are no steps tell of it: several are as wide, and none is wider. A step may be cut
    where it ends in a field and the next line does not go on with that.
    """
    marker, lines = decoded(syntax.marker), text.splitlines()
    widest = max(map(len, lines), default=0)
    full = [place for place, line in enumerate(lines) if len(line) == widest]
    steps = [place for place in full if marker in lines[place]]
    is_cut = any(
        syntax.field_of_end(step) and not syntax.goes_on_with(step, behind)
        for step, behind in (
            (lines[place], "".join(lines[place + 1 : place + 2])) for place in steps
        )
    )
    return widest if is_cut and len(full) - len(steps) >= _MANY_FULL else None


def is_number(line: str) -> bool:
    """Whether a line is a number or the end of one, and nothing else."""
    return bool(_BARE_NUMBER.fullmatch(line))


def is_rest(line: StepLine, rest: str, syntax: Syntax) -> bool:
    """Whether a line may be the rest of a step, or as much of it as was folded to that width."""
    rest = rest.rstrip("\r\n")
    closed, bar, _ = rest.rpartition("|")
    is_full = bool(bar) and len(rest) in line.widths
    return syntax.goes_on_with(line.step, closed if is_full else rest)
