"""The training frameworks a recipe may name, and the options it may pass to each."""

from collections.abc import Iterator, Mapping
from math import inf

from perfdb.errors import suggestion
from perfdb.record import Scalar

OPTIONS: Mapping[str, Mapping[str, tuple[object, ...]]] = {
    "megatron-core": {
        "distributed_optimizer": (True, False),
        "recompute": ("none", "selective", "full"),
        "overlap": (True, False),
        "moe_dispatcher": ("alltoall", "allgather"),
        "init": ("megatron", "layout_invariant"),
        "batch_p2p_comm": (True, False),
        "optimizer_lr": (),
    },
    "automodel": {},
}
"""Each option's choices, by framework; an empty tuple takes any number above 0."""


def wrong_options(framework: str, options: Mapping[str, Scalar]) -> Iterator[tuple[str, str]]:
    """What is wrong with each invalid option, and how to repair it."""
    known = OPTIONS[framework]
    for name, value in options.items():
        if name not in known:
            remedy = suggestion(name, known) if known else "it has none"
            yield f"no option {name!r} of {framework}", remedy
            continue
        choices = known[name]
        if not (_chosen(value, choices) if choices else _is_positive(value)):
            expected = ", ".join(map(_in_yaml, choices)) or "a number above 0, such as 1.0e-3"
            yield f"{name} cannot be {value!r}", f"use {expected}"


def _chosen(value: Scalar, choices: tuple[object, ...]) -> bool:
    """To Python 1 is True; to the framework it is no answer to whether."""
    return any(value == choice and type(value) is type(choice) for choice in choices)


def _is_positive(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf


def _in_yaml(choice: object) -> str:
    return str(choice).lower()
