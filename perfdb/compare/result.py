"""What a comparison takes: results."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isfinite
from typing import TypeVar

from pydantic import ConfigDict

from perfdb import stated
from perfdb.messages import NoteText
from perfdb.record import CONFIGURATION_FIELDS, Frozen, Origin, Outcome, Scalar
from perfdb.versions import natural


class Result(Frozen):
    """A result as `perfdb.queries.results.current` gives it, as far as a comparison needs it."""

    model_config = ConfigDict(extra="ignore")

    result_id: int
    case_key: str
    workload_key: str
    framework: str
    release: str | None
    container: str | None = None
    system: str
    system_title: str
    model: str
    model_title: str
    qualifiers: str
    task: str
    num_gpus: int
    precision: str | None
    sequence_length: int
    global_batch_size: int
    micro_batch_size: int | None
    local_batch_size: int | None
    tensor_parallel: int | None
    pipeline_parallel: int | None
    context_parallel: int | None
    expert_parallel: int | None
    expert_tensor_parallel: int | None
    virtual_pipeline: int | None
    fsdp_enabled: bool | None
    fsdp_size: int | None
    sequence_parallel: bool | None
    kernels: str
    variant: str | None
    options: Mapping[str, Scalar]
    origin: Origin
    outcome: Outcome
    withheld: NoteText | None
    step_time_s: float | None
    step_time_mean_s: float | None
    step_time_stdev_s: float | None
    step_time_p10_s: float | None = None
    step_time_p90_s: float | None = None
    num_steps: int | None
    num_means: int | None = None
    """Of how many means of several steps its figures are; None: of single steps."""
    window: str | None = None
    """The steps that its figures are taken over."""
    tokens_per_sec: float | None = None
    """Of all GPUs together, where its page prints it."""
    tokens_per_sec_per_gpu: float | None
    model_tflops_per_sec_per_gpu: float | None
    mfu: float | None
    peak_memory_bytes: int | None = None
    flops_convention: str | None
    raw: Mapping[str, str] = {}
    """The text of each cell of its page, by the title of the column."""
    run_id: str | None = None
    source: str | None = None
    """The file that it was read from."""
    source_line: int | None = None
    notes: Sequence[NoteText] = ()
    """What is said of its figures."""
    has_open_errors: bool = False
    """Whether the audit finds errors in it that nobody has accepted (`marked`)."""

    def figure(self, metric: str) -> float | None:
        """The value of a metric; None where it is unknown, withheld, or cannot be a rate."""
        if self.withheld is not None:
            return None
        value: float | None = getattr(self, metric)
        return value if value is not None and isfinite(value) and value > 0 else None

    @property
    def is_uneven(self) -> bool:
        """Whether its steps differ in their tokens, so that its rate is no step time inverted."""
        return stated.is_uneven(self.notes)

    @property
    def work_order(self) -> tuple[object, ...]:
        """A key that sorts results by what was done: model, system, task, precision, then sizes."""
        work = (natural(self.model_title), natural(self.system_title), self.task)
        size = (self.num_gpus, self.sequence_length, self.global_batch_size)
        return (*work, self.precision or "", *size)

    @property
    def layout_order(self) -> tuple[object, ...]:
        """A key that sorts results of the same work by how it was done: MBS, LBS, TP, PP, …"""
        values = [getattr(self, name) for name in CONFIGURATION_FIELDS]
        return (*(natural("" if value is None else str(value)) for value in values), self.case_key)


FAULTS = (
    Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.NAN_LOSS, Outcome.NAN_GRAD_NORM,
    Outcome.TIMED_OUT,
)  # fmt: skip
"""The outcomes of a run that failed by itself, and was not stopped."""

Some = TypeVar("Some", bound=Result)


def marked(results: Iterable[Some], wrong: Collection[int]) -> tuple[Some, ...]:
    """The results; those whose numbers are among the wrong ones say that they have open errors."""
    return tuple(
        one.model_copy(update={"has_open_errors": True}) if one.result_id in wrong else one
        for one in results
    )
