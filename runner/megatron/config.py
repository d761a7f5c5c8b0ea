"""Reads the worker's configuration from JSON and refuses what cannot be trained correctly.

The field names are the project's own (DESIGN.md section 2); Megatron-Core's names appear only in
model.py. Whoever holds a `WorkerConfig` that passed `layout.check` need not check it again.
"""

import dataclasses
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, TypeVar, get_args, get_origin, get_type_hints

SCHEMA_VERSION = 1

T = TypeVar("T")


class WorkerConfigError(ValueError):
    """A configuration that cannot be run; the message names the fields and what would be right."""


@dataclass(frozen=True)
class ModelShape:
    """A GPT with rotary positions and no biases; `num_experts` null makes it dense.

    With `gated_mlp` every FFN size counts one of the two halves, as on Hugging Face.
    """

    num_layers: int
    hidden_size: int
    ffn_hidden_size: int
    num_attention_heads: int
    num_query_groups: int
    head_dim: int
    vocab_size: int
    gated_mlp: bool
    activation: Literal["silu", "gelu", "squared_relu"]
    normalization: Literal["RMSNorm", "LayerNorm"]
    tied_embeddings: bool
    rotary_base: float
    num_experts: int | None
    moe_top_k: int | None
    moe_ffn_hidden_size: int | None
    moe_shared_expert_ffn_hidden_size: int | None


@dataclass(frozen=True)
class Options:
    """How it is run, where the recipe leaves a choice; every one has a default."""

    distributed_optimizer: bool = True
    recompute: Literal["none", "selective", "full"] = "none"
    overlap: bool = False
    """Overlap the gradient reduction and the parameter gathering with computation."""
    moe_dispatcher: Literal["alltoall", "allgather"] = "alltoall"
    init: Literal["megatron", "layout_invariant"] = "megatron"
    """Whose initial weights: the library's own, or weights.py's, equal for every layout."""
    batch_p2p_comm: bool | None = None
    """Batched pipeline sends and receives; null: unless the pipeline is interleaved."""
    optimizer_lr: float = 1e-3


@dataclass(frozen=True)
class WorkerConfig:
    """All that one training run is: the model, its layout, the batch and the number of steps."""

    schema_version: int
    model: ModelShape
    precision: Literal["fp32", "bf16"]
    sequence_length: int
    global_batch_size: int
    micro_batch_size: int
    tensor_parallel: int
    pipeline_parallel: int
    virtual_pipeline: int | None
    context_parallel: int
    expert_parallel: int
    expert_tensor_parallel: int | None
    sequence_parallel: bool
    warmup_steps: int = field(metadata={"minimum": 0})
    measured_steps: int
    seed: int
    options: Options = Options()

    @property
    def total_steps(self) -> int:
        """Of a run: those of the warm-up, and those that are measured."""
        return self.warmup_steps + self.measured_steps

    @property
    def tokens_per_step(self) -> int:
        """Of all ranks together."""
        return self.global_batch_size * self.sequence_length

    @property
    def effective_expert_tensor_parallel(self) -> int:
        """Megatron-Core's rule: the tensor-parallel size, unless said otherwise."""
        return self.expert_tensor_parallel or self.tensor_parallel

    @property
    def batch_p2p_comm(self) -> bool:
        """Interleaving with batched p2p is at best slower, at PP=2 wrong: see layout.py."""
        chosen = self.options.batch_p2p_comm
        return self.virtual_pipeline is None if chosen is None else chosen

    def data_parallel(self, world_size: int) -> int:
        """How many copies of the model so many ranks hold; each has TP × PP × CP of them."""
        return world_size // (self.tensor_parallel * self.pipeline_parallel * self.context_parallel)

    def num_microbatches(self, world_size: int) -> int:
        """Per step and data-parallel rank."""
        return self.global_batch_size // (self.micro_batch_size * self.data_parallel(world_size))


def read_config(path: Path) -> WorkerConfig:
    """The configuration in a JSON file; raises `WorkerConfigError` naming file and field."""
    try:
        return parse_config(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise WorkerConfigError(f"{path}: cannot be read as JSON: {error}") from error
    except WorkerConfigError as error:
        raise WorkerConfigError(f"{path}: {error}") from error


def parse_config(data: object) -> WorkerConfig:
    """The configuration in parsed JSON: every key known, every value of its type and range."""
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version not in (None, SCHEMA_VERSION):
        raise WorkerConfigError(
            f"schema_version: this worker reads version {SCHEMA_VERSION}, not {version!r}"
        )
    return _record(WorkerConfig, data, "")


def _record(cls: type[T], data: object, where: str) -> T:
    if not isinstance(data, dict):
        raise WorkerConfigError(f"{where.rstrip('.') or 'the configuration'}: not a JSON object")
    assert dataclasses.is_dataclass(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    required = {name for name, f in fields.items() if f.default is dataclasses.MISSING}
    _refuse("unknown", set(data) - set(fields), where)
    _refuse("missing", required - set(data), where)
    kinds = get_type_hints(cls)
    minima = {name: f.metadata.get("minimum", 1) for name, f in fields.items()}
    return cls(**{key: _value(where + key, kinds[key], data[key], minima[key]) for key in data})


def _refuse(fault: str, keys: set[str], where: str) -> None:
    if keys:
        names = ", ".join(sorted(where + key for key in keys))
        raise WorkerConfigError(f"{fault} key{'s' * (len(keys) > 1)}: {names}")


def _value(name: str, kind: object, value: object, minimum: int) -> object:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _record(kind, value, name + ".")
    if not _is_a(kind, value):
        raise WorkerConfigError(f"{name}: {json.dumps(value)} is not {_in_words(kind)}")
    if kind is float and not 0 < float(str(value)) < math.inf:
        raise WorkerConfigError(f"{name}: {value} is not a positive, finite number")
    if type(value) is int and kind is not float and value < minimum:
        raise WorkerConfigError(f"{name}: {value} is too small: at least {minimum}")
    return value


def _is_a(kind: object, value: object) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is UnionType:
        return any(_is_a(member, value) for member in get_args(kind))
    # By exact type: to Python true is an int, in a configuration it is a mistake.
    return type(value) is kind or (kind is float and type(value) is int)


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


def _in_words(kind: object) -> str:
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(get_args(kind))
    if get_origin(kind) is UnionType:
        return " or ".join(_in_words(member) for member in get_args(kind))
    return _WORDS[kind] if isinstance(kind, type) else str(kind)
