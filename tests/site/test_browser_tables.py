"""Tables in a real browser: sorted, filtered, copied, downloaded, linked to, on any screen."""

import csv
import io

import pytest
from playwright.sync_api import Browser, Page

from tests.site.conftest import CHROMIUM, EVIL, RELEASE, chosen

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium on this machine"),
]


def column(page: Page, title: str) -> list[str]:
    """The cells of a column of the first table that can be seen."""
    heads = page.locator("table.perf:visible").first.locator("thead th")
    place = heads.all_inner_texts().index(title) + 1
    rows = page.locator("table.perf:visible").first.locator(f"tbody tr > :nth-child({place})")
    return [text.strip() for text in rows.all_inner_texts()]


def known(texts: list[str]) -> list[float]:
    """The numbers of a column, with or without separators."""
    return [float(text.replace(",", "")) for text in texts if text != "–"]


def test_a_click_on_a_rate_sorts_the_fastest_up_and_another_turns_it(
    page: Page, address: str
) -> None:
    page.goto(address + "runs/index.html")
    button = page.get_by_role("button", name="Tokens/s/GPU")
    button.click()
    falling = known(column(page, "Tokens/s/GPU"))
    assert sorted(falling, reverse=True) == falling
    assert len(set(falling)) > 1
    button.click()
    assert falling[::-1] == known(column(page, "Tokens/s/GPU"))


def test_a_click_on_a_time_sorts_the_fastest_up_too(page: Page, address: str) -> None:
    page.goto(address + "runs/index.html")
    page.get_by_role("button", name="Step time (s)").click()
    seconds = known(column(page, "Step time (s)"))
    assert sorted(seconds) == seconds
    assert len(set(seconds)) > 1


def test_what_is_unknown_is_sorted_last_either_way(page: Page, address: str) -> None:
    page.goto(address + "runs/index.html")
    button = page.get_by_role("button", name="MFU")
    for _ in range(2):
        button.click()
        assert "–" == column(page, "MFU")[-1]
        assert "–" != column(page, "MFU")[0]


def test_tables_are_whole_without_scripts(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + "performance/dfm/main.html")
    names = page.locator("table.perf:visible tbody th > a:not(.perf-link)")
    assert ["WAN 2.1 14B"] * 3 == names.all_inner_texts()
    assert 0 == page.locator("table.perf button, .perf-tools").count()
    assert 3 <= page.locator(".perf-downloads a:visible").count()
    context.close()


def test_a_table_scrolls_sideways_on_a_phone_without_its_names(
    browser: Browser, address: str
) -> None:
    """The page is not moved, and a finger going down the page is not caught by the table."""
    context = browser.new_context(viewport={"width": 390, "height": 600}, has_touch=True)
    page = context.new_page()
    page.goto(address + "runs/index.html")
    wrap = page.locator(".perf-wrap")
    wrap.evaluate("box => { box.scrollLeft = 300; box.scrollTop = 200 }")
    box, corner = wrap.bounding_box(), page.locator("table.perf thead th").first.bounding_box()
    assert box is not None
    assert corner is not None
    assert abs(corner["x"] - box["x"]) <= 2
    assert (300, 0) == (
        wrap.evaluate("box => box.scrollLeft"),
        wrap.evaluate("box => box.scrollTop"),
    )
    assert 0 == page.evaluate("window.scrollX")
    context.close()


@pytest.mark.parametrize(("width", "place"), [(390, 1), (1440, 12)])
def test_on_a_phone_the_rates_are_in_sight_beside_the_model(
    page: Page, address: str, width: int, place: int
) -> None:
    """On a wide screen they stand where the page has them, behind the layout."""
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(address + "performance/nemo/25.04.html")
    table = page.locator("table.perf:visible").first
    titles = [" ".join(text.split()) for text in table.locator("thead th").all_inner_texts()]
    assert place == titles.index("Tokens / sec / GPU")
    rate = table.locator("tbody tr").first.locator(f":scope > :nth-child({place + 1})")
    box = rate.bounding_box()
    assert "12,273" == rate.inner_text()
    assert box is not None
    assert box["x"] + box["width"] <= width


def test_the_head_stays_in_sight_while_the_page_scrolls(page: Page, address: str) -> None:
    """A table that fits is no box of its own: its head stops below the bar of the page."""
    page.goto(address + "reference/data.html")
    page.locator(".perf-wrap.fits").wait_for()
    page.locator("table.perf tbody tr").nth(30).scroll_into_view_if_needed()
    bar = page.locator(".bd-header").bounding_box()
    head = page.locator("table.perf thead th").first.bounding_box()
    assert bar is not None
    assert head is not None
    assert abs(head["y"] - bar["height"]) <= 2


def names(page: Page) -> list[str]:
    """What the rows of the first table that can be seen are called."""
    rows = page.locator("table.perf:visible").first.locator("tbody tr:visible > th")
    return [text.strip() for text in rows.all_inner_texts()]


def test_a_filter_shows_the_rows_that_hold_every_word_and_says_how_many(
    page: Page, address: str
) -> None:
    page.goto(address + "runs/index.html")
    every = names(page)
    page.get_by_role("searchbox").fill("b200 FP8")
    shown = names(page)
    assert 0 < len(shown) < len(every)
    assert {True} == {"dgx-b200-fp8" in name for name in shown}
    status = page.get_by_role("status").first
    assert f"{len(shown)} of {len(every)} rows" == status.inner_text()
    assert "begins a word" in str(page.get_by_role("searchbox").get_attribute("title"))
    page.get_by_role("searchbox").fill("200 p8")
    assert [] == names(page), "neither begins a word of a name such as dgx-b200-fp8"
    page.get_by_role("searchbox").press("ControlOrMeta+a")
    page.get_by_role("searchbox").press("Delete")
    assert every == names(page)


def copied(page: Page, name: str) -> str:
    """What a button copies."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".perf-tools:visible").first.get_by_role("button", name=name).click()
    page.get_by_text("rows, copied").first.wait_for()
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_a_table_is_copied_as_csv_with_the_rows_and_numbers_it_shows(
    page: Page, address: str
) -> None:
    page.goto(address + RELEASE + "?system=dgx-b200")
    rows = list(csv.DictReader(io.StringIO(copied(page, "Copy CSV"))))
    assert ["Llama 3 8B"] * len(rows) == [row["Model"] for row in rows]
    assert column(page, "Tokens/s/GPU") == [row["Tokens/s/GPU"] for row in rows]
    assert column(page, "Step time (s)") == [row["Step time (s)"] for row in rows]
    assert {("measured", "few_steps (info)")} == {(row["Origin"], row["Findings"]) for row in rows}
    assert {True} == {row["Source"].endswith("/steps.jsonl") for row in rows}


def test_what_the_audit_found_and_the_source_are_copied_into_columns_of_their_own(
    page: Page, address: str
) -> None:
    """The marks and links beside a row are no part of its origin."""
    page.goto(address + "performance/dfm/main.html?system=dgx-gb300")
    page.locator("table.perf tbody tr").evaluate_all(
        "rows => rows.forEach(row => { row.dataset.findings = 'tiny-batch (error)' })"
    )
    row, *_ = csv.DictReader(io.StringIO(copied(page, "Copy CSV")))
    source, _, line = row["Source"].rpartition(":")
    assert ("published", "tiny-batch (error)") == (row["Origin"], row["Findings"])
    assert "dfm.md" == source
    assert line.isdecimal()


def test_copies_hold_texts_of_the_store_as_texts(page: Page, address: str) -> None:
    """What would be markup is escaped in Markdown, what would be a formula has an apostrophe."""
    page.goto(address + "runs/index.html")
    page.locator("tbody tr > :nth-child(3)").evaluate_all(
        "cells => { cells[0].textContent = '=1+1'; cells[1].textContent = '-5.2%' }"
    )
    pasted = copied(page, "Copy Markdown")
    assert "<script>" not in pasted
    assert "\\<script\\>alert(1)\\<" in pasted
    assert {pasted.splitlines()[0].count("|")} == {
        line.replace("\\|", "").count("|") for line in pasted.splitlines()
    }
    rows = list(csv.reader(io.StringIO(copied(page, "Copy CSV"))))
    assert ["'=1+1", "-5.2%"] == [row[2] for row in rows[1:3]]
    assert EVIL.replace("/", "") in {row[0] for row in rows}


def test_a_table_is_downloaded_as_it_stands_in_the_store(page: Page, address: str) -> None:
    page.goto(address + "performance/dfm/main.html?system=dgx-gb300")
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV", exact=True).locator("visible=true").first.click()
    assert "dfm-main-pretrain-megatron-core-wan2.1-14b-dgx-gb300.csv" == (
        started.value.suggested_filename
    )
    [row] = csv.DictReader(io.StringIO(started.value.path().read_text()))
    assert ("1022.26", "32", "dgx-gb300") == (
        row["model_tflops_per_sec_per_gpu"],
        row["num_gpus"],
        row["system"],
    )


def test_a_link_to_a_row_opens_its_tab_everywhere_and_marks_it(page: Page, address: str) -> None:
    page.goto(address + RELEASE)
    [row] = page.locator("table.perf tbody tr[id]").evaluate_all(
        """rows => rows.filter(row => !row.offsetParent && row.textContent.includes("BF16"))
                       .slice(0, 1).map(row => row.id)"""
    )
    page.goto(address + RELEASE + f"#{row}")
    page.reload()
    page.locator(f"#{row}").wait_for(state="visible")
    assert chosen(page)[0] == chosen(page)[2] == "DGX-B200"
    assert page.locator(f"#{row}").evaluate("row => row.matches(':target')")
    box = page.locator(f"#{row}").bounding_box()
    assert box is not None
    assert 0 < box["y"] < 900
