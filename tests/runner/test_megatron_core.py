"""The Megatron-Core backend: which cases its worker cannot run, and what the others want."""

import sys
from pathlib import Path

import pytest

from perfdb import catalog, recipe
from perfdb.rundir import RunDir
from runner.backends import megatron_core
from tests import factories


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"model": "wan2.1-14b"}, "the worker trains dit models with data parallelism alone"),
        (
            {"model": "gpt-oss-20b"},
            "the worker builds gpt, moe and dit models, and gpt-oss-20b is sliding",
        ),
        ({"precision": "fp8_cs"}, "fp8_cs needs Transformer Engine, which is not installed here"),
        (
            {"precision": "nvfp4", "system": "cpu"},
            "nvfp4 needs a GPU: Transformer Engine, which computes it, runs on no CPU",
        ),
        (
            {"precision": "fp8"},
            "the worker does not train in fp8: it has fp32, bf16, fp8_ds, fp8_mx, fp8_cs, fp8_sc, "
            "nvfp4",
        ),
        (
            {"options": {"attention_backend": "flash"}},
            "attention_backend flash needs Transformer Engine, which is not installed here",
        ),
        ({"task": "lora"}, "the worker pre-trains; lora is not built"),
        ({"fsdp_size": 8}, "the worker has no FSDP"),
        ({"qualifiers": ("dropless",)}, "the worker takes no qualifiers from a recipe"),
        ({"kernels": ("te_rope",)}, "the worker takes no kernels from a recipe"),
        (
            {"micro_batch_size": None, "local_batch_size": 1},
            "the worker takes micro_batch_size, not local_batch_size",
        ),
    ],
)
def test_what_the_worker_cannot_run_has_a_reason(
    changed: dict[str, object], reason: str | None
) -> None:
    point = recipe.RunSpec("one", factories.case(**changed), 1, 3, 1234, 60, None, {})
    assert reason == megatron_core.unsupported(point)


@pytest.mark.parametrize(
    ("system", "changed", "expected"),
    [
        ("cpu", {"tensor_parallel": 2}, {"OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}),
        ("dgx-h100", {"tensor_parallel": 2}, {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}),
        ("dgx-h200", {"context_parallel": 2}, {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}),
        ("dgx-h100", {"tensor_parallel": 1, "context_parallel": 1}, {}),
        ("dgx-b200", {"tensor_parallel": 2}, {}),
    ],
)
def test_a_worker_has_the_variables_and_the_device_of_its_system(
    system: str, changed: dict[str, object], expected: dict[str, str]
) -> None:
    """Before Blackwell TP and CP need one hardware queue (Megatron-LM's arguments.py)."""
    point = recipe.RunSpec(
        "one", factories.case(system=system, **changed), 1, 3, 1234, 60, None, {}
    )
    command = megatron_core.command(point, RunDir(Path("run")))
    assert expected == command.variables
    assert ("--device", "cpu" if system == "cpu" else "cuda") == command.arguments[-2:]


@pytest.mark.parametrize(
    ("version", "precision", "reason"),
    [
        ("2.7.0", "nvfp4", None),
        ("2.6.0.post1", "nvfp4", "nvfp4 needs Transformer Engine 2.7, and 2.6.0.post1 is here"),
        ("1.13", "fp8_ds", None),
        ("2.0.1", "fp8_mx", "fp8_mx needs Transformer Engine 2.1, and 2.0.1 is here"),
    ],
)
def test_a_precision_needs_a_transformer_engine_that_has_it(
    version: str,
    precision: str,
    reason: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limits are those that Megatron-Core's fp8_utils.py and fp4_utils.py ask for."""
    information = tmp_path / f"transformer_engine-{version}.dist-info" / "METADATA"
    information.parent.mkdir()
    information.write_text(f"Metadata-Version: 2.1\nName: transformer_engine\nVersion: {version}\n")
    monkeypatch.syspath_prepend(tmp_path)
    case = factories.case(precision=precision, system="dgx-b200")
    point = recipe.RunSpec("one", case, 1, 3, 1234, 60, None, {})
    assert reason == megatron_core.unsupported(point)


@pytest.mark.parametrize("system", ["dgx-h100", "dgx-h200", "dgx-b200", "dgx-gb200"])
def test_block_formats_are_blackwells(system: str) -> None:
    peaks, known = catalog.system(system).peaks, catalog.precisions()
    has = {name for name in megatron_core.TRANSFORMER_ENGINE if known[name].is_of(peaks)}
    blackwell = {"fp8_mx", "nvfp4"} if "b200" in system else set()
    assert {"fp8_ds", "fp8_cs", "fp8_sc"} | blackwell == has


def test_the_version_is_that_of_the_code_that_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout on PYTHONPATH, whatever pip installed."""
    core = tmp_path / "megatron" / "core"
    core.mkdir(parents=True)
    (core / "__init__.py").write_text("raise SystemExit('is not imported to be asked')")
    (core / "package_info.py").write_text("__version__ = '0.99.0rc1'")
    for name in [name for name in sys.modules if name.split(".")[0] == "megatron"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    assert "0.99.0rc1" == megatron_core.version()
