"""Scaling above 100 %: which points are, their mark, and what their rows state that can be why."""

from collections.abc import Mapping, Sequence
from typing import Final

from perfdb import units
from perfdb.audit.interval import cell_in, half_unit
from perfdb.site import addresses
from perfdb.site.addresses import Address
from perfdb.site.data import Result
from perfdb.site.differences import names
from perfdb.site.markup import Cell, Html, joined, link, tag
from perfdb.site.series import Rate, Series, efficiency

RULE: Final = "scaling"
"""The audit's rule that remarks on it."""

_PRINTED: Final = 0.0005
"""Half a unit of an efficiency as it is printed: 100.0 %."""
_DUST: Final = 1e-9
"""What floating-point arithmetic may add."""


def points(series: Series) -> tuple[Result, ...]:
    """The points whose GPUs are faster than at the smallest scale, beyond rounding."""
    first, *others = series.points
    highest = (1 + _half_unit(first, series.rate)) * (1 + _DUST)
    shares = efficiency(series)
    return tuple(
        one
        for one in others
        if (share := shares[one.num_gpus]) > 1 + _PRINTED
        and share * (1 - _half_unit(one, series.rate)) > highest
    )


def _half_unit(result: Result, rate: Rate) -> float:
    """Half a unit in the last digit of what a rate is stated by, as a share of that."""
    for field in (rate, "tokens_per_sec", "step_time_s"):
        stated: float | None = getattr(result, field)
        if stated:
            return half_unit(stated, field, cell_in(result.raw, field)) / stated
    return 0.0


def efficiency_of(point: Result, series: Series, page: str = "") -> Cell:
    """The efficiency; where it is above 100 %, with a mark that leads to the note on the page."""
    share = efficiency(series)[point.num_gpus]
    said = units.percent(share)
    if point not in points(series):
        return Cell(said, sort=share)
    to = tag("a", "*", href=f"{page}#{_anchor(series)}", aria_label="why it is above 100 %")
    return Cell(joined((said, tag("sup", to, class_="perf-mark"))), sort=share)


def _anchor(series: Series) -> str:
    return f"{series.anchor}-above"


def note(series: Series, audited: Mapping[int, str], address: Address) -> Html:
    """Where the efficiency is above 100 %, and what is not as at the smallest scale.

    `audited` are the entries of results that the audit's rule remarks on, by their number.
    """
    above = points(series)
    if not above:
        return Html("")
    counts = ", ".join(f"{one.num_gpus:,}" for one in above)
    first = series.points[0]
    said = (
        f"* Above 100 % at {counts} GPUs: each GPU is faster there than at the smallest scale, "
        f"{units.counted(first.num_gpus, 'GPU')}. {_different(first, above, series)}"
    )
    found = [
        link(
            units.counted(one.num_gpus, "GPU"),
            addresses.of_entry(one.framework, one.release, audited[one.result_id], address),
        )
        for one in series.points
        if one.result_id in audited
    ]
    told = (" The audit's findings: ", joined(found, ", "), ".") if found else ()
    return tag("p", (said, *told), class_="perf-note", id=_anchor(series))


def _different(first: Result, above: Sequence[Result], series: Series) -> str:
    """What the rows state that is not the same at the smallest scale."""
    batch = ["samples per GPU"] if series.scaling == "strong" else []
    found = [*batch, *names(above, first)]
    if not found:
        return "The rows state no difference in configuration."
    return f"Not the same at both: {', '.join(found)}."
