"""What the catalogue holds: a System, a Model, a Precision."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    model_validator,
)

from perfdb.record import Frozen


def _said(text: str) -> str:
    if not re.search(r"\w", text):
        raise ValueError("says nothing")
    return text


Words = Annotated[str, AfterValidator(_said)]
"""A text with something in it."""


class Peak(Frozen):
    """A dense peak of one GPU, in TFLOP/s, and where the figure is from."""

    tflops: float = Field(ge=1, le=100_000)
    source: Words


class Named(Frozen):
    """An entry: what perfdb calls it, and what people read. A name is in addresses and paths."""

    model_config = ConfigDict(allow_inf_nan=False)
    ELSEWHERE: ClassVar[Mapping[str, str]] = {}
    """The fields by what others call them."""

    name: str = Field(pattern=r"^[a-z0-9]+(?:[._-][a-z0-9]+)*$")
    title: Words


class System(Named):
    """A machine type. None: it has no such figure (a CPU has no GPUs per node)."""

    aliases: tuple[Words, ...] = ()
    """What pages call it besides, in whatever case and with whatever spaces."""
    gpu: Words | None
    detect: tuple[Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]+(?:[ -][A-Z0-9]+)*$")], ...]
    """Words in the name a GPU reports, in capitals, that say it is this one."""
    gpus_per_node: PositiveInt | None
    nvlink_domain: PositiveInt | None
    memory_gb: PositiveFloat | None
    gpu_memory_mib: PositiveInt | None = None
    """What nvidia-smi reports of one GPU (memory.total). None: nobody has read it yet."""
    source: Words
    peaks: Mapping[str, Peak]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if faults := [*_of_gpus(self), *_sizes(self)]:
            raise ValueError("; ".join(faults))
        return self


def _of_gpus(system: System) -> Iterator[str]:
    needed = ("detect", "gpus_per_node", "peaks")
    if system.gpu and (missing := [name for name in needed if not getattr(system, name)]):
        yield f"a system with GPUs needs {', '.join(missing)}"
    others = (*needed, "nvlink_domain", "memory_gb", "gpu_memory_mib")
    if not system.gpu and (strange := [name for name in others if getattr(system, name)]):
        yield f"a system without GPUs has no {', '.join(strange)}"


def _sizes(system: System) -> Iterator[str]:
    node, domain = system.gpus_per_node, system.nvlink_domain
    if node and domain and max(node, domain) % min(node, domain):
        yield f"nvlink_domain {domain} is neither nodes of gpus_per_node {node} nor a part of one"
    mib, memory_gb = system.gpu_memory_mib, system.memory_gb
    if mib and memory_gb and not 0.75 < mib * 2**20 / (memory_gb * 1e9) < 1.25:
        yield f"gpu_memory_mib {mib} and memory_gb {memory_gb:g} are of different GPUs"


class LatentAttention(Frozen):
    """Multi-head latent attention: the ranks of its latent spaces and the parts of its heads."""

    q_lora_rank: PositiveInt | None
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


def _known(family: str) -> str:
    if family not in PARTS:
        raise ValueError(f"none of {', '.join(PARTS)}")
    return family


class Model(Named):
    """An architecture: the numbers that its parameters and FLOPs follow from.

    Widths are in elements; `num_query_groups` counts key/value heads; `source` says where the
    numbers are from. `num_dense_layers` come before those with experts;
    `moe_shared_expert_ffn_hidden_size` is of all shared experts together; experts work in a space
    of `moe_latent_size` where there is one; `mtp_depth` is how many more tokens are predicted.
    The MLP of hybrids is in the layers that nothing else is in.
    """

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        "num_hidden_layers": "num_layers",
        "intermediate_size": "ffn_hidden_size",
        "num_key_value_heads": "num_query_groups",
        "hidden_act": "activation",
        "tie_word_embeddings": "tied_embeddings",
        "rope_theta": "rotary_base",
        "num_local_experts": "num_experts",
        "n_routed_experts": "num_experts",
        "num_experts_per_tok": "moe_top_k",
        "moe_intermediate_size": "moe_ffn_hidden_size",
        "shared_expert_intermediate_size": "moe_shared_expert_ffn_hidden_size",
        "first_k_dense_replace": "num_dense_layers",
        "num_nextn_predict_layers": "mtp_depth",
    }
    """The words of a Hugging Face config.json."""

    family: Annotated[str, AfterValidator(_known)]
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
    num_dense_layers: NonNegativeInt = 0
    num_attention_layers: PositiveInt | None = None
    attention_output_gate: bool = False
    mtp_depth: NonNegativeInt = 0
    latent_attention: LatentAttention | None = None
    sliding_window: SlidingWindow | None = None
    mamba: Mamba | None = None
    linear_attention: LinearAttention | None = None
    video_diffusion: VideoDiffusion | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if faults := [*_parts(self), *_shape(self)]:
            raise ValueError("; ".join(faults))
        return self


def _parts(model: Model) -> Iterator[str]:
    own = PARTS[model.family]
    needed = (*own, *(EXPERT_PARTS if model.num_experts else ()))
    if missing := [part for part in needed if getattr(model, part) is None]:
        yield f"a {model.family} model needs {', '.join(missing)}"
    allowed = own if model.family in WITHOUT_EXPERTS else (*own, *PARTS["moe"])
    others = {part for parts in PARTS.values() for part in parts if part not in allowed}
    if strange := [part for part in sorted(others) if getattr(model, part) is not None]:
        yield f"a {model.family} model has no {', '.join(strange)}"
    of_experts = (*EXPERT_PARTS, *OTHER_EXPERT_PARTS)
    if not model.num_experts and (idle := [part for part in of_experts if getattr(model, part)]):
        yield f"{', '.join(idle)} without num_experts"


def _shape(model: Model) -> Iterator[str]:
    if model.num_attention_heads % model.num_query_groups:
        heads, groups = model.num_attention_heads, model.num_query_groups
        yield f"num_attention_heads {heads} is no multiple of num_query_groups {groups}"
    if model.num_experts and (model.moe_top_k or 0) > model.num_experts:
        yield f"moe_top_k {model.moe_top_k} is above num_experts {model.num_experts}"
    if model.mtp_depth > model.num_layers:
        yield f"mtp_depth {model.mtp_depth} is above num_layers {model.num_layers}"
    if (most := max(_layers(model))) > model.num_layers:
        yield f"{most} layers of a kind are more than num_layers {model.num_layers}"


def _layers(model: Model) -> Iterator[int]:
    """How many layers are of the kinds that do not overlap."""
    yield model.num_dense_layers
    for part in (model.sliding_window, model.linear_attention):
        yield part.num_layers if part else 0
    yield (model.mamba.num_layers if model.mamba else 0) + (model.num_attention_layers or 0)


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
