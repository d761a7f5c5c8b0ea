"""Comparisons of releases: which are made, what is matched, and what is open about them."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import URL

from perfdb.errors import InputError
from perfdb.record import Figures
from perfdb.site import read
from perfdb.site.build import with_comparisons
from perfdb.site.page import SitePage
from perfdb.site.pages import changes, home
from tests.factories import TEN_STEPS, case, published, release, stored, write_run
from tests.site.samples import result, site_data, soup, table, words

Row = tuple[str, dict[str, object], float]
"""A release of NeMo, the work, and tokens/s/GPU."""


def store_row(store: URL, number: int, version: str, work: dict[str, object], **known: Any) -> None:
    """Store a row of NeMo, of a page of its own."""
    one = published(
        case=case(framework="nemo", **work), release=release(version, framework="nemo"), **known
    )
    stored(store, one, page=f"page-{number}.md")


def pages_of(store: URL, *rows: Row) -> dict[str, SitePage]:
    """The pages of changes of a store of rows, each of a page of its own."""
    for number, (version, work, tokens) in enumerate(rows):
        figures = Figures(tokens_per_sec_per_gpu=tokens)
        store_row(store, number, version, work, figures=figures, raw={})
    return {page.name: page for page in changes.pages(with_comparisons(read.stored(store)))}


def titles(pages: dict[str, SitePage]) -> dict[str, str]:
    return {name: page.title for name, page in pages.items() if name != "changes/index"}


def section(shown: BeautifulSoup, title: str) -> BeautifulSoup:
    """What is below a heading, up to the next one."""
    [heading] = [it for it in shown.find_all("h2") if it.get_text() == title]
    found = itertools.takewhile(lambda it: it.name != "h2", heading.find_next_siblings())
    return soup("".join(map(str, found)))


WIDE: dict[str, object] = {"num_gpus": 16}
CPU: dict[str, object] = {"system": "cpu", "num_gpus": 1}
B200: dict[str, object] = {"system": "dgx-b200"}


def test_each_match_has_both_figures_the_change_and_the_verdict(sqlite: URL) -> None:
    """10,500 ÷ 10,000 is 5 % more; 9,800 ÷ 10,000 is 2 % less. What got slower comes first.

    √(1.05 × 0.98) = 1.0144.

    The bars of the chart have the colors of gains and losses. Figures lead to their rows.
    """
    made = pages_of(
        sqlite,
        ("25.02", {}, 9000), ("25.04", {}, 10_000), ("25.07", {}, 10_500),
        ("25.04", WIDE, 10_000), ("25.07", WIDE, 9800),
        ("25.04", {"model": "llama3-70b"}, 1000), ("25.07", {"model": "mixtral-8x7b"}, 2000),
    )  # fmt: skip
    shown = soup(made["changes/nemo"])
    slower, faster = table(section(shown, "All compared"))
    [before], [after] = (table(section(shown, title)) for title in ("Missing", "New"))
    heads = ("25.04 Tokens/s/GPU", "25.07 Tokens/s/GPU", "Change", "B is")
    assert [[line[head] for head in heads] for line in (slower, faster)] == [
        ["10,000", "9,800", "−2.0%", "slower"],
        ["10,000", "10,500", "+5.0%", "faster"],
    ]
    assert [before["Model"], after["Model"]] == ["Llama 3 70B", "Mixtral 8x7B"]
    assert "2 compared: 1 faster, 1 slower" in words(shown)
    summary = section(shown, "Summary")
    assert "Llama 3 8B · DGX-H100 · BF16 · 16 GPUs: −2.0%" in words(summary.desc)
    [mean] = [line for line in table(summary) if line.get("Verdict") == "All compared"]
    assert ["2", "+1.4%", "−2.0% to +5.0%"] == [mean[it] for it in ("Rows", "Mean", "Range")]
    assert all(f"var(--perf-{color}" in str(shown) for color in ("good", "bad"))
    links = [str(link["href"]) for link in shown.select("a.e")]
    found = [link.partition("#")[0].rpartition("/")[2] for link in links]
    assert found == ["25.07", "25.04", "25.04", "25.07", "25.04", "25.07"]
    assert len(set(links)) == len(links)


def test_what_has_recovered_is_drawn_as_a_gain(sqlite: URL) -> None:
    shown = soup(pages_of(sqlite, ("25.02", {}, 1000), ("25.04", {}, 640), ("25.07", {}, 995))
                 ["changes/nemo"])  # fmt: skip
    [line] = table(section(shown, "All compared"))
    assert line["B is"] == "recovered"
    key = shown.select_one(".perf-key")
    assert key is not None
    assert words(key) == "faster"


def test_the_landing_page_calls_nothing_unchanged_that_cannot_be_told(
    sqlite: URL, tmp_path: Path
) -> None:
    """Single runs of 12 s and 12.2 s are 1.7 % apart, of which two tell nothing below 2.3 %."""
    runs = [
        write_run(tmp_path, run_id=version, release=release(version), step_times=[seconds] * 10)
        for version, seconds in (("0.15.0", 12.0), ("0.16.0", 12.2))
    ]
    stored(sqlite, *runs)
    assert "1 compared: 1 can't tell" in changed(sqlite)
    for number, (version, rate) in enumerate((("25.02", 1000), ("25.04", 640), ("25.07", 995))):
        figures = Figures(tokens_per_sec_per_gpu=rate)
        store_row(sqlite, number, version, {}, figures=figures, raw={})
    assert "△ 1 recovered" in changed(sqlite)


def changed(store: URL) -> str:
    """What the landing page says of changes."""
    shown = soup(str(home.overview(with_comparisons(read.stored(store)))))
    return words(shown.select_one(".perf-strip"))


def test_a_release_that_shares_no_work_is_left_out_with_the_reason(sqlite: URL) -> None:
    pages = pages_of(sqlite, ("25.02", B200, 1), ("25.04", {}, 2), ("25.07", B200, 3))
    assert list(titles(pages).values()) == ["NeMo Framework: 25.02 → 25.07"]
    shown = words(soup(pages["changes/nemo"]))
    assert "25.04 is between them and is left out." in shown
    assert "different systems (DGX-H100 / DGX-B200)" in shown


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [("25.04", {}, 1), ("25.05", CPU, 1), ("25.07", {}, 2), ("25.09", CPU, 3),
             ("25.10", CPU, 4)],
            {"": "25.04 → 25.07", "/25.10": "25.09 → 25.10", "/25.09": "25.05 → 25.09"},
        ),
        (
            [("25.04", {}, 9), ("main", {}, 9), ("25.07", {}, 9)],
            {"": "25.04 → 25.07", "/main": "25.07 → main"},
        ),
    ],
)  # fmt: skip
def test_trials_and_rolling_branches_are_neither_the_newest_nor_a_predecessor(
    rows: list[Row], expected: dict[str, str], sqlite: URL
) -> None:
    assert titles(pages_of(sqlite, *rows)) == {
        f"changes/nemo{name}": f"NeMo Framework: {title}" for name, title in expected.items()
    }


def test_runs_have_an_interval(sqlite: URL, tmp_path: Path) -> None:
    slower = [time * 1.2 for time in TEN_STEPS]
    runs = [
        write_run(tmp_path, run_id=f"{at}-{number}", release=release(at), step_times=times)
        for at, times in (("0.9.1", slower), ("0.16.0", TEN_STEPS))
        for number in range(3)
    ]
    stored(sqlite, *runs)
    shown = soup(pages_of(sqlite)["changes/megatron-core"])
    [line] = table(section(shown, "All compared"))
    assert line["B is"] == "faster"
    assert line["99 % interval of B/A"] != "–"


def test_tflops_that_change_otherwise_than_tokens_are_named(sqlite: URL) -> None:
    """The same work takes the same FLOPs per token: 722 cannot become 72,000 at the same rate."""
    for number, (version, tflops) in enumerate((("25.04", 722), ("25.07", 72_000))):
        figures = Figures(tokens_per_sec_per_gpu=9000, model_tflops_per_sec_per_gpu=tflops)
        printed = {"model_tflops_per_sec_per_gpu": f"{tflops:,}"}
        store_row(sqlite, number, version, {}, figures=figures, printed=printed)
    shown = words(soup(pages_of(sqlite)["changes/nemo"]))
    assert "tokens/s/GPU 9,000 → 9,000, TFLOP/s/GPU 722 → 72,000" in shown


def test_the_list_reports_why_there_is_nothing_to_compare() -> None:
    for releases, why in (
        ([], "The store holds no results"),
        ([None], "no release with a version yet"),
        (["0.16.0"], "Megatron-Core has one release: there is nothing to compare it with."),
        (["main", "dev"], "Megatron-Core has rolling branches only, which have no order"),
    ):
        [index] = changes.pages(site_data(result(release=version) for version in releases))
        assert why in words(soup(index))


def test_no_difference_within_the_rounding_of_samples_per_second_is_spoken_of(sqlite: URL) -> None:
    """At 8,192 tokens on 64 GPUs a sample per second is 128 tokens/s/GPU: 13 to 14 samples are one.

    Llama 3 70B takes 0.45 TFLOP per token, whatever its rate was rounded to. A step of three
    samples, and TFLOP/s of a hundred times as many FLOPs, are spoken of still.
    """
    model = {"model": "llama3-70b", "num_gpus": 64, "sequence_length": 8192}
    sizes = (32, 64, 128, 256, 512, 1024)
    moved = {256: (16, 890), 512: (13, 72_300), 1024: (14, 726)}
    for version in ("25.01", "25.02"):
        rows = []
        for line, batch in enumerate(sizes, start=1):
            samples, tflops = moved.get(batch, (13, 723)) if version == "25.02" else (13, 723)
            rates = {"tokens_per_sec_per_gpu": 128 * samples,
                     "model_tflops_per_sec_per_gpu": tflops}  # fmt: skip
            rows.append(published(
                line=line, release=release(version, framework="nemo"), figures=Figures(**rates),
                case=case(framework="nemo", **model, global_batch_size=batch),
                printed={name: f"{rate:,}" for name, rate in rates.items()},
            ))  # fmt: skip
        stored(sqlite, *rows, page=f"{version}.md")
    shown = soup(pages_of(sqlite)["changes/nemo"])
    assert {"32": "same", "256": "faster", "1024": "can't tell"} == {
        size: line["B is"]
        for line in table(section(shown, "All compared"))
        if (size := line["Work"].rpartition("GBS ")[2].replace(",", "")) in ("32", "256", "1024")
    }
    [named] = section(shown, "All compared").select("p + ul li")
    assert "72,300" in words(named)
    assert ["+23.1%"] == re.findall(
        r"[+−][\d.]+%", words(section(shown, "Summary").select_one("svg desc"))
    )


def test_the_largest_changes_have_their_history_and_what_people_say_of_them(
    sqlite: URL, tmp_path: Path
) -> None:
    """Notes are Markdown without HTML; a history begins with the oldest release."""
    for number, (version, rate) in enumerate((("25.02", 900), ("25.04", 1000), ("25.07", 1050))):
        store_row(sqlite, number, version, {}, figures=Figures(tokens_per_sec_per_gpu=rate), raw={})
    [key] = {it.case_key for it in read.stored(sqlite).results}
    (tmp_path / "nemo").mkdir()
    notes = tmp_path / "nemo" / "25.07.md"
    notes.write_text(f"The **front**.\n\n## Faster\n\nOf all.\n\n### {key[:8]} 8B\n\nA <b>row</b>.")
    found = with_comparisons(read.stored(sqlite), tmp_path)
    page = next(it for it in changes.pages(found) if it.name == "changes/nemo")
    shown = section(soup(page), "Faster")
    assert "The <strong>front</strong>." in str(soup(page))
    assert "A &lt;b&gt;row&lt;/b&gt;." in str(shown)
    assert "Tokens/s/GPU by release: 25.02, 25.04, 25.07. 900, 1,000, 1,050." in words(shown.desc)
    notes.write_text("## Nothing")
    with pytest.raises(InputError, match=r"25.07.md:1: the report has no section 'Nothing'"):
        with_comparisons(read.stored(sqlite), tmp_path)
