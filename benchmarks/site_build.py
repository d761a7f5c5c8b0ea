"""How long the site takes to build, against plain Sphinx with the same tables written by hand.

`python -m benchmarks.site_build [RESULTS:PAGES ...] [--pipe]`; all in one run. By hand means, each
a project of its own: the tables of all releases as raw HTML; with --pipe all tables of all
documents as pipe tables; and every document with all that stands in it as raw HTML. The site is
held against the last: as many documents, the same tables, nothing read, nothing made. Its own time
includes reading the store, its data files and its downloads. After one more result it is held
against that project too, with the same documents changed: less than Sphinx takes to read and write
them it cannot take. Seconds are those of the processor; what else runs on the machine still makes
them a third more or less, so that only ratios of one run mean anything.
"""

import argparse
import compileall
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.element import Tag

import perfdb
from perfdb import ingest
from perfdb.db.session import store_url
from perfdb.pages.base import PageContext

SIZES = ("100:1", "1000:4")
LIMIT_WHOLE = 1.5
"""How many times as long as raw HTML a whole build may take."""
LIMIT_IDLE, LIMIT_MORE = 1.3, 2
"""How many times as long as plain Sphinx with nothing to do a build may take that has nothing to
do, and one after one more result."""
REPEATS, MANY = 5, 5000
"""How often a whole build is measured, in turns with raw HTML; once where it has many results."""
MORE = "perfdb.site, one more result"
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
SITE = "perfdb.site"
SAME = "raw HTML, same documents"
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

    def anew_s(self) -> float:
        """Build it from nothing, and how many seconds of the processor that took."""
        shutil.rmtree(self.root / "html", ignore_errors=True)
        return self.build_s()

    def build_s(self) -> float:
        """Build it, and how many seconds of the processor that took."""
        command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "docs", "html"]
        # An installed perfdb is compiled, and keeps its catalogs read.
        kept = {name: it for name, it in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            command,
            cwd=self.root,
            env=kept | {"PERFDB_URL": self.url},
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def made(root: Path, extensions: list[str], url: str = "") -> Project:
    """A project with an empty index."""
    project = Project(root, url)
    project.docs.mkdir(parents=True)
    (project.docs / "conf.py").write_text(CONF.format(extensions=extensions))
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


def by_hand(root: Path, site: Project, pages: str, body: Callable[[Tag], str]) -> Project:
    """A project of plain Sphinx with a document for each that the site has, made of its HTML."""
    project = made(root, ["myst_parser", "sphinx_design"])
    for document in sorted(site.docs.glob(pages)):
        name = document.relative_to(site.docs).with_suffix("")
        html = BeautifulSoup((site.root / "html" / f"{name}.html").read_text(), "html.parser")
        article = html.select_one("article.bd-article")
        if article is None or article.h1 is None or name == Path("index"):
            continue
        title = article.h1.extract().get_text().removesuffix("#")
        page = project.docs / f"{name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"# {title}\n\n{body(article)}\n")
    return project


def whole(article: Tag) -> str:
    """All that stands on a page."""
    return raw(article.decode_contents())


def tables(article: Tag) -> str:
    """The tables of a page."""
    return "\n\n".join(raw(str(table)) for table in article.select("table.perf"))


def raw(html: str) -> str:
    """HTML that Sphinx writes as it stands."""
    return f"~~~{{raw}} html\n{html}\n~~~"


def pipes(article: Tag) -> str:
    """The tables of a page as pipe tables."""
    found = article.select("table.perf")
    return "\n\n".join(piped([cells(one) for one in table.select("tr")]) for table in found)


def cells(line: Tag) -> list[str]:
    """The texts of a row."""
    return [cell.get_text(" ", strip=True).replace("|", "") for cell in line.select("th, td")]


def compared(results: int, pages: int, *, pipe: bool) -> bool:
    """Print the times of a size; whether ours are within their limits."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        url = store(root, results, pages)
        ours = made(root / "ours", ["perfdb.site"], url)
        seconds = {SITE: ours.build_s()}
        peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        same = by_hand(root / "same", ours, "**/*.md", whole)
        seconds[SAME] = same.build_s()
        for _ in range(REPEATS - 1 if results < MANY else 0):
            seconds[SITE] = min(seconds[SITE], ours.anew_s())
            seconds[SAME] = min(seconds[SAME], same.anew_s())
        seconds["raw HTML, same tables"] = by_hand(
            root / "tables", ours, "performance/*/*.md", tables
        ).build_s()
        if pipe:
            pipe_tables = by_hand(root / "pipe", ours, "**/*.md", pipes)
            seconds["pipe tables, same documents"] = pipe_tables.build_s()
        again = {SITE: min(ours.build_s() for _ in range(3))}
        again[SAME] = min(same.build_s() for _ in range(3))
        more = written(root / "more.md", f"{pages}.0", range(results, results + 1))
        ingest.ingest([more], store_url(url), ingest.Options(PageContext()))
        before = ages(ours.root / "html")
        again[MORE] = ours.build_s()
        touch(same.docs, before, ages(ours.root / "html"))
        again["raw HTML, those documents"] = same.build_s()
        documents = len([*same.docs.rglob("*.md")])
    return report(Times(results, pages, documents, seconds, again, peak_mb))


def ages(html: Path) -> dict[str, int]:
    """When each page was written."""
    pages = html.rglob("*.html")
    return {str(page.relative_to(html).with_suffix("")): page.stat().st_mtime_ns for page in pages}


def touch(docs: Path, before: dict[str, int], after: dict[str, int]) -> None:
    """Make those documents look changed whose pages were written again."""
    for name, age in after.items():
        document = docs / f"{name}.md"
        if age != before.get(name) and document.is_file():
            document.touch()


@dataclass(frozen=True)
class Times:
    """What was measured of a size, in seconds: whole builds, and builds again."""

    results: int
    pages: int
    documents: int
    builds: dict[str, float]
    again: dict[str, float]
    peak_mb: int


def report(found: Times) -> bool:
    """Print a size's times; whether they are within the limits."""
    print(f"{found.results:,} results, {found.pages} releases, {found.documents} documents")
    ours = found.builds[SITE]
    for name, seconds in found.builds.items():
        print(f"  {name:30} {seconds:7.2f} s   perfdb.site is {ours / seconds:4.2f} ×")
    idle = found.again[SAME]
    for name, seconds in found.again.items():
        print(f"  again: {name:30} {seconds:7.2f} s   {seconds / idle:4.2f} × plain Sphinx")
    print(
        f"  {ours / found.documents * 1000:.0f} ms a document, "
        f"{ours / found.results * 1000:.2f} s per 1,000 results, {found.peak_mb:,} MB at most"
    )
    is_quick = found.again[SITE] <= LIMIT_IDLE * idle and found.again[MORE] <= LIMIT_MORE * idle
    return ours <= LIMIT_WHOLE * found.builds[SAME] and is_quick


def main() -> int:
    """Compare each size; 1 where a limit is not kept."""
    parser = argparse.ArgumentParser(description="Time the site against plain Sphinx.")
    parser.add_argument("sizes", nargs="*", default=SIZES, metavar="RESULTS:PAGES")
    parser.add_argument("--pipe", action="store_true", help="also with pipe tables, which are slow")
    given = parser.parse_args()
    sizes = [tuple(map(int, size.split(":"))) for size in given.sizes]
    # As pip leaves it: Sphinx is compiled, and perfdb may be where Python may not write.
    compileall.compile_dir(Path(perfdb.__file__).parent, quiet=1)
    print("seconds of the processor; load {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()))
    kept = [compared(results, pages, pipe=given.pipe) for results, pages in sizes]
    return int(not all(kept))


if __name__ == "__main__":
    sys.exit(main())
