"""Finds the few lines of a large log that matter, in one pass and in bounded memory.

Lines are counted by newlines, as editors and grep do; a lone carriage return ends a piece of text
but not a line. Escape sequences are taken out before anything is searched for.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from perfdb.formats.base import Content

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 4 << 20
LOOKAHEAD = 2048
"""How far behind its marker a step's text may go on over the ends of lines."""
MANY_HITS = 200
"""From so many steps in a block on it is faster to list all of its lines."""
PREAMBLE_BLOCKS = 8
FIRST_STEPS_BYTES = 1 << 16
"""How much behind the start of the first step counts as preamble: memory is told of there."""
ESCAPE = re.compile(rb"\x1b(?:\[(?:[0-9;:?]+[A-Za-z]|[mKJH])|\][^\x07\n]{0,200}\x07|[()][A-Z0-9])")
"""Colours and movements of the cursor. A sequence that was cut off takes no text with it."""


@dataclass(frozen=True)
class Hits:
    """Lines of a block: where each starts and ends, its line break included, and its number."""

    spans: Sequence[tuple[int, int]]
    numbers: Sequence[int]


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
    def _newlines(self) -> npt.NDArray[np.bool_]:
        return np.equal(np.frombuffer(self.text, np.uint8), ord("\n"))

    def lines_of(self, offsets: Sequence[int]) -> list[int]:
        """The numbers of the lines that hold these offsets, which are in order."""
        if len(offsets) > MANY_HITS:
            before = np.searchsorted(np.flatnonzero(self._newlines), offsets)
            numbers: list[int] = (before + self.line).tolist()
            return numbers
        spans = zip([0, *offsets], offsets, strict=False)
        between = [int(np.count_nonzero(self._newlines[a:b])) for a, b in spans]
        return list(accumulate(between, initial=self.line))[1:]

    def lines_with(self, marker: bytes) -> "Hits":
        """The lines that hold a marker, each once."""
        find, rfind = self.text.find, self.text.rfind
        spans: list[tuple[int, int]] = []
        place, size = find(marker), len(self.text)
        while place >= 0:
            end = find(b"\n", place) + 1 or size
            spans.append((rfind(b"\n", 0, place) + 1, end))
            place = find(marker, end)
        return Hits(spans, self.lines_of([start for start, _ in spans]))

    @property
    def num_newlines(self) -> int:
        """How many lines end in this block."""
        return int(np.count_nonzero(self._newlines))


def pieces(block: Block, marker: bytes) -> Iterator[Piece]:
    """The pieces of a block that hold a marker, in order."""
    sought, hits = decoded(marker), block.lines_with(marker)
    for (start, end), line in zip(hits.spans, hits.numbers, strict=True):
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
        steps_begun = False
        for block in self._blocks():
            last = max(block.text.rfind(marker) for marker in self._markers)
            if not steps_begun and len(self._preamble) < PREAMBLE_BLOCKS:
                self._preamble.append(self._before_steps(block.text))
            if last < 0:
                self._epilogue = [*self._epilogue[:2], block.text]
            else:
                steps_begun = True
                self._epilogue = [block.text[last:]]
                yield block

    def _before_steps(self, text: bytes) -> bytes:
        starts = [place for marker in self._markers if (place := text.find(marker)) >= 0]
        return text[: min(starts) + FIRST_STEPS_BYTES] if starts else text

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
