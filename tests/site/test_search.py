"""The search of the site in a browser."""

import pytest
from playwright.sync_api import Page

from tests.site.conftest import CHROMIUM

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium on this machine"),
]


def test_what_is_typed_leads_to_its_page_first(page: Page, address: str) -> None:
    for typed, found in {
        "0.16.0": "performance/megatron-core/0.16.0.html",
        "megatron-core 0.16.0": "performance/megatron-core/0.16.0.html",
        "dfm main": "performance/dfm/main.html",
        "llama": "models/llama3-8b.html",
        "b200": "systems/dgx-b200.html",
        "scaling": "scaling/index.html",
        "CSV": "reference/data.html",
    }.items():
        page.goto(f"{address}search.html?q={typed}")
        page.locator("ul.search li a").first.click()
        page.wait_for_url(f"**/{found}*")


def test_the_search_says_that_figures_are_not_searched(page: Page, address: str) -> None:
    page.goto(f"{address}search.html?q=866.77")
    page.get_by_text("figures are not").wait_for()
    page.get_by_role("link", name="all data can be downloaded").click()
    page.wait_for_url("**/reference/data.html")


def test_results_come_before_what_is_written_about_them(page: Page, address: str) -> None:
    """The name of a model is on pages of every kind, with the same points from Sphinx."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}search.html?q=llama")
    page.get_by_text("Search finished").wait_for()
    links = page.locator("ul.search > li > a").evaluate_all(
        "all => all.map(one => one.getAttribute('href'))"
    )
    kinds = ("models", "performance/nemo", "how-to", "sources")
    places = [next(at for at, link in enumerate(links) if link.startswith(it)) for it in kinds]
    assert sorted(places) == places
    page.locator(".context").nth(10).wait_for()
    assert 390 == page.evaluate("document.documentElement.scrollWidth"), "no wider than a phone"
