"""The result of the core types, until they land."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from perfdb.record import Origin, Outcome, Scalar, Task


@dataclass(frozen=True, kw_only=True)
class Result:
    """The figures of a case at a release, as they are read from the store.

    Figures are in the units of `perfdb.fields`. `raw` has the text of each cell of a published row
    by the page's title of the column, `printed` by field. None: not known.
    """

    result_id: int = 0
    case_key: str = ""
    workload_key: str = ""
    framework: str
    release: str | None = None
    release_id: int = 0
    container: str | None = None
    system: str
    system_title: str = ""
    model: str
    model_title: str = ""
    qualifiers: str = ""
    task: Task = "pretrain"
    precision: str | None = None
    num_gpus: int
    global_batch_size: int
    micro_batch_size: int | None = None
    local_batch_size: int | None = None
    gradient_accumulation: int | None = None
    sequence_length: int
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    context_parallel: int | None = None
    expert_parallel: int | None = None
    expert_tensor_parallel: int | None = None
    virtual_pipeline: int | None = None
    data_parallel: int | None = None
    fsdp_enabled: bool | None = None
    fsdp_size: int | None = None
    sequence_parallel: bool | None = None
    kernels: str = ""
    variant: str | None = None
    options: Mapping[str, Scalar] = field(default_factory=dict)
    step_time_s: float | None = None
    step_time_mean_s: float | None = None
    step_time_stdev_s: float | None = None
    step_time_p10_s: float | None = None
    step_time_p90_s: float | None = None
    step_time_last_s: float | None = None
    tokens_per_sec_per_gpu: float | None = None
    tokens_per_sec: float | None = None
    model_tflops_per_sec_per_gpu: float | None = None
    mfu: float | None = None
    peak_tflops: float | None = None
    peak_memory_bytes: int | None = None
    flops_convention: str | None = None
    formula_version: int | None = None
    window: str | None = None
    num_steps: int | None = None
    num_means: int | None = None
    origin: Origin = Origin.PUBLISHED
    outcome: Outcome = Outcome.FINISHED
    withheld: str | None = None
    notes: tuple[str, ...] = ()
    raw: Mapping[str, str] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict)
    extras: Mapping[str, str] = field(default_factory=dict)
    emitted: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    source_line: int | None = None
    source_sha256: str = ""
    source_url: str | None = None
    published_on: date | None = None
    run_id: str | None = None
    recipe: str | None = None
    started_at: datetime | None = None
    num_results: int = 1
    """How many results of the case, release and origin it represents."""
    num_finished: int = 1
    has_open_errors: bool = False
    """Whether the audit finds errors in it that nobody has accepted."""

    @property
    def is_measured(self) -> bool:
        """Whether its figures are of a run, not of a published page."""
        return self.origin == Origin.MEASURED

    def value(self, name: str) -> object:
        """The value of a field by its name."""
        value: object = getattr(self, name)
        return value

    def figure(self, name: str) -> float | None:
        """A figure by its field; None where it is unknown."""
        value: float | None = getattr(self, name)
        return value

