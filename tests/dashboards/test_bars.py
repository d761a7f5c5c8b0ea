"""The best figures as bars: what is one bar, of which releases, and what its words say."""

import pandas as pd

from dashboards.charts import labels
from dashboards.views.explore import best_of_each, newest
from perfdb.metrics import METRICS

MFU, TOKENS = METRICS["mfu"], METRICS["tokens_per_sec_per_gpu"]


def result(**changed: object) -> dict[str, object]:
    """A published pre-training result of Llama 3 8B on eight GPUs, with some fields changed."""
    fields: dict[str, object] = {
        "framework": "nemo", "release": "25.04", "release_name": "NeMo Framework 25.04", "build": 0,
        "model_title": "Llama 3 8B", "system": "dgx-h100", "system_title": "DGX-H100",
        "task": "Pre-training", "precision": "FP8", "num_gpus": 8, "sequence_length": 8192,
        "variant": None, "flops_convention": None, "origin": "published",
        "tokens_per_sec_per_gpu": 13812.0, "mfu": 0.4, "is_wrong": False, "printed": {},
    }  # fmt: skip
    return fields | changed


def test_a_bar_of_a_computed_figure_says_so() -> None:
    rows = of(result(), result(num_gpus=64, computed_mfu=0.4))
    marked = ["40.0% (computed)" in label for label in labels(best_of_each(rows, MFU), MFU)]
    assert [False, True] == marked


def of(*rows: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame(rows)


OTHER = {
    "task": "LoRA", "precision": "BF16", "num_gpus": 64, "release_name": "NeMo Framework 25.02",
    "origin": "measured", "variant": "megatron-core", "sequence_length": 4096,
    "flops_convention": "causal",
}  # fmt: skip


def test_what_differs_in_a_part_is_a_bar_of_its_own() -> None:
    for name, other in OTHER.items():
        both = of(result(), result(**{name: other, "mfu": 0.3}))
        assert 2 == len(best_of_each(both, MFU)), name


def test_of_the_same_work_the_highest_is_the_bar_unless_it_is_wrong() -> None:
    rows = of(result(mfu=0.9, is_wrong=True), result(mfu=0.1), result(mfu=0.3), result(mfu=None))
    assert [0.3] == list(best_of_each(rows, MFU)["mfu"])


def test_the_newest_release_of_each_framework_is_drawn() -> None:
    """A branch and what nobody stated are the newest only where no release has a number."""
    given = [
        ("nemo", "25.04"), ("nemo", "25.02"), ("nemo", None), ("nemo", "main"),
        ("automodel", "main"), ("automodel", None), ("dfm", None),
    ]  # fmt: skip
    rows = of(*(result(framework=framework, release=release) for framework, release in given))
    found = newest(rows.convert_dtypes())
    assert [0, 4, 6] == list(found.index)


def test_a_trial_on_a_cpu_is_the_newest_release_only_where_there_is_no_other() -> None:
    given = [
        ("nemo", "25.04", "dgx-h100"), ("nemo", "25.07", "cpu"), ("nemo", None, "cpu"),
        ("megatron-core", "0.16", "cpu"), ("megatron-core", "0.15", "cpu"),
    ]  # fmt: skip
    rows = of(*(result(framework=one, release=version, system=on) for one, version, on in given))
    assert [0, 3] == list(newest(rows.convert_dtypes()).index)


def test_the_newest_of_builds_that_a_hash_tells_apart_is_the_last_of_them() -> None:
    rows = of(result(release="1.0+c4d5e6f"), result(release="1.0+1a2b3c4", build=1))
    assert [1] == list(newest(rows.convert_dtypes()).index)


def test_words_name_the_work_and_a_figure_has_the_digits_of_its_page() -> None:
    rows = of(
        result(printed={"tokens_per_sec_per_gpu": "13812.0"}),
        result(task="LoRA", precision=None, num_gpus=1024, origin="measured"),
    )
    assert [
        "Llama 3 8B · 8 × DGX-H100: 13,812.0\nPre-training · FP8 · NeMo Framework 25.04",
        "Llama 3 8B · 1,024 × DGX-H100: 13,812\n"
        "LoRA · precision unknown · NeMo Framework 25.04 · measured",
    ] == labels(rows, TOKENS)


def test_details_are_said_where_they_differ() -> None:
    rows = of(result(), result(sequence_length=4096, variant="megatron-bridge"))
    assert [
        "Pre-training · FP8 · NeMo Framework 25.04 · sequence 8,192",
        "Pre-training · FP8 · NeMo Framework 25.04 · variant Megatron-Bridge · sequence 4,096",
    ] == [words.partition("\n")[2] for words in labels(rows, TOKENS)]
