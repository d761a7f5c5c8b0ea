"""From the settings that programs print, by their names, to the fields of a case."""

import re
from collections.abc import Mapping
from typing import Final

from perfdb import catalog, units
from perfdb.fields import FIELDS
from perfdb.formats import precision as precisions
from perfdb.formats.numbers import count, finite
from perfdb.formats.precision import NONE
from perfdb.record import PartialCase, Scalar

Settings = Mapping[str, str]

DUMPS: Final = (
    r"arguments ----(?<=---- arguments ----)",
    r"ConfigContainer\b",
    r"Final Merged Configuration --",
    r"Task Configuration --",
    r"Experiment_details:",
)
"""What programs print above all of their settings, as patterns that begin with a literal."""

NAMES: Final[Mapping[str, str]] = {name: field.name for field in FIELDS for name in field.arguments}
"""What programs call a field of a case."""

ADAPTER: Final = "peft"
"""What Megatron-Bridge and NeMo call the adapter that they train."""

LIMIT: Final = "max_seq_length"
"""Up to how long samples may be where NeMo 1 fine-tunes, whose sequences have no one length."""

RAMP: Final = "rampup_batch_size"
"""The batch size that a run begins with, by how much it grows, and over how many samples."""

SHAPE: Final[Mapping[str, str]] = {
    "num_layers": "num_layers",
    "hidden_size": "hidden_size",
    "ffn_hidden_size": "ffn_hidden_size",
    "num_attention_heads": "num_attention_heads",
    "num_experts": "num_experts",
    "num_moe_experts": "num_experts",
}
"""What programs call a field of a model in the catalogue."""

OPTIONS: Final = (
    "recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules",
    "recompute_activations", "activation_checkpointing", "cpu_offloading_num_layers",
    "optimizer_cpu_offload", "optimizer_offload_fraction", "overlap_cpu_optimizer_d2h_h2d",
    "fine_grained_activation_offloading", "offload_modules",
    "cuda_graph_impl", "cuda_graph_scope", "enable_cuda_graph", "external_cuda_graph",
    "moe_token_dispatcher_type", "moe_flex_dispatcher_backend", "moe_enable_deepep",
    "moe_expert_capacity_factor", "moe_pad_expert_input_to_capacity", "moe_grouped_gemm",
    "moe_router_force_load_balancing", "moe_a2a_overlap", "attention_backend",
    "overlap_moe_expert_parallel_comm", "mtp_num_layers", "use_distributed_optimizer",
    "use_precision_aware_optimizer", "delay_wgrad_compute", "use_torch_fsdp2",
    "data_parallel_sharding_strategy",
    "overlap_grad_reduce", "overlap_param_gather", "tp_comm_overlap", "nccl_ub",
    "fp8_dot_product_attention", "cutedsl_fused_grouped_mlp", "deterministic_mode",
    "backend_attn", "backend_linear", "backend_experts", "backend_dispatcher",
    "compile", "load_in_4bit", "load_in_8bit",
    "profile", "use_nsys_profiler", "use_pytorch_profiler", "profile_step_start",
    "profile_step_end",
)  # fmt: skip
"""What changes a run's speed and is no field of a case: options of it, by the programs' names."""

EARLIER: Final[Mapping[str, str]] = {
    "checkpoint_activations": "recompute_granularity",
    "activations_checkpoint_granularity": "recompute_granularity",
    "activations_checkpoint_method": "recompute_method",
    "activations_checkpoint_num_layers": "recompute_num_layers",
    "ub_tp_comm_overlap": "tp_comm_overlap",
}
"""What Megatron-LM 2 and NeMo 1 call an option."""

_LISTS: Final = frozenset({"recompute_modules", "cuda_graph_scope", "offload_modules"})
_DEFAULTS: Final = {
    "moe_token_dispatcher_type": "allgather",
    "attention_backend": "auto",
    "data_parallel_sharding_strategy": "no_shard",
}
"""What programs print of every run, of one without experts too."""
_PROFILERS: Final = frozenset(
    {("profile", True), ("use_nsys_profiler", True), ("use_pytorch_profiler", True)}
)
_OFFLOADED: Final = frozenset({("optimizer_cpu_offload", True)})
_FSDP: Final = ("use_megatron_fsdp", "use_custom_fsdp", "use_torch_fsdp2")
"""Of these that are printed side by side one is on."""
_ONLY_WITH: Final[Mapping[str, frozenset[tuple[str, Scalar]]]] = {
    "optimizer_offload_fraction": _OFFLOADED,
    "overlap_cpu_optimizer_d2h_h2d": _OFFLOADED,
    "offload_modules": frozenset({("fine_grained_activation_offloading", True)}),
    "data_parallel_sharding_strategy": frozenset((name, True) for name in _FSDP),
    "recompute_method": frozenset({("recompute_granularity", "full")}),
    "recompute_num_layers": frozenset({("recompute_granularity", "full")}),
    "recompute_modules": frozenset(
        {("recompute_granularity", "selective"), ("recompute_activations", True)}
    ),
    "cuda_graph_scope": frozenset(
        {
            ("cuda_graph_impl", "local"),
            ("cuda_graph_impl", "transformer_engine"),
            ("enable_cuda_graph", True),
            ("external_cuda_graph", True),
        }
    ),
    "moe_flex_dispatcher_backend": frozenset({("moe_token_dispatcher_type", "flex")}),
    "profile_step_start": _PROFILERS,
    "profile_step_end": _PROFILERS,
}
"""Options that have a default, which says nothing where no other option puts it to use."""

_FLAGS: Final = frozenset({"sequence_parallel", "fsdp_enabled"})
_TRUE: Final = ("true", "1")
_WORD: Final = re.compile(r"[A-Za-z_][\w.]*")
ITEM: Final = r"\n[ \t]*- "
"""The start of an item of a list on lines of its own."""
_PLAIN: Final = re.compile(r"[\w.\-]{1,64}")


def configuration(settings: Settings, **known: object) -> PartialCase:
    """What settings say of a case; `known` are fields of it that are known without them."""
    sharded: dict[str, object] = {"fsdp_enabled": True} if _sharded(settings) else {}
    fields = sharded | known
    for name, field in NAMES.items():
        value = settings.get(name)
        is_used = _holds(name, settings)
        if value is not None and field not in (*fields, *doubts(settings)) and is_used:
            fields |= _field(field, value)
    found = {
        "task": "lora" if precisions.is_on(settings.get(ADAPTER, "")) else None,
        "precision": precision(settings),
        "virtual_pipeline": _virtual_pipeline(settings),
        "options": options(settings),
    }
    known = {field: value for field, value in found.items() if value}
    return PartialCase.model_validate(known | fields)


def _holds(name: str, settings: Settings) -> bool:
    """Whether a setting is put to use; AutoModel has a pipeline's even where there is none."""
    if name == "pp_microbatch_size":
        return (count(settings.get("pp_size")) or 1) > 1
    return name != "encoder_seq_length" or LIMIT not in settings


def doubts(settings: Settings) -> dict[str, str]:
    """What settings leave open: of a batch that grows they say the last size alone."""
    ramp = " ".join(re.findall(r"\w+", settings.get(RAMP, "")))
    return {} if ramp.lower() in NONE else {"global_batch_size": f"{RAMP} {ramp}"}


def shape(settings: Settings) -> dict[str, int]:
    """The sizes of the model that settings say, by the fields of a model in the catalogue."""
    return {field: size for name, field in SHAPE.items() if (size := count(settings.get(name)))}


def _field(field: str, value: str) -> dict[str, object]:
    if field in _FLAGS:
        known = value.lower() in (*_TRUE, *NONE)
        return {field: value.lower() in _TRUE} if known else {}
    if field == "virtual_pipeline" and value.lower() in NONE:
        return {field: None}
    size = count(value)
    return {field: size} if size else {}


def precision(settings: Settings) -> str | None:
    """The precision recipe that Megatron's own settings amount to; None where they do not say."""
    pairs = [(name, settings[name]) for name in precisions.NAMES if name in settings]
    return precisions.of(pairs).name


def options(settings: Settings) -> dict[str, Scalar]:
    """The options that are in use. A default that says nothing is none, so that a newer version
    that prints more of them runs the same case.
    """
    settings = _renamed(settings)
    known = {name: _option(name, settings[name]) for name in OPTIONS if name in settings}
    used = {name: value for name, value in known.items() if value is not None}
    on = {*used.items(), *((name, True) for name in _sharded(settings))}
    return {
        name: value
        for name, value in used.items()
        if name not in _ONLY_WITH or _ONLY_WITH[name] & on
    }


def _sharded(settings: Settings) -> list[str]:
    return [name for name in _FSDP if settings.get(name, "").lower() in _TRUE]


def _renamed(settings: Settings) -> Settings:
    """The settings with those by earlier names; Megatron-LM 2 recomputes all of some layers."""
    found = {new: settings[old] for old, new in EARLIER.items() if old in settings}
    of_all = ("checkpoint_activations", "activations_checkpoint_method")
    if "activations_checkpoint_granularity" not in settings and any(
        precisions.is_on(settings.get(name, "")) for name in of_all
    ):
        found["recompute_granularity"] = "full"
    held = {
        name: value
        for name, value in settings.items()
        if name not in found or precisions.is_on(value)
    }
    return found | held


def _option(name: str, printed: str) -> Scalar | None:
    """The value of an option; None for one that says nothing, or is no single word."""
    if name in _LISTS:
        # A member of an enumeration is printed as <CudaGraphScope.attn: 1>.
        found = _WORD.findall(re.sub(ITEM, " ", printed))
        words = {word.rpartition(".")[2] for word in found}
        return ",".join(sorted(word for word in words if word.lower() not in NONE)) or None
    if name == "attention_backend":  # a member of an enumeration
        printed = printed.rpartition(".")[2]
    word = printed.lower()
    if word in NONE or word == _DEFAULTS.get(name) or not _PLAIN.fullmatch(printed):
        return None
    if word == "true":
        return True
    number = finite(printed)
    return printed if number is None else count(printed) or number or None


def _virtual_pipeline(settings: Settings) -> int | None:
    """The chunks of layers on each GPU, of how many layers one has, by Megatron's arithmetic."""
    names = ("num_layers", "pipeline_model_parallel_size", "num_layers_per_virtual_pipeline_stage")
    layers, stages, of_each = (count(settings.get(name)) for name in names)
    if not layers or not stages or not of_each:
        return None
    layers += precisions.is_on(settings.get("account_for_embedding_in_pipeline_split", ""))
    layers += precisions.is_on(settings.get("account_for_loss_in_pipeline_split", ""))
    chunks, rest = divmod(layers, stages * of_each)
    return None if rest else chunks


def model(printed: str | None) -> str | None:
    """The model of a printed name; one that the catalogue lacks keeps its name, in lower case."""
    if not printed:
        return None
    return catalog.named_model(printed) or units.slug(printed) or None


def system(gpu: str | None) -> str | None:
    """The system that has a GPU of such a name."""
    known = catalog.system_of_gpu(gpu) if gpu else None
    return known.name if known else None


def gpus(settings: Settings) -> dict[str, object]:
    """The number of GPUs, of how many nodes there are and how many devices each has."""
    nodes, devices = count(settings.get("num_nodes")), count(settings.get("devices"))
    size = count(nodes * devices) if nodes and devices else None
    return {"num_gpus": size} if size else {}
