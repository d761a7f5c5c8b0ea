"""What a visitor is told first: flagship models, what changed, and no CPU test beside them."""

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from perfdb.errors import ConfigError, InputError
from perfdb.site import settings
from perfdb.site.data import Rejection
from perfdb.site.pages import cpu_tests, flagships, home
from perfdb.site.pages.flagships import MOST, Dates
from tests.site.samples import WRONG, page_named, result, row, site_data, soup, table, words

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


def test_the_bars_of_a_flagship_are_of_one_precision() -> None:
    """BF16 of a newer framework is no measure of FP8: GB200 is 2.49 × H100, not 4.7 ×."""
    other = {"framework": "automodel", "release": "26.04", "precision": "bf16"}
    known = [
        row(release="25.04", precision="fp8", tokens_per_sec_per_gpu=1621.0),
        row(release="25.04", precision="fp8", tokens_per_sec_per_gpu=4035.0, system="dgx-gb200"),
        row(**other, tokens_per_sec_per_gpu=866.77),
    ]
    dates: Dates = {("nemo", "25.04"): date(2025, 4, 1), ("automodel", "26.04"): date(2026, 4, 1)}
    assert [[4035.0, 1621.0]] == [
        [it.tokens_per_sec_per_gpu for it in some] for some in flagships.of(known, dates)
    ]


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


def test_where_an_error_leaves_an_older_figure_the_page_says_so() -> None:
    """Of 25.07's only row on each system; it is faster by far."""
    wrong = {"release": "25.07", "tokens_per_sec_per_gpu": 99999.0, "flag": WRONG}
    gb200 = {"system": "dgx-gb200", "system_title": "DGX-GB200"}
    other = row(framework="megatron-bridge", release="26.08")
    data = site_data([row(), row(**wrong), row(**gb200), row(**gb200 | wrong), other])
    compared = page_named("performance/systems", data)
    notes = [words(it) for it in (compared.p, compared.select(".perf-note")[-1])]
    shown = soup(str(home.overview(data)))
    notes += [words(it) for it in shown.select(".perf-hero + .perf-note")]
    assert 3 == len(notes)
    assert all("ows with open errors are left out" in it for it in notes), notes
    assert not {"99,999"} & set(words(compared).split() + words(shown).split())


def test_costs_are_those_of_stated_prices_and_no_others() -> None:
    """4 $ ÷ (1,621 × 3,600) × 10⁶ is 0.685 $; of a system without a price it is not known."""
    known = [row(), row(system="dgx-gb200", system_title="DGX-GB200")]
    data = replace(site_data(known), prices={"dgx-h100": 4.0})
    [line] = table(page_named("performance/systems", data))
    assert ("0.685", "–") == (line["H100 $/1M"], line["GB200 $/1M"])
    assert "H100 GPU-h/1T" not in line


def test_the_same_work_in_two_frameworks_is_side_by_side_with_both_releases() -> None:
    """1,806 ÷ 1,621 is 1.11. FP8 of NeMo is of the same family as FP8-CS of Megatron-Bridge."""
    new = row(framework="megatron-bridge", release="26.08", precision="fp8_cs",
              tokens_per_sec_per_gpu=1806.0)  # fmt: skip
    page = page_named("performance/systems", site_data([row(precision="fp8"), new]))
    [line] = page.select("table.perf tbody tr")
    cells = [words(it) for it in line.select("td")]
    assert ["NeMo Framework 25.04", "FP8", "64", "1,621"] == cells[2:6]
    assert ["Megatron-Bridge 26.08", "FP8-CS", "64", "1,806", "1.11 ×"] == cells[6:]


def test_the_public_profile_has_no_unattributed_results_rejections_or_counts_of_findings() -> None:
    rejected = Rejection(at=datetime(2026, 1, 2, tzinfo=UTC), path="x.md", line=1, reason="no")
    loose = row(release=None, case_key="loose")
    data = replace(site_data([row(), loose]), rejections=(rejected,))
    for profile, count in (("internal", 2), ("public", 1)):
        shown = settings.of_profile(data, profile)
        text = words(soup(str(home.overview(shown))))
        assert count == len(shown.results) == len(shown.current)
        assert ("without a stated release" in text) == (profile == "internal")
        assert (profile == "internal") == bool(shown.rejections)
        heads = [words(it) for it in page_named("performance/index", shown).select("th[scope=col]")]
        assert ("Open findings" in heads) == (profile == "internal")
    with pytest.raises(InputError, match="there is no 'publik'; did you mean public"):
        settings.of_profile(data, "publik")


@pytest.mark.parametrize(
    ("text", "message"),
    [("dgx-gb20 = 4", "did you mean dgx-gb200"), ("dgx-h100 = 0", "write US dollars per GPU-hour")],
)
def test_a_price_of_no_system_or_no_price_is_an_error_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("perfdb.toml").write_text(f"[prices]\n{text}\n")
    with pytest.raises(ConfigError, match=rf"perfdb\.toml:2: .*{message}"):
        settings.prices()
