"""What a run directory holds: the contract between the runner and whoever reads its runs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt

from perfdb.record import MOST, Case, Count, Frozen, Outcome, Release, RunKind
from perfdb.text import plain_text


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


class Checkpoint(Frozen):
    """A checkpoint of a run: seconds of the slowest rank, and losses of the step after it.

    `loss` is without the round trip, `loaded_loss` after it; the resharded one was loaded into
    another layout, of which `resharded` has the sizes that differ.
    """

    save_time_s: float
    size_bytes: int
    loss: float
    load_time_s: float
    loaded_loss: float
    resharded: Mapping[str, int | None] | None = None
    resharded_load_time_s: float | None = None
    resharded_loss: float | None = None


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
    checkpoint: Checkpoint | None = None


class WorkerConfiguration(BaseModel):
    """The worker's configuration: fields of its case, its steps, and its model by its shape."""

    model_config = ConfigDict(extra="allow", frozen=True)

    model: object = None

    @property
    def fields(self) -> Mapping[str, object]:
        """All of it but the model."""
        return self.model_extra or {}


class NodeGroup(Frozen):
    """Nodes of a run that are equal in all that is known of them.

    `gpu_clock_mhz` is the highest clock of the SMs, `nics` the name, rate and state of each network
    adapter. `cuda` and `nccl` are what the environment of a node's processes states, as that of
    NVIDIA's images does.
    """

    hostnames: tuple[str, ...]
    num_nodes: PositiveInt
    os: str | None = None
    cpu: str | None = None
    cpu_count: int | None = None
    memory_gib: int | None = None
    gpu: str | None = None
    gpu_count: int = 0
    gpu_memory_bytes: int | None = None
    gpu_clock_mhz: int | None = None
    gpu_power_limit_w: int | None = None
    driver: str | None = None
    cuda: str | None = None
    nccl: str | None = None
    nics: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, object]:
        """All that nodes may have in common."""
        return self.model_dump(exclude={"hostnames", "num_nodes"})


class Environment(Frozen):
    """The machine and software a run had, with secrets left out.

    Of several nodes it is the first; `nodes` has all, where a launcher asked them.
    """

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
    container_digest: str | None = None
    variables: Mapping[str, str] = Field(default_factory=dict)
    nodes: tuple[NodeGroup, ...] = ()


class RecipeRef(Frozen):
    """The recipe a run came from."""

    name: Annotated[str, AfterValidator(plain_text)]
    path: str
    sha256: str


Value = TypeVar("Value")


def _plain_texts(value: Value) -> Value:
    """Raises ValueError where a name in a value is no plain text."""
    for text in _texts(value):
        plain_text(text)
    return value


def _without_nul(value: Value) -> Value:
    """Raises ValueError where a text of a value holds what no PostgreSQL takes."""
    if "\0" in "".join(_texts(value)):
        raise ValueError("holds a null character")
    return value


def _texts(value: object) -> list[str]:
    left, found = [value], []
    for one in left:  # it grows
        match one:
            case str():
                found.append(one)
            case None | int() | float():  # most values; to ask whether they are mappings takes long
                pass
            case tuple() | list():
                left += one
            case BaseModel():
                left += vars(one).values()
            case Mapping():
                left += (*one.values(), *one.keys())
            case _:
                pass
    return found


class RunRecord(Frozen):
    """What a run directory says of its run (run.json).

    `outcome` is None while the runner is at work; a directory that still says None when its
    runner is gone was cut off.
    """

    schema_version: Literal[1] = 1
    run_id: Annotated[str, Field(max_length=255), AfterValidator(plain_text)]
    case: Annotated[Case, AfterValidator(_plain_texts)]
    release: Annotated[Release, AfterValidator(_plain_texts)]
    recipe: RecipeRef
    environment: Annotated[Environment, AfterValidator(_without_nul)]
    command: Annotated[tuple[str, ...], AfterValidator(_without_nul)]
    warmup_steps: Annotated[int, Field(ge=0, le=MOST)]
    measured_steps: Annotated[int, Field(ge=0, le=MOST)]
    seed: int
    kind: RunKind = RunKind.BENCHMARK
    attempt: PositiveInt = 1
    runner_pid: int
    perfdb_version: str
    started_at: datetime
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    exit_code: int | None = None
    error: Annotated[str | None, AfterValidator(_without_nul)] = None

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
