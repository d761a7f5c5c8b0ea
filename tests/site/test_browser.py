"""The site in a real browser: tabs, sorting, narrow screens, and what it asks of the network."""

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.site.conftest import Site

CHROMIUM = Path("/usr/bin/chromium")
PAGES = (
    "index.html",
    "performance/index.html",
    "performance/megatron-core/0.16.0.html",
    "performance/dfm/main.html",
    "performance/nemo/25.04.html",
    "performance/audit.html",
    "runs/index.html",
    "runs/dgx-h100-bf16-0.16.0-0.html",
    "runs/out-of-memory.html",
    "method.html",
    "glossary.html",
    "reference/models.html",
    "reference/schema.html",
    "reference/cli.html",
    "how-to/index.html",
)
RELEASE = "performance/megatron-core/0.16.0.html"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium on this machine"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    """Where the built site is served."""
    handler = partial(Quiet, directory=str(site.html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


def chosen(page: Page) -> list[str]:
    """The label of the chosen tab of each set of tabs."""
    return page.locator("input:checked + label.sd-tab-label").all_inner_texts()


def column(page: Page, title: str) -> list[str]:
    """The cells of a column of the first table that can be seen."""
    heads = page.locator("table.perf:visible").first.locator("thead th")
    place = heads.all_inner_texts().index(title) + 1
    rows = page.locator("table.perf:visible").first.locator(f"tbody tr > :nth-child({place})")
    return [text.strip() for text in rows.all_inner_texts()]


def test_a_tab_chooses_its_system_in_every_set_of_tabs(page: Page, address: str) -> None:
    page.goto(address + RELEASE)
    assert ["DGX-H100", "DGX-H100", "DGX-H100"] == chosen(page)
    page.locator("label.sd-tab-label", has_text="DGX-B200").first.click()
    assert ["DGX-B200", "DGX-H100", "DGX-B200"] == chosen(page), "the middle one has no B200"


def test_the_address_chooses_a_system(page: Page, address: str) -> None:
    page.goto(address + RELEASE + "?system=dgx-b200")
    assert "DGX-B200" == chosen(page)[0]


def test_a_click_on_a_head_sorts_numbers_with_separators_and_another_turns_it(
    page: Page, address: str
) -> None:
    page.goto(address + "performance/megatron-core/0.16.0.html?system=dgx-b200")
    head = page.locator("table.perf:visible thead th", has_text="Tokens/s/GPU").first
    page.locator("table.perf:visible").get_by_role("button", name="Tokens/s/GPU").first.click()
    rising = [float(text.replace(",", "")) for text in column(page, "Tokens/s/GPU")]
    assert sorted(rising) == rising
    assert "ascending" == head.get_attribute("aria-sort")
    head.get_by_role("button").click()
    falling = [float(text.replace(",", "")) for text in column(page, "Tokens/s/GPU")]
    assert rising[::-1] == falling
    assert "descending" == head.get_attribute("aria-sort")


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
    assert ["WAN 2.1 14B"] * 3 == page.locator("table.perf:visible tbody th").all_inner_texts()
    assert 0 == page.locator("table.perf button").count()
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_asks_another_host_or_complains_or_is_wider_than_a_phone(
    browser: Browser, address: str, theme: str
) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844},
        color_scheme="dark" if theme == "dark" else "light",
    )
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None,
    )
    wide = []
    for name in PAGES:
        page.goto(address + name)
        if page.evaluate("document.documentElement.scrollWidth") > 390:
            wide.append(name)
    context.close()
    assert [] == wide
    assert [] == complaints
    assert set() == {url for url in asked if not url.startswith((address, "data:"))}


def test_head_and_model_stay_in_sight_while_a_table_scrolls(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 600})
    page = context.new_page()
    page.goto(address + "runs/index.html")
    page.locator(".perf-wrap").evaluate("box => { box.scrollLeft = 300; box.scrollTop = 200 }")
    box = page.locator(".perf-wrap").bounding_box()
    corner = page.locator("table.perf thead th").first.bounding_box()
    assert box is not None
    assert corner is not None
    assert abs(corner["x"] - box["x"]) <= 2
    assert abs(corner["y"] - box["y"]) <= 2
    context.close()
