"""Figures that cannot be: a row of which one contradicts another by thousands."""

import re
from collections.abc import Mapping
from typing import Final

from perfdb import catalog
from perfdb.pages.cells import Wrong
from perfdb.record import Case, Figures

_THOUSANDS: Final = (1e3, 1e6, 1e-3, 1e-6)
_SPREAD: Final = 0.1
"""By how much of it a ratio may be off: figures are rounded, and means of other steps."""
_MESSAGE: Final = "in the step time it does not make GBS × sequence"
_LEAST: Final = 0.01
"""The share of its peak below which no published training runs."""
_EITHER = re.compile(r"[1-9][0-9]{0,2}\.[0-9]{3}")


def wrong(case: Case, figures: Figures, printed: Mapping[str, str]) -> dict[str, Wrong]:
    """The figures that another one, or the peak, shows to be off by thousands; `printed` by field.

    A comma or a point is then taken for the other, or the title's unit for another.
    """
    return _rate(case, figures) | _flops(case, figures, printed)


def _rate(case: Case, figures: Figures) -> dict[str, Wrong]:
    """Tokens per second that do not make the batch in the time of a step."""
    of_all = _of_all_gpus(case, figures)
    if not of_all or not figures.step_time_s:
        return {}
    name, rate = of_all
    tokens = case.global_batch_size * case.sequence_length
    off = next((it for it in _THOUSANDS if _near(rate * figures.step_time_s, it * tokens)), None)
    if off is None:
        return {}
    ratio = rate * figures.step_time_s / tokens
    message = f"is off by a factor of {_factor(ratio, off, case.num_gpus)}: {_MESSAGE}"
    return {name: Wrong(message, "write 1022.26 or 1,022.26, in the unit that the title says")}


def _factor(ratio: float, thousands: float, num_gpus: int) -> str:
    """'1,000'; '1,024, the number of GPUs' where it is that rather than thousands."""
    factor, thousand = max(ratio, 1 / ratio), max(thousands, 1 / thousands)
    if abs(factor / num_gpus - 1) < abs(factor / thousand - 1):
        return f"{num_gpus:,}, the number of GPUs"
    return f"{thousand:,.0f}"


def _of_all_gpus(case: Case, figures: Figures) -> tuple[str, float] | None:
    if figures.tokens_per_sec_per_gpu:
        return "tokens_per_sec_per_gpu", figures.tokens_per_sec_per_gpu * case.num_gpus
    return ("tokens_per_sec", figures.tokens_per_sec) if figures.tokens_per_sec else None


def _near(value: float, wanted: float) -> bool:
    return abs(value / wanted - 1) < _SPREAD


def _flops(case: Case, figures: Figures, printed: Mapping[str, str]) -> dict[str, Wrong]:
    """`1.201` TFLOP/s where the GPU makes thousands: it is 1,201 with a point."""
    name = "model_tflops_per_sec_per_gpu"
    text = printed.get(name, "")
    peak = catalog.peak(case.system, case.precision)
    value = figures.model_tflops_per_sec_per_gpu
    if not peak or not value or not _EITHER.fullmatch(text):
        return {}
    if value >= _LEAST * peak.tflops or value * 1000 > peak.tflops:
        return {}
    message = f"{text!r} is below 1 % of the peak, {peak.tflops:,.0f} TFLOP/s, and may be thousands"
    return {name: Wrong(message, f"write {text[:-1]}, or {text.replace('.', ',')}")}
