"""FLOPs of hybrids of gated delta-rule linear attention with full attention: Qwen3-Next."""

from perfdb.catalog.base import LinearAttention, Model
from perfdb.flops.base import Convention, Cost, Weight
from perfdb.flops.layers import attention, feed_forward, scores, vocabulary

FAMILY = "gated_delta"


def cost(model: Model, sequence_length: int, convention: Convention) -> Cost | None:
    """Every layer has experts or an MLP; its attention is linear or, in some, full.

    Source: AutoModel, flops_utils.py, qwen3_5_flops, after Megatron-Bridge's pull request 2925.
    """
    linear = model.linear_attention
    if linear is None:
        return None
    layers = model.num_layers + model.mtp_depth
    full = layers - linear.num_layers
    weights = (
        *_projections(model, linear),
        *attention(model, full, convention),
        *feed_forward(model, layers, convention),
        *vocabulary(model, convention),
    )
    # The state of a value head is a square that each token decays, reads, corrects and reads.
    updated = linear.num_layers * linear.num_value_heads * 4 * linear.value_head_dim**2
    return Cost(weights, scores(model, full, sequence_length, convention), mixing=updated)


def _projections(model: Model, linear: LinearAttention) -> tuple[Weight, ...]:
    """Into query, key, value, gate and two scalars a head; a short convolution; and out."""
    key = linear.num_key_heads * linear.key_head_dim
    value = linear.num_value_heads * linear.value_head_dim
    layers = linear.num_layers
    into = 2 * key + 2 * value + 2 * linear.num_value_heads
    return (
        Weight(model.hidden_size, into, layers, layers),
        Weight(linear.conv_kernel, 2 * key + value, layers, layers, adapted=False),
        Weight(value, model.hidden_size, layers, layers),
    )
