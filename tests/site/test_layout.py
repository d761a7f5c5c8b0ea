"""The layout in a window, on a phone and on paper: nothing is covered, cut or unnamed."""

import pytest
from playwright.sync_api import Page

from tests.factories import EVIL
from tests.site.conftest import CHROMIUM, RANKED, RELEASE, Site

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

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium on this machine"),
]


def opened(page: Page, site: Site, name: str, width: int = 1440) -> None:
    """Open a page of the site in a window of so many pixels."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto((site.html / name).as_uri())


def test_no_sidebar_covers_a_page_with_tables_and_none_runs_off(page: Page, site: Site) -> None:
    """A table that needs more room than the sidebars leave scrolls in its own box."""
    for name in WITH_SIDEBARS:
        opened(page, site, f"reference/{name}.html")
        page.wait_for_function("document.querySelector('.perf-wrap:is(.fits, .more)')")
        for width in (1440, 1200, 1700):
            page.set_viewport_size({"width": width, "height": 900})
            assert [[], True, True] == page.evaluate(HIDDEN), (name, width)


@pytest.mark.parametrize(
    ("name", "box"), [(RANKED, ".perf-wrap"), ("reference/schema.html", ".perf-figure")]
)
def test_a_box_with_more_to_the_right_says_so_until_it_is_scrolled_there(
    page: Page, site: Site, name: str, box: str
) -> None:
    """Tables and the diagram of the store alike fade at the side that goes on."""
    opened(page, site, name, 390)
    shown = page.locator(f"{box}.more").first
    shown.wait_for()
    assert "gradient" in shown.evaluate("it => getComputedStyle(it).maskImage")
    handle = shown.element_handle()
    assert handle is not None
    handle.evaluate("it => { it.scrollLeft = it.scrollWidth }")
    page.wait_for_function("it => !it.classList.contains('more')", arg=handle)


def test_a_chart_is_whole_on_a_phone_and_can_be_read(page: Page, site: Site) -> None:
    """It is no wider than its box, and its letters are eleven pixels high or more."""
    opened(page, site, RANKED, 390)
    size, more = page.locator(".perf-chart").first.evaluate(
        """it => [it.getScreenCTM().a * it.getAttribute("font-size"),
             it.parentElement.scrollWidth - it.parentElement.clientWidth]"""
    )
    assert 11 <= size < 13
    assert more == 0


def test_the_texts_of_a_chart_are_within_it(page: Page, site: Site) -> None:
    """Whatever font the browser has; those of bars and lines, of a single point too."""
    for name in (RANKED, "models/llama3-8b.html", "changes/megatron-core.html"):
        opened(page, site, name)
        cut = page.locator(".perf-chart text").evaluate_all(
            """all => all.filter(text => {
                 const box = text.getBBox(), view = text.ownerSVGElement.viewBox.baseVal;
                 return box.x < -4 || box.x + box.width > view.width + 4
                     || box.y < -4 || box.y + box.height > view.height + 4;
               }).map(text => text.textContent)"""
        )
        assert [] == cut, name


def test_the_note_on_a_chart_is_beside_it_where_there_is_room(page: Page, site: Site) -> None:
    opened(page, site, "models/llama3-8b.html")
    for width, is_beside in ((1440, True), (390, False)):
        page.set_viewport_size({"width": width, "height": 900})
        drawn = page.locator(".perf-drawn").first
        figure, note = (drawn.locator(it).first.bounding_box() for it in (".perf-figure", "p"))
        assert figure is not None
        assert note is not None
        assert is_beside == (note["y"] < figure["y"] + figure["height"])
        assert is_beside == (note["x"] >= figure["x"] + figure["width"])
        assert note["x"] + note["width"] <= width


def test_no_two_tables_of_a_page_are_called_the_same(page: Page, site: Site) -> None:
    """Who hears a page goes from one to the next by what they are called."""
    for name in (RELEASE, "performance/dfm/main.html", "performance/index.html"):
        opened(page, site, name)
        labels = page.locator("[role=region]").evaluate_all("all => all.map(it => it.ariaLabel)")
        assert 1 < len(labels) == len(set(labels)), name


def test_rows_are_whole_pixels_high(page: Page, site: Site) -> None:
    """Else a cell that sticks is drawn over the line of the one above it, here and there."""
    for name in (RELEASE, "runs/index.html", "reference/metrics.html"):
        opened(page, site, name)
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            heights = page.locator("table.perf tbody tr:visible").evaluate_all(
                "rows => rows.map(row => row.getBoundingClientRect().height)"
            )
            assert heights
            assert {0.0} == {height % 1 for height in heights}, (name, width)


def test_on_paper_each_table_is_whole_below_the_title_of_its_tab(page: Page, site: Site) -> None:
    """One below the other, in the order of the tabs; the buttons of the tabs are not there.

    Wide tables shrink to the width of the sheet; links are no larger than the words by them.
    """
    opened(page, site, RELEASE, PAPER)
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
    page: Page, site: Site
) -> None:
    """A footer would lie across rows, and of a positioned button no later sheet has a copy."""
    opened(page, site, "performance/dfm/main.html", PAPER)
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


def test_a_long_name_leaves_room_for_the_columns_behind_it(page: Page, site: Site) -> None:
    """It wraps; one of our own stays on one line, and so do the rows below it."""
    opened(page, site, "models/index.html")
    for width, most in ((640, 192), (1280, 320)):
        page.set_viewport_size({"width": width, "height": 900})
        names = page.locator("table.perf tbody th > a:not([class])").evaluate_all(
            "all => all.map(it => [it.textContent, it.offsetWidth, it.offsetHeight])"
        )
        lines = {name: (across, round(high / 18)) for name, across, high in names}
        assert max(across for across, _ in lines.values()) <= most
        assert 1 < lines[EVIL][1]
        assert 1 == lines["Llama 3.1 405B"][1]
