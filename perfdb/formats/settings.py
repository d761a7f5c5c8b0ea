"""From the settings that programs print, by their names, to the fields of a case."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from perfdb import catalog
from perfdb.formats.base import Configuration
from perfdb.formats.numbers import count

Settings = Mapping[str, str]

NAMES: Final[Mapping[str, str]] = {
    "world_size": "num_gpus",
    "num_gpus": "num_gpus",
    "seq_length": "sequence_length",
    "sequence_length": "sequence_length",
    "seq_len": "sequence_length",
    "global_batch_size": "global_batch_size",
    "micro_batch_size": "micro_batch_size",
    "local_batch_size": "local_batch_size",
    "tensor_model_parallel_size": "tensor_parallel",
    "pipeline_model_parallel_size": "pipeline_parallel",
    "context_parallel_size": "context_parallel",
    "expert_model_parallel_size": "expert_parallel",
    "expert_tensor_parallel_size": "expert_tensor_parallel",
    "virtual_pipeline_model_parallel_size": "virtual_pipeline",
    "data_parallel_size": "data_parallel",
    "tp_size": "tensor_parallel",
    "pp_size": "pipeline_parallel",
    "cp_size": "context_parallel",
    "ep_size": "expert_parallel",
    "sequence_parallel": "sequence_parallel",
    "use_megatron_fsdp": "fsdp_enabled",
}
"""What programs call a field of a case."""

_FLAGS: Final = frozenset({"sequence_parallel", "fsdp_enabled"})
_TRUE, _NONE = ("true", "1"), ("none", "null", "false", "")
_RECIPES: Final = {
    "tensorwise": "fp8_cs",
    "delayed": "fp8_ds",
    "mxfp8": "fp8_mx",
    "blockwise": "fp8_sc",
}
"""Transformer Engine's FP8 recipes, as Megatron names them."""

_PRECISION_NAMES = ("bf16", "fp16", "fp8", "fp8_recipe", "fp4")
_MENTIONED = tuple(
    # The look behind stands after the name: a pattern that begins with a literal is found at once.
    re.compile(rf"({name})(?<!\w{name})['\"]?\s*[=:]\s*['\"]?([\w.\-]+)")
    for name in (*NAMES, *_PRECISION_NAMES, "num_nodes", "devices")
)


def mentioned(text: str) -> Settings:
    """The settings that a text mentions as `name=value` or `name: value`, however it is laid out.

    A setting that has different values in different places is left out: nobody says which one
    the run had.
    """
    return agreed(pair for pattern in _MENTIONED for pair in pattern.findall(text))


def agreed(pairs: Iterable[tuple[str, str]]) -> Settings:
    """The settings that have one value only."""
    values: dict[str, set[str]] = {}
    for name, value in pairs:
        values.setdefault(name, set()).add(value)
    return {name: next(iter(found)) for name, found in values.items() if len(found) == 1}


def configuration(settings: Settings, **known: object) -> Configuration:
    """What settings say of a case; `known` are fields of it that are known without them."""
    fields = dict(known)
    for name, field in NAMES.items():
        value = settings.get(name)
        if value is not None and field not in fields:
            fields |= _said(field, value)
    recipe = precision(settings)
    return Configuration.model_validate({"precision": recipe} | fields if recipe else fields)


def _said(field: str, value: str) -> dict[str, object]:
    if field in _FLAGS:
        known = value.lower() in (*_TRUE, *_NONE)
        return {field: value.lower() in _TRUE} if known else {}
    if field == "virtual_pipeline" and value.lower() in _NONE:
        return {field: None}
    size = count(value)
    return {field: size} if size else {}


def precision(settings: Settings) -> str | None:
    """The precision recipe that Megatron's own settings amount to; None where they do not say."""

    def off(name: str) -> bool:
        return settings.get(name, "none").lower() in _NONE

    if not off("fp4"):
        return "nvfp4"
    if not off("fp8"):
        return _RECIPES.get(settings.get("fp8_recipe", "").lower(), "fp8")
    return next((name for name in ("bf16", "fp16") if not off(name)), None)


def model(printed: str | None) -> str | None:
    """The model of a printed name; one that the catalogue lacks keeps its name, in lower case."""
    if not printed:
        return None
    slug = re.sub(r"[^\w.]+|_+", "-", printed.casefold()).strip("-.")
    return catalog.named_model(printed) or slug or None


def system(gpu: str | None) -> str | None:
    """The system that has a GPU of such a name."""
    known = catalog.system_of_gpu(gpu) if gpu else None
    return known.name if known else None


def batch(printed: float | None) -> dict[str, object]:
    """The global batch size that step lines print, as a field of a case."""
    size = count(printed)
    return {"global_batch_size": size} if size else {}


def gpus(said: Settings) -> dict[str, object]:
    """The number of GPUs, of how many nodes there are and how many devices each has."""
    nodes, devices = count(said.get("num_nodes")), count(said.get("devices"))
    size = count(nodes * devices) if nodes and devices else None
    return {"num_gpus": size} if size else {}
