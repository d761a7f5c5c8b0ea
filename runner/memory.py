"""The memory that a GPU needs for a case, by part. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from perfdb.record import Case
from runner.megatron.config import WorkerConfig

STATE_BYTES = {"bf16": (2, 4, 12), "fp32": (4, 4, 8)}
"""Of a parameter: weight, gradient, and Adam's state with, in mixed precision, an FP32 copy.

Source: Megatron-LM, megatron/training/theoretical_memory_usage.py.
"""


@dataclass(frozen=True)
class Stage:
    """What a rank of a pipeline stage holds; `expert_parameters` are part of `parameters`."""

    num_layers: int
    parameters: int
    expert_parameters: int


@dataclass(frozen=True)
class Memory:
    """What a GPU holds at most, in bytes."""

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        """Of all parts."""
        return self.weights + self.gradients + self.optimizer + self.activations


def stages(config: WorkerConfig) -> list[Stage]:
    """What a rank of each pipeline stage holds, by the shapes of Megatron-Core's matrices.

    All layers are equal, and divide over the stages. `runner.deep_check` builds the model instead.
    """
    model, tensor, last = config.model, config.tensor_parallel, config.pipeline_parallel - 1
    hidden, head = model.hidden_size, model.head_dim
    groups = max(model.num_query_groups // tensor, 1)
    norm = hidden * (2 if model.normalization == "LayerNorm" else 1)
    projections = (3 if model.gated_mlp else 2) * hidden
    layer = 2 * norm + 2 * hidden * head * (model.num_attention_heads // tensor + groups)
    experts, feed_forward = 0, model.ffn_hidden_size
    if model.num_experts:
        width = (model.moe_ffn_hidden_size or 0) // config.effective_expert_tensor_parallel
        experts = projections * width * model.num_experts // config.expert_parallel
        layer += hidden * model.num_experts  # the router
        feed_forward = model.moe_shared_expert_ffn_hidden_size or 0
    layer += projections * feed_forward // tensor
    embedding, each = model.vocab_size * hidden // tensor, model.num_layers // (last + 1)
    found = []
    for rank in range(last + 1):
        copies = (rank == 0) + (rank == last and not (model.tied_embeddings and last == 0))
        own = embedding * copies + norm * (rank == last)
        found.append(Stage(each, each * (layer + experts) + own, each * experts))
    return found


def fullest(case: Case, config: WorkerConfig, stages: Iterable[Stage]) -> Memory:
    """Of a GPU of the pipeline stage that needs most.

    LoRA's adapters, under 1 % of the weights, are left out. FP8 is counted as BF16: its weights are
    kept in BF16, and which activations it stores in 8 bits depends on the release.
    """
    needs = (_needed(case, config, stage, rank) for rank, stage in enumerate(stages))
    return max(needs, key=lambda need: need.total)


def _needed(case: Case, config: WorkerConfig, stage: Stage, rank: int) -> Memory:
    tensor = config.effective_expert_tensor_parallel
    per_stage = case.num_gpus // config.pipeline_parallel
    dense_copies = per_stage // config.tensor_parallel
    expert_copies = max(per_stage // (config.expert_parallel * tensor), 1)
    dense = stage.parameters - stage.expert_parameters
    sharded = -(-dense // dense_copies) - (-stage.expert_parameters // expert_copies)
    held = sharded if case.fsdp_enabled else stage.parameters
    updated = sharded if config.options.distributed_optimizer else held
    weight, gradient, optimizer = STATE_BYTES["fp32" if config.precision == "fp32" else "bf16"]
    is_trained = case.task != "lora"
    return Memory(
        weights=weight * held,
        gradients=gradient * held * is_trained,
        optimizer=optimizer * updated * is_trained,
        activations=_activations(case, config, stage, rank),
    )


def _activations(case: Case, config: WorkerConfig, stage: Stage, rank: int) -> int:
    """Bytes kept for the backward pass when most micro-batches are in flight; an estimate."""
    element_bytes = STATE_BYTES["fp32" if config.precision == "fp32" else "bf16"][0]
    tokens = config.micro_batch_size * config.sequence_length / config.context_parallel
    layers = stage.num_layers / (config.virtual_pipeline or 1) * _in_flight(case, config, rank)
    elements = _layer_elements(config)
    kept = layers * elements
    if config.options.recompute == "full":  # each layer's input, and one layer while it is redone
        kept = layers * config.model.hidden_size / _sequence_split(config) + elements
    total = tokens * kept * element_bytes
    if rank == config.pipeline_parallel - 1:  # the logits, and their FP32 copy in the loss
        total += tokens * config.model.vocab_size / config.tensor_parallel * (element_bytes + 4)
    return round(total)


def _in_flight(case: Case, config: WorkerConfig, rank: int) -> int:
    """Chunks with activations that a rank holds at once: those of the warm-up, and the one at work.

    Source: megatron.core.pipeline_parallel.schedules, get_pp_rank_microbatches.
    """
    after = config.pipeline_parallel - rank - 1
    chunks = config.virtual_pipeline or 1
    warmup = after if chunks == 1 else 2 * after + (chunks - 1) * config.pipeline_parallel
    return min(warmup + 1, chunks * config.num_microbatches(case.num_gpus))


def _layer_elements(config: WorkerConfig) -> float:
    """Elements that a layer keeps of a token: the inputs of its norms, matrices and products.

    After Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models",
    section 4, without dropout, and with attention that recomputes its scores (FlashAttention).
    """
    model, tensor = config.model, config.tensor_parallel
    in_and_out = 2 * model.num_attention_heads * model.head_dim  # the queries, and the result
    keys_and_values = 2 * model.num_query_groups * model.head_dim
    norms_and_inputs = 4 * model.hidden_size / _sequence_split(config)
    projections = 3 if model.gated_mlp else 2
    mlp = model.ffn_hidden_size * projections / tensor
    if model.num_experts:
        width = (model.moe_ffn_hidden_size or 0) * projections
        width_of_one = width / config.effective_expert_tensor_parallel
        shared = (model.moe_shared_expert_ffn_hidden_size or 0) * projections / tensor
        # A token's copy for each expert that it visits.
        mlp = (model.moe_top_k or 0) * (width_of_one + model.hidden_size) + shared
    return norms_and_inputs + (in_and_out + keys_and_values) / tensor + mlp


def _sequence_split(config: WorkerConfig) -> int:
    return config.tensor_parallel if config.sequence_parallel else 1
