"""The figures of a result: as they are stated, and rates that follow from what is stated."""

from collections.abc import Callable, Mapping
from typing import Final

from perfdb import catalog, metrics, units
from perfdb.site.data import Result

RATE: Final = "tokens_per_sec_per_gpu"
MFU: Final = "mfu"

COMPUTED: Final = " (computed)"
"""The mark of a figure that is not stated and follows from others that are."""


def figure(result: Result, metric: str) -> float | None:
    """The value of a metric; None where it is unknown, withheld, or no rate.

    What a page does not state follows from what it states: tokens/s/GPU from the whole job, MFU
    from TFLOP/s/GPU and the dense peak. What is unknown of a run stays so: there is a reason.
    """
    known = _stated(result, metric)
    if known is not None or result.is_measured or result.withheld is not None:
        return known
    follows = _FOLLOWING.get(metric)
    return follows(result) if follows else None


def _rate(result: Result) -> float | None:
    if result.tokens_per_sec:
        return result.tokens_per_sec / result.num_gpus
    if result.step_time_s:
        return metrics.tokens_per_sec_per_gpu(
            result.global_batch_size, result.sequence_length, result.step_time_s, result.num_gpus
        )
    return None


def _mfu(result: Result) -> float | None:
    flops = _stated(result, "model_tflops_per_sec_per_gpu")
    peak = catalog.peak(result.system, result.precision)
    return metrics.mfu(flops, peak.tflops) if flops and peak else None


_FOLLOWING: Final[Mapping[str, Callable[[Result], float | None]]] = {RATE: _rate, MFU: _mfu}
"""What follows from figures that are stated."""


def _stated(result: Result, metric: str) -> float | None:
    value: float | None = getattr(result, metric)
    return value if value is not None and value > 0 and result.withheld is None else None


def is_computed(result: Result, metric: str) -> bool:
    """Whether a figure follows from others that are stated and is not stated itself."""
    return _stated(result, metric) is None and figure(result, metric) is not None


def computed(result: Result, metric: str) -> str:
    """A figure that is computed, with its mark."""
    return f"{said(result, metric)}{COMPUTED}"


def said(result: Result, metric: str) -> str:
    """A figure that is computed, without its mark."""
    value = figure(result, metric)
    return units.percent(value) if metric == MFU else units.significant(value)
