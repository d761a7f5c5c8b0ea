"""Recipe: the fields of a recipe file, the options of each framework, and the JSON Schema."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, PositiveFloat

from perfdb import catalog
from perfdb.recipe.slurm import SlurmSettings
from perfdb.record import MOST, Count, Frozen, RunKind, Scalar, Task
from perfdb.text import MOST_CHARACTERS, plain_text

OPTIONS: Mapping[str, Mapping[str, tuple[object, ...]]] = {
    "megatron-core": {
        "distributed_optimizer": (True, False),
        "recompute": ("none", "selective", "full"),
        "overlap": (True, False),
        "moe_dispatcher": ("alltoall", "allgather"),
        "init": ("megatron", "layout_invariant"),
        "batch_p2p_comm": (True, False),
        "optimizer_lr": (),
        "attention_backend": ("auto", "flash", "fused", "unfused"),
        "fused_kernels": (True, False),
    },
    "automodel": {
        "backend_attn": ("te", "sdpa", "flex", "eager"),
        "backend_linear": ("te", "torch"),
        "backend_rms_norm": ("te", "torch", "torch_fp32"),
        "backend_experts": ("te", "torch", "torch_mm", "gmm"),
        "backend_dispatcher": ("deepep", "hybridep", "torch"),
        "activation_checkpointing": (True, False, "selective"),
        "lora_rank": (2, 4, 8, 16, 32, 64, 128, 256),
        "lora_alpha": (),
        "optimizer_lr": (),
    },
    "megatron-bridge": {
        "config_variant": ("v1", "v2"),
        "cuda_graph_impl": ("none", "local", "transformer_engine"),
        "cuda_graph_scope": (
            "full_iteration",
            "attn",
            "mlp",
            "moe",
            "moe_router",
            "moe_preprocess",
            "mamba",
        ),
        "moe_a2a_overlap": (True, False),
        "moe_flex_dispatcher_backend": ("deepep", "hybridep"),
    },
    "nemo": {
        "account_for_embedding_in_pipeline_split": (True, False),
        "account_for_loss_in_pipeline_split": (True, False),
    },
    "dfm": {},
}
"""Each option's choices, by framework; an empty tuple takes any number above 0."""

FRAMEWORKS = tuple(OPTIONS)
"""The training frameworks a recipe may name."""
NOT_STARTED: Final = frozenset({"nemo", "dfm"})
"""Those that `perfdb run` does not start: their recipes say how a published row was made."""

MOST_STEPS: Final = 1_000_000
"""Steps that a run may have, of warm-up and measured each."""
MOST_TOKENS: Final = 1 << 27
"""Tokens that a sample may have, 13 times the longest context of a published model."""
MOST_SECONDS: Final = 30 * 24 * 3600
"""Seconds that a run may take."""
MOST_CONFIG: Final = 1 << 17
"""Characters of a framework's own configuration."""

Number = Annotated[Count, Field(strict=True)]
Size = Annotated[Count | None, Field(strict=True)]
FromZero = Annotated[int, Field(strict=True, ge=0, le=MOST)]
Steps = Annotated[int, Field(strict=True, ge=0, le=MOST_STEPS)]
Tokens = Annotated[Count | None, Field(strict=True, le=MOST_TOKENS)]
Seconds = Annotated[PositiveFloat, Field(strict=True, le=MOST_SECONDS)]
Text = Annotated[str, Field(max_length=MOST_CHARACTERS), AfterValidator(plain_text)]
Config = Annotated[str | None, Field(strict=True, max_length=MOST_CONFIG)]
Flag = Annotated[bool, Field(strict=True)]
ParallelSize = Literal[
    "tensor_parallel", "pipeline_parallel", "virtual_pipeline", "context_parallel",
    "expert_parallel", "expert_tensor_parallel", "sequence_parallel",
]  # fmt: skip


class CaseSettings(Frozen):
    """The fields of a case. At the top of a recipe they hold for every case; `cases` and `matrix`
    give the ones that differ.
    """

    framework: str | None = Field(None, description="The training framework to run.")
    model: str | None = Field(None, description="A model of the catalogue (perfdb models).")
    qualifiers: tuple[Text, ...] = Field((), description="What sets this model apart: dropless, …")
    task: Task = Field("pretrain", description="What kind of training this is.")
    systems: tuple[str, ...] = Field((), description="Systems to run on (perfdb systems).")
    num_gpus: Size = Field(None, description="GPUs in all; processes on the cpu system.")
    precision: str | None = Field(None, description="A precision of the catalogue: bf16, fp8_cs, …")
    sequence_length: Tokens = Field(None, description="Tokens per sample.")
    global_batch_size: Size = Field(None, description="GBS: samples per step over all GPUs.")
    global_batch_size_per_gpu: Size = Field(
        None, description="Weak scaling: GBS is this times num_gpus. Give it or GBS, not both."
    )
    micro_batch_size: Size = Field(None, description="MBS: samples per GPU and forward pass.")
    local_batch_size: Size = Field(None, description="LBS (AutoModel): samples per GPU and pass.")
    tensor_parallel: Number = Field(1, description="TP")
    pipeline_parallel: Number = Field(1, description="PP")
    context_parallel: Number = Field(1, description="CP")
    expert_parallel: Number = Field(1, description="EP")
    expert_tensor_parallel: Size = Field(None, description="ETP; TP where it is not given.")
    virtual_pipeline: Size = Field(None, description="VP: model chunks per pipeline stage.")
    sequence_parallel: Flag = Field(False, description="SP")
    fsdp_enabled: Flag | None = Field(None, description="NeMo, DFM: shard the state (FSDP).")
    fsdp_size: Size = Field(None, description="AutoModel: GPUs that share one copy of the state.")
    kernels: tuple[Text, ...] = Field((), description="Kernel optimisations, as pages print them.")
    variant: Text | None = Field(
        None, description="A name for a configuration, where one needs it."
    )
    options: Mapping[str, Scalar] = Field(
        default_factory=dict, description="Settings handed to the framework as they are."
    )
    warmup_steps: Steps = Field(5, description="Steps that are run and not counted.")
    measured_steps: Steps = Field(50, gt=0, description="Steps that the figures are taken over.")
    seed: FromZero = Field(1234, description="Seed of weights and data.")
    timeout_s: Seconds = Field(3600, description="Seconds after which a run is stopped.")
    kind: RunKind = Field(
        RunKind.BENCHMARK, description="What a run is for; only a benchmark has figures."
    )
    profile_ranks: tuple[FromZero, ...] = Field((0,), description="Ranks that a profile is of.")
    reload_layout: Mapping[ParallelSize, int | bool] = Field(
        default_factory=dict,
        description="Sizes of another layout that a checkpoint is loaded into, too.",
    )
    container: Text | None = Field(None, description="Container image the run needs.")
    slurm: SlurmSettings = Field(
        SlurmSettings(), description="Settings of the cluster that are others for these cases."
    )
    published: Mapping[str, Scalar] = Field(
        default_factory=dict,
        description="What the published row of this case prints where it is wrong, by field.",
    )
    framework_config: Config = Field(
        None, description="AutoModel: its own YAML, carried unchanged; the fields repeat it."
    )


class Recipe(CaseSettings):
    """A recipe file: a benchmark and, where it is a sweep, how its cases differ."""

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=200, description="Unique among the recipes."
    )
    description: Text | None = Field(None, description="One sentence for the list of recipes.")
    cases: tuple[Mapping[str, object], ...] = Field(
        (), description="Each gives the fields in which one case differs from the recipe."
    )
    matrix: Mapping[str, Annotated[list[object], Field(min_length=1)]] = Field(
        default_factory=dict, description="Field to list of values: a case for each combination."
    )


def schema() -> dict[str, object]:
    """The JSON Schema of a recipe file, with the catalogue's names as choices."""
    made: dict[str, Any] = Recipe.model_json_schema()
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = "perfdb recipe"
    properties = made["properties"]
    names = {
        "framework": list(FRAMEWORKS),
        "model": list(catalog.models()),
        "precision": list(catalog.precisions()),
    }
    for field, choices in names.items():
        properties[field]["enum"] = [*choices, None]
    properties["systems"]["items"]["enum"] = list(catalog.systems())
    settings = {name: properties[name] for name in CaseSettings.model_fields if name in properties}
    properties["cases"]["items"] = {
        "type": "object", "additionalProperties": False, "properties": settings,
    }  # fmt: skip
    properties["matrix"] = {
        "type": "object",
        "description": properties["matrix"]["description"],
        "additionalProperties": False,
        "properties": {
            name: {"type": "array", "minItems": 1, "items": entry}
            for name, entry in settings.items()
        },
    }
    return made
