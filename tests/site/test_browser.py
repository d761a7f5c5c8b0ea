"""The site in a real browser: tabs, narrow screens, and what it asks of the network."""

import hashlib
from collections.abc import Sequence
from typing import Literal, TypeAlias

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from perfdb.site.addresses import of_source
from tests.site.conftest import CHROMIUM, DFM, RANKED, RELEASE, chosen

PAGES = (
    "index.html", "performance/index.html", "models/index.html",
    "models/llama3-8b.html", "systems/index.html", "systems/dgx-h100.html", "scaling/index.html",
    "changes/index.html", "changes/megatron-core.html", "recipes/index.html",
    "recipes/llama3-8b.html", "reference/data.html", "performance/megatron-core/0.16.0.html",
    "performance/dfm/main.html", "performance/nemo/25.04.html", "performance/audit.html",
    "performance/coverage.html", "performance/coverage/dfm/main.html",
    "performance/cpu-tests.html", "performance/systems.html",
    "recipes/dfm-wan2.1-14b-pretrain-automodel.html",
    "performance/audit/megatron-core/0.16.0.html", "performance/changelog.html",
    "scaling/dfm/main/dgx-h100.html",
    f"{of_source(hashlib.sha256(DFM.read_bytes()).hexdigest())}.html", "runs/index.html", RANKED,
    "runs/out-of-memory.html", "method.html", "glossary.html", "reference/models.html",
    "reference/schema.html", "reference/cli.html", "how-to/index.html",
)  # fmt: skip
"""One of each kind."""

AT_ONCE = "* { transition: none !important; animation: none !important; }"
"""Colors that are on their way from one theme to the other are those of neither."""

Theme: TypeAlias = Literal["light", "dark"]
ON_ANY_SCREEN = ("color-contrast", "link-in-text-block", "scrollable-region-focusable")
"""The rules of axe on colors and room. The others judge what is there: a phone shows less of it,
and has the same header on each page."""

OPENED = "document.querySelectorAll('.perf-drawer').forEach(it => { it.open = true })"

ALIKE = """document.querySelectorAll("tbody").forEach(body => {
  const seen = new Set(), parts = row => [row, ...row.querySelectorAll("*")];
  const kind = it => [it.localName, it.className, it.role, it.title !== "", it.textContent !== ""];
  for (const row of [...body.rows]) {
    const kinds = parts(row).map(kind).join();
    if (seen.has(kinds)) row.remove();
    seen.add(kinds);
  }
})"""
"""Leaves one of all rows of a table that are made of the same elements."""

COVERED = """[...document.querySelectorAll(".perf-wrap")]
    .filter(box => box.querySelector("th").offsetWidth > 0.6 * box.clientWidth)
    .filter(box => box.scrollWidth > box.clientWidth).map(box => box.ariaLabel)"""
"""The tables whose names cover what scrolls below them."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium on this machine"),
]


def test_a_tab_and_the_address_choose_a_system_in_every_set_of_tabs(
    page: Page, address: str
) -> None:
    page.goto(address + RELEASE + "#pre-training")
    assert ["DGX-B200", "DGX-H100", "DGX-B200"] == chosen(page), "the middle one has no B200"
    page.locator("label.sd-tab-label", has_text="DGX-H100").first.click()
    assert ["DGX-H100", "DGX-H100", "DGX-H100"] == chosen(page)
    assert address + RELEASE + "?system=dgx-h100" == page.url.rstrip("#")
    page.reload()
    assert "DGX-H100" == chosen(page)[0]
    page.locator("input:checked").first.focus()
    page.keyboard.press("ArrowLeft")
    assert "?system=dgx-b200" in page.url


def test_every_figure_leads_to_its_evidence_by_the_keyboard(page: Page, address: str) -> None:
    page.goto(address + RELEASE)
    figure = page.locator("table.perf:visible a.e").first
    value = figure.inner_text()
    figure.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*#figures")
    assert value in page.locator("section#figures table.perf").inner_text()
    drawer = page.locator("details.perf-drawer")
    assert not drawer.locator("pre").first.is_visible()
    drawer.locator("summary").focus()
    page.keyboard.press("Enter")
    assert drawer.locator("pre").first.inner_text().startswith("perfdb reproduce dgx-b200-")
    assert drawer.locator("button.copybtn").count() == drawer.locator("pre").count()


def test_every_page_is_accessible_fits_a_phone_and_asks_no_other_host(
    browser: Browser, address: str
) -> None:
    """By every rule of axe in the light on a wide screen, and in the dark on a phone by some."""
    context = browser.new_context(viewport={"width": 390, "height": 900})
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda one: (
            complaints.append(f"{one.text} {one.location}")
            if one.type in ("error", "warning")
            else None
        ),
    )
    wide, covered, faults = [], [], []
    for name in PAGES:
        shown(page, 390, "dark")
        page.goto(address + name)
        page.evaluate(OPENED)
        if page.evaluate("document.documentElement.scrollWidth") > 390:
            wide.append(name)
        covered += [f"{name}: {label}" for label in page.evaluate(COVERED)]
        page.add_style_tag(content=AT_ONCE)
        page.evaluate(ALIKE)
        page.evaluate(Axe().axe_script)
        page.wait_for_selector("html[data-theme=dark]", state="attached")
        rules = {} if name == PAGES[0] else {"runOnly": ON_ANY_SCREEN}
        faults += [(name, "dark", *fault) for fault in grave_faults(page, rules)]
        shown(page, 1440, "light")
        page.wait_for_selector("html[data-theme=light]", state="attached")
        faults += [(name, "light", *fault) for fault in grave_faults(page, {})]
    context.close()
    assert ([], [], []) == (wide, covered, complaints)
    assert set() == {url for url in asked if not url.startswith((address, "data:"))}
    assert [] == faults


def shown(page: Page, width: int, theme: Theme) -> None:
    """Show a page on a screen of so many pixels to who prefers a theme."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)


def grave_faults(page: Page, rules: dict[str, Sequence[str]]) -> list[tuple[str, str]]:
    """What axe finds serious or critical on a page: the rule and the element."""
    options = {"resultTypes": ["violations"], "preload": False} | rules
    found = page.evaluate("options => axe.run(options).then(it => it.violations)", options)
    return [
        (one["id"], one["nodes"][0]["html"][:200])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
