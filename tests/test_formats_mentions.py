"""Settings as logs print them: which precision they amount to, and which dump of several counts."""

import pytest

from perfdb import aggregation, selection
from perfdb.formats import FORMATS
from perfdb.formats.mentions import Printed, mentioned

PRESETS = {
    "bf16_mixed": "bf16",
    "fp16_mixed": "fp16",
    "bf16-mixed": "bf16",
    "bf16_with_fp8_mixed": "fp8",
    "bf16_with_fp8_delayed_scaling_mixed": "fp8_ds",
    "bf16_with_fp8_current_scaling_mixed": "fp8_cs",
    "bf16_with_fp8_subchannel_scaling_mixed": "fp8_sc",
    "bf16_with_mxfp8_mixed": "fp8_mx",
    "fp16_with_mxfp8_mixed": "fp8_mx",
    "nanov2_bf16_with_fp8_current_scaling_mixed": "fp8_cs",
    "nemotron_h_bf16_with_fp8_current_scaling_mixed": "fp8_cs",
    "bf16_with_nvfp4_mixed": "nvfp4",
}
MODEL = "model:\n  bf16: true\n  fp8: null\n  fp8_recipe: delayed\n"
OPTIMIZER = "optimizer:\n  bf16: true\n  fp8_recipe: null\n"
CURRENT = "mixed_precision: bf16_with_fp8_current_scaling_mixed\n"
GROUP = "mixed_precision:\n  _target_: Config\n  bf16: true\n  fp8: {}\n  fp8_recipe: tensorwise\n"


def said(text: str) -> tuple[str | None, bool]:
    """The precision of a text, and whether its words contradict one another."""
    stated = mentioned(text).precision
    return stated.name, bool(stated.doubt)


@pytest.mark.parametrize(("preset", "expected"), PRESETS.items())
def test_a_preset_of_mixed_precision_holds_over_what_the_model_says(
    preset: str, expected: str
) -> None:
    assert (expected, False) == said(f"{MODEL}{OPTIMIZER}mixed_precision: {preset}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MODEL + OPTIMIZER, "bf16"),
        (MODEL + OPTIMIZER + GROUP.format("hybrid"), "fp8_cs"),
        (GROUP.format("hybrid") + MODEL + OPTIMIZER, "fp8_cs"),
        (MODEL + OPTIMIZER + GROUP.format("null"), "bf16"),
        # The model keeps its default recipe; what is configured for both is written over it.
        (MODEL.replace("null", "hybrid") + GROUP.format("hybrid"), "fp8_cs"),
        ("Llama3Config(bf16=True, fp8=None)\nMegatronMixedPrecision(precision='bf16-mixed', "
         "fp8='hybrid', fp8_recipe='delayed')\n", "fp8_ds"),
        ("Config(fp8=None, fp8_recipe='delayed')\nfp8='e4m3', fp8_recipe='mxfp8'\n", "fp8_mx"),
        ("model.fp8_recipe=blockwise model.fp8=hybrid\n", "fp8_sc"),
        ("fp8:\n  enabled: true\n  recipe_name: tensorwise\n", "fp8_cs"),
        ("fp8:\n  filter_fqns:\n  - lm_head\n  recipe_name: tensorwise\n  enabled: true\n"
         "  emulate: false\nmodel:\n  torch_dtype: bf16\n", "fp8_cs"),
        ("fp8:\n  recipe_name: null\n  enabled: true\n", "fp8"),
        ("fp8:\n  recipe_name: tensorwise\n  enabled: false\nbf16: true\n", "bf16"),
        ("fp8:\n  of:\n    enabled: true\nother:\n  enabled: true\nbf16: true\n", "bf16"),
        ("a:\n  fp8:\n    recipe_name: tensorwise\n  enabled: true\nbf16: true\n", "bf16"),
        ("torch_dtype: bf16\nbackend:\n  te_fp8:\n    recipe: current\n", "fp8_cs"),
        ("torch_dtype: bf16\nbackend:\n  te_fp8:\n    _target_: a.b.TEFp8Config\n"
         "    recipe: block\n", "fp8_sc"),
        ("torch_dtype: bf16\nbackend:\n  te_fp8:\n    _target_: a.b.TEFp8Config\n", "fp8"),
        ("torch_dtype: bf16\nbackend(te_fp8=TEFp8Config(recipe='current'))\n", "fp8_cs"),
        ("torch_dtype: bf16\nbackend:\n  te_fp8: null\nrecipe: current\n", "bf16"),
        ("bf16: true\nfp8:\n  enabled: false\n", "bf16"),
        ("bf16: true\nfp8:\nenabled: true\n", "bf16"),
        ("mixed_precision: yes\nbf16: true\n", "bf16"),
        (OPTIMIZER.replace("true", "false"), None),
        ("MegatronMixedPrecision(precision='bf16-mixed', params_dtype=torch.bfloat16)\n", "bf16"),
        ("trainer:\n  precision: bf16\nmodel:\n  fp8: false\n  fp8_hybrid: true\n", "bf16"),
        ("trainer:\n  precision: 16\n", "fp16"),
        ("trainer.precision=bf16-true\n", "bf16"),
        ("model:\n  torch_dtype: torch.bfloat16\n", "bf16"),
        # FP8 has them for its base, wherever it stands.
        ("trainer:\n  precision: bf16\nmodel:\n  fp8: true\n", "fp8"),
        ("fp8:\n  enabled: true\nmodel:\n  torch_dtype: bf16\n", "fp8"),
        ("fp8='hybrid'\nMegatronMixedPrecision(precision='bf16-mixed')\n", "fp8"),
        (CURRENT + "Final Merged Configuration ---\ntorch_dtype: bf16\n", "fp8_cs"),
        # What is written over it says that it is off, and so does an attempt of its own.
        ("fp8='hybrid'\nMegatronMixedPrecision(precision='bf16-mixed', fp8=None)\n", "bf16"),
        ("Experiment_details:\nfp8:\n  enabled: true\n"
         "Experiment_details:\nfp8:\n  enabled: false\ntorch_dtype: bf16\n", "bf16"),
        ("fp16: true\ntorch_dtype: bfloat16\n", "fp16"),
        ("precision: 32\ntorch_dtype: float16\nfloat32_matmul_precision: bf16\n", None),
        ('"torch_dtype": "bfloat16",\n', None),
        ("torch_dtype: auto\nfloat8.precision: high\n", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "prefix",
    [
        "", "exp_fp8/0 ", "2026-01-16T07:32:{}.5Z stdout F ",
    ],
)  # fmt: skip
def test_what_is_off_gives_way_to_what_is_on(text: str, expected: str | None, prefix: str) -> None:
    """And a recipe is that of the FP8 that is on: its default is printed of BF16 too."""
    shown = enumerate(text.splitlines(), start=8)
    lines = "".join(f"{prefix.format(number)}{line}\n" for number, line in shown)
    assert (expected, False) == said(lines)


@pytest.mark.parametrize(
    ("text", "expected", "doubt"),
    [
        (MODEL.replace("null", "hybrid") + "mixed_precision: bf16_mixed\n", None,
         "fp8 hybrid, fp8_recipe delayed, mixed_precision bf16_mixed"),
        ("fp8=hybrid fp8_recipe=delayed\nfp8=hybrid fp8_recipe=tensorwise\n", "fp8",
         "fp8 hybrid, fp8_recipe delayed, fp8_recipe tensorwise"),
        ("fp8:\n  enabled: true\n  recipe_name: rowwise\n", "fp8",
         "fp8 true, recipe_name rowwise"),
        (CURRENT + "mixed_precision: bf16_with_mxfp8_mixed\n", "fp8",
         "mixed_precision bf16_with_fp8_current_scaling_mixed, "
         "mixed_precision bf16_with_mxfp8_mixed"),
        (CURRENT + "mixed_precision: bf16_with_nvfp4_mixed\n", None,
         "mixed_precision bf16_with_fp8_current_scaling_mixed, "
         "mixed_precision bf16_with_nvfp4_mixed"),
        ("bf16: true\nmixed_precision: my_own_mixed\n", None, "mixed_precision my_own_mixed"),
        ("bf16: true\nfp16: true\n", None, "bf16 true, fp16 true"),
        ("precision: 16\ntorch_dtype: bf16\n", None, "precision 16, torch_dtype bf16"),
    ],
)  # fmt: skip
def test_words_that_contradict_one_another_leave_the_precision_open(
    text: str, expected: str | None, doubt: str
) -> None:
    """Of FP8 that has two recipes it is known that it is FP8."""
    found = mentioned(text).precision
    assert (expected, doubt) == (found.name, found.doubt)


def test_a_later_dump_holds_over_an_earlier_one() -> None:
    """FP8 by the recipe, BF16 by what was overridden; and what is said once stays."""
    recipe = (
        f"ConfigContainer:\n{MODEL}{CURRENT}train:\n  micro_batch_size: 4\n  seq_length: 4096\n"
    )
    final = "mixed_precision: bf16_mixed\ntrain:\n  micro_batch_size: 1\n"

    found = mentioned(f"{recipe}--- Final Merged Configuration ---\nConfigContainer:\n{final}")

    case = found.configuration()
    assert ("bf16", 1, 4096) == (case.precision, case.micro_batch_size, case.sequence_length)
    assert {} == found.several


def test_a_setting_is_the_same_in_other_letters_and_off_is_off() -> None:
    found: Printed = mentioned("tp_size: 2, overlap_grad_reduce=True, moe_grouped_gemm=None\n"
                               "overlap_grad_reduce: true, moe_grouped_gemm: false")  # fmt: skip
    assert {} == found.several
    assert {"overlap_grad_reduce": True} == found.configuration().options


ARGUMENTS = """\
------------------------ arguments ------------------------
  bf16 ............................................ True
  fp4 ............................................. None
  fp8 ............................................. None
  micro_batch_size ................................ {}
  tensor_model_parallel_size ...................... {}
  world_size ...................................... 64
-------------------- end of arguments ---------------------
"""


def iterations(first: int, last: int, planned: int = 40) -> str:
    """Iterations as Megatron-LM logs them."""
    return "".join(
        f" iteration {step:8}/{planned:8} | consumed samples: {step * 128:12} | elapsed time per "
        f"iteration (ms): {5000 + step}.0 | global batch size:   128 | lm loss: 8.990000E+00 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for step in range(first, last + 1)
    )


@pytest.mark.parametrize(
    "line", ['{{"log": "{}\\n", "stream": "stdout"}}\n', 'msg="{}"\n', "'{}'\n"]
)
def test_arguments_are_read_within_what_a_collector_of_logs_puts_around_them(line: str) -> None:
    """`None\\n", "stream": "stdout"` is None: the run is BF16, not NVFP4."""
    text = ARGUMENTS.format(2, 4) + iterations(1, 12)
    wrapped = "".join(line.format(one) for one in text.splitlines())

    [log] = FORMATS["megatron_lm"].parse("a.log", [wrapped.encode()])

    case = log.configuration
    assert ("bf16", 2, 4, 64) == (
        case.precision, case.micro_batch_size, case.tensor_parallel, case.num_gpus,
    )  # fmt: skip


@pytest.mark.parametrize("between", [0, 200])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The last attempt, from step 21 on, has the window: that of its own dump.
        (ARGUMENTS.format(2, 1) + iterations(1, 25) + ARGUMENTS.format(1, 2) + iterations(21, 40),
         ("skip_warmup(30)", 1, 2)),
        # It is too short to be judged: the window is of the attempt before it.
        (ARGUMENTS.format(2, 1) + iterations(1, 25) + ARGUMENTS.format(1, 2) + iterations(21, 24),
         ("window(11,20)", 2, 1)),
        # An attempt that made no step has no figures.
        (ARGUMENTS.format(2, 1) + iterations(1, 40) + ARGUMENTS.format(1, 2),
         ("skip_warmup(10)", 2, 1)),
        (ARGUMENTS.format(2, 1) + ARGUMENTS.format(1, 2) + iterations(1, 40),
         ("skip_warmup(10)", 1, 2)),
        (ARGUMENTS.format(2, 1) + ARGUMENTS.format(1, 2), (None, 1, 2)),
        # Of two restarts that are too short, too.
        (ARGUMENTS.format(2, 1) + iterations(1, 15) + ARGUMENTS.format(8, 8) + iterations(11, 30)
         + ARGUMENTS.format(1, 2) + iterations(26, 40), ("skip_warmup(35)", 1, 2)),
        # A job that goes on behind the step that was saved last, as of a chain of jobs.
        (ARGUMENTS.format(2, 1) + iterations(1, 20) + ARGUMENTS.format(1, 2) + iterations(21, 40),
         ("skip_warmup(30)", 1, 2)),
        (ARGUMENTS.format(2, 1) + iterations(1, 35) + ARGUMENTS.format(1, 2) + iterations(36, 40),
         ("window(11,35)", 2, 1)),
        # The only arguments may be late: they are of another rank than the steps.
        (iterations(1, 5) + ARGUMENTS.format(1, 2) + iterations(6, 40), ("skip_warmup(10)", 1, 2)),
    ],
)  # fmt: skip
def test_the_dump_is_that_of_the_attempt_that_is_judged(
    text: str, expected: tuple[str | None, int, int], between: int
) -> None:
    """However much is printed between two steps."""
    content = text.replace(
        "\n iter", "\n" + "saving a shard of the checkpoint\n" * between + " iter"
    )
    chunks = [content[place : place + 1000].encode() for place in range(0, len(content), 1000)]
    [log] = FORMATS["megatron_lm"].parse("a.log", chunks)

    case = log.configuration
    window = log.window if log.steps else None
    assert expected == (window, case.micro_batch_size, case.tensor_parallel)
    assert {} == log.doubts


MEMORY = "[Rank 0] (after {} iterations) memory (MB) | max allocated: {} | max reserved: 65000.0\n"


@pytest.mark.parametrize("between", [0, 200])
@pytest.mark.parametrize(("last", "megabytes"), [(40, 40960), (24, 61440)])
def test_the_memory_is_that_of_the_attempt_that_is_judged(
    last: int, megabytes: int, between: int
) -> None:
    """Both print it once, the second at a step that the first had, too; however far below."""
    noise = "saving a shard of the checkpoint\n" * between
    first = iterations(1, 1) + MEMORY.format(1, 61440) + iterations(2, 25, last)
    again = iterations(21, 21) + MEMORY.format(21, 40960) + iterations(22, last, last)
    text = first + MEMORY.format(21, 99999) + noise * 25 + ARGUMENTS.format(1, 2) + again
    chunks = [(ARGUMENTS.format(2, 1) + text).encode()]
    [log] = FORMATS["megatron_lm"].parse("a.log", chunks)

    found = selection.pick_steps(
        log.steps, aggregation.named(str(log.window)), averages=True, restarts=log.restarts
    )
    assert megabytes * 2**20 == found.peak_memory_bytes


def test_what_one_dump_says_twice_is_left_out_and_told() -> None:
    text = (
        "ConfigContainer:\n  micro_batch_size: 2\n  micro_batch_size: 1\n  seq_length: 8\n"
        "  recompute_method: block\n  recompute_method: uniform\n" + iterations(1, 12)
    )
    [log] = FORMATS["megatron_bridge"].parse("a.log", [text.encode()])
    assert log.configuration.micro_batch_size is None
    assert {
        "micro_batch_size": "micro_batch_size 2 and 1",
        "recompute_method": "recompute_method block and uniform",
    } == log.doubts


def test_the_number_of_gpus_is_told_by_whatever_says_it() -> None:
    step = (
        "Training epoch 0, iteration 0/49 | global_batch_size: 128 | global_step: 0 | "
        "reduced_train_loss: 11.03 | train_step_timing in s: 5.0\n"
    )
    for text, doubts in {
        "Trainer(devices=8, num_nodes=2)\n": {},
        "Trainer(devices=8)\nTrainer(devices=4)\n": {"num_gpus": "devices 8 and 4"},
        "devices=8 devices=4 world_size=16\n": {},
    }.items():
        [log] = FORMATS["nemo2"].parse("a.log", [(text + step).encode()])
        assert doubts == log.doubts


@pytest.mark.parametrize(
    ("prefix", "dump", "expected"),
    [
        (prefix, dump, task)
        for prefix in ("", " 0: ", "2026-01-16T07:32:24.5Z stdout F ")
        for dump, task in (
            ("peft:\n  dim: 8\n", "lora"),
            ("peft: null\n", None),
            ("a:\n  peft:\n    dim: 8\n", None),
            ("dataset of peft:\nloaded\n", None),
        )
    ],
)
def test_automodel_trains_an_adapter_where_its_yaml_has_one(
    prefix: str, dump: str, expected: str | None
) -> None:
    """Whatever stands before its lines; that of another group is another's."""
    step = "step 0 | epoch 0 | loss 2.5 | tps 2000.0(1000.00/gpu) | num_label_tokens 4000\n"
    lines = (f"{prefix}{line}\n" for line in f"model:\n  a: b\n{dump}{step}".splitlines())
    [log] = FORMATS["automodel_console"].parse("a.log", ["".join(lines).encode()])
    assert expected == log.configuration.task


@pytest.mark.parametrize("prefix", ["", "0: ", "2026-01-16T07:32:{}.5Z stdout F "])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n  dim: 16\n", "lora"),
        ("peft:\n  _target_: megatron.bridge.peft.canonical_lora.CanonicalLoRA\n", "lora"),
        ("finetune(data=Data(),\n peft=<Config[LoRA(target_modules=['linear_qkv'])]>)\n", "lora"),
        ("finetune(peft='lora')\n", "lora"),
        ("  peft:\n    peft_scheme: lora\n", "lora"),
        ("peft: null\n", None),
        ("  peft:\n    peft_scheme: null\n    lora_tuning:\n      adapter_dim: 32\n", None),
        ("peft:\ntrain: lora\n", None),
        ("peft:\n  _target_: megatron.bridge.peft.dora.DoRA\n", None),
        ("my_peft: lora\npeft: loras\n", None),
        ("ConfigContainer:\npeft: null\n--- Final Merged Configuration ---\npeft:\n"
         "  _target_: megatron.bridge.peft.lora.LoRA\n", "lora"),
    ],
)  # fmt: skip
def test_an_adapter_is_read_where_the_configuration_has_one(
    text: str, expected: str | None, prefix: str
) -> None:
    shown = enumerate(text.splitlines(), start=10)
    lines = "".join(f"{prefix.format(number)}{line}\n" for number, line in shown)
    assert expected == mentioned(lines).configuration().task


SCOPES = "[<CudaGraphScope.attn: 1>, <CudaGraphScope.moe_router: 5>, <CudaGraphScope.mlp: 6>]"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (SCOPES, "attn,mlp,moe_router"),
        (f"{SCOPES[:30]}\n{SCOPES[30:60]}\n{SCOPES[60:]}", "attn,mlp,moe_router"),
        ("['mlp',\n 'attn']", "attn,mlp"),
        # What goes on nowhere is not known.
        (SCOPES[:40], None),
        (f"{SCOPES[:40]}\n  data_path ....... ['/data/a']", None),
    ],
)
def test_a_list_that_is_folded_is_read_whole_or_not_at_all(
    shown: str, expected: str | None
) -> None:
    said = ARGUMENTS.format(2, 4).replace(
        "  fp4 ", f"  cuda_graph_impl ....... local\n  cuda_graph_scope ....... {shown}\n  fp4 "
    )
    [log] = FORMATS["megatron_lm"].parse("a.log", [(said + iterations(1, 12)).encode()])
    options = log.configuration.options or {}
    assert ("local", expected) == (
        options.get("cuda_graph_impl"),
        options.get("cuda_graph_scope"),
    )
    assert "bf16" == log.configuration.precision
