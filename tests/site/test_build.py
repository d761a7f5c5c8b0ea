"""The whole site, built by Sphinx: it is clean, it is right, and it is always the same."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from bs4.element import Tag
from sqlalchemy import URL

from perfdb.db import migrate
from perfdb.db.session import store_url
from perfdb.record import Figures
from perfdb.site.addresses import FOLDERS
from perfdb.site.files import is_made
from tests.factories import case, published, release, stored, write_run
from tests.site.conftest import DFM, EVIL, SEED, Site, site_of

pytestmark = pytest.mark.slow

Tables = dict[tuple[str, str], list[list[str]]]
"""Backend and system to the cells of the table, its head first."""


def soup(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(), "html.parser")


def words(element: Tag | None) -> str:
    assert element is not None
    return element.get_text(" ", strip=True)


def text_of(element: Tag | None) -> str:
    assert element is not None
    return element.get_text()


def printed_tables(text: str) -> Tables:
    """The tables of a published DFM page, read without perfdb."""
    tables: Tables = {}
    backend = system = ""
    for line in text.splitlines():
        if line.startswith("## "):
            backend = "automodel" if "automodel" in line.lower() else "megatron-core"
        if found := re.search(r"(?:tab-item\} |System: )(\S+)", line):
            system = found[1]
        if line.startswith("|") and not line.startswith("|-"):
            row = [cell.strip() for cell in line.strip("|").split("|")]
            tables.setdefault((backend, system), []).append(row)
    return tables


def shown_tables(page: Path) -> Tables:
    """The tables of a page of the site, without where a row is from and the marks of its notes."""
    tables: Tables = {}
    made = soup(page)
    for mark in made.select("sup.perf-mark"):
        mark.extract()
    for section in made.select("section section"):
        title = words(section.h2).lower()
        backend = "automodel" if "automodel" in title else "megatron-core"
        labels = [words(label) for label in section.select("label.sd-tab-label")]
        for system, table in zip(labels, section.select("table.perf"), strict=True):
            rows = [[words(cell) for cell in row.select("th, td")] for row in table.select("tr")]
            assert "Origin" == rows[0][-1]
            tables[backend, system] = [row[:-1] for row in rows]
    return tables


@pytest.mark.parametrize(
    ("source", "page"),
    [
        pytest.param(DFM, "performance/dfm/main.html", id="ours"),
        pytest.param(
            SEED,
            "performance/dfm/seed.html",
            id="as-published",
            marks=pytest.mark.skipif(not SEED.is_file(), reason="the published page is not here"),
        ),
    ],
)
def test_a_published_page_is_made_again_from_the_store_cell_for_cell(
    site: Site, source: Path, page: str
) -> None:
    expected = printed_tables(source.read_text())
    assert 4 == len(expected)
    assert expected == shown_tables(site.html / page)


def test_a_published_row_leads_to_its_line(site: Site) -> None:
    """By way of the entry that says what stands behind its figures."""
    page = site.html / "performance/dfm/main.html"
    link = soup(page).select_one("table.perf td a")
    assert link is not None
    source, anchor = str(link["href"]).split("#")
    made = soup((page.parent / source).resolve())
    entry = made.find(id=anchor)
    assert isinstance(entry, Tag)
    line = entry.find("a", string=re.compile(r"^line \d+$"))
    assert isinstance(line, Tag)
    target = made.find(id=str(line["href"]).removeprefix("#"))
    assert isinstance(target, Tag)
    number, text = words(target).split(" ", maxsplit=1)
    assert DFM.read_text().splitlines()[int(number) - 1] == text


def test_a_measured_row_leads_to_its_run_with_recipe_steps_and_raw_files(site: Site) -> None:
    page = site.html / "performance/megatron-core/0.16.0.html"
    link = soup(page).find("a", string="1 of 2 runs")
    assert isinstance(link, Tag)
    run = (page.parent / str(link["href"])).resolve()
    made = soup(run)
    assert "name: llama3-8b\n" == text_of(made.select_one("section#recipe pre"))
    assert 10 == len(made.select("section#steps tbody tr"))
    assert made.select_one("section#step-times svg") is not None
    console = made.find("a", class_="download", string=re.compile("console.log"))
    assert isinstance(console, Tag)
    text = (run.parent / str(console["href"])).read_text()
    assert "step 1\nstep 2\n" == text[:14]


def test_names_full_of_markup_print_as_text(site: Site) -> None:
    run_id = EVIL.replace("/", "")
    [run] = [page for page in (site.html / "runs").glob("*.html") if "alert" in page.name]
    made = soup(run)
    assert run_id == words(made.h1).removesuffix("#").strip()
    assert EVIL in words(made.select_one("section#case"))
    assert [EVIL] == shlex.split(text_of(made.select_one("section#command pre")))
    evil = [page for page in site.html.rglob("*.html") if "alert(1)" in page.read_text()]
    kinds = {page.relative_to(site.html).parts[0] for page in evil}
    assert {"changes", "index.html", "models", "performance", "runs", "systems"} <= kinds
    for page in evil:
        made = soup(page)
        assert "alert(1)" not in " ".join(script.text for script in made.find_all("script"))
        assert [] == [tag for tag in made.find_all("a") if "alert" in str(tag.get("onclick"))]


def test_a_recipe_can_be_copied_downloaded_and_run(site: Site) -> None:
    page = site.html / "recipes/llama3-8b.html"
    made = soup(page)
    assert ["name: llama3-8b\n", "perfdb run recipe.yaml\n"] == [
        text_of(block) for block in made.select("section#recipe pre")
    ]
    download = made.find("a", class_="download")
    assert isinstance(download, Tag)
    assert "name: llama3-8b\n" == (page.parent / str(download["href"])).read_text()


def test_a_run_that_failed_is_listed_with_its_reason(site: Site) -> None:
    made = soup(site.html / "runs/out-of-memory.html")
    assert "out of memory" in words(made.select_one("table.perf-facts"))
    assert "There are no figures" in words(made.select_one("section#figures"))
    release_page = soup(site.html / "performance/megatron-core/0.16.0.html")
    assert "no figures: the run was out of memory" in release_page.get_text()


def test_the_landing_page_leads_to_the_newest_releases(site: Site) -> None:
    cards = soup(site.html / "index.html").select(".perf-card h3")
    titles = [words(card) for card in cards]
    assert "Megatron-Core 0.16.0" in titles
    assert "Megatron-Core 0.9.1" not in titles


def test_every_link_inside_the_site_leads_somewhere(site: Site) -> None:
    missing = {
        f"{page.relative_to(site.html)} -> {target}"
        for page in site.html.rglob("*.html")
        if "_static" not in page.parts
        for target in re.findall(r'href="([^"#?:]+)[^":]*"', page.read_text())
        if not (page.parent / target.replace("/", f"{site.html}/", target[0] == "/")).exists()
    }
    assert set() == missing


@pytest.mark.parametrize(
    ("page", "above"),
    [
        ("runs/out-of-memory.html", ("Runs", "index.html")),
        ("performance/audit.html", ("Performance", "index.html")),
        ("performance/changelog.html", ("Performance", "index.html")),
        ("performance/dfm/main.html", ("Performance", "../index.html")),
        ("recipes/llama3-8b.html", ("Recipes", "index.html")),
        ("sources/*.html", ("Performance", "../performance/index.html")),
    ],
)
def test_a_page_says_what_it_stands_below(site: Site, page: str, above: tuple[str, str]) -> None:
    """Whether a list has it, or it is one of thousands that none has; the list itself is home's."""
    links = soup(next(site.html.glob(page))).select(".bd-breadcrumbs a:not([aria-label=Home])")
    assert [above] == [(words(link), link["href"]) for link in links]
    for listed in ("runs/index.html", "performance/index.html", "method.html"):
        assert 1 == len(soup(site.html / listed).select(".bd-breadcrumbs a"))


def test_the_page_of_a_run_names_no_machine_and_no_folder_on_it(site: Site) -> None:
    text = soup(site.html / "runs/out-of-memory.html").get_text()
    assert "Linux 6.1" in text
    assert "node-1" not in text
    assert str(site.docs.parents[1]) not in text


def test_the_search_knows_names_and_no_figures(site: Site) -> None:
    """1,022.26 TFLOP/s of WAN 2.1 on DGX-GB300 stands on DFM's page, and in no list of words."""
    index = (site.html / "searchindex.js").read_text()
    terms = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))["terms"]
    assert {"gb300", "wan"} <= terms.keys()
    assert "1022" not in terms


def test_reference_pages_say_what_the_code_says(site: Site) -> None:
    reference = site.html / "reference"
    assert "dgx-gb200" in words(soup(reference / "systems.html").article)
    assert "llama3-8b" in words(soup(reference / "models.html").article)
    assert "tokens_per_sec_per_gpu" in words(soup(reference / "metrics.html").article)
    assert "perfdb ingest [OPTIONS]" in words(soup(reference / "cli.html").article)
    schema = soup(reference / "schema.html")
    assert schema.select_one("section#table-results code") is not None


@pytest.mark.parametrize("made", [False, True], ids=["no-database", "empty-database"])
def test_a_site_without_data_says_so_and_how_to_get_some(made: bool, tmp_path: Path) -> None:
    """Before the first ingest there is no database where one is looked for that is not named."""
    url = store_url(str(tmp_path / "none.sqlite"))
    if made:
        migrate.upgrade(url)
    site = site_of(tmp_path, url)
    done = site.build(named=made)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    lists = ("changes", "models", "performance", "runs", "scaling", "systems")
    for page in ("index.html", *(f"{name}/index.html" for name in lists)):
        assert "There is no data yet" in words(soup(site.html / page).article)
        assert "perfdb ingest" in words(soup(site.html / page).article)


def test_a_store_that_is_named_and_not_there_stops_the_build(tmp_path: Path) -> None:
    """With an empty site in its place, every figure would be gone."""
    site = site_of(tmp_path, store_url(str(tmp_path / "mistyped.sqlite")))
    done = site.build()
    assert 2 == done.returncode
    assert "mistyped.sqlite: no database here; run `perfdb ingest` first" in done.stderr


def test_neither_the_site_nor_what_sphinx_keeps_names_the_store(site: Site) -> None:
    """Its address may hold a password."""
    address = str(site.url.database).encode()
    kept = [path for path in site.doctrees.rglob("*") if path.is_file()]
    served = [path for path in site.html.rglob("*") if path.is_file()]
    assert site.doctrees / "environment.pickle" in kept
    assert [] == [path for path in (*kept, *served) if address in path.read_bytes()]
    assert [] == [path for path in served if path.suffix == ".pickle"]


def test_a_store_of_another_version_stops_the_build_with_what_to_do(tmp_path: Path) -> None:
    url = store_url(str(tmp_path / "other.sqlite"))
    (tmp_path / "other.sqlite").touch()
    done = site_of(tmp_path, url).build()
    assert 2 == done.returncode
    assert f"not a perfdb database; run `perfdb db upgrade --db {url}`" in done.stderr


def test_the_same_store_makes_the_same_bytes(site: Site, tmp_path: Path) -> None:
    again = site_of(tmp_path, site.url).built()
    assert contents(site.html) == contents(again.html)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def written(site: Site) -> dict[str, int]:
    """When each page was written, in nanoseconds; Sphinx always writes these three."""
    always = {"404.html", "genindex.html", "search.html"}
    pages = [page for page in site.html.rglob("*.html") if page.name not in always]
    return {str(page.relative_to(site.html)): page.stat().st_mtime_ns for page in pages}


def test_a_build_redoes_only_what_has_changed(tmp_path: Path) -> None:
    url = store_url(str(tmp_path / "store.sqlite"))
    newer = release("0.16.1")
    others = {"framework": "nemo", "model": "llama3-70b", "system": "dgx-b200"}
    figures = Figures(tokens_per_sec_per_gpu=1_477, model_tflops_per_sec_per_gpu=711)
    scaled = [
        published(gpus, case=case(**others, num_gpus=gpus), figures=figures) for gpus in (8, 16)
    ]
    stored(url, *scaled)
    stored(url, write_run(tmp_path, run_id="one"))
    site = site_of(tmp_path, url).built()
    own = site.docs / "runs" / "notes.md"
    own.write_text("---\norphan: true\n---\n\n# Notes on runs\n")
    first = written(site.built())

    assert first == written(site.built())

    stored(url, write_run(tmp_path, run_id="two", release=newer))
    second = written(site.built())
    rewritten = {page for page in second if first.get(page) != second[page]}
    assert {
        "changes/megatron-core.html",
        "index.html",
        "models/llama3-8b.html",
        "performance/archive.html",
        "performance/changelog.html",
        "performance/megatron-core/0.16.1.html",
        "recipes/llama3-8b.html",
        "runs/index.html",
        "runs/two.html",
        "systems/dgx-h100.html",
    } <= rewritten
    assert {
        "method.html",
        "models/llama3-70b.html",
        "performance/nemo/25.04.html",
        "runs/one.html",
        "scaling/nemo/25.04/dgx-b200.html",
        "systems/dgx-b200.html",
    } <= first.keys() - rewritten

    shutil.move(tmp_path / "store.sqlite", tmp_path / "away.sqlite")
    migrate.upgrade(url)
    site.built()
    kept = [page for folder in FOLDERS for page in (site.docs / folder).rglob("*.md")]
    assert {own} == {page for page in kept if not is_made(page)}
    lists = {"archive", "audit", "changelog", "index"}
    assert lists == {page.stem for page in kept if is_made(page)}


def test_no_page_has_two_elements_of_one_name(site: Site) -> None:
    pages = [*site.html.rglob("*.html")]
    assert 30 < len(pages)
    for page in pages:
        ids = [element["id"] for element in soup(page).select("[id]")]
        assert len(ids) == len(set(ids)), page


def test_all_data_can_be_had_from_the_start_page_and_from_that_of_releases(site: Site) -> None:
    start = soup(site.html / "index.html").find("a", string="download all data")
    assert start is not None
    assert "reference/data.html" == start["href"]
    offered = soup(site.html / "performance" / "index.html").select_one(".perf-downloads")
    assert offered is not None
    assert "Download all data: CSV · JSON · Parquet · what the columns mean" == text_of(offered)
    for link in offered.select("a"):
        assert (site.html / "performance" / str(link["href"])).is_file()


def test_a_page_that_the_store_no_longer_gives_is_published_no_longer(tmp_path: Path) -> None:
    full = store_url(str(tmp_path / "full.sqlite"))
    stored(full, published(release=release("1.0")), published(release=release("2.0")))
    site = site_of(tmp_path, full).built()
    assert 2 == len([*(site.html / "performance").glob("*/*.html")])
    assert (site.html / "changes/nemo.html").is_file()
    (tmp_path / "full.sqlite").unlink()
    stored(full, published(release=release("2.0")))
    site.built()
    assert ["2.0.html"] == [page.name for page in (site.html / "performance").glob("*/*.html")]
    assert not (site.html / "changes/nemo.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("builder", "page"),
    [("dirhtml", "models/llama3-8b/index.html"), ("singlehtml", "index.html")],
)
def test_other_builders_of_html_make_the_pages_too(
    sqlite: URL, tmp_path: Path, builder: str, page: str
) -> None:
    """One gives each page a folder of its own, the other makes a single page without a search."""
    stored(sqlite, write_run(tmp_path / "runs"))
    (tmp_path / "conf.py").write_text('extensions = ["perfdb.site"]\n')
    listed = "models/index\nmodels/llama3-8b\n"
    (tmp_path / "index.md").write_text(f"# Site\n\n```{{toctree}}\n{listed}```\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", builder, tmp_path, tmp_path / "html"]
    env = os.environ | {"PERFDB_URL": sqlite.render_as_string()}
    for _ in range(2):
        subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        assert "Llama 3 8B" in soup(tmp_path / "html" / page).get_text()
