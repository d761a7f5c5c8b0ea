"""From what a forward pass costs to the FLOPs of a training step, in full or of LoRA."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from perfdb.flops.base import Convention, Cost, LoraCount
from perfdb.record import Task

TRAINING_FACTOR = 6
"""Two for a multiply and an add, three for the forward pass and a backward of twice its cost."""
FROZEN_FACTOR = 4
"""A frozen weight has no gradient of its own: forward, and the gradient that passes through."""


def flops(cost: Cost, convention: Convention, task: Task, packed: bool | None = None) -> float:
    """FLOPs per token of a step of the task, as the convention counts them.

    For packed examples of unknown lengths, attention is left out. If it is not known whether
    they are packed (None), the convention says what to assume of fine-tuning.
    """
    if (convention.packed_fine_tuning if packed is None else packed) and task != "pretrain":
        cost = replace(cost, attention=0)
    return LORA[convention.lora](cost, convention) if task == "lora" else full(cost, convention)


def full(cost: Cost, _: Convention) -> float:
    """Everything three times: Megatron-LM and Megatron-Bridge count LoRA so too."""
    return TRAINING_FACTOR * (through_weights(cost) + cost.attention + cost.mixing)


def frozen(cost: Cost, _: Convention) -> float:
    """Weights at two thirds, for they are frozen; what has none, such as attention, in full.

    The adapters are not counted.
    """
    without = cost.attention + cost.mixing
    return FROZEN_FACTOR * through_weights(cost) + TRAINING_FACTOR * without


def share(cost: Cost, convention: Convention) -> float:
    """All of it times (2 + trainable/frozen)/3.

    Source: AutoModel, recipes/llm/benchmark.py.
    """
    adapters = adapter_parameters(cost, convention.lora_rank)
    return full(cost, convention) * (2 + adapters / parameters(cost)) / 3


def packed_lora(convention: Convention) -> Convention:
    """The convention as it holds for LoRA on packed examples of its `frozen_lora_models`.

    Source: Megatron-Bridge, training/utils/flop_utils.py, of Llama 3 70B on SQuAD.
    """
    return replace(convention, packed_fine_tuning=True, lora="frozen")


LORA: Mapping[LoraCount, Callable[[Cost, Convention], float]] = {
    "frozen": frozen,
    "share": share,
    "full": full,
}


def through_weights(cost: Cost) -> float:
    """Multiply-adds per token of the forward pass through weights."""
    return sum(weight.inputs * weight.outputs * weight.used for weight in cost.weights)


def parameters(cost: Cost) -> int:
    """Elements of all matrices. Norms, biases and convolutions are left out: under 0.1 %."""
    return sum(weight.inputs * weight.outputs * weight.held for weight in cost.weights)


def adapter_parameters(cost: Cost, rank: int) -> int:
    """Elements of an adapter of a rank on every matrix but those of the vocabulary."""
    adapted = (weight for weight in cost.weights if weight.adapted)
    return sum(rank * (weight.inputs + weight.outputs) * weight.held for weight in adapted)
