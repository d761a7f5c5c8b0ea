"""What makes a case impossible: every rule a layout must keep, and what to do. Pure.

A rule yields a fault for each thing wrong; the rules are independent, so all are found at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import lcm

from perfdb import catalog
from perfdb.catalog import Model, Precision, System
from perfdb.recipe.expand import data_parallel, global_batch_size
from perfdb.recipe.fields import Fault, missing, unknown_names
from perfdb.recipe.model import Settings
from perfdb.recipe.options import wrong_options


@dataclass(frozen=True)
class Subject:
    """A case's settings, with its model, its parallel sizes and its global batch size."""

    settings: Settings
    model: Model
    tensor: int
    pipeline: int
    context: int
    expert: int
    data: int
    global_batch: int


def faults(settings: Settings) -> list[Fault]:
    """All faults of a case: in its fields and names or, if these are right, in its layout."""
    found = [*missing(settings), *unknown_names(settings)]
    if found:
        return found
    subject = _subject(settings)
    return [fault for rule in RULES for fault in rule(subject)]


def _subject(settings: Settings) -> Subject:
    return Subject(
        settings=settings,
        model=catalog.model(settings.model or ""),
        tensor=settings.tensor_parallel or 1,
        pipeline=settings.pipeline_parallel or 1,
        context=settings.context_parallel or 1,
        expert=settings.expert_parallel or 1,
        data=data_parallel(settings),
        global_batch=global_batch_size(settings),
    )


def _world(subject: Subject) -> Iterator[Fault]:
    product = subject.tensor * subject.pipeline * subject.context
    gpus = subject.settings.num_gpus or 0
    layout = f"TP {subject.tensor} × PP {subject.pipeline} × CP {subject.context} = {product}"
    if gpus < product:
        message = f"{layout} needs at least {product} GPUs, not {gpus}"
        yield Fault("num_gpus", message, f"use {product} GPUs, or a smaller layout")
    elif gpus % product:
        remedy = f"use a multiple of {product} GPUs, or a smaller layout"
        yield Fault("num_gpus", f"{layout} does not divide {gpus} GPUs", remedy)


def _nodes(subject: Subject) -> Iterator[Fault]:
    gpus = subject.settings.num_gpus or 0
    for system in map(catalog.system, subject.settings.systems):
        per_node = system.gpus_per_node
        if per_node and gpus > per_node and gpus % per_node:
            yield Fault(
                "num_gpus",
                f"{gpus} GPUs are not whole nodes of {system.name}, which has {per_node} each",
                f"use a multiple of {per_node}",
            )


def _batch(subject: Subject) -> Iterator[Fault]:
    settings = subject.settings
    field = "local_batch_size" if settings.local_batch_size else "micro_batch_size"
    name = "LBS" if settings.local_batch_size else "MBS"
    size = settings.local_batch_size or settings.micro_batch_size or 1
    if subject.data and subject.global_batch % (size * subject.data):
        yield Fault(
            field,
            f"{name} {size} × DP {subject.data} does not divide GBS {subject.global_batch}: the "
            "gradient accumulation would not be whole",
            f"make GBS a multiple of {size * subject.data}",
        )


def _pipeline(subject: Subject) -> Iterator[Fault]:
    layers, stages = subject.model.num_layers, subject.pipeline
    virtual = subject.settings.virtual_pipeline or 1
    if virtual > 1 and stages == 1:
        remedy = "set pipeline_parallel, or remove virtual_pipeline"
        yield Fault("virtual_pipeline", f"VP {virtual} needs a pipeline, and PP is 1", remedy)
    elif layers % (stages * virtual):
        yield Fault(
            "virtual_pipeline" if virtual > 1 else "pipeline_parallel",
            f"PP {stages} × VP {virtual} does not divide the {layers} layers of "
            f"{subject.model.name}",
            f"choose PP × VP among the divisors of {layers}",
        )


def _interleaving(subject: Subject) -> Iterator[Fault]:
    """The interleaved schedule's own needs, as Megatron-LM's arguments.py states them."""
    settings = subject.settings
    virtual, stages = settings.virtual_pipeline or 1, subject.pipeline
    if virtual == 1 or stages == 1:
        return
    if settings.options.get("batch_p2p_comm") is True and stages == 2:
        yield Fault(
            "options",
            "batch_p2p_comm with VP and PP 2 trains with wrong gradients, silently",
            "remove batch_p2p_comm, or use PP above 2",
        )
    micro = subject.data * (settings.micro_batch_size or 1)
    if subject.data and (subject.global_batch // micro) % stages:
        yield Fault(
            "global_batch_size",
            f"{subject.global_batch // micro} micro-batches are not a multiple of PP {stages}, "
            "which the interleaved schedule needs",
            f"make GBS a multiple of {micro * stages}",
        )


def _tensor(subject: Subject) -> Iterator[Fault]:
    model, size = subject.model, subject.tensor
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
            yield Fault("tensor_parallel", message, remedy)
    groups = model.num_query_groups
    if groups % size and size % groups:
        remedy = f"choose TP among the divisors or multiples of {groups}"
        message = f"TP {size} and the {groups} query groups of {model.name} do not divide"
        yield Fault("tensor_parallel", message, remedy)


def _sequence(subject: Subject) -> Iterator[Fault]:
    length = subject.settings.sequence_length or 0
    if subject.settings.sequence_parallel and subject.tensor == 1:
        remedy = "set tensor_parallel, or remove sequence_parallel"
        yield Fault("sequence_parallel", "SP splits over TP, and TP is 1", remedy)
    pieces = 2 * subject.context if subject.context > 1 else 1
    if subject.settings.sequence_parallel:
        pieces = lcm(pieces, subject.context * subject.tensor)
    if length % pieces:
        yield Fault(
            "sequence_length",
            f"{length} tokens cannot be cut into {pieces} pieces (2 × CP, and CP × TP with SP)",
            f"use a multiple of {pieces}",
        )


def _experts(subject: Subject) -> Iterator[Fault]:
    model, settings, size = subject.model, subject.settings, subject.expert
    expert_tensor = settings.expert_tensor_parallel
    if not model.num_experts:
        for field, given in (
            ("expert_parallel", size > 1),
            ("expert_tensor_parallel", expert_tensor),
        ):
            if given:
                yield Fault(field, f"{model.name} has no experts", f"remove {field}")
        return
    if model.num_experts % size:
        remedy = f"choose EP among the divisors of {model.num_experts}"
        message = f"EP {size} does not divide the {model.num_experts} experts of {model.name}"
        yield Fault("expert_parallel", message, remedy)
    expert_tensor, width = expert_tensor or subject.tensor, model.moe_ffn_hidden_size or 0
    if width % expert_tensor:
        remedy = f"choose ETP among the divisors of {width}"
        message = (
            f"ETP {expert_tensor} does not divide the expert FFN width {width} of {model.name}"
        )
        yield Fault("expert_tensor_parallel", message, remedy)
    product = size * expert_tensor * subject.pipeline
    if settings.framework == "megatron-core" and (settings.num_gpus or 0) % product:
        yield Fault(
            "expert_parallel",
            f"EP {size} × ETP {expert_tensor} × PP {subject.pipeline} = {product} "
            f"does not divide {settings.num_gpus} GPUs",
            "use a smaller EP, or set expert_tensor_parallel to 1",
        )


def _expert_tensor(subject: Subject) -> Iterator[Fault]:
    """Megatron-Core trains wrongly here, without an error: shards of experts are broadcast."""
    size = subject.settings.expert_tensor_parallel
    if subject.model.num_experts and subject.expert == 1 and size and size != subject.tensor:
        yield Fault(
            "expert_tensor_parallel",
            f"ETP {size} with TP {subject.tensor} and EP 1 trains wrongly, silently",
            "use EP above 1, or make ETP equal to TP",
        )


def _experts_with_tensor(subject: Subject) -> Iterator[Fault]:
    """Megatron-Core's MoE layer refuses TP without SP in training."""
    settings = subject.settings
    if (
        subject.model.num_experts
        and settings.framework == "megatron-core"
        and subject.tensor > 1
        and not settings.sequence_parallel
    ):
        message = "experts with TP need sequence parallelism"
        yield Fault("sequence_parallel", message, "set sequence_parallel: true")


def _precision(subject: Subject) -> Iterator[Fault]:
    recipe = catalog.precisions()[subject.settings.precision or ""]
    for system in map(catalog.system, subject.settings.systems):
        if not _runs(system, recipe):
            known = catalog.precisions().values()
            remedy = f"use one of {', '.join(one.name for one in known if _runs(system, one))}"
            yield Fault("precision", f"{system.name} has no {recipe.title}", remedy)


def _runs(system: System, precision: Precision) -> bool:
    """Whether a system has the units of a precision; of one without peaks it is not known."""
    return not system.peaks or {precision.peak, precision.needs} - {None} <= system.peaks.keys()


def _fsdp(subject: Subject) -> Iterator[Fault]:
    size = subject.settings.fsdp_size
    if size and subject.data * subject.context % size:
        yield Fault(
            "fsdp_size",
            f"FSDP {size} does not divide DP × CP = {subject.data * subject.context}",
            "choose a divisor",
        )


def _options(subject: Subject) -> Iterator[Fault]:
    settings = subject.settings
    for message, remedy in wrong_options(settings.framework or "", settings.options):
        yield Fault("options", message, remedy)


Rule = Callable[[Subject], Iterator[Fault]]
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
