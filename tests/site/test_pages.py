"""Results make pages: which there are, in which order, and that any text in them prints as text."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from html import unescape

import pytest
from bs4 import BeautifulSoup
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from perfdb.site import addresses, evidence, releases, sources
from perfdb.site.addresses import slug
from perfdb.site.contents import Contents
from perfdb.site.data import Flag, ReleasePage, SourcePage
from perfdb.site.directives import shell
from perfdb.site.overview import NO_DATA, html, of_contents
from perfdb.site.pages import all_pages
from perfdb.site.releases import release_pages
from perfdb.site.words import myst
from tests.site.samples import address, published, result, run_page

LISTS = {
    "changes/index",
    "models/index",
    "performance/archive",
    "performance/audit",
    "performance/changelog",
    "performance/index",
    "recipes/index",
    "runs/index",
    "scaling/index",
    "systems/index",
}


def texts(contents: Contents) -> dict[str, str]:
    """The text of each page that is made, by its name."""
    pages = all_pages(contents)
    assert len(pages) == len({page.name for page in pages})
    return {page.name: page.text for page in pages if page.text is not None}


def test_an_empty_store_has_only_lists_and_each_says_that_it_is_empty() -> None:
    made = texts(Contents())
    assert LISTS == made.keys()
    silent = {name for name, text in made.items() if "{perfdb-no-data}" not in text}
    assert {"performance/audit", "recipes/index"} == silent
    assert "There are no findings." in made["performance/audit"]
    assert "No run in the store keeps a recipe." in made["recipes/index"]
    assert "perfdb ingest" in NO_DATA.text


def test_a_store_of_pages_alone_says_that_it_has_no_runs() -> None:
    """It has data, so the list of runs may not say that there is none."""
    said = texts(Contents(results=(published(),)))["runs/index"]
    assert "The store has no runs that count" in said
    assert "{perfdb-no-data}" not in said


def test_rows_of_a_page_that_differ_in_system_or_precision_have_headings_that_differ() -> None:
    """Model, task and scale are often the same in several tables of a page."""
    rows = (
        published(),
        published(system="dgx-h100", system_title="DGX-H100"),
        published(precision="fp8"),
        published(num_gpus=1),
    )
    page = SourcePage(path="dfm.md", sha256="a" * 64, text="# DFM", results=rows)
    entries = BeautifulSoup(sources.entries(page, address).text, "html.parser")
    assert [
        sources.ALL_ROWS,
        "WAN 2.1 14B, Pre-training: Megatron-Core, 32 GPUs on DGX-GB300",
        "WAN 2.1 14B, Pre-training: Megatron-Core, 32 GPUs on DGX-H100",
        "WAN 2.1 14B, FP8, Pre-training: Megatron-Core, 32 GPUs on DGX-GB300",
        "WAN 2.1 14B, Pre-training: Megatron-Core, 1 GPU on DGX-GB300",
    ] == [heading.get_text() for heading in entries.select("h3")]


def test_there_is_a_page_for_each_release_model_system_recipe_run_and_source() -> None:
    source = SourcePage(path="data/published/dfm.md", sha256="a" * 64, text="# DFM")
    contents = Contents(
        results=(result(), published()), runs=(run_page(4.0, 4.0, 4.0),), sources=(source,)
    )
    assert {
        "performance/megatron-core/0.16.0",
        "performance/dfm/main",
        "models/llama3-8b",
        "models/wan2.1-14b",
        "systems/dgx-h100",
        "systems/dgx-gb300",
        "recipes/llama3-8b",
        "runs/run-1",
        f"sources/{'a' * 16}",
    } == texts(contents).keys() - LISTS


def test_cards_are_of_frameworks_on_gpus_first_and_of_the_most_results_first() -> None:
    """What was run without a GPU comes last and says so."""
    smoke = [result(framework="automodel", system="cpu", num_gpus=1)] * 3
    few, many = [result(framework="nemo")], [published(), published()]
    overview = of_contents(Contents(results=(*smoke, *few, *many)))
    assert ["dfm", "nemo", "automodel"] == [card.framework for card in overview.cards]
    assert 1 == html(overview, address).text.count("a trial without a GPU")


def test_what_is_not_known_is_called_alike_all_over_a_card() -> None:
    """As comparisons call it, of which a card tells too."""
    text = html(of_contents(Contents(results=(published(),))), address).text
    assert "32 GPUs, precision unknown" in text


def test_what_the_audit_calls_an_error_is_no_best_figure_of_a_card() -> None:
    """5,611 stands on a row with an open error; one that is explained counts."""
    wrong = result(model_tflops_per_sec_per_gpu=5611.0, flag=flag("error"))
    explained = result(model_tflops_per_sec_per_gpu=3238.0, flag=flag("explained"))
    overview = of_contents(Contents(results=(wrong, explained, result())))
    [card] = overview.cards
    assert [3238.0] == [one.model_tflops_per_sec_per_gpu for one in card.best]
    assert "1 row with open errors is left out." in html(overview, address).text


def flag(kind: str) -> Flag:
    return Flag(said=f"1 {kind}", kind=kind, anchor="result-0")


def test_systems_of_a_card_are_in_the_order_of_the_catalogue() -> None:
    """As the tabs of a release are: the H100 before the B200."""
    systems = ("dgx-b200", "dgx-h100", "dgx-gb200")
    overview = of_contents(Contents(results=tuple(result(system=name) for name in systems)))
    assert ["dgx-h100", "dgx-b200", "dgx-gb200"] == [it.system for it in overview.cards[0].best]


def test_counts_of_one_are_singular_and_what_is_unattributed_counts_as_a_release() -> None:
    """It has a page and a row in the list of releases, which is as long as the count says."""
    overview = of_contents(
        Contents(results=(result(), result(release=None)), runs=(run_page(4.0),))
    )
    counts = BeautifulSoup(html(overview, address).text, "html.parser").select_one(".perf-counts")
    assert counts is not None
    said = counts.get_text(" ", strip=True)
    assert said == "2 releases 2 results 1 run 1 model 1 system 0 open findings"


def test_the_list_of_releases_counts_each_and_names_its_highest_figure() -> None:
    """With what the audit found in it."""
    contents = Contents(results=(result(), result(release="0.9.1", flag=flag("error"))))
    [page] = [one for one in all_pages(contents) if one.name == "performance/index"]
    assert isinstance(page.data, releases.ReleaseList)
    shown = BeautifulSoup(releases.release_list(page.data, 0, address).text, "html.parser")
    rows = [[it.get_text() for it in row.select("th, td")] for row in shown.select("tbody tr")]
    work = "TFLOP/s/GPU: Llama 3 8B, Pre-training, 8 GPUs, BF16 on DGX-H100"
    assert [
        ["0.16.0", "2026-01-02", "1", "0", "1", "1", "none", f"1,665.60 {work}"],
        ["0.9.1", "2026-01-02", "1", "0", "1", "1", "none", "–"],
    ] == rows


def test_two_states_of_a_page_are_told_apart_and_lead_to_each_other() -> None:
    """A row that the newer state does not have still leads to the older one."""

    def state(sha256: str, day: int) -> SourcePage:
        moment = datetime(2026, 3, day, 5, 6, tzinfo=UTC)
        return SourcePage(path="dfm.md", sha256=sha256 * 64, text="# DFM", read_at=moment)

    rows = (published(source_sha256="a" * 64), published(source_sha256="b" * 64))
    contents = Contents(results=rows, sources=(state("b", 4), state("a", 3)))
    pages = {page.name: page for page in evidence.KIND.pages(contents)}
    old, new = (pages[f"sources/{letter * 16}"] for letter in "ab")
    assert "an earlier state\\, as read on 2026\\-03\\-03 05\\:06\\:00 UTC" in (old.text or "")
    assert isinstance(old.data, SourcePage)
    assert isinstance(new.data, SourcePage)
    said = [BeautifulSoup(sources.listing(it, address).text, "html.parser").p for it in
            (old.data, new.data)]  # fmt: skip
    assert [
        "Superseded by the state read on 2026-03-04 05:06:00 UTC. The figures of 1 row lead here: "
        "no newer state has these results.",
        "This is the newest state of the page. The figures of 1 row lead to "
        "the state read on 2026-03-03 05:06:00 UTC: no newer state has these results.",
    ] == [it.get_text() for it in said if it]


def test_a_row_that_was_corrected_says_so_where_its_figures_lead() -> None:
    """In the entry of its page, with the way to the changelog."""
    source = SourcePage(
        path="dfm.md", sha256="a" * 64, text="# DFM",
        results=(published(result_id=7), published(result_id=8, source_line=75)),
        corrections={7: "corrected on 2026-03-05: Tokens: 3238 → 6476"},
    )  # fmt: skip
    made = BeautifulSoup(sources.entries(source, address).text, "html.parser")
    _, first, second = made.select("article")
    assert "corrected on 2026-03-05: Tokens: 3238 → 6476; see the changelog" in first.get_text()
    assert "corrected" not in second.get_text()


def test_a_source_says_where_its_original_is_and_of_which_day() -> None:
    """What the page does not say is –; an address is text, whatever is written in it."""
    url = 'https://example.org/?a="><script>'
    stated = SourcePage(
        path="a.md", sha256="a" * 64, text="#", source_url=url, published_on=date(2025, 10, 2)
    )
    made = BeautifulSoup(sources.listing(stated, address).text, "html.parser")
    assert ["Original", "Published on"] == [it.get_text() for it in made.select("th")]
    assert [url, "2025-10-02"] == [it.get_text() for it in made.select("td")]
    assert [url] == [it["href"] for it in made.select("td a")]
    assert [] == made.select("script")

    silent = SourcePage(path="a.md", sha256="a" * 64, text="#")
    made = BeautifulSoup(sources.listing(silent, address).text, "html.parser")
    assert ["–", "–"] == [it.get_text() for it in made.select("td")]


def test_a_release_says_once_of_each_page_where_its_original_is() -> None:
    """And nothing of a page that does not say; an address is text, whatever is written in it."""
    url = 'https://example.org/?a="><script>'
    given = (
        published(source_sha256="a" * 64, source_url=url, published_on=date(2025, 10, 2)),
        published(source_sha256="a" * 64, source_url=url, published_on=date(2025, 10, 2)),
        published(
            source_sha256="b" * 64, source="data/published/e.md", published_on=date(2025, 10, 3)
        ),
        published(source_sha256="c" * 64, source="data/published/f.md"),
    )
    [release] = release_pages(given)
    made = BeautifulSoup(sources.release_head(release, address).text, "html.parser")
    assert [
        f"Original of dfm.md: {url}, published on 2025-10-02",
        "Original of e.md: published on 2025-10-03",
    ] == [it.get_text() for it in made.select(".perf-original")]
    assert [address(f"sources/{'a' * 16}"), url, address(f"sources/{'b' * 16}")] == [
        it["href"] for it in made.select(".perf-original a")
    ]
    assert [] == made.select("script")


def test_the_entry_of_a_row_says_what_its_page_says_of_its_steps() -> None:
    """And of each thing that it does not say, that it does not: of all rows once."""
    silent = published()
    stated = published(num_steps=1, window="last", flops_convention="nemotron4-recipe")
    page = SourcePage(path="a.md", sha256="a" * 64, text="#", results=(stated, silent))
    entries = BeautifulSoup(sources.entries(page, address).text, "html.parser").select("article")
    told = [
        dict(zip([it.get_text() for it in one.select("dt")],
                 [it.get_text() for it in one.select("dd")], strict=True))
        for one in entries
    ]  # fmt: skip
    of_all, *of_each = told
    names = ("Steps", "Window", "Convention")
    assert [
        ["1", "last", "nemotron4-recipe"],
        [
            "the page does not say how many",
            "the page does not say which steps",
            "the page does not say how FLOPs are counted",
        ],
    ] == [[one[name] for name in names] for one in of_each]
    assert "the page states none" == of_all["Spread"]
    none = "a published row names none that perfdb has; of runs there are the recipes"
    assert none == of_all["Recipe"]
    assert not {"Spread", "Recipe"} & {name for one in of_each for name in one}
    assert [f"#{entries[0]['id']}"] * 2 == [
        it["href"] for it in entries[0].parent.select('a[href="#all-rows"]')
    ]
    assert 1 == len(entries[0].parent.select('a[href="../recipes/index.html"]'))


def test_a_section_is_a_task_and_a_variant_and_a_tab_is_a_system() -> None:
    page = release_pages(
        [
            published(variant="automodel", system="dgx-h100", system_title="DGX-H100"),
            published(),
            published(system="dgx-h100", system_title="DGX-H100"),
            published(task="lora", variant=None),
        ]
    )[0]
    assert [
        ("pretrain", "megatron-core", ["dgx-h100", "dgx-gb300"]),
        ("pretrain", "automodel", ["dgx-h100"]),
        ("lora", None, ["dgx-gb300"]),
    ] == [
        (section.task, section.variant, [tab.name for tab in section.tabs])
        for section in page.sections
    ]


def test_published_rows_keep_the_order_of_their_page_and_come_before_measured_ones() -> None:
    rows = [result(), published(framework="megatron-core", release="0.16.0", source_line=9)]
    rows += [published(framework="megatron-core", release="0.16.0", source_line=8)]
    rows = [row.model_copy(update={"system": "dgx-h100", "variant": None}) for row in rows]
    [page] = release_pages(rows)
    assert [8, 9, None] == [row.source_line for row in page.results]


def test_the_overview_counts_what_is_of_no_release_and_leads_there() -> None:
    """No card has them where the framework has a release with a number."""
    nowhere = [result(framework="nemo", release=None, num_gpus=gpus) for gpus in (8, 16)]
    given = (result(framework="nemo", release="25.04"), *nowhere, published(release=None))
    shown = BeautifulSoup(html(of_contents(Contents(results=given)), address).text, "html.parser")
    said = "3 results are of a release that nobody stated: "
    [line] = [one for one in shown.find_all("p") if one.get_text().startswith(said)]
    assert f"{said}NeMo DFM (unattributed) (1), NeMo Framework (unattributed) (2)." == (
        line.get_text()
    )
    assert ["../performance/dfm/unattributed.html", "../performance/nemo/unattributed.html"] == [
        link["href"] for link in line.select("a")
    ]
    every = html(of_contents(Contents(results=(result(),))), address).text
    assert "that nobody stated" not in every


def test_the_overview_has_a_card_for_the_newest_release_with_its_best_figure() -> None:
    old = result(release="0.9.1", model_tflops_per_sec_per_gpu=9999)
    slow = result(model_tflops_per_sec_per_gpu=1.0)
    runs = (run_page(4.0), run_page(4.0), run_page(4.0))
    overview = of_contents(Contents(results=(old, slow, result()), runs=runs))
    assert (2, 3, 3, 1) == (overview.releases, overview.results, overview.runs, overview.models)
    [card] = overview.cards
    assert ("0.16.0", 2, 0) == (card.release, card.measured, card.published)
    assert [1665.6] == [one.model_tflops_per_sec_per_gpu for one in card.best]
    assert (
        "../performance/megatron-core/0.16.0.html?system=dgx-h100" in html(overview, address).text
    )


@given(st.text(min_size=1))
@example("# *x* `y` [z](w) {role}`a` <b> &amp; $m$ {{ s }} ::: | 1. - + \\ ~ ^ @ https://x.y")
def test_any_words_are_myst_that_prints_just_those_words(words: str) -> None:
    printed = MarkdownIt("commonmark").renderInline(myst(words).replace("\0", "\ufffd"))
    assert " ".join(words.split()).replace("\0", "\ufffd") == unescape(printed)


@given(st.text(min_size=1), st.text(min_size=1))
@example("index", "Index")
@example("a b", "a-b")
@example("../../etc/passwd", "etc/passwd")
def test_names_become_file_names_that_stay_apart(one: str, other: str) -> None:
    assert {slug(one), slug(other)}.isdisjoint({"index", "", ".", ".."})
    assert "/" not in slug(one)
    assert (one == other) == (slug(one) == slug(other))


RELEASE_NAMES = st.tuples(
    st.text("aAv1-/", min_size=1, max_size=5), st.none() | st.text("aAv1-/", min_size=1, max_size=5)
)


@given(RELEASE_NAMES, RELEASE_NAMES)
@example(("acme", "unattributed"), ("acme", None))
@example(("Acme", "1.0"), ("acme", "1.0"))
@example(("acme", "1.1RC1"), ("acme", "1.1rc1"))
@example(("nemo", "rl-0.4"), ("nemo-rl", "0.4"))
@example(("nemo", "4-v1"), ("nemo-4", "v1"))
def test_pages_of_releases_stay_apart_where_case_is_ignored(
    one: tuple[str, str | None], other: tuple[str, str | None]
) -> None:
    """As it is by Sphinx in labels, and by some disks in the names of files."""
    pages = [
        ReleasePage(framework=framework, release=version, containers=(), sections=())
        for framework, version in (one, other)
    ]
    assert (one == other) == (1 == len({page.document.lower() for page in pages}))
    assert (one == other) == (1 == len({page.label.lower() for page in pages}))


@pytest.mark.parametrize("of", [addresses.of_model, addresses.of_system, addresses.of_recipe])
def test_pages_of_names_that_differ_in_case_alone_stay_apart(of: Callable[[str], str]) -> None:
    assert of("dgx-h100").lower() != of("DGX-H100").lower()
    assert of("dgx-h100").endswith("/dgx-h100")


@pytest.mark.parametrize(
    ("framework", "version", "document", "label"),
    [
        ("dfm", None, "performance/dfm/unattributed", "ref-performance-dfm-unattributed"),
        ("megatron-bridge", "main", "performance/megatron-bridge/main",
         "ref-performance-megatron-bridge-main"),
        ("nemo", "25.11-rc1", "performance/nemo/25.11-rc1", "ref-performance-nemo-25.11-rc1"),
        ("nemo-rl", "v0.4-rc1", "performance/nemo-rl/v0.4-rc1",
         "ref-performance-nemo-rl-v0.4-rc1"),
        ("nemo", "rl-0.4", "performance/nemo/rl-0.4", "ref-performance-nemo/rl-0.4"),
    ],
)  # fmt: skip
def test_a_release_has_an_address_and_a_label_that_can_be_typed(
    framework: str, version: str | None, document: str, label: str
) -> None:
    page = ReleasePage(framework=framework, release=version, containers=(), sections=())
    assert (document, label) == (page.document, page.label)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("torchrun", "--nodes", "1", "a b.py"), "torchrun \\\n    --nodes 1 'a b.py'"),
        ((), ""),
    ],
)
def test_a_command_reads_as_a_person_would_type_it(command: tuple[str, ...], shown: str) -> None:
    assert shown == shell(command)
