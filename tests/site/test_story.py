"""What a visitor is told first: flagship models, what changed, and no CPU test beside them."""

from datetime import date

from perfdb.site.pages import cpu_tests, flagships, home
from perfdb.site.pages.flagships import MOST, Dates
from tests.site.samples import page_named, result, row, site_data, soup, table, words

CPU = result(
    framework="megatron-core", system="cpu", system_title="CPU", model="gpt-tiny",
    model_title="GPT tiny", num_gpus=1, tokens_per_sec_per_gpu=4886.0, run_id="trial",
    result_id=99, case_key="trial",
)  # fmt: skip
GPU = row(result_id=1, case_key="flagship", model_tflops_per_sec_per_gpu=780.0)


def test_a_cpu_test_is_on_a_page_of_its_own_and_in_no_list_chart_or_headline() -> None:
    data = site_data([GPU, CPU])
    shown = {
        name: page_named(name, data)
        for name in ("models/index", "systems/index", "performance/index")
    } | {"home": soup(str(home.overview(data)))}
    for name, page in shown.items():
        assert "GPT tiny" not in words(page), name
        assert "4,886" not in words(page), name
    assert "1 CPU test" in words(shown["home"].select_one(".perf-counts"))
    [line] = table(page_named("performance/cpu-tests", data))
    assert ("GPT tiny", "4,886") == (line["Model"].split(" ¶")[0], line["Tokens/s/GPU"])
    assert cpu_tests.NONE in words(page_named("performance/cpu-tests", site_data([CPU])))
    assert "GPT tiny" in words(page_named("models/index", site_data([CPU])))


def test_the_list_of_systems_has_the_best_of_all_releases_with_its_release() -> None:
    """The newest release may have a small model alone: 938 is no system's best after 1,943."""
    best = row(system="dgx-gb200", system_title="DGX-GB200", release="25.04",
               model_tflops_per_sec_per_gpu=1943.0)  # fmt: skip
    newest = row(system="dgx-gb200", system_title="DGX-GB200", release="25.07",
                 model_tflops_per_sec_per_gpu=938.0)  # fmt: skip
    [line] = table(page_named("systems/index", site_data([best, newest])))
    assert "1,943.00 TFLOP/s/GPU" in line["Best pre-training TFLOP/s/GPU"]
    assert "in NeMo Framework 25.04" in line["Best pre-training TFLOP/s/GPU"]


def test_flagships_are_the_models_on_most_systems_with_their_newest_figures() -> None:
    """Of each system the newest release that has the model there, however slow, and its fastest."""
    known = [
        row(release="25.04", tokens_per_sec_per_gpu=1621.0),
        row(release="25.07", tokens_per_sec_per_gpu=1500.0),
        row(release="25.07", tokens_per_sec_per_gpu=1400.0),
        row(release="25.04", tokens_per_sec_per_gpu=4035.0, system="dgx-gb200"),
        row(release="25.07", task="lora", tokens_per_sec_per_gpu=9999.0),
        *(row(release="25.07", model=f"model-{it}", model_title=str(it)) for it in range(9)),
    ]
    dates: Dates = {("nemo", "25.04"): date(2025, 4, 1), ("nemo", "25.07"): date(2025, 7, 1)}
    first, *others = flagships.of(known, dates)
    assert [("dgx-gb200", 4035.0), ("dgx-h100", 1500.0)] == [
        (it.system, it.tokens_per_sec_per_gpu) for it in first
    ]
    assert MOST - 1 == len(others)


def test_the_landing_page_names_the_newest_release_and_lists_the_newest_first() -> None:
    old = row(release="25.04", case_key="a", workload_key="a")
    new = row(framework="megatron-bridge", release="26.08", case_key="b", workload_key="b")
    shown = soup(str(home.overview(site_data([old, new]))))
    assert "Newest release: Megatron-Bridge 26.08 , August 2026" == words(
        shown.select_one(".perf-lead")
    )
    assert ["Megatron-Bridge 26.08", "NeMo Framework 25.04"] == [
        words(it) for it in shown.select(".perf-card h3")
    ]
    assert ["DGX-H100"] == [words(it) for it in shown.select(".perf-key li")]


def test_systems_are_side_by_side_with_ratio_and_cost() -> None:
    """4,035 ÷ 1,621 is 2.49; 10¹² ÷ 1,621 ÷ 3,600 is 171,362 GPU-hours. LoRA has one system."""
    gb200 = {"system": "dgx-gb200", "system_title": "DGX-GB200", "release": "26.08",
             "framework": "megatron-bridge", "tokens_per_sec_per_gpu": 4035.0}  # fmt: skip
    known = [row(), row(tokens_per_sec_per_gpu=1600.0), row(**gb200), row(task="lora")]
    page = page_named("performance/systems", site_data(known))
    [line] = table(page)
    assert ("1,621", "4,035", "2.49 ×") == (
        line["DGX-H100"], line["DGX-GB200"], line["GB200 ratio"]
    )  # fmt: skip
    assert "171,362" == line["H100 GPU-h/1T"]
    sides = "Megatron-Bridge 26.08, 64 GPUs: DGX-GB200; NeMo Framework 25.04, 64 GPUs: DGX-H100"
    assert sides == words(page.select_one("ol.perf-notes li"))
