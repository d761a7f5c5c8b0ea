"""Tables that a page declares: empty until there are results, and clear about a wrong word."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest
from bs4 import BeautifulSoup
from sphinx.cmd.build import main as sphinx
from sqlalchemy import URL

from tests.factories import case, published, release, stored, write_run
from tests.site.samples import soup

# Sphinx and its extensions warn each other of what the next Sphinx will not have.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"),
]
Built: TypeAlias = Callable[[Mapping[str, str]], tuple[int, str]]
"""The exit code of a build, and what it says."""

CONF = """
extensions = ["perfdb.site"]
project = copyright = "a project of its own"
html_theme = "basic"
"""
HEAD = "---\norphan: true\n---\n\n# Ours\n"
INDEX = "# Index\n\n```{toctree}\nperformance/index\nruns/index\n```\n"
EVIL = "<b>*1*</b>"


def declared(directive: str, **options: str) -> str:
    """A directive with its options."""
    lines = [f":{name.replace('_', '-')}: {value}" for name, value in options.items()]
    return "\n".join(["", f"```{{{directive}}}", *lines, "```", ""])


@pytest.fixture
def built(
    sqlite: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Built:
    """Writes pages, and builds the site that has no others of its own."""
    monkeypatch.setenv("PERFDB_URL", sqlite.render_as_string())
    docs = tmp_path / "docs"

    def build(pages: Mapping[str, str]) -> tuple[int, str]:
        for name, text in {"conf.py": CONF, "index.md": INDEX, **pages}.items():
            path = docs / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        code = sphinx(["-nWq", "--keep-going", "-b", "html", str(docs), str(tmp_path / "html")])
        return code, capsys.readouterr().err

    return build


def rows(page: BeautifulSoup) -> list[str]:
    return [cell.get_text().strip() for cell in page.select("table.perf tbody th")]


def labels(page: BeautifulSoup) -> list[str]:
    return [label.get_text(strip=True) for label in page.select("label.sd-tab-label")]


def check_tables_by_model(page: BeautifulSoup) -> None:
    """The same table twice: a tab for each model, rows by system, each with an anchor."""
    assert ["Llama 3 8B", "Llama 3 70B"] * 2 == labels(page)
    assert ["DGX-H100", "DGX-B200", "DGX-H100"] * 2 == rows(page)
    heads = [head.get_text() for head in page.select("table.perf")[0].select("thead th")]
    assert ("System", {"Model TFLOP / sec / GPU"}) == (
        heads[0],
        {"Model TFLOP / sec / GPU", "MFU", "Model"} & set(heads),
    )
    anchors = [str(row["id"]) for row in page.select("tr[id]")]
    assert len(set(anchors)) == len(anchors) == 6
    assert [f"#{it}" for it in anchors] == [it["href"] for it in page.select("a.perf-link")]


def test_pages_show_what_they_declare_before_and_after_it_arrives(
    sqlite: URL, tmp_path: Path, built: Built
) -> None:
    """At the address of the release a page takes the place of ours, and every link leads to it."""
    html = tmp_path / "html"

    def made(name: str) -> BeautifulSoup:
        return soup(html / f"{name}.html")

    runs = [
        ("llama3-8b", "pretrain", "dgx-b200"),
        ("llama3-8b", "pretrain", "dgx-h100"),
        ("llama3-70b", "pretrain", "dgx-h100"),
        ("mixtral-8x7b", "sft", "dgx-h100"),
    ]
    cases = [case(model=model, task=task, system=system) for model, task, system in runs]
    made_of = (write_run(tmp_path, case=of, run_id=f"{of.model}-{of.system}") for of in cases)
    stored(sqlite, *made_of)
    core = {"framework": "megatron-core", "release": "0.16.0", "task": "pretrain"}
    by_model = declared("perfdb-table", **core, group_by="model", profile="dfm")
    at = "performance/nemo/25.07"
    pages = {
        f"{at}.md": HEAD + declared("perfdb-release-page", framework="nemo", release="25.07"),
        "task.md": HEAD + declared("perfdb-table", **core | {"task": "sft"}, system="dgx-h100"),
        "models.md": HEAD + by_model * 2,
        "evil.md": HEAD + declared("perfdb-table", framework="nemo", release=EVIL),
    }
    assert (0, "") == built(pages)
    assert "No results of NeMo Framework 25.07 yet." in made(at).get_text(" ")
    assert f"NeMo Framework {EVIL}" in made("evil").get_text(" ")
    assert ["Mixtral 8x7B"] == rows(made("task"))

    check_tables_by_model(made("models"))

    stored(sqlite, published(release=release("25.07", framework="nemo")))
    assert (0, "") == built({})
    page = made(at)
    assert "No results of" not in page.get_text(" ")
    assert ["Ours", "Pre-training"] == [
        head.get_text().rstrip("¶") for head in page.select("h1, h2")
    ]
    assert (["DGX-H100"], ["LLAMA3-8B"]) == (labels(page), rows(page))
    assert 'href="nemo/25.07.html"' in (html / "performance/index.html").read_text()
    link = f'href="../{at}.html?system=dgx-h100"'
    assert link in (html / "models/llama3-8b.html").read_text()


def test_wrong_words_are_reported_together_with_file_line_and_what_is_known(
    sqlite: URL, built: Built
) -> None:
    stored(sqlite, published())
    words = {"framework": "nemoo", "release": "25.07", "task": "dance", "system": "dgx-h1000"}
    wrong = declared("perfdb-table", **words, group_by="moon", profile="x")
    pages = {"ours.md": HEAD + wrong, "none.md": HEAD + declared("perfdb-table", framework="nemo")}
    code, said = built(pages)
    assert 1 == code
    [line] = [line for line in said.splitlines() if "ours.md:7" in line]
    assert ":framework: there is no 'nemoo'; did you mean nemo?" in line
    assert ":task: there is no 'dance'; known: lora, pretrain, sft" in line
    assert ":system: there is no 'dgx-h1000'; did you mean dgx-h100?" in line
    assert ":group-by: there is no 'moon'; known: model, system" in line
    assert ":profile: there is no 'x'; known: automodel, dfm, measured" in line
    assert ":release: is missing" in said


def test_a_page_of_another_thing_where_one_is_made_is_refused(sqlite: URL, built: Built) -> None:
    """It would be lost to readers, or the release would be: the build says which file it is."""
    stored(sqlite, published(release=release("25.07", framework="nemo")))
    code, said = built({"performance/nemo/25.07.md": HEAD})
    assert 2 == code
    assert "25.07.md: this page is made from the store; rename yours" in said
