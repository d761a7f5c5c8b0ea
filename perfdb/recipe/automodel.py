"""AutoModel's own YAML: what it says of a case, and what its benchmark recipe would stumble over.

Source: nemo_automodel/recipes/llm/benchmark.py and recipes/_dist_utils.py, 0.7.0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from perfdb import catalog, yamlfile
from perfdb.errors import Diagnostic
from perfdb.record import MOST
from perfdb.yamlfile import Document, Place

FRAMEWORK: Final = "automodel"
SEED: Final = 42
"""The default of AutoModel."""
_FROM: Final = (
    ("sequence_length", "dataset.seq_len"),
    ("global_batch_size", "step_scheduler.global_batch_size"),
    ("local_batch_size", "step_scheduler.local_batch_size"),
    ("tensor_parallel", "distributed.tp_size"),
    ("pipeline_parallel", "distributed.pp_size"),
    ("context_parallel", "distributed.cp_size"),
    ("expert_parallel", "distributed.ep_size"),
    ("sequence_parallel", "distributed.sequence_parallel"),
    ("warmup_steps", "benchmark.warmup_steps"),
    ("measured_steps", "step_scheduler.max_steps"),
    ("seed", "seed"),
    ("task", "peft"),
    ("precision", "model"),
    ("model", "model"),
)
"""The fields of a recipe, and where AutoModel's YAML has them."""
_TYPES: Final = {
    **dict.fromkeys(("bf16", "bfloat16", "torch.bfloat16"), "bf16"),
    **dict.fromkeys(("fp32", "float32", "torch.float32", "float"), "fp32"),
}
_PRETRAINED: Final = "pretrained_model_name_or_path"

_Size = Annotated[int | None, Field(strict=True, gt=0, le=MOST)]
_Count = Annotated[int, Field(strict=True, gt=0, le=MOST)]
_Whole = Annotated[int, Field(strict=True)]


class _Section(BaseModel):
    """A part of the YAML, which may hold what perfdb does not know."""

    model_config = ConfigDict(extra="allow", frozen=True)


class _Benchmark(_Section):
    """AutoModel reads each of these without a default."""

    warmup_steps: Annotated[int, Field(strict=True, ge=0, le=MOST)]
    peak_tflops: Annotated[float, Field(gt=0)]
    nsys_start: _Whole
    nsys_end: _Whole
    nsys_ranks: list[_Whole]


class _Scheduler(_Section):
    global_batch_size: _Count
    local_batch_size: _Count
    max_steps: _Count


class _Dataset(_Section):
    seq_len: _Count


class _Distributed(_Section):
    strategy: Literal["fsdp2", "megatron_fsdp"] = "fsdp2"
    tp_size: _Size = 1
    pp_size: _Size = 1
    cp_size: _Size = 1
    ep_size: _Size = 1
    sequence_parallel: Annotated[bool, Field(strict=True)] = False
    mp_policy: Mapping[str, Any] | None = None


class _Model(_Section):
    """By a configuration, or by the name of pretrained weights (`from_pretrained`)."""

    config: Mapping[str, Any] = {}

    @property
    def named_at(self) -> tuple[Place, object]:
        """Where its name is, and the name; None where there is none."""
        if _PRETRAINED in self.config:
            return ("model", "config", _PRETRAINED), self.config[_PRETRAINED]
        return ("model", _PRETRAINED), (self.model_extra or {}).get(_PRETRAINED)


class _Config(_Section):
    recipe: Literal["BenchmarkingRecipeForNextTokenPrediction"] | None = None
    seed: Annotated[int, Field(strict=True, ge=0, le=MOST)] = SEED
    benchmark: _Benchmark
    step_scheduler: _Scheduler
    dataset: _Dataset
    distributed: _Distributed
    model: _Model
    peft: Mapping[str, Any] | None = None
    fp8: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Stated:
    """The fields of a recipe that a YAML states; others are its reader's to say."""

    document: Document
    fields: Mapping[str, object]

    def problem(self, field: str, message: str, remedy: str | None = None) -> Diagnostic:
        """A problem with a field, at the key that states it."""
        key = dict(_FROM).get(field, "")
        found = self.document.problem(_place(key), message, remedy)
        return found if key else found.of(field)


def read(where: str, text: str) -> Stated | list[Diagnostic]:
    """What a YAML says of a case, or everything that is wrong with it."""
    document = yamlfile.parse(where, text)
    if isinstance(document, yamlfile.Unreadable):
        return list(document.problems)
    config = yamlfile.validate(document, _Config)
    problems = config if isinstance(config, list) else [*_faults(document, config)]
    if isinstance(config, list) or problems:
        return problems
    stated = {field: _value(config, key) for field, key in _FROM}
    stated["measured_steps"] = config.step_scheduler.max_steps - config.benchmark.warmup_steps
    stated["task"] = "lora" if config.peft else "pretrain"
    stated["precision"] = _precision(config)
    stated["model"] = catalog.named_model(str(config.model.named_at[1] or ""))
    known = {field: value for field, value in stated.items() if value is not None}
    return Stated(document, {"framework": FRAMEWORK, **known})


def differences(text: str, fields: Mapping[str, object]) -> Iterator[Diagnostic]:
    """How a YAML is wrong, or says something else than the recipe that carries it."""
    stated = read("", text)
    if isinstance(stated, list):
        yield from stated
        return
    for field, value in stated.fields.items():
        if value != fields[field]:
            message = f"{value} is not the {field} of the recipe, {fields[field]}"
            yield stated.problem(field, message, "make them equal")


def _faults(document: Document, config: _Config) -> Iterator[Diagnostic]:
    steps, warmup = config.step_scheduler.max_steps, config.benchmark.warmup_steps
    if warmup >= steps:
        message = f"{warmup} warm-up steps leave none of the {steps} steps of max_steps to measure"
        yield document.problem(_place("benchmark.warmup_steps"), message, "make it smaller")
    place, name = config.model.named_at
    if isinstance(name, str) and name.startswith("."):
        message = f"{name!r} is relative to the folder of the run"
        yield document.problem(place, message, "write an absolute path, or a Hugging Face name")
    if name is None and "_target_" not in config.model.config:
        message = f"needs {_PRETRAINED}, or a config with _target_ and its fields"
        yield document.problem(_place("model"), message, "add one")


def _precision(config: _Config) -> str | None:
    """The type of the matrix products; None where FP8 leaves the scaling open."""
    fp8 = config.fp8 or {}
    if fp8.get("enabled", bool(fp8)):
        return {"tensorwise": "fp8_cs"}.get(str(fp8.get("recipe_name", "tensorwise")))
    policy = config.distributed.mp_policy
    stored = (config.model.model_extra or {}).get("torch_dtype")
    # AutoModel's default computes in BF16, whatever type the weights are kept in.
    used = policy.get("param_dtype") or stored if policy else "bf16"
    return _TYPES.get(str(used).lower())


def _value(config: BaseModel, key: str) -> object:
    value: object = config
    for name in key.split("."):
        value = getattr(value, name)
    return 1 if value is None else value


def _place(key: str) -> Place:
    return tuple(key.split(".")) if key else ()
