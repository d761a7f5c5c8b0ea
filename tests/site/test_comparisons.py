"""Systems and precisions next to each other: which results are the same work, and the ratios."""

import pytest
from bs4 import BeautifulSoup

from perfdb.record import Note, NoteCode
from perfdb.site import cells, columns
from perfdb.site.data import SiteResult
from tests.factories import EVIL
from tests.site.samples import WRONG, page_named, part, result, row, site_data, table, words

NEMOTRON4 = (
    (16, 64, 98_550.0, 132_396.0),
    (64, 256, 392_725.0, 529_584.0),
    (2048, 8192, 12_069_940.0, 16_054_752.0),
)
"""GPUs, GBS, and tokens/s of all GPUs in BF16 and FP8: the recipe's tables of Nemotron-4 15B."""


def pair(**changed: object) -> list[SiteResult]:
    """The same work in BF16, and in FP8-CS at half as much again, with these fields changed."""
    fields = {"precision": "fp8_cs", "tokens_per_sec_per_gpu": 48545.25} | changed
    return [result(), result(**fields)]


def by_precision(*results: SiteResult) -> BeautifulSoup:
    """The tables of a model's page; empty where there are none."""
    return part(page_named(f"models/{results[0].model}", site_data(results)), "By precision")


def by_system(*results: SiteResult) -> BeautifulSoup:
    """The table of a model's page; empty where there is none."""
    return part(page_named(f"models/{results[0].model}", site_data(results)), "By system")


def test_ratios_are_those_of_the_published_totals() -> None:
    """98,550 ÷ 16 = 6,159 and 132,396 ÷ 16 = 8,275; 132,396 ÷ 98,550 = 1.343, 529,584 ÷ 392,725 =
    1.348, 16,054,752 ÷ 12,069,940 = 1.330."""
    rows = [
        row(model="nemotron4-15b", model_title="Nemotron-4 15B", num_gpus=gpus, precision=precision,
            global_batch_size=gbs, tokens_per_sec=total, tokens_per_sec_per_gpu=None)
        for gpus, gbs, *totals in NEMOTRON4
        for precision, total in zip(("bf16", "fp8"), totals, strict=True)
    ]  # fmt: skip
    shown = by_precision(*rows)
    columns = ("GPUs", "BF16", "FP8", "FP8 ÷ BF16")
    assert [tuple(line[name] for name in columns) for line in table(shown)] == [
        ("16", "6,159 (computed)", "8,275 (computed)", "1.34"),
        ("64", "6,136 (computed)", "8,275 (computed)", "1.35"),
        ("2,048", "5,894 (computed)", "7,839 (computed)", "1.33"),
    ]
    assert "tokens/s of all GPUs ÷ GPUs" in words(shown)


@pytest.mark.parametrize(
    "results",
    [
        [result(), result(tensor_parallel=2)],
        [result(precision="fp8_cs"), result(precision="nvfp4")],
        [result(), result(precision=None)],
        pair(withheld=Note(NoteCode.CUT_OFF)),
        pair(has_open_errors=True),
        pair(release="0.9.1"),
        pair(system="dgx-b200"),
        pair(task="sft"),
        pair(qualifiers="dropout"),
        pair(global_batch_size=256),
        pair(window="last"),
    ],
)
def test_work_that_is_not_the_same_has_no_ratio(results: list[SiteResult]) -> None:
    assert not by_precision(*results)("table")


@pytest.mark.parametrize(
    ("base", "other", "text"),
    [
        ({}, {"tensor_parallel": 2, "fsdp_enabled": True, "kernels": "fused"},
         "TP 2 against –, FSDP on against –, other kernels"),
        ({"options": {"init": "a"}}, {"options": {"recompute": "full", "init": "a"}},
         "recompute full against –"),
        ({}, {"options": {"e": EVIL}}, f"e {EVIL} against –"),
    ],
)  # fmt: skip
def test_another_configuration_is_a_footnote(
    base: dict[str, object], other: dict[str, object], text: str
) -> None:
    fast = result(precision="fp8_cs", **other)
    shown = by_precision(result(**base), fast)
    [note] = shown.select(".perf-notes li")
    assert note.get_text() == f"FP8-CS is configured differently from BF16: {text}."
    [mark] = shown.select("tbody th .perf-mark a")
    assert mark["href"] == f"#{note['id']}"


def test_flops_are_compared_within_a_convention_where_tokens_are_not_known() -> None:
    """700 ÷ 400 = 1.75."""
    same = {"tokens_per_sec_per_gpu": None, "step_time_s": None, "flops_convention": "causal"}
    base = result(**same, model_tflops_per_sec_per_gpu=400.0)
    fast = same | {"precision": "fp8_cs", "model_tflops_per_sec_per_gpu": 700.0}
    assert [it["FP8-CS ÷ BF16"] for it in table(by_precision(base, result(**fast)))] == ["1.75"]
    other = result(**fast | {"flops_convention": "full"})
    assert not by_precision(base, other)("table")


def test_the_newest_release_with_such_work_is_shown_without_rows_with_errors() -> None:
    """The newest of all was run in FP8 alone."""
    of_releases = [row for release in ("0.9", "0.10") for row in pair(release=release)] + [
        result(release="0.9"),
        result(release="0.10"),
    ]
    alone = result(release="0.11", precision="fp8_cs")
    wrong = result(release="0.10", precision="fp8_cs", tokens_per_sec_per_gpu=99999.0, flag=WRONG)
    shown = by_precision(*of_releases, alone, wrong)
    [line] = table(shown)
    assert line["Release"] == "Megatron-Core 0.10"
    assert line["FP8-CS ÷ BF16"] == "1.50"
    assert "1 row with open errors is left out." in words(shown)


def test_a_system_is_compared_with_the_first_that_did_the_same_work() -> None:
    """3,562 ÷ 1,621 = 2.197; 10¹² ÷ 1,621 ÷ 3,600 = 171,362 hours; ÷ 64 ÷ 24 = 111.6 days."""
    b200 = row(system="dgx-b200", system_title="DGX-B200", tokens_per_sec_per_gpu=3562.0)
    slow = row(num_gpus=128, tokens_per_sec_per_gpu=1500.0)
    old = row(release="24.12", tokens_per_sec_per_gpu=9000.0)
    columns = ("System", "Tokens/s/GPU", "Against", "GPU-hours per 1T tokens", "Days to 1T tokens")
    lines = table(by_system(b200, slow, old, row()))
    assert [tuple(line[it] for it in columns) for line in lines] == [
        ("DGX-H100", "1,621", "–", "171,362", "111.6"),
        ("DGX-B200", "3,562", "2.20 × DGX-H100", "77,984", "50.77"),
    ]  # fmt: skip


def test_the_same_size_is_compared_where_both_systems_have_it() -> None:
    """1,600 ÷ 800 = 2; against 1,000 tokens/s/GPU on 64 GPUs it would be 1.6, and is that where
    the first system has no such row."""
    other = {"num_gpus": 512, "global_batch_size": 1024}
    small = row(tokens_per_sec_per_gpu=1000.0)
    equal = row(tokens_per_sec_per_gpu=800.0, **other)
    b200 = row(system="dgx-b200", tokens_per_sec_per_gpu=1600.0, **other)
    lines = table(by_system(small, equal, b200))
    assert [line["Against"] for line in lines] == ["–", "2.00 × DGX-H100"]
    shown = words(by_system(small, b200))
    assert "1.60 × DGX-H100" in shown
    assert "Not the same work: GPUs 512 against 64, GBS 1,024 against 128." in shown
    assert not by_system(small, row(system="dgx-b200", sequence_length=4096))("table")


def test_bars_are_the_best_of_each_label_in_the_newest_release_without_errors() -> None:
    results = [
        result(tokens_per_sec_per_gpu=rate, **changed)
        for rate, changed in (
            (9000.0, {"release": "0.15.0"}), (500.0, {"flag": WRONG}), (100.0, {}),
            (200.0, {"tensor_parallel": 2}), (300.0, {"precision": "fp8_cs"}),
        )
    ]  # fmt: skip
    shown = page_named("models/llama3-8b", site_data(results))
    label = "DGX-H100 · Megatron-Core 0.16.0"
    assert f"{label} · FP8-CS · 8 GPUs: 300; {label} · BF16 · 8 GPUs: 200." in words(shown.desc)
    assert "1 row with open errors is left out." in words(shown)
    assert not page_named("models/llama3-8b", site_data(results[2:3]))("svg")


@pytest.mark.parametrize("of_many", [False, True])
def test_a_layout_prints_as_its_page_printed_it(of_many: bool) -> None:
    """Also in tables of rows from many pages: a VP of 1 is stored as none, FSDP of 0 as off."""
    row = SiteResult(
        framework="megatron-bridge", system="dgx-h100", model="llama3-8b", num_gpus=8,
        global_batch_size=128, sequence_length=8192, fsdp_enabled=False,
        printed={"virtual_pipeline": "1", "fsdp_enabled": "0"},
    )  # fmt: skip
    shown = (columns.VP, columns.FSDP)
    if of_many:
        shown = columns.ours(*shown)
    assert ["1", "0"] == [cells.cells(column, [row])[0].content for column in shown]
