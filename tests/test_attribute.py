"""Attribution: the command line over the log over its companions, and nothing guessed."""

from dataclasses import replace

import pytest

from perfdb import attribute, disputed
from perfdb.attribute import Attributed, Missing, Said, Sayer
from perfdb.errors import InputError
from perfdb.formats import ParsedLog
from perfdb.pages.base import PageContext
from perfdb.record import Outcome, PartialCase, Release

WHOLE = {
    "framework": "nemo", "model": "llama3-8b", "system": "dgx-h100", "num_gpus": 16,
    "sequence_length": 8192, "global_batch_size": 128, "task": "pretrain",
}  # fmt: skip


def log(outcome: Outcome | None = Outcome.FINISHED, **said: object) -> ParsedLog:
    """A log that says these fields of its case."""
    return ParsedLog(PartialCase.model_validate(said), outcome=outcome)


def attributed(
    given: ParsedLog, *companions: ParsedLog, settings: tuple[str, ...] = ()
) -> Attributed:
    """What a log is of, where that is known."""
    found = attribute.attributed(given, companions, attribute.said(PageContext(), settings))
    assert isinstance(found, Attributed)
    return found


def test_the_command_line_holds_over_the_log_and_the_log_over_its_companion() -> None:
    beside = log(None, **(WHOLE | {"num_gpus": 8, "micro_batch_size": 1, "precision": "bf16"}))

    case = attributed(
        log(**(WHOLE | {"micro_batch_size": 2})), beside, settings=("sequence_length=4096",)
    ).case

    assert (4096, 2, "bf16") == (case.sequence_length, case.micro_batch_size, case.precision)
    assert 16 == case.num_gpus


@pytest.mark.parametrize("field", attribute.REQUIRED)
def test_a_required_field_that_nobody_says_is_missing(field: str) -> None:
    said = {name: value for name, value in WHOLE.items() if name != field}
    assert Missing((field,), release=True) == attribute.attributed(log(**said), (), Said())


def test_what_is_missing_is_told_with_the_options_that_say_it() -> None:
    problem = Missing(("model", "system")).problem("a.log")
    assert "a.log: names no model, system; pass --set model=… --set system=…" == str(problem)


def test_a_missing_release_is_told_with_the_rest() -> None:
    problem = Missing(("model",), release=True).problem("a.log")
    assert "a.log: names no model, release; pass --set model=… --release …" == str(problem)
    said = attribute.said(PageContext(release="2.0"))
    assert Missing(("model",)) == attribute.attributed(log(**{**WHOLE, "model": None}), (), said)


def test_what_set_says_against_the_log_is_told_field_by_field() -> None:
    """The same model in another spelling is no contradiction, nor is what the log leaves out."""
    own = log(model="llama3-8b", num_gpus=8, sequence_length=8192)
    settings = ("model=LLAMA3-8B", "num_gpus=16", "sequence_length=8192", "global_batch_size=4")
    words = attribute.said(PageContext(), settings)
    assert [("num_gpus", "says num_gpus 8, --set says 16")] == list(
        disputed.contradictions(own, words)
    )


def test_what_set_says_against_a_number_of_nodes_is_told() -> None:
    """Of which each has eight GPUs, whoever says the system."""
    own = replace(log(), num_nodes=2)
    for settings, context in (
        (("num_gpus=8", "system=dgx-h100"), PageContext()),
        (("num_gpus=8",), PageContext(system="dgx-h100")),
    ):
        words = attribute.said(context, settings)
        assert [("num_gpus", "says num_gpus 16, --set says 8")] == list(
            disputed.contradictions(own, words)
        )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((), ["says system dgx-h100, --system dgx-b200 is not taken",
              "llmb-config_1.yaml says framework torchtitan, --framework nemo is not taken"]),
        (("system=dgx-b200", "framework=nemo"), []),
    ],
)  # fmt: skip
def test_an_option_that_does_not_hold_is_told(
    settings: tuple[str, ...], expected: list[str]
) -> None:
    """To say which FP8 it was is no other precision."""
    own = log(system="dgx-h100", precision="fp8")
    beside = [Sayer("llmb-config_1.yaml", log(None, framework="torchtitan", system="dgx-h200"))]
    context = PageContext(framework="nemo", system="dgx-b200", precision="fp8_cs")
    told = disputed.untaken(own, attribute.said(context, settings), beside)
    assert sorted(expected) == sorted(told)


@pytest.mark.parametrize(
    ("settings", "context", "expected"),
    [
        (("system=dgx-h100",), PageContext(), "says system NVIDIA A900, --set says dgx-h100"),
        ((), PageContext(system="dgx-h100"), "says system NVIDIA A900, --system says dgx-h100"),
        ((), PageContext(), None),
    ],
)
def test_a_gpu_that_the_catalogue_lacks_is_told_against_any_option(
    settings: tuple[str, ...], context: PageContext, expected: str | None
) -> None:
    words = attribute.said(context, settings)
    told = dict(disputed.contradictions(log(system="NVIDIA A900"), words)).get("system")
    assert expected == told


@pytest.mark.parametrize(
    ("shape", "model", "expected"),
    [
        (
            {"num_layers": 80, "hidden_size": 8192, "num_attention_heads": 64},
            "llama3-8b",
            "says num_layers 80, hidden_size 8192, num_attention_heads 64, as llama3-70b; "
            "llama3-8b has num_layers 32, hidden_size 4096, num_attention_heads 32",
        ),
        (
            {"num_layers": 2, "hidden_size": 4096},
            "llama3-8b",
            "says num_layers 2; llama3-8b has num_layers 32",
        ),
        (
            {"hidden_size": 4096, "num_experts": 8},
            "llama3-8b",
            "says num_experts 8, as mixtral-8x7b; llama3-8b has num_experts none",
        ),
        ({"num_layers": 32, "hidden_size": 4096, "ffn_hidden_size": 14336}, "llama3-8b", None),
        ({"num_layers": 48, "ffn_hidden_size": 768, "num_experts": 128}, "qwen3-30b-a3b", None),
        (
            {"num_layers": 52, "hidden_size": 4096, "ffn_hidden_size": 999},
            "nemotron-h-8b",
            "says ffn_hidden_size 999; nemotron-h-8b has ffn_hidden_size 21504",
        ),
        ({"num_layers": 80}, "no-such-model", None),
        ({}, "llama3-8b", None),
    ],
)
def test_a_model_of_other_sizes_than_the_log_prints_is_told(
    shape: dict[str, int], model: str, expected: str | None
) -> None:
    assert expected == disputed.shape(replace(log(), shape=shape), model)


def test_what_set_says_against_what_lies_beside_the_log_is_told_with_who_says_it() -> None:
    """Of each field what would hold without --set: the log, then the name, then the file."""
    name = Sayer("the experiment's name", log(None, model="llama3-70b", num_gpus=64))
    file = Sayer("llmb-config_1.yaml", log(None, system="dgx-gb200", num_gpus=32, task="sft"))
    settings = ("model=llama3-8b", "num_gpus=8", "system=dgx-h100", "task=pretrain")
    words = attribute.said(PageContext(), settings)
    assert [
        "the experiment's name says model llama3-70b, --set says llama3-8b",
        "the experiment's name says num_gpus 64, --set says 8",
        "llmb-config_1.yaml says system dgx-gb200, --set says dgx-h100",
    ] == [said for _, said in disputed.contradictions(log(task="pretrain"), words, [name, file])]


def test_what_lies_beside_a_log_and_says_otherwise_is_told_once_for_each() -> None:
    """But not what --set says, nor what only one of them says, nor which FP8 it was."""
    own = log(tensor_parallel=2, global_batch_size=128, num_gpus=8, precision="fp8")
    name = Sayer(
        "the experiment's name",
        log(None, tensor_parallel=4, global_batch_size=256, num_gpus=16, precision="fp8_cs",
            micro_batch_size=1),
    )  # fmt: skip
    file = Sayer(
        "llmb-config_1.yaml",
        log(None, tensor_parallel=2, precision="bf16", num_gpus=32, micro_batch_size=2),
    )
    words = attribute.said(PageContext(), ("num_gpus=8",))
    assert [
        "the experiment's name says global_batch_size 256, tensor_parallel 4; "
        "the log says global_batch_size 128, tensor_parallel 2, which holds",
        "llmb-config_1.yaml says precision bf16; the log says precision fp8, which holds",
        "llmb-config_1.yaml says micro_batch_size 2; "
        "the experiment's name says micro_batch_size 1, which holds",
    ] == list(disputed.disagreements(Sayer("the log", own), words, [name, file]))


@pytest.mark.parametrize(
    ("own", "settings", "fallback", "expected"),
    [
        ("fp8", (), None, "fp8_cs"),
        ("fp8", ("precision=fp8",), None, "fp8"),
        ("fp8_mx", (), None, "fp8_mx"),
        ("bf16", (), None, "bf16"),
        (None, (), "fp8_mx", "fp8_cs"),
    ],
)
def test_which_fp8_it_was_is_taken_from_who_says_it(
    own: str | None, settings: tuple[str, ...], fallback: str | None, expected: str
) -> None:
    """The first file says no more than FP8, the second which."""
    beside = [log(None, precision="fp8"), log(None, precision="fp8_cs")]
    said = attribute.said(PageContext(precision=fallback), settings)
    spoken = {"precision": own} if own else {}
    found = attribute.attributed(log(**WHOLE, **spoken), beside, said)
    assert isinstance(found, Attributed)
    assert expected == found.case.precision


def test_what_a_log_says_in_contradiction_to_itself_is_told_where_set_does_not_say_it() -> None:
    own = replace(
        log(**{**WHOLE, "num_gpus": None}),
        doubts={"num_gpus": "world_size 64 and 32", "nccl_ub": "nccl_ub true and false"},
    )
    words = attribute.said(PageContext(release="1"), ("options={nccl_ub: true}",))

    missing = attribute.attributed(own, (), words)

    assert isinstance(missing, Missing)
    assert str(missing.problem("a.log")) == (
        "a.log: names no num_gpus (says world_size 64 and 32); pass --set num_gpus=…"
    )
    assert "says world_size 64 and 32: what holds is not clear" == disputed.doubts(own, words)
    both = attribute.said(PageContext(), ("options={nccl_ub: true}", "num_gpus=32"))
    assert disputed.doubts(own, both) is None


@pytest.mark.parametrize(
    ("release", "settings", "told"),
    [
        ("25.07", (), "llmb-config_1.yaml says release 25.09.00, --release 25.07 is not taken"),
        ("25.09", (), None),
        (None, (), None),
        ("25.07", ("release=25.10",), "llmb-config_1.yaml says release 25.09.00, --set says 25.10"),
        ("25.07", ("release=25.9.0", "framework=mine"), None),
    ],
)
def test_a_release_that_somebody_else_says_is_told(
    release: str | None, settings: tuple[str, ...], told: str | None
) -> None:
    """A version of another framework than the run's is not its release."""
    said = ParsedLog(PartialCase(framework="nemo"), framework_version="25.09.00")
    words = attribute.said(PageContext(release=release), settings)
    beside = [Sayer("llmb-config_1.yaml", said)]
    assert told == attribute.other_release(log(framework="nemo"), words, beside)


def test_set_says_the_release_over_the_log_and_as_it_is_written() -> None:
    """25.10 is no number: that would be 25.1."""
    own = ParsedLog(PartialCase.model_validate(WHOLE), framework_version="2.0")
    assert Release(framework="nemo", version="25.10") == (
        attributed(own, settings=("release= 25.10",)).release
    )


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("llama3-8c", "no model 'llama3-8c' in the catalogue; did you mean 'llama3-8b'?"),
        ("zzz", "--set model: no model 'zzz' in the catalogue"),
        ("LLAMA3-8B", "None"),
    ],
)
def test_a_model_that_the_catalogue_lacks_is_told(model: str, told: str) -> None:
    words = attribute.said(PageContext(), (f"model={model}",))
    assert str(attribute.unknown_model(words)).endswith(told)


@pytest.mark.parametrize(
    ("options", "settings", "told"),
    [
        ({"precision": "bf16"}, ("precision=fp8",), ["precision"]),
        ({"precision": "BF16"}, ("precision=bf16",), []),
        ({"system": "dgx-b200"}, ("system=dgx-h100",), ["system"]),
        ({"system": "DGX-H100"}, ("system=dgx-h100", "num_gpus=8"), []),
        ({"framework": "nemo"}, ("framework=automodel",), ["framework"]),
        ({"release": "25.07"}, ("release=25.09",), ["release"]),
        ({"release": "v25.07"}, ("release=25.07",), []),
        ({"release": "25.07"}, ("system=dgx-h100",), []),
        ({}, ("system=dgx-h100", "release=25.09"), []),
    ],
)
def test_each_option_that_set_contradicts_is_told(
    options: dict[str, str], settings: tuple[str, ...], told: list[str]
) -> None:
    """What is the same in other words is none."""
    found = disputed.overruled(attribute.said(PageContext(**options), settings))
    assert told == [problem.where.removeprefix("--set ") for problem in found]


def test_names_are_the_catalogues_where_it_knows_them() -> None:
    case = attributed(
        log(**(WHOLE | {"model": "My Model_7B", "precision": "mxfp8"})),
        settings=("model=LLAMA3-8B", "system=DGX-GB200"),
    ).case
    assert ("llama3-8b", "dgx-gb200", "fp8_mx") == (case.model, case.system, case.precision)
    assert "my-model-7b" == attributed(log(**(WHOLE | {"model": "My Model_7B"}))).case.model


def test_a_system_that_the_catalogue_lacks_is_missing() -> None:
    assert Missing(("system",), release=True) == attribute.attributed(
        log(**(WHOLE | {"system": "my-cluster"})), (), Said()
    )


@pytest.mark.parametrize(
    "batch",
    [
        {"micro_batch_size": 2},
        {"local_batch_size": 2},
        {"local_batch_size": 2, "micro_batch_size": 1},
    ],
)
def test_data_parallel_and_accumulation_follow_from_the_layout(batch: dict[str, int]) -> None:
    """16 GPUs ÷ (2 × 2 × 1) = 4 ranks; 128 ÷ (2 × 4) = 16 steps, each of a pipeline's batches."""
    layout = {"tensor_parallel": 2, "pipeline_parallel": 2, "context_parallel": 1}
    case = attributed(log(**WHOLE, **layout, **batch)).case
    assert (4, 16) == (case.data_parallel, case.gradient_accumulation)


def test_data_parallel_is_unknown_where_the_layout_is() -> None:
    """An unsaid context parallelism is not taken for 1."""
    case = attributed(log(**WHOLE, tensor_parallel=2, pipeline_parallel=2, micro_batch_size=2)).case
    assert (None, None) == (case.data_parallel, case.gradient_accumulation)


def test_what_does_not_divide_is_left_as_it_was_said() -> None:
    layout = {"tensor_parallel": 3, "pipeline_parallel": 1, "context_parallel": 1}
    assert 5 == attributed(log(**WHOLE, **layout, data_parallel=5)).case.data_parallel


def test_the_release_is_the_logs_then_the_companions_then_the_command_lines() -> None:
    own = ParsedLog(PartialCase.model_validate(WHOLE), framework_version="2.0")
    beside = ParsedLog(PartialCase(), framework_version="1.0", container="nemo:1")
    said = attribute.said(PageContext(release="3.0"))

    first = attribute.attributed(log(**WHOLE), (), said)
    second = attribute.attributed(own, [beside], said)

    assert isinstance(first, Attributed)
    assert isinstance(second, Attributed)
    assert Release(framework="nemo", version="3.0") == first.release
    assert Release(framework="nemo", version="2.0", container="nemo:1") == second.release


def test_a_version_of_another_framework_is_not_the_releases() -> None:
    """--set insists that it was another program than the log looks like."""
    own = ParsedLog(PartialCase.model_validate(WHOLE), framework_version="2.0")
    found = attribute.attributed(own, (), attribute.said(PageContext(), ("framework=mine",)))
    assert isinstance(found, Attributed)
    assert Release(framework="mine") == found.release


@pytest.mark.parametrize(
    ("system", "nodes", "expected"),
    [("dgx-h100", 32, 256), ("dgx-gb200", 32, 128), ("cpu", 32, None), ("dgx-h100", None, None)],
)
def test_nodes_tell_the_gpus_of_a_system_that_has_so_many_in_each(
    system: str, nodes: int | None, expected: int | None
) -> None:
    """8 H100 or 4 GB200 to a node; of a system without nodes nobody knows."""
    silent = log(**{name: WHOLE[name] for name in WHOLE if name not in ("num_gpus", "system")})
    named = ParsedLog(PartialCase(), num_nodes=nodes)
    found = attribute.attributed(silent, [named], attribute.said(PageContext(system=system)))
    if expected is None:
        assert Missing(("num_gpus",), release=True) == found
    else:
        assert isinstance(found, Attributed)
        assert expected == found.case.num_gpus


def test_gpus_that_are_said_hold_over_nodes() -> None:
    assert 16 == attributed(log(**WHOLE), ParsedLog(PartialCase(), num_nodes=32)).case.num_gpus


def test_a_model_that_the_launcher_changed_is_nobodys_until_set_names_it() -> None:
    """Neither the experiment's name nor a figure of the whole model is of it."""
    silent = log(**{name: value for name, value in WHOLE.items() if name != "model"})
    name = log(None, model="llama3-8b")
    notes = log(None, model=None, options={"proxy": True})

    found = attribute.attributed(silent, [name, notes], Said())

    assert isinstance(found, Missing)
    assert str(found.problem("a.log")) == (
        "a.log: names no model, release (the launcher ran a proxy or changed the model); "
        "pass --set model=… --release …"
    )
    case = attributed(silent, name, notes, settings=("model=llama3-8b-proxy",)).case
    assert ("llama3-8b-proxy", {"proxy": True}) == (case.model, case.options)


def test_options_are_completed_one_by_one() -> None:
    own = log(**WHOLE, options={"recompute_granularity": "full", "nccl_ub": True})
    beside = log(None, options={"nccl_ub": False, "mtp_num_layers": 1})

    case = attributed(own, beside, settings=("options={recompute_granularity: selective}",)).case

    expected = {"recompute_granularity": "selective", "nccl_ub": True, "mtp_num_layers": 1}
    assert expected == case.options
    words = attribute.said(PageContext(), ("options={nccl_ub: false, x: 1}",))
    told = [said for _, said in disputed.contradictions(own, words)]
    assert ["says option nccl_ub True, --set says False"] == told


@pytest.mark.parametrize(
    ("said", "expected"),
    [({"model": "llama3-70b"}, False), ({"framework": "automodel"}, False),
     ({"num_gpus": 4}, True), ({"model": "LLAMA3-8B"}, True), ({}, True)],
)  # fmt: skip
def test_a_file_that_names_another_subject_is_of_another_run(
    said: dict[str, object], expected: bool
) -> None:
    assert expected is attribute.accompanies(log(None, **said), log(**WHOLE))


def test_settings_are_yaml() -> None:
    settings = ("fsdp_enabled=true", "kernels=[te, flash]", "options={moe: 2}", "variant=tuned")
    assert (
        PartialCase(fsdp_enabled=True, kernels=("te", "flash"), options={"moe": 2}, variant="tuned")
        == attribute.said(PageContext(), settings).configuration
    )


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InputError) as error:
        attribute.said(PageContext(), ("num_gpus=-1", "modle=x"))
    assert {"num_gpus", "modle"} == {problem.field for problem in error.value.problems}


def test_a_setting_holds_over_the_log_and_an_option_only_where_nobody_else_says_it() -> None:
    context = PageContext(system="dgx-gb300", precision="nvfp4")
    silent = log(**{name: value for name, value in WHOLE.items() if name != "system"})
    insisting = attribute.said(context, ("precision=fp8",))

    spoken = attribute.attributed(log(**(WHOLE | {"precision": "bf16"})), (), insisting)
    filled = attribute.attributed(silent, (), attribute.said(context))

    assert isinstance(spoken, Attributed)
    assert isinstance(filled, Attributed)
    assert (WHOLE["system"], "fp8") == (spoken.case.system, spoken.case.precision)
    assert ("dgx-gb300", "nvfp4") == (filled.case.system, filled.case.precision)
