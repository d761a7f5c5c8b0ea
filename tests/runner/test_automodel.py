"""The AutoModel backend: the YAML of a case, what cannot be run, and runs of the smoke recipes."""

import json
import os
from collections.abc import Mapping
from importlib.util import find_spec
from math import log, sqrt
from pathlib import Path

import pytest

from perfdb import catalog, flops, formats, recipe, yamlfile
from perfdb.errors import InputError
from perfdb.run_record import RunRecord
from perfdb.rundir import RunDir, find_runs
from runner.backends import automodel
from tests import factories
from tests.shell import Shell

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes" / "smoke-automodel"
needs_automodel = pytest.mark.skipif(
    find_spec("nemo_automodel") is None and not os.environ.get(automodel.PYTHON),
    reason="needs nemo-automodel (the extra automodel)",
)


def spec(**changed: object) -> recipe.RunSpec:
    fields: dict[str, object] = {"framework": "automodel", "micro_batch_size": None}
    case = factories.case(**{**fields, "local_batch_size": 1, **changed})
    return recipe.RunSpec("one", case, 5, 20, 1234, 60, None, {})


def at(made: object, key: str) -> object:
    for name in key.split("."):
        made = made.get(name) if isinstance(made, Mapping) else None
    return made


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {"step_scheduler.max_steps": 25, "benchmark.warmup_steps": 5, "peft": None,
              "model.config.pretrained_model_name_or_path": "meta-llama/Meta-Llama-3-8B",
              "distributed.mp_policy.param_dtype": "bfloat16", "dist_env.backend": "nccl"}),
        # Mixed precision is BF16 unless AutoModel is told otherwise.
        ({"system": "cpu", "model": "moe-tiny", "precision": "fp32"},
         {"distributed.mp_policy.param_dtype": "float32", "dist_env.backend": "gloo",
          "model.config._target_": "transformers.Qwen3MoeConfig",
          "model.config.num_experts_per_tok": 2, "model.backend.dispatcher": "torch"}),
        ({"num_gpus": 16, "data_parallel": 16, "fsdp_size": 8},
         {"distributed.dp_replicate_size": 2}),
        ({"task": "lora", "options": {"lora_rank": 16}, "kernels": ("TE", "triton")},
         {"peft.dim": 16, "peft.use_triton": True, "model.backend.attn": "te"}),
        ({"pipeline_parallel": 4, "virtual_pipeline": 8, "micro_batch_size": 1},
         {"distributed.pipeline.layers_per_stage": 1,
          "distributed.pipeline.pp_schedule": "interleaved1f1b"}),
    ],
)  # fmt: skip
def test_a_case_makes_the_yaml_that_automodel_reads(
    changed: dict[str, object], expected: dict[str, object]
) -> None:
    point = spec(**changed)
    assert automodel.unsupported(point) is None
    run = RunDir(Path("run"))
    text = automodel.files(point, run)["framework_config.yaml"]
    document = yamlfile.parse("", text)
    assert isinstance(document, yamlfile.Document)
    assert expected == {key: at(document.content, key) for key in expected}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"model": "wan2.1-14b"}, "trains language models"),
        ({"model": "gpt3-175b"}, "has no name on Hugging Face"),
        ({"precision": "fp8_cs"}, "a made configuration has bf16 and fp32, not fp8_cs"),
        ({"task": "sft"}, "the recipe pre-trains, or trains LoRA"),
        ({"local_batch_size": None}, "takes local_batch_size"),
        ({"kernels": ("te_rope",)}, "no kernel te_rope: there are TE, DeepEP"),
    ],
)
def test_what_cannot_be_made_has_a_reason(changed: dict[str, object], reason: str) -> None:
    assert reason in (automodel.unsupported(spec(**changed)) or "")


def test_a_python_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(automodel.PYTHON, "/nowhere/python")
    with pytest.raises(InputError, match=r"PERFDB_AUTOMODEL_PYTHON: cannot be run: .*; name the"):
        automodel.version()
    monkeypatch.setenv(automodel.PYTHON, "/bin/true")
    assert automodel.version() is None


@needs_automodel
@pytest.mark.slow
def test_the_smoke_recipes_train(perfdb: Shell, tmp_path: Path) -> None:
    """A tiny Llama and a tiny Qwen3 MoE on one process and on two, and LoRA."""
    assert 0 == perfdb("run", str(RECIPES), "--output", "runs").code
    runs = {(it.case.model, it.case.task, it.case.num_gpus): run
            for run in find_runs(tmp_path) for it in [run.read_record()]}  # fmt: skip
    wanted = {(model, "pretrain", size) for model in ("gpt-tiny", "moe-tiny") for size in (1, 2)}
    assert wanted | {("gpt-tiny", "lora", 2)} == set(runs)
    for run in runs.values():
        record = run.read_record()
        assert ("finished", 25) == (record.outcome, len(run.read_steps()))
        _agrees_with_automodel(run, record)
    # 213,568 is what megatron-core counts of the same model. Of rank 8 the adapters of a layer
    # have 8 × (128 + 96 + 96 + 128 + 3 × 192) = 8,192 weights; there are four layers.
    first, tuned = (json.loads(runs[key].summary.read_text())
                    for key in (("gpt-tiny", "pretrain", 2), ("gpt-tiny", "lora", 2)))  # fmt: skip
    assert (213_568, 213_568) == (first["num_parameters"], first["num_trainable_parameters"])
    assert (213_568 + 32_768, 32_768) == (
        tuned["num_parameters"], tuned["num_trainable_parameters"],
    )  # fmt: skip
    # Labels are random words out of 512: the loss is ln 512, and half the variance of the logits:
    # 64 × 0.02² of transformers' Llama, 64 × (1/√64)² of AutoModel's Qwen3 MoE. The mean of 256
    # tokens is as far off as the deviation of the logits / 16: within four of these.
    variances = {"gpt-tiny": 64 * 0.02**2, "moe-tiny": 1.0}
    for (model, *_), run in runs.items():
        allowed = sqrt(variances[model]) / 4
        expected = pytest.approx(log(512) + variances[model] / 2, abs=allowed)
        assert expected == run.read_steps()[0].loss


def _agrees_with_automodel(run: RunDir, record: RunRecord) -> None:
    """Steps are what AutoModel sums up, its console reads the same, its FLOPs are `causal`."""
    summary, steps = json.loads(run.framework_summary.read_text()), run.read_steps()
    case = record.case
    mean_s = sum(step.step_time_s for step in steps[record.warmup_steps :]) / record.measured_steps
    if case.num_gpus == 1:  # of several, AutoModel averages the first rank's and not the slowest's
        assert mean_s == pytest.approx(summary["avg_iter_time_seconds"], rel=0.01)
    assert (case.global_batch_size, case.sequence_length) == (
        summary["global_batch_size"], summary["seq_len"],
    )  # fmt: skip
    console = next(log for log in run.logs() if "| Iteration 0" in log.read_text())
    [log] = formats.FORMATS["automodel_benchmark"].parse("", [console.read_bytes()])
    assert [it.step_time_s for it in steps] == [it.step_time_s for it in log.steps]
    assert [it.loss for it in steps] == [it.loss for it in log.steps]
    if case.task == "pretrain":
        of_token = flops.flops_per_token(catalog.model(case.model), case.sequence_length)
        tokens = case.global_batch_size * case.sequence_length
        assert of_token
        assert summary["tflops_total"] == pytest.approx(of_token * tokens / 1e12)
