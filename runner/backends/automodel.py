"""NeMo AutoModel: its own benchmark recipe on its own YAML, driven by runner.automodel.train.

Its packages may be in an environment of their own, as Megatron-Bridge's do not go with them:
PERFDB_AUTOMODEL_PYTHON names the Python that has them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata

from perfdb import catalog, yamlfile
from perfdb.catalog import Model
from perfdb.errors import Diagnostic, InputError
from perfdb.recipe import RunSpec
from perfdb.record import Case
from perfdb.rundir import RunDir
from runner.backends.base import Command

NAME = "automodel"
PYTHON = "PERFDB_AUTOMODEL_PYTHON"
PACKAGE = "nemo-automodel"
SOURCE = "nemo_automodel"
TYPES = {"bf16": "bfloat16", "fp32": "float32"}
FAMILIES = {"gpt": "Llama", "moe": "Qwen3Moe"}
"""How transformers calls models of the catalog that have no name on Hugging Face."""
KERNELS: Mapping[str, Mapping[str, object]] = {
    "TE": {"backend": {"attn": "te", "linear": "te", "rms_norm": "te"}},
    "DeepEP": {"backend": {"experts": "torch_mm", "dispatcher": "deepep"}},
    "FlexAttn": {"backend": {"attn": "flex"}},
    "TorchSDPA": {"backend": {"attn": "sdpa"}},
    "triton": {"peft": {"use_triton": True}},
    "fsdp2_prefetch": {"distributed": {"enable_fsdp2_prefetch": True}},
}
"""What the kernels that NVIDIA's pages name are in AutoModel's YAML."""
FIELDS = (
    "precision", "sequence_length", "global_batch_size", "local_batch_size", "tensor_parallel",
    "pipeline_parallel", "context_parallel", "expert_parallel", "sequence_parallel",
)  # fmt: skip


def version() -> str | None:
    """The nemo-automodel in its Python; None if there is none. Raises InputError."""
    if python() == sys.executable:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(PACKAGE)
        return None
    code = f"from importlib.metadata import version; print(version({PACKAGE!r}))"
    try:
        done = subprocess.run(
            [python(), "-c", code], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        remedy = "name the python of an environment with nemo-automodel"
        raise InputError(Diagnostic(PYTHON, f"cannot be run: {error}", remedy=remedy)) from error
    return done.stdout.strip() or None


def python() -> str:
    """The Python that has AutoModel's packages: this one, unless the environment names another."""
    return os.environ.get(PYTHON) or sys.executable


def unsupported(point: RunSpec) -> str | None:
    """A YAML that a recipe carries says all by itself; one that is made knows less."""
    case = point.case
    if point.framework_config:
        return None
    model = catalog.model(case.model)
    unknown = [one for one in case.kernels if one not in KERNELS]
    checks = (
        (not _on_hugging_face(model) and (model.family not in FAMILIES or not _like_llama(model)),
         f"{case.model} has no name on Hugging Face, and is no Llama or Qwen3 MoE"),
        (model.family == "dit", f"the recipe trains language models, and {case.model} is none"),
        (case.precision not in TYPES,
         f"a made configuration has {' and '.join(TYPES)}, not {case.precision}"),
        (case.task == "sft", "the recipe pre-trains, or trains LoRA"),
        (not case.local_batch_size, "AutoModel takes local_batch_size"),
        (case.expert_tensor_parallel, "AutoModel has no expert tensor parallelism"),
        (unknown, f"no kernel {', '.join(unknown)}: there are {', '.join(KERNELS)}"),
        (case.qualifiers, "AutoModel takes no qualifiers from a recipe"),
    )  # fmt: skip
    return next((reason for is_unsupported, reason in checks if is_unsupported), None)


def files(point: RunSpec, run: RunDir) -> dict[str, str]:
    """The fields of the case, against which its steps are checked; AutoModel's YAML."""
    case = point.case
    told = {
        "schema_version": 1,
        **case.model_dump(include=set(FIELDS)),
        "warmup_steps": point.warmup_steps,
        "measured_steps": point.measured_steps,
        "seed": point.seed,
    }
    return {
        run.worker_config.name: json.dumps(told, indent=1),
        run.framework_config.name: point.framework_config or yamlfile.dumped(configuration(point)),
    }


def command(point: RunSpec, run: RunDir) -> Command:
    """One process per GPU (per rank on the cpu system), in AutoModel's own Python."""
    on_cpu = not catalog.has_gpus(point.case.system)
    variables = {"OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"} if on_cpu else {}
    return Command(
        module="runner.automodel.train",
        arguments=(
            "--steps", str(run.steps.absolute()),
            "--summary", str(run.summary.absolute()),
            "--device", "cpu" if on_cpu else "cuda",
            "-c", str(run.framework_config.absolute()),
            "--benchmark.json_output_path", str(run.framework_summary.absolute()),
            # Where it writes training.jsonl, also without checkpoints.
            "--checkpoint.checkpoint_dir", str(run.rank_logs.absolute()),
        ),
        processes=point.case.num_gpus,
        variables=variables,
        python=python(),
    )  # fmt: skip


# ------------------------------------------------------------------------------ AutoModel's YAML


def configuration(point: RunSpec) -> dict[str, object]:
    """The YAML of a case, as a value."""
    case, model = point.case, catalog.model(point.case.model)
    made: dict[str, dict[str, object] | str | int] = {
        "recipe": "BenchmarkingRecipeForNextTokenPrediction",
        "seed": point.seed,
        "benchmark": {
            "warmup_steps": point.warmup_steps, "peak_tflops": _peak_tflops(case),
            "nsys_start": -1, "nsys_end": -1, "nsys_ranks": [],
        },
        "step_scheduler": {
            "global_batch_size": case.global_batch_size,
            "local_batch_size": case.local_batch_size,
            "ckpt_every_steps": point.warmup_steps + point.measured_steps + 1,
            "num_epochs": 1,
            "max_steps": point.warmup_steps + point.measured_steps,
        },
        "dist_env": {"backend": "nccl" if catalog.has_gpus(case.system) else "gloo",
                     "timeout_minutes": 5},
        "distributed": _distributed(case, model),
        "model": _model(case, model),
        "checkpoint": {"enabled": False},
        "loss_fn": {"_target_": f"{SOURCE}.components.loss.masked_ce.MaskedCrossEntropy"},
        "dataset": {
            "_target_":
                f"{SOURCE}.components.datasets.llm.mock_iterable_dataset.MockIterableDataset",
            "seq_len": case.sequence_length, "vocab_size": model.vocab_size,
            # Else the recipe loads one from the hub.
            "tokenizer": None,
        },
        "dataloader": {"_target_": "torch.utils.data.DataLoader",
                       "batch_size": None, "num_workers": 0},
        "optimizer": {"_target_": "torch.optim.AdamW", "weight_decay": 0.0,
                      "lr": case.options.get("optimizer_lr", 1e-3)},
    }  # fmt: skip
    if case.task == "lora":
        made["peft"] = _adapter(case)
    return dict(made)


def _peak_tflops(case: Case) -> float:
    """The peak of AutoModel's own MFU; of a CPU none is known, and AutoModel wants one."""
    peak = catalog.system(case.system).peaks.get(case.precision or "")
    return peak.tflops if peak else 1.0


def _distributed(case: Case, model: Model) -> dict[str, object]:
    kind = TYPES[case.precision or ""]
    made: dict[str, object] = {
        "strategy": "fsdp2",
        "dp_replicate_size": max(1, (case.data_parallel or 1) // (case.fsdp_size or case.num_gpus)),
        "tp_size": case.tensor_parallel,
        "cp_size": case.context_parallel,
        "pp_size": case.pipeline_parallel,
        "ep_size": case.expert_parallel,
        "sequence_parallel": case.sequence_parallel,
        "activation_checkpointing": case.options.get("activation_checkpointing", False),
        # AutoModel computes in BF16 by default, whatever type the model has.
        "mp_policy": {
            "_target_": "torch.distributed.fsdp.MixedPrecisionPolicy",
            "param_dtype": kind, "reduce_dtype": "float32", "output_dtype": kind,
            "cast_forward_inputs": True,
        },
        **_of_kernels(case, "distributed"),
    }  # fmt: skip
    if (case.pipeline_parallel or 1) > 1:
        chunks = (case.pipeline_parallel or 1) * (case.virtual_pipeline or 1)
        made["pipeline"] = {
            "pp_schedule": "interleaved1f1b" if case.virtual_pipeline else "1f1b",
            "pp_microbatch_size": case.micro_batch_size or 1,
            "layers_per_stage": -(-model.num_layers // chunks),
            "scale_grads_in_schedule": False,
        }
    return made


def _model(case: Case, model: Model) -> dict[str, object]:
    """The model by its name on Hugging Face or, without one, by its sizes."""
    name = _on_hugging_face(model)
    backend: dict[str, object] = {"attn": "sdpa", "linear": "torch", "rms_norm": "torch"}
    if model.num_experts:
        backend |= {"experts": "torch", "dispatcher": "torch"}
    chosen = {key.removeprefix("backend_"): value for key, value in case.options.items()
              if key.startswith("backend_")}  # fmt: skip
    backend = {**backend, **_of_kernels(case, "backend"), **chosen}
    return {
        "_target_": f"{SOURCE}.NeMoAutoModelForCausalLM.from_config",
        "config": {"_target_": "transformers.AutoConfig.from_pretrained",
                   "pretrained_model_name_or_path": name} if name else _sizes(case, model),
        "torch_dtype": TYPES[case.precision or ""],
        "backend": {
            "_target_": f"{SOURCE}.components.models.common.BackendConfig",
            "rope_fusion": False, "enable_hf_state_dict_adapter": False, **backend,
        },
    }  # fmt: skip


def _sizes(case: Case, model: Model) -> dict[str, object]:
    family = FAMILIES[model.family]
    experts = {
        "num_experts": model.num_experts,
        "num_experts_per_tok": model.moe_top_k,
        "moe_intermediate_size": model.moe_ffn_hidden_size,
        "norm_topk_prob": True,
    }
    return {
        "_target_": f"transformers.{family}Config",
        "architectures": [f"{family}ForCausalLM"],
        "num_hidden_layers": model.num_layers,
        "hidden_size": model.hidden_size,
        "intermediate_size": model.ffn_hidden_size,
        "num_attention_heads": model.num_attention_heads,
        "num_key_value_heads": model.num_query_groups,
        "head_dim": model.head_dim,
        "vocab_size": model.vocab_size,
        "rope_theta": model.rotary_base,
        "tie_word_embeddings": model.tied_embeddings,
        "max_position_embeddings": case.sequence_length,
        **(experts if model.num_experts else {}),
    }


def _adapter(case: Case) -> dict[str, object]:
    """LoRA on every linear layer but the output's, as AutoModel's examples have it."""
    return {
        "_target_": f"{SOURCE}.components._peft.lora.PeftConfig",
        "match_all_linear": False,
        "target_modules": ["*_proj"],
        "dim": case.options.get("lora_rank", 8),
        "alpha": case.options.get("lora_alpha", 32),
        **_of_kernels(case, "peft"),
    }


def _of_kernels(case: Case, section: str) -> dict[str, object]:
    """What the kernels of a case set in a section."""
    every = (KERNELS[one].get(section) for one in case.kernels)
    return {name: value for one in every if isinstance(one, dict) for name, value in one.items()}


def _on_hugging_face(model: Model) -> str | None:
    return next((alias for alias in model.aliases if "/" in alias), None)


def _like_llama(model: Model) -> bool:
    """Whether a model differs from a Llama or a Qwen3 MoE only in its sizes."""
    like = model.gated_mlp, model.activation, model.normalization
    return like == (True, "silu", "RMSNorm") and not model.moe_shared_expert_ffn_hidden_size
