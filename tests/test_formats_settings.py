"""Settings as programs print them: the precision, the layout and the options they amount to."""

import json
import re
from itertools import count

import pytest

from perfdb.formats import settings, verification_card
from perfdb.formats.mentions import mentioned
from perfdb.formats.settings import Settings


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"bf16": "true", "fp8_format": "hybrid", "fp8_recipe": "tensorwise"}, "fp8_cs"),
        ({"bf16": "True", "fp8": "e4m3", "fp8_recipe": "mxfp8"}, "fp8_mx"),
        ({"fp8_format": "hybrid"}, "fp8"),
        ({"bf16": "true", "fp4_format": "e2m1"}, "nvfp4"),
        ({"bf16": "True", "fp8": "None", "fp8_recipe": "delayed", "fp4": "None"}, "bf16"),
        ({"fp8_format": "null"}, None),
    ],
)
def test_a_precision_is_said_by_the_dump_or_by_the_flags(
    said: Settings, expected: str | None
) -> None:
    assert expected == settings.precision(said)


@pytest.mark.parametrize(
    ("ramp", "size", "doubts"),
    [
        ("rampup_batch_size: null\n", 1152, {}),
        ("rampup_batch_size=None\n", 1152, {}),
        ("rampup_batch_size: [384, 384, 97656250]\n", None,
         {"global_batch_size": "rampup_batch_size 384 384 97656250"}),
        ("rampup_batch_size:\n  - 384\n  - 384\n  - 97656250\n", None,
         {"global_batch_size": "rampup_batch_size 384 384 97656250"}),
    ],
)  # fmt: skip
def test_of_a_batch_that_grows_settings_say_the_last_size_alone(
    ramp: str, size: int | None, doubts: dict[str, str]
) -> None:
    said = mentioned(f"global_batch_size: 1152\n{ramp}seq_length: 4096\n")
    found = said.described({})
    assert (size, doubts) == (found.configuration.global_batch_size, found.doubts)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("--tp 2 --etp=1 -cp 4", {"tensor_parallel": 2, "expert_tensor_parallel": 1,
                                  "context_parallel": 4}),
        ("--seq-length 4096 \\\n --micro_batch_size \\\n 2",
         {"sequence_length": 4096, "micro_batch_size": 2}),
        ("model.tensor_model_parallel_size=2 +train.global_batch_size=64 ++dataset.seq_length=8192",
         {"tensor_parallel": 2, "global_batch_size": 64, "sequence_length": 8192}),
        ("'model.recompute_modules=[moe_act, core_attn]' model.recompute_granularity=selective",
         {"options": {"recompute_granularity": "selective",
                      "recompute_modules": "core_attn,moe_act"}}),
        ("model.virtual_pipeline_model_parallel_size=null model.sequence_parallel=false",
         {"virtual_pipeline": None, "sequence_parallel": False}),
        ("--tp 2 model.tensor_model_parallel_size=4 --pp 2", {"pipeline_parallel": 2}),
        ("--prompt 'it runs --tp 4' --pp 2", {"pipeline_parallel": 2}),
        ("--pp 2 # nobody's", {"pipeline_parallel": 2}),
        ("--global_batch_size 1152 train.rampup_batch_size=[384,384,97656250]", {}),
        ("--nodes 2 --gpus-per-node 8 --dataset tulu3", {"num_gpus": 16}),
        ("--sequence_parallel --use_megatron_fsdp",
         {"sequence_parallel": True, "fsdp_enabled": True}),
        ("--use_megatron_fsdp model.sequence_parallel=true",
         {"sequence_parallel": True, "fsdp_enabled": True}),
        ("--moe_a2a_overlap --max_steps 50", {"options": {"moe_a2a_overlap": True}}),
        ("--moe_a2a_overlap 2>&1 | tee log", {"options": {"moe_a2a_overlap": True}}),
        ("--use_megatron_fsdp false --tp && true", {"fsdp_enabled": False}),
        ("--profile_step_start -1 --use_nsys_profiler",
         {"options": {"profile_step_start": -1.0, "use_nsys_profiler": True}}),
    ],
)  # fmt: skip
def test_the_command_of_a_card_says_settings_as_options_and_as_overrides(
    command: str, expected: dict[str, object]
) -> None:
    """Of one with two values nobody says which it had."""
    said = {"metrics": {"last_10_steps_step_time_ms_avg": 1}, "command": command}
    card = {"verification_environment": {}, "items": {"pretrain_performance": {"any": said}}}
    [found] = verification_card.FORMAT.parse("card.yaml", [json.dumps(card).encode()])
    who = {"framework": "megatron-bridge", "task": "pretrain"}
    assert who | expected == found.configuration.model_dump(exclude_unset=True)


@pytest.mark.parametrize("none", ["num_experts", "num_moe_experts"])
def test_a_size_of_the_model_is_said_by_either_name(none: str) -> None:
    said = {"num_layers": "32", "num_experts": "8", "num_moe_experts": "8", none: "None"}
    assert {"num_layers": 32, "num_experts": 8} == settings.shape(said)


def layers(num_layers: int, stages: int, of_each: int, **more: str) -> Settings:
    """The settings of Megatron-LM that a virtual pipeline follows from."""
    return {
        "num_layers": str(num_layers),
        "pipeline_model_parallel_size": str(stages),
        "num_layers_per_virtual_pipeline_stage": str(of_each),
    } | more


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (layers(32, 4, 2), {"virtual_pipeline": 4}),
        (layers(80, 4, 5), {"virtual_pipeline": 4}),
        (layers(32, 4, 8), {"virtual_pipeline": None}),  # one chunk is no virtual pipeline
        (layers(32, 4, 3), {}),
        (layers(32, 4, 2, virtual_pipeline_model_parallel_size="8"), {"virtual_pipeline": 8}),
        (layers(32, 4, 2, num_virtual_stages_per_pipeline_rank="2"), {"virtual_pipeline": 2}),
        (
            layers(
                30, 4, 2,
                account_for_embedding_in_pipeline_split="True",
                account_for_loss_in_pipeline_split="True",
            ),
            {"virtual_pipeline": 4},
        ),
        ({"num_layers": "32", "pipeline_model_parallel_size": "4"}, {}),
    ],
)  # fmt: skip
def test_a_virtual_pipeline_follows_from_the_layers_of_a_chunk(
    said: Settings, expected: dict[str, object]
) -> None:
    """Layers ÷ stages ÷ layers of a chunk; 32 ÷ 4 ÷ 2 = 4."""
    found = settings.configuration(said).model_dump(exclude_unset=True)
    assert expected == {name: found[name] for name in found if name == "virtual_pipeline"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"use_megatron_fsdp": "True"}, True),
        ({"use_custom_fsdp": "True"}, True),
        ({"use_megatron_fsdp": "False", "use_torch_fsdp2": "True"}, True),
        ({"use_megatron_fsdp": "False", "use_custom_fsdp": "False"}, False),
        ({"use_torch_fsdp2": "False"}, None),
    ],
)
def test_a_training_state_is_sharded_by_whichever_program_does_it(
    said: Settings, expected: bool | None
) -> None:
    """`use_custom_fsdp` is what Megatron Core up to 0.12 calls `use_megatron_fsdp`."""
    assert expected == settings.configuration(said).fsdp_enabled


@pytest.mark.parametrize("nothing", ["None", "null", "none", "False", "false", "0", "0.0", ""])
def test_an_option_that_is_off_is_none(nothing: str) -> None:
    """So that a version that prints it and one that does not run the same case."""
    said = settings.configuration(dict.fromkeys(settings.OPTIONS, nothing))
    assert {} == said.model_dump(exclude_unset=True)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"recompute_granularity": "full", "recompute_num_layers": "4"}, None),
        ({"recompute_modules": "core_attn"}, {}),
        (
            {"recompute_activations": "True", "recompute_modules": "core_attn"},
            {"recompute_activations": True, "recompute_modules": "core_attn"},
        ),
        ({"cuda_graph_impl": "none", "cuda_graph_scope": "full"}, {}),
        ({"cuda_graph_impl": "local"}, None),
        (
            {"external_cuda_graph": "True", "cuda_graph_scope": "attn moe"},
            {"external_cuda_graph": True, "cuda_graph_scope": "attn,moe"},
        ),
        ({"moe_token_dispatcher_type": "allgather"}, {}),
        (
            {"moe_token_dispatcher_type": "alltoall", "moe_flex_dispatcher_backend": "deepep"},
            {"moe_token_dispatcher_type": "alltoall"},
        ),
        ({"cuda_graph_impl": "a\0b"}, {}),
        ({"cuda_graph_impl": "two words"}, {}),
        ({"moe_expert_capacity_factor": "nan"}, {"moe_expert_capacity_factor": "nan"}),
        ({"profile": "False", "profile_step_start": "10", "profile_step_end": "12"}, {}),
        (
            {"profile": "True", "profile_step_start": "10", "profile_step_end": "12"},
            {"profile": True, "profile_step_start": 10, "profile_step_end": 12},
        ),
        (
            {"optimizer_cpu_offload": "True", "optimizer_offload_fraction": "0.5"},
            {"optimizer_cpu_offload": True, "optimizer_offload_fraction": 0.5},
        ),
        ({"optimizer_cpu_offload": "False", "optimizer_offload_fraction": "1.0"}, {}),
        (
            {"fine_grained_activation_offloading": "True", "offload_modules": "['attn_norm']"},
            {"fine_grained_activation_offloading": True, "offload_modules": "attn_norm"},
        ),
        ({"offload_modules": "['attn_norm']"}, {}),
        ({"attention_backend": "AttnBackend.auto"}, {}),
        ({"attention_backend": "AttnBackend.flash"}, {"attention_backend": "flash"}),
        ({"use_torch_fsdp2": "True"}, {"use_torch_fsdp2": True}),
        ({"data_parallel_sharding_strategy": "optim_grads"}, {}),
        ({"use_custom_fsdp": "True", "data_parallel_sharding_strategy": "no_shard"}, {}),
        (
            {"use_custom_fsdp": "True", "data_parallel_sharding_strategy": "optim_grads"},
            {"data_parallel_sharding_strategy": "optim_grads"},
        ),
        ({"ub_tp_comm_overlap": "true"}, {"tp_comm_overlap": True}),
        ({"checkpoint_activations": "True"}, {"recompute_granularity": "full"}),
        (
            {"checkpoint_activations": "False", "activations_checkpoint_method": "uniform",
             "activations_checkpoint_num_layers": "2"},
            {"recompute_granularity": "full", "recompute_method": "uniform",
             "recompute_num_layers": 2},
        ),
        ({"checkpoint_activations": "False", "activations_checkpoint_method": "None"}, {}),
        (
            {"activations_checkpoint_granularity": "selective",
             "activations_checkpoint_method": "block"},
            {"recompute_granularity": "selective"},
        ),
        (
            {"activations_checkpoint_granularity": "null",
             "activations_checkpoint_method": "block"},
            {},
        ),
        (
            {"recompute_granularity": "selective", "activations_checkpoint_method": "block"},
            {"recompute_granularity": "selective"},
        ),
        (
            {"use_nsys_profiler": "true", "profile_step_end": "50"},
            {"use_nsys_profiler": True, "profile_step_end": 50},
        ),
    ],
)  # fmt: skip
def test_options_are_kept_where_they_are_in_use(
    said: Settings, expected: dict[str, object] | None
) -> None:
    """None: all of them, numbers as numbers."""
    found = settings.options(said)
    assert (said if expected is None else expected) == (
        found if expected is not None else {name: str(value) for name, value in found.items()}
    )


@pytest.mark.parametrize("prefix", ["0: ", " {}: ", "[2026-01-16 07:{}:20] a [1] ", "a\tb\t"])
def test_options_are_read_out_of_a_text_however_it_is_laid_out(prefix: str) -> None:
    """A word on the next line is no value: there a group of other settings begins."""
    text = """\
activation_checkpointing:
  enabled: true
model.cuda_graph_impl=local model.cuda_graph_scope=['mlp', 'attn']
'recompute_granularity': 'selective', te_nccl_ub: true
PREFIX  recompute_modules:
PREFIX  - mlp
PREFIX  - core_attn
PREFIX  mtp_num_layers: 1
overlap_grad_reduce: true
comm_overlap.overlap_grad_reduce: false
"""
    numbers = count(8)
    text = re.sub("PREFIX", lambda _: prefix.format(next(numbers)), text)
    assert {
        "cuda_graph_impl": "local",
        "cuda_graph_scope": "attn,mlp",
        "recompute_granularity": "selective",
        "recompute_modules": "core_attn,mlp",
        "mtp_num_layers": 1,
    } == settings.options(mentioned(text).settings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("encoder_seq_length: 4096\n  data:\n    seq_length: ${model.encoder_seq_length}\n", 4096),
        ("encoder_seq_length: 512\nseq_length: 2048\n", 2048),
        ("encoder_seq_length: 4096\n  train_ds:\n    max_seq_length: 2048\n", None),
        ("my_encoder_seq_length: 4096\n", None),
    ],
)
def test_nemo_1_has_a_name_of_its_own_for_the_length_of_a_sequence(
    text: str, expected: int | None
) -> None:
    """Source: examples/nlp/language_modeling/conf/megatron_gpt_config.yaml and
    examples/nlp/language_modeling/tuning/conf/megatron_gpt_finetuning_config.yaml, 1.23.
    """
    assert expected == mentioned(text).configuration().sequence_length


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seq_length=2048, specs=PackedSequenceSpecs(packed_sequence_size=8192)", 8192),
        ("seq_length=2048, specs=PackedSequenceSpecs(packed_sequence_size=-1)", 2048),
        ("seq_length: 2048\npacked_sequence_size: 0\n", 2048),
    ],
)
def test_packed_samples_make_sequences_of_the_size_of_a_pack(text: str, expected: int) -> None:
    """Source: nemo/collections/llm/gpt/data/fine_tuning.py, 2.4.0, `_create_dataset`."""
    assert expected == mentioned(text).configuration().sequence_length


def test_the_sizes_of_a_model_are_read_by_the_names_that_programs_have() -> None:
    text = "Config(num_layers=32, num_moe_experts=8, num_attention_heads=None, hidden_size=4096)"
    assert {"num_layers": 32, "num_experts": 8, "hidden_size": 4096} == settings.shape(
        mentioned(text).settings
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("compile:\n  enabled: true\n  mode: default\n", {"compile": True}),
        ("compile:\n  backend: inductor\n  enabled: true\n", {"compile": True}),
        ("compile:\n  mode: default\n  enabled: false\n", {}),
        ("compile: true\ntorch.compile: enabled\nsteps to compile:\n", {}),
        ("quantization:\n  load_in_4bit: true\n", {"load_in_4bit": True}),
    ],
)
def test_automodel_compiles_or_quantizes_its_model(text: str, expected: dict[str, object]) -> None:
    assert expected == settings.options(mentioned(text).settings)


BACKEND = "model:\n  dtype: bf16\n  backend:\n    _target_: x\n%sloss_fn:\n  attn: x\n"
KERNELS = (
    "    attn: te\n    te_fp8:\n      linear: x\n    experts: torch_mm\n    linear: torch\n"
    "    dispatcher: hybridep\n"
)


@pytest.mark.parametrize("prefix", ["", "0: ", "2026-01-16T07:32:24.5Z stdout F "])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BACKEND % KERNELS,
         {"backend_attn": "te", "backend_experts": "torch_mm", "backend_linear": "torch",
          "backend_dispatcher": "hybridep"}),
        (BACKEND % "    attn: sdpa\n    dispatcher: null\n", {"backend_attn": "sdpa"}),
        (BACKEND % KERNELS + BACKEND % KERNELS.replace(" te\n", " sdpa\n"),
         {"backend_experts": "torch_mm", "backend_linear": "torch",
          "backend_dispatcher": "hybridep"}),
        ("dist_env:\n  backend: nccl\n  attn: te\nattention_backend:\n  attn: x\n", {}),
    ],
)  # fmt: skip
def test_automodels_yaml_names_the_kernels_of_its_model(
    prefix: str, text: str, expected: dict[str, object]
) -> None:
    """By the names of its CI's JSON; those of two models are none."""
    lines = "".join(f"{prefix}{line}\n" for line in text.splitlines())
    assert expected == settings.options(mentioned(lines).settings)


def test_what_profile_means_in_running_text_is_not_known() -> None:
    assert {} == settings.options(mentioned("srun --profile=all\nprofile: default\n").settings)
