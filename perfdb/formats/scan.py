"""One pass over a log in bounded memory: the blocks that hold steps, and what stands around them.

Lines are counted by newlines, as editors and grep do; a lone carriage return ends a piece of text
but not a line. Escape sequences are taken out before anything is searched for.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from perfdb.formats.base import Content
from perfdb.formats.begun import Starts
from perfdb.formats.block import Block
from perfdb.log_text import ESCAPE, decoded, plain

BLOCK_BYTES = 4 << 20
"""Smaller blocks take longer for each, larger ones longer for their bytes: the caches are left."""
LONGEST_LINE = 4 << 20
LOOKAHEAD = 2048
"""How far behind its marker a step's text may go on over the ends of lines."""
SEAM_BYTES = 2 * LOOKAHEAD
"""How much of a piece is joined to what the piece before left over."""
HEAP_BYTES = 16 << 20
PREAMBLE_BYTES = 8 << 20
FIRST_STEPS_BYTES = 1 << 16
"""How much behind the start of the first step counts as preamble: memory is told of there."""
BEFORE_BYTES = 1 << 15
"""How much of what stands among the last steps is kept."""
LAST_STEPS = 3
"""How many markers up they begin: further up an earlier attempt may have failed."""

_Span = tuple[bytes, int, int]
"""A text, and where in it something starts and ends."""


@dataclass(frozen=True)
class Piece:
    """A line of a log, or a part of it that a carriage return ends, with its line break.

    Or several lines: `line` is that of the first.
    """

    line: int
    text: str

    def since(self, line: int) -> "Piece":
        """What of it stands on a line or behind it."""
        behind = self.text.split("\n")[max(0, line - self.line) :]
        return Piece(max(line, self.line), "\n".join(behind))


def pieces(block: Block, marker: bytes) -> Iterator[Piece]:
    """The pieces of a block that hold a marker, in order."""
    sought = decoded(marker)
    places, numbers = block.lines_with(marker)
    for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
        start, end = block.line_around(place)
        for text in re.split(r"(?<=\r)", decoded(block.text[start:end])):
            if sought in text:
                yield Piece(number, text)


@dataclass(frozen=True)
class End:
    """What a log says among its last steps and behind them.

    `num_lines`: how many lines it has; `last_step`: the line of its last step.
    """

    num_lines: int
    last_step: int
    before: bytes
    behind: bytes
    starts: Starts


class Scan:
    """One pass over a log: iterate it for the blocks that hold a marker.

    Afterwards `preamble` is what stands before the steps and around the first of them, `before`
    what stands among the last of them, and `epilogue` what stands behind the last step: its
    beginning and its end. `starts` tells where the program begins, by the marks that it is given.
    """

    def __init__(
        self,
        content: Content,
        *markers: bytes,
        before: bytes = b"",
        starts: tuple[bytes, ...] = (),
    ) -> None:
        self.content = content
        self.markers = markers
        self.starts = Starts(*starts)
        self.line = 1
        self._last_step = 1
        self._tail = before
        self._preamble: list[bytes] = []
        self._room = PREAMBLE_BYTES
        self._before: list[_Span] = []
        self._behind: list[_Span] = []

    def __iter__(self) -> Iterator[Block]:
        # The C library keeps freed memory up to the size of the largest block it ever freed, and
        # gives back the rest: to clear new pages for each block takes longer than to read it.
        np.empty(HEAP_BYTES, np.uint8)
        begun = False
        for block in self._blocks():
            steps = [block.lines_with(one) for one in self.markers]
            found = [places for places, _ in steps if len(places)]
            if found and not begun:
                begun, first = True, min(int(places[0]) for places in found)
                self._room = min(self._room, first - block.start + FIRST_STEPS_BYTES)
            if self._room:
                self._keep_lines(block)
            self.starts.add(block, [lines for _, lines in steps])
            if found:
                lasts = sorted(int(one) for places in found for one in places[-LAST_STEPS:])
                self._before = self._among(block, lasts)
                self._behind = [(block.text, lasts[-1], block.end)]
                self._last_step = max(int(lines[-1]) for _, lines in steps if len(lines))
                yield block
            else:
                span = (block.text, block.start, block.end)
                self._behind = [*self._behind[:3], *self._behind[3:][-3:], span]

    def _keep_lines(self, block: Block) -> None:
        """Keep what of a block the preamble has room for, to the end of a line."""
        kept = block.text[block.start : min(block.end, block.start + self._room)]
        self._room -= len(kept)
        if not self._room:
            kept = kept[: kept.rfind(b"\n") + 1]
        self._preamble.append(kept)

    def _among(self, block: Block, lasts: list[int]) -> list[_Span]:
        """What stands among the last markers, in this block and in those before it."""
        if len(lasts) >= LAST_STEPS:
            return [(block.text, lasts[-LAST_STEPS], lasts[-1])]
        return [*self._behind, (block.text, block.start, lasts[-1])]

    @property
    def end(self) -> "End":
        """What stands among the last steps and behind them, and how many lines there were."""
        before, behind = _joined(self._before), _joined(self._behind)
        return End(self.line - 1, self._last_step, before, behind, self.starts)

    def end_with(self, end: "End") -> None:
        """Take over the end of a log from a scan of its rest."""
        self._last_step = self.line - 1 + end.last_step
        self.starts.go_on_with(end.starts, self.line - 1)
        self.line += end.num_lines
        self._before = [(end.before, 0, len(end.before))]
        self._behind = [(end.behind, 0, len(end.behind))]

    @property
    def preamble(self) -> str:
        """What the log says of its run, as text."""
        return decoded(plain(b"".join(self._preamble)))

    @property
    def before(self) -> Piece:
        """What the log says among its last steps, as text."""
        text = _joined(self._before)[-BEFORE_BYTES:]
        return Piece(self._last_step - text.count(b"\n"), decoded(plain(text)))

    @property
    def epilogue(self) -> str:
        """What the log says of its end, as text."""
        return decoded(plain(_joined(self._behind)))

    def _blocks(self) -> Iterator[Block]:
        for text, start, end in self._spans():
            block = Block(text, self.line, start, end, self._tail if start == 0 else b"")
            if text.find(b"\x1b", start, end) >= 0:
                block = Block.of(ESCAPE.sub(b"", text[start:end]), self.line, self._tail)
            yield block
            self.line += block.num_newlines
            self._tail = block.tail

    def _spans(self) -> Iterator[_Span]:
        """Where blocks stand in the pieces of a log.

        What a piece leaves over is a block of its own, with the start of the next piece: joined to
        all of that, it would have every byte copied.
        """
        left = b""
        for piece in _sized(self.content):
            # The last piece is short, and is not to be cut: nothing comes behind it.
            is_last = len(piece) < BLOCK_BYTES
            start = 0 if is_last else self.end_of(piece[:SEAM_BYTES])
            if left and start:
                yield left + piece[:start], 0, len(left) + start
                text = piece
            else:
                start, text = 0, left + piece
            end = 0 if is_last else self.end_of(text)
            if end > start:
                yield text, start, end
            left = text[max(start, end) :]
            if len(left) > LONGEST_LINE:
                end = left.rfind(b"\r") + 1 or len(left)
                yield left, 0, end
                left = left[end:]
        if left:
            yield left, 0, len(left)

    def end_of(self, piece: bytes) -> int:
        """Where in a piece a block can end last; 0 where it can nowhere.

        At the end of a line, with no step's text going on behind it.
        """
        end = piece.rfind(b"\n") + 1
        last, reach = -1, max(0, end - LOOKAHEAD)
        for marker in self.markers:
            last = max(last, piece.rfind(marker, reach, end))
        return end if last < 0 else piece.rfind(b"\n", 0, last) + 1


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
            rest = text[end:]
            # Not even nothing is held: joined to it, the next piece would be copied.
            held, size = [rest] if rest else [], len(rest)
    if size:
        yield b"".join(held)


def _joined(spans: list[_Span]) -> bytes:
    return b"".join(text[start:end] for text, start, end in spans)


def whole(content: Content) -> str:
    """All of a file that is not large, as text."""
    return decoded(plain(b"".join(content))).removeprefix("\ufeff")
