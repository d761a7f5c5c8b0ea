"""The whole site, built by Sphinx: it is clean, it is right, and it is always the same."""

import hashlib
import json
import re
import shlex
from pathlib import Path

import pytest
from bs4.element import Tag
from sphinx.cmd.build import main as sphinx
from sqlalchemy import URL

from perfdb.db.session import store_url
from perfdb.pages import reader
from perfdb.pages.base import PageContext
from perfdb.record import Figures
from perfdb.site.addresses import of_source
from tests.factories import EVIL, stored, write_run
from tests.shell import Shell
from tests.site.conftest import DFM, ROOT, Site
from tests.site.samples import soup, table, words

pytestmark = pytest.mark.slow


def found(element: Tag | None) -> Tag:
    assert isinstance(element, Tag)
    return element


def test_a_built_page_reads_back_as_what_it_was_made_from(site: Site) -> None:
    """Every case and figure of DFM's page through the store and back; of runs, rates that agree."""
    source = reader.read("source", DFM.read_text(), PageContext(framework="dfm", release="main"))
    built = (site.html / "performance/dfm/main.html").read_text()
    read = reader.read("built", built, PageContext(framework="dfm", release="main"))
    assert () == read.problems
    known = {
        (one.case.system, one.case.num_gpus, one.case.model, one.case.tensor_parallel): one
        for one in source.results
    }
    assert len(source.results) == len(known) == len(read.results)
    for one in read.results:
        own = one.case
        wanted = known[own.system, own.num_gpus, own.model, own.tensor_parallel]
        assert wanted.case.model_copy(update={"kernels": own.kernels}) == own
        assert wanted.figures == one.figures

    built = (site.html / "performance/megatron-core/0.16.0.html").read_text()
    read = reader.read("built", built, PageContext(framework="megatron-core", release="0.16.0"))
    rated = [one for one in read.results if one.figures != Figures()]
    assert rated
    assert any(one.figures.model_tflops_per_sec_per_gpu and one.figures.mfu for one in rated)
    for one in rated:
        assert one.figures.step_time_s
        tokens = one.case.global_batch_size * one.case.sequence_length / one.case.num_gpus
        rate = pytest.approx(tokens / one.figures.step_time_s, rel=0.01)
        assert one.figures.tokens_per_sec_per_gpu == rate


def test_a_published_row_leads_to_its_line(site: Site) -> None:
    """By way of the entry that says what is behind its figures."""
    page = site.html / "performance/dfm/main.html"
    link = found(soup(page).select_one("table.perf td a"))
    source, anchor = str(link["href"]).split("#")
    made = soup((page.parent / source).resolve())
    entry = found(made.find(id=anchor))
    assert f"Model TFLOP / sec / GPU {link.get_text()}" in words(entry)
    assert entry.select('a[href="#all-rows"]')
    assert "Steps not stated on the page" in words(made.find(id="all-rows"))
    line = found(entry.find("a", string=re.compile(r"^line \d+$")))
    target = made.find(id=str(line["href"]).removeprefix("#"))
    number, text = found(target).get_text(" ", strip=True).split(" ", maxsplit=1)
    assert DFM.read_text().splitlines()[int(number) - 1] == text


def test_a_measured_row_leads_to_its_run_with_recipe_steps_and_raw_files(site: Site) -> None:
    page = site.html / "performance/megatron-core/0.16.0.html"
    link = found(soup(page).find("a", string="1 of 2 runs"))
    run = (page.parent / str(link["href"])).resolve()
    made = soup(run)
    assert "name: llama3-8b\n" == found(made.select_one("section#recipe pre")).get_text()
    assert 10 == len(made.select("section#steps tbody tr"))
    assert made.select_one("section#by-step svg") is not None
    console = found(made.find("a", class_="download", string=re.compile("console.log")))
    assert "step 1\nstep 2\n" == (run.parent / str(console["href"])).read_text()[:14]

    page = site.html / "recipes/llama3-8b.html"
    made = soup(page)
    assert ["name: llama3-8b\n", "perfdb run recipe.yaml\n"] == [
        block.get_text() for block in made.select("section#recipe pre")
    ]
    download = found(made.find("a", class_="download"))
    assert "name: llama3-8b\n" == (page.parent / str(download["href"])).read_text()


def facts_of(drawer: Tag, title: str) -> dict[str, str]:
    """The lines below a title of a drawer."""
    [part] = [it for it in drawer.select(".perf-drawer-groups > div") if title == words(it.p)]
    return {words(it.th): words(it.td) for it in part.select("tr")}


def test_a_drawer_of_a_row_has_what_reproduce_prints(site: Site, perfdb: Shell) -> None:
    """Of the row that the entry is of, by the command that the drawer gives."""
    source = site.html / f"{of_source(hashlib.sha256(DFM.read_bytes()).hexdigest())}.html"
    drawers = soup(source).select("article > details.perf-drawer")
    assert 5 == len(drawers)
    [only] = drawers[2].select("pre")  # perfdb does not start DFM
    _, *word = shlex.split(only.get_text())
    recipes = ("--recipes", str(ROOT / "recipes"), "--db", str(site.url))
    known = json.loads(perfdb(*word, *recipes, "--json").stdout)
    configuration = facts_of(drawers[2], "Configuration")
    assert known["configuration"].keys() == configuration.keys()
    assert ("14b" in configuration["model"], str(known["configuration"]["num_gpus"])) == (
        True, configuration["num_gpus"]
    )  # fmt: skip
    made = facts_of(drawers[2], "Made from")
    assert (known["case"], None, None) == (made["case"], known["container"], known["run_again"])


def test_a_run_says_how_to_have_it_again_and_what_changed_since_the_one_before(site: Site) -> None:
    """Its repeat is 1 % slower than 12.15 s, in the median; no drawer names the machine."""
    made = soup(site.html / "runs/dgx-h100-bf16-0.16.0-1.html")
    drawer = found(made.select_one("section#figures > details"))
    assert not drawer.has_attr("open")
    assert "perfdb reproduce dgx-h100-bf16-0.16.0-1" == words(drawer.pre)
    assert "console.log" == words(drawer.select_one("a.download"))
    environment = facts_of(drawer, "Environment")
    assert ("Linux 6.1" in environment["os"], "hostname" in environment) == (True, False)
    [line] = table(found(made.select_one("section#since-the-run-before")))
    assert {"Field": "steps: step_time_s", "Before": "12.150", "Here": "12.271"} == line
    first = soup(site.html / "runs/dgx-h100-fp8_cs-0.9.1-0.html")
    assert first.select_one("section#since-the-run-before") is None


def test_names_full_of_markup_print_as_text(site: Site) -> None:
    run_id = EVIL.replace("/", "")
    [run] = [page for page in (site.html / "runs").glob("*.html") if "alert" in page.name]
    made = soup(run)
    assert EVIL in words(made.h1)
    assert run_id == words(made.select_one("table.perf-facts code"))
    assert EVIL in words(made.select_one("section#case"))
    command = found(made.select_one("section#command pre"))
    assert [EVIL] == shlex.split(command.get_text())
    evil = [page for page in site.html.rglob("*.html") if "alert(1)" in page.read_text()]
    kinds = {page.relative_to(site.html).parts[0] for page in evil}
    assert {"changes", "index.html", "models", "performance", "runs", "systems"} <= kinds
    for page in evil:
        made = soup(page)
        assert "alert(1)" not in " ".join(script.text for script in made.find_all("script"))
        assert [] == [tag for tag in made.find_all("a") if "alert" in str(tag.get("onclick"))]


def test_a_run_that_failed_is_listed_with_its_reason_and_names_no_machine(site: Site) -> None:
    made = soup(site.html / "runs/out-of-memory.html")
    assert "out of memory" in words(made.select_one("table.perf-facts"))
    assert "There are no figures" in words(made.select_one("section#figures"))
    release_page = soup(site.html / "performance/megatron-core/0.16.0.html")
    aside = found(release_page.select_one("details:not([open]).perf-more"))
    assert "1 run without figures" == words(aside.summary)
    [line] = aside.select("li")
    assert "the run ran out of memory" in words(line)
    assert "../../runs/out-of-memory.html" == found(line.a)["href"]
    assert [] == release_page.select(f"tr#{line['id']}")
    assert "Linux 6.1" in made.get_text()
    assert "node-1" not in made.get_text()
    assert str(site.docs.parents[1]) not in made.get_text()


def test_the_landing_page_leads_to_the_newest_releases_and_to_all_data(site: Site) -> None:
    start = soup(site.html / "index.html")
    titles = [words(card) for card in start.select(".perf-card h3")]
    assert "Megatron-Core 0.16.0" in titles
    assert "Megatron-Core 0.9.1" not in titles
    assert "reference/data.html" == found(start.find("a", string="Download all data"))["href"]
    lists = site.html / "performance"
    offered = found(soup(lists / "index.html").select_one(".perf-downloads"))
    files = [lists / str(link["href"]) for link in offered.select("a[download]")]
    assert {".csv", ".json", ".parquet"} == {file.suffix for file in files}
    assert all(file.is_file() for file in files)


def test_every_link_leads_somewhere_and_no_name_is_on_a_page_twice(site: Site) -> None:
    pages = [*site.html.rglob("*.html")]
    assert 30 < len(pages)
    missing = set()
    for page in pages:
        text = page.read_text()
        ids = re.findall(r'<[^>]*?\sid="([^"]+)"', text)
        assert len(ids) == len(set(ids)), page
        assert ids or page.parent.name == "_static"
        for target in re.findall(r'href="([^"#?:]+)[^":]*"', text):
            if not (page.parent / target.replace("/", f"{site.html}/", target[0] == "/")).exists():
                missing.add(f"{page.relative_to(site.html)} -> {target}")
    assert set() == {one for one in missing if not one.startswith("_static")}


def test_a_page_says_what_it_is_below(site: Site) -> None:
    """Whether a list has it, or it is one of thousands that none has; the list itself is home's."""
    for page, above in (
        ("runs/out-of-memory.html", ("Runs", "index.html")),
        ("performance/audit.html", ("Performance", "index.html")),
        ("performance/dfm/main.html", ("Performance", "../index.html")),
        ("sources/*.html", ("Performance", "../performance/index.html")),
    ):
        shown = soup(next(site.html.glob(page)))
        links = shown.select(".bd-breadcrumbs a:not([aria-label=Home])")
        assert [above] == [(words(link), link["href"]) for link in links], page
    assert 1 == len(soup(site.html / "runs/index.html").select(".bd-breadcrumbs a"))


def test_the_search_knows_names_and_no_figures(site: Site) -> None:
    """1,022.26 TFLOP/s of WAN 2.1 on DGX-GB300 is on DFM's page, and in no list of words."""
    index = (site.html / "searchindex.js").read_text()
    terms = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))["terms"]
    assert {"gb300", "wan"} <= terms.keys()
    assert "1022" not in terms


def test_reference_pages_say_what_the_code_says(site: Site) -> None:
    for page, text in {
        "systems": "dgx-gb200", "models": "llama3-8b", "metrics": "tokens_per_sec_per_gpu",
        "cli": "perfdb ingest [OPTIONS]", "schema": "source_line",
    }.items():  # fmt: skip
        assert text in words(soup(site.html / f"reference/{page}.html").article), page


def test_neither_the_site_nor_what_sphinx_keeps_names_the_store(site: Site) -> None:
    """Its address may hold a password."""
    address = str(site.url.database).encode()
    kept = [path for path in site.doctrees.rglob("*") if path.is_file()]
    served = [path for path in site.html.rglob("*") if path.is_file()]
    assert site.doctrees / "environment.pickle" in kept
    assert [] == [path for path in (*kept, *served) if address in path.read_bytes()]
    assert [] == [path for path in served if path.suffix == ".pickle"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_a_named_store_that_cannot_be_read_stops_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With an empty site in its place, every figure would be gone."""
    url = store_url(str(tmp_path / "other.sqlite"))
    monkeypatch.setenv("PERFDB_URL", url.render_as_string())
    (tmp_path / "conf.py").write_text('extensions = ["perfdb.site"]\n')
    (tmp_path / "index.md").write_text("# Site\n")
    for said in (
        "other.sqlite: no database here; run `perfdb ingest` first",
        f"not a perfdb database; run `perfdb db upgrade --db {url}`",
    ):
        assert 2 == sphinx(["-q", "-b", "html", str(tmp_path), str(tmp_path / "html")])
        assert said in capsys.readouterr().err
        (tmp_path / "other.sqlite").touch()


def test_the_runs_of_logs_have_pages_without_recipe_start_and_command(addressed: Site) -> None:
    """What a log does not say is shown as unknown."""
    html = addressed.html
    [page] = (html / "runs").glob("log-*.html")
    text = words(soup(page))
    for known in ("Recipe – ", "Started – ", "has no recipe file.", "has no command."):
        assert known in text
    assert "finished" in words(soup(html / "runs" / "index.html"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.parametrize(
    ("builder", "page"), [("dirhtml", "models/llama3-8b/index.html"), ("singlehtml", "index.html")]
)
def test_other_builders_of_html_make_the_pages_too(
    sqlite: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builder: str, page: str
) -> None:
    """One gives each page a folder of its own, the other makes a single page without a search."""
    stored(sqlite, write_run(tmp_path / "runs"))
    (tmp_path / "conf.py").write_text('extensions = ["perfdb.site"]\n')
    listed = "models/index\nmodels/llama3-8b\n"
    (tmp_path / "index.md").write_text(f"# Site\n\n```{{toctree}}\n{listed}```\n")
    monkeypatch.setenv("PERFDB_URL", sqlite.render_as_string())
    for _ in range(2):
        assert 0 == sphinx(["-q", "-b", builder, str(tmp_path), str(tmp_path / "html")])
        assert "Llama 3 8B" in soup(tmp_path / "html" / page).get_text()
