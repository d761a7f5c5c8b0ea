"""Model FLOPs by architecture family. To add one: write its cost, add it to the table."""

from dataclasses import dataclass, replace

from perfdb.catalog.entries import Model
from perfdb.flops import dit, hybrid, lora, transformer
from perfdb.flops.base import Convention, FlopsFormula
from perfdb.flops.conventions import CONVENTIONS, DEFAULT
from perfdb.record import Task

__all__ = [
    "CONVENTIONS", "DEFAULT", "FORMULAS", "FORMULA_VERSION", "LISTED_AT", "CountedWork",
    "flops_per_token", "restate",
]  # fmt: skip

FORMULAS: dict[str, FlopsFormula] = {
    "gpt": FlopsFormula(
        "FLOPs of a dense GPT: multi-head or grouped-query attention, gated or plain MLP.",
        transformer.dense,
    ),
    "moe": FlopsFormula(
        "FLOPs of a mixture-of-experts GPT: the experts a token visits, the shared and dense ones.",
        transformer.mixture_of_experts,
    ),
    "mla": FlopsFormula(
        "FLOPs of multi-head latent attention with experts: DeepSeek-V3, Kimi-K2, Moonlight.",
        transformer.latent_attention,
    ),
    "sliding": FlopsFormula(
        "FLOPs of models that mix full attention with layers that see a window of it: GPT-OSS.",
        transformer.sliding_window,
    ),
    "mamba": FlopsFormula(
        "FLOPs of Mamba-2 hybrids: state-space, attention and MLP or expert layers: Nemotron-H, 3.",
        hybrid.state_space,
    ),
    "gated_delta": FlopsFormula(
        "FLOPs of hybrids of gated delta-rule linear attention with full attention: Qwen3-Next.",
        hybrid.gated_delta,
    ),
    "dit": FlopsFormula(
        "FLOPs of a video diffusion transformer: WAN 2.1. A token is a patch of the latent video.",
        dit.video_diffusion,
    ),
}

FORMULA_VERSION = 3
"""Stored with every derived figure; raised when any formula's value changes."""

LISTED_AT = 8192
"""The sequence length at which lists of models state FLOPs per token."""


@dataclass(frozen=True)
class CountedWork:
    """What a figure is of."""

    model: Model
    sequence_length: int
    task: Task = "pretrain"
    packed: bool | None = None
    """Whether fine-tuning packs examples of unknown lengths; None: what each convention takes."""


def flops_per_token(
    model: Model,
    sequence_length: int,
    convention: Convention = DEFAULT,
    task: Task = "pretrain",
    packed: bool | None = None,
) -> float | None:
    """Model FLOPs per token of a training step; None where no formula covers the model.

    The sequence length is that which attention spans: of packed examples of lengths sᵢ it is
    Σsᵢ²/Σsᵢ; where these are not known, `packed` leaves attention out. Of a diffusion transformer
    a token is a patch of the latent video.
    """
    if task == "lora" and packed is not False and model.name in convention.frozen_lora_models:
        # Megatron-Bridge, training/utils/flop_utils.py, of Llama 3 70B on SQuAD.
        convention = replace(convention, packed_fine_tuning=True, lora="frozen")
    formula = FORMULAS.get(model.family)
    cost = formula.cost(model, sequence_length, convention) if formula else None
    return lora.flops(cost, convention, task, packed) if cost else None


def restate(
    tflops_per_sec_per_gpu: float, work: CountedWork, from_: Convention, to: Convention
) -> float | None:
    """A TFLOP/s/GPU of one convention in another: what changes is what is counted, not the time.

    None where no formula covers the model.
    """
    model, length, task, packed = work.model, work.sequence_length, work.task, work.packed
    counted = flops_per_token(model, length, from_, task, packed)
    wanted = flops_per_token(model, length, to, task, packed)
    return tflops_per_sec_per_gpu * wanted / counted if wanted and counted else None
