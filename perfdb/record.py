"""What a run and a published row are: the values that travel between the parts of perfdb."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt

from perfdb import fields, versions
from perfdb.jsonfile import of_document

Scalar = bool | int | float | str

MOST: Final = 2**63 - 1
Count = Annotated[int, Field(gt=0, le=MOST)]
"""How many there are of something, no more than a computer counts."""


def must(is_right: Callable[[str], object], message: str) -> AfterValidator:
    """A check of a text in a file: where it fails, the message is what is wrong with it."""

    def checked(text: str) -> str:
        if not is_right(text):
            raise ValueError(message)
        return text

    return AfterValidator(checked)


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

    @property
    def is_stopped(self) -> bool:
        """Whether a run was stopped, or its log ends, while nothing was wrong with its steps."""
        return self in (Outcome.INCOMPLETE, Outcome.INTERRUPTED, Outcome.TIMED_OUT)


class NoteCode(StrEnum):
    """What to know of a result, or why it has no figures. `perfdb.messages` has the words."""

    FOOTNOTE = "footnote"
    REPORTED = "reported"
    """In the words of the program or of a file next to its log."""
    VARIABLE_LENGTH_STEPS = "variable_length_steps"
    SKIPPED_STEPS = "skipped_steps"
    MODEL_SHAPE = "model_shape"
    RUN_ENDED = "run_ended"
    CUT_OFF = "cut_off"
    LOSS_NOT_FINITE = "loss_not_finite"
    GRAD_NORM_NOT_FINITE = "grad_norm_not_finite"
    MISSING_STEP = "missing_step"
    REPEATED_STEP = "repeated_step"
    TOO_FEW_STEPS = "too_few_steps"
    TOO_FEW_STEPS_FOR_WINDOW = "too_few_steps_for_window"
    NO_STEP_IN_WINDOW = "no_step_in_window"
    OTHER_DEVICE = "other_device"
    OTHER_VERSION = "other_version"
    OTHER_WORLD_SIZE = "other_world_size"
    OTHER_ARGUMENT = "other_argument"
    OTHER_TOKENS = "other_tokens"
    UNPLANNED_STEP = "unplanned_step"
    NO_BENCHMARK = "no_benchmark"
    UNLIKE_NODES = "unlike_nodes"


@dataclass(frozen=True)
class Note:
    """Something to know of a result, as data: a code and its parameters."""

    code: NoteCode
    params: Mapping[str, Scalar | None] = field(default_factory=dict)

    @classmethod
    def of(cls, code: NoteCode, **params: Scalar | None) -> Self:
        """A note with these parameters."""
        return cls(code, params)


class RunKind(StrEnum):
    """What a run is for. Only a benchmark has figures."""

    BENCHMARK = "benchmark"
    PROFILE = "profile"
    CHECKPOINT = "checkpoint"


class Origin(StrEnum):
    """Where a result's figures come from. The two are never mixed."""

    MEASURED = "measured"
    PUBLISHED = "published"


Task = Literal["pretrain", "sft", "lora"]

PROXY_OF: Final = "proxy_of"
"""The option of a case that is a proxy; `perfdb run --fit` alone makes such."""


def no_virtual_pipeline(value: object) -> object:
    """VP of 0 or 1 is no virtual pipeline; pages print both for it."""
    return None if value in (0, 1) else value


class PartialCase(Frozen):
    """What a source says of a case: every field of it, each optional.

    A field that is not in `model_fields_set` is not stated; one that is set to None is stated to
    be absent (no virtual pipeline). `gradient_accumulation` and `data_parallel` follow from other
    fields; they are kept because pages print them, and are no part of the identity.
    """

    framework: str | None = None
    model: str | None = None
    qualifiers: tuple[str, ...] | None = None
    task: Task | None = None
    system: str | None = None
    num_gpus: Count | None = None
    precision: str | None = None
    sequence_length: Count | None = None
    global_batch_size: Count | None = None
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
    kernels: tuple[str, ...] | None = None
    variant: str | None = None
    options: Mapping[str, Scalar] | None = None

    def completed_by(self, other: "PartialCase") -> "PartialCase":
        """The same, with the fields that it does not state taken from another, options by name."""
        stated = other.model_dump(exclude_unset=True) | self.model_dump(exclude_unset=True)
        if self.options and other.options:
            stated["options"] = {**other.options, **self.options}
        return PartialCase.model_validate(stated)


class Case(PartialCase):
    """One fully resolved point of work on a system. None: not known, or not applicable."""

    framework: str
    model: str
    qualifiers: tuple[str, ...] = ()
    task: Task = "pretrain"
    system: str
    num_gpus: Count
    sequence_length: Count
    global_batch_size: Count
    kernels: tuple[str, ...] = ()
    options: Mapping[str, Scalar] = Field(default_factory=dict)

    @property
    def proxy_of(self) -> str | None:
        """How the key of the original case begins, if this one is cut to fit; None: it is whole."""
        key = self.options.get(PROXY_OF)
        return None if key is None else str(key)

    @property
    def workload_key(self) -> str:
        """SHA-256 of what was done, whatever the parallelism: the key that releases share."""
        return self._digest(WORKLOAD_FIELDS)

    @property
    def key(self) -> str:
        """SHA-256 of what was done and how: the identity of the case."""
        return self._digest(WORKLOAD_FIELDS + CONFIGURATION_FIELDS)

    def _digest(self, names: tuple[str, ...]) -> str:
        return of_document(self.model_dump_json(include=set(names)))


WORKLOAD_FIELDS: Final = fields.WORKLOAD
CONFIGURATION_FIELDS: Final = fields.CONFIGURATION


LAST_VERIFIED: Final = "last_verified"
"""Among a result's `extras`: the date at which its file says that it was verified."""

TIME_TO_TRAIN: Final = "time_to_train_s"
"""Among a result's `extras`: MLPerf's own metric, the seconds from a run's start to its stop."""

UNATTRIBUTED: Final = "(unattributed)"
"""The name of an unknown version."""


def release_name(framework: str, version: str | None) -> str:
    """'nemo 25.04'; a release without a known version is unattributed."""
    return f"{framework} {version or UNATTRIBUTED}"


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
        """'nemo 25.04'; a release without a known version is unattributed."""
        return release_name(self.framework, self.version)

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


class PublishedResult(Frozen):
    """One row of a published page.

    `raw` keeps the text of each cell as it was printed, by the page's own column name; `extras`
    the columns perfdb has no field for; `notes` the texts of the footnotes that concern the row.
    """

    case: Case
    release: Release
    figures: Figures
    method: Method = Method()
    peak_tflops: float | None = None
    """The dense peak of a GPU that its MFU is of, in TFLOP/s, as the page states it."""
    line: PositiveInt
    raw: Mapping[str, str] = Field(default_factory=dict)
    printed: Mapping[str, str] = Field(default_factory=dict)
    """The text that a reader sees in each cell, by the field that is read from it."""
    extras: Mapping[str, str] = Field(default_factory=dict)
    notes: tuple[Note, ...] = ()


class Severity(StrEnum):
    """How sure an audit rule is that something is wrong."""

    ERROR = "error"
    """The numbers contradict one another: at least one of them is wrong."""
    WARNING = "warning"
    """Very likely wrong, or missing where it could be known."""
    INFO = "info"
    """Worth knowing before the number is used; nothing need be wrong."""

    def reaches(self, gate: "Severity") -> bool:
        """Whether it is as grave as another, or graver."""
        order = list(Severity)
        return order.index(self) <= order.index(gate)


class Finding(Frozen):
    """What an audit rule reports of a result, or of a document (then without a model)."""

    rule: str
    severity: Severity = Severity.ERROR
    fields: tuple[str, ...] = ()
    expected: str | None = None
    found: str | None = None
    message: str
    suggestion: str | None = None
    """The change of one field that would make the row consistent."""
    model: str | None = None
    system: str | None = None
    release: str | None = None
    source: str | None = None
    source_line: int | None = None
    framework: str | None = None
    acknowledged: str | None = None
    """Who accepted it and why; None: nobody did."""
    result_id: int | None = Field(default=None, exclude=True)
    """The result in the store, for the `findings` table; not part of what is printed."""

    @property
    def is_open_error(self) -> bool:
        """Whether it is an error that nobody has accepted."""
        return self.severity is Severity.ERROR and self.acknowledged is None

    @property
    def kind(self) -> str:
        """How grave it is, or that it is explained."""
        return "explained" if self.acknowledged else self.severity.value


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
    withheld: Note | None = None
    """Why it has no figures."""
    notes: tuple[Note, ...] = ()
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
    run_kind: str | None = None
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

    @property
    def release_name(self) -> str:
        """'nemo 25.04', as `Release.name` has it."""
        return release_name(self.framework, self.release)

    @property
    def place(self) -> str:
        """'page.md:132': where a page prints it; of a run the file with its steps."""
        return f"{self.source}:{self.source_line}" if self.source_line else self.source

    @property
    def counts(self) -> bool:
        """Whether its figures are those of its release: not if it has none or did not finish."""
        return self.withheld is None and self.outcome == Outcome.FINISHED

    def has_note(self, code: NoteCode) -> bool:
        """Whether one of its notes has this code."""
        return any(note.code is code for note in self.notes)

    def value(self, name: str) -> object:
        """The value of a field by its name."""
        value: object = getattr(self, name)
        return value

    def figure(self, name: str) -> float | None:
        """A figure by its field; None where it is unknown."""
        value: float | None = getattr(self, name)
        return value
