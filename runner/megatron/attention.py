"""The transformer block's parts: Transformer Engine's where it is installed, else plain PyTorch's.

Megatron-Core lets the caller choose the modules of a layer by a specification. Its local one
refuses sequence parallelism (norm) and context parallelism (attention), and its attention keeps
the whole matrix of scores; both are replaced here, so that it trains in every layout.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from megatron.core import parallel_state
from megatron.core.models.gpt import gpt_layer_specs
from megatron.core.transformer.enums import AttnMaskType
from megatron.core.transformer.moe import moe_utils
from megatron.core.transformer.spec_utils import ModuleSpec
from megatron.core.transformer.transformer_block import (
    TransformerBlockSubmodules,
    get_num_layers_to_build,
)
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import Tensor, nn

# It only runs on a GPU, though a container that has it may be started elsewhere.
HAVE_TRANSFORMER_ENGINE: bool = gpt_layer_specs.HAVE_TE and torch.cuda.is_available()


def layer_spec(
    config: TransformerConfig, vp_stage: int | None
) -> ModuleSpec | TransformerBlockSubmodules:
    """The modules that the layers of one model chunk are built from."""
    if HAVE_TRANSFORMER_ENGINE:
        return gpt_layer_specs.get_gpt_layer_with_transformer_engine_spec(
            num_experts=config.num_moe_experts, moe_grouped_gemm=config.moe_grouped_gemm
        )
    return _local_block(config, vp_stage)


def _local_block(config: TransformerConfig, vp_stage: int | None) -> TransformerBlockSubmodules:
    # Upstream bug: the router looks at a name that is only defined where Transformer Engine is
    # installed (NameError: te_general_gemm), on a GPU as on a CPU. Seen in 0.16.1.
    if not hasattr(moe_utils, "te_general_gemm"):
        moe_utils.te_general_gemm = None
    layer = gpt_layer_specs.get_gpt_layer_local_spec(
        num_experts=config.num_moe_experts,
        moe_grouped_gemm=False,
        normalization=config.normalization,
    )
    norm = NORMS[config.normalization]
    layer.submodules.input_layernorm = norm
    layer.submodules.pre_mlp_layernorm = norm
    layer.submodules.self_attention.submodules.core_attention = CoreAttention
    num_layers = get_num_layers_to_build(config, vp_stage)
    return TransformerBlockSubmodules([layer] * num_layers, layer_norm=norm)


class RMSNorm(nn.RMSNorm):
    """PyTorch's, built and marked as Megatron-Core wants it."""

    def __init__(self, config: TransformerConfig, hidden_size: int, eps: float) -> None:
        super().__init__(hidden_size, eps=eps, dtype=config.params_dtype)
        _mark_for_sequence_parallelism(self, config)


class LayerNorm(nn.LayerNorm):
    """PyTorch's, built and marked as Megatron-Core wants it."""

    def __init__(self, config: TransformerConfig, hidden_size: int, eps: float) -> None:
        super().__init__(hidden_size, eps=eps, dtype=config.params_dtype)
        _mark_for_sequence_parallelism(self, config)


NORMS = {"RMSNorm": RMSNorm, "LayerNorm": LayerNorm}


def _mark_for_sequence_parallelism(norm: nn.Module, config: TransformerConfig) -> None:
    """Each rank norms its own tokens; `finalize_model_grads` adds up the marked gradients.

    The library's wrapper of these norms refuses sequence parallelism instead.
    """
    for parameter in norm.parameters():
        vars(parameter)["sequence_parallel"] = config.sequence_parallel


class CoreAttention(nn.Module):
    """Attention by PyTorch's SDPA, causal unless there is no mask; of all ranks' keys under CP.

    The keys and values of the context-parallel group are gathered and each rank attends from its
    own queries. Transformer Engine passes them around a ring instead: the same result, in less
    memory.
    """

    def __init__(
        self,
        *,
        attn_mask_type: AttnMaskType,
        softmax_scale: float | None = None,
        **_unused: object,
    ) -> None:
        super().__init__()
        self._is_causal = attn_mask_type is not AttnMaskType.no_mask
        self._scale = softmax_scale
        self._group = parallel_state.get_context_parallel_group()

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, _mask: Tensor | None, **_unused: object
    ) -> Tensor:
        """Tensors are [tokens, batch, heads, head size]; returns [tokens, batch, hidden size]."""
        mask = None
        if self._group.size() > 1:
            mask = _causal_mask(len(query), self._group.size(), self._group.rank(), query.device)
            key, value = (gathered(t, self._group).flatten(0, 1) for t in (key, value))
        q, k, v = (t.permute(1, 2, 0, 3) for t in (query, key, value))
        out = F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask,
            is_causal=self._is_causal and mask is None,
            scale=self._scale,
            enable_gqa=True,
        )
        return out.permute(2, 0, 1, 3).flatten(2)


class _Context(torch.autograd.function.FunctionCtx):
    group: dist.ProcessGroup


class _Gather(torch.autograd.Function):
    """Every rank's tensor, stacked in rank order; a part's gradients all go to its owner."""

    @staticmethod
    def forward(ctx: _Context, mine: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        mine = mine.contiguous()
        everyones = [torch.empty_like(mine) for _ in range(group.size())]
        dist.all_gather(everyones, mine, group=group)
        return torch.stack(everyones)

    @staticmethod
    def backward(ctx: _Context, gradient: Tensor) -> tuple[Tensor, None]:
        summed = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(summed, group=ctx.group)
        return summed[ctx.group.rank()], None


gathered: Callable[[Tensor, dist.ProcessGroup], Tensor] = _Gather.apply


def _causal_mask(tokens: int, size: int, rank: int, device: torch.device) -> Tensor:
    """Which of all ranks' keys each of this rank's queries may see, [tokens, size × tokens]."""
    chunk = torch.arange(tokens // 2, device=device)
    # A rank has an early and a late chunk of the sequence.
    positions = [
        torch.cat([chunk + start * len(chunk) for start in (r, 2 * size - 1 - r)])
        for r in range(size)
    ]
    return positions[rank][:, None] >= torch.cat(positions)[None, :]
