"""The settings that a program prints, as `name=value` or `name: value`, and the case they state.

A program may print its settings before and after it overrides them: the last dump counts. A setting
with several values in one dump is left out: which one the run had is unknown.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import Final

from perfdb import catalog, fields, units
from perfdb.formats import precision
from perfdb.formats.base import ParsedLog
from perfdb.formats.numbers import count, finite
from perfdb.formats.precision import NONE, Pair
from perfdb.record import PartialCase, Scalar

Settings = Mapping[str, str]
Setting = tuple[str, Scalar]

_DUMPS: Final = (
    re.compile(r"arguments ----(?<=---- arguments ----)"),
    re.compile(r"ConfigContainer\b"),
    re.compile(r"Final Merged Configuration --"),
    re.compile(r"Task Configuration --"),
    re.compile(r"Experiment_details:"),
)
"""What programs print above all of their settings. A pattern that begins with a literal is fast."""

NAMES: Final = fields.by_argument()
"""The fields of a case, by what programs call them."""

ADAPTER: Final = "peft"
"""What Megatron-Bridge and NeMo call the adapter that they train."""

LIMIT: Final = "max_seq_length"
"""Up to how long samples may be where NeMo 1 fine-tunes; its sequences have no one length."""

RAMP: Final = "rampup_batch_size"
"""The batch size that a run begins with, by how much it grows, and over how many samples."""

_SIZES: Final = (
    "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_experts",
)  # fmt: skip
SHAPE: Final = {**dict(zip(_SIZES, _SIZES, strict=True)), "num_moe_experts": "num_experts"}
"""The fields of a model in the catalog, by what programs call them."""

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
"""Settings that change a run's speed and are no field of a case: its options."""

_LISTS: Final = frozenset({"recompute_modules", "cuda_graph_scope", "offload_modules"})
_DEFAULTS: Final = {
    "moe_token_dispatcher_type": "allgather",
    "attention_backend": "auto",
    "data_parallel_sharding_strategy": "no_shard",
}
"""What programs print of every run, also of one without experts."""
_OFFLOADED: Final[set[Setting]] = {("optimizer_cpu_offload", True)}
_FSDP: Final = ("use_megatron_fsdp", "use_custom_fsdp", "use_torch_fsdp2")
"""One of these, which are printed together, is on."""
_FULL: Final[set[Setting]] = {("recompute_granularity", "full")}
_PROFILED: Final[set[Setting]] = {
    ("profile", True), ("use_nsys_profiler", True), ("use_pytorch_profiler", True),
}  # fmt: skip
_ONLY_WITH: Final[Mapping[str, set[Setting]]] = {
    "optimizer_offload_fraction": _OFFLOADED,
    "overlap_cpu_optimizer_d2h_h2d": _OFFLOADED,
    "offload_modules": {("fine_grained_activation_offloading", True)},
    "data_parallel_sharding_strategy": {(name, True) for name in _FSDP},
    "recompute_method": _FULL,
    "recompute_num_layers": _FULL,
    "recompute_modules": {("recompute_granularity", "selective"), ("recompute_activations", True)},
    "cuda_graph_scope": {
        ("cuda_graph_impl", "local"),
        ("cuda_graph_impl", "transformer_engine"),
        ("enable_cuda_graph", True),
        ("external_cuda_graph", True),
    },
    "moe_flex_dispatcher_backend": {("moe_token_dispatcher_type", "flex")},
    "profile_step_start": _PROFILED,
    "profile_step_end": _PROFILED,
}
"""Options with a default, which says nothing unless one of these other options uses it."""

_FLAGS: Final = frozenset({"sequence_parallel", "fsdp_enabled"})
_TRUE: Final = ("true", "1")
_WORD: Final = re.compile(r"[A-Za-z_][\w.]*")
_ITEM: Final = r"\n[ \t]*- "
"""The start of an item of a list on lines of its own."""
_PLAIN: Final = re.compile(r"[\w.\-]{1,64}")

_DOUBTFUL: Final[Mapping[str, str]] = {
    **NAMES, "num_nodes": "num_gpus", "devices": "num_gpus", ADAPTER: "task",
    **{name: name for name in OPTIONS},
}  # fmt: skip
"""The fields and options of a case, by the settings that state them."""

_PREFIX: Final = re.compile(r"(?m)^(?: *\d+: |\[\w+\]:|[\w.\-]{1,40}/\d+ )+")
"""What srun, torchrun and NeMo-Run put in front of each line."""
_ENABLED: Final = r"(?:\n(?P<depth>[ \t]++)(?:[^\n]*+\n(?P=depth)){0,99}?enabled:[ \t]*)"
"""AutoModel has `enabled` in a group of a setting, at any place."""
_BACKEND: Final = re.compile(
    r"backend(?<!\wbackend):[ \t]*\n(?P<depth>[ \t]++)[^\n]*(?:\n(?P=depth)[^\n]*)*+"
)
"""AutoModel's group of the kernels of a model."""


def _setting(name: str, value: str, between: str = r"['\"]?[ \t]*[=:][ \t]*") -> re.Pattern[str]:
    # The look behind is after the name: a pattern that begins with a literal is found at once.
    return re.compile(rf"({name})(?<!\w{name}){between}{value}")


@cache
def _mentioned() -> tuple[re.Pattern[str], ...]:
    """What finds a mention of each setting; made where a text is searched, which takes 20 ms."""
    return (
        *(
            _setting(name, r"['\"]?([\w.\-]+)", r"['\"]?\s*[=:]\s*")
            for name in (*NAMES, *SHAPE, "num_nodes", "devices", LIMIT)
        ),
        *(
            _setting(name, rf"{_ENABLED}?['\"]?([\w.\-]+)")
            for name in precision.NAMES
            if name not in (*precision.RECIPES_OF, "torch_dtype")
        ),
        # In quotes it is that of a checkpoint, which transformers prints.
        re.compile(r"(torch_dtype)(?<![\w'\"]torch_dtype)[ \t]*[=:][ \t]*['\"]?([\w.\-]+)"),
        *(_setting(name, rf"['\"]?({words})\b") for name, words in precision.RECIPES_OF.items()),
        # The class of a group, where its recipe is left out.
        re.compile(r"(te_fp8):[ \t]*\n[ \t]+(_target_|recipe):"),
        re.compile(rf"(compile)(?<!\wcompile):[ \t]*{_ENABLED}([\w.\-]+)"),
        # A class or its short name, as `peft=<Config[LoRA(…` or in a group of its own; or none.
        _setting(
            ADAPTER,
            r"(?:<\w+\[)?['\"]?((?i:(?:[\w.]*LoRA|null|none)\b))",
            r"(?:_scheme)?['\"]?[ \t]*[=:](?:\s*_target_:)?[ \t]*",
        ),
        # A value on the same line, or a list.
        *(
            _setting(name, rf"['\"]?(\[[^\]\n]*\]|[\w.\-]+|(?:{_ITEM}[\w.]+)+)")
            for name in (*OPTIONS, RAMP)
            # Which any text may have: they count in a dump of arguments, or in their own group.
            if name not in ("profile", "compile")
        ),
    )


def mentions(text: str) -> list[Pair]:
    """The settings that a text mentions as `name=value` or `name: value`, in their order."""
    text = _BACKEND.sub(_with_names, _PREFIX.sub("", text))
    found = (one for pattern in _mentioned() for one in pattern.finditer(text))
    return [(one[1], one.groups()[-1]) for one in sorted(found, key=lambda one: one.start())]


def _with_names(backend: re.Match[str]) -> str:
    """The same group, its kernels under the names that AutoModel's CI gives them."""
    kernels = rf"(?<=\n{backend['depth']})(?=(?:attn|linear|experts|dispatcher):)"
    return re.sub(kernels, "backend_", backend[0])


def described(
    text: str, known: Mapping[str, object], read: Callable[[str], list[Pair]] = mentions
) -> ParsedLog:
    """What the settings in a text state of a run, and what they leave open.

    `known`: fields that are known without them. A later dump replaces an earlier one.
    """
    starts = sorted(found.start() for dump in _DUMPS for found in dump.finditer(text))
    dumps = [read(text[start:stop]) for start, stop in pairwise([0, *starts, len(text)])]
    values: dict[str, tuple[str, ...]] = {}
    for pairs in dumps:
        values |= _values(pair for pair in pairs if pair[0] not in precision.NAMES)
    settings = {name: found[0] for name, found in values.items() if len(found) == 1}
    low = _precision(dumps)
    case = configuration(settings, **({"precision": low.name} if low.name else {}), **known)
    stated = {*case.model_fields_set, *(case.options or ())}
    open_ = {
        field: f"{name} {' and '.join(found)}"
        for name, field in _DOUBTFUL.items()
        if len(found := values.get(name, ())) > 1 and field not in stated
    }
    open_ |= doubts(settings) | ({"precision": low.doubt} if low.doubt else {})
    return ParsedLog(case, shape=shape(settings), doubts=open_)


def _values(pairs: Iterable[Pair]) -> dict[str, tuple[str, ...]]:
    """The values of each setting, in their order; the first of those that mean the same."""
    values: dict[str, dict[str, str]] = {}
    for name, value in pairs:
        word = value.lower()
        values.setdefault(name, {}).setdefault("" if word in NONE else word, value)
    return {name: tuple(found.values()) for name, found in values.items()}


def _precision(dumps: Sequence[Sequence[Pair]]) -> precision.StatedPrecision:
    """The precision of the last dump that claims one, and of what is behind it."""
    own = [[pair for pair in pairs if pair[0] in precision.NAMES] for pairs in dumps]
    claiming = [place for place, pairs in enumerate(own) if precision.claims(pairs)]
    return precision.of([*chain(*own[claiming[-1] if claiming else 0 :])])


def configuration(settings: Settings, **known: object) -> PartialCase:
    """What settings say of a case; `known` are fields of it that are known without them."""
    nodes, devices = count(settings.get("num_nodes")), count(settings.get("devices"))
    stated: dict[str, object] = {
        "num_gpus": count(nodes * devices) if nodes and devices else None,
        "fsdp_enabled": any(_is_true(settings, name) for name in _FSDP),
        "task": "lora" if precision.is_on(settings.get(ADAPTER, "")) else None,
        "precision": precision.of([(n, settings[n]) for n in precision.NAMES if n in settings])[0],
        "options": options(settings),
    }
    found = {name: value for name, value in stated.items() if value} | known
    for name, field in NAMES.items():
        value = settings.get(name)
        if value is None or field in (*found, *doubts(settings)) or not _is_used(name, settings):
            continue
        found |= _field(field, value)
    chunks = _virtual_pipeline(settings)
    return PartialCase.model_validate(({"virtual_pipeline": chunks} if chunks else {}) | found)


def _virtual_pipeline(settings: Settings) -> int | None:
    """The chunks of layers on each GPU, from the layers of a chunk, by Megatron's arithmetic."""
    names = ("num_layers", "pipeline_model_parallel_size", "num_layers_per_virtual_pipeline_stage")
    layers, stages, of_each = (count(settings.get(name)) for name in names)
    if not layers or not stages or not of_each or layers % (stages * of_each):
        return None
    return layers // (stages * of_each)


def _is_used(name: str, settings: Settings) -> bool:
    """Whether a setting has an effect; AutoModel has a pipeline's even where there is none."""
    if name == "pp_microbatch_size":
        return (count(settings.get("pp_size")) or 1) > 1
    return name != "encoder_seq_length" or LIMIT not in settings


def _field(field: str, value: str) -> dict[str, object]:
    """A field of a case as a setting prints it; nothing for what is no such value."""
    if field in _FLAGS:
        return {field: value.lower() in _TRUE} if value.lower() in (*_TRUE, *NONE) else {}
    size = count(value)
    is_none = field == "virtual_pipeline" and value.lower() in NONE
    return {field: size} if size or is_none else {}


def doubts(settings: Settings) -> dict[str, str]:
    """What settings leave open: of a batch that grows they state only the last size."""
    ramp = " ".join(re.findall(r"\w+", settings.get(RAMP, "")))
    return {} if ramp.lower() in NONE else {"global_batch_size": f"{RAMP} {ramp}"}


def shape(settings: Settings) -> dict[str, int]:
    """The sizes of the model that settings state, by the fields of a model in the catalog."""
    return {field: size for name, field in SHAPE.items() if (size := count(settings.get(name)))}


def options(settings: Settings) -> dict[str, Scalar]:
    """The options that are in use.

    A default without effect is left out, so that a newer version that prints more of them runs
    the same case.
    """
    known = {name: _option(name, settings[name]) for name in OPTIONS if name in settings}
    used = {name: value for name, value in known.items() if value is not None}
    on = {*used.items(), *((name, True) for name in _FSDP if _is_true(settings, name))}
    return {name: one for name, one in used.items() if _ONLY_WITH.get(name, on) & on}


def _is_true(settings: Settings, name: str) -> bool:
    return settings.get(name, "").lower() in _TRUE


def _option(name: str, printed: str) -> Scalar | None:
    """The value of an option; None for one that says nothing, or is no single word."""
    if name in _LISTS:
        # A member of an enumeration is printed as <CudaGraphScope.attn: 1>.
        found = _WORD.findall(re.sub(_ITEM, " ", printed))
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


def model(printed: str | None) -> str | None:
    """The model of a printed name; one that the catalog lacks keeps its name, in lower case."""
    if not printed:
        return None
    return catalog.named_model(printed) or units.slug(printed) or None


def system(gpu: str | None) -> str | None:
    """The system that has a GPU of such a name."""
    known = catalog.system_of_gpu(gpu) if gpu else None
    return known.name if known else None
