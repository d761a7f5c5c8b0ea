"""The tables of the store and what refers to what, as a drawing that stands in the page.

Tables stand in columns, each to the right of those that it refers to. The same tables give the
same bytes; colours come from the theme.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import MetaData, Table

from perfdb import units
from perfdb.site.markup import Html, tag
from perfdb.site.palette import GROUND, MUTED, RULE, SERIES, TEXT

ROW: Final = 20
BOX_WIDTH: Final = 120
GUTTER: Final = 64
BETWEEN: Final = 22
MARGIN: Final = 16
LANE: Final = 8
"""In units of the drawing: a row of a table, a box, the rooms between boxes, and between lines."""


@dataclass(frozen=True)
class Box:
    """Where a table stands, and the columns that are written in it."""

    table: Table
    level: int
    top: int

    @property
    def keys(self) -> list[str]:
        """The columns that refer to other tables."""
        return [column.name for column in self.table.columns if column.foreign_keys]

    @property
    def left(self) -> int:
        """The left side."""
        return MARGIN + self.level * (BOX_WIDTH + GUTTER)

    @property
    def height(self) -> int:
        """A row for the name, one for each reference, one for the other columns."""
        return (len(self.keys) + 2) * ROW

    @property
    def bottom(self) -> int:
        """The lower side."""
        return self.top + self.height

    def middle(self, row: int) -> int:
        """The middle of a row; 0 is the name."""
        return self.top + row * ROW + ROW // 2


def drawing(metadata: MetaData) -> Html:
    """The diagram of the tables."""
    boxes = placed(metadata.sorted_tables)
    width = max(box.left for box in boxes.values()) + BOX_WIDTH + MARGIN
    height = max(box.bottom for box in boxes.values()) + MARGIN
    said = (
        tag("title", "The tables of the store and their references"),
        tag("desc", "; ".join(_sentences(boxes.values()))),
    )
    parts = (*said, *_edges(boxes), *(_drawn(box) for box in boxes.values()))
    shape = tag(
        "svg", parts, role="img", class_="perf-diagram", viewBox=f"0 0 {width} {height}",
        font_family="inherit", font_size="12",
    )  # fmt: skip
    return tag("figure", shape, class_="perf-figure", tabindex="0")


def levels(tables: Iterable[Table]) -> dict[str, int]:
    """How many references lie between a table and one that refers to none, at most."""
    found: dict[str, int] = {}
    for table in tables:
        below = [found[name] for name in _targets(table)]
        found[table.name] = max(below) + 1 if below else 0
    return found


def placed(tables: Sequence[Table]) -> dict[str, Box]:
    """A box for each table, one below the other in the columns of their levels.

    Tables that many refer to stand lowest, so that long lines pass below the boxes between.
    """
    level_of = levels(tables)
    referred = [name for table in tables for name in _targets(table)]
    free = dict.fromkeys(level_of.values(), MARGIN)
    boxes: dict[str, Box] = {}
    for table in sorted(tables, key=lambda one: (referred.count(one.name), one.name)):
        level = level_of[table.name]
        box = boxes[table.name] = Box(table, level, free[level])
        free[level] = box.bottom + BETWEEN
    return {table.name: boxes[table.name] for table in tables}


def _targets(table: Table) -> list[str]:
    return [key.column.table.name for column in table.columns for key in column.foreign_keys]


def _references(boxes: Iterable[Box]) -> Iterator[tuple[Box, int, str]]:
    """Each reference: the box, the row of the column in it, the table that it leads to."""
    for box in boxes:
        for row, target in enumerate(_targets(box.table), start=1):
            yield box, row, target


def _sentences(boxes: Iterable[Box]) -> Iterator[str]:
    for box, row, target in _references(boxes):
        yield f"{box.table.name}.{box.keys[row - 1]} refers to {target}"


def _edges(boxes: Mapping[str, Box]) -> Iterator[Html]:
    """A line for each reference; those to the same table share their way."""
    farthest: dict[str, int] = {}
    for box, _, name in _references(boxes.values()):
        farthest[name] = max(box.level, farthest.get(name, 0))
    targets = list(farthest)
    lanes = {
        name: _lane(
            boxes[name],
            [box for box in boxes.values() if boxes[name].level < box.level < farthest[name]],
        )
        for name in targets
    }
    for box, row, name in _references(boxes.values()):
        number = targets.index(name)
        way = _way(box, row, boxes[name], (lanes[name], LANE * (number + 1)))
        colour = SERIES[number % len(SERIES)]
        yield tag("path", "", d=way, fill="none", stroke=colour, stroke_width="1.5")
        end = boxes[name].left + BOX_WIDTH
        yield tag("circle", "", cx=f"{end}", cy=f"{boxes[name].middle(0)}", r="3", fill=colour)


def _lane(target: Box, between: Sequence[Box]) -> int:
    """The height nearest to a table's name at which a line meets none of the boxes between."""
    wanted = target.middle(0)
    edges = [side for box in between for side in (box.top - LANE, box.bottom + LANE)]
    free = (
        height
        for height in [wanted, *edges]
        if height > 0 and not any(box.top - LANE < height < box.bottom + LANE for box in between)
    )
    return min(free, key=lambda height: abs(height - wanted))


def _way(box: Box, row: int, target: Box, course: tuple[int, int]) -> str:
    """From a row to the name of a table: straight across one gutter, else along its lane.

    `course` is the height of the lane, and how far from a box the line turns.
    """
    lane, turn = course
    start, end = (box.left, box.middle(row)), (target.left + BOX_WIDTH, target.middle(0))
    near_end = end[0] + turn
    if box.level == target.level + 1:
        return f"M{start[0]} {start[1]}H{near_end}V{end[1]}H{end[0]}"
    near_start = box.left - GUTTER + turn
    return f"M{start[0]} {start[1]}H{near_start}V{lane}H{near_end}V{end[1]}H{end[0]}"


def _drawn(box: Box) -> Html:
    frame = tag("rect", "", x=f"{box.left}", y=f"{box.top}", width=f"{BOX_WIDTH}",
                height=f"{box.height}", rx="3", fill=GROUND, stroke=RULE)  # fmt: skip
    others = len(box.table.columns) - len(box.keys)
    rows = [_text(box, row, key) for row, key in enumerate(box.keys, start=1)]
    said = f"and {others} more" if box.keys else units.counted(others, "column")
    more = _text(box, len(box.keys) + 1, said, colour=MUTED)
    name = _text(box, 0, box.table.name, weight="600")
    return tag("g", (frame, name, *rows, more))


def _text(box: Box, row: int, said: str, *, colour: str = TEXT, weight: str | None = None) -> Html:
    return tag("text", said, x=f"{box.left + 8}", y=f"{box.middle(row) + 4}", fill=colour,
               font_weight=weight)  # fmt: skip
