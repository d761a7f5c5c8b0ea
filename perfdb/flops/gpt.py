"""FLOPs of a dense GPT: multi-head or grouped-query attention, gated or plain MLP."""

from perfdb.catalog.base import Model
from perfdb.flops.base import Convention, Cost
from perfdb.flops.layers import attention, feed_forward, scores, vocabulary

FAMILY = "gpt"


def cost(model: Model, sequence_length: int, convention: Convention) -> Cost:
    """L·(h(Q + 2K) + Q·h + k·h·f) + h·V through weights, and L·2c·s·Q in attention.

    Source: Megatron-LM, megatron/training/training.py, num_floating_point_operations.
    """
    layers = model.num_layers + model.mtp_depth
    weights = (
        *attention(model, layers, convention),
        *feed_forward(model, layers, convention),
        *vocabulary(model, convention),
    )
    return Cost(weights, scores(model, layers, sequence_length, convention))
