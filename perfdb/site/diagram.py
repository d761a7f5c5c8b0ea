"""The tables of the store and what refers to what, as a drawing that stands in the page.

Tables stand in columns, each to the right of those that it refers to. The same tables give the
same bytes; colours come from the theme.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup
from sqlalchemy import MetaData, Table

from perfdb import units
from perfdb.site.charts import GROUND, MUTED, RULE, SERIES, TEXT
from perfdb.site.templates import render

ROW: Final = 20
BOX_WIDTH: Final = 120
GUTTER: Final = 64
BETWEEN: Final = 22
MARGIN: Final = 16
LANE: Final = 8
"""In units of the drawing: a row of a table, a box, the rooms between boxes, and between lines."""


@dataclass(frozen=True)
class TableBox:
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

    @property
    def lines(self) -> list[str]:
        """The references, and how many columns there are more."""
        others = len(self.table.columns) - len(self.keys)
        more = f"and {others} more" if self.keys else units.counted(others, "column")
        return [*self.keys, more]

    def middle(self, row: int) -> int:
        """The middle of a row; 0 is the name."""
        return self.top + row * ROW + ROW // 2


@dataclass(frozen=True)
class Edge:
    """A line from a reference to the table that it leads to, and where it ends."""

    way: str
    end: int
    height: int
    color: str


def drawing(metadata: MetaData) -> Markup:
    """The diagram of the tables."""
    boxes = placed(metadata.sorted_tables)
    width = max(box.left for box in boxes.values()) + BOX_WIDTH + MARGIN
    height = max(box.bottom for box in boxes.values()) + MARGIN
    return render(
        "diagram",
        width=width,
        height=height,
        sentence="; ".join(_sentences(boxes.values())),
        edges=list(_edges(boxes)),
        boxes=list(boxes.values()),
        box_width=BOX_WIDTH,
        colors={"ground": GROUND, "rule": RULE, "text": TEXT, "muted": MUTED},
    )


def levels(tables: Iterable[Table]) -> dict[str, int]:
    """How many references lie between a table and one that refers to none, at most."""
    found: dict[str, int] = {}
    for table in tables:
        below = [found[name] for name in _targets(table)]
        found[table.name] = max(below) + 1 if below else 0
    return found


def placed(tables: Sequence[Table]) -> dict[str, TableBox]:
    """A box for each table, one below the other in the columns of their levels.

    Tables that many refer to stand lowest, so that long lines pass below the boxes between.
    """
    level_of = levels(tables)
    referred = [name for table in tables for name in _targets(table)]
    free = dict.fromkeys(level_of.values(), MARGIN)
    boxes: dict[str, TableBox] = {}
    for table in sorted(tables, key=lambda one: (referred.count(one.name), one.name)):
        level = level_of[table.name]
        box = boxes[table.name] = TableBox(table, level, free[level])
        free[level] = box.bottom + BETWEEN
    return {table.name: boxes[table.name] for table in tables}


def _targets(table: Table) -> list[str]:
    return [key.column.table.name for column in table.columns for key in column.foreign_keys]


def _references(boxes: Iterable[TableBox]) -> Iterator[tuple[TableBox, int, str]]:
    """Each reference: the box, the row of the column in it, the table that it leads to."""
    for box in boxes:
        for row, target in enumerate(_targets(box.table), start=1):
            yield box, row, target


def _sentences(boxes: Iterable[TableBox]) -> Iterator[str]:
    for box, row, target in _references(boxes):
        yield f"{box.table.name}.{box.keys[row - 1]} refers to {target}"


def _edges(boxes: Mapping[str, TableBox]) -> Iterator[Edge]:
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
        yield Edge(way, boxes[name].left + BOX_WIDTH, boxes[name].middle(0), colour)


def _lane(target: TableBox, between: Sequence[TableBox]) -> int:
    """The height nearest to a table's name at which a line meets none of the boxes between."""
    wanted = target.middle(0)
    edges = [side for box in between for side in (box.top - LANE, box.bottom + LANE)]
    free = (
        height
        for height in [wanted, *edges]
        if height > 0 and not any(box.top - LANE < height < box.bottom + LANE for box in between)
    )
    return min(free, key=lambda height: abs(height - wanted))


def _way(box: TableBox, row: int, target: TableBox, course: tuple[int, int]) -> str:
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
