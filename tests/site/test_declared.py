"""Tables that a page declares: empty until there are results, and clear about a wrong word."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import URL

from perfdb.db import migrate
from perfdb.db.session import store_url
from tests.factories import case, published, release, stored, write_run

pytestmark = pytest.mark.slow

CONF = """
extensions = ["perfdb.site"]
project = copyright = "a project of its own"
html_theme = "basic"
"""

PAGE = """---
orphan: true
---

# Ours

```{{{directive}}}
{options}
```
"""

Build = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def url(tmp_path: Path) -> URL:
    made = store_url(str(tmp_path / "store.sqlite"))
    migrate.upgrade(made)
    return made


@pytest.fixture
def build(tmp_path: Path, url: URL) -> Build:
    """Write a page that declares, and build the site that it is the only own page of."""

    def built(
        directive: str, at: str = "ours", times: int = 1, **options: str
    ) -> "subprocess.CompletedProcess[str]":
        docs = tmp_path / "docs"
        docs.mkdir(exist_ok=True)
        (docs / "conf.py").write_text(CONF)
        contents = "\n".join(("performance/index", "runs/index"))
        index = f"# Index\n\n```{{toctree}}\n{contents}\n```\n"
        (docs / "index.md").write_text(index)
        given = "\n".join(f":{name.replace('_', '-')}: {value}" for name, value in options.items())
        again = PAGE.partition("# Ours")[2].format(directive=directive, options=given)
        ours = docs / f"{at}.md"
        ours.parent.mkdir(parents=True, exist_ok=True)
        ours.write_text(PAGE.format(directive=directive, options=given) + again * (times - 1))
        return subprocess.run(
            [sys.executable, "-m", "sphinx", "-nWq", "--keep-going", "-b", "html",
             docs, tmp_path / "html"],
            env=os.environ | {"PERFDB_URL": url.render_as_string()},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    return built


def ours(tmp_path: Path, at: str = "ours") -> BeautifulSoup:
    return BeautifulSoup((tmp_path / "html" / f"{at}.html").read_text(), "html.parser")


def rows(page: BeautifulSoup) -> list[str]:
    return [cell.get_text().strip() for cell in page.select("table.perf tbody th")]


def tab_labels(page: BeautifulSoup) -> list[str]:
    return [label.get_text(strip=True) for label in page.select("label.sd-tab-label")]


def test_a_page_declared_in_advance_fills_itself_when_results_arrive(
    tmp_path: Path, url: URL, build: Build
) -> None:
    """At the address of the release it is the page of it, to which every link leads."""
    at = "performance/nemo/25.07"
    declared = {"at": at, "framework": "nemo", "release": "25.07"}
    done = build("perfdb-release-page", **declared)
    assert (0, "") == (done.returncode, done.stderr)
    said = ours(tmp_path, at).get_text(" ")
    assert "There are no results yet of NeMo Framework 25.07." in said

    stored(url, published(release=release("25.07", framework="nemo")))
    done = build("perfdb-release-page", **declared)
    assert (0, "") == (done.returncode, done.stderr)
    page = ours(tmp_path, at)
    assert "Ours" == page.select("h1")[0].get_text().rstrip("¶")
    [listed] = ours(tmp_path, "performance/index").select("table.perf tbody th a")
    [model] = ours(tmp_path, "models/llama3-8b").select("td a[href*=system]")
    assert ["nemo/25.07.html", f"../{at}.html?system=dgx-h100"] == [
        str(link["href"]) for link in (listed, model)
    ]
    assert "There are no results yet" not in page.get_text(" ")
    assert ["Pre-training"] == [head.get_text().rstrip("¶") for head in page.select("h2")]
    assert ["DGX-H100"] == [
        label.get_text(strip=True) for label in page.select("label.sd-tab-label")
    ]
    assert ["LLAMA3-8B"] == rows(page)


def test_a_table_shows_the_task_and_system_that_it_asks_for(
    tmp_path: Path, url: URL, build: Build
) -> None:
    for task, system in (("pretrain", "dgx-h100"), ("pretrain", "dgx-b200"), ("sft", "dgx-h100")):
        run = case(task=task, system=system, model="llama3-70b" if task == "sft" else "llama3-8b")
        stored(url, write_run(tmp_path, case=run, run_id=f"{task}-{system}"))
    done = build(
        "perfdb-table", framework="megatron-core", release="0.16.0", task="sft", system="dgx-h100"
    )
    assert (0, "") == (done.returncode, done.stderr)
    assert ["Llama 3 70B"] == rows(ours(tmp_path))


def test_a_table_is_cut_into_tabs_by_model_and_printed_with_other_columns(
    tmp_path: Path, url: URL, build: Build
) -> None:
    """Each row is called by its system; in a second table of the page by another anchor."""
    for model, systems in (("llama3-8b", ("dgx-b200", "dgx-h100")), ("llama3-70b", ("dgx-h100",))):
        for system in systems:
            run = case(model=model, system=system)
            stored(url, write_run(tmp_path, case=run, run_id=f"{model}-{system}"))
    of = {"framework": "megatron-core", "release": "0.16.0", "group_by": "model"}
    done = build("perfdb-table", times=2, **of, profile="dfm")
    assert (0, "") == (done.returncode, done.stderr)
    page = ours(tmp_path)
    assert ["Llama 3 8B", "Llama 3 70B"] * 2 == tab_labels(page)
    assert ["DGX-H100", "DGX-B200", "DGX-H100"] * 2 == rows(page)
    first, *_ = page.select("table.perf")
    heads = [head.get_text() for head in first.select("thead th")]
    assert "System" == heads[0]
    assert "Model TFLOP / sec / GPU" in heads
    assert not {"MFU", "Model"} & set(heads)
    anchors = [str(row["id"]) for row in page.select("tr[id]")]
    assert len(set(anchors)) == len(anchors) == 6
    assert [f"#{it}" for it in anchors] == [it["href"] for it in page.select("a.perf-link")]


def test_wrong_words_are_reported_together_with_file_line_and_what_is_known(build: Build) -> None:
    done = build(
        "perfdb-table",
        framework="nemoo",
        release="25.07",
        task="dance",
        system="dgx-h1000",
        group_by="moon",
        profile="x",
    )
    assert 1 == done.returncode
    [line] = [line for line in done.stderr.splitlines() if "ours.md:7" in line]
    assert ":framework: there is no 'nemoo'; did you mean nemo?" in line
    assert ":task: there is no 'dance'; known: lora, pretrain, sft" in line
    assert ":system: there is no 'dgx-h1000'; did you mean dgx-h100?" in line
    assert ":group-by: there is no 'moon'; known: model, system" in line
    assert ":profile: there is no 'x'; known: automodel, dfm, measured" in line


def test_a_table_without_a_release_says_that_it_is_missing(build: Build) -> None:
    done = build("perfdb-table", framework="nemo")
    assert 1 == done.returncode
    assert ":release: is missing" in done.stderr


def test_a_page_of_another_thing_where_one_is_made_is_refused(
    tmp_path: Path, url: URL, build: Build
) -> None:
    """It would be lost to readers, or the release would be: the build says which file it is."""
    stored(url, published(release=release("25.07", framework="nemo")))
    done = build("note", at="performance/nemo/25.07")
    assert 2 == done.returncode
    assert "25.07.md: this page is made from the store; rename yours" in done.stderr


def test_a_release_with_markup_in_its_name_is_text(tmp_path: Path, build: Build) -> None:
    assert 0 == build("perfdb-table", framework="nemo", release="<b>*1*</b>").returncode
    assert "NeMo Framework <b>*1*</b>" in ours(tmp_path).get_text(" ")
