"""Refuses the layouts that Megatron-Core would train wrongly, or stop at with an obscure message.

Megatron-LM's arguments.py makes most of these checks; the core library alone does not.
"""

from collections.abc import Iterator

from runner.megatron.config import ModelShape, WorkerConfig, WorkerConfigError


def check(config: WorkerConfig, world_size: int) -> None:
    """Raise one `WorkerConfigError` that says all that is wrong on so many ranks."""
    problems = [*_problems(config, world_size)]
    if problems:
        raise WorkerConfigError("; ".join(problems))


def check_device(wanted: str | None, found: str, torch_version: str) -> None:
    """Raise `WorkerConfigError` where PyTorch has not the device wanted; None takes either."""
    if (wanted, found) == ("cuda", "cpu"):
        raise WorkerConfigError(
            f"PyTorch {torch_version} finds no GPU: it must be built for CUDA, the driver must be "
            "new enough for it, and CUDA_VISIBLE_DEVICES must not hide the GPUs"
        )
    if (wanted, found) == ("cpu", "cuda"):
        raise WorkerConfigError(
            "this run is for a machine without GPUs, and PyTorch finds one: see that nvidia-smi is "
            "on the PATH, or set CUDA_VISIBLE_DEVICES to nothing"
        )


def _problems(config: WorkerConfig, world_size: int) -> Iterator[str]:
    yield from _model(config.model)
    yield from _tensor(config)
    yield from _sequence(config)
    yield from _pipeline(config)
    yield from _experts(config, world_size)
    yield from _batch(config, world_size)


def _divisible(name: str, value: int, by_name: str, by: int) -> Iterator[str]:
    if value % by:
        yield f"{name} {value} is not divisible by {by_name} {by}"


def _model(model: ModelShape) -> Iterator[str]:
    yield from _divisible(
        "num_attention_heads", model.num_attention_heads, "num_query_groups", model.num_query_groups
    )
    if model.head_dim % 2:
        yield f"head_dim {model.head_dim} is odd: rotary positions need pairs"
    sizes = (model.moe_top_k, model.moe_ffn_hidden_size)
    if model.num_experts is None:
        if (*sizes, model.moe_shared_expert_ffn_hidden_size) != (None, None, None):
            yield "moe_* sizes are given, but num_experts is null: a dense model has none"
    elif None in sizes:
        yield "num_experts is given: moe_top_k and moe_ffn_hidden_size must be, too"
    elif model.moe_top_k is not None and model.moe_top_k > model.num_experts:
        yield f"moe_top_k {model.moe_top_k} is more than num_experts {model.num_experts}"


def _tensor(config: WorkerConfig) -> Iterator[str]:
    cut = ("num_attention_heads", "vocab_size", "ffn_hidden_size")
    sizes = {name: getattr(config.model, name) for name in cut}
    sizes["moe_shared_expert_ffn_hidden_size"] = config.model.moe_shared_expert_ffn_hidden_size or 0
    for name, size in sizes.items():
        yield from _divisible(name, size, "tensor_parallel", config.tensor_parallel)
    # Several ranks may share a group. Measured with 0.16.1: 2 groups on TP 4 train as on one rank.
    groups, tp = config.model.num_query_groups, config.tensor_parallel
    if groups % tp and tp % groups:
        yield f"of num_query_groups {groups} and tensor_parallel {tp} neither divides the other"


def _sequence(config: WorkerConfig) -> Iterator[str]:
    cp, tp = config.context_parallel, config.tensor_parallel
    if config.sequence_parallel and tp == 1:
        yield "sequence_parallel needs tensor_parallel > 1: set it to false"
    if cp > 1:  # each rank holds two of 2*CP chunks, so that causal attention is balanced
        yield from _divisible(
            "sequence_length", config.sequence_length, "2 × context_parallel", 2 * cp
        )
    if config.sequence_parallel:
        parts = "context_parallel × tensor_parallel"
        yield from _divisible("sequence_length", config.sequence_length, parts, cp * tp)


def _pipeline(config: WorkerConfig) -> Iterator[str]:
    pp, vp = config.pipeline_parallel, config.virtual_pipeline
    parts = "pipeline_parallel × virtual_pipeline"
    yield from _divisible("num_layers", config.model.num_layers, parts, pp * (vp or 1))
    if vp == 1:
        yield "virtual_pipeline 1 is no virtual pipeline: write null"
    if vp is not None and pp == 1:
        yield f"virtual_pipeline {vp} needs pipeline_parallel > 1: write null"
    # Measured with megatron-core 0.16.1: no error, and a grad norm of 3.78 instead of 0.95. With
    # two stages the neighbours on both sides are one rank, and batched messages get mixed up.
    if vp is not None and pp == 2 and config.batch_p2p_comm:
        yield (
            "pipeline_parallel 2 with virtual_pipeline and options.batch_p2p_comm true trains with "
            "wrong gradients: set options.batch_p2p_comm to false or null"
        )


def _experts(config: WorkerConfig, world_size: int) -> Iterator[str]:
    model, ep, etp = config.model, config.expert_parallel, config.effective_expert_tensor_parallel
    if model.num_experts is None:
        if ep > 1 or config.expert_tensor_parallel is not None:
            yield "expert_parallel > 1 or expert_tensor_parallel needs a model with num_experts"
        return
    # Megatron-Core marks expert weights as such only with EP > 1, else it reduces and broadcasts
    # them like dense ones. Measured with 0.16.1: no error, and wrong gradients (TP 2, ETP 1), or
    # wrong weights from the start (TP 1, ETP 2).
    if ep == 1 and etp != config.tensor_parallel:
        yield (
            f"expert_tensor_parallel {etp} with tensor_parallel {config.tensor_parallel} and "
            "expert_parallel 1 trains with wrong gradients: set expert_tensor_parallel to null"
        )
    if config.tensor_parallel > 1 and not config.sequence_parallel:
        yield "experts with tensor_parallel > 1 need sequence_parallel true"
    parts = "expert_tensor_parallel × expert_parallel × pipeline_parallel"
    yield from _divisible("world size", world_size, parts, etp * ep * config.pipeline_parallel)
    yield from _divisible("num_experts", model.num_experts, "expert_parallel", ep)
    ffn = model.moe_ffn_hidden_size or 0
    yield from _divisible("moe_ffn_hidden_size", ffn, "expert_tensor_parallel", etp)


def _batch(config: WorkerConfig, world_size: int) -> Iterator[str]:
    parts = "tensor_parallel × pipeline_parallel × context_parallel"
    ranks = config.tensor_parallel * config.pipeline_parallel * config.context_parallel
    if world_size % ranks:
        yield from _divisible("world size", world_size, parts, ranks)
        return
    samples = config.micro_batch_size * config.data_parallel(world_size)
    parts = "micro_batch_size × data parallel size"
    yield from _divisible("global_batch_size", config.global_batch_size, parts, samples)
    if config.virtual_pipeline is not None:
        pp, number = config.pipeline_parallel, config.num_microbatches(world_size)
        yield from _divisible("the number of micro-batches", number, "pipeline_parallel", pp)
