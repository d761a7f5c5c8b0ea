"""The fields of a result: the one list of their names, units, titles and other spellings.

The case (what was run), the figures (what was achieved) and the method are typed in
`perfdb.record`; a test holds its names equal to these. Tables, queries, exports, pages and the
readers of other programs' settings take their names from here. To add a field: add it here and in
`perfdb.record`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Group(StrEnum):
    """What a field says of a result."""

    RELEASE = "release"
    WORKLOAD = "workload"
    """What was done: with the framework, the key that releases share."""
    CONFIGURATION = "configuration"
    """How it was done: with the workload, the identity of the case."""
    DERIVED = "derived"
    """What follows from the configuration; pages print it, and it is no part of the identity."""
    FIGURE = "figure"
    METHOD = "method"
    SOURCE = "source"


@dataclass(frozen=True)
class Field:
    """A field of a result.

    `short` is what messages and column heads call it, `unit` its unit ('' for words), `kind` its
    Python type where it is stored; a tuple of words is stored as text. `titles` are the titles of
    its column on published pages, `arguments` its names in the settings of other programs.
    """

    name: str
    group: Group
    short: str
    kind: type = int
    unit: str = ""
    meaning: str = ""
    titles: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


_W, _C, _D, _F, _M = (
    Group.WORKLOAD, Group.CONFIGURATION, Group.DERIVED, Group.FIGURE, Group.METHOD,
)  # fmt: skip

FIELDS: Final[tuple[Field, ...]] = (
    Field("framework", _W, "framework", str, "", "What trained: nemo, dfm, automodel, …",
          ("Framework", "Library")),
    Field("release", Group.RELEASE, "release", str, "", "Its version; empty where it is not known.",
          ("Release", "Version")),
    Field("container", Group.RELEASE, "container", str, "", "The container image.",
          ("Container", "Container Image", "NGC Container", "Docker Image")),
    Field("system", _W, "system", str, "", "The machine, by its name in the catalog.",
          ("System", "DGX System")),
    Field("model", _W, "model", str, "", "The model, by its name in the catalog.",
          ("Model", "Model Name")),
    Field("qualifiers", _W, "qualifiers", str, "", "What a page prints behind the model's name."),
    Field("task", _W, "task", str, "", "pretrain, sft or lora.", ("Task",)),
    Field("precision", _W, "precision", str, "", "The numeric format of the matrix products.",
          ("Precision", "Dtype", "Datatype")),
    Field("num_gpus", _W, "GPUs", int, "GPUs", "GPUs that took part, all nodes together.",
          ("#-GPUs", "#GPUs", "GPUs", "Num GPUs", "Number of GPUs"), ("world_size", "num_gpus")),
    Field("global_batch_size", _W, "GBS", int, "samples", "Samples per step over all GPUs.",
          ("GBS", "Global Batch Size"), ("global_batch_size",)),
    Field("micro_batch_size", _C, "MBS", int, "samples", "Samples per GPU and forward pass.",
          ("MBS", "Micro Batch Size"), ("micro_batch_size", "pp_microbatch_size")),
    Field("local_batch_size", _C, "LBS", int, "samples", "AutoModel: samples per GPU and pass.",
          ("LBS", "Local Batch Size"), ("local_batch_size",)),
    Field("gradient_accumulation", _D, "GA", int, "", "Micro-batches per step and GPU.",
          ("GA", "Gradient Accumulation", "Gradient Accumulations")),
    Field("sequence_length", _W, "sequence length", int, "tokens",
          "Tokens of a sample; of a packed one, its length.",
          ("Sequence Length", "Seq Length", "SeqLen", "Seq Len", "Packed Sequence Length"),
          ("packed_sequence_size", "seq_length", "sequence_length", "seq_len",
           "encoder_seq_length")),
    Field("tensor_parallel", _C, "TP", int, "", "Tensor-parallel size.",
          ("TP", "Tensor Parallel Size"),
          ("tensor_model_parallel_size", "tp_size")),
    Field("pipeline_parallel", _C, "PP", int, "", "Pipeline-parallel size.",
          ("PP", "Pipeline Parallel Size"),
          ("pipeline_model_parallel_size", "pp_size")),
    Field("context_parallel", _C, "CP", int, "", "Context-parallel size.",
          ("CP", "Context Parallel Size"),
          ("context_parallel_size", "cp_size")),
    Field("expert_parallel", _C, "EP", int, "", "Expert-parallel size.",
          ("EP", "Expert Parallel Size"),
          ("expert_model_parallel_size", "ep_size")),
    Field("expert_tensor_parallel", _C, "ETP", int, "", "Tensor-parallel size of the experts.",
          ("ETP",),
          ("expert_tensor_parallel_size",)),
    Field("virtual_pipeline", _C, "VP", int, "", "Model chunks per pipeline stage.",
          ("VP", "VPP", "Virtual Pipeline"),
          ("virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank")),
    Field("data_parallel", _D, "DP", int, "", "Data-parallel size.", ("DP",),
          ("data_parallel_size",)),
    Field("fsdp_enabled", _C, "FSDP", bool, "", "Whether the training state is sharded (FSDP).",
          ("FSDP",), ("use_megatron_fsdp", "use_custom_fsdp")),
    Field("fsdp_size", _C, "FSDP size", int, "GPUs", "GPUs that share one copy of the state."),
    Field("sequence_parallel", _C, "SP", bool, "", "Whether activations are split by sequence.",
          ("SP",), ("sequence_parallel",)),
    Field("kernels", _C, "kernels", str, "", "Kernels that are switched on, joined by a comma.",
          ("Kernel Optimizations", "Kernels")),
    Field("variant", _C, "variant", str, "", "What else tells rows of a page apart.",
          ("Task Variant",)),
    Field("options", _C, "options", dict, "", "Settings of the framework that make another case."),
    Field("step_time_s", _F, "step time", float, "s", "Seconds of one optimizer step.",
          ("Time per Global Step (s)", "Step Time (s)", "Training step time (seconds per step)",
           "Step Time (seconds)", "Time per Step (s)", "Iteration Time (s)",
           "Time per Iteration (s)", "Elapsed Time per Iteration (s)")),
    Field("step_time_mean_s", _F, "mean step time", float, "s", "Mean of the window's step times."),
    Field("step_time_stdev_s", _F, "standard deviation", float, "s", "Spread of the step times."),
    Field("step_time_p10_s", _F, "p10", float, "s", "The step time that a tenth are below."),
    Field("step_time_p90_s", _F, "p90", float, "s", "The step time that nine tenths are below."),
    Field("step_time_last_s", _F, "last step", float, "s", "The time of the last step."),
    Field("tokens_per_sec_per_gpu", _F, "tokens/s/GPU", float, "tokens/s",
          "Tokens of the global batch per second, per GPU.",
          ("Tokens / sec / GPU", "Tokens/s/GPU", "Tokens per second per GPU")),
    Field("tokens_per_sec", _F, "tokens/s", float, "tokens/s", "Tokens of all GPUs together.",
          ("Throughput in tokens per second", "Throughput (tokens per second)")),
    Field("model_tflops_per_sec_per_gpu", _F, "model TFLOP/s/GPU", float, "TFLOP/s",
          "Floating-point operations of the model per second, per GPU.",
          ("Model TFLOP / sec / GPU", "Model TFLOPs/sec/GPU", "Model TFLOP/s/GPU", "TFLOP/s/GPU",
           "Model TFLOPs/s/GPU", "TFLOPS (per GPU, model)")),
    Field("mfu", _F, "MFU", float, "fraction", "The share of the GPU's dense peak.",
          ("MFU", "MFU (%)", "% MFU", "Model flops utilization", "Model flops utilization (%)")),
    Field("peak_tflops", _F, "peak", float, "TFLOP/s", "The dense peak of its MFU."),
    Field("peak_memory_bytes", _F, "peak memory", int, "bytes", "Peak memory of the fullest GPU."),
    Field("flops_convention", _M, "FLOPs convention", str, "", "How model FLOPs are counted."),
    Field("formula_version", _M, "formula version", int, "", "Of the formulas of the figures."),
    Field("window", _M, "window", str, "", "The steps that the figures are taken over."),
    Field("num_steps", _M, "steps", int, "steps", "How many steps the window holds."),
    Field("num_means", _M, "means", int, "", "How many means of several steps; empty: none."),
    Field("origin", _M, "origin", str, "", "measured: of a run; published: read off a page."),
    Field("outcome", _M, "outcome", str, "", "How the run ended; published rows are finished."),
)  # fmt: skip
"""Every field, in the order of tables and exports."""

BY_NAME: Final[Mapping[str, Field]] = {field.name: field for field in FIELDS}


def names(*groups: Group) -> tuple[str, ...]:
    """The names of the fields of some groups, in their order."""
    return tuple(field.name for field in FIELDS if field.group in groups)


def short(name: str) -> str:
    """What messages call a field: GBS, step time; the name itself where it has no short form."""
    return BY_NAME[name].short if name in BY_NAME else name


def by_title(only: Iterable[str] = ()) -> Mapping[str, str]:
    """The field of each title of a column on published pages; `only` names some fields."""
    chosen = set(only) or BY_NAME.keys()
    return {title: one.name for one in FIELDS if one.name in chosen for title in one.titles}


def by_argument() -> Mapping[str, str]:
    """The field of each name in the settings that training programs print."""
    return {argument: field.name for field in FIELDS for argument in field.arguments}


WORKLOAD: Final = names(Group.WORKLOAD)
CONFIGURATION: Final = names(Group.CONFIGURATION)
DERIVED: Final = names(Group.DERIVED)
FIGURES: Final = (
    "step_time_s", "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu",
    "tokens_per_sec",
)  # fmt: skip
"""The figures that pages print."""
