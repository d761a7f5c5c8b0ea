"""How long the site takes to build, against plain Sphinx with the same tables written by hand.

`python -m benchmarks.site_build [RESULTS:PAGES ...] [--pipe]`; all in one run. By hand means, each
a project of its own: the tables of all releases as raw HTML; with --pipe all tables of all
documents as pipe tables; and every document with all that stands in it as raw HTML. The site is
held against the last: as many documents, the same tables, nothing read, nothing made. Its own time
includes reading the store, its data files and its downloads. After one more result it is held
against that project with the same documents changed: less than Sphinx takes to read and write them
it cannot take. Seconds are those of the processor; what else runs on the machine still makes
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
from perfdb.catalog import models, names
from perfdb.db.session import store_url
from perfdb.flops import flops_per_token
from perfdb.pages.base import PageContext

SIZES = ("100:1", "1000:4")
LIMIT_WHOLE = 1.5
"""How many times as long as raw HTML a whole build may take."""
LIMIT_IDLE = 1.3
"""How many times as long as plain Sphinx a build may take that has nothing to do."""
LIMIT_MORE = 3
"""How many times as long as plain Sphinx, with the same documents changed, a build may take after
one more result."""
REPEATS, REPEATS_OF_MANY, MANY = 5, 2, 5000
"""How often a whole build is measured, in turns with raw HTML; less where it has many results."""
MORE = "perfdb.site, one more result"
THOSE = "raw HTML, those documents"
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
INDEX = """# Site

```{toctree}
performance/index
models/index
systems/index
performance/systems
scaling/index
changes/index
performance/coverage
```
"""
"""What the guide to publishing has people write, of pages that a store without runs has."""
BLOCKS = "```{perfdb-page}\n```"
"""What a document has in place of what is made from the store."""


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


def row(case: int, release: int) -> list[str]:
    """A row of a page: what it ran is known by `case`, how fast by the release.

    Its figures fit each other, so that the audit has nothing against most rows, as it is with
    pages that people publish.
    """
    model = MODELS[case % len(MODELS)]
    accumulation = 1 + case // len(MODELS)
    sizes = [8, 8 // 2 * accumulation, 1, 4096, 2, 1, 1, 1, 1, accumulation]
    tflops = 300 + (case * 37 + release * 11) % 200
    known = names.model(model)
    assert isinstance(known, names.ModelName)
    per_token = flops_per_token(models()[known.name], 4096)
    assert per_token is not None
    return [model, "FP8", *map(str, sizes), f"{tflops * 1e12 / per_token:,.0f}", f"{tflops}"]


def written(path: Path, release: int, cases: range) -> Path:
    """A published page with a table for each system."""
    lines = ["---", "perfdb:", "  framework: nemo", f"  release: '{release}.0'", "---", ""]
    for place, system in enumerate(SYSTEMS):
        own = [row(case, release) for case in cases if case % len(SYSTEMS) == place]
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
        written(folder / f"page-{release}.md", release, range(each))
        for release in range(1, pages + 1)
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
        article.h1.extract()
        page = project.docs / f"{name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(document.read_text().replace(BLOCKS, body(article)))
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
        for _ in range((REPEATS if results < MANY else REPEATS_OF_MANY) - 1):
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
        took = []
        for case in range(results // pages, results // pages + 3):
            more = written(root / f"more-{case}.md", pages, range(case, case + 1))
            ingest.ingest([more], store_url(url), ingest.Options(PageContext()))
            before = ages(ours.root / "html")
            seconds_of_ours = ours.build_s()
            touch(same.docs, before, ages(ours.root / "html"))
            took.append((seconds_of_ours, same.build_s()))
        again[MORE], again[THOSE] = map(min, zip(*took, strict=True))
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
    idle, those = found.again[SAME], found.again[THOSE]
    for name, seconds in found.again.items():
        print(f"  again: {name:30} {seconds:7.2f} s   {seconds / idle:4.2f} × plain Sphinx")
    print(
        f"  {ours / found.documents * 1000:.0f} ms a document, "
        f"{ours / found.results * 1000:.2f} s per 1,000 results, {found.peak_mb:,} MB at most"
    )
    more = found.again[MORE]
    print(f"  one more result: {more / those:4.2f} × plain Sphinx with the same documents changed")
    is_quick = found.again[SITE] <= LIMIT_IDLE * idle and more <= LIMIT_MORE * those
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
