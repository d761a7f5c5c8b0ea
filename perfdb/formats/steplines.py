"""Reads step lines of the form `START | key: value | key: value |`, thousands at once.

Megatron and NeMo print such lines. Most of them differ in their digits only, and no pattern that
reads a step distinguishes digits. So the places of the numbers in one line are those of
all lines with the same bytes between the digits (`numbers.LineShape`). The others are read one by
one.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Final

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats.columns import Flags, Floats, Ints, StepColumn, Steps
from perfdb.formats.numbers import NUMBER, WHOLE, Bytes, LineShape, Span, shape_of
from perfdb.formats.scan import LOOKAHEAD, Block
from perfdb.text import decoded

MOST_KEPT: Final = 1000
"""How many unreadable steps are remembered: a damaged log may hold millions."""
MADE_AT_ONCE: Final = 1 << 16
LONGEST_SHAPE: Final = 1 << 12
MOST_SHAPES, MOST_LEARNED = 64, 16
"""How many shapes are known at a time, and how many of them from the same lines."""
MOST_WRAPPED: Final = 16
"""Over how many lines a step may be wrapped."""
_NEWLINE: Final = ord("\n")
_VALUE = rf"{NUMBER}(?:/{NUMBER})?"
_ITEM = re.compile(rf"\s*[^\s|:\[\]][^|:\[\]]{{0,99}}:\s*{_VALUE}\s*")
_GOES_ON = re.compile(
    rb"[ \t]*\||[eE]?[+\-]?\.?\d[\d.]*(?:[eE][+\-]?\d*)?[ \t]*(?:\||\r?(?:\n|\Z))"
)
"""How a line begins that may continue the number at the end of the line above."""
_MAY_GO_ON = np.isin(np.arange(256), np.frombuffer(b" \t|eE+-.0123456789", np.uint8))


@dataclass(frozen=True)
class Syntax:
    """How a program prints a step.

    `marker` is once in each step line. `start` is a pattern for the beginning of a step, with a
    group for each of `counters`. `fields` are the keys to read, none of which holds a digit, and
    `required` those that every step has. `last` is the key behind all others, if every step has
    it: only such a step can be wrapped over several lines. A value may be a pair `last/average`:
    the last is taken.
    """

    marker: bytes
    start: str
    counters: tuple[str, ...]
    fields: tuple[str, ...]
    required: tuple[str, ...]
    last: str | None = None

    @cached_property
    def starts(self) -> re.Pattern[str]:
        """Finds the beginning of a step."""
        return re.compile(self.start + r"\s*\|")

    @cached_property
    def _values(self) -> re.Pattern[str]:
        keys = "|".join(map(re.escape, sorted(self.fields, key=len, reverse=True)))
        return re.compile(rf"\|\s*({keys}):[ \t]*({NUMBER})(?:/{NUMBER})?{WHOLE}")

    @cached_property
    def _end(self) -> re.Pattern[str]:
        return re.compile(rf"\|\s*{re.escape(self.last or '')}:\s*{_VALUE}\s*\|")

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """All the numbers that a step may have, and their rows in a table."""
        return {name: row for row, name in enumerate((*self.counters, *self.fields))}

    def is_closed(self, text: str) -> bool:
        """Whether a step ends within its text."""
        return not self.last or bool(self._end.search(text))

    def is_whole(self, text: str) -> bool:
        """Whether a text is the start of a step and keys with numbers, and nothing else."""
        start = self.starts.match(text)
        *items, last = text[start.end() :].split("|") if start else [text]
        return bool(start) and all(map(_ITEM.fullmatch, items)) and not last.strip()

    def spans(self, text: str) -> Mapping[str, Span]:
        """Where the counters and fields are in the text of a step; the first if one repeats."""
        start = self.starts.match(text)
        spans = {name: start.span(n) for n, name in enumerate(self.counters, 1) if start}
        for found in self._values.finditer(text):
            spans.setdefault(found[1], found.span(2))
        return spans

    def lacking(self, row: Mapping[str, float]) -> Sequence[str]:
        """What a step lacks: everything required, else the last field."""
        lacking = [name for name in self.required if name not in row]
        return lacking or [name for name in (self.last,) if name and name not in row]


@dataclass(frozen=True, eq=False)
class StepLines:
    """Lines of a text with a marker: its place in each, and the number of the line.

    `limits`: how far the line, with those that its step may be wrapped on, can reach.
    """

    text: bytes
    places: Ints
    limits: Ints
    numbers: Ints

    @classmethod
    def of(cls, block: Block, marker: bytes) -> "StepLines":
        """The lines of a block with a marker."""
        places, numbers = block.lines_with(marker)
        return cls(block.text, places, np.full(len(places), block.end), numbers)

    def __len__(self) -> int:
        return len(self.places)

    def with_rest(self) -> Iterator[tuple[bytes, bytes]]:
        """Each line with its line break, and what follows it."""
        find, rfind = self.text.find, self.text.rfind
        for place, limit in zip(self.places.tolist(), self.limits.tolist(), strict=True):
            end = find(b"\n", place, limit) + 1 or limit
            start = rfind(b"\n", 0, place) + 1
            yield self.text[start:end], self.text[end : min(end + LOOKAHEAD, limit)]

    def of_shape(self, some: Ints, shape: LineShape, *, may_go_on: bool) -> tuple[Flags, Bytes]:
        """Which of some lines have a shape, and the bytes of these.

        `may_go_on`: without lines that the next line may continue.
        """
        starts, size = self.places[some] - shape.marker_at, len(shape.base)
        ends = starts + size
        fits = (starts >= 0) & (ends <= self.limits[some])
        starts, ends = starts[fits], ends[fits]
        begins = (starts == 0) | (self._bytes[starts - 1] == _NEWLINE)
        is_line = begins & (self._bytes[ends - 1] == _NEWLINE)
        if may_go_on:
            may = is_line & _MAY_GO_ON[self._bytes.take(ends, mode="clip")]
            for one in may.nonzero()[0].tolist():
                is_line[one] = not _GOES_ON.match(self.text, int(ends[one]))
        fits[fits] = is_line
        rows = _rows(self._bytes, starts[is_line], size)
        fits[fits] = same = shape.matches(rows)
        return fits, rows if same.all() else rows[same]

    @cached_property
    def _bytes(self) -> Bytes:
        return np.frombuffer(self.text, np.uint8)


def _rows(text: Bytes, starts: Ints, size: int) -> Bytes:
    """The bytes of a text from each start on, as rows of one size."""
    if not len(starts):
        return np.empty((0, size), np.uint8)
    every = np.ndarray((len(text) - size + 1,), f"V{size}", text, strides=(1,))
    return every[starts].view(np.uint8).reshape(-1, size)


class StepReader:
    """Reads the steps of a log, block by block.

    `make` turns the printed numbers, as columns of the syntax's names, into steps. Afterwards
    `problems` are the step lines that could not be read.
    """

    def __init__(self, where: str, syntax: Syntax, make: Callable[[Steps], Steps]) -> None:
        self._where = where
        self._syntax = syntax
        self._make = make
        self._shapes: list[LineShape] = []
        self._printed: list[Steps] = []
        self._num_printed = 0
        self._steps: list[Steps] = []
        self.problems: list[Diagnostic] = []

    def add(self, block: Block) -> None:
        """Take the step lines of the next block of a log."""
        reader = _Reader(StepLines.of(block, self._syntax.marker), self._syntax)
        self._shapes = reader.read(self._shapes)
        self._printed.append(reader.printed())
        missing = sorted(reader.missing, key=itemgetter(0))
        for line, names in missing[: MOST_KEPT - len(self.problems)]:
            message = f"a step without {' and '.join(map(repr, names))}"
            remedy = "is the line cut off?"
            self.problems.append(Diagnostic(self._where, message, line=line, remedy=remedy))
        self._num_printed += len(self._printed[-1])
        if self._num_printed >= MADE_AT_ONCE:
            self._make_steps()

    def steps(self) -> Steps:
        """The steps of all blocks."""
        self._make_steps()
        return Steps.joined(self._steps)

    def _make_steps(self) -> None:
        printed, self._printed, self._num_printed = Steps.joined(self._printed), [], 0
        if not (np.diff(printed.line) >= 0).all():
            printed = printed.at(printed.line.argsort(kind="stable"))
        if len(printed):
            self._steps.append(self._make(printed).slim())


class _Reader:
    """Reads the steps of lines: the first of each, and the further ones of those with more.

    `missing`: the line of each step that is not whole, and what it lacks.
    """

    def __init__(self, lines: StepLines, syntax: Syntax) -> None:
        self._lines = lines
        self._syntax = syntax
        size = len(syntax.rows), len(lines)
        self._values, self._known = np.zeros(size), np.zeros(size, np.bool_)
        self._more: list[tuple[int, Mapping[str, float]]] = []
        self.missing: list[tuple[int, Sequence[str]]] = []

    def read(self, shapes: Sequence[LineShape]) -> list[LineShape]:
        """Read all lines by the shapes that are known; return the shapes, the commonest first."""
        left, counts = np.arange(len(self._lines)), dict[LineShape, int]()
        for shape in shapes:
            rest = self._take_of_shape(shape, left)
            counts[shape], left = len(left) - len(rest), rest
        for _ in range(min(MOST_LEARNED, len(left))):
            if not len(left):
                break
            learned, left = self._take(left[:1]), left[1:]
            if learned:
                rest = self._take_of_shape(learned, left)
                counts[learned], left = len(left) - len(rest), rest
        self._take(left)
        return sorted(counts, key=counts.__getitem__, reverse=True)[:MOST_SHAPES]

    def _take_of_shape(self, shape: LineShape, some: Ints) -> Ints:
        """Read those of some lines that have a shape; return the others."""
        if not len(some):
            return some
        fits, rows = self._lines.of_shape(some, shape, may_go_on=self._syntax.last is None)
        if len(rows):
            self._fill(some[fits], shape.read(rows))
        return some[~fits]

    def _take(self, some: Ints) -> LineShape | None:
        """Read some lines one by one; return the shape of the last if it holds one step."""
        shape, lines = None, self._lines
        own = StepLines(lines.text, lines.places[some], lines.limits[some], lines.numbers[some])
        for index, (line, rest) in zip(some.tolist(), own.with_rest(), strict=True):
            number = int(lines.numbers[index])
            texts = _step_texts(decoded(line), decoded(rest), self._syntax)
            rows = [row for text in texts if (row := self._row(text, number))]
            for row in rows[:1]:
                self._fill(index, row)
            self._more += [(number, row) for row in rows[1:]]
            alone = len(rows) == len(texts) == 1 and decoded(line).endswith(texts[0])
            shape = self._shape(line, texts[0]) if alone else None
        return shape

    def _fill(self, places: Ints | int, cells: Mapping[str, Floats | float]) -> None:
        for name, values in cells.items():
            row = self._syntax.rows[name]
            self._values[row][places] = values
            self._known[row][places] = True

    def _row(self, text: str, number: int) -> Mapping[str, float] | None:
        row = {name: float(text[a:b]) for name, (a, b) in self._syntax.spans(text).items()}
        lacking = self._syntax.lacking(row)
        if lacking:
            self.missing.append((number, lacking))
        return None if lacking else row

    def _shape(self, line: bytes, text: str) -> LineShape | None:
        if not line.isascii() or not line.endswith(b"\n") or len(line) > LONGEST_SHAPE:
            return None
        at = len(line) - len(text)
        found = self._syntax.spans(text)
        spans = {name: (at + start, at + end) for name, (start, end) in found.items()}
        return shape_of(line, line.find(self._syntax.marker), spans)

    def printed(self) -> Steps:
        """The numbers of all steps, by the names of the syntax."""
        required = [self._syntax.rows[name] for name in self._syntax.required]
        printed = _columns(self._lines.numbers, self._syntax, self._values, self._known)
        is_read = np.logical_and.reduce(self._known[required])
        printed = printed if is_read.all() else printed.at(is_read)
        if not self._more:
            return printed
        cells = [[row.get(name) for name in self._syntax.rows] for _, row in self._more]
        values, known = zip(*map(StepColumn.of, zip(*cells, strict=True)), strict=True)
        lines = np.array([number for number, _ in self._more], np.int64)
        more = _columns(lines, self._syntax, np.stack(values), np.stack(known))
        return Steps.joined([printed, more])


def _columns(lines: Ints, syntax: Syntax, values: Floats, known: Flags) -> Steps:
    columns = {name: StepColumn(values[row], known[row]) for name, row in syntax.rows.items()}
    return Steps(lines, np.zeros_like(lines), np.zeros(len(lines)), columns)


def _step_texts(line: str, rest: str, syntax: Syntax) -> list[str]:
    """The texts of the steps on one line; the last may be wrapped on to the next lines.

    Ranks that print at once may share a line.
    """
    starts = [found.start() for found in syntax.starts.finditer(line)]
    texts = [line[a:b] for a, b in pairwise([*starts, len(line)])] if starts else [line]
    texts = [text[: text.find("\r") + 1] or text for text in texts]
    if not syntax.is_closed(texts[-1]):
        texts[-1] = _unwrapped(texts[-1], rest, syntax)
    elif not syntax.last and _GOES_ON.match(rest.encode()):
        # The number at the end of the line may be cut: it is left out.
        texts[-1] = texts[-1][: texts[-1].rfind("|") + 1]
    return texts


def _unwrapped(text: str, rest: str, syntax: Syntax) -> str:
    """A step joined with the lines that it continues on, if it is whole with them; else as is."""
    joined = text
    for line in rest.split("\n")[:MOST_WRAPPED]:
        joined = joined.rstrip("\r\n") + line
        if not line.strip() or syntax.starts.search(line):
            break
        if syntax.is_closed(joined):
            return joined if syntax.is_whole(joined) else text
    return text
