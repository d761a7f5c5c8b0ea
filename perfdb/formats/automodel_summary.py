"""AutoModel's benchmark results as JSON: what the recipe writes, and what CI collects of it.

Up to 0.6.0 `tflops_per_gpu` is the TFLOP of one global step over all GPUs; since 0.7.0 that is
`tflops_total`. The rate of a GPU follows from it in two ways that must agree: over time and GPUs,
and from MFU and the peak.
Source of the format: nemo_automodel/recipes/llm/benchmark.py, 0.2.0 to 0.7.0.
"""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from perfdb.errors import Diagnostic
from perfdb.formats import settings
from perfdb.formats.base import Content, ParsedLog
from perfdb.formats.documents import (
    Written,
    checked,
    has_keys,
    identity,
    json_object,
    nothing,
    texts,
)
from perfdb.formats.numbers import count, percent, positive
from perfdb.record import MOST, Figures, Outcome, PartialCase

NAME = "automodel_summary"
TOLERANCE: Final = 0.005
"""By how much the two ways to a GPU's rate may differ: the printed figures are rounded."""


class _Summary(Written):
    """The fields of both files; the one of CI has them in three groups."""

    world_size: int | None = None
    warmup_steps: Annotated[int, Field(ge=0, le=MOST)] | None = None
    avg_iter_time_seconds: float | None = None
    avg_mfu_percent: float | None = None
    tflops_per_gpu: float | None = None
    tflops_total: float | None = None
    flops_scope: str | None = None
    peak_tflops: float | None = None
    global_batch_size: int | None = None
    local_batch_size: int | None = None
    seq_len: int | None = None
    tp_size: int | None = None
    cp_size: int | None = None
    pp_size: int | None = None
    ep_size: int | None = None
    model_name: str | None = None
    fp8: object = None
    peft: object = None
    backend_attn: object = None
    backend_linear: object = None
    backend_experts: object = None
    backend_dispatcher: object = None


def recognises(head: bytes, name: str) -> bool:
    """Whether the names of the recipe's results stand among the first bytes of a JSON object."""
    return head.lstrip()[:1] == b"{" and (
        has_keys(head, "avg_iter_time_seconds") or has_keys(head, "metadata", "config", "results")
    )


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The one result."""
    found = json_object(where, content)
    if isinstance(found, Diagnostic):
        return nothing(found)
    summary = checked(where, _flat(found), _Summary)
    if isinstance(summary, Diagnostic):
        return nothing(summary)
    time = positive(summary.avg_iter_time_seconds)
    configuration = _configuration(summary)
    if time is None:
        message = "no step time: the benchmark did not come to its end"
        return nothing(Diagnostic(where, message, field="avg_iter_time_seconds"), configuration)
    rate, problems = _rate(where, summary, time)
    log = ParsedLog(
        configuration=configuration,
        identity=identity(found),
        emitted=Figures(
            step_time_s=time,
            model_tflops_per_sec_per_gpu=rate,
            mfu=percent(summary.avg_mfu_percent),
        ),
        window=f"skip_warmup({summary.warmup_steps or 0})",
        outcome=Outcome.FINISHED,
        problems=problems,
        notes=_scope_note(where, summary),
    )
    return (log,)


def _flat(found: Mapping[str, object]) -> dict[str, object]:
    """The fields of all groups; a file without groups has them itself."""
    groups = [found.get(name) for name in ("metadata", "config", "results")]
    inner = {
        key: value for group in groups if isinstance(group, dict) for key, value in group.items()
    }
    return {**found, **inner}


def _configuration(summary: _Summary) -> PartialCase:
    said = texts(summary.model_dump(exclude_none=True))
    fields = {
        "model": settings.model(summary.model_name),
        "task": "lora" if summary.peft else None,
    }
    known = {name: value for name, value in fields.items() if value}
    return settings.configuration(said, framework="automodel", **known)


def _rate(
    where: str, summary: _Summary, time: float
) -> tuple[float | None, tuple[Diagnostic, ...]]:
    """TFLOP/s of a GPU. Upstream's CI writes a TFLOP of 0 where it does not know."""
    tflop = positive(summary.tflops_total) or positive(summary.tflops_per_gpu)
    world = count(summary.world_size)
    mfu, peak = percent(summary.avg_mfu_percent), positive(summary.peak_tflops)
    over_time = positive(tflop / (world * time)) if tflop and world else None
    of_peak = positive(peak * mfu) if peak and mfu else None
    if over_time and of_peak and abs(over_time / of_peak - 1) > TOLERANCE:
        message = (
            f"{over_time:.2f} TFLOP/s/GPU follow from the TFLOP of a step, "
            f"{of_peak:.2f} from MFU and peak"
        )
        remedy = "neither is taken: was another number of GPUs or another peak meant?"
        return None, (Diagnostic(where, message, field="tflops_per_gpu", remedy=remedy),)
    return over_time or of_peak, ()


def _scope_note(where: str, summary: _Summary) -> tuple[Diagnostic, ...]:
    if summary.flops_scope != "text":
        return ()
    message = "the text backbone alone is counted, in TFLOP/s and in MFU"
    return (Diagnostic(where, message, field="flops_scope"),)
