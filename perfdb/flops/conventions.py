"""What the field's releases count as model FLOPs, by name.

Recomputed activations are never counted: these are model FLOPs, not hardware FLOPs
(Chowdhery et al. 2022, PaLM, appendix B).
"""

from dataclasses import replace

from perfdb.flops.base import Convention

CAUSAL = Convention(
    "causal",
    causal_attention=True,
    logits=True,
    meaning="attention counted at half, for the causal mask; logits counted. For dense and "
    "mixture-of-experts models what Megatron-LM and AutoModel count.",
)
FULL = Convention(
    "full",
    causal_attention=False,
    logits=True,
    meaning="attention counted in full, the mask ignored; logits counted.",
)
NEMO_25_04 = replace(
    FULL,
    name="nemo-25.04",
    packed_fine_tuning=True,
    meaning="as full; attention not counted in fine-tuning, whose packed examples are short, and "
    "LoRA at two thirds. The performance summary of the NeMo Framework 25.04.",
)
NEMOTRON4_RECIPE = replace(
    FULL,
    name="nemotron4-recipe",
    grouped_query=False,
    lora="full",
    meaning="as full, with keys and values as wide as queries. The formula of the Nemotron-4 "
    "recipe of dgxc-benchmarking.",
)
MEGATRON_LM = replace(
    CAUSAL,
    name="megatron-lm",
    sliding_window=False,
    norms=True,
    mamba_twice_hidden=True,
    lora="full",
    meaning="as causal; sliding windows ignored, the norms of latent attention counted, Mamba "
    "layers twice as wide as the hidden size, LoRA as full training. Megatron-LM's "
    "num_floating_point_operations at d98e8a64.",
)
MEGATRON_BRIDGE = replace(
    CAUSAL,
    name="megatron-bridge",
    norms=True,
    mamba_twice_hidden=True,
    unjoined_families=frozenset({"mamba"}),
    lora="full",
    frozen_lora_models=frozenset({"llama3-70b"}),
    meaning="as causal; the norms of latent attention counted, Mamba layers twice as wide as the "
    "hidden size, the projection in their multi-token prediction not counted; LoRA as full "
    "training, but packed LoRA of Llama 3 70B at two thirds, its attention not counted. "
    "Megatron-Bridge from 26.06 on.",
)
MEGATRON_BRIDGE_26_04 = replace(
    MEGATRON_BRIDGE,
    name="megatron-bridge-26.04",
    sliding_window=False,
    silu_gates_only=True,
    output_gate=False,
    meaning="as megatron-bridge; sliding windows ignored, gates not counted unless SiLU, nor those "
    "of attention. Megatron-Bridge up to 26.04.01.",
)
# AutoModel's page does not state the rank of its adapters. 16 is the only power of two with which
# all six of its rows are within rounding; with 8, the package's default, two are not.
AUTOMODEL = replace(
    CAUSAL,
    name="automodel",
    router_families=frozenset({"mamba"}),
    one_shared_expert_families=frozenset({"mla"}),
    hidden_wide_families=frozenset({"mamba"}),
    gated_families=frozenset({"mamba"}),
    lora="share",
    lora_rank=16,
    meaning="as causal; one shared expert of latent-attention models, the router of Mamba hybrids, "
    "their attention as wide as the hidden size and a gate in every dense MLP; LoRA times (2 + "
    "trainable/frozen)/3. AutoModel 0.7.0's flops_utils.",
)
AUTOMODEL_25_10 = replace(
    AUTOMODEL,
    name="automodel-25.10",
    hidden_wide_families=frozenset({"mamba", "sliding"}),
    meaning="as automodel; attention of GPT-OSS too as wide as the hidden size. AutoModel's "
    "performance summary of October 2025, whose rows later pages repeat.",
)

CONVENTIONS = {
    convention.name: convention
    for convention in (
        CAUSAL, FULL, NEMO_25_04, NEMOTRON4_RECIPE, MEGATRON_LM, MEGATRON_BRIDGE_26_04,
        MEGATRON_BRIDGE, AUTOMODEL, AUTOMODEL_25_10,
    )
}  # fmt: skip
DEFAULT = CAUSAL
