"""FLOPs of a dense GPT: multi-head or grouped-query attention, gated or plain MLP."""

from perfdb.catalog.base import Model
from perfdb.flops.base import Convention

FAMILY = "gpt"

TRAINING_FACTOR = 6
"""Two for a multiply and an add, three for the forward pass and a backward of twice its cost."""


def flops_per_token(model: Model, sequence_length: int, convention: Convention) -> float:
    """6·[L·(attention + MLP) + logits] per token.

    Source: Megatron-LM, megatron/training/training.py, num_floating_point_operations.
    """
    layer = attention(model, sequence_length, convention) + mlp(model, model.ffn_hidden_size)
    return TRAINING_FACTOR * (model.num_layers * layer + logits(model, convention))


def attention(model: Model, sequence_length: int, convention: Convention) -> float:
    """Multiply-adds per token of one attention layer: h·(Q + 2K) + Q·h + 2c·s·Q."""
    query = model.num_attention_heads * model.head_dim
    key_value = model.num_query_groups * model.head_dim
    projections = model.hidden_size * (2 * query + 2 * key_value)
    seen = 0.5 if convention.causal_attention else 1.0
    return projections + 2 * seen * sequence_length * query


def mlp(model: Model, width: int) -> int:
    """Multiply-adds per token of one MLP: three matrices where it is gated, two where not."""
    return (3 if model.gated_mlp else 2) * model.hidden_size * width


def logits(model: Model, convention: Convention) -> int:
    """Multiply-adds per token of the projection to the vocabulary."""
    return model.hidden_size * (model.vocab_size or 0) if convention.logits else 0
