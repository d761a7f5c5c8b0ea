"""The worker's configuration: what it reads, and how it says what is wrong."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from runner.megatron.config import WorkerConfigError, parse_config, read_config
from tests.runner.megatron_worker import config


def without(name: str) -> dict[str, object]:
    return {key: value for key, value in config().items() if key != name}


def test_it_reads_what_was_written(tmp_path: Path) -> None:
    """With the defaults of the options that are left out."""
    path = tmp_path / "worker.json"
    path.write_text(json.dumps(config(tensor_parallel=2, rotary_base=500_000, overlap=True)))
    read = read_config(path)
    assert (2, 1234, 4) == (read.tensor_parallel, read.seed, read.total_steps)
    assert (64, 500_000) == (read.model.hidden_size, read.model.rotary_base)
    assert (True, "none") == (read.options.overlap, read.options.recompute)
    assert "megatron" == parse_config(without("options")).options.init


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (config() | {"schema_version": 2}, "schema_version: this worker reads version 1, not 2"),
        (without("seed"), "missing 1 required positional argument: 'seed'"),
        (config() | {"sead": 1}, "unexpected keyword argument 'sead'"),
        (config(optimiser_lr=1.0), "unexpected keyword argument 'optimiser_lr'"),
        (None, "cannot be read as JSON: "),
    ],
)
def test_a_configuration_of_another_version_is_refused(
    data: dict[str, object] | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "worker.json"
    path.write_text(json.dumps(data) if data else "{")
    with pytest.raises(WorkerConfigError, match=message) as refused:
        read_config(path)
    assert str(refused.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("fields", "batched"),
    [
        ({}, True),
        ({"pipeline_parallel": 2, "virtual_pipeline": 2}, False),
        ({"pipeline_parallel": 4, "virtual_pipeline": 2, "batch_p2p_comm": True}, True),
    ],
)
def test_an_interleaved_pipeline_does_not_batch_its_messages(
    fields: dict[str, object], batched: bool
) -> None:
    """Unless the recipe says so: it is at best slower."""
    assert batched == parse_config(config(**fields)).batch_p2p_comm


def test_the_batch_is_divided_over_the_copies_of_the_model() -> None:
    read = parse_config(config(tensor_parallel=2, pipeline_parallel=2, micro_batch_size=2))
    assert (2, 2) == (read.data_parallel(8), read.num_microbatches(8))
    assert 512 == read.tokens_per_step


@pytest.mark.parametrize(
    ("wanted", "found", "message"),
    [
        ("cuda", "cpu", "PyTorch 2.9.0 finds no GPU"),
        ("cpu", "cuda", "this run is for a machine without GPUs"),
        ("cuda", "cuda", None),
        (None, "cpu", None),
    ],
)
def test_a_run_is_refused_on_another_device(wanted: str, found: str, message: str | None) -> None:
    from runner.worker import DeviceError, check_device

    with pytest.raises(DeviceError, match=message) if message else nullcontext():
        check_device(wanted, found, "2.9.0")
