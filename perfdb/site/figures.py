"""How a figure that is computed is printed: one that is not stated and follows from what is."""

from typing import Final

from perfdb import units
from perfdb.site.data import Result
from perfdb.stated import MFU, RATE, figure, is_computed

__all__ = ["COMPUTED", "MFU", "RATE", "computed", "figure", "is_computed", "said"]

COMPUTED: Final = " (computed)"
"""The mark of a figure that is not stated and follows from others that are."""


def computed(result: Result, metric: str) -> str:
    """A figure that is computed, with its mark."""
    return f"{said(result, metric)}{COMPUTED}"


def said(result: Result, metric: str) -> str:
    """A figure that is computed, without its mark."""
    value = figure(result, metric)
    return units.share(value) if metric == MFU else units.significant(value)
