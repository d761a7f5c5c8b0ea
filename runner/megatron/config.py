"""The worker's configuration, as the runner writes it: one JSON file.

The field names are the project's own; Megatron-Core's names appear only in model.py. The runner
checks recipes (`perfdb.recipe.check`): a layout that trains wrongly never gets here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

SCHEMA_VERSION = 1


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
    video_diffusion: Mapping[str, int] | None = None
    """Of a diffusion transformer, with patches as tokens: `perfdb.catalog.entries`."""


@dataclass(frozen=True)
class WorkerOptions:
    """How it is run, where the recipe leaves a choice; every one has a default."""

    distributed_optimizer: bool = True
    recompute: Literal["none", "selective", "full"] = "none"
    overlap: bool = False
    """Overlap the gradient reduction and the parameter gathering with computation."""
    moe_dispatcher: Literal["alltoall", "allgather"] = "alltoall"
    init: Literal["megatron", "layout_invariant"] = "megatron"
    """Initial weights: the library's own, or weights.py's, equal for every layout."""
    batch_p2p_comm: bool | None = None
    """Batched pipeline sends and receives; null: unless the pipeline is interleaved."""
    optimizer_lr: float = 1e-3
    account_for_embedding_in_pipeline_split: bool = False
    """The embedding counts as a layer of the first stage, as the loss may of the last."""
    account_for_loss_in_pipeline_split: bool = False
    attention_backend: Literal["auto", "flash", "fused", "unfused"] = "auto"
    """Which of Transformer Engine's; there is no choice without it."""
    fused_kernels: bool = True
    """Fuse activations, dropout, rotary positions, loss and MoE's permutations, on a GPU."""
    proxy_of: str | None = None
    """The original case, by its key; it changes nothing here."""


@dataclass(frozen=True)
class WorkerConfig:
    """All that one training run is: the model, its layout, the batch and the number of steps."""

    schema_version: int
    model: ModelShape
    precision: Literal["fp32", "bf16", "fp8_ds", "fp8_cs", "fp8_sc", "fp8_mx", "nvfp4"]
    """Below BF16: of the matrix products of the layers alone, by Transformer Engine."""
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
    warmup_steps: int
    measured_steps: int
    seed: int
    options: WorkerOptions = WorkerOptions()
    kind: Literal["benchmark", "profile", "checkpoint"] = "benchmark"
    """A profile is of the measured steps; a checkpoint is saved after them."""
    profile_ranks: tuple[int, ...] = ()
    reload_layout: Mapping[str, Any] = field(default_factory=dict)
    """The sizes in which the layout that a checkpoint is also loaded into differs."""

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
        """Megatron-Core's rule: the tensor-parallel size, unless the recipe states it."""
        return self.expert_tensor_parallel or self.tensor_parallel

    @property
    def batch_p2p_comm(self) -> bool:
        """Interleaving with batched p2p is at best slower, at PP=2 wrong: recipes refuse it."""
        chosen = self.options.batch_p2p_comm
        return self.virtual_pipeline is None if chosen is None else chosen

    def data_parallel(self, world_size: int) -> int:
        """How many copies of the model so many ranks hold; each has TP × PP × CP of them."""
        return world_size // (self.tensor_parallel * self.pipeline_parallel * self.context_parallel)

    def num_microbatches(self, world_size: int) -> int:
        """Per step and data-parallel rank."""
        return self.global_batch_size // (self.micro_batch_size * self.data_parallel(world_size))


def read_config(path: Path) -> WorkerConfig:
    """The configuration in a JSON file. Raises WorkerConfigError with the file and the reason."""
    try:
        return parse_config(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise WorkerConfigError(f"{path}: cannot be read as JSON: {error}") from error
    except WorkerConfigError as error:
        raise WorkerConfigError(f"{path}: {error}") from error


def parse_config(data: Mapping[str, Any]) -> WorkerConfig:
    """The configuration in parsed JSON, every key known. The runner has checked the values."""
    version = data.get("schema_version")
    if version != SCHEMA_VERSION:
        message = f"schema_version: this worker reads version {SCHEMA_VERSION}, not {version!r}"
        raise WorkerConfigError(message)
    try:
        model, options = ModelShape(**data["model"]), WorkerOptions(**data.get("options", {}))
        return WorkerConfig(**{**data, "model": model, "options": options})
    except (KeyError, TypeError) as error:
        raise WorkerConfigError(f"not a configuration of this version: {error}") from error
