"""How many decimals a page printed a figure with, so that it is shown with the same."""

import re
from collections.abc import Iterator, Mapping
from math import isclose

from perfdb.audit.printed import cell

Raw = Mapping[str, str]
"""The cells of a row by the titles of their columns, as its page prints them; empty for a run."""

_NUMBER = re.compile(r"(\d[\d,]*)(?:\.(\d+))?")


def decimals(raw: Raw, field: str, value: float) -> int | None:
    """How many decimals a figure has on its page; for MFU, how many its percentage has.

    None if the page has no such column, or prints another value: in another unit, or from before
    a correction.
    """
    return next(_found(cell(raw, field) or "", field, value), None)


def _found(text: str, field: str, value: float) -> Iterator[int]:
    for whole, fraction in _NUMBER.findall(text):
        read = float(f"{whole.replace(',', '')}.{fraction or 0}")
        if field == "mfu" and isclose(read, value * 100):
            yield len(fraction)
        elif isclose(read, value):
            yield max(0, len(fraction) - 2) if field == "mfu" else len(fraction)
