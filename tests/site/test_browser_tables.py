"""Tables in a real browser: sorted, filtered, copied, downloaded, linked to, on any screen."""

import csv
import io
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from perfdb.compare import comparison
from perfdb.site import changelog, changes, markup
from perfdb.site.contents import ReleasePair
from perfdb.site.data import Result
from perfdb.site.markup import Html
from perfdb.site.profile import Profile
from perfdb.site.profiles import AUTOMODEL, NEMO, OF_MODEL, ON_SYSTEM, SCALING
from perfdb.site.revisions import Change, Event
from perfdb.site.tables import results_table
from tests.site.conftest import CHROMIUM, EVIL, RELEASE, ROOT, chosen
from tests.site.samples import address as sample_address
from tests.site.samples import published, result
from tests.test_compare import printed
from tests.test_compare import result as measured

STATIC = ROOT / "perfdb" / "site" / "static"

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
    """The page is not moved; down the table, its head stays in sight as the names do."""
    context = browser.new_context(viewport={"width": 390, "height": 600}, has_touch=True)
    page = context.new_page()
    page.goto(address + "runs/index.html")
    wrap = page.locator(".perf-wrap")
    wrap.evaluate("box => { box.scrollLeft = 300; box.scrollTop = 200 }")
    box, corner = wrap.bounding_box(), page.locator("table.perf thead th").first.bounding_box()
    assert box is not None
    assert corner is not None
    assert abs(corner["x"] - box["x"]) <= 2
    assert abs(corner["y"] - box["y"]) <= 2
    assert [300, 200] == wrap.evaluate("box => [box.scrollLeft, box.scrollTop]")
    assert box["height"] < 600
    assert 0 == page.evaluate("window.scrollX")
    context.close()


@pytest.mark.parametrize(("width", "place"), [(390, 3), (1440, 12)])
def test_on_a_phone_the_rates_are_in_sight_beside_what_was_run(
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


def on_a_phone(page: Page, profile: Profile, *results: Result, width: int = 390) -> Locator:
    """The table of results on a phone; its box is as wide as the screen."""
    made = markup.table(results_table("Results", results, profile, sample_address))
    return part_on_a_phone(page, made, width)


def part_on_a_phone(page: Page, made: Html, width: int = 390) -> Locator:
    """The table of a part of a page."""
    page.set_viewport_size({"width": width, "height": 844})
    page.set_content(f"<body style='margin: 0; font-family: sans-serif'>{made.text}</body>")
    page.add_style_tag(path=STATIC / "perfdb.css")
    page.add_script_tag(path=STATIC / "perfdb.js")
    return page.locator("table.perf")


@pytest.mark.parametrize(
    ("profile", "figure"), [(SCALING, "12,069,940"), (AUTOMODEL, "389.00"), (NEMO, "867")]
)
def test_a_head_wraps_on_a_phone_so_that_a_rate_is_in_sight(
    page: Page, profile: Profile, figure: str
) -> None:
    """'Throughput in tokens per second' and 'TFLOPs/sec/GPU' are wider than the figures below."""
    rates: dict[str, object] = {
        "tokens_per_sec": 12_069_940,
        "model_tflops_per_sec_per_gpu": 389.0,
        "tokens_per_sec_per_gpu": 866.77,
    }
    shown = result(model_title="Nemotron-4 340B", num_gpus=2048, **rates)
    table = on_a_phone(page, profile, shown, shown)
    titles = table.locator("thead th").all_inner_texts()[:3]
    assert ["Model", "Precision", "GPUs"] == [title.lstrip("#-").strip() for title in titles]
    rate = table.locator("tbody tr").first.locator(":scope > :nth-child(4)")
    box = rate.bounding_box()
    assert box is not None
    assert (figure, True) == (rate.inner_text(), box["x"] + box["width"] <= 390)


def test_a_computed_rate_leaves_the_next_one_in_sight_on_a_phone(page: Page) -> None:
    """Its mark stands on a line of its own, below the figure."""
    shown = published(
        framework="nemo", model_title="Nemotron-4 15B", precision="bf16", num_gpus=256,
        system="dgx-h100", step_time_s=1.33, sequence_length=4096, global_batch_size=512,
        model_tflops_per_sec_per_gpu=586.7,
    )  # fmt: skip
    row = on_a_phone(page, ON_SYSTEM, shown, shown).locator("tbody tr").first
    rate, flops = (row.locator(f":scope > :nth-child({place})") for place in (4, 5))
    box = flops.bounding_box()
    assert box is not None
    assert ("6,159 (computed)", "586.70") == (
        " ".join(rate.inner_text().split()),
        flops.inner_text(),
    )
    assert box["x"] + box["width"] <= 390 - 2 * 16


def test_a_change_is_in_sight_on_a_phone_with_what_changed_and_says_its_work_once(
    page: Page, address: str
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address + "changes/megatron-core.html")
    table = page.locator("table.perf").first
    heads = table.locator("thead th:visible").all()
    titles = [" ".join(head.inner_text().split()) for head in heads]
    boxes = [head.bounding_box() for head in heads[:5]]
    assert "Work" not in titles
    assert ["Work Pre-training"] == [
        text[:17] for text in table.locator("th small").all_inner_texts()[:1]
    ]
    assert ["Model", "Change", "B is"] == [titles[place] for place in (0, 3, 4)]
    assert ["0.9.1", "0.16.0"] == [title.split()[0] for title in titles[1:3]]
    assert {True} == {box is not None and box["x"] + box["width"] <= 390 for box in boxes}
    assert "Work" in page.evaluate("texts(document.querySelector('table.perf'))[0]")


def test_the_hash_of_a_commit_leaves_counts_and_figures_in_sight_and_is_copied_whole(
    page: Page,
) -> None:
    """On a phone, in cells and in heads; its title is the whole of it."""
    before, after = "fbb7570cf7eec94fd2e6064454d84f7fad07fbfa", 4 * "0480586879"
    ends: dict[str, Any] = {"framework": "megatron-bridge", "before": before, "after": after}
    pair = ReleasePair(**ends, comparison=comparison([printed(44_511)], [printed(44_773)]))
    outcome = changes.Outcome(**ends, document="changes/a", counts=(1,) * 9)
    index = changes.index(changes.ChangesIndex(pairs=(outcome,), alone=()), sample_address)
    for part, place in ((index, 3), (changes.matched(pair, sample_address), 2)):
        table = part_on_a_phone(page, part)
        assert [before, after] == table.locator(".perf-hash").evaluate_all(
            "all => all.map(one => one.title)"
        )
        box = table.locator("tbody tr > *").nth(place).bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390
        copied = " ".join(table.evaluate("it => texts(it).flat()"))
        assert before in copied
        assert after in copied


def test_rows_that_read_alike_on_a_phone_say_in_what_they_differ(page: Page) -> None:
    """By words before numbers, as often as it takes, the other rows too, and no copy has it."""
    alike = [result(release=version) for version in ("0.9.1", "0.16.0", "0.16.0")]
    alike[2] = alike[2].model_copy(update={"global_batch_size": 256})
    other = result(precision="fp8_cs")
    table = on_a_phone(page, OF_MODEL, *alike, other)
    rows = table.locator("tbody tr")
    said = [rows.nth(place).locator("th small").all_inner_texts() for place in range(4)]
    newer = "Release Megatron-Core 0.16.0"
    assert [
        ["Release Megatron-Core 0.9.1", "GBS\u00a0128"],
        [newer, "GBS\u00a0128"],
        [newer, "GBS\u00a0256"],
        [newer, "GBS\u00a0128"],
    ] == said
    assert ["DGX-H100"] * 4 == table.evaluate("it => texts(it).slice(1).map(row => row[0])")
    table.get_by_role("button", name="Tokens/s/GPU").click()
    assert 4 == rows.count()


@pytest.mark.parametrize("widths", [(620,), (800,), (1440, 620, 390, 1440, 620)])
def test_rows_that_differ_out_of_view_alone_say_so_below_their_names(
    page: Page, widths: tuple[int, ...]
) -> None:
    """EP is in view from 736 pixels on, a hundred of which are beside the table."""
    sizes = {1: 6000.0, 2: 6500.0}
    rows = [result(expert_parallel=it, tokens_per_sec_per_gpu=sizes[it]) for it in sizes]
    table = on_a_phone(page, NEMO, *rows, width=widths[0])
    page.locator("body").evaluate("it => { it.style.marginLeft = '100px' }")
    for width in widths:
        page.set_viewport_size({"width": width, "height": 844})
        page.locator(".perf-wrap.fits" if width == 1440 else ".perf-wrap.more").wait_for()
        page.evaluate("() => new Promise(requestAnimationFrame)")
        told = [] if width > 736 else ["EP\u00a01", "EP\u00a02"]
        assert told == table.locator("th small").all_inner_texts(), width


def test_what_is_said_below_a_name_takes_no_column_out_of_view(page: Page) -> None:
    """It wraps."""
    rows = [result(release=it) for it in ("0.9.1", "0.16.0")]
    table = on_a_phone(page, OF_MODEL, *rows, width=640)
    page.locator("th small").first.wait_for()
    ends = """it => [...it.tHead.rows[0].cells].map(one => one.getBoundingClientRect().right)"""
    with_lines = table.evaluate(ends)
    table.evaluate("it => it.querySelectorAll('small.perf-aside').forEach(one => one.remove())")
    assert table.evaluate(ends) == with_lines


def test_a_column_whose_words_stand_below_the_names_is_there_on_paper_and_in_wide_windows(
    page: Page,
) -> None:
    """Paper has every column, and no line in its stead. An interval is a figure and no word."""
    alike = [printed(44_511), measured(result_id=2)]
    pair = ReleasePair(
        framework="nemo", before="25.04", after="25.07",
        comparison=comparison(alike, alike),
    )  # fmt: skip
    table = part_on_a_phone(page, changes.matched(pair, sample_address))
    origin = table.locator("thead th", has_text="Origin")
    said = page.locator("th small").all_inner_texts()
    assert ["Origin measured", "Origin published"] == said
    assert not origin.is_visible()
    page.emulate_media(media="print")
    assert (True, 0) == (origin.is_visible(), page.locator("th small:visible").count())
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1440, "height": 844})
    origin.wait_for()


def test_shares_sort_by_one_unit_whether_they_are_stated_or_computed(page: Page) -> None:
    """386.7 of the H100's 989 TFLOP/s are 39.1 %: less than 43.1 %, more than 14.8 %."""
    computed = published(
        system="dgx-h100", precision="bf16", num_gpus=8, model_tflops_per_sec_per_gpu=386.7
    )
    given = (result(mfu=0.148), computed, result(mfu=None), result(mfu=0.431))
    table = on_a_phone(page, ON_SYSTEM, *given, width=1440)
    falling = ["43.1%", "39.1% (computed)", "14.8%", "–"]
    for expected in (falling, [*falling[2::-1], "–"]):
        table.get_by_role("button", name="MFU").click()
        assert expected == column(page, "MFU")


def test_the_filter_finds_a_figure_with_and_without_its_separators(page: Page) -> None:
    given = [result(tokens_per_sec_per_gpu=float(it)) for it in (6473, 16473, 647, 4035)]
    table = on_a_phone(page, ON_SYSTEM, *given, width=1440)
    rates = table.locator("tbody tr:visible > :nth-child(4)")
    for typed, found in (("6473", ["6,473"]), ("6,473", ["6,473"]), ("647", ["6,473", "647"])):
        page.get_by_role("searchbox").fill(typed)
        assert found == rates.all_inner_texts()
    table.locator("a.e", has_text="6,473").first.evaluate("it => { it.textContent = '6473' }")
    page.get_by_role("searchbox").fill("6,473")
    assert ["6473"] == rates.all_inner_texts(), "as pages without separators print it"


def test_on_a_phone_the_list_of_releases_shows_the_headline(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address + "performance/index.html")
    for table in page.locator("table.perf").all():
        cell = table.locator("tbody tr").first.locator(":scope > :nth-child(2)")
        box = cell.bounding_box()
        assert "TFLOP/s/GPU" in cell.inner_text()
        assert box is not None
        assert box["x"] + box["width"] <= 390


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
    page.get_by_text(re.compile("rows?, copied")).first.wait_for()
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_a_table_is_copied_as_csv_with_the_rows_and_numbers_it_shows(
    page: Page, address: str
) -> None:
    page.goto(address + RELEASE + "?system=dgx-b200")
    rows = list(csv.DictReader(io.StringIO(copied(page, "Copy CSV"))))
    assert ["Llama 3 8B"] * len(rows) == [row["Model"] for row in rows]
    assert column(page, "Tokens / sec / GPU") == [row["Tokens / sec / GPU"] for row in rows]
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


def test_the_notes_of_a_row_are_copied_into_a_column_of_their_own(page: Page) -> None:
    """Those of all rows, and those that its marks stand for; without any there is no column."""
    rows = (published(notes=("a", "b, c", "d")), published(notes=("a",)))
    for given, notes in ((rows, ["a | b, c | d", "a"]), ((published(), published()), [None, None])):
        on_a_phone(page, NEMO, *given, width=1440).wait_for()
        copy = page.evaluate("csv(texts(document.querySelector('table.perf')))")
        made = list(csv.DictReader(io.StringIO(str(copy))))
        assert notes == [row.get("Notes") for row in made]
        assert ["WAN 2.1 14B"] * 2 == [row["Model"] for row in made]


def test_a_row_alone_is_copied_and_a_column_that_is_called_notes_is_another(page: Page) -> None:
    """A page may have a column of that name itself; one row has nothing to sort or to filter."""
    given = published(notes=("ours",), raw={"Notes": "theirs"}, extra={"Notes": "theirs"})
    table = on_a_phone(page, NEMO, given, width=1440)
    head = table.locator("thead th").last
    head.evaluate("head => { head.textContent = 'Notes' }")
    made = page.evaluate("csv(texts(document.querySelector('table.perf')))")
    [row] = csv.DictReader(io.StringIO(str(made)))
    assert "ours" == row["Notes (perfdb)"]
    assert 2 == page.locator(".perf-tools button").count()
    assert 0 == page.locator("table.perf th button, .perf-tools input").count()
    assert "1 row" == page.get_by_role("status").inner_text()


def test_the_lines_of_a_cell_are_copied_apart_and_the_first_word_of_each_is_found(
    page: Page,
) -> None:
    said = [Change(field=name, old="1", new="2") for name in ("Step time", "Rate")]
    event = Event(at=None, act="contradicted", source="b.md", line=7, changes=tuple(said))
    log = changelog.Changelog(changed=(event,) * 4, other=(), left=(0, 0), counts=())
    page.set_content(changelog.changed(log, sample_address).text)
    page.add_script_tag(path=STATIC / "perfdb.js")
    made = page.evaluate("csv(texts(document.querySelector('table.perf')))")
    row, *_ = csv.DictReader(io.StringIO(str(made)))
    assert "contradicted by b.md; Step time: 1 → 2; Rate: 1 → 2" == row["Change"]
    page.evaluate("filterBy(document.querySelector('table.perf'), 'Step')")
    assert 4 == page.locator("tbody tr:visible").count()


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


def test_an_address_that_names_no_row_is_no_fault(page: Page, address: str) -> None:
    """'%' begins a sign that nothing follows."""
    faults: list[str] = []
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    page.goto(address + RELEASE + "#row-zzz%")
    page.locator(".perf-tools").first.wait_for()
    assert [] == faults


def test_the_arrow_of_a_head_and_the_links_by_a_name_are_no_part_of_either(
    page: Page, address: str
) -> None:
    """Who hears the table hears 'Model' and 'Llama 3 8B Link to Llama 3 8B'."""
    page.goto(address + RELEASE + "?system=dgx-b200")
    said = page.locator("table.perf:visible").first.aria_snapshot()
    assert 'columnheader "Model":' in said
    assert 'rowheader "Llama 3 8B Link to Llama 3 8B":' in said
