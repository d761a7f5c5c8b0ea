"""The site in a real browser: tabs, search, and its layout in a window, on a phone and on paper."""

import hashlib
from collections.abc import Sequence
from typing import Literal, TypeAlias

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from perfdb.site.addresses import of_source
from tests.browser import needs_chromium
from tests.factories import EVIL
from tests.site.conftest import DFM, RANKED, RELEASE, chosen

PAGES = (
    "index.html", "performance/index.html", "models/index.html",
    "models/llama3-8b.html", "systems/index.html", "systems/dgx-h100.html", "scaling/index.html",
    "changes/index.html", "changes/megatron-core.html", "recipes/index.html",
    "recipes/llama3-8b.html", "reference/data.html", "performance/megatron-core/0.16.0.html",
    "performance/dfm/main.html", "performance/audit.html",
    "performance/coverage.html", "performance/coverage/dfm/main.html",
    "performance/cpu-tests.html", "performance/systems.html",
    "recipes/dfm-wan2.1-14b-pretrain-automodel.html",
    "performance/audit/megatron-core/0.16.0.html", "performance/changelog.html",
    "scaling/dfm/main/dgx-h100.html",
    f"{of_source(hashlib.sha256(DFM.read_bytes()).hexdigest())}.html", "runs/index.html", RANKED,
    "runs/out-of-memory.html", "method.html", "glossary.html", "reference/models.html",
    "reference/schema.html", "reference/cli.html",
)  # fmt: skip
"""One of each kind."""

AT_ONCE = "* { transition: none !important; animation: none !important; }"
"""Colors that are on their way from one theme to the other are those of neither."""

Theme: TypeAlias = Literal["light", "dark"]
ON_ANY_SCREEN = ("color-contrast", "link-in-text-block", "scrollable-region-focusable")
"""The rules of axe on colors and room. The others judge what is there: a phone shows less of it,
and has the same header on each page."""

OPENED = "document.querySelectorAll('.perf-drawer').forEach(it => { it.open = true })"

ALIKE = """document.querySelectorAll("tbody, ul, ol, dl, pre, section").forEach(box => {
  const seen = new Set(), parts = one => [one, ...one.querySelectorAll("*")];
  const kind = it => [it.localName, it.className, it.role, it.title !== "", it.textContent !== ""];
  for (const one of [...box.children]) {
    const kinds = parts(one).map(kind).join();
    if (seen.has(kinds)) one.remove();
    seen.add(kinds);
  }
})"""
"""Leaves one of all rows, entries, words and paragraphs that are made of the same elements."""

COVERED = """[...document.querySelectorAll(".perf-wrap")]
    .filter(box => box.querySelector("th").offsetWidth > 0.6 * box.clientWidth)
    .filter(box => box.scrollWidth > box.clientWidth).map(box => box.ariaLabel)"""
"""The tables whose names cover what scrolls below them."""

WITH_SIDEBARS = ("metrics", "systems", "flops", "schema")
PAPER = 1047
"""Points of a screen across a sheet of A4 on its side, within its margins of 10 mm."""

HIDDEN = """() => {
  const right = selector => document.querySelector(selector).getBoundingClientRect().right;
  const start = right(".bd-sidebar-primary"), end = right(".bd-sidebar-secondary");
  const other = document.querySelector(".bd-sidebar-secondary").getBoundingClientRect().left;
  const kinds = ":is(h1, h2, p, .perf-wrap, .perf-tools)";
  const parts = [...document.querySelectorAll(`.bd-article ${kinds}`)]
    .filter(part => part.offsetParent && !part.parentElement.closest(".perf-wrap"));
  const covered = parts.filter(part => {
    const box = part.getBoundingClientRect();
    return box.left < start || box.right > other;
  });
  return [covered.map(part => part.textContent.slice(0, 40)), end <= innerWidth, parts.length > 3];
}"""

pytestmark = [pytest.mark.slow, needs_chromium]


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


def test_reproduce_opens_the_drawer_without_scripts_too(browser: Browser, address: str) -> None:
    """Of a run and of a published row, of which a page has several."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for name in (RELEASE, "performance/dfm/main.html"):
        page.goto(address + name)
        page.locator("table.perf:visible a", has_text="reproduce").first.click()
        page.wait_for_url("**/*#reproduce*")
        anchor = page.url.partition("#")[2]
        opened = page.locator("details.perf-drawer[open]")
        assert 1 == opened.count() == opened.locator(f"#{anchor}").count(), name
        assert opened.locator("pre").first.is_visible()
    context.close()


def test_every_page_is_accessible_fits_a_phone_and_asks_no_other_host(
    browser: Browser, address: str
) -> None:
    """By every rule of axe in the light on a wide screen, and in the dark on a phone by some."""
    context = browser.new_context(viewport={"width": 390, "height": 900})
    context.add_init_script(Axe().axe_script)
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


def opened(page: Page, address: str, name: str, width: int = 1440) -> None:
    """Open a page of the site in a window of so many pixels."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address + name)


def test_no_sidebar_covers_a_page_with_tables_and_none_runs_off(page: Page, address: str) -> None:
    """A table that needs more room than the sidebars leave scrolls in its own box."""
    for name in WITH_SIDEBARS:
        opened(page, address, f"reference/{name}.html")
        page.wait_for_function("document.querySelector('.perf-wrap:is(.fits, .more)')")
        for width in (1440, 1200, 1700):
            page.set_viewport_size({"width": width, "height": 900})
            assert [[], True, True] == page.evaluate(HIDDEN), (name, width)


@pytest.mark.parametrize(
    ("name", "box"), [(RANKED, ".perf-wrap"), ("reference/schema.html", ".perf-figure")]
)
def test_a_box_with_more_to_the_right_says_so_until_it_is_scrolled_there(
    page: Page, address: str, name: str, box: str
) -> None:
    """Tables and the diagram of the store alike fade at the side that goes on."""
    opened(page, address, name, 390)
    shown = page.locator(f"{box}.more").first
    shown.wait_for()
    assert "gradient" in shown.evaluate("it => getComputedStyle(it).maskImage")
    handle = shown.element_handle()
    assert handle is not None
    handle.evaluate("it => { it.scrollLeft = it.scrollWidth }")
    page.wait_for_function("it => !it.classList.contains('more')", arg=handle)


def test_a_chart_is_whole_on_a_phone_and_can_be_read(page: Page, address: str) -> None:
    """It is no wider than its box, and its letters are eleven pixels high or more."""
    opened(page, address, RANKED, 390)
    size, more = page.locator(".perf-chart").first.evaluate(
        """it => [it.getScreenCTM().a * it.getAttribute("font-size"),
             it.parentElement.scrollWidth - it.parentElement.clientWidth]"""
    )
    assert 11 <= size < 13
    assert more == 0


def test_the_texts_of_a_chart_are_within_it(page: Page, address: str) -> None:
    """Whatever font the browser has; those of bars and lines, of a single point too."""
    for name in (RANKED, "models/llama3-8b.html", "changes/megatron-core.html"):
        opened(page, address, name)
        cut = page.locator(".perf-chart text").evaluate_all(
            """all => all.filter(text => {
                 const box = text.getBBox(), view = text.ownerSVGElement.viewBox.baseVal;
                 return box.x < -4 || box.x + box.width > view.width + 4
                     || box.y < -4 || box.y + box.height > view.height + 4;
               }).map(text => text.textContent)"""
        )
        assert [] == cut, name


def test_the_note_on_a_chart_is_beside_it_where_there_is_room(page: Page, address: str) -> None:
    opened(page, address, "models/llama3-8b.html")
    for width, is_beside in ((1440, True), (390, False)):
        page.set_viewport_size({"width": width, "height": 900})
        drawn = page.locator(".perf-drawn").first
        figure, note = (drawn.locator(it).first.bounding_box() for it in (".perf-figure", "p"))
        assert figure is not None
        assert note is not None
        assert is_beside == (note["y"] < figure["y"] + figure["height"])
        assert is_beside == (note["x"] >= figure["x"] + figure["width"])
        assert note["x"] + note["width"] <= width


def test_no_two_tables_of_a_page_are_called_the_same(page: Page, address: str) -> None:
    """Who hears a page goes from one to the next by what they are called."""
    for name in (RELEASE, "performance/dfm/main.html", "performance/index.html"):
        opened(page, address, name)
        labels = page.locator("[role=region]").evaluate_all("all => all.map(it => it.ariaLabel)")
        assert 1 < len(labels) == len(set(labels)), name


def test_rows_are_whole_pixels_high(page: Page, address: str) -> None:
    """Else a cell that sticks is drawn over the line of the one above it, here and there."""
    for name in (RELEASE, "runs/index.html", "reference/metrics.html"):
        opened(page, address, name)
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            heights = page.locator("table.perf tbody tr:visible").evaluate_all(
                "rows => rows.map(row => row.getBoundingClientRect().height)"
            )
            assert heights
            assert {0.0} == {height % 1 for height in heights}, (name, width)


def test_on_paper_each_table_is_whole_below_the_title_of_its_tab(page: Page, address: str) -> None:
    """One below the other, in the order of the tabs; the buttons of the tabs are not there.

    Wide tables shrink to the width of the sheet; links are no larger than the words by them.
    """
    opened(page, address, RELEASE, PAPER)
    page.emulate_media(media="print")
    sets = page.locator(".sd-tab-set")
    assert 1 < sets.count()
    for number in range(sets.count()):
        parts = sets.nth(number).locator(":scope > label, :scope > .sd-tab-content table.perf")
        boxes = parts.evaluate_all(
            """parts => parts.map(part => [part.localName, part.textContent.trim(),
                 part.getBoundingClientRect().top, part.getBoundingClientRect().bottom])"""
        )
        assert ["label", "table"] * (len(boxes) // 2) == [kind for kind, *_ in boxes]
        assert all(text.startswith("DGX-") for kind, text, *_ in boxes if kind == "label")
        ends = [end for _, _, top, bottom in boxes for end in (top, bottom)]
        assert sorted(ends) == ends
    assert 0 == page.locator(".sd-tab-set > input:visible, .perf-tools:visible").count()
    assert page.locator("table.perf").count() == page.locator("table.perf:visible").count()
    tables = page.locator("table.perf")
    right = tables.evaluate_all("all => all.map(it => it.getBoundingClientRect().right)")
    assert max(right) <= PAPER
    sizes = tables.locator("tbody :is(td, th, a)").evaluate_all(
        "all => [...new Set(all.map(it => getComputedStyle(it).fontSize))]"
    )
    assert 1 == len(sizes)


def test_on_paper_a_note_stays_with_its_table_and_heads_are_words_alone(
    page: Page, address: str
) -> None:
    """A footer would lie across rows, and of a positioned button no later sheet has a copy."""
    opened(page, address, "performance/dfm/main.html", PAPER)
    page.locator("table.perf th button").first.wait_for(state="attached")
    page.emulate_media(media="print")
    breaks = page.locator("p.perf-notes, .perf-notes li").evaluate_all(
        "all => [...new Set(all.map(it => [getComputedStyle(it.closest('.perf-notes')).breakBefore,"
        " getComputedStyle(it).breakInside].join()))]"
    )
    assert ["avoid,avoid"] == breaks
    assert not page.locator(".bd-footer").first.is_visible()
    shown = page.locator("table.perf th button").evaluate_all(
        "all => [...new Set(all.map(it => getComputedStyle(it).display))]"
    )
    assert ["contents"] == shown


def test_a_long_name_leaves_room_for_the_columns_behind_it(page: Page, address: str) -> None:
    """It wraps; one of our own stays on one line, and so do the rows below it."""
    opened(page, address, "models/index.html")
    for width, most in ((640, 192), (1280, 320)):
        page.set_viewport_size({"width": width, "height": 900})
        names = page.locator("table.perf tbody th > a:not([class])").evaluate_all(
            "all => all.map(it => [it.textContent, it.offsetWidth, it.offsetHeight])"
        )
        lines = {name: (across, round(high / 18)) for name, across, high in names}
        assert max(across for across, _ in lines.values()) <= most
        assert 1 < lines[EVIL][1]
        assert 1 == lines["Llama 3.1 405B"][1]
