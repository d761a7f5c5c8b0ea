"""The transformer block's parts: Transformer Engine's where it is installed, else plain PyTorch's.

Megatron-Core lets the caller choose the modules of a layer by a specification. Its local one
refuses sequence parallelism (norm) and context parallelism (attention), and its attention keeps
the whole matrix of scores; both are replaced here, so that it trains in every layout.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from megatron.core import parallel_state
from megatron.core.models.gpt import gpt_layer_specs
from megatron.core.transformer.moe import moe_utils
from megatron.core.transformer.spec_utils import ModuleSpec
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import Tensor, nn

HAVE_TRANSFORMER_ENGINE: bool = gpt_layer_specs.HAVE_TE


def layer_spec(config: TransformerConfig) -> ModuleSpec | TransformerBlockSubmodules:
    """The modules that the layers of one model chunk are built from."""
    if HAVE_TRANSFORMER_ENGINE:
        return gpt_layer_specs.get_gpt_layer_with_transformer_engine_spec(
            num_experts=config.num_moe_experts, moe_grouped_gemm=config.moe_grouped_gemm
        )
    return _local_block(config)


def _local_block(config: TransformerConfig) -> TransformerBlockSubmodules:
    # Upstream bug: the router looks at a name that is only defined where Transformer Engine is
    # installed (NameError: te_general_gemm), on a GPU as on a CPU. Seen in 0.15 and 0.16.
    if not hasattr(moe_utils, "te_general_gemm"):
        moe_utils.te_general_gemm = None
    layer = gpt_layer_specs.get_gpt_layer_local_spec(
        num_experts=config.num_moe_experts,
        moe_grouped_gemm=False,
        normalization=config.normalization,
    )
    layer.submodules.input_layernorm = Norm
    layer.submodules.pre_mlp_layernorm = Norm
    layer.submodules.self_attention.submodules.core_attention = CoreAttention
    stages = config.pipeline_model_parallel_size
    stages *= config.virtual_pipeline_model_parallel_size or 1
    return TransformerBlockSubmodules([layer] * (config.num_layers // stages), layer_norm=Norm)


class Norm:
    """Builds PyTorch's RMSNorm or LayerNorm with the marks that Megatron-Core looks for.

    The library's own wrapper refuses sequence parallelism, though the norm itself is fine with
    it: each rank norms its tokens, and `finalize_model_grads` adds up the gradients of the
    parameters marked `sequence_parallel`.
    """

    def __new__(  # type: ignore[misc]  # a factory, as the library's WrappedTorchNorm is
        cls, config: TransformerConfig, hidden_size: int, eps: float = 1e-5
    ) -> nn.Module:
        kind = nn.RMSNorm if config.normalization == "RMSNorm" else nn.LayerNorm
        norm = kind(hidden_size, eps=eps, dtype=config.params_dtype)
        for parameter in norm.parameters():
            setattr(parameter, "sequence_parallel", config.sequence_parallel)
        return norm


class CoreAttention(nn.Module):
    """Causal attention by PyTorch's SDPA; under context parallelism over all ranks' keys.

    The keys and values of the context-parallel group are gathered and each rank attends from its
    own queries. Transformer Engine passes them around a ring instead: the same result, in less
    memory.
    """

    def __init__(self, *, softmax_scale: float | None = None, **_unused: object) -> None:
        super().__init__()
        self._scale = softmax_scale
        self._group = parallel_state.get_context_parallel_group()

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, _mask: Tensor | None, **_unused: object
    ) -> Tensor:
        """Tensors are [tokens, batch, heads, head size]; returns [tokens, batch, hidden size]."""
        mask = None
        if self._group.size() > 1:
            mask = _causal_mask(len(query), self._group.size(), self._group.rank(), query.device)
            key, value = (AllGather.apply(t, self._group).flatten(0, 1) for t in (key, value))
        q, k, v = (t.permute(1, 2, 0, 3) for t in (query, key, value))
        out = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, scale=self._scale, enable_gqa=True
        )
        return out.permute(2, 0, 1, 3).flatten(2)


class AllGather(torch.autograd.Function):
    """Every rank's tensor, stacked in rank order; the gradient of each goes back to its owner."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, mine: Tensor, group: dist.ProcessGroup
    ) -> Tensor:
        ctx.group = group
        everyones = [torch.empty_like(mine) for _ in range(group.size())]
        dist.all_gather(everyones, mine.contiguous(), group=group)
        return torch.stack(everyones)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        total = gradient.contiguous()
        dist.all_reduce(total, group=ctx.group)
        return total[ctx.group.rank()], None


def _causal_mask(tokens: int, size: int, rank: int, device: torch.device) -> Tensor:
    """Which of all ranks' keys each of this rank's queries may see, [tokens, size × tokens]."""
    everyones = torch.cat([_positions(tokens, size, r, device) for r in range(size)])
    return _positions(tokens, size, rank, device)[:, None] >= everyones[None, :]


def _positions(tokens: int, size: int, rank: int, device: torch.device) -> Tensor:
    """Where a rank's tokens stand in the sequence: its early and its late chunk (see data.py)."""
    chunk = torch.arange(tokens // 2, device=device)
    return torch.cat([chunk + start * len(chunk) for start in (rank, 2 * size - 1 - rank)])
