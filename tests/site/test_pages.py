"""Results make pages: which there are, in which order, and that any text in them prints as text."""

from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from perfdb.site import addresses
from perfdb.site.commands import shell
from perfdb.site.data import SourcePage
from perfdb.site.overview import NO_DATA, html, of_results
from perfdb.site.pages import Contents, all_pages, release_pages
from perfdb.site.words import myst, natural, slug
from tests.site.samples import address, published, result, run_page


def test_an_empty_store_has_the_two_lists_and_they_say_how_to_get_data() -> None:
    pages = all_pages(Contents())
    assert ["performance/index", "performance/audit", "runs/index"] == [page.name for page in pages]
    assert [True, False, True] == ["{perfdb-no-data}" in page.text for page in pages]
    assert "There are no findings." in pages[1].text
    assert "perfdb ingest" in NO_DATA.text


def test_there_is_a_page_for_each_release_run_and_source() -> None:
    source = SourcePage(path="data/published/dfm.md", sha256="a" * 64, text="# DFM")
    contents = Contents((result(), published()), (run_page(4.0, 4.0, 4.0),), (source,))
    assert [
        "performance/index",
        "performance/megatron-core/0.16.0",
        "performance/dfm/main",
        "performance/audit",
        "runs/index",
        "runs/run-1",
        f"sources/{'a' * 16}",
    ] == [page.name for page in all_pages(contents)]


def test_the_newest_release_of_a_framework_comes_first() -> None:
    pages = release_pages([result(release=version) for version in ("0.9.1", "0.16.0", None)])
    assert ["0.16.0", "0.9.1", None] == [page.release for page in pages]


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
        (section.task, section.variant, [table.system for table in section.systems])
        for section in page.sections
    ]


def test_published_rows_keep_the_order_of_their_page_and_come_before_measured_ones() -> None:
    rows = [result(), published(framework="megatron-core", release="0.16.0", source_line=9)]
    rows += [published(framework="megatron-core", release="0.16.0", source_line=8)]
    rows = [row.model_copy(update={"system": "dgx-h100", "variant": None}) for row in rows]
    [page] = release_pages(rows)
    assert [8, 9, None] == [row.source_line for row in page.results]


def test_the_overview_has_a_card_for_the_newest_release_with_its_best_figure() -> None:
    old = result(release="0.9.1", model_tflops_per_sec_per_gpu=9999)
    slow = result(model_tflops_per_sec_per_gpu=1.0)
    overview = of_results([old, slow, result()], num_runs=3)
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


def test_versions_are_ordered_by_their_numbers() -> None:
    versions = ["25.04", "main", "0.9", "0.16.0", "0.16.0rc1"]
    assert ["main", "0.9", "0.16.0", "0.16.0rc1", "25.04"] == sorted(versions, key=natural)


def test_a_release_that_nobody_stated_has_an_address() -> None:
    assert "performance/dfm/unattributed" == addresses.of_release("dfm", None)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("torchrun", "--nodes", "1", "a b.py"), "torchrun \\\n    --nodes 1 'a b.py'"),
        ((), ""),
    ],
)
def test_a_command_reads_as_a_person_would_type_it(command: tuple[str, ...], shown: str) -> None:
    assert shown == shell(command)
