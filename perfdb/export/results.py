"""The current results as a table: the columns that other tools rely on, in their order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from json import dumps
from operator import itemgetter
from typing import Final, cast

from sqlalchemy import Connection

from perfdb import catalog, metrics, stated
from perfdb.errors import Diagnostic, InputError
from perfdb.export.formats import Cell, Column, Table
from perfdb.messages import note_text
from perfdb.queries import results
from perfdb.queries.scope import Scope, within
from perfdb.record import Note
from perfdb.stated import FigureInputs

STORED = (
    "framework", "release", "container", "system", "model", "qualifiers", "task", "precision",
    "num_gpus", "global_batch_size", "micro_batch_size", "local_batch_size",
    "gradient_accumulation", "sequence_length", "tensor_parallel", "pipeline_parallel",
    "context_parallel", "expert_parallel", "expert_tensor_parallel", "virtual_pipeline",
    "data_parallel", "fsdp_enabled", "fsdp_size", "sequence_parallel", "kernels", "variant",
    "options",
    "step_time_s", "step_time_mean_s", "step_time_stdev_s", "step_time_p10_s", "step_time_p90_s",
    "tokens_per_sec_per_gpu", "tokens_per_sec", "model_tflops_per_sec_per_gpu", "mfu",
    "peak_memory_bytes", "flops_convention", "window", "num_steps", "origin", "outcome",
    "withheld", "notes", "run_id", "source", "source_line", "source_url", "published_on",
)  # fmt: skip
"""What the store has, under its own names."""
_STORED: Final = itemgetter(*STORED)
COMPUTED = tuple(stated.FOLLOWING)
"""The figures that follow where they are not stated, exported as `computed_…` after those that
programs print themselves, which are `emitted_…`."""
COLUMNS = (
    *STORED,
    *(f"emitted_{name}" for name in metrics.EMITTED),
    *(f"computed_{name}" for name in COMPUTED),
)
NOTES_JOINED_BY = " | "
"""Notes are sentences, with commas and semicolons; a line feed would part a row of CSV."""

Row = Mapping[str, object]


def table(connection: Connection, scope: Scope | None = None) -> Table:
    """One row for each result, always in the same order.

    Raises InputError for a name that is not in the store.
    """
    return table_of(rows(connection, scope or Scope()))


def rows(connection: Connection, scope: Scope) -> list[dict[str, object]]:
    """Every current result of a scope, as `perfdb.queries.results.current` has it."""
    answer = connection.execute(within(connection, results.current(), scope))
    names = list(answer.keys())
    return [dict(zip(names, row, strict=True)) for row in answer]


def table_of(rows: Iterable[Row]) -> Table:
    """Rows of `perfdb.queries.results.current` in the columns of an export."""
    kinds = [column.kind for column in columns()]
    return Table(columns(), tuple(tuple(_cells(kinds, row)) for row in rows))


@cache
def columns() -> tuple[Column, ...]:
    """COLUMNS with the type of each; what is neither a number nor a flag is a text."""
    known = results.current().selected_columns
    kinds = {name: known[name].type.python_type for name in STORED}
    numbers = (int, float, bool)
    return tuple(
        Column(name, kind if (kind := kinds.get(name, float)) in numbers else str)
        for name in COLUMNS
    )


def _cells(kinds: Sequence[type], row: Row) -> list[Cell]:
    """The cells of a row, in the order of the columns. Most are as stored: no call is made."""
    result, emitted = FigureInputs.model_validate(row), row["emitted"]
    printed = emitted if isinstance(emitted, Mapping) else {}
    values = [
        *_STORED(row),
        *map(printed.get, metrics.EMITTED),
        *(stated.computed(result, name) for name in COMPUTED),
    ]
    made = [
        value if value is None or type(value) is kind else _cell(kind, value)
        for kind, value in zip(kinds, values, strict=True)
    ]
    return cast("list[Cell]", made)  # each kind is one of a cell


def _cell(kind: type, value: object) -> Cell:
    """A value as an export has it: a day, notes and options (as JSON) are texts."""
    if isinstance(value, Note):
        return note_text(value)
    if isinstance(value, list | tuple):
        texts = (note_text(one) if isinstance(one, Note) else str(one) for one in value)
        return NOTES_JOINED_BY.join(texts) or None
    if isinstance(value, Mapping):
        return dumps(value, sort_keys=True, ensure_ascii=False) if value else None
    cell: Cell = kind(value)
    return cell


def prices(texts: Iterable[str]) -> dict[str, float]:
    """Prices of a GPU-hour by system, of texts such as 'dgx-h100=2.49'. Raises InputError."""
    found: dict[str, float] = {}
    problems = []
    for text in texts:
        system, _, amount = text.partition("=")
        where = f"--price {text}"
        if system not in catalog.systems():
            remedy = catalog.other_systems(system)
            problems.append(Diagnostic(where, f"no system {system!r}", remedy=remedy))
        try:
            price = math.nan if "_" in amount else float(amount)
        except ValueError:
            price = math.nan
        if not (math.isfinite(price) and price > 0):
            remedy = "write SYSTEM=AMOUNT, such as dgx-h100=2.49"
            message = f"{amount!r} is no price of a GPU-hour"
            problems.append(Diagnostic(where, message, remedy=remedy))
        if system in found:
            remedy = "keep one of them"
            problems.append(Diagnostic("--price", "given twice", field=system, remedy=remedy))
        found[system] = price
    if problems:
        raise InputError(problems)
    return found


def with_cost(table: Table, prices: Mapping[str, float]) -> Table:
    """The table with the price of a GPU-hour and the cost of a million tokens of each row.

    Both are unknown where the system has no price; the cost, where tokens/s/GPU are neither stated
    nor computed.
    """
    rate_columns = (stated.RATE, f"computed_{stated.RATE}")
    system, *places = map(table.names.index, ("system", *rate_columns))
    priced_rows = []
    for row in table.rows:
        price = prices.get(str(row[system]))
        rates = (rate for place in places if isinstance(rate := row[place], float) and rate > 0)
        rate = next(rates, None)
        cost = rate and price and metrics.cost_per_million_tokens(rate, price)
        priced_rows.append((*row, price, cost))
    added = (Column("price_per_gpu_hour", float), Column("cost_per_million_tokens", float))
    return Table((*table.columns, *added), tuple(priced_rows))
