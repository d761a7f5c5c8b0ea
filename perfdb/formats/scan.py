"""One pass over a log in bounded memory: the blocks that hold steps, and the text around them.

Lines are counted by newlines, as editors and grep do; a lone carriage return ends a piece of text
but not a line. Escape sequences are removed before anything is searched for.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, repeat
from typing import Final

import numpy as np
from stringzilla import Str, bytesum

from perfdb.formats.base import Content
from perfdb.formats.columns import Ints
from perfdb.text import ESCAPE, decoded, plain

BLOCK_BYTES: Final = 4 << 20
"""Smaller blocks cost more calls, larger ones do not stay in the caches."""
LONGEST_LINE: Final = 4 << 20
LOOKAHEAD: Final = 2048
"""How far behind its marker the text of a step may reach, over the ends of lines."""
SEAM_BYTES: Final = 2 * LOOKAHEAD
HEAP_BYTES: Final = 16 << 20
SECTION_BYTES: Final = 8 << 20
FIRST_STEPS_BYTES: Final = 1 << 16
"""How much is kept behind the start of a section's first step: memory is reported there."""
MOST_SECTIONS: Final = 64
"""A log of more restarts keeps the text of the first ones only."""
LAST_WORDS_BYTES: Final = 1 << 15
"""How much is kept of the text among the last steps."""
LAST_STEPS: Final = 3
EPILOGUE_BLOCKS: Final = 3
"""How many blocks behind the last step are kept, at the beginning of that text and at its end."""

LONG_PART_BYTES: Final = 1 << 12
"""In parts of a text that are longer the ends of lines are not counted one by one."""
_NOWHERE: Final = np.empty(0, np.int64)

_Span = tuple[bytes, int, int]
"""A text, and where in it something starts and ends."""


@dataclass(frozen=True, eq=False)
class Block:
    """Whole lines of a log: those of `text` from `start` to `end`; `line` numbers the first.

    Ints are in `text`, of which nothing is copied.
    """

    text: bytes
    line: int
    start: int
    end: int
    _found: dict[bytes, tuple[Ints, Ints, int]] = field(default_factory=dict, init=False)

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

    def lines_with(self, marker: bytes) -> tuple[Ints, Ints]:
        """Of each line that holds a marker, where it is there first, and the line's number."""
        if marker not in self._found:
            self._found[marker] = self._search(marker)
        places, numbers, _ = self._found[marker]
        return places, numbers

    def line_around(self, place: int) -> tuple[int, int]:
        """Where the line of a place starts and ends, its line break included."""
        start = self.text.rfind(b"\n", self.start, place) + 1
        return start or self.start, self.text.find(b"\n", place, self.end) + 1 or self.end

    def _search(self, marker: bytes) -> tuple[Ints, Ints, int]:
        """The lines that hold a marker, and how many lines there are, by the text between them."""
        text = Str(self.text)[self.start : self.end]
        if text.find(marker) < 0:
            return _NOWHERE, _NOWHERE, _num_newlines(text)
        parts = list(text.split_iter(marker))
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        places = (sizes + len(marker)).cumsum() - len(marker)
        num_newlines = _newlines_between(text, parts, places)
        is_first = num_newlines > 0
        is_first[0], is_first[-1] = True, False
        numbers = self.line + num_newlines.cumsum()
        return self.start + places[is_first], numbers[is_first], int(num_newlines.sum())


def _newlines_between(text: Str, parts: Sequence[Str], ends: Ints) -> Ints:
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


@dataclass(frozen=True)
class Piece:
    """A line of a log, or a part of it that a carriage return ends. `line` numbers the first."""

    line: int
    text: str

    def since(self, line: int) -> "Piece":
        """What of it is on this line or below."""
        below = self.text.split("\n")[max(0, line - self.line) :]
        return Piece(max(line, self.line), "\n".join(below))


def pieces(block: Block, marker: bytes) -> Iterator[Piece]:
    """The pieces of a block with a marker, in order."""
    sought = decoded(marker)
    places, numbers = block.lines_with(marker)
    for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
        start, end = block.line_around(place)
        for text in re.split(r"(?<=\r)", decoded(block.text[start:end])):
            if sought in text:
                yield Piece(number, text)


@dataclass
class _Section:
    """What a program prints when it starts, up to its first steps; `line` has its start marker."""

    line: int
    has_steps: bool = False
    parts: list[bytes] = field(default_factory=list)
    room: int = SECTION_BYTES

    def add(self, text: bytes, start: int, end: int, steps: Ints) -> None:
        """Keep the next part of the log, as far as there is room, to the end of a line."""
        inside = steps[steps.searchsorted(start) : steps.searchsorted(end)]
        if len(inside) and not self.has_steps:
            self.has_steps = True
            self.room = min(self.room, int(inside[0]) - start + FIRST_STEPS_BYTES)
        kept = text[start : min(end, start + self.room)] if self.room else b""
        self.room -= len(kept)
        self.parts.append(kept if self.room else kept[: kept.rfind(b"\n") + 1])


class Scan:
    """One pass over a log: iterate it for the blocks that hold a marker of a step.

    Afterwards `starts` are the lines on which the program starts again below steps, `preamble` and
    `sections` what it printed at its starts, `last_words` the text among the last steps, and
    `epilogue` the beginning and the end of the text behind the last step.
    """

    def __init__(
        self,
        content: Content,
        *markers: bytes,
        starts: tuple[bytes, ...] = (),
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self.line = 1
        self._content = content
        self._block_bytes = block_bytes
        self._markers = markers
        self._start_markers = starts
        self._sections = [_Section(0)]
        self._last_step = 1
        self._before: list[_Span] = []
        self._behind: list[_Span] = []

    def __iter__(self) -> Iterator[Block]:
        # The C library keeps freed memory up to the size of the largest block it ever freed, and
        # returns the rest: to clear new pages for each block takes longer than to read it.
        np.empty(HEAP_BYTES, np.uint8)
        for block in self._blocks():
            found = [block.lines_with(one) for one in self._markers]
            places = np.sort(np.concatenate([places for places, _ in found]))
            self._keep_sections(block, places)
            if len(places):
                first = places[-LAST_STEPS] if len(places) >= LAST_STEPS else block.start
                above = [] if len(places) >= LAST_STEPS else self._behind
                self._before = [*above, (block.text, int(first), int(places[-1]))]
                self._behind = [(block.text, int(places[-1]), block.end)]
                self._last_step = max(int(lines[-1]) for _, lines in found if len(lines))
                yield block
            else:
                latest = self._behind[EPILOGUE_BLOCKS:][-EPILOGUE_BLOCKS:]
                span = (block.text, block.start, block.end)
                self._behind = [*self._behind[:EPILOGUE_BLOCKS], *latest, span]

    def _keep_sections(self, block: Block, steps: Ints) -> None:
        begin = block.start
        found = [block.lines_with(mark) for mark in self._start_markers if block.holds(mark)]
        pairs = [pair for places, lines in found for pair in zip(places, lines, strict=True)]
        for marked, line in sorted(pairs):
            place = block.line_around(int(marked))[0]
            is_below = bool(steps.searchsorted(begin) < steps.searchsorted(place))
            section = self._sections[-1]
            if (is_below or section.has_steps) and len(self._sections) < MOST_SECTIONS:
                section.add(block.text, begin, place, steps)
                self._sections.append(_Section(int(line)))
                begin = place
            elif not (is_below or section.line):
                section.line = int(line)
        self._sections[-1].add(block.text, begin, block.end, steps)

    @property
    def starts(self) -> list[int]:
        """The lines of starts below steps; none if no start is above the first step.

        Without that one nobody knows whose starts they are: another rank may have printed them.
        """
        return [one.line for one in self._sections[1:]] if self._sections[0].line else []

    @property
    def preamble(self) -> str:
        """What the program printed up to the first steps of the log."""
        return self.sections(0)[0]

    def sections(self, line: int) -> list[str]:
        """What the program printed at each of its starts up to a line."""
        shown = [one for one in self._sections if one.line <= line] or self._sections[:1]
        return [decoded(plain(b"".join(one.parts))) for one in shown]

    @property
    def last_words(self) -> Piece:
        """The text among the last steps."""
        text = _joined(self._before)[-LAST_WORDS_BYTES:]
        return Piece(self._last_step - text.count(b"\n"), decoded(plain(text)))

    @property
    def epilogue(self) -> str:
        """The text behind the last step."""
        return decoded(plain(_joined(self._behind)))

    def _blocks(self) -> Iterator[Block]:
        for text, start, end in self._spans():
            block = Block(text, self.line, start, end)
            if text.find(b"\x1b", start, end) >= 0:
                block = Block.of(ESCAPE.sub(b"", text[start:end]), self.line)
            yield block
            self.line += block.num_newlines

    def _spans(self) -> Iterator[_Span]:
        """Where blocks are in the chunks of a log.

        What a chunk leaves over becomes a block with the start of the next chunk: joined to all of
        that chunk, every byte would be copied.
        """
        left = b""
        for chunk in _sized(self._content, self._block_bytes):
            is_last = len(chunk) < self._block_bytes  # it is short, and nothing comes behind it
            start = 0 if is_last else self._end_of(chunk[:SEAM_BYTES])
            if left and start:
                yield left + chunk[:start], 0, len(left) + start
                text = chunk
            else:
                start, text = 0, left + chunk
            end = 0 if is_last else self._end_of(text)
            if end > start:
                yield text, start, end
            left = text[max(start, end) :]
            if len(left) > LONGEST_LINE:
                end = left.rfind(b"\r") + 1 or len(left)
                yield left, 0, end
                left = left[end:]
        if left:
            yield left, 0, len(left)

    def _end_of(self, text: bytes) -> int:
        """Where a block can end last: at the end of a line that no step's text goes on behind."""
        end = text.rfind(b"\n") + 1
        reach = max(0, end - LOOKAHEAD)
        last = max(text.rfind(marker, reach, end) for marker in self._markers)
        return end if last < 0 else text.rfind(b"\n", 0, last) + 1


def _sized(content: Content, block_bytes: int) -> Iterator[bytes]:
    """The same bytes in chunks of one size, but for the last."""
    held: list[bytes] = []
    size = 0
    for chunk in content:
        held.append(chunk)
        size += len(chunk)
        if size >= block_bytes:
            text = b"".join(held)
            end = size - size % block_bytes
            yield from (text[at : at + block_bytes] for at in range(0, end, block_bytes))
            held = [text[end:]] if end < size else []
            size -= end
    if size:
        yield b"".join(held)


def _joined(spans: list[_Span]) -> bytes:
    return b"".join(text[start:end] for text, start, end in spans)
