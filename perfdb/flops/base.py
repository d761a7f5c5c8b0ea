"""Conventions of counting, and the cost of a token, which formulas compute."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from perfdb.catalog.entries import Model

LoraCount = Literal["frozen", "share", "full"]
"""How LoRA is counted; `perfdb.flops.lora.flops` explains each."""


@dataclass(frozen=True, eq=False)
class Convention:
    """What is counted. Releases differ in it, so every figure says which it follows.

    The fields below `meaning` say where a release departs from what the hardware has to compute;
    those that name families hold for these alone.
    """

    name: str
    causal_attention: bool
    """Count only the half of the attention matrix that a causal mask leaves."""
    logits: bool
    """Count the projection to the vocabulary."""
    meaning: str
    grouped_query: bool = True
    """Count keys and values at the width of their heads, not at that of all query heads."""
    sliding_window: bool = True
    """Count a windowed layer's attention within its window only."""
    norms: bool = False
    """Count the norms of latent attention and of multi-token prediction."""
    silu_gates_only: bool = False
    """Count the gate of a gated MLP only where its activation is SiLU."""
    packed_fine_tuning: bool = False
    """Fine-tuning packs short examples, unless it is known not to: do not count attention."""
    output_gate: bool = True
    """Count the output gate of attention where a model has one."""
    router_families: frozenset[str] = frozenset()
    """Families with the expert router counted."""
    one_shared_expert_families: frozenset[str] = frozenset()
    """Families with one shared expert counted, however many there are."""
    hidden_wide_families: frozenset[str] = frozenset()
    """Families with query heads taken to be as wide as the hidden size together."""
    gated_families: frozenset[str] = frozenset()
    """Families with dense MLPs taken to have a gate."""
    unjoined_families: frozenset[str] = frozenset()
    """Families with the projection of multi-token prediction not counted."""
    mamba_twice_hidden: bool = False
    """Take a Mamba layer to be twice as wide as the hidden size, whatever its heads are."""
    lora: LoraCount = "frozen"
    frozen_lora_models: frozenset[str] = frozenset()
    """Models with LoRA counted as `frozen`, without attention, unless it is known not to pack."""
    lora_rank: int = 0
    """The rank of the adapters, where `lora` counts their share."""


@dataclass(frozen=True)
class Weight:
    """The matrices of one shape: how many a model has, and how many a token goes through."""

    inputs: int
    outputs: int
    held: int
    used: float
    adapted: bool = True
    """LoRA adds an adapter to it."""


@dataclass(frozen=True)
class Cost:
    """What a token's forward pass costs.

    `attention` and `mixing` are in multiply-adds: products of activations with each other, without
    weights.
    """

    weights: tuple[Weight, ...]
    attention: float
    """Of scores and values over a text, which grows with its length."""
    mixing: float = 0.0
    """Of all else: state-space scans, delta states, attention within a video."""


@dataclass(frozen=True)
class FlopsFormula:
    """One architecture family's arithmetic."""

    covers: str
    """The models that it is for, in words."""
    cost: Callable[[Model, int, Convention], Cost | None]
    """What a token costs; None where the model lacks a number that the formula needs."""
