"""Comparisons of releases: which are made, what is matched, and what is open about them."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import URL

from perfdb.record import Figures
from perfdb.site import data
from perfdb.site.build import with_comparisons
from perfdb.site.page import Page
from perfdb.site.pages import changes
from tests.factories import TEN_STEPS, case, published, release, stored, write_run
from tests.site.samples import result, site_data, soup, table, words

Row = tuple[str, dict[str, object], float]
"""A release of NeMo, the work, and tokens/s/GPU."""


def pages_of(store: URL, *rows: Row) -> dict[str, Page]:
    """The pages of changes of a store of rows, each of a page of its own."""
    for number, (version, work, tokens) in enumerate(rows):
        one = published(
            case=case(framework="nemo", **work),
            release=release(version, framework="nemo"),
            figures=Figures(tokens_per_sec_per_gpu=tokens),
            raw={},
        )
        stored(store, one, page=f"page-{number}.md")
    return {page.name: page for page in changes.pages(with_comparisons(data.stored(store)))}


def titles(pages: dict[str, Page]) -> dict[str, str]:
    return {name: page.title for name, page in pages.items() if name != "changes/index"}


WIDE: dict[str, object] = {"num_gpus": 16}
CPU: dict[str, object] = {"system": "cpu", "num_gpus": 1}
B200: dict[str, object] = {"system": "dgx-b200"}


@pytest.fixture
def compared(sqlite: URL) -> dict[str, BeautifulSoup]:
    """The pages of NeMo 25.02, 25.04 and 25.07."""
    made = pages_of(
        sqlite,
        ("25.02", {}, 9000), ("25.04", {}, 10_000), ("25.07", {}, 10_500),
        ("25.04", WIDE, 10_000), ("25.07", WIDE, 9800),
        ("25.04", {"model": "llama3-70b"}, 1000), ("25.07", {"model": "mixtral-8x7b"}, 2000),
    )  # fmt: skip
    return {name: soup(page) for name, page in made.items()}


def test_each_match_has_both_figures_the_change_and_the_verdict(
    compared: dict[str, BeautifulSoup],
) -> None:
    """10,500 ÷ 10,000 is 5 % more; 9,800 ÷ 10,000 is 2 % less. What got slower comes first."""
    slower, faster, before, after = table(compared["changes/nemo"])
    heads = ("25.04 Tokens/s/GPU", "25.07 Tokens/s/GPU", "Change", "B is")
    assert [[line[head] for head in heads] for line in (slower, faster)] == [
        ["10,000", "9,800", "−2.0%", "slower"],
        ["10,000", "10,500", "+5.0%", "faster"],
    ]
    assert [before["Model"], after["Model"]] == ["Llama 3 70B", "Mixtral 8x7B"]
    assert "2 compared: 1 faster, 1 slower" in words(compared["changes/nemo"])


def test_figures_lead_to_their_rows_on_the_pages_of_both_releases(
    compared: dict[str, BeautifulSoup],
) -> None:
    links = [str(link["href"]) for link in compared["changes/nemo"].select("a.e")]
    found = [link.partition("#")[0].rpartition("/")[2] for link in links]
    assert found == ["25.04", "25.07", "25.04", "25.07", "25.04", "25.07"]
    assert len(set(links)) == len(links)


def test_the_chart_has_the_changes_and_the_colors_of_gains_and_losses(
    compared: dict[str, BeautifulSoup],
) -> None:
    shown = compared["changes/nemo"]
    assert "Llama 3 8B · DGX-H100 · BF16 · 16 GPUs: −2.0%" in words(shown.desc)
    assert "var(--perf-good" in str(shown)
    assert "var(--perf-bad" in str(shown)


def test_a_release_that_shares_no_work_is_left_out_with_the_reason(sqlite: URL) -> None:
    pages = pages_of(sqlite, ("25.02", B200, 1), ("25.04", {}, 2), ("25.07", B200, 3))
    assert list(titles(pages).values()) == ["NeMo Framework: 25.02 → 25.07"]
    shown = words(soup(pages["changes/nemo"]))
    assert "25.04 stands between them and is left out." in shown
    assert "different systems (DGX-H100 / DGX-B200)" in shown


def test_a_trial_without_a_gpu_is_neither_the_newest_nor_a_predecessor(sqlite: URL) -> None:
    pages = pages_of(
        sqlite, ("25.04", {}, 1), ("25.05", CPU, 1), ("25.07", {}, 2), ("25.09", CPU, 3),
        ("25.10", CPU, 4),
    )  # fmt: skip
    assert titles(pages) == {
        "changes/nemo": "NeMo Framework: 25.04 → 25.07",
        "changes/nemo/25.10": "NeMo Framework: 25.09 → 25.10",
        "changes/nemo/25.09": "NeMo Framework: 25.05 → 25.09",
    }


def test_a_rolling_branch_is_compared_with_the_newest_release(sqlite: URL) -> None:
    pages = pages_of(sqlite, *((version, {}, 9) for version in ("25.04", "main", "25.07")))
    assert titles(pages) == {
        "changes/nemo": "NeMo Framework: 25.04 → 25.07",
        "changes/nemo/main": "NeMo Framework: 25.07 → main",
    }


def test_runs_have_an_interval(sqlite: URL, tmp_path: Path) -> None:
    slower = [time * 1.2 for time in TEN_STEPS]
    for version, times in (("0.9.1", slower), ("0.16.0", TEN_STEPS)):
        for number in range(3):
            stored(sqlite, write_run(tmp_path, run_id=f"{version}-{number}",
                                     release=release(version), step_times=times))  # fmt: skip
    [line] = table(soup(pages_of(sqlite)["changes/megatron-core"]))
    assert line["B is"] == "faster"
    assert line["95 % interval of B/A"] != "–"


def test_tflops_that_change_otherwise_than_tokens_are_named(sqlite: URL) -> None:
    """The same work takes the same FLOPs per token: 722 cannot become 72,000 at the same rate."""
    for version, tflops in (("25.04", 722), ("25.07", 72_000)):
        figures = Figures(tokens_per_sec_per_gpu=9000, model_tflops_per_sec_per_gpu=tflops)
        one = published(
            case=case(framework="nemo"),
            release=release(version, framework="nemo"),
            figures=figures,
            printed={"model_tflops_per_sec_per_gpu": f"{tflops:,}"},
        )
        stored(sqlite, one, page=f"{version}.md")
    shown = words(soup(pages_of(sqlite)["changes/nemo"]))
    assert "tokens/s/GPU 9,000 → 9,000, TFLOP/s/GPU 722 → 72,000" in shown


@pytest.mark.parametrize(
    ("releases", "why"),
    [
        ([], "The store holds no results"),
        ([None], "no release with a version yet"),
        (["0.16.0"], "Megatron-Core has one release: there is nothing to compare it with."),
        (["main", "dev"], "Megatron-Core has rolling branches only, which have no order"),
    ],
)
def test_the_list_reports_why_there_is_nothing_to_compare(
    releases: list[str | None], why: str
) -> None:
    [index] = changes.pages(site_data(result(release=version) for version in releases))
    assert why in words(soup(index))
