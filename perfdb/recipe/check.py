"""What makes a case impossible: every rule a layout must keep, and what to do. Pure.

A rule has a check for each thing that may be wrong; they are independent: all are found at once.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, lcm

from perfdb import catalog
from perfdb.catalog import Model
from perfdb.errors import suggestion
from perfdb.recipe.expand import data_parallel, global_batch_size
from perfdb.recipe.model import OPTIONS, CaseSettings
from perfdb.record import MOST, RunKind, Scalar

ENDS = ("embedding", "loss")
"""The ends of a model that a pipeline may count as a layer each."""
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


Checks = Iterable[tuple[object, str, str, str]]
"""Whether a rule is broken; then the field, the message and the remedy."""


def faults(settings: CaseSettings) -> list[Violation]:
    """What a case lacks or, if that is nothing, the rules that its layout breaks."""
    lacking = [Violation(*what) for is_wrong, *what in _missing(settings) if is_wrong]
    if lacking:
        return lacking
    it = CaseLayout(
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
    return [Violation(*what) for rule in RULES for is_wrong, *what in rule(it) if is_wrong]


def _missing(settings: CaseSettings) -> Checks:
    """The fields that every case needs and this one lacks, or has twice."""
    total, per_gpu = settings.global_batch_size, settings.global_batch_size_per_gpu
    product = global_batch_size(settings)
    lacks, add = "is required and missing", "add it"
    return (
        *((not getattr(settings, field), field, lacks, add) for field in REQUIRED),
        (total and per_gpu, "global_batch_size_per_gpu", "given beside global_batch_size",
         "keep one"),
        (not (total or per_gpu), "global_batch_size", lacks,
         "give global_batch_size or global_batch_size_per_gpu"),
        (product > MOST, "global_batch_size_per_gpu",
         f"{settings.num_gpus} GPUs make a GBS of {product}", f"make it {MOST} at most"),
        (not (settings.micro_batch_size or settings.local_batch_size), "micro_batch_size", lacks,
         add),
    )  # fmt: skip


def _world(it: CaseLayout) -> Checks:
    """A copy of the model divides the GPUs, and these fill nodes."""
    product, gpus = it.tensor * it.pipeline * it.context, it.gpus
    shape = f"TP {it.tensor} × PP {it.pipeline} × CP {it.context} = {product}"
    per_node = {name: catalog.system(name).gpus_per_node or gpus for name in it.settings.systems}
    return (
        (gpus < product, "num_gpus", f"{shape} needs at least {product} GPUs, not {gpus}",
         f"use {product} GPUs, or a smaller layout"),
        (gpus > product and gpus % product, "num_gpus",
         f"{shape} does not divide {gpus} GPUs",
         f"use a multiple of {product} GPUs, or a smaller layout"),
        *((gpus > each and gpus % each, "num_gpus",
           f"{gpus} GPUs are not whole nodes of {name}, which has {each} each",
           f"use a multiple of {each}") for name, each in per_node.items()),
    )  # fmt: skip


def _batch(it: CaseLayout) -> Checks:
    """The gradient accumulation is whole, and FSDP divides the replicas."""
    local, fsdp = it.settings.local_batch_size, it.settings.fsdp_size
    field, name = ("local_batch_size", "LBS") if local else ("micro_batch_size", "MBS")
    size = local or it.settings.micro_batch_size or 1
    passes, replicas = size * it.data, it.data * it.context
    return (
        (passes and it.global_batch % passes, field,
         f"{name} {size} × DP {it.data} does not divide GBS {it.global_batch}: the "
         "gradient accumulation would not be whole", f"make GBS a multiple of {passes}"),
        (fsdp and replicas % fsdp, "fsdp_size",
         f"FSDP {fsdp} does not divide DP × CP = {replicas}", "choose a divisor"),
    )  # fmt: skip


def _pipeline(it: CaseLayout) -> Checks:
    """Stages divide the layers, and micro-batches fill the interleaved schedule.

    Megatron-LM's arguments.py states what the schedule needs. Batched messages with two stages,
    measured with megatron-core 0.16.1: no error, and a gradient norm of 3.78 instead of 0.95. The
    neighbors on both sides are one rank, and messages mix up.
    """
    stages, virtual, options = it.pipeline, it.virtual, it.settings.options
    ends = sum(options.get(f"account_for_{end}_in_pipeline_split") is True for end in ENDS)
    layers = it.model.num_layers + ends
    is_interleaved = virtual > 1 and stages > 1
    micro = it.data * (it.settings.micro_batch_size or 1)
    num_micro = it.global_batch // max(micro, 1)
    is_even = it.settings.framework != "automodel"  # it gives the last stages fewer layers
    batched = options.get("batch_p2p_comm") is True
    return (
        (virtual > 1 and stages == 1, "virtual_pipeline",
         f"VP {virtual} needs a pipeline, and PP is 1",
         "set pipeline_parallel, or remove virtual_pipeline"),
        (is_even and (is_interleaved or virtual == 1) and layers % (stages * virtual),
         "virtual_pipeline" if virtual > 1 else "pipeline_parallel",
         f"PP {stages} × VP {virtual} does not divide the {layers} layers of {it.model.name}"
         f"{' and its ends' * bool(ends)}",
         f"choose PP × VP among the divisors of {layers}"),
        (is_interleaved and batched and stages == 2, "options",
         "batch_p2p_comm with VP and PP 2 trains with wrong gradients, silently",
         "remove batch_p2p_comm, or use PP above 2"),
        (is_interleaved and micro and num_micro % stages, "global_batch_size",
         f"{num_micro} micro-batches are not a multiple of PP {stages}, which the interleaved "
         "schedule needs", f"make GBS a multiple of {micro * stages}"),
    )  # fmt: skip


def _tensor(it: CaseLayout) -> Checks:
    """TP divides what it cuts, and the sequence is cut into whole pieces."""
    model, size, settings = it.model, it.tensor, it.settings
    shared = model.moe_shared_expert_ffn_hidden_size or 0
    cut = {
        f"{model.num_attention_heads} attention heads": model.num_attention_heads,
        f"FFN width {model.ffn_hidden_size}": model.ffn_hidden_size,
        f"shared expert width {shared}": shared,
        f"vocabulary of {model.vocab_size}": model.vocab_size or size,
    }
    groups, length = model.num_query_groups, settings.sequence_length or 0
    pieces = 2 * it.context if it.context > 1 else 1
    if settings.sequence_parallel:
        pieces = lcm(pieces, it.context * size)
    return (
        *((count % size, "tensor_parallel", f"TP {size} does not divide the {what} of {model.name}",
           f"choose TP among the divisors of {count}") for what, count in cut.items()),
        (groups % size and size % groups, "tensor_parallel",
         f"TP {size} and the {groups} query groups of {model.name} do not divide",
         f"choose TP among the divisors or multiples of {groups}"),
        (settings.sequence_parallel and size == 1, "sequence_parallel",
         "SP splits over TP, and TP is 1", "set tensor_parallel, or remove sequence_parallel"),
        (length % pieces, "sequence_length",
         f"{length} tokens cannot be cut into {pieces} pieces (2 × CP, and CP × TP with SP)",
         f"use a multiple of {pieces}"),
    )  # fmt: skip


def _experts(it: CaseLayout) -> Checks:
    """Experts divide over ranks. Megatron-Core's MoE layer refuses TP without SP in training.

    It marks expert weights as such only with EP > 1, else it reduces and broadcasts them like
    dense ones. Measured with 0.16.1: wrong gradients (TP 2, ETP 1), or wrong weights from the
    start (TP 1, ETP 2), without an error.
    """
    model, size, experts = it.model, it.expert, it.model.num_experts
    own, etp = it.settings.expert_tensor_parallel, "expert_tensor_parallel"
    if not experts:
        lacks = f"{model.name} has no experts"
        return (
            (size > 1, "expert_parallel", lacks, "remove expert_parallel"),
            (own, etp, lacks, f"remove {etp}"),
        )
    tensor, width = own or it.tensor, model.moe_ffn_hidden_size or 0
    is_core, product = it.settings.framework == "megatron-core", size * tensor * it.pipeline
    return (
        (experts % size, "expert_parallel",
         f"EP {size} does not divide the {experts} experts of {model.name}",
         f"choose EP among the divisors of {experts}"),
        (width % tensor, etp,
         f"ETP {tensor} does not divide the expert FFN width {width} of {model.name}",
         f"choose ETP among the divisors of {width}"),
        (is_core and it.gpus % product, "expert_parallel",
         f"EP {size} × ETP {tensor} × PP {it.pipeline} = {product} does not divide {it.gpus} GPUs",
         "use a smaller EP, or set expert_tensor_parallel to 1"),
        (size == 1 and tensor != it.tensor, etp,
         f"ETP {own} with TP {it.tensor} and EP 1 trains wrongly, silently",
         "use EP above 1, or make ETP equal to TP"),
        (is_core and it.tensor > 1 and not it.settings.sequence_parallel, "sequence_parallel",
         "experts with TP need sequence parallelism", "set sequence_parallel: true"),
    )  # fmt: skip


def _precision(it: CaseLayout) -> Checks:
    """A system has the units of a precision; of one without peaks it is not known."""
    precisions = catalog.precisions()
    wanted = precisions[it.settings.precision or ""]
    for system in map(catalog.system, it.settings.systems):
        others = ", ".join(one.name for one in precisions.values() if one.is_of(system.peaks))
        is_lacking = system.peaks and not wanted.is_of(system.peaks)
        message = f"{system.name} has no {wanted.title}"
        yield is_lacking, "precision", message, f"use one of {others}"


def _options(it: CaseLayout) -> Checks:
    framework = it.settings.framework or ""
    known = OPTIONS[framework]
    for name, value in it.settings.options.items():
        if name not in known:
            remedy = suggestion(name, known) if known else "it has none"
            yield True, "options", f"no option {name!r} of {framework}", remedy
            continue
        choices = ", ".join(str(choice).lower() for choice in known[name])
        expected = f"use {choices or 'a number above 0, such as 1.0e-3'}"
        is_wrong = not _is_chosen(value, known[name])
        yield is_wrong, "options", f"{name} cannot be {value!r}", expected


def _is_chosen(value: Scalar, choices: tuple[object, ...]) -> bool:
    """Whether an option has one of its choices or, where it has none, a number above 0.

    To Python 1 is True; to a framework it is no answer to a yes-or-no question.
    """
    if choices:
        return any(value == choice and type(value) is type(choice) for choice in choices)
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf


def _kind(it: CaseLayout) -> Checks:
    """Profiles and checkpoints are of Megatron-Core's worker; a layout to reload is one, too."""
    settings, kind = it.settings, it.settings.kind
    sizes = dict[str, object](settings.reload_layout.items())
    # Only sequence_parallel is yes or no; every other size is a whole number from 1.
    unfit = [
        name
        for name, size in settings.reload_layout.items()
        if name != "sequence_parallel" and (isinstance(size, bool) or size < 1)
    ]
    reloaded = settings.model_copy(update={**sizes, "reload_layout": {}})
    broken = faults(reloaded) if sizes and not unfit else []
    most = max(settings.profile_ranks, default=0)
    return (
        (kind is not RunKind.BENCHMARK and settings.framework != "megatron-core", "kind",
         f"{settings.framework} has no {kind.value} runs here", "only megatron-core has"),
        (kind is RunKind.PROFILE and most >= it.gpus, "profile_ranks",
         f"there is no rank {most} among {it.gpus}", f"the last is {it.gpus - 1}"),
        (sizes and kind is not RunKind.CHECKPOINT, "reload_layout",
         f"a {kind.value} run loads no checkpoint", "set kind to checkpoint, or remove it"),
        *((True, "reload_layout", f"{name} is {sizes[name]}", "give a whole number from 1")
          for name in unfit),
        *((True, "reload_layout", one.message, one.remedy) for one in broken),
    )  # fmt: skip


RULES: tuple[Callable[[CaseLayout], Checks], ...] = (
    _world, _batch, _pipeline, _tensor, _experts, _precision, _options, _kind,
)  # fmt: skip
