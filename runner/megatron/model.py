"""Builds what is trained: Megatron-Core's GPTModel, wrapped for data parallelism, and optimizer.

The one place where the project's field names meet Megatron-Core's.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel
from megatron.core.activations import squared_relu
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
    finalize_model_grads,
)
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.optimizer import MegatronOptimizer, OptimizerConfig, get_megatron_optimizer
from megatron.core.transformer.enums import AttnBackend
from megatron.core.transformer.module import Float16Module
from megatron.core.transformer.transformer_config import TransformerConfig
from megatron.core.utils import is_te_min_version
from torch import Tensor, nn

from runner.megatron import weights
from runner.megatron.attention import HAVE_TRANSFORMER_ENGINE, layer_spec
from runner.megatron.config import ModelShape, WorkerConfig, WorkerConfigError
from runner.megatron.data import Shard
from runner.megatron.dit import DiffusionTransformer

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": nn.functional.silu,
    "gelu": nn.functional.gelu,
    "squared_relu": squared_relu,
}
RECOMPUTE: dict[str, dict[str, object]] = {
    "none": {},
    "selective": {"recompute_granularity": "selective"},
    "full": {
        "recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1,
    },
}  # fmt: skip
QUANTIZED: dict[str, dict[str, object]] = {
    "fp8_ds": {
        "fp8": "hybrid", "fp8_recipe": "delayed", "fp8_amax_history_len": 1024,
        "fp8_amax_compute_algo": "max",
    },
    "fp8_cs": {"fp8": "hybrid", "fp8_recipe": "tensorwise"},
    "fp8_sc": {"fp8": "e4m3", "fp8_recipe": "blockwise"},
    "fp8_mx": {"fp8": "e4m3", "fp8_recipe": "mxfp8"},
    "nvfp4": {"fp4": "e2m1", "fp4_recipe": "nvfp4"},
}  # fmt: skip
"""Precisions of the layers' matrix products, the rest in BF16.

Source: Megatron-Bridge, training/mixed_precision.py; Megatron-Core's fp8_utils.py and fp4_utils.py
make Transformer Engine's recipes of them.
"""


def dtype_of(precision: str) -> torch.dtype:
    """What weights and activations are in."""
    return torch.float32 if precision == "fp32" else torch.bfloat16


@dataclass(frozen=True)
class Training:
    """One rank's part of a training run; a chunk is a stage of a virtual pipeline."""

    chunks: list[DistributedDataParallel]
    optimizer: MegatronOptimizer
    device: torch.device
    weight_counts: dict[str, int]
    """Elements of each weight this rank has a part of, in the whole model, by global name."""


def build(config: WorkerConfig, device: torch.device) -> Training:
    """This rank's model and optimizer; the process groups exist already.

    Raises WorkerConfigError where there is no Transformer Engine for the precision: Megatron-Core
    would train in BF16, silently.
    """
    if config.precision in QUANTIZED and not HAVE_TRANSFORMER_ENGINE:
        message = f"precision {config.precision} needs Transformer Engine on a GPU"
        raise WorkerConfigError(message)
    # As Megatron-LM: by pipeline stage, or all start the same; torch's too, for routers.
    seed = config.seed + 100 * parallel_state.get_pipeline_model_parallel_rank()
    torch.manual_seed(seed)
    tensor_parallel.model_parallel_cuda_manual_seed(seed)
    megatron = transformer_config(config, on_gpu=device.type == "cuda")
    chunks = [chunk.to(device) for chunk in model_chunks(config, megatron)]
    place = shard_place(config)
    if config.options.init == "layout_invariant":
        weights.initialise(chunks, config.model, place)
    counts = weights.counts(chunks, place)
    wrapped = _data_parallel(config, megatron, chunks)
    optimizer = _optimizer(config, wrapped)
    _connect(config, megatron, wrapped, optimizer)
    return Training(wrapped, optimizer, device, counts)


def start_groups(config: WorkerConfig) -> None:
    """Divide the ranks into Megatron-Core's groups; they have joined already."""
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=config.tensor_parallel,
        pipeline_model_parallel_size=config.pipeline_parallel,
        virtual_pipeline_model_parallel_size=config.virtual_pipeline,
        context_parallel_size=config.context_parallel,
        expert_model_parallel_size=config.expert_parallel,
        expert_tensor_parallel_size=config.effective_expert_tensor_parallel,
        create_gloo_process_groups=dist.get_backend() != "fake",  # see fake_world.py
    )


def shard_place(config: WorkerConfig) -> weights.ShardPlace:
    """Which part of the weights this rank holds."""
    local_experts = (config.model.num_experts or 0) // config.expert_parallel
    return weights.ShardPlace(
        dense=Shard(
            parallel_state.get_tensor_model_parallel_rank(),
            parallel_state.get_tensor_model_parallel_world_size(),
        ),
        expert=Shard(
            parallel_state.get_expert_tensor_parallel_rank(),
            parallel_state.get_expert_tensor_parallel_world_size(),
        ),
        first_expert=parallel_state.get_expert_model_parallel_rank() * local_experts,
    )


# ------------------------------------------------------------------------------- TransformerConfig


def transformer_config(config: WorkerConfig, *, on_gpu: bool) -> TransformerConfig:
    """Megatron-Core's description of the same run."""
    dtype, fused = dtype_of(config.precision), config.options.fused_kernels
    quantized = QUANTIZED.get(config.precision, {})
    return TransformerConfig(
        **_layers(config.model, is_fused=on_gpu and fused),
        **_experts(config, is_fused=fused),
        **quantized,
        attention_backend=AttnBackend[config.options.attention_backend],
        **RECOMPUTE[config.options.recompute],
        tensor_model_parallel_size=config.tensor_parallel,
        pipeline_model_parallel_size=config.pipeline_parallel,
        virtual_pipeline_model_parallel_size=config.virtual_pipeline,
        account_for_embedding_in_pipeline_split=(
            config.options.account_for_embedding_in_pipeline_split
        ),
        account_for_loss_in_pipeline_split=config.options.account_for_loss_in_pipeline_split,
        context_parallel_size=config.context_parallel,
        expert_model_parallel_size=config.expert_parallel,
        expert_tensor_parallel_size=config.effective_expert_tensor_parallel,
        sequence_parallel=config.sequence_parallel,
        batch_p2p_comm=config.batch_p2p_comm,
        # Megatron-LM's arguments.py: interleaved pipelines overlap, and then never batch.
        overlap_p2p_comm=config.virtual_pipeline is not None and not config.batch_p2p_comm,
        # A device synchronisation after batched sends, for GPUs' sake.
        batch_p2p_sync=on_gpu,
        params_dtype=dtype,
        pipeline_dtype=dtype,
        bf16=dtype is torch.bfloat16,
        use_cpu_initialization=not on_gpu,
    )


def _layers(model: ModelShape, *, is_fused: bool) -> dict[str, object]:
    """The shape, and fused kernels: none on a CPU; on a GPU those torch compiles, and others."""
    apex = importlib.util.find_spec("fused_weight_gradient_mlp_cuda")
    return {
        "num_layers": model.num_layers,
        "hidden_size": model.hidden_size,
        "ffn_hidden_size": model.ffn_hidden_size,
        "num_attention_heads": model.num_attention_heads,
        "num_query_groups": model.num_query_groups,
        "kv_channels": model.head_dim,
        "gated_linear_unit": model.gated_mlp,
        "activation_func": ACTIVATIONS[model.activation],
        "normalization": model.normalization,
        "add_bias_linear": False,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
        # SwiGLU is the one gated activation that every supported version fuses without biases.
        "bias_activation_fusion": is_fused and model.gated_mlp and model.activation == "silu",
        "bias_dropout_fusion": is_fused,
        "cross_entropy_loss_fusion": is_fused,
        # A kernel of the library's own attention, which is not used here.
        "masked_softmax_fusion": False,
        "apply_rope_fusion": HAVE_TRANSFORMER_ENGINE and is_fused,
        # Apex's kernel, which NVIDIA's containers have and PyPI has not.
        "gradient_accumulation_fusion": is_fused and apex is not None,
        "persist_layer_norm": False,
    }


def _experts(config: WorkerConfig, *, is_fused: bool) -> dict[str, object]:
    model = config.model
    if model.num_experts is None:
        return {}
    return {
        "num_moe_experts": model.num_experts,
        "moe_router_topk": model.moe_top_k,
        "moe_ffn_hidden_size": model.moe_ffn_hidden_size,
        "moe_shared_expert_intermediate_size": model.moe_shared_expert_ffn_hidden_size,
        "moe_token_dispatcher_type": config.options.moe_dispatcher,
        "moe_router_load_balancing_type": "aux_loss",
        "moe_aux_loss_coeff": 1e-2,
        "moe_grouped_gemm": HAVE_TRANSFORMER_ENGINE,
        "moe_permute_fusion": (HAVE_TRANSFORMER_ENGINE and is_fused and is_te_min_version("2.1.0")),
        # Its grouped products take tokens in multiples of 16 or 32.
        "moe_router_padding_for_quantization": config.precision in QUANTIZED,
    }


# ----------------------------------------------------------------------------- model and optimizer


def model_chunks(config: WorkerConfig, megatron: TransformerConfig) -> list[nn.Module]:
    """This rank's chunks: one, or those of a virtual pipeline."""
    stages = [None] if config.virtual_pipeline is None else [*range(config.virtual_pipeline)]
    return [_chunk(config, megatron, stage) for stage in stages]


def _chunk(config: WorkerConfig, megatron: TransformerConfig, vp_stage: int | None) -> nn.Module:
    """One chunk of consecutive layers, with the embedding or the loss where it is first or last."""
    if config.model.video_diffusion:
        diffusion: nn.Module = DiffusionTransformer(megatron, config)
        return Float16Module(megatron, diffusion) if megatron.bf16 else diffusion
    model = GPTModel(
        config=megatron,
        transformer_layer_spec=layer_spec(megatron, vp_stage),
        vocab_size=config.model.vocab_size,
        max_sequence_length=config.sequence_length,
        pre_process=parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=vp_stage),
        post_process=parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=vp_stage),
        share_embeddings_and_output_weights=config.model.tied_embeddings,
        position_embedding_type="rope",
        rotary_base=config.model.rotary_base,
        vp_stage=vp_stage,
    )
    chunk: nn.Module = Float16Module(megatron, model) if megatron.bf16 else model
    return chunk


def _data_parallel(
    config: WorkerConfig, megatron: TransformerConfig, chunks: list[nn.Module]
) -> list[DistributedDataParallel]:
    options = config.options
    settings = DistributedDataParallelConfig(
        grad_reduce_in_fp32=True,
        overlap_grad_reduce=options.overlap,
        overlap_param_gather=options.overlap and options.distributed_optimizer,
        use_distributed_optimizer=options.distributed_optimizer,
        # A run that diverges is data: it goes on, and its steps say NaN.
        check_for_nan_in_grad=False,
    )
    wrapped = [
        # As Megatron-LM does: only the first chunk's gradients are needed in pieces.
        DistributedDataParallel(megatron, settings, chunk, disable_bucketing=index > 0)
        for index, chunk in enumerate(chunks)
    ]
    for chunk in wrapped:
        chunk.broadcast_params()
    return wrapped


def _optimizer(config: WorkerConfig, chunks: list[DistributedDataParallel]) -> MegatronOptimizer:
    options = config.options
    settings = OptimizerConfig(
        optimizer="adam",
        lr=options.optimizer_lr,
        weight_decay=0.01,
        clip_grad=1.0,
        bf16=config.precision != "fp32",
        params_dtype=dtype_of(config.precision),
        use_distributed_optimizer=options.distributed_optimizer,
        overlap_param_gather=options.overlap and options.distributed_optimizer,
    )
    return get_megatron_optimizer(settings, chunks)


def _connect(
    config: WorkerConfig,
    megatron: TransformerConfig,
    chunks: list[DistributedDataParallel],
    optimizer: MegatronOptimizer,
) -> None:
    """Tell the pipeline schedule how to scale, hold back, start and finish the gradients."""

    def one_or_all(name: str) -> object:  # a plain pipeline takes a function, else a list
        functions = [getattr(chunk, name) for chunk in chunks]
        return functions[0] if len(functions) == 1 else functions

    megatron.grad_scale_func = optimizer.scale_loss
    megatron.finalize_model_grads_func = finalize_model_grads
    megatron.no_sync_func = one_or_all("no_sync")
    if config.options.overlap:
        megatron.grad_sync_func = one_or_all("start_grad_sync")
    if config.options.overlap and config.options.distributed_optimizer:
        megatron.param_sync_func = one_or_all("start_param_sync")
