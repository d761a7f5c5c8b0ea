"""FLOPs of hybrids of attention with state-space or linear-attention layers."""

from perfdb.catalog.entries import Model
from perfdb.flops.base import Convention, Cost, Weight
from perfdb.flops.transformer import attention, feed_forward, scores, vocabulary

SCAN = 3.5
"""Multiply-adds of the chunked scan for each channel and state: seven operations, two to one."""


def state_space(model: Model, sequence_length: int, convention: Convention) -> Cost | None:
    """Each layer is of one kind; those that are neither Mamba nor attention are feed-forward.

    A depth of multi-token prediction is one attention layer and one of experts.
    Source: AutoModel, flops_utils.py, nemotronh_flops; Megatron-LM, mamba_layer_flops.
    """
    mamba = model.mamba
    if mamba is None or model.num_attention_layers is None:
        return None
    hidden, layers = model.hidden_size, mamba.num_layers
    attending = model.num_attention_layers + model.mtp_depth
    others = model.num_layers + model.mtp_depth - layers - model.num_attention_layers
    inner = 2 * hidden if convention.mamba_twice_hidden else mamba.num_heads * mamba.head_dim
    # In: two inner widths, B and C of every group, a step per head. Out: one inner width.
    into = 2 * inner + 2 * mamba.num_groups * mamba.state_size + mamba.num_heads
    weights = (
        Weight(hidden, into, layers, layers),
        Weight(inner, hidden, layers, layers),
        *attention(model, attending, convention),
        *feed_forward(model, others, convention),
        *vocabulary(model, convention),
    )
    scanned = layers * SCAN * inner * mamba.state_size
    return Cost(weights, scores(model, attending, sequence_length, convention), mixing=scanned)


def gated_delta(model: Model, sequence_length: int, convention: Convention) -> Cost | None:
    """Every layer has experts or an MLP; its attention is linear or, in some, full.

    Source: AutoModel, flops_utils.py, qwen3_5_flops, after Megatron-Bridge's pull request 2925.
    """
    linear, hidden = model.linear_attention, model.hidden_size
    if linear is None:
        return None
    layers, delta = model.num_layers + model.mtp_depth, linear.num_layers
    full = layers - delta
    key = linear.num_key_heads * linear.key_head_dim
    value = linear.num_value_heads * linear.value_head_dim
    weights = (
        # Into query, key, value, gate and two scalars a head; a short convolution; and out.
        Weight(hidden, 2 * key + 2 * value + 2 * linear.num_value_heads, delta, delta),
        Weight(linear.conv_kernel, 2 * key + value, delta, delta, adapted=False),
        Weight(value, hidden, delta, delta),
        *attention(model, full, convention),
        *feed_forward(model, layers, convention),
        *vocabulary(model, convention),
    )
    # The state of a value head is a square that each token decays, reads, corrects and reads.
    updated = delta * linear.num_value_heads * 4 * linear.value_head_dim**2
    return Cost(weights, scores(model, full, sequence_length, convention), mixing=updated)
