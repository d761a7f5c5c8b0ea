"""The options a recipe may pass to Megatron-Core, and their values."""

from collections.abc import Iterator, Mapping

from perfdb.errors import suggestion
from perfdb.record import Scalar

MEGATRON_OPTIONS: dict[str, tuple[object, ...]] = {
    "distributed_optimizer": (True, False),
    "recompute": ("none", "selective", "full"),
    "overlap": (True, False),
    "moe_dispatcher": ("alltoall", "allgather"),
    "init": ("megatron", "layout_invariant"),
    "batch_p2p_comm": (True, False),
    "optimizer_lr": (),
}
"""Each option's choices; an empty tuple takes any number."""


def wrong_options(options: Mapping[str, Scalar]) -> Iterator[tuple[str, str]]:
    """What is wrong with each invalid option, and how to repair it."""
    for name, value in options.items():
        if name not in MEGATRON_OPTIONS:
            yield f"no option {name!r}", suggestion(name, MEGATRON_OPTIONS)
            continue
        choices = MEGATRON_OPTIONS[name]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value not in choices if choices else not is_number:
            expected = ", ".join(map(str, choices)) or "a number"
            yield f"{name} cannot be {value!r}", f"use {expected}"
