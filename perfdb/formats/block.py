"""Finds markers in a block of a log, and the numbers of the lines that they stand on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

LOOKBACK = 256
"""How far before the line of its marker a step may begin."""
SMALL_BYTES = 1 << 14
"""A block up to this size is searched in fewer steps, if slower ones."""
MANY_HITS = 200
"""From so many candidates in a block on they are better looked for all at once."""
SAMPLE_BYTES = 1 << 11
"""How much of a block tells which bytes are rare in it."""
MANY_SEEN = 8
"""A byte that is in the sample more often does not tell enough alone."""
_NEWLINE = np.uint8(ord("\n"))


@dataclass(frozen=True, eq=False)
class Block:
    """Whole lines of a log: those of `text` from `start` to `end`; `line` numbers the first.

    Places are in `text`, of which nothing is copied. `before`: the end of what the log says before
    the text.
    """

    text: bytes
    line: int
    start: int
    end: int
    before: bytes = b""

    @classmethod
    def of(cls, text: bytes, line: int, before: bytes = b"") -> "Block":
        """A block that is all of a text."""
        return cls(text, line, 0, len(text), before)

    @property
    def tail(self) -> bytes:
        """The end of its text."""
        return self.text[max(self.start, self.end - LOOKBACK) : self.end]

    @cached_property
    def _bytes(self) -> Bytes:
        return np.frombuffer(self.text, np.uint8)[self.start : self.end]

    @cached_property
    def _places(self) -> dict[bytes, Places]:
        return {}

    def places(self, marker: bytes) -> Places:
        """Where a marker stands, in order; on each line at least where it stands there first."""
        if marker not in self._places:
            self._places[marker] = self._found(marker)
        return self._places[marker]

    def lines_with(self, marker: bytes) -> tuple[Places, Places]:
        """Of each line that holds a marker, where it stands there first, and the line's number."""
        places = self.places(marker)
        numbers = self._numbers(places)
        is_first = np.ones(len(places), np.bool_)
        is_first[1:] = numbers[1:] > numbers[:-1]
        return places[is_first], numbers[is_first]

    def line_around(self, place: int) -> tuple[int, int]:
        """Where the line of a place starts and ends, its line break included."""
        start = self.text.rfind(b"\n", self.start, place) + 1
        return start or self.start, self.text.find(b"\n", place, self.end) + 1 or self.end

    @property
    def num_newlines(self) -> int:
        """How many lines end in this block."""
        if self.end - self.start <= SMALL_BYTES:
            return self.text.count(b"\n", self.start, self.end)
        return int(self._newlines[1][-1])

    def _numbers(self, places: Places) -> Places:
        words, counts = self._newlines
        at = places - self.start
        word = at >> 6
        behind = np.bitwise_count(words[word] >> (at & 63).astype(np.uint64))
        return np.asarray(self.line + counts[word] - behind)

    @cached_property
    def _newlines(self) -> tuple[npt.NDArray[np.uint64], Places]:
        """A bit for each byte, 64 in a word, and how many newlines there are up to its end."""
        packed = np.packbits(np.equal(self._bytes, _NEWLINE), bitorder="little")
        bits = np.zeros(-(-len(packed) // 8), "<u8")
        bits.view(np.uint8)[: len(packed)] = packed
        return bits, np.bitwise_count(bits).cumsum(dtype=np.int64)

    def _found(self, marker: bytes) -> Places:
        few = self._found_singly(marker)
        return self._found_at_once(marker) if few is None else np.array(few, np.int64)

    def _found_singly(self, marker: bytes) -> list[int] | None:
        """Where a marker stands first on each line, by its rarest byte; None where none is rare."""
        at, sought = 0, marker
        if self.end - self.start > SMALL_BYTES:
            seen = self._sampled(marker)
            at = int(seen.argmin())
            if seen[at]:
                return None
            sought = marker[at : at + 1]
        find, is_at = self.text.find, self.text.startswith
        start, end, places = self.start, self.end, list[int]()
        for _ in range(MANY_HITS):
            place = find(sought, start + at, end) - at
            if place < start:
                return places
            if is_at(marker, place, end):
                places.append(place)
                start = find(b"\n", place, end) + 1 or end
            else:
                start = place + 1
        return None

    def _found_at_once(self, marker: bytes) -> Places:
        """Where a marker stands: where its two rarest bytes do, then all of it."""
        array, sought, seen = self._bytes, np.frombuffer(marker, np.uint8), self._sampled(marker)
        rare, other = seen.argsort()[:2].tolist()
        num_starts = max(len(array) - len(marker) + 1, 0)
        may = np.equal(array[rare : rare + num_starts], sought[rare])
        if seen[rare] > MANY_SEEN:
            may &= np.equal(array[other : other + num_starts], sought[other])
        places = _set(may)
        every = np.ndarray((num_starts,), f"S{len(marker)}", array, strides=(1,))
        return np.asarray(places[every[places] == marker] + self.start)

    def _sampled(self, marker: bytes) -> Places:
        """How often each byte of a marker stands in a sample of the block."""
        seen = np.bincount(self._bytes[:SAMPLE_BYTES], minlength=256)
        return np.asarray(seen[np.frombuffer(marker, np.uint8)])


def _set(flags: Flags) -> Places:
    """The places of those that are set: as flatnonzero, but faster where they are few.

    Eights that are all unset are passed over at once.
    """
    whole = len(flags) // 8 * 8
    eights = flags[:whole].view(np.uint64)
    (some,) = np.not_equal(eights, 0).nonzero()
    (bits,) = eights[some].view(np.bool_).nonzero()
    (rest,) = flags[whole:].nonzero()
    return np.concatenate((some[bits >> 3] * 8 + (bits & 7), rest + whole))
