"""A printed time to train so many tokens must follow from the printed throughput."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from perfdb.audit import rates, workload
from perfdb.audit.interval import Interval, exactly
from perfdb.audit.printed import NUMBER, figure, number
from perfdb.audit.subject import TOTAL, Remark, Subject
from perfdb.page_text import ungrouped
from perfdb.units import SECONDS_PER_DAY, told_apart

NAME = "time_to_train"
MEANING = "a column such as 'time to train 1T tokens in days' is the tokens ÷ tokens/s"

_TOKENS = re.compile(rf"{NUMBER}\s*([KMBT])\s+tokens\b", re.IGNORECASE)
_GPUS = re.compile(rf"{NUMBER}\s*(K?)\s+GPUs\b", re.IGNORECASE)
_UNIT = re.compile(r"\btime\b.*\bin (days|hours|min(?:ute)?s)\b", re.IGNORECASE)
_SCALE: Final = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
MOST = 1e18
"""Tokens or GPUs of a title that asks for a time; one with more, or with none, asks for none."""
_SECONDS: Final = {"d": SECONDS_PER_DAY, "h": 3600, "m": 60}


@dataclass(frozen=True)
class _Estimate:
    """What a column's title asks: how long so many tokens take, on GPUs if it says how many."""

    tokens: float
    unit: str
    gpus: Interval | None

    def of(self, row: Subject) -> Interval | None:
        """The time by the row's throughput, in the title's unit; None where it has none."""
        total = None if self.gpus else figure(row, TOTAL)
        one = rates.tokens(row)
        of_one = one.or_cut().times(self.gpus or row.num_gpus) if one else None
        rate = total.or_cut() if total else of_one
        return rate.under(self.tokens / _SECONDS[self.unit[0]]) if rate else None


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows that print another time than their throughput gives."""
    for row in rows:
        for title, text in row.extras.items():
            estimate, printed = _estimate(title), number(text)
            computed = estimate.of(row) if estimate else None
            if printed and computed and not printed.or_cut().agrees(computed):
                yield _remark(row, title, printed, computed)


def _estimate(title: str) -> _Estimate | None:
    tokens, unit, gpus = _TOKENS.search(title), _UNIT.search(title), _GPUS.search(title)
    if not (tokens and unit):
        return None
    amount = float(ungrouped(tokens[1])) * _SCALE[tokens[2].upper()]
    count = float(ungrouped(gpus[1])) if gpus else 1.0
    if not (1 <= amount <= MOST and 1 <= count <= MOST):
        return None
    return _Estimate(amount, unit[1].lower(), _number_of(count, gpus[2]) if gpus else None)


def _number_of(count: float, thousands: str) -> Interval:
    """1K GPUs may be 1,000 or 1,024; NVIDIA's tables of 2024 take 1,024."""
    return Interval(count * 1024, count * 1000, count * 1024) if thousands else exactly(count)


def _remark(row: Subject, title: str, printed: Interval, computed: Interval) -> Remark:
    right, found = told_apart(computed.value, printed.value, 4)
    return Remark(
        row,
        workload.severity(printed.value / computed.value - 1),
        (title, TOTAL if row.tokens_per_sec else "tokens_per_sec_per_gpu"),
        str(computed),
        str(printed),
        f"{title!r} comes to {right} by the row's throughput; it says {found}",
        f"write {right}",
    )
