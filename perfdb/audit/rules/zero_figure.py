"""Nothing trains at rate 0 or in no time: a figure of 0 is a missing one."""

from collections.abc import Iterator, Sequence
from math import isfinite

from perfdb.audit.printed import cell
from perfdb.audit.subject import FIGURES, SHORT, TOTAL, Remark, Severity, Subject

NAME = "zero_figure"
MEANING = "a figure is above 0 and finite; what is not known is left out"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Figures that are 0, negative or no number, in the store or on the page."""
    for row in rows:
        for field in (*FIGURES, TOTAL):
            value = row.figure(field)
            if value is None and _is_zero(cell(row.raw, field)):
                yield _remark(row, field, "0")
            elif value is not None and not (isfinite(value) and value > 0):
                yield _remark(row, field, f"{value:g}")


def _is_zero(text: str | None) -> bool:
    """'0', '0.00', '0%', but not an empty cell and not a dash."""
    return text is not None and text.strip(" %*_").strip("0") in ("", ".") and "0" in text


def _remark(row: Subject, field: str, found: str) -> Remark:
    message = f"{SHORT[field]} is {found}: nothing trains at that; the figure is unknown"
    change = f"leave {SHORT[field]} empty, or -"
    return Remark(row, Severity.ERROR, (field,), None, found, message, change)
