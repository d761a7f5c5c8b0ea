"""Settings as programs print them: the precision, the layout and the options they amount to."""

import json

import pytest

from perfdb.formats import FORMATS, ParsedLog, settings, verification_card
from perfdb.formats.settings import Settings, described

MODEL = "model:\n  bf16: true\n  fp8: null\n  fp8_recipe: delayed\n"
CURRENT = "mixed_precision: bf16_with_fp8_current_scaling_mixed\n"
GROUP = "mixed_precision:\n  _target_: Config\n  bf16: true\n  fp8: {}\n  fp8_recipe: tensorwise\n"
ITERATION = (
    " iteration {:8}/      40 | consumed samples: 128 | elapsed time per iteration (ms): 5000.0 | "
    "global batch size:   128 | lm loss: 8.99 | number of nan iterations:   0 |\n"
)
ITERATIONS = "".join(map(ITERATION.format, range(1, 13)))
ARGUMENTS = """\
------------------------ arguments ------------------------
  bf16 ............................................ True
  fp4 ............................................. None
  fp8 ............................................. None
  tensor_model_parallel_size ...................... 4
  world_size ...................................... 64
-------------------- end of arguments ---------------------
"""


def test_an_item_of_a_card_that_nobody_measured_is_skipped() -> None:
    time, rate = (f"last_10_steps_{name}_avg" for name in ("step_time_ms", "model_tflops_per_gpu"))
    item = "  {}:\n    H100:\n      metrics: {{" + time + ": {}, " + rate + ": {}}}\n"
    items = [("sft", "null", "null"), ("pretrain", 2500.0, 300.0), ("peft", "null", 300.0)]
    text = "verification_environment: {}\nitems:\n" + "".join(item.format(*one) for one in items)
    measured, half = verification_card.FORMAT.parse("card.yaml", [text.encode()])
    assert (2.5, "finished") == (measured.emitted.step_time_s, measured.outcome)
    assert "items.peft.H100.metrics." in str(half.problems[0])


def test_of_an_argument_that_is_given_twice_the_last_counts_with_a_note() -> None:
    """As the loader of Megatron-LM's tests does."""
    text = "MODEL_ARGS:\n  --seq-length: 1\n  --bf16: true\n  --seq-length: 2\n"
    [log] = FORMATS["megatron_config"].parse("model_config.yaml", [text.encode()])
    assert (2, "bf16") == (log.configuration.sequence_length, log.configuration.precision)
    expected = "model_config.yaml:4: MODEL_ARGS.--seq-length: given twice: the last is taken"
    assert [expected] == [str(note) for note in log.notes]


def stated(text: str, name: str = "precision") -> object:
    """A field of a case that a text states; None if it states none."""
    return getattr(described(text, {}).configuration, name)


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("bf16_mixed", "bf16"),
        ("fp16_mixed", "fp16"),
        ("bf16_with_fp8_delayed_scaling_mixed", "fp8_ds"),
        ("nanov2_bf16_with_fp8_current_scaling_mixed", "fp8_cs"),
        ("bf16_with_fp8_subchannel_scaling_mixed", "fp8_sc"),
        ("bf16_with_mxfp8_mixed", "fp8_mx"),
        ("bf16_with_nvfp4_mixed", "nvfp4"),
    ],
)
def test_a_preset_of_mixed_precision_names_the_precision(preset: str, expected: str) -> None:
    text = MODEL if expected != "fp16" else ""
    assert expected == stated(f"{text}mixed_precision: {preset}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MODEL, "bf16"),
        (MODEL + GROUP.format("hybrid"), "fp8_cs"),
        (MODEL + GROUP.format("null"), "bf16"),
        ("Config(fp8=None, fp8_recipe='delayed')\nfp8='e4m3', fp8_recipe='mxfp8'\n", "fp8_mx"),
        ("model.fp8_recipe=blockwise model.fp8=hybrid\n", "fp8_sc"),
        # AutoModel's groups.
        ("fp8:\n  filter_fqns:\n  - lm_head\n  recipe_name: tensorwise\n  enabled: true\n"
         "model:\n  torch_dtype: bf16\n", "fp8_cs"),
        ("fp8:\n  recipe_name: tensorwise\n  enabled: false\nbf16: true\n", "bf16"),
        ("fp8:\n  of:\n    enabled: true\nother:\n  enabled: true\nbf16: true\n", "bf16"),
        ("torch_dtype: bf16\nbackend:\n  te_fp8:\n    _target_: a.b.TEFp8Config\n"
         "    recipe: block\n", "fp8_sc"),
        ("torch_dtype: bf16\nbackend:\n  te_fp8:\n    _target_: a.b.TEFp8Config\n", "fp8"),
        ("torch_dtype: bf16\nbackend:\n  te_fp8: null\nrecipe: current\n", "bf16"),
        # What is said of the type beneath holds where nothing says FP8.
        ("MegatronMixedPrecision(precision='bf16-mixed', params_dtype=torch.bfloat16)\n", "bf16"),
        ("trainer:\n  precision: 16\n", "fp16"),
        ("trainer:\n  precision: bf16\nmodel:\n  fp8: true\n", "fp8"),
        (CURRENT + "Final Merged Configuration ---\ntorch_dtype: bf16\n", "fp8_cs"),
        ("Experiment_details:\nfp8:\n  enabled: true\n"
         "Experiment_details:\nfp8:\n  enabled: false\ntorch_dtype: bf16\n", "bf16"),
        ("precision: 32\ntorch_dtype: float16\nfloat32_matmul_precision: bf16\n", None),
        ('"torch_dtype": "bfloat16",\n', None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("prefix", ["", "exp_fp8/0 ", "7: ", "[default0]:"])
def test_what_is_off_gives_way_to_what_is_on(text: str, expected: str | None, prefix: str) -> None:
    """And a recipe is that of the FP8 that is on: its default is printed of BF16 too."""
    found = described("".join(f"{prefix}{line}\n" for line in text.splitlines()), {})
    assert (expected, {}) == (found.configuration.precision, found.doubts)


@pytest.mark.parametrize(
    ("text", "expected", "doubt"),
    [
        (MODEL.replace("null", "hybrid") + GROUP.format("hybrid"), "fp8",
         "fp8 hybrid, fp8_recipe delayed, fp8_recipe tensorwise"),
        ("fp8:\n  enabled: true\n  recipe_name: rowwise\n", "fp8",
         "fp8 true, recipe_name rowwise"),
        (CURRENT + "mixed_precision: bf16_with_nvfp4_mixed\n", None,
         "mixed_precision bf16_with_fp8_current_scaling_mixed, "
         "mixed_precision bf16_with_nvfp4_mixed"),
        ("bf16: true\nmixed_precision: my_own_mixed\n", None, "mixed_precision my_own_mixed"),
        ("bf16: true\nfp16: true\n", None, "bf16 true, fp16 true"),
    ],
)  # fmt: skip
def test_words_that_contradict_one_another_leave_the_precision_open(
    text: str, expected: str | None, doubt: str
) -> None:
    """Of FP8 that has two recipes it is known that it is FP8."""
    found = described(text, {})
    assert (expected, {"precision": doubt}) == (found.configuration.precision, found.doubts)


def test_a_later_dump_holds_over_an_earlier_one() -> None:
    """FP8 by the recipe, BF16 by what was overridden; and what is said once stays."""
    recipe = f"ConfigContainer:\n{CURRENT}train:\n  micro_batch_size: 4\n  seq_length: 4096\n"
    final = "mixed_precision: bf16_mixed\ntrain:\n  micro_batch_size: 1\n"
    found = described(f"{recipe}--- Final Merged Configuration ---\nConfigContainer:\n{final}", {})
    case = found.configuration
    assert ("bf16", 1, 4096) == (case.precision, case.micro_batch_size, case.sequence_length)
    assert {} == found.doubts


def test_what_one_dump_says_twice_is_left_out_and_told() -> None:
    text = (
        "ConfigContainer:\n  micro_batch_size: 2\n  micro_batch_size: 1\n  seq_length: 8\n"
        "  recompute_method: block\n  recompute_method: uniform\n"
        "devices=8\ndevices=4\noverlap_grad_reduce=True overlap_grad_reduce: true\n"
    )
    found = described(text, {})
    assert {"sequence_length": 8, "options": {"overlap_grad_reduce": True}} == (
        found.configuration.model_dump(exclude_unset=True)
    )
    assert {
        "micro_batch_size": "micro_batch_size 2 and 1",
        "recompute_method": "recompute_method block and uniform",
        "num_gpus": "devices 8 and 4",
    } == found.doubts
    assert 16 == stated("Trainer(devices=8, num_nodes=2)\n", "num_gpus")


@pytest.mark.parametrize("ramp", ["[384, 384, 97656250]", "\n  - 384\n  - 384\n  - 97656250"])
def test_of_a_batch_that_grows_settings_say_the_last_size_alone(ramp: str) -> None:
    found = described(f"global_batch_size: 1152\nrampup_batch_size: {ramp}\n", {})
    assert {"global_batch_size": "rampup_batch_size 384 384 97656250"} == found.doubts
    assert found.configuration.global_batch_size is None
    assert 1152 == stated("global_batch_size: 1152\nrampup_batch_size: null\n", "global_batch_size")


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
        ("--nodes 2 --gpus-per-node 8 --dataset tulu3", {"num_gpus": 16}),
        ("--sequence_parallel --use_megatron_fsdp",
         {"sequence_parallel": True, "fsdp_enabled": True}),
        ("--moe_a2a_overlap 2>&1 | tee log", {"options": {"moe_a2a_overlap": True}}),
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


LAYERS = {
    "num_layers": "32",
    "pipeline_model_parallel_size": "4",
    "num_layers_per_virtual_pipeline_stage": "2",
}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"num_layers": "32", "num_experts": "8", "num_moe_experts": "None"}, {}),
        (LAYERS, {"pipeline_parallel": 4, "virtual_pipeline": 4}),
        (LAYERS | {"num_layers": "30"}, {"pipeline_parallel": 4}),
        (LAYERS | {"virtual_pipeline_model_parallel_size": "8"},
         {"pipeline_parallel": 4, "virtual_pipeline": 8}),
        ({"use_custom_fsdp": "True", "use_megatron_fsdp": "False"}, {"fsdp_enabled": True}),
        ({"use_megatron_fsdp": "False", "use_custom_fsdp": "False"}, {"fsdp_enabled": False}),
        ({"pp_size": "1", "pp_microbatch_size": "1"}, {"pipeline_parallel": 1}),
        ({"encoder_seq_length": "4096"}, {"sequence_length": 4096}),
        ({"encoder_seq_length": "4096", "max_seq_length": "2048"}, {}),
        ({"seq_length": "2048", "packed_sequence_size": "8192"}, {"sequence_length": 8192}),
        ({"seq_length": "2048", "packed_sequence_size": "-1"}, {"sequence_length": 2048}),
    ],
)  # fmt: skip
def test_a_layout_follows_from_settings(said: Settings, expected: dict[str, object]) -> None:
    """32 layers ÷ 4 stages ÷ 2 layers of a chunk are 4 chunks."""
    assert expected == settings.configuration(said).model_dump(exclude_unset=True)


@pytest.mark.parametrize("nothing", ["None", "null", "False", "0", "0.0", ""])
def test_an_option_that_is_off_is_none(nothing: str) -> None:
    """So that a version that prints it and one that does not run the same case."""
    said = settings.configuration(dict.fromkeys(settings.OPTIONS, nothing))
    assert {} == said.model_dump(exclude_unset=True)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"recompute_granularity": "full", "recompute_num_layers": "4"},
         {"recompute_granularity": "full", "recompute_num_layers": 4}),
        ({"recompute_modules": "core_attn"}, {}),
        ({"recompute_activations": "True", "recompute_modules": "core_attn"},
         {"recompute_activations": True, "recompute_modules": "core_attn"}),
        ({"cuda_graph_impl": "none", "cuda_graph_scope": "full"}, {}),
        ({"external_cuda_graph": "True", "cuda_graph_scope": "attn moe"},
         {"external_cuda_graph": True, "cuda_graph_scope": "attn,moe"}),
        ({"moe_token_dispatcher_type": "allgather"}, {}),
        ({"moe_token_dispatcher_type": "alltoall", "moe_flex_dispatcher_backend": "deepep"},
         {"moe_token_dispatcher_type": "alltoall"}),
        ({"cuda_graph_impl": "a\0b"}, {}),
        ({"moe_expert_capacity_factor": "nan"}, {"moe_expert_capacity_factor": "nan"}),
        ({"profile": "False", "profile_step_start": "10"}, {}),
        ({"use_nsys_profiler": "true", "profile_step_end": "50"},
         {"use_nsys_profiler": True, "profile_step_end": 50}),
        ({"optimizer_cpu_offload": "True", "optimizer_offload_fraction": "0.5"},
         {"optimizer_cpu_offload": True, "optimizer_offload_fraction": 0.5}),
        ({"attention_backend": "AttnBackend.auto"}, {}),
        ({"attention_backend": "AttnBackend.flash"}, {"attention_backend": "flash"}),
        ({"use_custom_fsdp": "True", "data_parallel_sharding_strategy": "optim_grads"},
         {"data_parallel_sharding_strategy": "optim_grads"}),
        ({"data_parallel_sharding_strategy": "optim_grads"}, {}),
    ],
)  # fmt: skip
def test_options_are_kept_where_they_are_in_use(
    said: Settings, expected: dict[str, object]
) -> None:
    assert expected == settings.options(said)


KERNELS = (
    "model:\n  backend:\n    _target_: x\n    attn: te\n    te_fp8:\n      linear: x\n"
    "    experts: torch_mm\n    dispatcher: null\nloss_fn:\n  attn: x\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.cuda_graph_impl=local model.cuda_graph_scope=['mlp', 'attn']\n",
         {"cuda_graph_impl": "local", "cuda_graph_scope": "attn,mlp"}),
        ("'recompute_granularity': 'selective', te_nccl_ub: true\n",
         {"recompute_granularity": "selective"}),
        ("recompute_granularity: selective\nrecompute_modules:\n- mlp\n- core_attn\n",
         {"recompute_granularity": "selective", "recompute_modules": "core_attn,mlp"}),
        # A word on the next line is no value: there a group of other settings begins.
        ("activation_checkpointing:\n  enabled: true\n", {}),
        (KERNELS, {"backend_attn": "te", "backend_experts": "torch_mm"}),
        ("dist_env:\n  backend: nccl\n  attn: te\nattention_backend:\n  attn: x\n", {}),
        ("compile:\n  backend: inductor\n  enabled: true\n", {"compile": True}),
        ("compile: true\ntorch.compile: enabled\nsteps to compile:\n", {}),
        ("srun --profile=all\nprofile: default\n", {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("prefix", ["", "0: ", "ain_fp8_mx/0 "])
def test_options_are_read_out_of_a_text(
    text: str, expected: dict[str, object], prefix: str
) -> None:
    lines = "".join(f"{prefix}{line}\n" for line in text.splitlines())
    assert expected == (stated(lines, "options") or {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("peft:\n  _target_: megatron.bridge.peft.canonical_lora.CanonicalLoRA\n", "lora"),
        ("finetune(data=Data(),\n peft=<Config[LoRA(target_modules=['linear_qkv'])]>)\n", "lora"),
        ("  peft:\n    peft_scheme: lora\n", "lora"),
        ("  peft:\n    peft_scheme: null\n    lora_tuning:\n      adapter_dim: 32\n", None),
        ("peft:\n  _target_: megatron.bridge.peft.dora.DoRA\n", None),
        ("my_peft: lora\npeft: loras\n", None),
    ],
)
def test_an_adapter_is_read_where_the_configuration_has_one(
    text: str, expected: str | None
) -> None:
    assert expected == stated(text, "task")


def of_megatron(text: str) -> ParsedLog:
    [log] = FORMATS["megatron_lm"].parse("a.log", [(text + ITERATIONS).encode()])
    return log


def test_arguments_are_read_within_quotes() -> None:
    """`None\\n", "stream": "stdout"` is None: the run is BF16, not NVFP4."""
    wrapped = "".join(f'{{"log": "{line}\\n"}}\n' for line in ARGUMENTS.splitlines())
    case = of_megatron(wrapped).configuration
    assert ("bf16", 4, 64) == (case.precision, case.tensor_parallel, case.num_gpus)


SCOPES = "[<CudaGraphScope.attn: 1>, <CudaGraphScope.moe_router: 5>, <CudaGraphScope.mlp: 6>]"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (SCOPES, "attn,mlp,moe_router"),
        (f"{SCOPES[:30]}\n{SCOPES[30:60]}\n{SCOPES[60:]}", "attn,mlp,moe_router"),
        # What goes on nowhere is not known.
        (f"{SCOPES[:40]}\n  data_path ....... ['/data/a']", None),
    ],
)
def test_a_list_that_is_folded_is_read_whole_or_not_at_all(
    shown: str, expected: str | None
) -> None:
    scope = f"  cuda_graph_impl ....... local\n  cuda_graph_scope ....... {shown}\n"
    options = of_megatron(ARGUMENTS.replace("  fp4 ", f"{scope}  fp4 ")).configuration.options
    assert ("local", expected) == (
        (options or {}).get("cuda_graph_impl"),
        (options or {}).get("cuda_graph_scope"),
    )
