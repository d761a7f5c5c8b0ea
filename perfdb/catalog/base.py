"""What the catalogue holds: a System, a Model, a Precision."""

from collections.abc import Mapping
from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from perfdb.record import Frozen


class Peak(Frozen):
    """A dense peak of one GPU, in TFLOP/s, and where the figure is from."""

    tflops: PositiveFloat
    source: str


class System(Frozen):
    """A machine type. None: it has no such figure (a CPU has no GPUs per node)."""

    name: str
    title: str
    gpu: str | None
    detect: tuple[str, ...]
    """Words in the name a GPU reports that say it is this one."""
    gpus_per_node: PositiveInt | None
    nvlink_domain: PositiveInt | None
    memory_gb: PositiveFloat | None
    source: str
    peaks: Mapping[str, Peak]


class Model(Frozen):
    """An architecture: the numbers that its parameters and FLOPs follow from.

    Widths are in elements; `num_query_groups` counts key/value heads; `source` says where the
    numbers are from.
    """

    name: str
    title: str
    family: Literal["gpt", "moe", "dit"]
    source: str
    aliases: tuple[str, ...] = ()
    num_layers: PositiveInt
    hidden_size: PositiveInt
    ffn_hidden_size: PositiveInt
    num_attention_heads: PositiveInt
    num_query_groups: PositiveInt
    head_dim: PositiveInt
    vocab_size: PositiveInt | None = None
    gated_mlp: bool = True
    activation: Literal["silu", "gelu", "squared_relu"] = "silu"
    normalization: Literal["RMSNorm", "LayerNorm"] = "RMSNorm"
    tied_embeddings: bool = False
    rotary_base: PositiveFloat = 10_000
    num_experts: PositiveInt | None = None
    moe_top_k: PositiveInt | None = None
    moe_ffn_hidden_size: PositiveInt | None = None
    moe_shared_expert_ffn_hidden_size: PositiveInt | None = None


class Precision(Frozen):
    """A precision recipe, what pages print for it, and which peak it is measured against."""

    name: str
    title: str
    peak: str | None
    words: tuple[str, ...]
