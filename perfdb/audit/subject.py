"""What an audit takes and gives: subjects (results, with what was printed) and findings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import ConfigDict, Field

from perfdb.messages import NoteText
from perfdb.record import Finding, Frozen, Origin, Severity, Task

__all__ = ["FIGURES", "SHORT", "TOTAL", "Finding", "Remark", "Severity", "Subject"]


class Subject(Frozen):
    """A result as `perfdb.queries.results.current` gives it, as far as an audit needs it.

    Figures are in the units of `perfdb.metrics`; `raw` holds the text of each cell by the page's
    title of the column. None: not known.
    """

    model_config = ConfigDict(extra="ignore")

    framework: str
    release: str | None = None
    container: str | None = None
    system: str
    model: str
    qualifiers: str = ""
    task: Task = "pretrain"
    precision: str | None = None
    num_gpus: int
    sequence_length: int
    global_batch_size: int
    micro_batch_size: int | None = None
    local_batch_size: int | None = None
    gradient_accumulation: int | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    context_parallel: int | None = None
    expert_parallel: int | None = None
    expert_tensor_parallel: int | None = None
    virtual_pipeline: int | None = None
    data_parallel: int | None = None
    fsdp_enabled: bool | None = None
    fsdp_size: int | None = None
    kernels: str = ""
    variant: str | None = None
    origin: Origin = Origin.PUBLISHED
    withheld: NoteText | None = None
    step_time_s: float | None = None
    step_time_mean_s: float | None = None
    step_time_stdev_s: float | None = None
    num_steps: int | None = None
    tokens_per_sec_per_gpu: float | None = None
    model_tflops_per_sec_per_gpu: float | None = None
    mfu: float | None = None
    tokens_per_sec: float | None = None
    peak_tflops: float | None = None
    flops_convention: str | None = None
    raw: Mapping[str, str] = Field(default_factory=dict)
    extras: Mapping[str, str] = Field(default_factory=dict)
    emitted: Mapping[str, float] = Field(default_factory=dict)
    notes: tuple[NoteText, ...] = ()
    source: str | None = None
    source_line: int | None = None
    source_sha256: str | None = None
    result_id: int | None = None
    elsewhere: tuple["Subject", ...] = ()
    """The same result with the figures, raw text, source and line of other pages that print it."""

    def figure(self, field: str) -> float | None:
        """A figure by its field; None where it is unknown."""
        value: float | None = getattr(self, field)
        return value


@dataclass(frozen=True)
class Remark:
    """What a rule has to say of a subject; `audit` adds whose remark it is."""

    row: Subject
    severity: Severity
    fields: tuple[str, ...]
    """The fields that disagree, by perfdb's names."""
    expected: str | None
    found: str | None
    message: str
    suggestion: str | None = None
    """The change of one field that would make the row consistent."""


FIGURES: Final = (
    "step_time_s", "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu",
)  # fmt: skip

TOTAL: Final = "tokens_per_sec"
"""The tokens/s of all GPUs together, which follow from the other figures."""

SHORT: Final[Mapping[str, str]] = {
    "num_gpus": "GPUs",
    "sequence_length": "sequence length",
    "global_batch_size": "GBS",
    "micro_batch_size": "MBS",
    "local_batch_size": "LBS",
    "gradient_accumulation": "GA",
    "tensor_parallel": "TP",
    "pipeline_parallel": "PP",
    "context_parallel": "CP",
    "expert_parallel": "EP",
    "expert_tensor_parallel": "ETP",
    "virtual_pipeline": "VP",
    "data_parallel": "DP",
    "step_time_s": "step time",
    "tokens_per_sec_per_gpu": "tokens/s/GPU",
    "model_tflops_per_sec_per_gpu": "model TFLOP/s/GPU",
    "mfu": "MFU",
    "tokens_per_sec": "tokens/s",
}
"""What a message calls a field."""
