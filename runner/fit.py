"""Cuts a case to the hardware at hand: a proxy with fewer layers and ranks, sized by memory. Pure.

A proxy keeps the shape of a layer and the kinds of parallelism; on a CPU the layer is cut, too. It
is a case of its own, and never counts as the whole one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import lcm
from typing import Any, Final

from perfdb import catalog, fields, metrics, units
from perfdb.catalog import Model
from perfdb.catalog.proxy import LETTERS
from perfdb.errors import Diagnostic, InputError
from perfdb.hardware import Machine
from perfdb.recipe import RunSpec
from perfdb.recipe.check import faults
from perfdb.recipe.expand import CASE_FIELDS, Draft, point
from perfdb.recipe.model import OPTIONS, CaseSettings
from perfdb.record import PROXY_OF, Case
from runner.backends import NO_BACKEND, megatron_core
from runner.deep_check import FRAMEWORKS, gpu_memory_bytes
from runner.megatron.config import parse_config
from runner.memory import Memory, fullest, stages

USABLE: Final = 0.85
"""The share of a GPU's memory to fill by the estimate, without CUDA's own, NCCL's and gaps."""
CPU_PROCESSES, CPU_TOKENS, CPU_WARMUP, CPU_STEPS = 4, 64, 5, 20
"""Processes, tokens and steps, as of recipes/smoke: a cut runs in seconds."""
_SIZES: Final = (
    "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel",
    "virtual_pipeline",
)  # fmt: skip


@dataclass(frozen=True)
class Hardware:
    """What to fit to; of a CPU the GPUs are processes, and memory is not looked at."""

    system: str
    num_gpus: int
    gpu_memory_bytes: int | None

    @property
    def on_cpu(self) -> bool:
        """Whether it has no GPUs."""
        return not catalog.has_gpus(self.system)


@dataclass(frozen=True)
class Proxy:
    """A case that is cut, and what was changed, in words."""

    spec: RunSpec
    changes: tuple[str, ...]


def hardware(given: str | None, machine: Machine) -> Hardware:
    """What SYSTEM or SYSTEM:GPUS means; None: the machine. Raises InputError and CatalogError."""
    if given is None:
        if machine.system is None:
            remedy = "say which one it is like with --fit-to"
            raise InputError(Diagnostic("--fit", machine.reason, remedy=remedy))
        memory = machine.gpu_memory_bytes or gpu_memory_bytes(machine.system)
        return Hardware(machine.system, machine.gpu_count or CPU_PROCESSES, memory)
    name, _, number = given.partition(":")
    system = catalog.system(name)
    if number and not (number.isdecimal() and 0 < int(number) < 10**6):
        remedy = "give SYSTEM or SYSTEM:GPUS, such as dgx-h100:8"
        raise InputError(Diagnostic("--fit-to", f"{number!r} is no number of GPUs", remedy=remedy))
    gpus = int(number or (system.gpus_per_node or 1 if system.gpu else CPU_PROCESSES))
    return Hardware(name, gpus, gpu_memory_bytes(name))


def fitted(spec: RunSpec, to: Hardware) -> Proxy | str | None:
    """A proxy of a case, or why there is none; None where the case fits as it is."""
    case = spec.case
    can_run = case.framework not in NO_BACKEND and case.system == to.system
    if can_run and (to.on_cpu or case.num_gpus <= to.num_gpus):
        if to.gpu_memory_bytes is None or covered(case):
            return None
        if needed(spec).total <= to.gpu_memory_bytes:
            return None
    return proxy(spec, to)


def needed(spec: RunSpec) -> Memory:
    """The memory that the fullest GPU needs, by the estimate."""
    settings = megatron_core.settings(spec)
    settings["precision"] = "fp32" if spec.case.precision == "fp32" else "bf16"
    config = parse_config(settings)
    return fullest(spec.case, config, stages(config))


def covered(case: Case) -> str | None:
    """Why there can be no proxy of a case; None if there can."""
    model = catalog.model(case.model)
    if case.framework not in FRAMEWORKS:
        return (
            f"no proxy: {case.framework} does not train with Megatron-Core, whose memory is known"
        )
    if model.family not in ("gpt", "moe"):
        return f"no proxy: the memory of {model.family} models is not estimated"
    if case.task != "pretrain":
        return f"no proxy: the worker pre-trains; {case.task} is not built"
    return None


def proxy(spec: RunSpec, to: Hardware) -> Proxy | str:
    """The largest proxy that fits, of the layout that keeps most; or why there is none."""
    if reason := covered(spec.case):
        return reason
    if not to.on_cpu and to.gpu_memory_bytes is None:
        return f"no proxy: the memory of a GPU of {to.system} is not known"
    least: Memory | None = None
    for sizes in _layouts(spec.case, to):
        least = least or _least(spec, to, sizes)
        if found := _largest(spec, to, sizes):
            return Proxy(found, tuple(_changes(spec, found, to)))
    what = f"no layout of {spec.case.model} runs on {to.num_gpus} × {to.system}"
    if least:
        what = (
            f"the fewest layers need {units.gib(least.total)} of a GPU by the estimate, of whose "
            f"{units.gib(to.gpu_memory_bytes)} {USABLE:.0%} may be filled"
        )
    return f"no proxy: {what}"


def _step(sizes: Mapping[str, Any]) -> int:
    """The fewest layers of a layout: one for each chunk."""
    return int(sizes["pipeline_parallel"] * (sizes["virtual_pipeline"] or 1))


def _least(spec: RunSpec, to: Hardware, sizes: Mapping[str, Any]) -> Memory | None:
    made = _cut(spec, to, sizes, _step(sizes))
    return needed(made) if made else None


def _largest(spec: RunSpec, to: Hardware, sizes: Mapping[str, Any]) -> RunSpec | None:
    """With the most layers that fit; on a CPU with two, or one for each chunk."""
    step, found = _step(sizes), None
    low, high = 1, catalog.model(spec.case.model).num_layers // step
    if to.on_cpu:
        high = min(high, max(1, 2 // step))
    while low <= high:
        middle = high if to.on_cpu else (low + high) // 2
        tried = _cut(spec, to, sizes, middle * step)
        if tried and _fits(tried, to):
            found, low = tried, middle + 1
        else:
            high = middle - 1
    return found


def _fits(spec: RunSpec, to: Hardware) -> bool:
    return to.on_cpu or needed(spec).total <= USABLE * (to.gpu_memory_bytes or 0)


def _layouts(case: Case, to: Hardware) -> Iterator[Mapping[str, Any]]:
    """Parallel sizes that divide the case's, those first that keep most kinds, then most ranks."""
    choices = [_divisors(getattr(case, name) or 1) for name in _SIZES]
    experts, found = catalog.model(case.model).num_experts, []
    for sizes in product(*choices):
        tensor, pipeline, context, expert, virtual = sizes
        etp = min(case.expert_tensor_parallel or tensor, tensor) if expert > 1 else tensor
        unit = lcm(tensor * pipeline * context, expert * etp * pipeline)
        if unit > min(to.num_gpus, case.num_gpus) or (virtual > 1 and pipeline == 1):
            continue
        gpus = min(to.num_gpus, case.num_gpus) // unit * unit
        if to.on_cpu:  # as few as show data parallelism, where the case has it
            gpus = min(gpus, unit * (2 if _replicas(case) > 1 else 1))
        kinds = sum(size > 1 for size in sizes) + (gpus > tensor * pipeline * context)
        ranks = tensor * pipeline * context * expert
        layout: dict[str, Any] = dict(zip(_SIZES, sizes, strict=True))
        layout |= {
            "num_gpus": gpus,
            "virtual_pipeline": virtual if virtual > 1 else None,
            "expert_tensor_parallel": etp if etp != tensor else None,
            "sequence_parallel": tensor > 1 and bool(case.sequence_parallel or experts),
        }
        # On a CPU the fewest processes of the same kinds are the quickest.
        found.append(
            ((kinds, -gpus, -ranks * virtual) if to.on_cpu else (kinds, ranks, gpus), sizes, layout)
        )
    for *_, layout in sorted(found, key=lambda one: one[:2], reverse=True):
        yield layout


def _divisors(number: int) -> list[int]:
    return [size for size in range(1, number + 1) if number % size == 0]


def _replicas(case: Case) -> int:
    parts = (case.tensor_parallel, case.pipeline_parallel, case.context_parallel)
    return metrics.data_parallel(case.num_gpus, *(size or 1 for size in parts))


def _cut(spec: RunSpec, to: Hardware, sizes: Mapping[str, Any], layers: int) -> RunSpec | None:
    """The case with so many layers in a layout; None where that breaks a rule."""
    case, whole = spec.case, catalog.model(spec.case.model)
    kept = {name: getattr(case, name) for name in CASE_FIELDS}
    precision = catalog.precisions().get(case.precision or "")
    has_units = precision and not to.on_cpu and precision.is_of(catalog.system(to.system).peaks)
    fields_of_run: dict[str, Any] = {
        "framework": megatron_core.NAME,
        "model": catalog.proxy_name(whole, _shape(whole, layers, sizes, to)),
        "systems": (to.system,),
        "precision": case.precision if has_units or case.precision == "fp32" else "bf16",
        "micro_batch_size": 1 if to.on_cpu else case.micro_batch_size or case.local_batch_size,
        "options": {
            name: value
            for name, value in case.options.items()
            if name in OPTIONS[megatron_core.NAME]
        },
        "warmup_steps": min(spec.warmup_steps, CPU_WARMUP) if to.on_cpu else spec.warmup_steps,
        "measured_steps": min(spec.measured_steps, CPU_STEPS) if to.on_cpu else spec.measured_steps,
        **dict.fromkeys(("local_batch_size", "fsdp_enabled", "fsdp_size")),
        **dict.fromkeys(("kernels", "qualifiers"), ()),
        **sizes,
    }
    settings = CaseSettings.model_validate(kept | fields_of_run | {"seed": spec.seed})
    settings = settings.model_copy(update=_batch(case, settings, to))
    if faults(settings):
        return None
    made = point(Draft(f"{spec.name}/proxy", settings, {}), to.system)
    options = {**made.case.options, PROXY_OF: case.key[:12]}
    own = spec.container if case.framework == megatron_core.NAME and not to.on_cpu else None
    return replace(
        made,
        case=made.case.model_copy(update={"options": options}),
        timeout_s=spec.timeout_s,
        container=own,
    )


def _batch(case: Case, made: CaseSettings, to: Hardware) -> Mapping[str, int]:
    """As many micro-batches for each replica as the case has; on a CPU enough for the pipeline."""
    stages_, size = made.pipeline_parallel, made.micro_batch_size or 1
    whole_size = (case.micro_batch_size or case.local_batch_size or 1) * max(_replicas(case), 1)
    count, length = max(case.global_batch_size // whole_size, 1), case.sequence_length
    if to.on_cpu:
        pieces = lcm(2 * made.context_parallel, made.context_parallel * made.tensor_parallel)
        length = min(length, -(-CPU_TOKENS // pieces) * pieces)
        count = min(count, 2 * stages_)
    if made.virtual_pipeline:
        count = max(count // stages_, 1) * stages_
    replicas = (made.num_gpus or 0) // (made.tensor_parallel * stages_ * made.context_parallel)
    return {"global_batch_size": count * size * replicas, "sequence_length": length}


def _shape(model: Model, layers: int, sizes: Mapping[str, Any], to: Hardware) -> dict[str, int]:
    """The sizes of a proxy: on a GPU fewer layers; on a CPU those of gpt-tiny and moe-tiny, too."""
    if not to.on_cpu:
        return {"num_layers": layers}
    tiny, tensor = catalog.model("gpt-tiny"), sizes["tensor_parallel"]
    heads = lcm(tiny.num_attention_heads, tensor)
    is_grouped = model.num_query_groups < model.num_attention_heads
    hidden = heads * tiny.head_dim
    shape = {
        "num_layers": layers,
        "hidden_size": hidden,
        "ffn_hidden_size": 2 * hidden,
        "num_attention_heads": heads,
        "num_query_groups": heads // 2 if is_grouped else heads,
        "head_dim": tiny.head_dim,
        "vocab_size": lcm(tiny.vocab_size or 1, tensor),
    }
    if model.num_experts:
        experts = lcm(catalog.model("moe-tiny").num_experts or 1, sizes["expert_parallel"])
        shape |= {
            "num_experts": min(model.num_experts, experts),
            "moe_top_k": min(model.moe_top_k or 1, 2),
            "moe_ffn_hidden_size": 2 * hidden,
        }
        if model.moe_shared_expert_ffn_hidden_size:
            shape["moe_shared_expert_ffn_hidden_size"] = 2 * hidden
    return shape


def _changes(whole: RunSpec, made: RunSpec, to: Hardware) -> Iterator[str]:
    """What a proxy has otherwise, 'TP 8 → 4', and the memory that it needs."""
    before, after = catalog.model(whole.case.model), catalog.model(made.case.model)
    pairs = [(it.replace("_", " "), getattr(before, it), getattr(after, it)) for it in LETTERS]
    names = (*fields.WORKLOAD, *fields.CONFIGURATION, "data_parallel")
    pairs += [
        (fields.short(name), getattr(whole.case, name), getattr(made.case, name))
        for name in names
        if name not in ("model", "options")
    ]
    pairs += [
        (f"option {name}", value, None)
        for name, value in whole.case.options.items()
        if name not in made.case.options
    ]
    pairs += [
        (name.replace("_", " "), getattr(whole, name), getattr(made, name))
        for name in ("warmup_steps", "measured_steps", "container")
    ]
    for name, old, new in pairs:
        if (old or None) != (new or None):
            yield f"{name} {_word(old)} → {_word(new)}"
    if not to.on_cpu:
        yield f"{units.gib(needed(made).total)} of {units.gib(to.gpu_memory_bytes)} (estimate)"


def _word(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, False) else "on" if value is True else str(value)
