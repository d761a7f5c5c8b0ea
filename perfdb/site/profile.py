"""What a column of a table is, and a family of tables with the same ones."""

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal[
    "model", "precision", "task", "text", "integer", "figure", "seconds", "percent", "spread",
    "outcome", "origin", "run", "log", "release", "moment", "system", "recipe", "options", "extra",
]  # fmt: skip
"""How a value is printed (perfdb.site.tables)."""

DAYS: Final = "Time to train 1T tokens in days"
"""A figure of pages that has no field."""


@dataclass(frozen=True)
class Column:
    """A column. `fields`: the first of these that a result knows is what is printed.

    `shown`: 'filled' drops it where a whole table has nothing in it, 'varies' also where every row
    says the same, 'once' says that in a line above the table, 'apart' keeps it where rows differ in
    nothing else, 'always' everywhere. `wide` lets its words wrap; `term` is its glossary entry.
    `ours`: with our names and thousands separators whatever a page printed, for rows of many pages.
    """

    title: str
    fields: tuple[str, ...]
    kind: Kind = "integer"
    digits: int = 0
    shown: Literal["filled", "varies", "once", "apart", "always"] = "filled"
    wide: bool = False
    term: str | None = None
    ours: bool = False

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers, which stand to the right."""
        return self.kind == "integer" or (self.kind == "extra" and not self.wide) or self.is_figure

    @property
    def is_figure(self) -> bool:
        """Whether it holds what was achieved, which leads to its evidence."""
        return self.is_rate or self.kind in ("seconds", "spread") or self.title == DAYS

    @property
    def is_rate(self) -> bool:
        """Whether more of it is better: sorting by it begins with the fastest."""
        return self.kind in ("figure", "percent")


@dataclass(frozen=True)
class Profile:
    """A family of tables. `offered`: its results can be downloaded beside it."""

    name: str
    columns: tuple[Column, ...]
    offered: bool = True
