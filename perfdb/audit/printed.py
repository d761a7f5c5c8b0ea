"""How exactly a figure was printed: from the text of its cell to the interval it stands for."""

import re
from collections.abc import Mapping
from decimal import Decimal

from perfdb import catalog
from perfdb.audit.interval import Interval, exactly, within
from perfdb.audit.subject import Subject
from perfdb.pages.columns import ALIASES
from perfdb.record import Origin

_NUMBER = re.compile(r"(\d[\d,]*)(?:\.(\d+))?(%?)")
COARSEST: Mapping[str, float] = {"mfu": 0.01}
"""The largest unit a figure is printed in: MFU in whole percent, others in whole numbers."""

_TITLES: Mapping[str, frozenset[str]] = {
    field: frozenset(map(catalog.squeezed, titles)) for field, titles in ALIASES.items()
}


def cell(row: Subject, field: str) -> str | None:
    """The text of the cell that a figure was read from; None where there was none."""
    found = (text for title, text in row.raw.items() if catalog.squeezed(title) in _TITLES[field])
    return next(found, None)


def figure(row: Subject, field: str) -> Interval | None:
    """A figure with its rounding; exact where it was measured, None where it is not usable."""
    value = row.figure(field)
    if value is None or not 0 < value < float("inf"):
        return None
    if row.origin is Origin.MEASURED:
        return exactly(value)
    return within(value, _unit(cell(row, field) or "", value, COARSEST.get(field, 1.0)) / 2)


def number(text: str) -> Interval | None:
    """The first number of a text, with its rounding; None where there is none above 0."""
    found = _NUMBER.search(text)
    if found is None or not (value := float(f"{found[1].replace(',', '')}.{found[2] or 0}")):
        return None
    return within(value, 10 ** -len(found[2] or "") / 2)


def _unit(text: str, value: float, coarsest: float) -> float:
    """The unit in the last place that was printed; by the shortest spelling if unknown."""
    for whole, fraction, percent in _NUMBER.findall(text):
        scale = 0.01 if percent else 1.0
        read = float(f"{whole.replace(',', '')}.{fraction or 0}") * scale
        if abs(read - value) <= 1e-9 * value:
            return float(scale * 10 ** -len(fraction))
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return min(10.0**exponent, coarsest) if isinstance(exponent, int) else 0.0
