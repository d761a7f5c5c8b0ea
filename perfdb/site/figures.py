"""The figures of a result: as they are stated, and rates that follow from what is stated."""

from typing import Final

from perfdb import metrics, units
from perfdb.site.data import Result

RATE: Final = "tokens_per_sec_per_gpu"

COMPUTED: Final = " (computed)"
"""The mark of a figure that is not stated and follows from others that are."""


def figure(result: Result, metric: str) -> float | None:
    """The value of a metric; None where it is unknown, withheld, or no rate.

    A rate of each GPU in tokens that a page does not state follows from what it states of the whole
    job. A run's that is unknown stays so: its steps are not known to have GBS × sequence length.
    """
    known = _stated(result, metric)
    if known is not None or metric != RATE or result.is_measured or result.withheld is not None:
        return known
    if result.tokens_per_sec:
        return result.tokens_per_sec / result.num_gpus
    if result.step_time_s:
        return metrics.tokens_per_sec_per_gpu(
            result.global_batch_size, result.sequence_length, result.step_time_s, result.num_gpus
        )
    return None


def _stated(result: Result, metric: str) -> float | None:
    value: float | None = getattr(result, metric)
    return value if value is not None and value > 0 and result.withheld is None else None


def is_computed(result: Result, metric: str) -> bool:
    """Whether a figure follows from others that are stated and is not stated itself."""
    return _stated(result, metric) is None and figure(result, metric) is not None


def computed(result: Result, metric: str) -> str:
    """A figure that is computed, with its mark."""
    return f"{units.significant(figure(result, metric))}{COMPUTED}"
