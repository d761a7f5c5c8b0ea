"""Reads step lines: those that look alike thousands at once, the others one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter

import numpy as np

from perfdb.formats.lines import Lines
from perfdb.formats.piped import StepText, Syntax, may_go_on, step_texts
from perfdb.formats.readings import Column, Columns, Flags, Ints, distinct
from perfdb.formats.scan import Bytes, decoded, windows
from perfdb.formats.shapes import Shape, shape_of

LONGEST_SHAPE = 1 << 12
MOST_SHAPES = 16
"""How many shapes of lines of one length are tried."""

Shapes = dict[int, list[Shape]]
"""By the length of their lines."""

Missing = tuple[int, Sequence[str]]
"""The line of a step, and what it lacks."""


@dataclass(frozen=True)
class Read:
    """The steps of some lines in their order, and those that cannot be read."""

    columns: Columns
    missing: Sequence[Missing]


def read(lines: Lines, syntax: Syntax, shapes: Shapes) -> Read:
    """The steps of lines. `shapes` are those known from lines before, and gain those of these."""
    reader = _Reader(lines, syntax)
    lengths = lines.ends - lines.starts
    for length in map(int, distinct(lengths)):
        places = np.flatnonzero(lengths == length)
        if length <= LONGEST_SHAPE:
            places = reader.take_alike(places, shapes.setdefault(length, []))
        for place in places.tolist():
            reader.take(place)
    return reader.result()


def read_each(lines: Lines, syntax: Syntax) -> Read:
    """The same, each line by itself: slow, and what all else is to agree with."""
    reader = _Reader(lines, syntax)
    for place in range(len(lines)):
        reader.take(place)
    return reader.result()


@dataclass(frozen=True)
class _Reader:
    """Gathers the steps of lines, with the place of the line that each stands on."""

    lines: Lines
    syntax: Syntax
    places: list[Ints] = field(default_factory=list)
    parts: list[Columns] = field(default_factory=list)
    rows: list[tuple[int, Mapping[str, float]]] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)

    def take_alike(self, places: Ints, shapes: list[Shape]) -> Ints:
        """Read lines of one length by their shapes; which of them are left."""
        for shape in tuple(shapes):
            left = self._take_by(shape, places)
            if len(left) < len(places):
                shapes.remove(shape)
                shapes.insert(0, shape)
            places = left
        for _ in range(min(MOST_SHAPES, len(places))):
            learned = self.take(int(places[0])) if len(places) else None
            places = places[1:]
            if learned:
                shapes.insert(0, learned)
                places = self._take_by(learned, places)
        del shapes[MOST_SHAPES:]
        return places

    def take(self, place: int) -> Shape | None:
        """Read one line by itself; its shape, if all lines of that shape hold one step each."""
        line, number = self.lines.line(place), int(self.lines.numbers[place])
        following = decoded(self.lines.following(place))
        texts = list(step_texts(decoded(line), following, self.syntax))
        for one in texts:
            row = _row(one, self.syntax)
            lacking = [name for name in self.syntax.required if name not in row]
            if lacking:
                self.missing.append((number, lacking))
            else:
                self.rows.append((place, row))
        whole = len(texts) == 1 and not lacking and not texts[0].is_wrapped
        return _shape(line, texts[0], self.syntax) if whole and line.isascii() else None

    def _take_by(self, shape: Shape, places: Ints) -> Ints:
        """Read the lines that have a shape; which of them have not."""
        if not len(places):
            return places
        rows = windows(self._bytes, self.lines.starts[places], len(shape.base))
        fits = shape.matches(rows)
        if shape.is_open:
            fits[fits] = ~self._may_go_on(places[fits])
        if fits.any():
            taken = places[fits]
            cells = shape.read(rows if len(taken) == len(rows) else rows[fits])
            known = np.ones(len(taken), np.bool_)
            full = {name: Column(values, known) for name, values in cells.items()}
            self.places.append(taken)
            self.parts.append(Columns(self.lines.numbers[taken], full))
        return places[~fits]

    @cached_property
    def _bytes(self) -> Bytes:
        return np.frombuffer(self.lines.text, np.uint8)

    def _may_go_on(self, places: Ints) -> Flags:
        """Of which lines the step may go on behind them; in doubt, it may."""
        size, ends = self.syntax.continuation_bytes, self.lines.ends[places]
        doubtful = np.ones(len(places), np.bool_)
        inside = ends + size <= len(self.lines.text)
        doubtful[inside] = may_go_on(windows(self._bytes, ends[inside], size), self.syntax)
        return doubtful

    def result(self) -> Read:
        """All that was read, in the order of the lines."""
        if self.rows:
            places = np.array([place for place, _ in self.rows], np.intp)
            names = dict.fromkeys(name for _, row in self.rows for name in row)
            cells = {name: Column.of([row.get(name) for _, row in self.rows]) for name in names}
            self.places.append(places)
            self.parts.append(Columns(self.lines.numbers[places], cells))
        columns = Columns.joined(self.parts)
        if len(self.parts) > 1 or self.rows:
            columns = columns.at(np.concatenate(self.places).argsort(kind="stable"))
        return Read(columns, sorted(self.missing, key=itemgetter(0)))


def _row(step: StepText, syntax: Syntax) -> dict[str, float]:
    return {name: float(step.text[a:b]) for name, (a, b) in step.spans(syntax).items()}


def _shape(line: bytes, step: StepText, syntax: Syntax) -> Shape:
    at = step.offset
    spans = {name: (at + start, at + end) for name, (start, end) in step.spans(syntax).items()}
    return shape_of(line, spans, step.is_open)
