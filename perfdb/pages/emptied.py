"""Empty cells of what names the work of a row: they may mean the row above, or the heading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from perfdb.pages import cells, columns
from perfdb.pages.base import Row
from perfdb.pages.columns import Column
from perfdb.pages.outline import Table

_NAMES = frozenset({"model", "precision", "task", *columns.OF_SYSTEM, *columns.OF_RELEASE})
"""Fields that name the work of a row, and whose it is."""


@dataclass(frozen=True)
class EmptyNames:
    """Tells which cells of a table are empty where those of other rows name something."""

    table: Table
    header: Sequence[Column]

    def of(self, row: Row, *, task_above: bool) -> str | None:
        """The first field that a row leaves empty and other rows do not; None where none is.

        A task that is said above the table (`task_above`) is that of the rows until one of them
        says another.
        """
        texts = self._texts(row)
        above = {"task"} if task_above and row in self._before_tasks else set()
        names = sorted(self._named - above)
        return next((name for name in names if not texts.get(name, "-")), None)

    @cached_property
    def _named(self) -> frozenset[str]:
        """Of what names the work of a row, what a cell of some row says."""
        said = (self._texts(row).items() for row in self._whole)
        filled = {name for texts in said for name, text in texts if text}
        return frozenset(filled & _NAMES)

    @cached_property
    def _before_tasks(self) -> Sequence[Row]:
        """The rows above the first that says its task."""
        return list(takewhile(lambda row: not self._texts(row).get("task"), self._whole))

    @property
    def _whole(self) -> Sequence[Row]:
        return [row for row in self.table.rows if len(row.cells) == len(self.header)]

    def _texts(self, row: Row) -> Mapping[str, str]:
        beside = zip(self.header, row.cells, strict=True)
        return columns.texts((column, cells.value(cell.text)) for column, cell in beside)
