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


@pytest.mark.filterwarnings("ignore:full scope is deprecated")  # the library's own default
@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        ("fp32", (None, None, False)),
        ("bf16", (None, None, True)),
        ("fp8_ds", ("hybrid", "delayed", True)),
        ("fp8_cs", ("hybrid", "tensorwise", True)),
        ("fp8_sc", ("e4m3", "blockwise", True)),
        ("fp8_mx", ("e4m3", "mxfp8", True)),
        ("nvfp4", ("e2m1", "nvfp4", True)),
    ],
)
def test_a_precision_is_megatron_cores_own(
    precision: str, expected: tuple[str | None, str | None, bool]
) -> None:
    """Its dataclass takes the fields, and Transformer Engine's recipe is chosen by one it knows."""
    torch = pytest.importorskip("torch")  # here: it takes each process that collects seconds
    model = pytest.importorskip("runner.megatron.model")
    enums = pytest.importorskip("megatron.core.enums")
    read = parse_config(config(attention_backend="flash") | {"precision": precision})
    made = model.transformer_config(read, on_gpu=False)
    is_fp4 = made.fp4 is not None
    asked = (made.fp4, made.fp4_recipe) if is_fp4 else (made.fp8, made.fp8 and made.fp8_recipe)
    assert expected == (*asked, made.bf16)
    assert "flash" == made.attention_backend.name
    if recipe := asked[1]:
        assert recipe in {one.value for one in (enums.Fp4Recipe if is_fp4 else enums.Fp8Recipe)}
        with pytest.raises(WorkerConfigError, match="needs Transformer Engine on a GPU"):
            model.build(read, torch.device("cpu"))
