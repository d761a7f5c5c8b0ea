"""What a million tokens cost on each system, at prices that the reader gives."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from perfdb import catalog, metrics
from perfdb.errors import Diagnostic, InputError
from perfdb.export.base import Cell, Column, Table
from perfdb.stated import RATE

COLUMNS = (Column("price_per_gpu_hour", float), Column("cost_per_million_tokens", float))


def prices(texts: Iterable[str]) -> dict[str, float]:
    """Prices of a GPU-hour by system, of texts such as 'dgx-h100=2.49'. Raises InputError."""
    parts = [(text, *text.partition("=")[::2]) for text in texts]
    problems = [problem for one in parts for problem in _wrong(*one)]
    counts = Counter(system for _, system, _ in parts)
    problems += [
        Diagnostic("--price", "given twice", field=system, remedy="keep one of them")
        for system, count in counts.items()
        if count > 1
    ]
    if problems:
        raise InputError(problems)
    return {system: float(price) for _, system, price in parts}


def with_cost(table: Table, prices: Mapping[str, float]) -> Table:
    """The table with the price of a GPU-hour and `metrics.cost_per_million_tokens` of each row.

    Both are unknown where the system has no price; the cost, where tokens/s/GPU are neither stated
    nor computed.
    """
    system, *rates = map(table.names.index, ("system", RATE, f"computed_{RATE}"))
    rows = tuple(
        (*row, *_cells(prices.get(str(row[system])), *[row[place] for place in rates]))
        for row in table.rows
    )
    return Table((*table.columns, *COLUMNS), rows)


def _cells(price: float | None, *tokens_per_sec_per_gpu: Cell) -> tuple[Cell, Cell]:
    """The price, and the cost by the first rate that is known."""
    rates = (rate for rate in tokens_per_sec_per_gpu if isinstance(rate, float) and rate > 0)
    rate = next(rates, None)
    if price is None or rate is None:
        return price, None
    return price, metrics.cost_per_million_tokens(rate, price)


def _wrong(text: str, system: str, price: str) -> Iterator[Diagnostic]:
    if system not in catalog.systems():
        yield Diagnostic(f"--price {text}", f"no system {system!r}", remedy=catalog.other_systems())
    if not _is_price(price):
        remedy = "write SYSTEM=AMOUNT, such as dgx-h100=2.49"
        yield Diagnostic(f"--price {text}", f"{price!r} is no price of a GPU-hour", remedy=remedy)


def _is_price(text: str) -> bool:
    try:
        return "_" not in text and math.isfinite(float(text)) and float(text) > 0
    except ValueError:
        return False
