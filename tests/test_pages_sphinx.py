"""Pages that Sphinx built from Markdown and reStructuredText say what their sources say."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfdb.pages import reader
from perfdb.pages.base import PageContext
from tests.test_pages import PIPES

pytestmark = pytest.mark.slow

SEED = Path(__file__).parents[2] / "shared" / "seeds" / "dfm-performance-benchmarks.md"
CONF = """\
extensions = ["myst_parser", "sphinx_design"]
myst_enable_extensions = ["colon_fence"]
html_theme = "{theme}"
"""
SOURCES = [*PIPES, *([SEED] if SEED.is_file() else [])]
# Sphinx takes text right below a table for rows of it; an empty table says nothing.
BUILT = [page for page in SOURCES if page.stem not in {"automodel-plain", "dfm-empty"}]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages that Sphinx makes of all sources, with the theme of NVIDIA's."""
    folder = tmp_path_factory.mktemp("sphinx")
    for page in BUILT:
        shutil.copy(page, folder)
    (folder / "conf.py").write_text(CONF.format(theme="pydata_sphinx_theme"))
    names = "\n".join(page.stem for page in BUILT)
    (folder / "index.md").write_text(f"# Pages\n\n```{{toctree}}\n{names}\n```\n")
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-b", "html", folder, folder / "html"],
        check=True,
        capture_output=True,
    )
    return folder / "html"


@pytest.mark.parametrize("page", BUILT, ids=lambda page: page.stem)
def test_a_built_page_says_what_its_source_says(built: Path, page: Path) -> None:
    """Cases, figures and releases, row for row, from the theme's HTML."""
    context = PageContext(framework="nemo", release="main", system="dgx-h100", precision="bf16")
    source = reader.read("source", page.read_text(), context)
    html = (built / f"{page.stem}.html").read_text()
    read = reader.read("html", html, context)
    assert source.results
    assert len(source.problems) == len(read.problems)
    assert [(one.case, one.figures, one.release) for one in source.results] == [
        (one.case, one.figures, one.release) for one in read.results
    ]
    lines = html.splitlines()
    assert all("<t" in lines[one.line - 1] for one in read.results)
