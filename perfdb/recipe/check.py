"""What makes a case impossible: every rule a layout must keep, and what to do. Pure.

A rule yields a fault for each thing wrong; the rules are independent, so all are found at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, lcm

from perfdb import catalog
from perfdb.catalog import Model, Precision, System
from perfdb.errors import suggestion
from perfdb.recipe.expand import REQUIRED, data_parallel, global_batch_size
from perfdb.recipe.model import FRAMEWORKS, OPTIONS, CaseSettings
from perfdb.record import MOST, Scalar


@dataclass(frozen=True)
class Violation:
    """A rule that a case breaks: in which field, how, and how to repair it."""

    field: str
    message: str
    remedy: str


@dataclass(frozen=True)
class CaseLayout:
    """A case's settings, with its model, its parallel sizes and its global batch size."""

    settings: CaseSettings
    model: Model
    tensor: int
    pipeline: int
    context: int
    expert: int
    data: int
    global_batch: int


def faults(settings: CaseSettings) -> list[Violation]:
    """All faults of a case: in its fields and names or, if these are right, in its layout."""
    found = [*missing(settings), *unknown_names(settings)]
    if found:
        return found
    layout = _layout(settings)
    return [fault for rule in RULES for fault in rule(layout)]


def missing(settings: CaseSettings) -> Iterator[Violation]:
    """A fault for each field that every case needs and this one lacks, or has twice."""
    for field in REQUIRED:
        if not getattr(settings, field):
            yield Violation(field, "is required and missing", "add it")
    if settings.global_batch_size and settings.global_batch_size_per_gpu:
        yield Violation("global_batch_size_per_gpu", "given beside global_batch_size", "keep one")
    if not (settings.global_batch_size or settings.global_batch_size_per_gpu):
        remedy = "give global_batch_size or global_batch_size_per_gpu"
        yield Violation("global_batch_size", "is required and missing", remedy)
    if (total := global_batch_size(settings)) > MOST:
        message = f"{settings.num_gpus} GPUs make a GBS of {total}"
        yield Violation("global_batch_size_per_gpu", message, f"make it {MOST} at most")
    if not (settings.micro_batch_size or settings.local_batch_size):
        yield Violation("micro_batch_size", "is required and missing", "add it")


def unknown_names(settings: CaseSettings) -> Iterator[Violation]:
    """A fault for each name of a case that is not in the catalogue."""
    named = [
        ("framework", settings.framework, FRAMEWORKS),
        ("model", settings.model, tuple(catalog.models())),
        ("precision", settings.precision, tuple(catalog.precisions())),
        *(("systems", name, tuple(catalog.systems())) for name in settings.systems),
    ]
    for field, name, known in named:
        if name and name not in known:
            kind = field.removesuffix("s")
            is_system = kind == "system"
            remedy = catalog.other_systems() if is_system else suggestion(name, known)
            yield Violation(field, f"no {kind} {name!r}", remedy)


def _layout(settings: CaseSettings) -> CaseLayout:
    return CaseLayout(
        settings=settings,
        model=catalog.model(settings.model or ""),
        tensor=settings.tensor_parallel or 1,
        pipeline=settings.pipeline_parallel or 1,
        context=settings.context_parallel or 1,
        expert=settings.expert_parallel or 1,
        data=data_parallel(settings),
        global_batch=global_batch_size(settings),
    )


def _world(layout: CaseLayout) -> Iterator[Violation]:
    product = layout.tensor * layout.pipeline * layout.context
    gpus = layout.settings.num_gpus or 0
    shape = f"TP {layout.tensor} × PP {layout.pipeline} × CP {layout.context} = {product}"
    if gpus < product:
        message = f"{shape} needs at least {product} GPUs, not {gpus}"
        yield Violation("num_gpus", message, f"use {product} GPUs, or a smaller layout")
    elif gpus % product:
        remedy = f"use a multiple of {product} GPUs, or a smaller layout"
        yield Violation("num_gpus", f"{shape} does not divide {gpus} GPUs", remedy)


def _nodes(layout: CaseLayout) -> Iterator[Violation]:
    gpus = layout.settings.num_gpus or 0
    for system in map(catalog.system, layout.settings.systems):
        per_node = system.gpus_per_node
        if per_node and gpus > per_node and gpus % per_node:
            yield Violation(
                "num_gpus",
                f"{gpus} GPUs are not whole nodes of {system.name}, which has {per_node} each",
                f"use a multiple of {per_node}",
            )


def _batch(layout: CaseLayout) -> Iterator[Violation]:
    settings = layout.settings
    field = "local_batch_size" if settings.local_batch_size else "micro_batch_size"
    name = "LBS" if settings.local_batch_size else "MBS"
    size = settings.local_batch_size or settings.micro_batch_size or 1
    if layout.data and layout.global_batch % (size * layout.data):
        yield Violation(
            field,
            f"{name} {size} × DP {layout.data} does not divide GBS {layout.global_batch}: the "
            "gradient accumulation would not be whole",
            f"make GBS a multiple of {size * layout.data}",
        )


def _pipeline(layout: CaseLayout) -> Iterator[Violation]:
    layers, stages = layout.model.num_layers, layout.pipeline
    virtual = layout.settings.virtual_pipeline or 1
    if virtual > 1 and stages == 1:
        remedy = "set pipeline_parallel, or remove virtual_pipeline"
        yield Violation("virtual_pipeline", f"VP {virtual} needs a pipeline, and PP is 1", remedy)
    elif layers % (stages * virtual):
        yield Violation(
            "virtual_pipeline" if virtual > 1 else "pipeline_parallel",
            f"PP {stages} × VP {virtual} does not divide the {layers} layers of "
            f"{layout.model.name}",
            f"choose PP × VP among the divisors of {layers}",
        )


def _interleaving(layout: CaseLayout) -> Iterator[Violation]:
    """The interleaved schedule's own needs, as Megatron-LM's arguments.py states them.

    Batched messages with two stages, measured with megatron-core 0.16.1: no error, and a gradient
    norm of 3.78 instead of 0.95. The neighbors on both sides are one rank, and messages mix up.
    """
    settings = layout.settings
    virtual, stages = settings.virtual_pipeline or 1, layout.pipeline
    if virtual == 1 or stages == 1:
        return
    if settings.options.get("batch_p2p_comm") is True and stages == 2:
        yield Violation(
            "options",
            "batch_p2p_comm with VP and PP 2 trains with wrong gradients, silently",
            "remove batch_p2p_comm, or use PP above 2",
        )
    micro = layout.data * (settings.micro_batch_size or 1)
    if layout.data and (layout.global_batch // micro) % stages:
        yield Violation(
            "global_batch_size",
            f"{layout.global_batch // micro} micro-batches are not a multiple of PP {stages}, "
            "which the interleaved schedule needs",
            f"make GBS a multiple of {micro * stages}",
        )


def _tensor(layout: CaseLayout) -> Iterator[Violation]:
    model, size = layout.model, layout.tensor
    shared = model.moe_shared_expert_ffn_hidden_size or 0
    for what, count in (
        (f"{model.num_attention_heads} attention heads", model.num_attention_heads),
        (f"FFN width {model.ffn_hidden_size}", model.ffn_hidden_size),
        (f"shared expert width {shared}", shared),
        (f"vocabulary of {model.vocab_size}", model.vocab_size or size),
    ):
        if count % size:
            remedy = f"choose TP among the divisors of {count}"
            message = f"TP {size} does not divide the {what} of {model.name}"
            yield Violation("tensor_parallel", message, remedy)
    groups = model.num_query_groups
    if groups % size and size % groups:
        remedy = f"choose TP among the divisors or multiples of {groups}"
        message = f"TP {size} and the {groups} query groups of {model.name} do not divide"
        yield Violation("tensor_parallel", message, remedy)


def _sequence(layout: CaseLayout) -> Iterator[Violation]:
    length = layout.settings.sequence_length or 0
    if layout.settings.sequence_parallel and layout.tensor == 1:
        remedy = "set tensor_parallel, or remove sequence_parallel"
        yield Violation("sequence_parallel", "SP splits over TP, and TP is 1", remedy)
    pieces = 2 * layout.context if layout.context > 1 else 1
    if layout.settings.sequence_parallel:
        pieces = lcm(pieces, layout.context * layout.tensor)
    if length % pieces:
        yield Violation(
            "sequence_length",
            f"{length} tokens cannot be cut into {pieces} pieces (2 × CP, and CP × TP with SP)",
            f"use a multiple of {pieces}",
        )


def _experts(layout: CaseLayout) -> Iterator[Violation]:
    model, settings, size = layout.model, layout.settings, layout.expert
    expert_tensor = settings.expert_tensor_parallel
    if not model.num_experts:
        for field, is_set in (
            ("expert_parallel", size > 1),
            ("expert_tensor_parallel", expert_tensor),
        ):
            if is_set:
                yield Violation(field, f"{model.name} has no experts", f"remove {field}")
        return
    if model.num_experts % size:
        remedy = f"choose EP among the divisors of {model.num_experts}"
        message = f"EP {size} does not divide the {model.num_experts} experts of {model.name}"
        yield Violation("expert_parallel", message, remedy)
    expert_tensor, width = expert_tensor or layout.tensor, model.moe_ffn_hidden_size or 0
    if width % expert_tensor:
        remedy = f"choose ETP among the divisors of {width}"
        message = (
            f"ETP {expert_tensor} does not divide the expert FFN width {width} of {model.name}"
        )
        yield Violation("expert_tensor_parallel", message, remedy)
    product = size * expert_tensor * layout.pipeline
    if settings.framework == "megatron-core" and (settings.num_gpus or 0) % product:
        yield Violation(
            "expert_parallel",
            f"EP {size} × ETP {expert_tensor} × PP {layout.pipeline} = {product} "
            f"does not divide {settings.num_gpus} GPUs",
            "use a smaller EP, or set expert_tensor_parallel to 1",
        )


def _expert_tensor(layout: CaseLayout) -> Iterator[Violation]:
    """Megatron-Core trains wrongly here, without an error.

    It marks expert weights as such only with EP > 1, else it reduces and broadcasts them like
    dense ones. Measured with 0.16.1: wrong gradients (TP 2, ETP 1), or wrong weights from the
    start (TP 1, ETP 2).
    """
    size = layout.settings.expert_tensor_parallel
    if layout.model.num_experts and layout.expert == 1 and size and size != layout.tensor:
        yield Violation(
            "expert_tensor_parallel",
            f"ETP {size} with TP {layout.tensor} and EP 1 trains wrongly, silently",
            "use EP above 1, or make ETP equal to TP",
        )


def _experts_with_tensor(layout: CaseLayout) -> Iterator[Violation]:
    """Megatron-Core's MoE layer refuses TP without SP in training."""
    settings = layout.settings
    if (
        layout.model.num_experts
        and settings.framework == "megatron-core"
        and layout.tensor > 1
        and not settings.sequence_parallel
    ):
        message = "experts with TP need sequence parallelism"
        yield Violation("sequence_parallel", message, "set sequence_parallel: true")


def _precision(layout: CaseLayout) -> Iterator[Violation]:
    recipe = catalog.precisions()[layout.settings.precision or ""]
    for system in map(catalog.system, layout.settings.systems):
        if not _runs(system, recipe):
            known = catalog.precisions().values()
            remedy = f"use one of {', '.join(one.name for one in known if _runs(system, one))}"
            yield Violation("precision", f"{system.name} has no {recipe.title}", remedy)


def _runs(system: System, precision: Precision) -> bool:
    """Whether a system has the units of a precision; of one without peaks it is not known."""
    return not system.peaks or {precision.peak, precision.needs} - {None} <= system.peaks.keys()


def _fsdp(layout: CaseLayout) -> Iterator[Violation]:
    size = layout.settings.fsdp_size
    if size and layout.data * layout.context % size:
        yield Violation(
            "fsdp_size",
            f"FSDP {size} does not divide DP × CP = {layout.data * layout.context}",
            "choose a divisor",
        )


def _options(layout: CaseLayout) -> Iterator[Violation]:
    framework = layout.settings.framework or ""
    known = OPTIONS[framework]
    for name, value in layout.settings.options.items():
        if name not in known:
            remedy = suggestion(name, known) if known else "it has none"
            yield Violation("options", f"no option {name!r} of {framework}", remedy)
            continue
        choices = known[name]
        if not (_chosen(value, choices) if choices else _is_positive(value)):
            expected = ", ".join(map(_in_yaml, choices)) or "a number above 0, such as 1.0e-3"
            yield Violation("options", f"{name} cannot be {value!r}", f"use {expected}")


def _chosen(value: Scalar, choices: tuple[object, ...]) -> bool:
    """To Python 1 is True; to the framework it is no answer to whether."""
    return any(value == choice and type(value) is type(choice) for choice in choices)


def _is_positive(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf


def _in_yaml(choice: object) -> str:
    return str(choice).lower()


Rule = Callable[[CaseLayout], Iterator[Violation]]
RULES: tuple[Rule, ...] = (
    _world,
    _nodes,
    _batch,
    _pipeline,
    _interleaving,
    _tensor,
    _sequence,
    _experts,
    _expert_tensor,
    _experts_with_tensor,
    _precision,
    _fsdp,
    _options,
)
