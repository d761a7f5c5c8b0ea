"""FLOPs of multi-head latent attention with experts: DeepSeek-V3, Kimi-K2, Moonlight."""

from perfdb.catalog.base import LatentAttention, Model
from perfdb.flops.base import Convention, Cost, Weight
from perfdb.flops.layers import feed_forward, keys_seen, vocabulary

FAMILY = "mla"


def cost(model: Model, sequence_length: int, convention: Convention) -> Cost | None:
    """Queries, keys and values through their latent spaces; then as any mixture of experts.

    Source: Megatron-LM, megatron/training/training.py, num_floating_point_operations, which also
    counts the norms of the latent spaces; AutoModel's deepseekv3_flops does not.
    """
    latent = model.latent_attention
    if latent is None:
        return None
    layers = model.num_layers + model.mtp_depth
    weights = (
        *_projections(model, latent, layers),
        *(_norms(latent, layers) if convention.norms else ()),
        *feed_forward(model, layers, convention),
        *vocabulary(model, convention),
    )
    width = model.num_attention_heads * (_query_head(latent) + latent.v_head_dim)
    return Cost(weights, layers * keys_seen(sequence_length, convention) * width)


def _query_head(latent: LatentAttention) -> int:
    return latent.qk_nope_head_dim + latent.qk_rope_head_dim


def _projections(model: Model, latent: LatentAttention, layers: int) -> tuple[Weight, ...]:
    hidden, heads = model.hidden_size, model.num_attention_heads
    shapes = (
        *_query_shapes(hidden, heads * _query_head(latent), latent.q_lora_rank),
        (hidden, latent.kv_lora_rank + latent.qk_rope_head_dim),
        (latent.kv_lora_rank, heads * (latent.qk_nope_head_dim + latent.v_head_dim)),
        (heads * latent.v_head_dim, hidden),
    )
    return tuple(Weight(*shape, layers, layers) for shape in shapes)


def _query_shapes(hidden: int, queries: int, rank: int | None) -> list[tuple[int, int]]:
    return [(hidden, rank), (rank, queries)] if rank else [(hidden, queries)]


def _norms(latent: LatentAttention, layers: int) -> tuple[Weight, ...]:
    widths = [width for width in (latent.q_lora_rank, latent.kv_lora_rank) if width]
    return tuple(Weight(width, 1, layers, layers, adapted=False) for width in widths)
