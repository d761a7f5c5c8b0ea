"""Finds the few lines of a large log that matter, in one pass and in bounded memory.

Lines are counted by newlines, as editors and grep do; a lone carriage return ends a piece of text
but not a line. Escape sequences are taken out before anything is searched for.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from perfdb.formats.base import Content

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 4 << 20
LOOKAHEAD = 2048
"""How far behind its marker a step's text may go on over the ends of lines."""
MANY_HITS = 200
"""From so many steps in a block on it is faster to list all of its lines."""
KEPT_BYTES = 16 << 20
SAMPLE_BYTES = 1 << 11
"""How much of a block tells which bytes are rare in it."""
MANY_SEEN = 8
"""A byte that is in the sample more often does not tell enough alone."""
PREAMBLE_BLOCKS = 8
FIRST_STEPS_BYTES = 1 << 16
"""How much behind the start of the first step counts as preamble: memory is told of there."""
_NEWLINE = np.uint8(ord("\n"))
ESCAPE = re.compile(rb"\x1b(?:\[(?:[0-9;:?]+[A-Za-z]|[mKJH])|\][^\x07\n]{0,200}\x07|[()][A-Z0-9])")
"""Colours and movements of the cursor. A sequence that was cut off takes no text with it."""


@dataclass(frozen=True, eq=False)
class Hits:
    """Lines of a block: where each starts and ends, its line break included, and its number.

    `num_newlines`: how many there are in the whole block.
    """

    starts: Places
    ends: Places
    numbers: Places
    num_newlines: int


@dataclass(frozen=True)
class Piece:
    """A line of a log, or a part of it that a carriage return ends, with its line break."""

    line: int
    text: str


@dataclass(frozen=True)
class Block:
    """Whole lines of a log; `line` is the number of the first."""

    text: bytes
    line: int

    @cached_property
    def _bytes(self) -> Bytes:
        return np.frombuffer(self.text, np.uint8)

    @cached_property
    def _places(self) -> dict[bytes, Places]:
        return {}

    @cached_property
    def _hits(self) -> dict[bytes, Hits]:
        return {}

    def places(self, marker: bytes) -> Places:
        """Where a marker stands, in order."""
        if marker not in self._places:
            self._places[marker] = _found(self.text, marker)
        return self._places[marker]

    def lines_with(self, marker: bytes) -> Hits:
        """The lines that hold a marker, each once."""
        if marker not in self._hits:
            places = self.places(marker)
            of = self._of_many if len(places) > MANY_HITS else self._of_few
            self._hits[marker] = of(places)
        return self._hits[marker]

    @cached_property
    def _is_newline(self) -> Flags:
        return _equal(self._bytes, _NEWLINE)

    def _of_many(self, places: Places) -> Hits:
        newlines = _set(self._is_newline)
        before = newlines.searchsorted(places)
        before = before[np.diff(before, prepend=-1) > 0]
        bounds = np.concatenate(([0], newlines + 1, [len(self.text)]))
        return Hits(bounds[before], bounds[before + 1], before + self.line, len(newlines))

    def _of_few(self, places: Places) -> Hits:
        find, rfind = self.text.find, self.text.rfind
        starts, ends = [0], [0]
        for place in places.tolist():
            if place >= ends[-1]:
                starts.append(rfind(b"\n", 0, place) + 1)
                ends.append(find(b"\n", place) + 1 or len(self.text))
        bounds = pairwise([*starts, len(self.text)])
        counts = [int(np.count_nonzero(self._is_newline[a:b])) for a, b in bounds]
        numbers = list(accumulate(counts, initial=self.line))
        return Hits(
            np.array(starts[1:], np.intp),
            np.array(ends[1:], np.intp),
            np.array(numbers[1:-1], np.intp),
            numbers[-1] - self.line,
        )

    @property
    def num_newlines(self) -> int:
        """How many lines end in this block."""
        for hits in self._hits.values():
            return hits.num_newlines
        return int(np.count_nonzero(self._is_newline))


def _found(text: bytes, marker: bytes) -> Places:
    """Where a marker stands in a text: its rarest bytes are looked for, then all of it."""
    array, sought = np.frombuffer(text, np.uint8), np.frombuffer(marker, np.uint8)
    seen = np.bincount(array[:SAMPLE_BYTES], minlength=256)[sought]
    rare, other = seen.argsort()[:2].tolist()
    few = None if seen[rare] else _found_by(text, marker, rare)
    if few is not None:
        return np.array(few, np.intp)
    num_starts = max(len(text) - len(marker) + 1, 0)
    may = _equal(array[rare : rare + num_starts], sought[rare])
    if seen[rare] > MANY_SEEN:
        may[:num_starts] &= np.equal(array[other : other + num_starts], sought[other])
    places = _set(may)
    return np.asarray(places[(windows(array, places, len(marker)) == sought).all(axis=1)])


def _found_by(text: bytes, marker: bytes, at: int) -> list[int] | None:
    """Where a marker stands, by one of its bytes; None where that turns out not to be rare."""
    byte, places = marker[at : at + 1], list[int]()
    place = text.find(byte, at)
    for _ in range(MANY_HITS):
        if place < 0:
            return places
        if text.startswith(marker, place - at):
            places.append(place - at)
        place = text.find(byte, place + 1)
    return None


def _equal(text: Bytes, byte: np.uint8) -> Flags:
    """Where a byte stands in a text; a few places that are not set follow, for `_set`."""
    flags = np.empty(-(-len(text) // 8) * 8, np.bool_)
    flags[len(text) :] = False
    np.equal(text, byte, out=flags[: len(text)])
    return flags


def _set(flags: Flags) -> Places:
    """The places of those that are set: as flatnonzero, but faster where they are few.

    There are a multiple of eight, of which those that are all unset are passed over at once.
    """
    eights = flags.view(np.uint64)
    (some,) = np.not_equal(eights, 0).nonzero()
    (bits,) = eights[some].view(np.bool_).nonzero()
    return np.asarray(some[bits >> 3] * 8 + (bits & 7))


def windows(text: Bytes, starts: Places, size: int) -> Bytes:
    """The bytes of a text from each start on, as rows of one size. None may reach over its end."""
    if not len(starts):
        return np.empty((0, size), np.uint8)
    every = np.ndarray((len(text) - size + 1,), f"V{size}", text, strides=(1,))
    return every[starts].view(np.uint8).reshape(-1, size)


def pieces(block: Block, marker: bytes) -> Iterator[Piece]:
    """The pieces of a block that hold a marker, in order."""
    sought, hits = decoded(marker), block.lines_with(marker)
    columns = (hits.starts.tolist(), hits.ends.tolist(), hits.numbers.tolist())
    for start, end, line in zip(*columns, strict=True):
        for text in re.split(r"(?<=\r)", decoded(block.text[start:end])):
            if sought in text:
                yield Piece(line, text)


class Scan:
    """One pass over a log: iterate it for the blocks that hold a marker.

    Afterwards `preamble` is what stands before the steps and around the first of them, and
    `epilogue` what stands behind the last step: its beginning and its end.
    """

    def __init__(self, content: Content, *markers: bytes) -> None:
        self._content = content
        self._markers = markers
        self._preamble: list[bytes] = []
        self._epilogue: list[bytes] = []

    def __iter__(self) -> Iterator[Block]:
        # The C library keeps freed memory up to the size of the largest block it ever freed, and
        # gives back the rest: to clear new pages for each block takes longer than to read it.
        np.empty(KEPT_BYTES, np.uint8)
        steps_begun = False
        for block in self._blocks():
            found = [places for one in self._markers if len(places := block.places(one))]
            if not steps_begun and len(self._preamble) < PREAMBLE_BLOCKS:
                first = min((int(places[0]) for places in found), default=len(block.text))
                self._preamble.append(block.text[: first + FIRST_STEPS_BYTES])
            if found:
                steps_begun = True
                self._epilogue = [block.text[max(int(places[-1]) for places in found) :]]
                yield block
            else:
                self._epilogue = [*self._epilogue[:2], block.text]

    @property
    def preamble(self) -> str:
        """What the log says of its run, as text."""
        return decoded(b"".join(self._preamble))

    @property
    def epilogue(self) -> str:
        """What the log says of its end, as text."""
        return decoded(b"".join(self._epilogue))

    def _blocks(self) -> Iterator[Block]:
        line, carried = 1, b""
        for piece in _sized(self._content):
            # The last piece is short, and is not to be cut: nothing comes behind it.
            end = self._end(piece, len(carried)) if len(piece) == BLOCK_BYTES else 0
            text = b"".join((carried, memoryview(piece)[:end]))
            carried = piece[end:]
            if end:
                block = Block(plain(text), line)
                yield block
                line += block.num_newlines
            else:
                carried = text + carried
        if carried:
            yield Block(plain(carried), line)

    def _end(self, piece: bytes, num_carried: int) -> int:
        """Where a block can end: at the end of a line, with no step's text going on behind it."""
        end = piece.rfind(b"\n") + 1
        last = max(piece.rfind(marker, max(0, end - LOOKAHEAD), end) for marker in self._markers)
        if last >= 0:
            end = piece.rfind(b"\n", 0, last) + 1
        return end or (len(piece) if num_carried > LONGEST_LINE else 0)


def _sized(content: Content) -> Iterator[bytes]:
    """The same bytes in pieces of one size, but for the last."""
    held: list[bytes] = []
    size = 0
    for chunk in content:
        held.append(chunk)
        size += len(chunk)
        if size >= BLOCK_BYTES:
            text = b"".join(held)
            end = size - size % BLOCK_BYTES
            for start in range(0, end, BLOCK_BYTES):
                yield text[start : start + BLOCK_BYTES]
            held, size = [text[end:]], size - end
    if size:
        yield b"".join(held)


def plain(text: bytes) -> bytes:
    """Bytes without escape sequences, and with newlines for the ends of lines."""
    if b"\x1b" in text:
        text = ESCAPE.sub(b"", text)
    return text.replace(b"\r\n", b"\n") if b"\r" in text else text


def decoded(text: bytes) -> str:
    """Bytes as text; what is no UTF-8 is shown as such."""
    return text.decode("utf-8", errors="replace")


def whole(content: Content) -> str:
    """All of a file that is not large, as text."""
    return decoded(plain(b"".join(content))).removeprefix("\ufeff")
