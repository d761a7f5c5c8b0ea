"""How long the site takes to build, against plain Sphinx with the same tables written by hand.

`python -m benchmarks.site_build [RESULTS:PAGES ...] [--pipe]`; all in one run. By hand means: every
page that the site makes, with its tables as raw HTML (the limit: nothing is read and nothing is
made), and with --pipe as pipe tables. The site's own time includes reading the store, its data
files and its downloads.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.element import Tag

from perfdb import ingest
from perfdb.db.session import store_url
from perfdb.pages import PageContext

SIZES = ("100:1", "1000:4")
LIMIT_RAW = 1.5
"""How many times as long as raw HTML a whole build may take."""
LIMIT_ONE_MORE = 1.3
"""How many times as long as a build with nothing to do one with one more result may take."""
MODELS = ("Llama3 8B", "Llama3 70B", "Mixtral-8x7B", "Nemotron-15B", "Qwen3 MoE 30B")
SYSTEMS = ("DGX-H100", "DGX-B200", "DGX-GB200")
HEAD = (
    "Model", "Precision", "#-GPUs", "GBS", "MBS", "Sequence Length", "TP", "PP", "CP", "VP", "EP",
    "GA", "Tokens / sec / GPU", "Model TFLOP / sec / GPU",
)  # fmt: skip
CONF = """
extensions = {extensions}
html_theme = "pydata_sphinx_theme"
html_copy_source = False
source_suffix = {{".md": "markdown"}}
"""
KEEP = """
import json
from pathlib import Path
from docutils import nodes

def keep(app, doctree):
    found = [node.astext() for node in doctree.findall(nodes.raw)]
    path = Path({folder!r}, app.env.docname + ".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    title = next(doctree.findall(nodes.title)).astext()
    path.write_text(json.dumps([title, *found]))

def setup(app):
    app.connect("doctree-read", keep)
"""
INDEX = "# Site\n\n```{toctree}\n:glob:\n\n**\n```\n"


@dataclass(frozen=True)
class Project:
    """A Sphinx project and where it is built."""

    root: Path
    url: str = ""

    @property
    def docs(self) -> Path:
        """The folder of its documents."""
        return self.root / "docs"

    def build_s(self) -> float:
        """Build it, and how many seconds that took."""
        command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "docs", "html"]
        start = time.perf_counter()
        subprocess.run(
            command,
            cwd=self.root,
            env=os.environ | {"PERFDB_URL": self.url},
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - start


def made(root: Path, extensions: list[str], url: str = "", more: str = "") -> Project:
    """A project with an empty index."""
    project = Project(root, url)
    project.docs.mkdir(parents=True)
    (project.docs / "conf.py").write_text(CONF.format(extensions=extensions) + more)
    (project.docs / "index.md").write_text(INDEX)
    return project


def row(number: int) -> list[str]:
    """A row of a page, no two of which are the same case."""
    sizes = [8, 128 + 8 * number, 1 + number % 2, 4096, 2, 1, 1, 1, 1, 4]
    figures = [f"{9000 + number % 977:,}", f"{600 + number % 389}"]
    return [MODELS[number % len(MODELS)], "FP8", *map(str, sizes), *figures]


def written(path: Path, release: str, numbers: range) -> Path:
    """A published page with a table for each system."""
    lines = ["---", "perfdb:", "  framework: nemo", f"  release: '{release}'", "---", ""]
    for place, system in enumerate(SYSTEMS):
        own = [row(number) for number in numbers if number % len(SYSTEMS) == place]
        lines += [f"### System: {system}", "", piped([list(HEAD), *own]), ""]
    path.write_text("\n".join(lines))
    return path


def piped(rows: list[list[str]]) -> str:
    """A pipe table."""
    head, *others = [f"| {' | '.join(one)} |" for one in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *others])


def store(folder: Path, results: int, pages: int) -> str:
    """A store with so many results of so many releases."""
    url = store_url(str(folder / "store.sqlite"))
    each = results // pages
    files = [
        written(folder / f"page-{page}.md", f"{page + 1}.0", range(page * each, (page + 1) * each))
        for page in range(pages)
    ]
    report = ingest.ingest(files, url, ingest.Options(PageContext()))
    assert report.new == each * pages, report
    return url.render_as_string()


def by_hand(project: Project, kept: Path, *, raw: bool) -> None:
    """The pages that the site made, with their tables written out."""
    for path in kept.rglob("*.json"):
        title, *parts = json.loads(path.read_text())
        page = project.docs / path.relative_to(kept).with_suffix(".md")
        if page == project.docs / "index.md":
            continue
        page.parent.mkdir(parents=True, exist_ok=True)
        blocks = [f"~~~{{raw}} html\n{part}\n~~~\n" if raw else as_pipes(part) for part in parts]
        page.write_text("\n".join([f"# {title}\n", *blocks]))


def as_pipes(html: str) -> str:
    """The tables of a part as pipe tables."""
    tables = BeautifulSoup(html, "html.parser").select("table.perf")
    return "\n\n".join(piped([cells(one) for one in table.select("tr")]) for table in tables)


def cells(line: Tag) -> list[str]:
    """The texts of a row."""
    return [cell.get_text(" ", strip=True).replace("|", "") for cell in line.select("th, td")]


def compared(results: int, pages: int, *, pipe: bool) -> bool:
    """Print the times of a size; whether ours are within their limits."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        url = store(root, results, pages)
        kept = root / "kept"
        first = made(root / "first", ["perfdb.site"], url, KEEP.format(folder=str(kept)))
        first.build_s()
        ours = made(root / "ours", ["perfdb.site"], url)
        raw = made(root / "raw", ["myst_parser", "sphinx_design"])
        by_hand(raw, kept, raw=True)
        seconds = {"raw HTML": raw.build_s(), "perfdb.site": ours.build_s()}
        if pipe:
            plain = made(root / "pipe", ["myst_parser", "sphinx_design"])
            by_hand(plain, kept, raw=False)
            seconds["pipe tables"] = plain.build_s()
        idle = min(raw.build_s() for _ in range(3))
        again = min(ours.build_s() for _ in range(3))
        more = written(root / "more.md", f"{pages}.0", range(results, results + 1))
        ingest.ingest([more], store_url(url), ingest.Options(PageContext()))
        one_more = ours.build_s()
        documents = len([*raw.docs.rglob("*.md")])
        shutil.rmtree(kept)
    return report(Times(results, pages, documents, seconds, idle, again, one_more))


@dataclass(frozen=True)
class Times:
    """What was measured of a size, in seconds."""

    results: int
    pages: int
    documents: int
    builds: dict[str, float]
    idle: float
    again: float
    one_more: float


def report(found: Times) -> bool:
    """Print a size's times; whether they are within the limits."""
    print(f"{found.results:,} results, {found.pages} releases, {found.documents} documents")
    limit = found.builds["raw HTML"]
    for name, seconds in found.builds.items():
        per_page, per_1000 = seconds / found.documents, seconds / found.results * 1000
        print(
            f"  {name:24} {seconds:7.2f} s  {seconds / limit:5.2f} × raw  "
            f"{per_page * 1000:6.0f} ms/document  {per_1000:6.2f} s per 1,000 results"
        )
    print(f"  {'raw, nothing to do':24} {found.idle:7.2f} s")
    for name, seconds in (("nothing to do", found.again), ("one more result", found.one_more)):
        print(f"  {'perfdb.site, ' + name:24} {seconds:7.2f} s  {seconds / found.idle:5.2f} ×")
    whole = found.builds["perfdb.site"] <= LIMIT_RAW * limit
    return whole and found.one_more <= LIMIT_ONE_MORE * found.idle


def main() -> int:
    """Compare each size; 1 where a limit is not kept."""
    parser = argparse.ArgumentParser(description="Time the site against plain Sphinx.")
    parser.add_argument("sizes", nargs="*", default=SIZES, metavar="RESULTS:PAGES")
    parser.add_argument("--pipe", action="store_true", help="also with pipe tables, which are slow")
    given = parser.parse_args()
    sizes = [tuple(map(int, size.split(":"))) for size in given.sizes]
    kept = [compared(results, pages, pipe=given.pipe) for results, pages in sizes]
    return int(not all(kept))


if __name__ == "__main__":
    sys.exit(main())
