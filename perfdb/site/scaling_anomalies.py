"""Scaling above 100 %: which points are, their mark, and what their rows state that can be why."""

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.audit.interval import half_unit
from perfdb.site.cells import HtmlCell
from perfdb.site.data import SiteResult
from perfdb.site.differences import names
from perfdb.site.links import audit_entry
from perfdb.site.series import Rate, Series, efficiency
from perfdb.site.templates import render_text

RULE: Final = "scaling"
"""The audit's rule that remarks on it."""

_PRINTED: Final = 0.0005
"""Half a unit of an efficiency as it is printed: 100.0 %."""
_DUST: Final = 1e-9
"""What floating-point arithmetic may add."""


def points(series: Series) -> tuple[SiteResult, ...]:
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


def _half_unit(result: SiteResult, rate: Rate) -> float:
    """Half a unit in the last digit of what a rate is stated by, as a share of that."""
    for field in (rate, "tokens_per_sec", "step_time_s"):
        stated: float | None = getattr(result, field)
        if stated:
            return half_unit(stated, field, result.printed.get(field)) / stated
    return 0.0


def efficiency_cell(point: SiteResult, series: Series, page: str = "") -> HtmlCell:
    """The efficiency; where it is above 100 %, with a mark that leads to the note on the page."""
    share = efficiency(series)[point.num_gpus]
    text = units.percent(share)
    if point not in points(series):
        return HtmlCell(text, sort=share)
    mark = Markup(
        '{}<sup class="perf-mark"><a href="{}#{}" aria-label="why it is above 100 %">*</a></sup>'
    ).format(text, page, _anchor(series))
    return HtmlCell(mark, sort=share)


def _anchor(series: Series) -> str:
    return f"{series.anchor}-above"


def anomaly_note(series: Series, audited: Mapping[int, str]) -> Markup:
    """Where the efficiency is above 100 %, and what is not as at the smallest scale.

    `audited` are the entries of results that the audit's rule remarks on, by their number.
    """
    above = points(series)
    if not above:
        return Markup("")
    counts = ", ".join(f"{one.num_gpus:,}" for one in above)
    first = series.points[0]
    text = (
        f"* Above 100 % at {counts} GPUs: each GPU is faster there than at the smallest scale, "
        f"{units.counted(first.num_gpus, 'GPU')}. {_different(first, above, series)}"
    )
    found = [
        (
            units.counted(one.num_gpus, "GPU"),
            audit_entry(one.framework, one.release, audited[one.result_id]),
        )
        for one in series.points
        if one.result_id in audited
    ]
    return render_text(
        '<p class="perf-note" id="{{ anchor }}">{{ text }}'
        "{% if found %} The audit's findings: {% for gpus, entry in found %}"
        '<a href="{{ entry }}">{{ gpus }}</a>{% if not loop.last %}, {% endif %}{% endfor %}.'
        "{% endif %}</p>\n",
        anchor=_anchor(series),
        text=text,
        found=found,
    )


def _different(first: SiteResult, above: Sequence[SiteResult], series: Series) -> str:
    """What the rows state that is not the same at the smallest scale."""
    batch = ["samples per GPU"] if series.scaling == "strong" else []
    found = [*batch, *names(above, first)]
    if not found:
        return "The rows state no difference in configuration."
    return f"Not the same at both: {', '.join(found)}."
