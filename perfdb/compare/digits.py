"""Figures as text: with as many decimals as the page printed, or those of their metric."""

import re
from collections.abc import Iterator, Mapping
from math import isclose, isnan

from perfdb.audit.interval import cell_in
from perfdb.metrics import Metric
from perfdb.units import UNKNOWN, figure, number, percent, share, significant

Raw = Mapping[str, str]
"""The cells of a row by the titles of their columns, as its page prints them; empty for a run."""

_NUMBER = re.compile(r"(\d[\d,]*)(?:\.(\d+))?")


def printed(metric: Metric, value: float | None, raw: Raw | None = None) -> str:
    """A figure in its metric's unit as text: with the digits its page printed; – when unknown.

    `value` is in the unit of the metric, seconds or tokens/s, and a share of 1 for MFU, which is
    printed in percent. One of a run has as many decimals as the metric has, or three significant
    digits where it would lose its digits so; a step time has four significant digits.
    """
    if value is None or isnan(value):
        return UNKNOWN
    found = decimals(raw, metric.name, value) if raw else None
    if metric.name == "step_time_s" and found is None:
        return significant(value, metric.digits)
    return with_digits(metric, value, found)


def with_digits(metric: Metric, value: float, found: int | None) -> str:
    """A figure with so many decimals; None: as many as its metric has, or enough to say it."""
    if metric.name == "mfu":
        return share(value) if found is None else percent(value, found)
    return figure(value, metric.digits) if found is None else number(value, found)


def decimals(raw: Raw, field: str, value: float) -> int | None:
    """How many decimals a figure has on its page; for MFU, how many its percentage has.

    None if the page has no such column, or prints another value: in another unit, or from before
    a correction.
    """
    return next(_found(cell_in(raw, field) or "", field, value), None)


def _found(text: str, field: str, value: float) -> Iterator[int]:
    for whole, fraction in _NUMBER.findall(text):
        read = float(f"{whole.replace(',', '')}.{fraction or 0}")
        if field == "mfu" and isclose(read, value * 100):
            yield len(fraction)
        elif isclose(read, value):
            yield max(0, len(fraction) - 2) if field == "mfu" else len(fraction)
