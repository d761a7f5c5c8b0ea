"""FLOPs of a mixture-of-experts GPT: the experts a token visits, and the shared ones."""

from perfdb.catalog.base import Model
from perfdb.flops.base import Convention
from perfdb.flops.gpt import TRAINING_FACTOR, attention, logits, mlp

FAMILY = "moe"


def flops_per_token(model: Model, sequence_length: int, convention: Convention) -> float:
    """As the dense GPT, with top-k expert MLPs and the shared one; the router is not counted.

    Source: Megatron-LM, megatron/training/training.py, num_floating_point_operations.
    """
    routed = (model.moe_top_k or 0) * mlp(model, model.moe_ffn_hidden_size or 0)
    shared = mlp(model, model.moe_shared_expert_ffn_hidden_size or 0)
    layer = attention(model, sequence_length, convention) + routed + shared
    return TRAINING_FACTOR * (model.num_layers * layer + logits(model, convention))
