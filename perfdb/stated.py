"""What a result states, and figures that follow from it where they are not stated themselves."""

from collections.abc import Callable, Mapping
from typing import Final

from pydantic import ConfigDict

from perfdb import catalog, metrics
from perfdb.messages import NoteText
from perfdb.record import Frozen, Origin, Result

RATE: Final = "tokens_per_sec_per_gpu"
MFU: Final = "mfu"


class FigureInputs(Frozen):
    """The part of a row of `perfdb.queries.results.current` that figures follow from."""

    model_config = ConfigDict(extra="ignore")

    system: str
    precision: str | None = None
    num_gpus: int
    global_batch_size: int
    sequence_length: int
    step_time_s: float | None = None
    tokens_per_sec: float | None = None
    tokens_per_sec_per_gpu: float | None = None
    model_tflops_per_sec_per_gpu: float | None = None
    mfu: float | None = None
    peak_memory_bytes: int | None = None
    origin: str
    withheld: NoteText | None = None

    @property
    def is_measured(self) -> bool:
        """Whether its figures are of a run, not of a published page."""
        return self.origin == Origin.MEASURED


def figure(result: FigureInputs | Result, metric: str) -> float | None:
    """The value of a metric, stated or else computed; None where it is unknown or withheld."""
    known = _stated(result, metric)
    return computed(result, metric) if known is None else known


def computed(result: FigureInputs | Result, metric: str) -> float | None:
    """The value of a metric that is not stated and follows from what is; else None.

    Tokens/s/GPU follow from the whole job, MFU from TFLOP/s/GPU and the dense peak. What is unknown
    of a run stays so: there is a reason.
    """
    follows = FOLLOWING.get(metric)
    if follows is None or _stated(result, metric) is not None:
        return None
    return None if result.is_measured or result.withheld is not None else follows(result)


def is_computed(result: FigureInputs | Result, metric: str) -> bool:
    """Whether a figure follows from others that are stated and is not stated itself."""
    return computed(result, metric) is not None


def _stated(result: FigureInputs | Result, metric: str) -> float | None:
    value: float | None = getattr(result, metric)
    return value if value is not None and value > 0 and result.withheld is None else None


def _rate(result: FigureInputs | Result) -> float | None:
    if result.tokens_per_sec:
        return result.tokens_per_sec / result.num_gpus
    if result.step_time_s:
        return metrics.tokens_per_sec_per_gpu(
            result.global_batch_size, result.sequence_length, result.step_time_s, result.num_gpus
        )
    return None


def _mfu(result: FigureInputs | Result) -> float | None:
    flops = _stated(result, "model_tflops_per_sec_per_gpu")
    peak = catalog.peak(result.system, result.precision)
    return metrics.mfu(flops, peak.tflops) if flops and peak else None


FOLLOWING: Final[Mapping[str, Callable[[FigureInputs | Result], float | None]]] = {
    RATE: _rate,
    MFU: _mfu,
}
"""What follows from figures that are stated."""
