"""FLOPs of a mixture-of-experts GPT: the experts a token visits, the shared and dense ones."""

from perfdb.catalog.base import Model
from perfdb.flops import gpt
from perfdb.flops.base import Convention, Cost

FAMILY = "moe"


def cost(model: Model, sequence_length: int, convention: Convention) -> Cost | None:
    """As the dense GPT, with top-k expert MLPs and the shared one; the router is not counted.

    Source: Megatron-LM, megatron/training/training.py, num_floating_point_operations.
    """
    if model.num_experts is None:
        return None
    return gpt.cost(model, sequence_length, convention)
