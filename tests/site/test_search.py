"""The search of the site finds releases by their version, also after a build of a few pages."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from perfdb.db.session import store_url
from tests.factories import published, release, stored, write_run
from tests.site.conftest import CHROMIUM
from tests.site.test_rebuild import Project, settle

# Sphinx and its extensions warn each other of what the next Sphinx will not have.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"
)


def known(html: Path) -> dict[str, Any]:
    """What the search knows."""
    text = (html / "searchindex.js").read_text()
    return json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))


def pages_of(word: str, html: Path) -> list[str]:
    """The pages that have a word in their text."""
    said = known(html)
    found = said["terms"].get(word, [])
    return [said["docnames"][page] for page in (found if isinstance(found, list) else [found])]


def entries(html: Path) -> dict[str, list[str]]:
    """The entries of the index that the search knows, and the pages that each leads to."""
    said = known(html)
    return {
        entry: [said["docnames"][page] for page, _, is_main in found if is_main]
        for entry, found in said["indexentries"].items()
    }


def test_the_index_leads_to_each_release_after_every_build(tmp_path: Path) -> None:
    """By its version, by its framework too, and by the title of a model that it calls otherwise.

    Search takes a part of a word, of llama3, only where no page has the whole word.
    """
    project = Project(tmp_path)
    url = store_url(str(project.store))
    stored(url, write_run(tmp_path, run_id="one"))
    project.built()
    first = ["performance/megatron-core/0.16.0"]
    assert {"0.16.0": first, "megatron-core 0.16.0": first} == entries(project.html)

    raw = {"Model": "LLAMA3-8B"}
    stored(url, published(release=release("25.07", framework="nemo"), raw=raw))
    project.built()
    second = ["performance/nemo/25.07"]
    both = {"0.16.0": first, "megatron-core 0.16.0": first} | {
        "25.07": second, "nemo 25.07": second,
    }  # fmt: skip
    assert both == entries(project.html)
    assert "Llama 3 8B" not in (project.html / f"{second[0]}.html").read_text()

    settle(project.store)
    for _ in range(2):
        project.built()
        assert both == entries(project.html)
        assert second[0] in pages_of("llama", project.html)


def test_a_release_without_a_version_has_no_entry(tmp_path: Path) -> None:
    project = Project(tmp_path)
    stored(store_url(str(project.store)), published(release=release(None, framework="nemo")))
    project.built()
    assert {} == entries(project.html)


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium on this machine")
@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("0.16.0", "performance/megatron-core/0.16.0.html"),
        ("megatron-core 0.16.0", "performance/megatron-core/0.16.0.html"),
        ("0.9.1", "performance/megatron-core/0.9.1.html"),
        ("nemo 25.04", "performance/nemo/25.04.html"),
        ("dfm main", "performance/dfm/main.html"),
        ("llama", "models/llama3-8b.html"),
        ("b200", "systems/dgx-b200.html"),
        ("scaling", "scaling/index.html"),
        ("audit", "performance/audit.html"),
        ("download", "reference/data.html"),
        ("CSV", "reference/data.html"),
        ("cost", "reference/data.html"),
    ],
)
def test_what_is_typed_leads_to_its_page_first(
    page: Page, address: str, typed: str, found: str
) -> None:
    page.goto(f"{address}search.html?q={typed}")
    page.locator("ul.search li a").first.click()
    page.wait_for_url(f"**/{found}*")


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium on this machine")
def test_the_search_says_that_figures_are_not_searched(page: Page, address: str) -> None:
    page.goto(f"{address}search.html?q=866.77")
    page.get_by_text("figures are not").wait_for()
    page.get_by_role("link", name="all data can be downloaded").click()
    page.wait_for_url("**/reference/data.html")


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium on this machine")
def test_results_come_before_what_is_said_of_them(page: Page, address: str) -> None:
    """The name of a model stands on pages of every kind, with the same points from Sphinx."""
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
