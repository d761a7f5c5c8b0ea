"""What the field's releases count as model FLOPs, by name.

Recomputed activations are never counted: these are model FLOPs, not hardware FLOPs
(Chowdhery et al. 2022, PaLM, appendix B).
"""

from perfdb.flops.base import Convention

CAUSAL = Convention(
    "causal",
    causal_attention=True,
    logits=True,
    meaning="attention counted at half, for the causal mask; logits counted. "
    "Megatron-LM's num_floating_point_operations and AutoModel's flops_utils.",
)
FULL = Convention(
    "full",
    causal_attention=False,
    logits=True,
    meaning="attention counted in full, the mask ignored; logits counted. NeMo Framework 25.04.",
)

CONVENTIONS = {convention.name: convention for convention in (CAUSAL, FULL)}
DEFAULT = CAUSAL
