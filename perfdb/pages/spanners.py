"""What stands above the titles of columns: `BF16` over `Tokens/s/GPU` and `MFU`."""

import re
from dataclasses import replace
from typing import Final

from perfdb.pages import columns, statements, titles
from perfdb.pages.base import Cell, Row
from perfdb.pages.columns import FIGURES
from perfdb.pages.outline import Said, Table

_OTHER_FIGURE: Final = re.compile(
    rf"{titles.OTHER_SCALE.pattern}|[x×]\s?1,?000\b|\bper\s+(?!gpu|device|(?:s(?:ec(?:ond)?)?|step)\b)"
    r"|\b(?:nodes?|total|aggregated?|all gpus|relative|normali[sz]ed|speed-?ups?|improvements?"
    r"|gains?|delta|peak|max|maximum|min|minimum|p[0-9]{2})\b",
    re.IGNORECASE,
)
"""What makes another figure of the one below it."""


def held(table: Table) -> Table:
    """The table with what its spanners say of the figures below them.

    One over all figures holds for the table as a heading would. What is said of some figures alone,
    or makes another figure of them, becomes part of their titles, which are then not known or are
    at odds: no row is read as if nothing stood there.
    """
    if table.spanners is None:
        return table
    above = table.spanners.cells
    meant = [not FIGURES.isdisjoint(one.fields) for one in columns.of(table)]
    texts = {cell.text for cell, figure in zip(above, meant, strict=True) if figure}
    if len(texts) == 1 and not _OTHER_FIGURE.search(text := next(iter(texts))):
        said = Said(text, table.spanners.line, True)
        return replace(table, said=(*table.said, said)) if text else table
    header = tuple(
        _joined(over, title) if figure else title
        for over, title, figure in zip(above, table.header.cells, meant, strict=True)
    )
    return replace(table, header=Row(table.header.line, header))


def _joined(over: Cell, title: Cell) -> Cell:
    said = statements.in_force([Said(over.text, 0, True)])
    of_one = titles.of_gpu(over.text) and columns.fields_of(title.text) == ("tokens_per_sec",)
    other = of_one or _OTHER_FIGURE.search(over.text)
    if not any(said.model_dump().values()) and not other:
        return title
    return Cell(f"{over.raw} {title.raw}", f"{over.text} {title.text}")
