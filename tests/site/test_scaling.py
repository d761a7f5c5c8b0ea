"""Scaling: which results are a series, what its efficiency is, and how a page shows it."""

import re

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from perfdb.record import Finding, Severity
from perfdb.site import bests, scaling
from perfdb.site.contents import Contents
from perfdb.site.data import Audited, Flag, Result
from perfdb.site.series import ScalingPage, Series, efficiency, groups
from tests.site import samples
from tests.site.samples import address, published, result, words

NEMOTRON4 = (
    (16, 64, 2.66, "98550", "117.44"),
    (256, 1024, 2.68, "1565039", "7.4"),
    (2048, 8192, 2.78, "12069940", "0.96"),
)
"""GPUs, GBS, step time, tokens/s of all GPUs and days to 1T tokens, as the recipe's table of
Nemotron-4 15B in BF16 prints them."""


def nemotron4() -> list[Result]:
    return [
        samples.nemotron4(
            gpus,
            gbs,
            precision="bf16",
            step_time_s=step_time,
            raw={"#-GPUs": str(gpus), "Training step time (seconds per step)": str(step_time)},
            extras={"Throughput": tokens, "Days": days},
        )
        for gpus, gbs, step_time, tokens, days in NEMOTRON4
    ]


def page_of(*results: Result) -> ScalingPage:
    [page] = groups(results)
    return page


def soup(page: ScalingPage, number: int = 0) -> BeautifulSoup:
    """What stands below a model of a page."""
    return BeautifulSoup(scaling.model(page, number, address).text, "html.parser")


def rows(page: ScalingPage) -> list[dict[str, str]]:
    table = [
        [cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"])]
        for row in soup(page).select("table tr")
    ]
    return [dict(zip(table[0], row, strict=True)) for row in table[1:]]


def series_of(*results: Result) -> list[Series]:
    [model] = page_of(*results).models
    return list(model.series)


def test_a_batch_that_grows_with_the_gpus_is_weak_scaling() -> None:
    [series] = series_of(*nemotron4())
    assert ("weak", [16, 256, 2048]) == (series.scaling, [one.num_gpus for one in series.points])
    assert "4 samples per GPU" in series.title


def test_a_batch_that_stays_is_strong_scaling() -> None:
    [series] = series_of(result(num_gpus=8), result(num_gpus=16))
    assert ("strong", "GBS 128") == (series.scaling, series.title.split(", ")[-1])


def test_efficiency_is_the_rate_of_each_gpu_against_the_smallest_scale() -> None:
    """With the batch per GPU constant it is the ratio of step times: 2.66 ÷ 2.78 = 95.7 %."""
    [series] = series_of(*nemotron4())
    assert {16: "1.0000", 256: "0.9925", 2048: "0.9568"} == {
        gpus: f"{share:.4f}" for gpus, share in efficiency(series).items()
    }


def test_the_efficiency_is_drawn_from_below_the_lowest_on() -> None:
    """By hand: 2.66 s at 16 GPUs, 2.78 s at 2,048: 95.7 %, which is flat on an axis from zero."""
    rate, share = soup(page_of(*nemotron4())).select("svg")
    assert "6,159, 6,113, 5,894." in words(rate.select_one("desc"))
    assert "100.0%, 99.3%, 95.7%." in words(share.select_one("desc"))
    said = [one.get_text() for one in share.select("text")]
    assert "Efficiency (%), axis from 80" in said
    assert {"80", "100"} <= set(said)
    assert "0" not in said


def test_the_page_computes_what_the_source_printed() -> None:
    made = rows(page_of(*nemotron4()))
    for row in made:
        assert f"{int(row['Throughput (as printed)']):,} (computed)" == row["Tokens/s, all GPUs"]
        days = float(row["Days (as printed)"])
        assert pytest.approx(days, abs=0.006, rel=5e-4) == float(row["Days to 1T tokens"])
    assert ["100.0%", "99.3%", "95.7%"] == [row["Efficiency"] for row in made]
    assert ["2.66", "2.68", "2.78"] == [row["Step time (s)"] for row in made]


def test_a_rate_that_the_source_does_not_state_is_marked() -> None:
    """64 × 4,096 ÷ 16 ÷ 1.98 = 8,275, and 132,396 ÷ 16 of a total that is stated."""
    size = {"global_batch_size": 64, "sequence_length": 4096, "num_gpus": 16}
    larger = published(tokens_per_sec_per_gpu=7915.0, global_batch_size=128, sequence_length=4096)
    timed = published(**size, step_time_s=1.98)
    total = published(**size, tokens_per_sec=132396.0)
    for one, all_gpus in ((timed, "132,396 (computed)"), (total, "132,396")):
        first, last = rows(page_of(one, larger))
        said = (first["Tokens/s/GPU"], first["Tokens/s, all GPUs"])
        assert ("8,275 (computed)", all_gpus) == said
        assert ("7,915", "253,280 (computed)") == (last["Tokens/s/GPU"], last["Tokens/s, all GPUs"])


def notes(page: ScalingPage) -> list[str]:
    """What stands in the footnotes of the tables."""
    return [note.get_text().strip() for note in soup(page).select(".perf-notes")]


def test_a_series_names_the_flops_convention_where_it_has_figures_of_flops() -> None:
    """MFU and TFLOP/s count FLOPs, tokens/s do not."""
    given = [
        one.model_copy(update={"flops_convention": "nemotron4-recipe", "mfu": 0.3})
        for one in nemotron4()
    ]
    counted = "All rows: FLOPs convention: nemotron4-recipe."
    assert ["All rows: FSDP off.", counted] == notes(page_of(*given))
    without = [one.model_copy(update={"mfu": None}) for one in given]
    assert ["All rows: FSDP off."] == notes(page_of(*without))
    flops = [
        published(num_gpus=gpus, global_batch_size=2 * gpus, flops_convention=name)
        for gpus, name in ((32, "causal"), (64, None))
    ]
    assert ["All rows: FSDP off.", "FLOPs convention: causal."] == notes(page_of(*flops))
    marks = [row.select_one(".perf-mark") for row in soup(page_of(*flops)).select("tbody tr")]
    assert [True, False] == [mark is not None for mark in marks]


def test_what_is_configured_alike_at_every_scale_is_said_once_and_the_rest_in_columns() -> None:
    """The recipe splits by tensors alone, and its micro batch is 2 where one here is 4."""
    small, *others = nemotron4()
    given = [one.model_copy(update={"tensor_parallel": 2}) for one in (small, *others)]
    given[0] = given[0].model_copy(update={"micro_batch_size": 4})
    page = page_of(*given)
    assert ["All rows: TP 2, FSDP off."] == notes(page)
    assert "TP" not in rows(page)[0]
    assert "MBS" in rows(page)[0]


def test_what_the_source_prints_alike_at_every_scale_is_said_once() -> None:
    """All rows of Nemotron-4 15B have 32 layers; the days differ."""
    given = [
        one.model_copy(update={"extras": one.extras | {"Layers": "32"}}) for one in nemotron4()
    ]
    page = page_of(*given)
    assert ["All rows: FSDP off, Layers 32 (as printed)."] == notes(page)
    assert "Layers (as printed)" not in rows(page)[0]
    assert "117.44" == rows(page)[0]["Days (as printed)"]


@pytest.mark.parametrize(
    ("model", "title", "anchor"),
    [("llama3-8b", "Llama 3 8B", "llama3-8b"), ("gpt-tiny", "GPT tiny", None)],
)
def test_a_model_whose_heading_is_called_as_it_is_has_no_second_anchor(
    model: str, title: str, anchor: str | None
) -> None:
    """Sphinx calls the section of 'GPT tiny' gpt-tiny."""
    given = [result(model=model, model_title=title, num_gpus=it) for it in (8, 16)]
    part = soup(page_of(*given)).select_one(".perf-at")
    assert part is not None
    assert anchor == part.get("id")


def test_a_name_that_counts_the_nodes_does_not_part_a_series() -> None:
    """AutoModel's page calls a row on 16 GPUs '2-node': 984.85 of 1,091.85 are 90.2 %."""
    same = {"framework": "automodel", "system": "dgx-h100", "task": "lora", "precision": "bf16"}
    same |= {"global_batch_size": 32, "sequence_length": 4096, "variant": None}
    one = published(**same, num_gpus=8, tokens_per_sec_per_gpu=1091.85)
    two = published(**same, num_gpus=16, tokens_per_sec_per_gpu=984.85, qualifiers="2-node")
    other = published(**same, num_gpus=32, tokens_per_sec_per_gpu=900.0, qualifiers="dropless")
    assert ["100.0%", "90.2%"] == [row["Efficiency"] for row in rows(page_of(one, two, other))]


def test_a_computed_figure_is_marked_and_sorts_by_its_value() -> None:
    """395.6 and 296.7 of the 989 TFLOP/s that an H100 has in BF16 are 40 and 30 %."""
    same = {"system": "dgx-h100", "precision": "bf16", "global_batch_size": 32}
    page = page_of(
        published(**same, num_gpus=8, model_tflops_per_sec_per_gpu=395.6),
        published(**same, num_gpus=16, model_tflops_per_sec_per_gpu=296.7),
    )
    assert ["40.0% (computed)", "30.0% (computed)"] == [row["MFU"] for row in rows(page)]
    cells = soup(page).find_all(string="30.0% (computed)")
    sorted_by = [float(str(cell.find_parent(["td", "th"])["data-sort"])) for cell in cells]
    assert [pytest.approx(0.3)] == sorted_by


def test_a_printed_total_is_taken_before_one_is_computed() -> None:
    one = published(tokens_per_sec=98550.0, num_gpus=16, step_time_s=9.9)
    assert 98550 / 16 == bests.figure(one, "tokens_per_sec_per_gpu")


def test_series_that_were_run_without_a_gpu_come_last() -> None:
    """Megatron-Core would stand before NeMo by its name."""
    given = [
        result(framework=framework, system=system, num_gpus=count, global_batch_size=16 * count)
        for framework, system in (("megatron-core", "cpu"), ("nemo", "dgx-h100"))
        for count in (1, 2)
    ]
    assert ["nemo", "megatron-core"] == [page.framework for page in groups(given)]


def test_of_several_configurations_at_a_scale_the_fastest_is_shown() -> None:
    slow = result(num_gpus=16, tokens_per_sec_per_gpu=1.0, tensor_parallel=2)
    fast = result(num_gpus=16, tokens_per_sec_per_gpu=2.0, tensor_parallel=4)
    page = page_of(result(num_gpus=8, tensor_parallel=1), fast, slow)
    assert ["1", "4"] == [row["TP"] for row in rows(page)]


def test_what_is_not_the_same_work_is_no_series() -> None:
    first = result()
    others = (
        result(num_gpus=16, sequence_length=4096),
        result(num_gpus=16, precision="fp8_cs"),
        result(num_gpus=16, task="sft"),
        result(num_gpus=16, release="0.9.1"),
        result(num_gpus=16, system="dgx-b200"),
        result(num_gpus=16, global_batch_size=100),
        result(num_gpus=16, withheld="the run was out of memory"),
        published(**first.model_dump() | {"num_gpus": 16, "origin": "published"}),
    )
    for other in others:
        assert [] == groups([first, other])


def test_work_without_tokens_scales_by_its_flops() -> None:
    [series] = series_of(published(), published(num_gpus=64, global_batch_size=128))
    assert "model_tflops_per_sec_per_gpu" == series.rate


def test_a_row_with_open_errors_is_in_no_series_and_is_counted() -> None:
    """An efficiency of 5 would rest on it; what is explained stands as it is."""
    wrong = Flag(said="1 error", kind="error", anchor="result-0")
    given = (
        result(),
        result(num_gpus=16),
        result(num_gpus=32, tokens_per_sec_per_gpu=161_817.5, flag=wrong),
    )
    [series] = series_of(*given)
    assert ([8, 16], 1) == ([one.num_gpus for one in series.points], series.wrong)
    [note] = soup(page_of(*given)).select("h3 ~ p.perf-note")
    assert "1 row with open errors is left out." == note.get_text()
    assert [] == groups([given[0], given[2]])

    explained = given[2].model_copy(update={"flag": wrong.model_copy(update={"kind": "explained"})})
    [series] = series_of(*given[:2], explained)
    assert ([8, 16, 32], 0) == ([one.num_gpus for one in series.points], series.wrong)


def above(page: ScalingPage) -> str:
    """What is said of efficiencies above 100 %; empty where nothing is."""
    return " ".join(note.get_text() for note in soup(page).select("p[id$='-above']"))


def test_an_efficiency_above_100_percent_is_marked_and_says_what_else_is_not_the_same() -> None:
    """32,000 to 41,600 tokens/s/GPU is 130 %, with another layout; the list leads to the note."""
    given = tuple(
        result(num_gpus=gpus, tokens_per_sec_per_gpu=rate, tensor_parallel=size, kernels="same",
               global_batch_size=16 * gpus, result_id=gpus)
        for gpus, rate, size in ((8, 32_000.0, 4), (16, 31_000.0, 4), (32, 41_600.0, 2))
    )  # fmt: skip
    finding = Finding(
        rule="scaling", severity=Severity.INFO, fields=("num_gpus",), expected=None, found=None,
        message="faster", suggestion=None, model="llama3-8b", system="dgx-h100", release="0.16.0",
        source=None, source_line=None, framework="megatron-core",
    )  # fmt: skip
    other = finding.model_copy(update={"rule": "few_steps"})
    audited = (
        Audited(result=given[2], anchor="result-32", findings=(finding,)),
        Audited(result=given[1], anchor="result-16", findings=(other,)),
    )
    pages = scaling.KIND.pages(Contents(results=given, audited=audited))
    index, page = (one.data for one in pages)
    assert isinstance(page, ScalingPage)
    assert isinstance(index, scaling.ScalingIndex)

    assert ["100.0%", "96.9%", "130.0% *"] == [row["Efficiency"] for row in rows(page)]
    assert (
        "* Above 100 % at 32 GPUs: each GPU is faster there than at the smallest scale, 8 GPUs. "
        "Not the same at both: TP. The audit's findings: 32 GPUs."
    ) == above(page)
    [entry] = soup(page).select("p[id$='-above'] a")
    assert str(entry["href"]).endswith("performance/audit/megatron-core/0.16.0.html#result-32")
    [mark] = BeautifulSoup(scaling.index(index, address).text, "html.parser").select("sup a")
    document, anchor = str(mark["href"]).split("#")
    assert f"../{page.document}.html" == document
    assert soup(page).find(id=anchor) is not None


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ((1200.0, 1201.0), ""),  # half a unit of 1,200 and of 1,201 is 0.08 %
        ((1200.0, 1202.0), "The rows state no difference in configuration."),
        ((32_000.5, 32_010.5), ""),  # 100.03 % is printed as 100.0 %
        ((1200.0, 1100.0), ""),
    ],
)
def test_an_efficiency_above_100_percent_by_rounding_alone_is_not_marked(
    rates: tuple[float, float], said: str
) -> None:
    given = [
        result(num_gpus=gpus, global_batch_size=16 * gpus, tokens_per_sec_per_gpu=rate)
        for gpus, rate in zip((8, 16), rates, strict=True)
    ]
    assert above(page_of(*given)).endswith(said)
    assert bool(said) is bool(above(page_of(*given)))


def test_strong_scaling_above_100_percent_names_the_samples_of_a_gpu() -> None:
    page = page_of(result(), result(num_gpus=16, tokens_per_sec_per_gpu=40_000.0))
    assert "Not the same at both: samples per GPU." in above(page)


def test_a_release_has_a_page_for_each_system_with_a_section_for_each_model() -> None:
    """The list leads to each series, wherever it stands on the page."""
    models = (("llama3-70b", "Llama 3 70B"), ("llama3-8b", "Llama 3 8B"))
    given = [
        result(num_gpus=gpus, model=name, model_title=title, system=system, system_title=system)
        for system in ("dgx-b200", "dgx-h100")
        for name, title in models
        for gpus in (8, 16)
    ]
    pages = {page.name: page for page in scaling.KIND.pages(Contents(results=tuple(given)))}
    names = [f"scaling/megatron-core/0.16.0/{system}" for system in ("dgx-h100", "dgx-b200")]
    assert ["scaling/index", *names] == list(pages)
    text = pages[names[0]].text
    assert text is not None
    assert ["## Llama 3 8B", "## Llama 3 70B"] == re.findall("^## .*", text, re.MULTILINE)
    index = pages["scaling/index"].data
    assert isinstance(index, scaling.ScalingIndex)
    links = BeautifulSoup(scaling.index(index, address).text, "html.parser").select("th a")
    data = [pages[name].data for name in names]
    anchors = {
        f"../{page.document}.html#{heading['id']}"
        for page in data
        if isinstance(page, ScalingPage)
        for number in range(2)
        for heading in soup(page, number).select("h3")
    }
    assert anchors == {str(link["href"]) for link in links}
    assert 4 == len(anchors)


def test_a_series_is_called_the_same_whatever_its_figures_are() -> None:
    [before] = series_of(result(), result(num_gpus=16))
    [after] = series_of(result(tokens_per_sec_per_gpu=1.0), result(num_gpus=64))
    [other] = series_of(result(precision="fp8_cs"), result(num_gpus=16, precision="fp8_cs"))
    assert before.anchor == after.anchor != other.anchor


def test_the_list_says_how_far_a_series_goes_and_what_is_left_at_its_end() -> None:
    made = {page.name: page for page in scaling.KIND.pages(Contents(results=tuple(nemotron4())))}
    assert {"scaling/index", "scaling/nemo/unattributed/dgx-h100"} == made.keys()
    index = made["scaling/index"].data
    assert isinstance(index, scaling.ScalingIndex)
    text = BeautifulSoup(scaling.index(index, address).text, "html.parser").get_text(" ")
    assert "16 to 2,048" in text
    assert "95.7%" in text


def test_a_store_without_scales_says_so_and_not_that_it_is_empty() -> None:
    [page] = scaling.KIND.pages(Contents(results=(result(),)))
    assert page.text is not None
    assert "no work at two or more numbers of GPUs" in page.text
    assert "no-data" not in page.text


@given(
    st.lists(
        st.tuples(st.integers(1, 64), st.integers(1, 256), st.floats(1, 1e6)),
        min_size=1,
        max_size=9,
    )
)
def test_a_series_is_in_order_starts_at_one_and_keeps_its_batch(
    sizes: list[tuple[int, int, float]],
) -> None:
    results = [
        result(num_gpus=gpus, global_batch_size=gbs, tokens_per_sec_per_gpu=rate)
        for gpus, gbs, rate in sizes
    ]
    for page in groups(results):
        for series in (it for model in page.models for it in model.series):
            counts = [one.num_gpus for one in series.points]
            assert sorted(set(counts)) == counts
            assert 1 == efficiency(series)[counts[0]]
            per_gpu = {one.global_batch_size / one.num_gpus for one in series.points}
            whole = {one.global_batch_size for one in series.points}
            assert 1 == len(per_gpu if series.scaling == "weak" else whole)
