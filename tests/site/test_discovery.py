"""What search engines and other programs find: descriptions, lists of pages, addresses."""

import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from tests.factories import EVIL
from tests.site.conftest import ADDRESS, ROOT, Site
from tests.site.samples import soup

pytestmark = pytest.mark.slow

WRITTEN = sorted(
    page.relative_to(ROOT / "docs")
    for kind in (".", "tutorial", "how-to", "explanation", "reference")
    for page in (ROOT / "docs" / kind).glob("*.md")
)


def pages(site: Site) -> list[str]:
    """The addresses of all documents, as Sphinx writes them for its own search."""
    index = (site.html / "searchindex.js").read_text()
    listed = re.search(r'"?docnames"?:\s*\[(.*?)\]', index)
    assert listed is not None
    return [f"{name}.html" for name in re.findall(r'"([^"]+)"', listed[1])]


def meta(page: Path) -> dict[str, str]:
    """The meta elements of a page, by their name or property."""
    found = soup(page.read_text().partition("</head>")[0]).select("meta[content]")
    return {str(one.get("name") or one.get("property")): str(one["content"]) for one in found}


def test_a_page_that_is_written_by_hand_says_what_it_is(site: Site) -> None:
    """Its own sentence is in its head and in Open Graph, with its keywords."""
    assert 20 < len(WRITTEN)
    for page in WRITTEN:
        shown = meta((site.html / page).with_suffix(".html"))
        written = (ROOT / "docs" / page).read_text()
        described = re.search(r'^description: "?(.*?)"?$', written, re.MULTILINE)
        assert described is not None, page
        assert described[1] == shown["description"] == shown["og:description"]
        assert "perfdb" in shown["keywords"].split(", ")


def test_a_page_that_is_made_says_what_it_is(site: Site) -> None:
    """As those that are written by hand, whatever is in the names that it tells."""
    for page, sentence in (
        ("performance/dfm/main", "NeMo DFM main: 5 published results of 1 model on DGX-H100, "
         "DGX-GB200 and DGX-GB300."),
        ("models/script-*", f"{EVIL}: 1 measured result of Megatron-Core 0.16.0."),
    ):  # fmt: skip
        [made] = site.html.glob(f"{page}.html")
        shown = meta(made)
        assert sentence == shown["description"] == shown["og:description"]
        assert "performance, benchmarks, throughput, gpu, reference" == shown["keywords"]


def test_a_site_without_an_address_names_none(site: Site) -> None:
    """No sitemap, no canonical links, and nothing absolute in Open Graph."""
    assert not (site.html / "sitemap.xml").exists()
    assert "og:url" not in meta(site.html / "index.html")
    assert 'rel="canonical"' not in (site.html / "index.html").read_text()


def test_a_site_with_an_address_has_a_sitemap_of_every_page(addressed: Site) -> None:
    """And no other address; a page says its own for Open Graph and as the canonical link."""
    tree = ElementTree.parse(addressed.html / "sitemap.xml").getroot()
    listed = [unquote(str(location.text)) for location in tree.iterfind("{*}url/{*}loc")]
    assert sorted(f"{ADDRESS}{page}" for page in pages(addressed)) == sorted(listed)
    page = addressed.html / "own" / "page.html"
    assert f"{ADDRESS}own/page.html" == meta(page)["og:url"]
    assert f'<link rel="canonical" href="{ADDRESS}own/page.html"' in page.read_text()


def test_the_page_for_what_is_missing_works_in_any_folder(site: Site, addressed: Site) -> None:
    """Its style sheets, scripts and links begin at the site's path: without one at the host's root.

    Where the reader has strayed to, nothing else leads back.
    """
    for one, path in ((site, "/"), (addressed, "/training/")):
        html = soup(one.html / "404.html")
        found = html.select("link[href], a[href], script[src]")
        local = [str(it.get("href") or it.get("src")) for it in found]
        within = [it for it in local if not it.startswith(("#", "http"))]
        assert len(within) > 10
        assert all(it.startswith(path) for it in within)
        targets = {it.removeprefix(path).split("?")[0].split("#")[0] for it in within}
        assert [] == [it for it in targets if not (one.html / it).exists()]
        onward = [str(it["href"]) for it in html.select("article a[href]")]
        assert {f"{path}index.html", f"{path}search.html"} <= set(onward)


def test_llms_txt_leads_to_pages_and_tables_with_a_sentence_on_each(site: Site) -> None:
    """The tutorial, the list of runs and the tables are among them, single runs are not.

    A name from the store may hold any sign; what reads the list takes none for HTML.
    """
    text = (site.html / "llms.txt").read_text()
    linked = re.findall(r"^- \[.*\]\(([^)]+)\)", text, re.MULTILINE)
    assert "tutorial/first-run.html" in linked
    assert ["runs/index.html"] == [one for one in linked if one.startswith(("runs/", "sources/"))]
    assert any(one.endswith(".csv") for one in linked)
    assert [] == [one for one in linked if not (site.html / one).is_file()]
    pages = re.findall(r"^- \[.*\]\([^)]+\.html\).*", text, re.MULTILINE)
    assert len(pages) > 50
    assert [] == [one for one in pages if not re.search(r"\.html\): .{15}", one)]
    assert not {"<", ">"} & set(text.replace("\n> ", "\n"))
    assert r"- [&lt;script&gt;alert(1)&lt;/script&gt; \*m\* \`c\` {{ x }}" in text


def test_no_page_says_its_title_twice(site: Site) -> None:
    """The first page is called as the site is; what it says of itself may begin with its title."""
    titles = {
        page: re.search("<title>(.*)</title>", (site.html / page).read_text())
        for page in ("index.html", "runs/index.html")
    }
    assert ["perfdb", "Runs &#8212; perfdb"] == [it[1] for it in titles.values() if it]
    text = (site.html / "llms.txt").read_text()
    assert "\n- [NeMo DFM main](performance/dfm/main.html): 5 published results" in text
    assert [] == re.findall(r"^- \[(.*)\]\(.*\): \1: ", text, re.MULTILINE)
