"""Finds markers in a block of a log, and the numbers of the lines that they are on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, repeat

import numpy as np
import numpy.typing as npt
from stringzilla import Str, bytesum

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

NOWHERE = np.empty(0, np.int64)
LONG_PART_BYTES = 1 << 12
"""In parts of a text that are longer the ends of lines are not counted one by one."""


@dataclass(frozen=True, eq=False)
class Block:
    """Whole lines of a log: those of `text` from `start` to `end`; `line` numbers the first.

    Places are in `text`, of which nothing is copied.
    """

    text: bytes
    line: int
    start: int
    end: int
    _found: dict[bytes, tuple[Places, Places, int]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, text: bytes, line: int) -> "Block":
        """A block that is all of a text."""
        return cls(text, line, 0, len(text))

    @property
    def num_newlines(self) -> int:
        """How many lines end in this block."""
        counted = (num_newlines for _, _, num_newlines in self._found.values())
        return next(counted, None) or _num_newlines(Str(self.text)[self.start : self.end])

    def holds(self, marker: bytes) -> bool:
        """Whether a marker is in it."""
        return bool(Str(self.text)[self.start : self.end].find(marker) >= 0)

    def lines_with(self, marker: bytes) -> tuple[Places, Places]:
        """Of each line that holds a marker, where it is there first, and the line's number."""
        if marker not in self._found:
            self._found[marker] = self._search(marker)
        places, numbers, _ = self._found[marker]
        return places, numbers

    def line_around(self, place: int) -> tuple[int, int]:
        """Where the line of a place starts and ends, its line break included."""
        start = self.text.rfind(b"\n", self.start, place) + 1
        return start or self.start, self.text.find(b"\n", place, self.end) + 1 or self.end

    def _search(self, marker: bytes) -> tuple[Places, Places, int]:
        """The lines that hold a marker, and how many lines there are, by the text between them."""
        text = Str(self.text)[self.start : self.end]
        if text.find(marker) < 0:
            return NOWHERE, NOWHERE, _num_newlines(text)
        parts = list(text.split_iter(marker))
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        places = (sizes + len(marker)).cumsum() - len(marker)
        num_newlines = _newlines_between(text, parts, places)
        is_first = num_newlines > 0
        is_first[0], is_first[-1] = True, False
        numbers = self.line + num_newlines.cumsum()
        return self.start + places[is_first], numbers[is_first], int(num_newlines.sum())


def _newlines_between(text: Str, parts: Sequence[Str], ends: Places) -> Places:
    """How many lines end in each part of a text."""
    if len(parts) * LONG_PART_BYTES > len(text):
        return np.fromiter(map(Str.count, parts, repeat(b"\n")), np.int64, len(parts))
    newlines, bounds = _newlines(text), pairwise([0, *ends.tolist()])
    counts = (bytesum(newlines[start:end]) for start, end in bounds)
    return np.fromiter(counts, np.int64, len(parts))


def _num_newlines(text: Str) -> int:
    return int(bytesum(_newlines(text)))


def _newlines(text: Str) -> Str:
    """A byte for each of a text: 1 where a line ends, of which the sum is found faster."""
    return Str(np.equal(np.frombuffer(text, np.uint8), ord("\n")).view(np.uint8).data)
