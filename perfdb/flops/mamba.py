"""FLOPs of Mamba-2 hybrids: state-space, attention and MLP or expert layers: Nemotron-H, 3."""

from perfdb.catalog.base import Mamba, Model
from perfdb.flops.base import Convention, Cost, Weight
from perfdb.flops.layers import attention, feed_forward, scores, vocabulary

FAMILY = "mamba"

SCAN = 3.5
"""Multiply-adds of the chunked scan for each channel and state: seven operations, two to one."""


def cost(model: Model, sequence_length: int, convention: Convention) -> Cost | None:
    """Each layer is of one kind; those that are neither Mamba nor attention are feed-forward.

    A depth of multi-token prediction is one attention layer and one of experts.
    Source: AutoModel, flops_utils.py, nemotronh_flops; Megatron-LM, mamba_layer_flops.
    """
    mamba = model.mamba
    if mamba is None or model.num_attention_layers is None:
        return None
    attending = model.num_attention_layers + model.mtp_depth
    others = model.num_layers + model.mtp_depth - mamba.num_layers - model.num_attention_layers
    inner = _inner_width(model, mamba, convention)
    weights = (
        *_state_space(model, mamba, inner),
        *attention(model, attending, convention),
        *feed_forward(model, others, convention),
        *vocabulary(model, convention),
    )
    scanned = mamba.num_layers * SCAN * inner * mamba.state_size
    return Cost(weights, scores(model, attending, sequence_length, convention), mixing=scanned)


def _inner_width(model: Model, mamba: Mamba, convention: Convention) -> int:
    if convention.mamba_twice_hidden:
        return 2 * model.hidden_size
    return mamba.num_heads * mamba.head_dim


def _state_space(model: Model, mamba: Mamba, inner: int) -> tuple[Weight, Weight]:
    """In: two inner widths, B and C of every group, a step per head. Out: one inner width."""
    layers = mamba.num_layers
    into = 2 * inner + 2 * mamba.num_groups * mamba.state_size + mamba.num_heads
    return (
        Weight(model.hidden_size, into, layers, layers),
        Weight(inner, model.hidden_size, layers, layers),
    )
