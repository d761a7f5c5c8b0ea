"""Every table of the pages that were published, made again from the store, cell for cell.

The pages are read by `tests.seeds`, without perfdb. A figure that the audit objects to is printed
as it was published.
"""

import re
from collections.abc import Callable

import pytest

from perfdb import ingest
from perfdb.db.session import store_url
from perfdb.groups import grouped
from perfdb.pages.base import PageContext
from perfdb.site import columns, read
from perfdb.site.build import all_pages, with_comparisons
from perfdb.site.page import Section, SitePage, Tabs
from perfdb.site.pages.recipes import with_recipes
from tests import seeds
from tests.seeds import SeedRow
from tests.site.samples import html, soup, table, words

PUBLISHED = seeds.ROOT / "data" / "published"
UNKNOWN = {"", "-", "NA"}
"""What the pages print for unknown. The site has one sign for it."""
FIGURES = (
    "Time per Global Step (s)", "Model TFLOPs/sec/GPU", "Tokens/sec/GPU", "Tokens / sec / GPU",
    "Model TFLOP / sec / GPU",
)  # fmt: skip
NAMING = ("Model", "Task", "Precision", "#-GPUs", "#GPUs")
"""The columns of AutoModel that are moved to the front."""

pytestmark = pytest.mark.skipif(not seeds.FOLDER.is_dir(), reason="no seeds beside the project")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SitePage]:
    """The pages of a site of the published figures alone, by their addresses."""
    url = store_url(str(tmp_path_factory.mktemp("seeds") / "store.sqlite"))
    assert () == ingest.ingest([PUBLISHED], url, ingest.Options(PageContext())).unattributed
    known = with_recipes(read.stored(url), seeds.ROOT / "recipes")
    return {page.name: page for page in all_pages(with_comparisons(known))}


def printed(page: SitePage) -> list[list[dict[str, str]]]:
    """The tables of a page of a release, without the numbers of notes."""
    tables = []
    for section in page.body():
        for tabs in section.blocks if isinstance(section, Section) else ():
            for tab in tabs.tabs if isinstance(tabs, Tabs) else ():
                shown = soup(html(tab.blocks))
                for mark in shown.select("sup.perf-mark, .perf-link"):
                    mark.decompose()
                tables.append(table(shown))
    return tables


def as_published(row: SeedRow) -> dict[str, str]:
    """The cells, numbers of four digits and more with commas: 13812.5 is 13,812.5."""
    return {title: "–" if text in UNKNOWN else commas(text) for title, text in row.cells.items()}


def commas(text: str) -> str:
    found = re.fullmatch(r"(\d+)((?:\.\d+)?%?)", text)
    return f"{int(found[1]):,}{found[2]}" if found else text


def only(titles: list[str], rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{title: row.get(title, "missing") for title in titles} for row in rows]


@pytest.mark.parametrize(
    ("read", "page", "count"),
    [
        (seeds.nemo, "nemo/25.04", 39),
        (seeds.automodel, "automodel/main", 15),
        (seeds.dfm, "dfm/main", 5),
        (seeds.nemotron4, "nemo/dgxc-benchmarking", 24),
    ],
)
def test_a_seed_is_printed_as_published(
    read: Callable[[], list[SeedRow]], page: str, count: int, pages: dict[str, SitePage]
) -> None:
    """Every table with its rows and its columns in their order, and no other row."""
    found, ours = read(), printed(pages[f"performance/{page}"])
    assert count == len(found) == sum(map(len, ours))
    parts = grouped(
        found, lambda row: tuple([row.said.get(it) for it in ("system", "task", "variant")])
    )
    assert len(parts) == len(ours)
    for rows in parts.values():
        titles = list(rows[0].cells)
        expected = list(map(as_published, rows))
        [one] = [it for it in ours if only(titles, it) == expected]
        if read is not seeds.nemotron4:  # it has a column for each scale
            order = [title for title in one[0] if title in titles]
            figures = [it for it in order if it in FIGURES]
            assert [it for it in order if it not in FIGURES] == [
                it for it in titles if it not in FIGURES
            ]
            first = len([it for it in order if it in NAMING])
            assert order[first : first + len(figures)] == figures


def test_the_columns_that_dfm_has_not_filled_yet_are_known_in_their_order() -> None:
    """Its page without results names more columns; they are there when results have them."""
    lines = (seeds.FOLDER / "dfm-performance-skeleton.md").read_text().splitlines()
    [head] = {line for line in lines if line.startswith("| Model")}
    titles = [title.strip() for title in head.strip("|").split("|")]
    assert titles == [one.title for one in columns.DFM.columns if one.title in titles]


def test_figures_that_are_known_to_be_wrong_are_printed_and_flagged(
    pages: dict[str, SitePage],
) -> None:
    """A global batch of one sample on 256 GPUs is what was published, and an error."""
    rows = [
        row
        for row in soup(pages["performance/nemo/25.04"]).select("table.perf tbody tr")
        if "Mixtral-8x22B" in row.get_text() and row.select("a.perf-flag.error")
    ]
    assert 3 == len(rows)
    numbers = [list(map(words, row.select("td.n"))) for row in rows]
    assert {("256", "1")} == {(gpus, gbs) for gpus, _, _, gbs, *_ in numbers}


def test_the_coverage_of_every_row_is_counted_and_leads_to_the_row_and_its_recipe(
    pages: dict[str, SitePage],
) -> None:
    """83 rows, counted by hand; each verdict of the deep check is in one row."""
    shown = soup(pages["performance/coverage"])
    counts = [words(it) for it in shown.select(".perf-counts strong")]
    of_releases = [str(it["href"]).removeprefix("perfdb:") for it in shown.select("table.perf a")]
    rows = [it for page in of_releases for it in soup(pages[page]).select("table.perf tbody tr")]
    built = sum("yes" == words(it.select("td")[2]) for it in rows)
    assert (["83", "83", str(built), "0", "0"], 83) == (counts, len(rows))
    assert 50 < built
    anchors = {name: {it["id"] for it in soup(page).select("tr[id]")}
               for name, page in pages.items() if name.startswith("performance/")}  # fmt: skip
    for it in rows:
        row, recipe = (str(link["href"]).removeprefix("perfdb:") for link in it.select("a"))
        document, _, anchor = row.partition("#")
        assert anchor in anchors[document]
        assert words(it.a) in words(soup(pages[recipe]))
    swapped = [it for it in rows if "global_batch_size 1 → " in words(it)]
    assert 3 == len(swapped), "the rows of Mixtral 8x22B that contradict themselves"
