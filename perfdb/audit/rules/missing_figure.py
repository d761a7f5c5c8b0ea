"""A figure must not be missing where its table gives it elsewhere and the row determines it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdb import metrics
from perfdb.audit import flop_counts, rates
from perfdb.audit.flop_counts import Counted
from perfdb.audit.printed import figure
from perfdb.audit.subject import FIGURES, SHORT, Remark, Severity, Subject
from perfdb.flops.base import Convention
from perfdb.metrics import METRICS
from perfdb.record import Origin
from perfdb.units import number

NAME = "missing_figure"
MEANING = "a figure that other rows of the table have, and the row itself determines, is there"

_Table = tuple[str | None, frozenset[str]]
"""A source, and the titles of a table's columns."""


@dataclass(frozen=True)
class Missing:
    """The value that a missing figure should have, and where it comes from."""

    value: float
    how: str


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Published rows that lack a figure, with the value it should have."""
    counted = flop_counts.counted(rows, rates.reader(rows))
    usual, printed = flop_counts.convention_of(counted), _printed(rows)
    for row in rows:
        if row.origin is Origin.PUBLISHED:
            for field in FIGURES:
                if row.figure(field) is None and field in printed[_table(row)]:
                    yield from _remark(row, field, counted, usual)


def _printed(rows: Sequence[Subject]) -> Mapping[_Table, set[str]]:
    """The figures that the tables of a source with the same columns print at all."""
    printed: dict[_Table, set[str]] = {_table(row): set() for row in rows}
    for row in rows:
        printed[_table(row)] |= {field for field in FIGURES if row.figure(field) is not None}
    return printed


def _table(row: Subject) -> _Table:
    return row.source, frozenset(row.raw)


def _remark(
    row: Subject, field: str, counted: Sequence[Counted], usual: Convention | None
) -> Iterator[Remark]:
    missing = _determined(row, field, counted, usual)
    if missing is None:
        return
    value = number(missing.value, METRICS[field].digits if missing.value < 100 else 0)
    yield Remark(
        row,
        Severity.WARNING,
        (field,),
        value,
        None,
        f"{SHORT[field]} is missing; other rows have it, and here it is {value}: {missing.how}",
        f"{SHORT[field]} {value}",
    )


def _determined(
    row: Subject, field: str, counted: Sequence[Counted], usual: Convention | None
) -> Missing | None:
    if field == "step_time_s":
        return _step_time(row)
    if field == "mfu":
        return _mfu(row)
    per_token = flop_counts.per_token(row, counted, usual)
    speed, achieved = rates.tokens(row), rates.tflops(row)
    if field == "tokens_per_sec_per_gpu" and speed:
        return Missing(speed.value, "GBS × sequence length ÷ step time ÷ GPUs")
    if per_token is None:
        return None
    at = f"at {per_token:,.4g} GFLOP per token"
    if field == "tokens_per_sec_per_gpu":
        value = achieved and achieved.value * 1000 / per_token
        return Missing(value, f"model TFLOP/s/GPU {at}") if value else None
    return Missing(speed.value * per_token / 1000, f"tokens/s/GPU {at}") if speed else None


def _step_time(row: Subject) -> Missing | None:
    speed = figure(row, "tokens_per_sec_per_gpu")
    work = row.global_batch_size * row.sequence_length / row.num_gpus
    return Missing(work / speed.value, "GBS × sequence length ÷ tokens/s ÷ GPUs") if speed else None


def _mfu(row: Subject) -> Missing | None:
    achieved, peak = figure(row, "model_tflops_per_sec_per_gpu"), rates.peak_tflops(row)
    if achieved is None or peak is None:
        return None
    return Missing(metrics.mfu(achieved.value, peak), f"of a dense peak of {peak:,g} TFLOP/s")
