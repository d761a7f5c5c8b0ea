"""What a run and a published row are: the values that travel between the parts of perfdb."""

from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt

from perfdb import versions
from perfdb.content_hash import of_document

Scalar = bool | int | float | str

MOST: Final = 2**63 - 1
Count = Annotated[int, Field(gt=0, le=MOST)]
"""How many there are of something, no more than a computer counts."""


class Frozen(BaseModel):
    """A value: checked once when it is made, then trusted and never changed."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, defer_build=True, ser_json_inf_nan="strings"
    )


class Outcome(StrEnum):
    """How a run ended. A run that failed is data too."""

    FINISHED = "finished"
    FAILED = "failed"
    OUT_OF_MEMORY = "out_of_memory"
    NAN_LOSS = "nan_loss"
    NAN_GRAD_NORM = "nan_grad_norm"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    INCOMPLETE = "incomplete"
    NO_DATA = "no_data"


class Origin(StrEnum):
    """Where a result's figures come from. The two are never mixed."""

    MEASURED = "measured"
    PUBLISHED = "published"


Task = Literal["pretrain", "sft", "lora"]


def no_virtual_pipeline(value: object) -> object:
    """VP of 0 or 1 is no virtual pipeline; pages print both for it."""
    return None if value in (0, 1) else value


class Case(Frozen):
    """One fully resolved point of work on a system. None: not known, or not applicable.

    `gradient_accumulation` and `data_parallel` follow from the other fields; they are kept because
    pages print them, and stay out of the identity.
    """

    framework: str
    model: str
    qualifiers: tuple[str, ...] = ()
    task: Task = "pretrain"
    system: str
    num_gpus: Count
    precision: str | None = None
    sequence_length: Count
    global_batch_size: Count
    micro_batch_size: Count | None = None
    local_batch_size: Count | None = None
    gradient_accumulation: Count | None = None
    tensor_parallel: Count | None = None
    pipeline_parallel: Count | None = None
    context_parallel: Count | None = None
    expert_parallel: Count | None = None
    expert_tensor_parallel: Count | None = None
    virtual_pipeline: Annotated[Count | None, BeforeValidator(no_virtual_pipeline)] = None
    data_parallel: Count | None = None
    fsdp_enabled: bool | None = None
    fsdp_size: Count | None = None
    sequence_parallel: bool | None = None
    kernels: tuple[str, ...] = ()
    variant: str | None = None
    options: Mapping[str, Scalar] = Field(default_factory=dict)

    @property
    def workload_key(self) -> str:
        """SHA-256 of what was done, whatever the parallelism: the key that releases share."""
        return self._digest(WORKLOAD_FIELDS)

    @property
    def key(self) -> str:
        """SHA-256 of what was done and how: the identity of the case."""
        return self._digest(WORKLOAD_FIELDS + CONFIGURATION_FIELDS)

    def _digest(self, fields: tuple[str, ...]) -> str:
        return of_document(self.model_dump_json(include=set(fields)))


WORKLOAD_FIELDS = (
    "framework", "model", "qualifiers", "task", "system", "num_gpus", "precision",
    "sequence_length", "global_batch_size",
)  # fmt: skip
CONFIGURATION_FIELDS = (
    "micro_batch_size", "local_batch_size", "tensor_parallel", "pipeline_parallel",
    "context_parallel", "expert_parallel", "expert_tensor_parallel", "virtual_pipeline",
    "fsdp_enabled", "fsdp_size", "sequence_parallel", "kernels", "variant", "options",
)  # fmt: skip


UNATTRIBUTED: Final = "(unattributed)"
"""What stands for a version that nobody stated."""


class Release(Frozen):
    """A framework at a version, in a container image where there is one.

    A version has no v before its number: v0.2.0 and 0.2.0 are one.
    """

    framework: str
    version: Annotated[str, AfterValidator(versions.plain)] | None = None
    container: str | None = None
    container_digest: str | None = None

    @property
    def name(self) -> str:
        """'nemo 25.04'; a release whose version nobody stated is unattributed."""
        return f"{self.framework} {self.version or UNATTRIBUTED}"

    @property
    def key(self) -> str:
        """SHA-256 of all that is known of the release."""
        return of_document(self.model_dump_json())


class Figures(Frozen):
    """What was achieved. None: not known; never zero for unknown.

    `tokens_per_sec` is of all GPUs together, where a page prints it.
    """

    step_time_s: float | None = None
    tokens_per_sec_per_gpu: float | None = None
    model_tflops_per_sec_per_gpu: float | None = None
    mfu: float | None = None
    tokens_per_sec: float | None = None


class Method(Frozen):
    """How figures were measured: over how many steps, which ones, and how FLOPs are counted."""

    num_steps: int | None = None
    window: str | None = None
    flops_convention: str | None = None


class Original(Frozen):
    """Where the original of a published page is, and when it was published. None: not stated."""

    source_url: str | None = None
    published_on: date | None = None


class StepRecord(Frozen):
    """One optimizer step, as the worker streams it (a line of steps.jsonl).

    Times are seconds of the whole synchronised step (forward, backward, optimizer): the slowest
    and the fastest rank. `tokens` counts the global batch.
    """

    step: Count
    step_time_s: float
    step_time_min_s: float | None = None
    loss: float | None = None
    grad_norm: float | None = None
    tokens: int | None = None
    peak_memory_bytes: int | None = None
    skipped: bool = False
    cuda_event_time_s: float | None = None


class WorkerSummary(BaseModel):
    """What the worker says of itself after its last step. Written only on success."""

    model_config = ConfigDict(extra="allow", frozen=True)

    schema_version: Literal[1]
    world_size: PositiveInt
    data_parallel: PositiveInt
    num_parameters: int
    backend: str
    device: str
    cpu_shim: bool
    memory_kind: str
    peak_memory_bytes: tuple[int | None, ...]
    versions: Mapping[str, str | None]


class WorkerConfiguration(BaseModel):
    """What the worker was told to do: fields of its case, its steps, and its model by its shape."""

    model_config = ConfigDict(extra="allow", frozen=True)

    model: object = None

    @property
    def fields(self) -> Mapping[str, object]:
        """All of it but the model."""
        return self.model_extra or {}


class Environment(Frozen):
    """The machine and software a run had, with secrets left out."""

    hostname: str
    os: str
    python: str
    cpu: str | None = None
    cpu_count: int | None = None
    memory_bytes: int | None = None
    gpu: str | None = None
    gpu_count: int = 0
    gpu_memory_bytes: int | None = None
    driver: str | None = None
    cuda: str | None = None
    nccl: str | None = None
    packages: Mapping[str, str] = Field(default_factory=dict)
    git_commit: str | None = None
    git_dirty: bool | None = None
    container: str | None = None
    variables: Mapping[str, str] = Field(default_factory=dict)


class RecipeRef(Frozen):
    """The recipe a run came from."""

    name: str
    path: str
    sha256: str


class RunRecord(Frozen):
    """What a run directory says of its run (run.json).

    `outcome` is None while the runner is at work; a directory that still says None when its
    runner is gone was cut off.
    """

    schema_version: Literal[1] = 1
    run_id: str
    case: Case
    release: Release
    recipe: RecipeRef
    environment: Environment
    command: tuple[str, ...]
    warmup_steps: Annotated[int, Field(ge=0, le=MOST)]
    measured_steps: Annotated[int, Field(ge=0, le=MOST)]
    seed: int
    attempt: PositiveInt = 1
    runner_pid: int
    perfdb_version: str
    started_at: datetime
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    exit_code: int | None = None
    error: str | None = None

    def ended(self, outcome: Outcome, when: datetime, exit_code: int, error: str | None) -> Self:
        """The same record, with how it ended."""
        return self.model_copy(
            update={
                "outcome": outcome,
                "ended_at": when,
                "exit_code": exit_code,
                "error": error,
            }
        )


class PublishedResult(Frozen):
    """One row of a published page.

    `raw` keeps the text of each cell as it was printed, by the page's own column name; `extras`
    the columns perfdb has no field for; `notes` the texts of the footnotes that concern the row.
    """

    case: Case
    release: Release
    figures: Figures
    method: Method = Method()
    line: PositiveInt
    raw: Mapping[str, str] = Field(default_factory=dict)
    extras: Mapping[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
