"""The worker's configuration: what it reads, and how it says what is wrong."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from runner.megatron import layout
from runner.megatron.config import WorkerConfigError, parse_config, read_config
from tests.runner.megatron_worker import EXPERTS, config


def without(name: str) -> dict[str, object]:
    return {key: value for key, value in config().items() if key != name}


def test_it_reads_what_was_written(tmp_path: Path) -> None:
    """With the defaults of the options that are not given."""
    path = tmp_path / "worker.json"
    path.write_text(json.dumps(config(tensor_parallel=2, rotary_base=500_000, overlap=True)))

    read = read_config(path)

    assert (2, 1234, 4) == (read.tensor_parallel, read.seed, read.total_steps)
    assert (64, 500_000) == (read.model.hidden_size, read.model.rotary_base)
    assert (True, "none") == (read.options.overlap, read.options.recompute)


def test_options_may_be_left_out() -> None:
    """Then all of them have their defaults."""
    assert "megatron" == parse_config(without("options")).options.init


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "the configuration: not a JSON object"),
        (config() | {"model": 3}, "model: not a JSON object"),
        (config() | {"schema_version": 2}, "schema_version: this worker reads version 1, not 2"),
        (without("seed"), "missing key: seed"),
        (config() | {"sead": 1, "other": 2}, "unknown keys: other, sead"),
        (config(optimiser_lr=1.0), "unknown key: options.optimiser_lr"),
        (config(tensor_parallel=True), "tensor_parallel: true is not a whole number"),
        (config(tensor_parallel=2.0), "tensor_parallel: 2.0 is not a whole number"),
        (config(tensor_parallel=0), "tensor_parallel: 0 is too small: at least 1"),
        (config(warmup_steps=-1), "warmup_steps: -1 is too small: at least 0"),
        (config(virtual_pipeline="-"), 'virtual_pipeline: "-" is not a whole number or null'),
        (config(sequence_parallel=1), "sequence_parallel: 1 is not true or false"),
        (
            config(activation="relu"),
            'model.activation: "relu" is not one of silu, gelu, squared_relu',
        ),
        (
            config(optimizer_lr=float("inf")),
            "options.optimizer_lr: inf is not a positive, finite number",
        ),
        (config(optimizer_lr=0), "options.optimizer_lr: 0 is not a positive, finite number"),
        (config(batch_p2p_comm="no"), 'options.batch_p2p_comm: "no" is not true or false or null'),
    ],
)
def test_a_bad_configuration_is_refused_with_the_field_named(data: object, message: str) -> None:
    """And with what would be right."""
    with pytest.raises(WorkerConfigError) as refused:
        parse_config(data)

    assert message == str(refused.value)


@pytest.mark.parametrize("text", ["{", "\udcff"])
def test_a_file_that_is_not_json_is_refused_with_its_name(text: str, tmp_path: Path) -> None:
    """Whether it cannot be parsed or not even decoded."""
    path = tmp_path / "worker.json"
    path.write_bytes(text.encode(errors="surrogateescape"))

    with pytest.raises(WorkerConfigError, match=r"worker\.json: cannot be read as JSON: "):
        read_config(path)


def test_a_wrong_field_is_reported_with_its_file(tmp_path: Path) -> None:
    """So that the message alone says where to look."""
    path = tmp_path / "worker.json"
    path.write_text(json.dumps(config(seed=None)))

    with pytest.raises(WorkerConfigError, match=r"worker\.json: seed: null is not a whole number"):
        read_config(path)


SP = {"tensor_parallel": 2, "sequence_parallel": True}
VP = {"pipeline_parallel": 2, "virtual_pipeline": 2}

WRONG_LAYOUTS = [
    # (fields, world size, part of the message)
    ({**VP, "batch_p2p_comm": True}, 2, "wrong gradients: set options.batch_p2p_comm to false"),
    ({"virtual_pipeline": 2}, 1, "virtual_pipeline 2 needs pipeline_parallel > 1: write null"),
    ({"pipeline_parallel": 2, "virtual_pipeline": 1}, 2, "is no virtual pipeline: write null"),
    (
        {"pipeline_parallel": 2, "virtual_pipeline": 4},
        2,
        "num_layers 4 is not divisible by pipeline_parallel × virtual_pipeline 8",
    ),
    (
        {**VP, "global_batch_size": 3},
        2,
        "the number of micro-batches 3 is not divisible by pipeline_parallel 2",
    ),
    (
        {"tensor_parallel": 2},
        3,
        "world size 3 is not divisible by tensor_parallel × pipeline_parallel × context_parallel 2",
    ),
    (
        {"global_batch_size": 6},
        4,
        "global_batch_size 6 is not divisible by micro_batch_size × data parallel size 4",
    ),
    (
        {"tensor_parallel": 4, "num_attention_heads": 12, "num_query_groups": 6},
        4,
        "of num_query_groups 6 and tensor_parallel 4 neither divides the other",
    ),
    ({"tensor_parallel": 2, "vocab_size": 511}, 2, "vocab_size 511 is not divisible by tensor"),
    ({"num_query_groups": 3}, 1, "num_attention_heads 4 is not divisible by num_query_groups 3"),
    ({"head_dim": 15}, 1, "head_dim 15 is odd"),
    ({"sequence_parallel": True}, 1, "sequence_parallel needs tensor_parallel > 1"),
    ({**SP, "sequence_length": 63}, 2, "sequence_length 63 is not divisible by context_parallel"),
    (
        {"context_parallel": 2, "sequence_length": 66},
        2,
        "sequence_length 66 is not divisible by 2 × context_parallel 4",
    ),
    ({"expert_parallel": 2}, 2, "expert_parallel > 1 or expert_tensor_parallel needs a model with"),
    ({"moe_top_k": 2}, 1, "moe_* sizes are given, but num_experts is null"),
    ({"num_experts": 4}, 1, "moe_top_k and moe_ffn_hidden_size must be, too"),
    ({**EXPERTS, "moe_top_k": 5}, 1, "moe_top_k 5 is more than num_experts 4"),
    ({**EXPERTS, "tensor_parallel": 2}, 2, "experts with tensor_parallel > 1 need sequence_para"),
    ({**EXPERTS, "expert_parallel": 3}, 3, "num_experts 4 is not divisible by expert_parallel 3"),
    (
        {**EXPERTS, "expert_parallel": 4},
        2,
        "world size 2 is not divisible by "
        "expert_tensor_parallel × expert_parallel × pipeline_parallel 4",
    ),
    (
        {**EXPERTS, **SP, "expert_tensor_parallel": 1},
        2,
        "expert_tensor_parallel 1 with tensor_parallel 2 and expert_parallel 1 trains with wrong "
        "gradients: set expert_tensor_parallel to null",
    ),
]


@pytest.mark.parametrize(("fields", "world_size", "message"), WRONG_LAYOUTS)
def test_a_layout_that_would_train_wrongly_is_refused(
    fields: dict[str, object], world_size: int, message: str
) -> None:
    """Before anything is built, with the fields to change."""
    wrong = parse_config(config(**fields))

    with pytest.raises(WorkerConfigError) as refused:
        layout.check(wrong, world_size)

    assert message in str(refused.value)


def test_all_that_is_wrong_with_a_layout_is_said_at_once() -> None:
    """One message, not one per attempt."""
    wrong = parse_config(config(head_dim=15, virtual_pipeline=2, sequence_parallel=True))

    with pytest.raises(WorkerConfigError) as refused:
        layout.check(wrong, world_size=1)

    assert 3 == str(refused.value).count("; ") + 1


@pytest.mark.parametrize(
    ("fields", "world_size"),
    [
        ({}, 8),
        (VP, 2),
        ({**VP, "batch_p2p_comm": False}, 2),
        # With more than two stages the neighbours differ, and batching is only slower.
        (
            {
                "num_layers": 8,
                "pipeline_parallel": 4,
                "virtual_pipeline": 2,
                "batch_p2p_comm": True,
            },
            4,
        ),
        ({**EXPERTS, **SP, "expert_parallel": 2, "expert_tensor_parallel": 1}, 2),
        ({"tensor_parallel": 4, "num_query_groups": 2}, 4),
    ],
)
def test_a_layout_that_trains_rightly_passes(fields: dict[str, object], world_size: int) -> None:
    """Though it looks like one that does not."""
    layout.check(parse_config(config(**fields)), world_size)


@pytest.mark.parametrize(
    ("fields", "batched"),
    [({}, True), (VP, False), ({"batch_p2p_comm": False}, False), ({"batch_p2p_comm": True}, True)],
)
def test_an_interleaved_pipeline_does_not_batch_unless_told(
    fields: dict[str, object], batched: bool
) -> None:
    """Megatron-LM's rule, which the core library leaves to its callers."""
    assert batched == parse_config(config(**fields)).batch_p2p_comm


def test_the_batch_is_divided_over_replicas_and_micro_batches() -> None:
    """DP is what the other dimensions leave of the world."""
    read = parse_config(config(tensor_parallel=2, pipeline_parallel=2, micro_batch_size=2))

    assert (2, 2, 512) == (
        read.data_parallel(8),
        read.num_microbatches(8),
        read.tokens_per_step,
    )


@pytest.mark.parametrize(
    ("wanted", "found", "message"),
    [
        (None, "cpu", None),
        ("cpu", "cpu", None),
        ("cuda", "cuda", None),
        ("cuda", "cpu", "PyTorch 2.9.0 finds no GPU"),
        ("cpu", "cuda", "this run is for a machine without GPUs, and PyTorch finds one"),
    ],
)
def test_another_device_than_the_systems_is_refused(
    wanted: str | None, found: str, message: str | None
) -> None:
    with pytest.raises(WorkerConfigError, match=message) if message else nullcontext():
        layout.check_device(wanted, found, "2.9.0")
