"""Every table of the pages that were published, made again from the store, cell for cell.

The pages are read here without perfdb, and so is the HTML. A figure that the audit objects to is
printed as it was published.
"""

import re
import shutil
from collections.abc import Iterator
from itertools import takewhile

import pytest
from bs4 import BeautifulSoup
from bs4.element import Tag

from perfdb import ingest
from perfdb.db.session import store_url
from perfdb.pages.base import PageContext
from perfdb.site import columns
from tests.site.conftest import ROOT, Site

SEEDS = ROOT.parent / "shared" / "seeds"
PUBLISHED = ROOT / "data" / "published"
CONF = 'extensions = ["perfdb.site"]\nhtml_theme = "basic"\n'
INDEX = "# Site\n\n```{toctree}\n:glob:\n\n*/index\n```\n"
UNKNOWN = {"", "-", "NA"}
"""What the pages print for unknown. The site has one sign for it."""

Table = list[list[str]]
"""The cells of a table, its head first."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SEEDS.is_dir(), reason="the published pages are not here"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site of the published figures alone, built."""
    folder = tmp_path_factory.mktemp("seeds")
    url = store_url(str(folder / "store.sqlite"))
    pages = [page for page in sorted(PUBLISHED.glob("*.md")) if page.name != "nemotron4.md"]
    ingest.ingest(pages, url, ingest.Options(PageContext()))
    at_scale = ingest.Options(PageContext(release="unversioned"))
    ingest.ingest([PUBLISHED / "nemotron4.md"], url, at_scale)
    docs = folder / "docs"
    docs.mkdir()
    (docs / "conf.py").write_text(CONF)
    (docs / "index.md").write_text(INDEX)
    site = Site(docs, url)
    done = site.build()
    assert 0 == done.returncode, done.stderr
    return site


def shown(site: Site, page: str) -> dict[tuple[str, str], Table]:
    """The tables of a page of the site by their section and tab."""
    html = BeautifulSoup((site.html / "performance" / page).read_text(), "html.parser")
    for mark in html.select("sup.perf-mark"):
        mark.decompose()  # the number of a note below the table
    tables: dict[tuple[str, str], Table] = {}
    for section in html.select("section section"):
        assert section.h2 is not None
        title = next(section.h2.stripped_strings)
        labels = [label.get_text(strip=True) for label in section.select("label.sd-tab-label")]
        for label, table in zip(labels, section.select("table.perf"), strict=True):
            rows = [list(map(words, row.select("th, td"))) for row in table.select("tr")]
            tables[title, label] = rows
    return tables


def words(cell: Tag) -> str:
    return re.sub(r"\s+", " ", cell.get_text(" ", strip=True))


def squeezed(title: str) -> str:
    """A title up to its spaces."""
    return re.sub(r"\s+", "", title)


def cells(table: Table) -> list[dict[str, str]]:
    """The rows by the titles of their columns."""
    titles = list(map(squeezed, table[0]))
    assert len(set(titles)) == len(titles)
    return [dict(zip(titles, row, strict=True)) for row in table[1:]]


def as_published(table: Table) -> list[dict[str, str]]:
    """The rows of a published table, with the one sign for what is unknown."""
    return [
        {title: "–" if text in UNKNOWN else text for title, text in row.items()}
        for row in cells(table)
    ]


def only(titles: Iterator[str] | list[str], rows: list[dict[str, str]]) -> list[dict[str, str]]:
    wanted = list(titles)
    return [{title: row[title] for title in wanted} for row in rows]


def assert_same(published: Table, ours: Table, *, moved: tuple[str, ...] = ()) -> None:
    """Every column with its title, every cell, and the order but for columns that are moved."""
    expected = as_published(published)
    titles = list(map(squeezed, published[0]))
    assert expected == only(titles, cells(ours))
    kept = [title for title in titles if title not in moved]
    assert kept == [title for title in map(squeezed, ours[0]) if title in kept]


def piped(lines: list[str]) -> Table:
    """A pipe table without its rule."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    return [row for row in rows if not set("".join(row)) <= set("-: ")]


def nemo() -> dict[tuple[str, str], Table]:
    """The tables of NeMo's page, of which every cell stands on a line of its own."""
    tables: dict[tuple[str, str], Table] = {}
    text = (SEEDS / "nemo-25.04-performance-summary.txt").read_text()
    for part in re.split(r"\n(?=Pre-training#|Fine-Tuning#)", text)[1:]:
        title = "Pre-training" if part.startswith("Pre") else "Fine-tuning"
        for block in part.split("System: ")[1:]:
            system, *lines = block.splitlines()
            rule = next(number for number, line in enumerate(lines) if line.startswith("---"))
            head = [line.removesuffix("|").strip() for line in lines[:rule]]
            body = [line.removesuffix("|").strip() for line in lines[rule + 1 :]]
            width = len(head)
            starts = range(0, len(body) // width * width, width)
            tables[title, system] = [head, *(body[start : start + width] for start in starts)]
    return tables


def test_nemo_pre_training_and_fine_tuning_are_printed_as_published(made: Site) -> None:
    """Three systems twice; supervised and low-rank fine-tuning are one table with a Task."""
    expected, ours = nemo(), shown(made, "nemo/25.04.html")
    assert 6 == len(expected)
    assert 39 == sum(len(table) - 1 for table in expected.values())
    assert expected.keys() == ours.keys()
    for name, table in expected.items():
        assert_same(table, ours[name])


def test_automodel_is_printed_as_published_with_its_figures_first(made: Site) -> None:
    """The only family whose figures are moved: they stand behind the number of GPUs."""
    text = (SEEDS / "automodel-performance-summary.txt").read_text()
    parts = re.split(r"System: DGX-H100", text)[1:]
    expected = [piped([it for it in part.splitlines() if it.startswith("|")]) for part in parts]
    assert [9, 6] == [len(table) - 1 for table in expected]
    ours = shown(made, "automodel/main.html")
    moved = ("TimeperGlobalStep(s)", "ModelTFLOPs/sec/GPU", "Tokens/sec/GPU")
    for table, title in zip(expected, ("Pre-training", "Fine-tuning (LoRA)"), strict=True):
        assert_same(table, ours[title, "DGX-H100"], moved=moved)
        places = [squeezed(name) for name in ours[title, "DGX-H100"][0]]
        assert ["#GPUs", *moved] == places[2:6]


def test_dfm_is_printed_as_published(made: Site) -> None:
    """Four tables of two backends, whose columns differ."""
    text = (SEEDS / "dfm-performance-benchmarks.md").read_text()
    expected: dict[tuple[str, str], Table] = {}
    backend = ""
    for block in re.split(r"\n(?=## |::: \{tab-item\}|### System: )", text):
        if block.startswith("## "):
            backend = "NeMo AutoModel" if "AutoModel" in block else "Megatron-Core"
        elif found := re.match(r"::: \{tab-item\} (\S+)|### System: (\S+)", block):
            lines = [line for line in block.splitlines() if line.startswith("|")]
            title = f"Pre-training: {backend}"
            expected[title, found[1] or found[2]] = piped(lines)
    assert 4 == len(expected)
    ours = shown(made, "dfm/main.html")
    assert expected.keys() == ours.keys()
    for name, table in expected.items():
        assert_same(table, ours[name])
        assert {*map(squeezed, table[0]), "Origin"} == set(map(squeezed, ours[name][0]))


def test_the_columns_that_dfm_has_not_filled_yet_are_known_in_their_order() -> None:
    """Its page without results names more columns; they are there when results have them."""
    lines = (SEEDS / "dfm-performance-skeleton.md").read_text().splitlines()
    [head] = {line for line in lines if line.startswith("| Model")}
    titles = [title.strip() for title in head.strip("|").split("|")]
    assert titles == [one.title for one in columns.DFM.columns if one.title in titles]


def at_scale() -> Iterator[dict[str, str]]:
    """The rows of Nemotron-4's page: configuration by size and GPUs, figures by precision."""
    text = (SEEDS / "nemotron4-dgxc-recipe.txt").read_text()
    blocks = re.split(r"\n(?=Size \||Nemotron4 \w+ \w+ \|)", text)[1:]
    tables = [piped([*takewhile(lambda it: "|" in it, block.splitlines())]) for block in blocks]
    layouts = {
        (row["Size"], row["GPUs"]): row
        for table in tables
        if "Size" == table[0][0]
        for row in cells(table)
    }
    for table in (one for one in tables if one[0][0].startswith("Nemotron4 ")):
        _, size, precision = table[0][0].split()
        for place, scale in enumerate(table[0][1:], start=1):
            gpus = scale.partition("x")[0]
            figures = {squeezed(row[0]): row[place] for row in table[1:]}
            layout = layouts[size, gpus]
            assert precision in layout["Precision"].split("/")
            named = {"Model": f"Nemotron4 {size}", "Precision": precision}
            yield (
                {title: text for title, text in layout.items() if title != "Size"} | named | figures
            )


def test_nemotron_at_scale_is_printed_as_published(made: Site) -> None:
    """Its two kinds of tables are one: what was run and what it achieved, a row for each scale."""
    expected = [
        {title: "–" if text in UNKNOWN else text for title, text in row.items()}
        for row in at_scale()
    ]
    assert 24 == len(expected)
    ours = shown(made, "nemo/unversioned.html")["Pre-training", "DGX-H100"]
    assert expected == only(list(expected[0]), cells(ours))
    layout = "Precision|GPUs|SeqLen|Layers|TP|PP|CP|EP|DP|VP|MBS|GBS|GA"
    titles = [title for title in map(squeezed, ours[0]) if title in layout.split("|")]
    assert layout == "|".join(titles)


def test_figures_that_are_known_to_be_wrong_are_printed_and_flagged(made: Site) -> None:
    """A global batch of one sample on 256 GPUs is what was published, and an error."""
    page = BeautifulSoup((made.html / "performance/nemo/25.04.html").read_text(), "html.parser")
    rows = [
        row
        for row in page.select("table.perf tbody tr")
        if "Mixtral-8x22B" in row.get_text() and row.select("a.perf-flag.error")
    ]
    assert 3 == len(rows)
    assert {("256", "1")} == {tuple(map(words, row.select("td.n")[:2])) for row in rows}


def test_a_published_figure_leads_to_what_stands_behind_it(made: Site) -> None:
    """One click from the figure: the line, what was printed, and what is not known."""
    page = made.html / "performance/dfm/main.html"
    link = BeautifulSoup(page.read_text(), "html.parser").select_one("table.perf a.e")
    assert link is not None
    source, anchor = str(link["href"]).split("#")
    document = BeautifulSoup((page.parent / source).resolve().read_text(), "html.parser")
    entry, of_all = document.find(id=anchor), document.find(id="all-rows")
    assert isinstance(entry, Tag)
    assert isinstance(of_all, Tag)
    said = words(entry)
    assert "as published, on line" in said
    assert f"Model TFLOP / sec / GPU {link.get_text()}" in said
    assert entry.select('a[href="#all-rows"]')
    assert "Steps the page does not say how many" in words(of_all)


def test_the_same_page_is_built_without_its_downloads_being_lost(made: Site) -> None:
    """A second build reads nothing again, and the files of tables are still there."""
    before = {path.name for path in (made.html / "_data").rglob("*.csv")}
    shutil.rmtree(made.html / "_data")
    made.build()
    assert before == {path.name for path in (made.html / "_data").rglob("*.csv")}
    assert "nemo-25.04-pretrain-dgx-h100.csv" in before
