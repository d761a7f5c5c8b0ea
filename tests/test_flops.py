"""FLOPs by architecture and convention, against what other programs and papers say.

Those of AutoModel, Megatron-LM and Megatron-Bridge are from their own functions; totals of
parameters are those that the models' publishers state.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perfdb import catalog, flops
from perfdb.catalog import Model
from perfdb.catalog.entries import PARTS, WITHOUT_EXPERTS
from perfdb.flops import CountedWork, lora
from perfdb.flops.base import Convention
from perfdb.flops.conventions import (
    AUTOMODEL,
    AUTOMODEL_25_10,
    CAUSAL,
    FULL,
    MEGATRON_BRIDGE,
    MEGATRON_BRIDGE_26_04,
    MEGATRON_LM,
    NEMO_25_04,
    NEMOTRON4_RECIPE,
)
from perfdb.record import Task

DATA = Path(__file__).parent / "data" / "flops"
BOTH = json.loads((DATA / "automodel-and-megatron-lm.json").read_text())["models"]
BRIDGE = json.loads((DATA / "megatron-bridge.json").read_text())["cases"]
MORE = json.loads((DATA / "automodel-0.7.0.json").read_text())["models"]
CONVENTIONS = {"flops": AUTOMODEL, "megatron_lm_main_flops": MEGATRON_LM}
BRIDGES = {"0.4.0": MEGATRON_BRIDGE_26_04, "0.6.2": MEGATRON_BRIDGE}
EXACT = 1e-12


def _model(name: str) -> Model:
    return catalog.model(catalog.named_model(name) or name)


def _per_token(name: str, sequence_length: int, convention: Convention = CAUSAL) -> float:
    found = flops.flops_per_token(_model(name), sequence_length, convention)
    assert found
    return found


def _settings(field: str) -> Iterator[tuple[str, int, int, int]]:
    """Model, sequence length, batch and FLOPs of each setting: 'seq4096_gbs256'."""
    for name, entry in BOTH.items():
        for setting, expected in entry[field].items():
            length, batch = (int(part[3:]) for part in setting.split("_"))
            yield name, length, batch, expected


@pytest.mark.parametrize("field", CONVENTIONS)
def test_flops_are_those_of_automodel_and_megatron_lm(field: str) -> None:
    settings = list(_settings(field))
    assert 14 * 3 * 2 == len(settings)
    for name, length, batch, expected in settings:
        found = _per_token(name, length, CONVENTIONS[field]) * length * batch
        assert expected == pytest.approx(found, rel=EXACT), name


def test_flops_of_hybrids_and_others_are_those_of_automodel() -> None:
    """Of Nemotron-H with the gate of an MLP that squares a ReLU in its place."""
    for name, entry in MORE.items():
        for length, expected in entry["flops"].items():
            found = _per_token(name, int(length), AUTOMODEL) * int(length)
            assert expected == pytest.approx(found, rel=EXACT), name
    expected = BOTH["deepseek-v3"]["megatron_lm_with_mtp1_seq4096_gbs1"]
    found = _per_token("deepseek-v3-671b-mtp", 4096, MEGATRON_LM) * 4096
    assert expected == pytest.approx(found, rel=EXACT), "a depth of multi-token prediction"


BILLIONS = {
    "llama2-7b": 6.738, "llama3-8b": 8.030, "llama3-70b": 70.55, "llama3.1-405b": 405.85,
    "qwen2.5-7b": 7.616, "qwen2.5-32b": 32.76, "qwen3-8b": 8.191, "qwen3-32b": 32.76,
    "qwen3-30b-a3b": 30.53, "qwen3-235b-a22b": 235.09, "qwen3-next-80b-a3b": 79.67,
    "mixtral-8x7b": 46.70, "mixtral-8x22b": 140.62, "gpt-oss-20b": 20.91, "gpt-oss-120b": 116.83,
    "deepseek-v3-671b": 671.03, "moonlight-16b-a3b": 15.96, "kimi-k2": 1026.4,
    "nemotron-h-8b": 8.10, "nemotron-h-56b": 56.3, "nemotron-v3-nano-30b": 31.58,
    "nemotron-v3-super-120b": 120.67, "wan2.1-14b": 14.29, "gpt3-175b": 175.2,
    "nemotron4-15b": 15.6, "nemotron4-340b": 341.0,
}  # fmt: skip
"""Parameters as the publishers of models state them."""
UNPROVEN = {
    "gpt-tiny": "made for smoke tests, as is the next",
    "moe-tiny": "its parameters are counted while it trains",
    "dit-tiny": "its parameters are counted while it trains",
    "llama3-8b-8l": "Llama 3 8B with fewer layers",
    "deepseek-v3-671b-mtp": "one layer more; the pages of Megatron-Bridge, below",
}
"""Models that nobody else has figures of, and why."""


def test_shapes_have_the_parameters_that_their_publishers_state() -> None:
    """A wrong layer, width or expert would show; norms and biases are left out."""
    for name, billions in BILLIONS.items():
        model = catalog.model(name)
        cost = flops.FORMULAS[model.family].cost(model, 4096, CAUSAL)
        assert cost
        assert billions == pytest.approx(lora.parameters(cost) / 1e9, rel=2e-3), name


def test_every_model_is_held_against_what_somebody_else_says() -> None:
    proven = {*map(catalog.named_model, MORE), *BILLIONS}
    assert UNPROVEN.keys() == catalog.models().keys() - proven


def test_every_family_has_a_formula_and_every_model_flops_under_every_convention() -> None:
    assert flops.FORMULAS.keys() == PARTS.keys()
    assert PARTS.keys() > set(WITHOUT_EXPERTS)
    for model in catalog.models().values():
        for convention in flops.CONVENTIONS.values():
            assert flops.flops_per_token(model, 4096, convention)


def test_a_model_without_the_numbers_of_its_family_has_unknown_flops() -> None:
    """Also GPT-OSS with multi-token prediction, whose windows nobody knows."""
    for family in (name for name, parts in PARTS.items() if parts):
        bare = catalog.model("gpt-tiny").model_copy(update={"family": family})
        assert flops.flops_per_token(bare, 4096) is None
        assert flops.restate(100.0, CountedWork(bare, 4096), FULL, CAUSAL) is None
    deeper = _model("gpt-oss-20b").model_copy(update={"mtp_depth": 1})
    assert flops.flops_per_token(deeper, 4096) is None


def test_the_worked_example_of_the_nemotron_4_recipe() -> None:
    """4096 × (38,654,705,664 + 57,982,058,496 + 9,437,184,000), which rounds to 434.5e12.

    The recipe prints 38,666,279,738 for 24·32·6144² + 12·32·6144·4096, which is 38,654,705,664:
    it is 11,574,074 too high, the 10¹² ÷ 86,400 of its time-to-train formula. Its total,
    434,526,299,070,464, has the slip, and to four digits is the same.
    """
    attention = 24 * 32 * 6144**2 + 12 * 32 * 6144 * 4096
    assert 38_654_705_664 == attention
    assert 38_666_279_738 == attention + round(1e12 / 86_400)
    assert 434_526_299_070_464 == 4096 * (38_666_279_738 + 57_982_058_496 + 9_437_184_000)
    expected = 4096 * (38_654_705_664 + 57_982_058_496 + 9_437_184_000)
    assert expected == 4096 * _per_token("nemotron4-15b", 4096, NEMOTRON4_RECIPE)
    assert 434.5e12 == float(f"{expected:.4g}")


def test_a_video_transformer_worked_by_hand() -> None:
    """WAN 2.1 14B at 24 × 30 × 52 latent patches and 512 tokens of text, forward, in FLOPs."""
    q, t, h, f, layers = 24 * 30 * 52, 512, 5120, 13824, 40
    self_attention = 8 * q * h * h + 4 * q * q * h
    cross_attention = 4 * q * h * h + 4 * t * h * h + 4 * q * t * h
    mlp = 4 * q * h * f
    ends = 2 * q * 64 * h + 2 * t * 4096 * h + 2 * t * h * h + 2 * q * h * 64
    expected = 3 * (layers * (self_attention + cross_attention + mlp) + ends)
    assert expected == pytest.approx(q * _per_token("wan2.1-14b", q), rel=EXACT)
    assert _per_token("wan2.1-14b", q, FULL) == _per_token("wan2.1-14b", q)


def test_full_attention_of_a_window_is_the_window() -> None:
    """12 of GPT-OSS 20B's 24 layers see 128 keys each way, the others the whole sequence."""
    masked_away = 12 * 2 * 4096 * (4096 - 128)
    whole = _per_token("gpt-oss-20b", 4096, FULL) + 6 * masked_away
    assert whole == _per_token("gpt-oss-20b", 4096, replace(FULL, sliding_window=False))


@pytest.mark.parametrize(("task", "linear_factor"), [("pretrain", 6), ("sft", 6), ("lora", 4)])
def test_lora_leaves_out_the_gradients_of_frozen_weights(task: Task, linear_factor: int) -> None:
    """Llama 3 8B: 7,504,658,432 weights that a token goes through, and attention at half."""
    attention = 6 * 32 * 8192 * 4096
    found = flops.flops_per_token(catalog.model("llama3-8b"), 8192, CAUSAL, task)
    assert linear_factor * 7_504_658_432 + attention == found


def test_lora_as_automodel_counts_it() -> None:
    """Its log of Llama 3 8B with rank 8: 20,971,520 parameters; with rank 16 twice as many."""
    model = catalog.model("llama3-8b")
    cost = flops.FORMULAS["gpt"].cost(model, 4096, AUTOMODEL)
    assert cost
    assert 20_971_520 == lora.adapter_parameters(cost, 8)
    found = flops.flops_per_token(model, 4096, AUTOMODEL, "lora")
    expected = _per_token("llama3-8b", 4096) * (2 + 2 * 20_971_520 / 8_030_261_248) / 3
    assert expected == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "length", "layers", "width"),
    [("llama3-8b", 8192, 32, 4096), ("nemotron-h-8b", 8192, 4, 4096),
     ("qwen3-next-80b-a3b", 4096, 12, 4096), ("wan2.1-14b", 37440, 0, 5120)],
)  # fmt: skip
@pytest.mark.parametrize("task", ["sft", "lora"])
def test_packing_leaves_out_the_attention_over_a_text_and_nothing_else(
    name: str, length: int, layers: int, width: int, task: Task
) -> None:
    """Not scans, delta states or a video's attention: 6 × layers × 2 × length × width less."""
    model = catalog.model(name)
    full = flops.flops_per_token(model, length, FULL, task)
    nemo = flops.flops_per_token(model, length, NEMO_25_04, task)
    assert full is not None
    assert nemo is not None
    assert 6 * layers * 2 * length * width == full - nemo
    assert nemo == flops.flops_per_token(model, length, FULL, task, packed=True)
    assert full == flops.flops_per_token(model, length, NEMO_25_04, task, packed=False)
    pretrain = flops.flops_per_token(model, length, FULL, packed=True)
    assert flops.flops_per_token(model, length, FULL) == pretrain


def test_flops_are_those_of_megatron_bridge() -> None:
    """A depth of multi-token prediction is one more of the last layers."""
    for case in BRIDGE:
        depth = case["inputs"].get("mtp_num_layers")
        model = _model(case["model"])
        asked = model.model_copy(update={"mtp_depth": depth}) if depth else model
        for version, expected in case["flops"].items():
            found = flops.flops_per_token(asked, 4096, BRIDGES[version], case["task"])
            assert expected == pytest.approx(found, rel=EXACT), case["model"]


def test_megatron_bridge_counts_packed_lora_of_llama_3_70b_by_itself() -> None:
    """Its model_flops_frozen at two thirds; the attention within short texts is not known."""
    h, f, v, layers = 8192, 28672, 128_256, 80
    frozen = layers * h**2 * (12 + 12 * 8 / 64 + 18 * f / h + 6 * v / (layers * h)) * 2 / 3
    model = catalog.model("llama3-70b")
    for packed in (None, True):
        found = flops.flops_per_token(model, 4096, MEGATRON_BRIDGE, "lora", packed)
        assert frozen == pytest.approx(found, rel=EXACT)
    unpacked = flops.flops_per_token(model, 4096, MEGATRON_BRIDGE, "lora", packed=False)
    assert unpacked == flops.flops_per_token(model, 4096, MEGATRON_BRIDGE)


PAGES = {
    NEMO_25_04: [
        ("llama3-8b", 8192, "pretrain", 33099, 1917), ("llama3-70b", 8192, "pretrain", 4035, 1943),
        ("nemotron4-15b", 4096, "pretrain", 17809, 1674),
        ("nemotron4-340b", 4096, "pretrain", 737, 1551),
        ("mixtral-8x7b", 4096, "pretrain", 19275, 1598), ("llama3-70b", 4096, "sft", 3977, 1658),
    ],
    AUTOMODEL_25_10: [
        ("deepseek-v3-671b", 4096, "pretrain", 1002, 250), ("kimi-k2", 4096, "pretrain", 924, 189),
        ("qwen3-30b-a3b", 4096, "pretrain", 12040, 277),
        ("gpt-oss-20b", 4096, "pretrain", 13058, 279),
        ("llama3-70b", 8192, "pretrain", 866.77, 389), ("llama3-8b", 4096, "lora", 12472.87, 402),
        ("qwen2.5-32b", 4096, "lora", 2250.31, 301),
    ],
}  # fmt: skip
"""Rows of data/published: tokens/s/GPU and TFLOP/s/GPU as NeMo 25.04 and AutoModel print them."""


@pytest.mark.parametrize("convention", PAGES, ids=lambda one: one.name)
def test_rows_of_a_page_follow_its_convention(convention: Convention) -> None:
    """Within the rounding of both figures. The audit compares every row of every page."""
    for name, length, task, tokens, tflops in PAGES[convention]:
        expected = flops.flops_per_token(catalog.model(name), length, convention, task)
        rounding = 0.5 / tokens + 0.5 / tflops
        assert tflops * 1e12 / tokens == pytest.approx(expected, rel=rounding), name


RANGES: list[tuple[str, int, Task, float, float]] = [
    ("llama3-8b", 8192, "pretrain", 51.46, 51.50), ("llama3-70b", 8192, "pretrain", 448.8, 449.6),
    ("llama3.1-405b", 8192, "pretrain", 2520.9, 2530), ("llama3-70b", 4096, "sft", 432.2, 435.3),
    ("qwen3-30b-a3b", 4096, "pretrain", 22.81, 23.11),
    ("qwen3-235b-a22b", 4096, "pretrain", 147.7, 148.3),
    ("deepseek-v3-671b-mtp", 4096, "pretrain", 259.6, 260.4),
    ("deepseek-v3-671b", 4096, "pretrain", 249.1, 249.7),
    ("kimi-k2", 4096, "pretrain", 204.2, 204.6),
    ("nemotron-v3-nano-30b", 8192, "pretrain", 22.1, 22.6),
    ("nemotron-v3-super-120b-mtp", 8192, "pretrain", 84.3, 85.4),
]  # fmt: skip
"""Model, sequence length, task, and the range of GFLOP per token on the pages."""


def test_megatron_bridge_pages_are_within_their_range() -> None:
    """Ranges over all releases that a page shows, widened by 0.1 % for the rounding of rows."""
    for model, length, task, low, high in RANGES:
        for convention in (MEGATRON_BRIDGE, MEGATRON_BRIDGE_26_04):
            found = flops.flops_per_token(catalog.model(model), length, convention, task)
            assert found
            assert low * 0.999 <= found / 1e9 <= high * 1.001, model


def test_gpt_oss_was_counted_without_its_gate_until_26_04() -> None:
    """The same token: 27.2 GFLOP, and from 26.06 on 32.6."""
    for convention, length, low, high in (
        (MEGATRON_BRIDGE_26_04, 4096, 27.1, 27.4),
        (MEGATRON_BRIDGE_26_04, 8192, 30.7, 30.8),
        (MEGATRON_BRIDGE, 4096, 32.58, 32.63),
    ):
        assert low <= _per_token("gpt-oss-120b", length, convention) / 1e9 <= high * 1.0001
