"""Reads step lines: those that look alike thousands at once, the others one by one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter

import numpy as np

from perfdb.formats.block import LOOKBACK, Block, Bytes, Flags, Places
from perfdb.formats.folded import GOES_ON, Folds
from perfdb.formats.piped import Syntax
from perfdb.formats.readings import Columns
from perfdb.formats.scan import LOOKAHEAD
from perfdb.formats.shapes import Shape, shape_of
from perfdb.formats.wrapped import Around, StepText, step_texts
from perfdb.log_text import decoded

LONGEST_SHAPE = 1 << 12
MOST_SHAPES, MOST_LEARNED = 64, 16
"""How many shapes are known at a time, and how many of them from the same lines."""
LINE_BEFORE, LINE_BEHIND = 256, 512
"""How far before and behind its marker a line may begin and end that is kept with many at once."""
WINDOW_BYTES = LOOKBACK + LINE_BEFORE + LINE_BEHIND + LOOKAHEAD
_NEWLINE, _BLANK = ord("\n"), b"\n\n"
_GOES_ON = re.compile(GOES_ON.encode())
_MAY_GO_ON = np.isin(np.arange(256), np.frombuffer(b" \t|eE+-.0123456789", np.uint8))
"""The first bytes of lines that may go on with a number."""


@dataclass(frozen=True, eq=False)
class Lines:
    """Step lines in a text: where the marker of each stands, and the number of the line.

    `limits`: up to where the line, and those that its step may go on on, can reach. `before`: the
    end of what stands before the text.
    """

    text: bytes
    places: Places
    limits: Places
    numbers: Places
    before: bytes = b""

    @classmethod
    def of(cls, block: Block, marker: bytes) -> "Lines":
        """The lines of a block that hold a marker."""
        places, numbers = block.lines_with(marker)
        limits = np.full(len(places), block.end)
        return cls(block.text, places, limits, numbers, block.before)

    def __len__(self) -> int:
        return len(self.places)

    def at(self, some: Places) -> "Lines":
        """Some of the lines."""
        places, limits, numbers = self.places[some], self.limits[some], self.numbers[some]
        return Lines(self.text, places, limits, numbers, self.before)

    def __iter__(self) -> Iterator[tuple[int, bytes, Around]]:
        """The number of each line, the line with its line break, and it with those around it."""
        for number, (start, end, limit) in zip(self.numbers.tolist(), self.spans(), strict=True):
            line = self.text[start:end]
            parts = (self.from_before(start, start), line, self.text[end:limit])
            yield number, line, Around(*map(decoded, parts))

    def from_before(self, start: int, end: int) -> bytes:
        """The text from a line's start to an end, with what stands before the line."""
        if start < LOOKBACK:
            return (self.before + self.text[:start])[-LOOKBACK:] + self.text[start:end]
        return self.text[start - LOOKBACK : end]

    def alike(self, some: Places, shape: Shape, may_go_on: bool) -> tuple[Flags, Bytes]:
        """Which of some lines have a shape, and these line by line.

        `may_go_on`: without those that may go on on the next line; no other would.
        """
        starts, size = self.places[some] - shape.marker_at, len(shape.base)
        ends = starts + size
        fits = (starts >= 0) & (ends <= self.limits[some])
        starts, ends = starts[fits], ends[fits]
        begins = (starts == 0) | (self._bytes[starts - 1] == _NEWLINE)
        is_line = begins & (self._bytes[ends - 1] == _NEWLINE)
        if may_go_on:
            is_line &= ~self._go_on(starts, ends, shape.marker_at, is_line)
        fits[fits] = is_line
        rows = _rows(self._bytes, starts[is_line], size)
        fits[fits] = is_alike = shape.matches(rows)
        return fits, rows if is_alike.all() else rows[is_alike]

    def _go_on(self, starts: Places, ends: Places, prefix: int, some: Flags) -> Flags:
        """Which of some lines the next may go on with, as it is or behind the same prefix."""
        next_bytes = self._bytes.take(ends, mode="clip")
        go_on = self._match(ends, some & _MAY_GO_ON[next_bytes])
        if prefix:
            same = some & (self._bytes[starts] == next_bytes)
            behind = ends + prefix
            same &= _MAY_GO_ON[self._bytes.take(behind, mode="clip")]
            go_on |= self._match(behind, same)
        return go_on

    def _match(self, places: Places, may: Flags) -> Flags:
        for one in may.nonzero()[0].tolist():
            may[one] = bool(_GOES_ON.match(self.text, int(places[one])))
        return may

    @cached_property
    def _bytes(self) -> Bytes:
        return np.frombuffer(self.text, np.uint8)

    def windows(self) -> Bytes | None:
        """The bytes around each marker, as rows: its line and what may be of its step around it.

        None where that may be more, or the text ends before.
        """
        starts, size = self.places - LINE_BEFORE - LOOKBACK, WINDOW_BYTES
        if not len(starts) or starts[0] < 0 or starts[-1] + size > self.limits[-1]:
            return None
        rows = _rows(self._bytes, starts, size)
        is_end = rows[:, LOOKBACK : size - LOOKAHEAD] == _NEWLINE
        sides = is_end[:, :LINE_BEFORE], is_end[:, LINE_BEFORE:]
        return rows if all(side.any(axis=1).all() for side in sides) else None

    def one_by_one(self) -> tuple[list[bytes], list[int]]:
        """The text around each marker, and where in it the marker stands."""
        texts, places = [], []
        for place, (start, _, end) in zip(self.places.tolist(), self.spans(), strict=True):
            texts.append(self.from_before(start, end))
            places.append(len(texts[-1]) - (end - place))
        return texts, places

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Where each line starts, where it ends, and up to where its step may go on."""
        find, rfind = self.text.find, self.text.rfind
        for place, limit in zip(self.places.tolist(), self.limits.tolist(), strict=True):
            end = find(b"\n", place, limit) + 1 or limit
            yield rfind(b"\n", 0, place) + 1, end, min(end + LOOKAHEAD, limit)


class KeptLines:
    """Step lines of several texts, with no more of these than they need."""

    def __init__(self) -> None:
        self._texts: list[bytes | memoryview] = []
        self._places: list[Places] = []
        """Where each line's marker stands, from the start of its text."""
        self._sizes: list[Places] = []
        self._numbers: list[Places] = []
        self.size_bytes = 0

    def add(self, lines: Lines) -> None:
        """Keep the lines of another text."""
        windows = lines.windows()
        if windows is not None:
            self._texts.append(windows.data)
            self._places.append(np.full(len(lines), LOOKBACK + LINE_BEFORE))
            self._sizes.append(np.full(len(lines), WINDOW_BYTES))
        else:
            # Each stands behind a blank line, so that no step goes on from one to the next.
            texts, places = lines.one_by_one()
            self._texts += [_BLANK + text for text in texts]
            self._places.append(np.array(places, np.int64) + len(_BLANK))
            self._sizes.append(np.fromiter(map(len, texts), np.int64, len(texts)) + len(_BLANK))
        self.size_bytes += int(self._sizes[-1].sum())
        self._numbers.append(lines.numbers)

    def taken(self) -> Lines:
        """All that was kept, of which nothing is kept any longer."""
        if not self._texts:
            nothing = np.empty(0, np.int64)
            return Lines(b"", nothing, nothing, nothing)
        sizes = np.concatenate(self._sizes)
        limits = sizes.cumsum()
        places = limits - sizes + np.concatenate(self._places)
        lines = Lines(b"".join(self._texts), places, limits, np.concatenate(self._numbers))
        self._texts, self._places, self._sizes, self._numbers = [], [], [], []
        self.size_bytes = 0
        return lines


def _rows(text: Bytes, starts: Places, size: int) -> Bytes:
    """The bytes of a text from each start on, as rows of one size. None may reach over its end."""
    if not len(starts):
        return np.empty((0, size), np.uint8)
    every = np.ndarray((len(text) - size + 1,), f"V{size}", text, strides=(1,))
    return every[starts].view(np.uint8).reshape(-1, size)


Missing = tuple[int, Sequence[str]]
"""The line of a step, and what it lacks."""


@dataclass(frozen=True)
class Read:
    """The steps of some lines in their order, and those that cannot be read.

    `cut`: the lines of steps that a fold may have cut something off.
    """

    columns: Columns
    missing: Sequence[Missing]
    cut: Sequence[int] = ()


def read(lines: Lines, syntax: Syntax, shapes: list[Shape]) -> Read:
    """The steps of lines. `shapes` are those of lines before, and become those of these lines.

    The shape that most lines have comes first.
    """
    reader = _Reader(lines, syntax)
    left, counts = np.arange(len(lines)), dict[Shape, int]()
    for shape in shapes:
        rest = reader.take_alike(shape, left)
        counts[shape], left = len(left) - len(rest), rest
    for _ in range(min(MOST_LEARNED, len(left))):
        if not len(left):
            break
        learned, left = reader.take(left[:1]), left[1:]
        if learned:
            rest = reader.take_alike(learned, left)
            counts[learned], left = len(left) - len(rest), rest
    reader.take(left)
    shapes[:] = sorted(counts, key=counts.__getitem__, reverse=True)[:MOST_SHAPES]
    return reader.result()


class _Reader:
    """Gathers the steps of lines: the first of each, and the further ones of those with more."""

    def __init__(self, lines: Lines, syntax: Syntax) -> None:
        self._lines = lines
        self._syntax = syntax
        self._table = Columns.unknown(lines.numbers.copy(), syntax.names)
        self._more: list[tuple[int, Mapping[str, float]]] = []
        self._missing: list[Missing] = []
        self._folds = Folds(lines, syntax)
        self._cut: list[int] = []

    def take_alike(self, shape: Shape, some: Places) -> Places:
        """Read those of some lines that have a shape; the others are left."""
        if not len(some):
            return some
        cut = self._folds.may_cut_alike(shape.base, shape.marker_at, self._lines.places[some])
        aside, some = some[cut], some[~cut]
        fits, rows = self._lines.alike(some, shape, may_go_on=self._syntax.last is None)
        if len(rows):
            self._table.fill(some[fits], shape.read(rows))
        return np.sort(np.concatenate((aside, some[~fits]))) if len(aside) else some[~fits]

    def take(self, some: Places) -> Shape | None:
        """Read some lines one by one; the shape of the last, if all lines of it hold one step."""
        shape = None
        for index, (number, line, around) in zip(some.tolist(), self._lines.at(some), strict=True):
            place = int(self._lines.places[index])
            may_be_cut = partial(self._folds.may_cut, around.line, place)
            steps = list(step_texts(around, self._syntax, may_be_cut))
            first = number - steps[0].lines_before
            whole = [row for step in steps if (row := self._row(step, first))]
            for row in whole[:1]:
                self._table.fill(index, row)
                self._table.lines[index] = first
            self._more += [(first, row) for row in whole[1:]]
            self._cut += [first] if steps[-1].is_cut else []
            alone = len(whole) == len(steps) == 1 and not steps[0].is_open
            shape = _shape(line, steps[0], self._syntax) if alone else None
        return shape

    def _row(self, step: StepText, number: int) -> Mapping[str, float] | None:
        spans = self._syntax.spans(step.text)
        row = {name: float(step.text[a:b]) for name, (a, b) in spans.items()}
        lacking = self._syntax.lacking(row)
        if lacking:
            self._missing.append((number, lacking))
        return None if lacking else row

    def result(self) -> Read:
        """All that was read, in the order of the lines."""
        is_read = np.logical_and.reduce(
            [self._table.of(one).known for one in self._syntax.required]
        )
        columns = self._table if is_read.all() else self._table.at(is_read)
        if self._more:
            more = Columns.unknown(np.array([number for number, _ in self._more]), columns.names)
            for index, (_, row) in enumerate(self._more):
                more.fill(index, row)
            columns = Columns.joined([columns, more]).in_order()
        missing = sorted(self._missing, key=itemgetter(0))
        return Read(columns, missing, sorted({*self._cut} - {line for line, _ in missing}))


def _shape(line: bytes, step: StepText, syntax: Syntax) -> Shape | None:
    """The shape of a line that holds one step; none where not every line could be told by it."""
    if not line.isascii() or not line.endswith(b"\n") or len(line) > LONGEST_SHAPE:
        return None
    at = step.offset
    found = syntax.spans(step.text)
    spans = {name: (at + start, at + end) for name, (start, end) in found.items()}
    return shape_of(line, line.find(syntax.marker), spans)
