"""From what a forward pass costs to the FLOPs of a training step, in full or of LoRA."""

from dataclasses import replace

from perfdb.flops.base import Convention, Cost
from perfdb.record import Task

TRAINING_FACTOR = 6
"""Two for a multiply and an add, three for the forward pass and a backward of twice its cost."""
FROZEN_FACTOR = 4
"""A frozen weight has no gradient of its own: forward, and the gradient that passes through."""


def flops(cost: Cost, convention: Convention, task: Task, packed: bool | None = None) -> float:
    """FLOPs per token of a step of the task, as the convention counts them.

    Fine-tuning on packed examples of unknown lengths leaves attention out. If `packed` is None,
    the convention decides. LoRA counts in full in Megatron-LM and Megatron-Bridge, as a share of
    (2 + trainable/frozen)/3 in AutoModel (recipes/llm/benchmark.py), and else at two thirds for
    frozen weights and in full for what has no weights, such as attention.
    """
    if (convention.packed_fine_tuning if packed is None else packed) and task != "pretrain":
        cost = replace(cost, attention=0)
    through_weights = sum(weight.inputs * weight.outputs * weight.used for weight in cost.weights)
    full = TRAINING_FACTOR * (through_weights + cost.attention + cost.mixing)
    if task != "lora" or convention.lora == "full":
        return full
    if convention.lora == "share":
        adapters = adapter_parameters(cost, convention.lora_rank)
        return full * (2 + adapters / parameters(cost)) / 3
    return FROZEN_FACTOR * through_weights + TRAINING_FACTOR * (cost.attention + cost.mixing)


def parameters(cost: Cost) -> int:
    """Elements of all matrices. Norms, biases and convolutions are left out: under 0.1 %."""
    return sum(weight.inputs * weight.outputs * weight.held for weight in cost.weights)


def adapter_parameters(cost: Cost, rank: int) -> int:
    """Elements of an adapter of a rank on every matrix but those of the vocabulary."""
    adapted = (weight for weight in cost.weights if weight.adapted)
    return sum(rank * (weight.inputs + weight.outputs) * weight.held for weight in adapted)
