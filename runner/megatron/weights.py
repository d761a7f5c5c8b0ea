"""Names every weight by its place in the whole model; initialises and counts weights by that name.

A rank holds a part of some layers, and calls its first layer "layers.0" whatever it is in the
model. Under global names the same model can be initialised identically, and counted once, in
every layout.
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from runner.megatron.config import ModelShape
from runner.megatron.data import Shard

# Which dimension tensor parallelism cuts, for each module that owns a matrix; None: whole on every
# rank. From Megatron-Core's layers: column-parallel ones cut the output, row-parallel the input.
CUT_DIMENSION = {
    "word_embeddings": 0,
    "linear_qkv": 0,  # whole query groups, each with its keys and values
    "linear_proj": 1,
    "linear_fc1": 0,
    "linear_fc2": 1,
    "router": None,
    "output_layer": 0,
    "linear_q": 0,
    "linear_kv": 0,
    **dict.fromkeys(("patch", "text_in", "text_out", "time_in", "time_out", "time_modulation")),
    "head": None,
}
INITIAL_STD = 0.02  # Megatron-Core's init_method_std


@dataclass(frozen=True)
class ShardPlace:
    """The place of a rank: its part of dense weights, of expert weights, and its first expert."""

    dense: Shard
    expert: Shard
    first_expert: int


@dataclass(frozen=True)
class GlobalWeight:
    """One parameter of this rank, and what it is in the whole model."""

    global_name: str
    parameter: nn.Parameter
    dimension: int | None
    part: Shard

    @property
    def whole_shape(self) -> list[int]:
        """The shape that it has where no rank holds a part alone."""
        shape = [*self.parameter.shape]
        if self.dimension is not None:
            shape[self.dimension] *= self.part.count
        return shape


def weights(chunk: nn.Module, place: ShardPlace) -> Iterator[GlobalWeight]:
    """The parameters of one model chunk, wrapped or not."""
    model = chunk
    while isinstance(inner := getattr(model, "module", None), nn.Module):
        model = inner
    for name, parameter in model.named_parameters():
        part = place.expert if ".experts." in name else place.dense
        dimension = CUT_DIMENSION[name.split(".")[-2]] if parameter.dim() > 1 else None
        yield GlobalWeight(
            _global_name(model, name, place.first_expert), parameter, dimension, part
        )


def _global_name(model: nn.Module, name: str, first_expert: int) -> str:
    # Tied embeddings have a second copy on the last pipeline stage: the same weight.
    if name == "output_layer.weight" and model.share_embeddings_and_output_weights:
        return "embedding.word_embeddings.weight"
    if layer := re.match(r"decoder\.layers\.(\d+)\.", name):
        owner = model.get_submodule(layer[0].rstrip("."))
        name = f"L{owner.layer_number}.{name[layer.end() :]}"
    # The experts are modules of their own, or, in Transformer Engine, numbered weights of one.
    name = re.sub(
        r"experts\.(linear_fc\d)\.weight(\d+)$", r"experts.local_experts.\2.\1.weight", name
    )
    return re.sub(
        r"local_experts\.(\d+)\.", lambda found: f"expert{first_expert + int(found[1])}.", name
    )


def counts(chunks: list[nn.Module], place: ShardPlace) -> dict[str, int]:
    """The number of elements of each weight that this rank has a part of, in the whole model.

    Merged over all ranks, the values add up to the size of the model.
    """
    found = (weight for chunk in chunks for weight in weights(chunk, place))
    return {weight.global_name: torch.Size(weight.whole_shape).numel() for weight in found}


@torch.no_grad()
def initialise(chunks: list[nn.Module], model: ModelShape, place: ShardPlace) -> None:
    """Draw every matrix whole, seeded by its global name, and keep this rank's part.

    Costs the time to draw the whole matrices on every rank: for comparing layouts, not for speed.
    Norms are left as the library sets them, equal everywhere.
    """
    for chunk in chunks:
        for weight in weights(chunk, place):
            if weight.parameter.dim() > 1:
                gated = model.gated_mlp and "linear_fc1" in weight.global_name
                seed = zlib.crc32(weight.global_name.encode())
                generator = torch.Generator().manual_seed(seed)
                whole = torch.empty(weight.whole_shape).normal_(0, INITIAL_STD, generator=generator)
                weight.parameter.copy_(cut(whole, weight, halves=2 if gated else 1))


def cut(whole: Tensor, weight: GlobalWeight, *, halves: int) -> Tensor:
    """This rank's part of a weight.

    Where the gate lies on top of the up-projection, a rank holds a part of each: two halves.
    """
    if weight.dimension is None:
        return whole
    parts = [
        half.chunk(weight.part.count, weight.dimension)[weight.part.index]
        for half in whole.chunk(halves, weight.dimension)
    ]
    return torch.cat(parts, weight.dimension)
