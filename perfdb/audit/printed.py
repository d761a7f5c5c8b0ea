"""How exactly a figure was printed: from the text of its cell to the interval it stands for."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import inf, isclose
from typing import Final

from perfdb import page_text
from perfdb.audit.interval import Interval, exactly, within
from perfdb.audit.subject import SHORT, Subject
from perfdb.pages import columns
from perfdb.record import Origin

NUMBER = rf"(?<![^\W_])(?<![.,'’])((?>{page_text.NUMBER}))"
"""A number in a text, whatever stands between its thousands, and its only group."""

_NUMBER = re.compile(rf"{NUMBER}(?![^\W_⁰¹²³⁴-⁹]|[.,'’]\d)")
COARSEST: Final[Mapping[str, float]] = {"mfu": 0.01}
"""The largest unit a figure is printed in: MFU in whole percent, others in whole numbers."""

_SCALES: Final[Mapping[str, tuple[float, ...]]] = {"mfu": (1, 0.01), "step_time_s": (1, 0.001)}
"""What the number of a cell is multiplied by when it is read: percent, milliseconds."""


def cell(raw: Mapping[str, str], field: str) -> str | None:
    """The text of the cell that a figure was read from; None where there was none."""
    title = columns.title_by_field(tuple(raw)).get(field)
    return raw[title] if title else None


def shown(row: Subject, fields: Sequence[str]) -> str:
    """'tokens/s/GPU 12,040, MFU 28%': figures that a row has, as printed."""
    texts = ((field, cell(row.raw, field) or f"{row.figure(field):g}") for field in fields)
    return ", ".join(f"{SHORT[field]} {text}" for field, text in texts)


def figure(row: Subject, field: str) -> Interval | None:
    """A figure with its rounding; exact where it was measured, None where it is not usable."""
    value = row.figure(field)
    if value is None or not 0 < value < float("inf"):
        return None
    if row.origin is Origin.MEASURED:
        return exactly(value)
    return within(value, half_unit(value, field, row.raw))


def number(text: str) -> Interval | None:
    """The first number of a text, with its rounding; None where there is none above 0.

    One that letters follow, as in 1.2K, is none: it may be scaled. A raised digit is a mark.
    """
    found = _NUMBER.search(text)
    value = float(page_text.ungrouped(found[1])) if found else 0.0
    return within(value, 10 ** -_decimals(found[1]) / 2) if found and 0 < value < inf else None


def half_unit(value: float, field: str, raw: Mapping[str, str]) -> float:
    """Half a unit in the last place of a figure as a row's cells print it.

    By the shortest spelling where they do not.
    """
    for text in _NUMBER.findall(cell(raw, field) or ""):
        for scale in _SCALES.get(field, (1,)):
            if isclose(float(page_text.ungrouped(text)) * scale, value):
                return float(scale * 10 ** -_decimals(text) / 2)
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    assert isinstance(exponent, int), f"{value} is not a printed figure"
    return min(10.0**exponent, COARSEST.get(field, 1.0)) / 2


def _decimals(number: str) -> int:
    return len(number.partition(".")[2])
