"""The training process: what it writes, what it refuses, and what it never imports."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from perfdb import catalog, flops, recipe
from perfdb.flops import lora
from runner.backends import megatron_core
from tests.runner.megatron_worker import ROOT, Job, config, job, needs_megatron

PACKAGE = ROOT / "runner" / "megatron"

# As Megatron-LM 0.16 prints it, less the fields it prints on request only.
ITERATION = re.compile(
    r"^ \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] iteration +(\d+)/ +4 \| consumed samples: +\d+ \| "
    r"elapsed time per iteration \(ms\): [\d.]+ \| learning rate: 1\.000000E-03 \| "
    r"global batch size: +8 \| lm loss: 6\.\d{6}E\+00 \| loss scale: 1\.0 \| "
    r"grad norm: \d\.\d{3} \| number of skipped iterations:   0 \| "
    r"number of nan iterations:   0 \|$",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def finished(preloaded: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, str]:
    """A run in BF16 on two processes, with recomputation, and what it printed."""
    settings = config(precision="bf16", recompute="selective")
    run = job(preloaded / "python", tmp_path_factory.mktemp("run"), settings, processes=2)
    return run, run.run()


@needs_megatron
@pytest.mark.slow
def test_it_writes_a_line_for_every_step(finished: tuple[Job, str]) -> None:
    """Warm-up steps too, also on the console; BF16 is within 1e-3 of the losses in FP32."""
    run, output = finished
    assert [1, 2, 3, 4] == [step["step"] for step in run.steps]
    assert {8 * 64} == {step["tokens"] for step in run.steps}
    assert all(0 < step["step_time_min_s"] <= step["step_time_s"] < 60 for step in run.steps)
    assert all(step["peak_memory_bytes"] > 100e6 for step in run.steps)
    assert not any(step["skipped"] or "cuda_event_time_s" in step for step in run.steps)
    fp32 = [6.248015, 6.178706, 6.167975, 6.121106]
    assert fp32 == pytest.approx([step["loss"] for step in run.steps], rel=1e-3)
    assert ["1", "2", "3", "4"] == ITERATION.findall(output)


@needs_megatron
def test_it_sums_up_a_run_that_went_well(finished: tuple[Job, str]) -> None:
    """With the layout it really had, and with the uses of the CPU shim."""
    run, _ = finished
    summary = run.summary
    names = ("schema_version", "world_size", "data_parallel", "num_microbatches", "num_parameters")
    assert [1, 2, 2, 4, 229_952] == [summary[name] for name in names]
    names = ("backend", "device", "memory_kind", "cpu_shim")
    assert ["gloo", "cpu", "process_rss", True] == [summary[name] for name in names]
    assert summary["cpu_shim_hits"]
    first, second = summary["ranks"]
    assert {"rank": 0, "tp": 0, "pp": 0, "cp": 0, "ep": 0, "dp": 0} == first
    assert first | {"rank": 1, "dp": 1} == second
    assert {"python", "torch", "megatron-core", "cuda", "nccl"} <= set(summary["versions"])
    assert 2 == len(summary["peak_memory_bytes"])
    assert not list(run.folder.glob(".summary*"))


@needs_megatron
def test_a_diffusion_transformer_has_the_parameters_of_its_flops_and_learns(
    preloaded: Path, tmp_path: Path
) -> None:
    """Its matrices are those that the formula of WAN 2.1 counts.

    Beside them are four blocks' six modulations and a norm's weights and biases, and the biases and
    two modulations around them.
    """
    [file] = recipe.load([ROOT / "recipes" / "smoke" / "dit.yaml"])
    settings = megatron_core.settings(file.points[0])
    settings |= {"warmup_steps": 1, "measured_steps": 7}
    run = job(preloaded / "python", tmp_path, settings, processes=2)
    run.run()
    cost = flops.FORMULAS["dit"].cost(catalog.model("dit-tiny"), 64, flops.DEFAULT)
    assert cost
    vectors = 4 * (6 + 2) * 64 + (5 + 6 + 2) * 64 + 16
    assert lora.parameters(cost) + vectors == run.summary["num_parameters"] == 238_416
    losses = [step["loss"] for step in run.steps]
    # Video and noise have the variances ½ and 1, and nothing of either is known at first.
    assert losses[0] == pytest.approx(1.5, rel=0.5)
    assert sum(losses[4:]) < 0.95 * sum(losses[:4])


@needs_megatron
def test_a_refused_configuration_ends_the_job_with_its_reason(
    preloaded: Path, tmp_path: Path
) -> None:
    """On the console and in torchrun's error file; no step is made."""
    run = job(preloaded / "python", tmp_path, config() | {"schema_version": 2})
    with run.start() as process:
        output, _ = process.communicate()
    reason = "schema_version: this worker reads version 1, not 2"
    assert 1 == process.returncode
    assert reason in output
    errors = [json.loads(path.read_text()) for path in tmp_path.glob("logs/**/error.json")]
    assert any(reason in str(error) for error in errors)
    assert not (tmp_path / "steps.jsonl").exists()
    assert not (tmp_path / "summary.json").exists()


@needs_megatron
def test_the_cpu_shim_is_imported_only_when_it_is_installed(preloaded: Path) -> None:
    """So that it is never imported where there is a GPU."""
    code = "import runner.megatron.train, sys; print(*sys.modules)"
    done = subprocess.run(
        [preloaded / "python", "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {name for name in done.stdout.split() if name.startswith("runner.megatron.")}
    every_module = {f"runner.megatron.{path.stem}" for path in PACKAGE.glob("[!_]*.py")}
    apart = {f"runner.megatron.{name}" for name in ("checkpoint", "cpu", "fake_world")}
    assert every_module - apart == loaded


WORKERS = [
    *sorted(PACKAGE.glob("*.py")), *sorted((ROOT / "runner" / "automodel").glob("*.py")),
    ROOT / "runner" / "cpu.py", ROOT / "runner" / "worker.py",
]  # fmt: skip
OWN = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in WORKERS} | {
    "runner.megatron", "runner.automodel",
}  # fmt: skip


@pytest.mark.parametrize("path", WORKERS, ids=lambda path: "/".join(path.parts[-2:]))
def test_the_worker_imports_only_what_every_container_has(path: Path) -> None:
    """The standard library, torch, its framework, and the workers' own modules."""
    allowed = sys.stdlib_module_names | {"torch", "megatron", "nemo_automodel"}
    imported = {
        name
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }

    strangers = {name for name in imported if name.partition(".")[0] not in allowed}
    assert strangers <= OWN
