"""What the catalog holds: a System, a Model, a Precision."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from perfdb.record import Frozen, must

Words = Annotated[str, must(re.compile(r"\w").search, "says nothing")]
"""A text with something in it."""


def _refuse(checks: Iterable[tuple[object, str]]) -> None:
    """Raises ValueError with the message of each check that is true."""
    if faults := [message for is_wrong, message in checks if is_wrong]:
        raise ValueError("; ".join(faults))


class Peak(Frozen):
    """A dense peak of one GPU, in TFLOP/s, and where the figure is from."""

    tflops: float = Field(ge=1, le=100_000)
    source: Words


class Named(Frozen):
    """An entry: what perfdb calls it, and what people read. A name is in addresses and paths."""

    model_config = ConfigDict(allow_inf_nan=False)

    name: str = Field(pattern=r"^[a-z0-9]+(?:[._-][a-z0-9]+)*$")
    title: Words


class System(Named):
    """A machine type. None: it has no such figure (a card is in servers of any size)."""

    aliases: tuple[Words, ...] = ()
    """What pages call it besides, in whatever case and with whatever spaces."""
    gpu: Words | None = None
    detect: tuple[Annotated[str, Field(pattern=r"^[A-Z0-9]+(?:[ -][A-Z0-9]+)*$")], ...] = ()
    """Words in the name a GPU reports, in capitals, that say it is this one."""
    gpus_per_node: PositiveInt | None = None
    nvlink_domain: PositiveInt | None = None
    memory_gb: PositiveFloat | None = None
    gpu_memory_mib: PositiveInt | None = None
    """What nvidia-smi reports of one GPU (memory.total). None: not known yet."""
    source: Words
    peaks: Mapping[str, Peak]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        of_gpus = (
            "detect", "gpus_per_node", "peaks", "nvlink_domain", "memory_gb", "gpu_memory_mib",
        )  # fmt: skip
        strange = [name for name in of_gpus if getattr(self, name)]
        missing = [name for name in ("detect", "peaks") if name not in strange]
        node, domain = self.gpus_per_node or 1, self.nvlink_domain or 1
        mib, memory_gb = self.gpu_memory_mib, self.memory_gb
        share = mib * 2**20 / (memory_gb * 1e9) if mib and memory_gb else 1
        _refuse((
            (self.gpu and missing, f"a system with GPUs needs {', '.join(missing)}"),
            (not self.gpu and strange, f"a system without GPUs has no {', '.join(strange)}"),
            (max(node, domain) % min(node, domain),
             f"nvlink_domain {domain} is neither nodes of gpus_per_node {node} nor a part of one"),
            (not 0.75 < share < 1.25,
             f"gpu_memory_mib {mib} and memory_gb {memory_gb or 0:g} are of different GPUs"),
        ))  # fmt: skip
        return self


class LatentAttention(Frozen):
    """Multi-head latent attention: the ranks of its latent spaces and the parts of its heads."""

    q_lora_rank: PositiveInt | None = None
    """None: queries are not compressed."""
    kv_lora_rank: PositiveInt
    qk_nope_head_dim: PositiveInt
    qk_rope_head_dim: PositiveInt
    v_head_dim: PositiveInt


class SlidingWindow(Frozen):
    """The layers with attention over a window, and its size in tokens."""

    num_layers: PositiveInt
    size: PositiveInt


class Mamba(Frozen):
    """The Mamba-2 layers of a hybrid."""

    num_layers: PositiveInt
    num_heads: PositiveInt
    head_dim: PositiveInt
    state_size: PositiveInt
    num_groups: PositiveInt


class LinearAttention(Frozen):
    """The layers of a hybrid with gated delta-rule attention; its kernel is the convolution's."""

    num_layers: PositiveInt
    num_key_heads: PositiveInt
    key_head_dim: PositiveInt
    num_value_heads: PositiveInt
    value_head_dim: PositiveInt
    conv_kernel: PositiveInt


class VideoDiffusion(Frozen):
    """The inputs of a diffusion transformer of video.

    `patch_elements` is the elements of a latent patch over all channels, the same in and out;
    `text_length` the tokens of the prompt, padded.
    """

    patch_elements: PositiveInt
    text_length: PositiveInt
    text_width: PositiveInt
    frequency_width: PositiveInt


PARTS: Mapping[str, tuple[str, ...]] = {
    "gpt": (),
    "moe": ("num_experts",),
    "mla": ("latent_attention",),
    "sliding": ("sliding_window",),
    "mamba": ("mamba", "num_attention_layers"),
    "gated_delta": ("linear_attention",),
    "dit": ("video_diffusion",),
}
"""The families, and the fields that a model of each must have besides those of all."""
EXPERT_PARTS = ("moe_top_k", "moe_ffn_hidden_size")
"""The fields that a model with experts must have, and those that it may have."""
OTHER_EXPERT_PARTS = ("moe_shared_expert_ffn_hidden_size", "moe_latent_size", "num_dense_layers")
WITHOUT_EXPERTS = ("gpt", "dit")
"""The families that have none; the others but `moe` may have them."""


class Model(Named):
    """An architecture: the numbers that its parameters and FLOPs follow from.

    Widths are in elements; `num_query_groups` counts key/value heads; `source` is where the
    numbers are from. `num_dense_layers` come before those with experts;
    `moe_shared_expert_ffn_hidden_size` is of all shared experts together; experts work in a space
    of `moe_latent_size` where there is one; `mtp_depth` is how many more tokens are predicted.
    The MLP of hybrids is in the layers that nothing else is in.
    """

    family: Annotated[str, must(PARTS.__contains__, f"none of {', '.join(PARTS)}")]
    source: Words
    aliases: tuple[Words, ...] = ()
    num_layers: PositiveInt
    hidden_size: PositiveInt
    ffn_hidden_size: PositiveInt
    num_attention_heads: PositiveInt
    num_query_groups: PositiveInt
    head_dim: PositiveInt
    vocab_size: PositiveInt | None = None
    gated_mlp: bool = True
    activation: Literal["silu", "gelu", "quick_gelu", "squared_relu"] = "silu"
    normalization: Literal["RMSNorm", "LayerNorm"] = "RMSNorm"
    tied_embeddings: bool = False
    rotary_base: PositiveFloat = 10_000
    num_experts: PositiveInt | None = None
    moe_top_k: PositiveInt | None = None
    moe_ffn_hidden_size: PositiveInt | None = None
    moe_shared_expert_ffn_hidden_size: PositiveInt | None = None
    moe_latent_size: PositiveInt | None = None
    num_dense_layers: int = Field(0, ge=0)
    num_attention_layers: PositiveInt | None = None
    attention_output_gate: bool = False
    mtp_depth: int = Field(0, ge=0)
    latent_attention: LatentAttention | None = None
    sliding_window: SlidingWindow | None = None
    mamba: Mamba | None = None
    linear_attention: LinearAttention | None = None
    video_diffusion: VideoDiffusion | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        own = PARTS[self.family]
        needed = (*own, *(EXPERT_PARTS if self.num_experts else ()))
        missing = [part for part in needed if getattr(self, part) is None]
        allowed = own if self.family in WITHOUT_EXPERTS else (*own, *PARTS["moe"])
        others = {part for parts in PARTS.values() for part in parts if part not in allowed}
        strange = [part for part in sorted(others) if getattr(self, part) is not None]
        idle = [part for part in (*EXPERT_PARTS, *OTHER_EXPERT_PARTS) if getattr(self, part)]
        heads, groups, experts = self.num_attention_heads, self.num_query_groups, self.num_experts
        kinds = (
            self.num_dense_layers,
            self.sliding_window.num_layers if self.sliding_window else 0,
            self.linear_attention.num_layers if self.linear_attention else 0,
            (self.mamba.num_layers if self.mamba else 0) + (self.num_attention_layers or 0),
        )  # the kinds in a row do not overlap
        _refuse((
            (missing, f"a {self.family} model needs {', '.join(missing)}"),
            (strange, f"a {self.family} model has no {', '.join(strange)}"),
            (not experts and idle, f"{', '.join(idle)} without num_experts"),
            (heads % groups,
             f"num_attention_heads {heads} is no multiple of num_query_groups {groups}"),
            (experts and (self.moe_top_k or 0) > experts,
             f"moe_top_k {self.moe_top_k} is above num_experts {experts}"),
            (self.mtp_depth > self.num_layers,
             f"mtp_depth {self.mtp_depth} is above num_layers {self.num_layers}"),
            (max(kinds) > self.num_layers,
             f"{max(kinds)} layers of a kind are more than num_layers {self.num_layers}"),
        ))  # fmt: skip
        return self


class Precision(Named):
    """A precision recipe, what pages print for it, and which peak it is measured against."""

    peak: str | None
    needs: str | None = None
    """Another peak that a system with its units has; None where it needs no more than its own."""
    words: tuple[Words, ...]
    scaling: Words | None = None
    """How values are scaled into the range of the format; None: they are not."""

    def is_of(self, peaks: Mapping[str, Peak]) -> bool:
        """Whether a system with these peaks has units for it."""
        return {self.peak, self.needs} <= {None, *peaks}
