"""What makes a case impossible: every rule a layout must keep, and what to do. Pure.

A rule yields a violation for each thing wrong; the rules are independent, so all are found at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, lcm

from perfdb import catalog
from perfdb.catalog import Model
from perfdb.errors import suggestion
from perfdb.recipe.expand import data_parallel, global_batch_size
from perfdb.recipe.model import OPTIONS, CaseSettings
from perfdb.record import MOST, Scalar

REQUIRED = ("framework", "model", "num_gpus", "precision", "sequence_length", "systems")


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
    gpus: int
    tensor: int
    pipeline: int
    virtual: int
    context: int
    expert: int
    data: int
    global_batch: int


Violations = Iterator[Violation]


def faults(settings: CaseSettings) -> list[Violation]:
    """What a case lacks or, if that is nothing, the rules that its layout breaks."""
    if lacking := [*_missing(settings)]:
        return lacking
    layout = CaseLayout(
        settings=settings,
        model=catalog.model(settings.model or ""),
        gpus=settings.num_gpus or 0,
        tensor=settings.tensor_parallel,
        pipeline=settings.pipeline_parallel,
        virtual=settings.virtual_pipeline or 1,
        context=settings.context_parallel,
        expert=settings.expert_parallel,
        data=data_parallel(settings),
        global_batch=global_batch_size(settings),
    )
    return [violation for rule in RULES for violation in rule(layout)]


def _missing(settings: CaseSettings) -> Violations:
    """The fields that every case needs and this one lacks, or has twice."""
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


def _world(it: CaseLayout) -> Violations:
    product = it.tensor * it.pipeline * it.context
    shape = f"TP {it.tensor} × PP {it.pipeline} × CP {it.context} = {product}"
    if it.gpus < product:
        message = f"{shape} needs at least {product} GPUs, not {it.gpus}"
        yield Violation("num_gpus", message, f"use {product} GPUs, or a smaller layout")
    elif it.gpus % product:
        remedy = f"use a multiple of {product} GPUs, or a smaller layout"
        yield Violation("num_gpus", f"{shape} does not divide {it.gpus} GPUs", remedy)


def _nodes(it: CaseLayout) -> Violations:
    for name in it.settings.systems:
        per_node = catalog.system(name).gpus_per_node
        if per_node and it.gpus > per_node and it.gpus % per_node:
            message = f"{it.gpus} GPUs are not whole nodes of {name}, which has {per_node} each"
            yield Violation("num_gpus", message, f"use a multiple of {per_node}")


def _batch(it: CaseLayout) -> Violations:
    local = it.settings.local_batch_size
    field, name = ("local_batch_size", "LBS") if local else ("micro_batch_size", "MBS")
    size = local or it.settings.micro_batch_size or 1
    if it.data and it.global_batch % (size * it.data):
        yield Violation(
            field,
            f"{name} {size} × DP {it.data} does not divide GBS {it.global_batch}: the "
            "gradient accumulation would not be whole",
            f"make GBS a multiple of {size * it.data}",
        )


def _pipeline(it: CaseLayout) -> Violations:
    layers, field = it.model.num_layers, "virtual_pipeline"
    if it.virtual > 1 and it.pipeline == 1:
        remedy = "set pipeline_parallel, or remove virtual_pipeline"
        yield Violation(field, f"VP {it.virtual} needs a pipeline, and PP is 1", remedy)
    elif layers % (it.pipeline * it.virtual):
        yield Violation(
            field if it.virtual > 1 else "pipeline_parallel",
            f"PP {it.pipeline} × VP {it.virtual} does not divide the {layers} layers of "
            f"{it.model.name}",
            f"choose PP × VP among the divisors of {layers}",
        )


def _interleaving(it: CaseLayout) -> Violations:
    """The interleaved schedule's own needs, as Megatron-LM's arguments.py states them.

    Batched messages with two stages, measured with megatron-core 0.16.1: no error, and a gradient
    norm of 3.78 instead of 0.95. The neighbors on both sides are one rank, and messages mix up.
    """
    if it.virtual == 1 or it.pipeline == 1:
        return
    if it.settings.options.get("batch_p2p_comm") is True and it.pipeline == 2:
        message = "batch_p2p_comm with VP and PP 2 trains with wrong gradients, silently"
        yield Violation("options", message, "remove batch_p2p_comm, or use PP above 2")
    micro = it.data * (it.settings.micro_batch_size or 1)
    if it.data and (it.global_batch // micro) % it.pipeline:
        yield Violation(
            "global_batch_size",
            f"{it.global_batch // micro} micro-batches are not a multiple of PP {it.pipeline}, "
            "which the interleaved schedule needs",
            f"make GBS a multiple of {micro * it.pipeline}",
        )


def _tensor(it: CaseLayout) -> Violations:
    model, size, field = it.model, it.tensor, "tensor_parallel"
    shared = model.moe_shared_expert_ffn_hidden_size or 0
    for what, count in (
        (f"{model.num_attention_heads} attention heads", model.num_attention_heads),
        (f"FFN width {model.ffn_hidden_size}", model.ffn_hidden_size),
        (f"shared expert width {shared}", shared),
        (f"vocabulary of {model.vocab_size}", model.vocab_size or size),
    ):
        if count % size:
            remedy = f"choose TP among the divisors of {count}"
            yield Violation(field, f"TP {size} does not divide the {what} of {model.name}", remedy)
    groups = model.num_query_groups
    if groups % size and size % groups:
        remedy = f"choose TP among the divisors or multiples of {groups}"
        message = f"TP {size} and the {groups} query groups of {model.name} do not divide"
        yield Violation(field, message, remedy)


def _sequence(it: CaseLayout) -> Violations:
    length, split = it.settings.sequence_length or 0, it.settings.sequence_parallel
    if split and it.tensor == 1:
        remedy = "set tensor_parallel, or remove sequence_parallel"
        yield Violation("sequence_parallel", "SP splits over TP, and TP is 1", remedy)
    pieces = 2 * it.context if it.context > 1 else 1
    if split:
        pieces = lcm(pieces, it.context * it.tensor)
    if length % pieces:
        message = f"{length} tokens cannot be cut into {pieces} pieces"
        yield Violation(
            "sequence_length",
            f"{message} (2 × CP, and CP × TP with SP)",
            f"use a multiple of {pieces}",
        )


def _experts(it: CaseLayout) -> Violations:
    """Experts divide over ranks. Megatron-Core's MoE layer refuses TP without SP in training.

    It marks expert weights as such only with EP > 1, else it reduces and broadcasts them like
    dense ones. Measured with 0.16.1: wrong gradients (TP 2, ETP 1), or wrong weights from the
    start (TP 1, ETP 2), without an error.
    """
    model, settings, field = it.model, it.settings, "expert_tensor_parallel"
    size, own, experts = it.expert, settings.expert_tensor_parallel, it.model.num_experts
    if not experts:
        for name, is_set in (("expert_parallel", size > 1), (field, own)):
            if is_set:
                yield Violation(name, f"{model.name} has no experts", f"remove {name}")
        return
    if experts % size:
        message = f"EP {size} does not divide the {experts} experts of {model.name}"
        yield Violation("expert_parallel", message, f"choose EP among the divisors of {experts}")
    width, tensor = model.moe_ffn_hidden_size or 0, own or it.tensor
    if width % tensor:
        message = f"ETP {tensor} does not divide the expert FFN width {width} of {model.name}"
        yield Violation(field, message, f"choose ETP among the divisors of {width}")
    if size == 1 and tensor != it.tensor:
        message = f"ETP {own} with TP {it.tensor} and EP 1 trains wrongly, silently"
        yield Violation(field, message, "use EP above 1, or make ETP equal to TP")


def _experts_in_megatron_core(it: CaseLayout) -> Violations:
    if not it.model.num_experts or it.settings.framework != "megatron-core":
        return
    tensor = it.settings.expert_tensor_parallel or it.tensor
    product = it.expert * tensor * it.pipeline
    if it.gpus % product:
        yield Violation(
            "expert_parallel",
            f"EP {it.expert} × ETP {tensor} × PP {it.pipeline} = {product} "
            f"does not divide {it.gpus} GPUs",
            "use a smaller EP, or set expert_tensor_parallel to 1",
        )
    if it.tensor > 1 and not it.settings.sequence_parallel:
        message = "experts with TP need sequence parallelism"
        yield Violation("sequence_parallel", message, "set sequence_parallel: true")


def _precision(it: CaseLayout) -> Violations:
    """A system has the units of a precision; of one without peaks it is not known."""
    precisions = catalog.precisions()
    wanted = precisions[it.settings.precision or ""]
    for system in map(catalog.system, it.settings.systems):
        if system.peaks and not wanted.is_of(system.peaks):
            others = [one.name for one in precisions.values() if one.is_of(system.peaks)]
            message = f"{system.name} has no {wanted.title}"
            yield Violation("precision", message, f"use one of {', '.join(others)}")


def _fsdp(it: CaseLayout) -> Violations:
    size = it.settings.fsdp_size
    if size and it.data * it.context % size:
        message = f"FSDP {size} does not divide DP × CP = {it.data * it.context}"
        yield Violation("fsdp_size", message, "choose a divisor")


def _options(it: CaseLayout) -> Violations:
    framework = it.settings.framework or ""
    known = OPTIONS[framework]
    for name, value in it.settings.options.items():
        if name not in known:
            remedy = suggestion(name, known) if known else "it has none"
            yield Violation("options", f"no option {name!r} of {framework}", remedy)
        elif not _is_chosen(value, known[name]):
            choices = ", ".join(str(choice).lower() for choice in known[name])
            expected = choices or "a number above 0, such as 1.0e-3"
            yield Violation("options", f"{name} cannot be {value!r}", f"use {expected}")


def _is_chosen(value: Scalar, choices: tuple[object, ...]) -> bool:
    """Whether an option has one of its choices or, where it has none, a number above 0.

    To Python 1 is True; to a framework it is no answer to a yes-or-no question.
    """
    if choices:
        return any(value == choice and type(value) is type(choice) for choice in choices)
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf


RULES: tuple[Callable[[CaseLayout], Violations], ...] = (
    _world, _nodes, _batch, _pipeline, _interleaving, _tensor, _sequence, _experts,
    _experts_in_megatron_core, _precision, _fsdp, _options,
)  # fmt: skip
