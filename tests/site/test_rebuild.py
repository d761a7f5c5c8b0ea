"""A build after a build: the site is as one from nothing, whatever has happened in between."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace
from sqlalchemy import URL

from perfdb.db import migrate
from perfdb.db.session import store_url
from perfdb.ingest import withdraw
from perfdb.record import Figures, Outcome
from perfdb.run_record import RecipeRef
from perfdb.site import __main__ as beside
from perfdb.site import files, read
from perfdb.site.addresses import FOLDERS
from perfdb.site.files import DOWNLOADS, GENERATED, PUBLISHED
from tests.factories import case, environment, published, release, stored, write_run
from tests.site.conftest import MADE, with_our_settings

# Sphinx and its extensions warn each other of what the next Sphinx will not have; none warns us.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::PendingDeprecationWarning",
    "error::DeprecationWarning:perfdb", "error::PendingDeprecationWarning:perfdb",
)  # fmt: skip

CONF = 'extensions = ["perfdb.site"]\nhtml_theme = "basic"\nhtml_copy_source = False\n'
STATIC = 'html_static_path = ["static"]\n'
PAGE = "performance/nemo/1.0"
HOUR_NS = 3600 * 10**9

Contents = dict[str, bytes]


def contents(folder: Path) -> Contents:
    """Every file of a site, and every folder as an empty file."""
    found = folder.rglob("*")
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in found
    }


def folders(folder: Path) -> set[str]:
    """Every folder in a folder, but those of Python's bytecode."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()}
    return {name for name in found if not name.endswith("__pycache__")}


class Project:
    """Documents with a plain theme, the store they are filled from, and the site."""

    def __init__(self, folder: Path) -> None:
        self.docs, self.html = folder / "docs", folder / "html"
        self.store = folder / "store.sqlite"
        self.last: Contents = {}
        self.read: set[str] = set()
        (self.docs / "static").mkdir(parents=True)
        (self.docs / "static" / "own.css").write_text("a {}")
        (self.docs / "conf.py").write_text(CONF + STATIC)
        (self.docs / "index.md").write_text("# Site\n\n```{perfdb-overview}\n```\n")

    def built(self, *, named: bool = True) -> Contents:
        """Build it, also where nobody names the store; what the site holds then."""
        doctrees = self.docs.parent / "doctrees"
        given = {"perfdb_url": f"sqlite:///{self.store}"} if named else {}
        self.read.clear()
        with docutils_namespace():
            app = Sphinx(
                self.docs, self.docs, self.html, doctrees, "html", given, status=None, warning=None
            )
            app.connect("source-read", lambda _app, name, _text: self.read.add(name))
            app.build()
        self.last = contents(self.html)
        return self.last

    def ages(self) -> dict[str, int]:
        """When each page was written, in nanoseconds; Sphinx writes these three in each build."""
        always = {"404.html", "genindex.html", "search.html"}
        pages = {it.relative_to(self.html).as_posix(): it for it in self.html.rglob("*.html")}
        return {name: it.stat().st_mtime_ns for name, it in pages.items() if name not in always}

    def clean(self, folder: Path) -> Contents:
        """The site of the same store and documents, built from nothing."""
        other = Project(folder)
        with (
            closing(sqlite3.connect(self.store)) as ours,
            closing(sqlite3.connect(other.store)) as its,
        ):
            ours.backup(its)
        ignored = shutil.ignore_patterns(*MADE)
        shutil.copytree(self.docs, other.docs, ignore=ignored, dirs_exist_ok=True)
        return other.built()

    def lose(self, loss: float) -> None:
        """Write another loss of a step into the store."""
        with closing(sqlite3.connect(self.store)) as connection, connection:
            connection.execute("UPDATE steps SET loss = ? WHERE step = 4", (loss,))

    def shows(self, loss: float) -> bool:
        """Whether a build shows that loss on the page of the run."""
        return str(loss).encode() in self.built()["runs/one.html"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that was built from a store to which nobody writes any more."""
    folder = tmp_path_factory.mktemp("project")
    made = Project(folder)
    url = store_url(str(made.store))
    stored(url, published(release=release("1.0")), write_run(folder, run_id="one"))
    settle(made.store)
    made.built()
    return made


def settle(path: Path) -> None:
    """Make a file an hour old, so that a build takes its word that nobody writes to it."""
    then = time.time_ns() - HOUR_NS
    os.utime(path, ns=(then, then))


def test_another_store_of_the_same_size_and_age_is_read(project: Project) -> None:
    """Somebody wrote over the file and set its time back."""
    then = project.store.stat()
    project.lose(1.125)
    assert then.st_size == project.store.stat().st_size
    os.utime(project.store, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert project.shows(1.125)


def test_what_is_not_merged_into_the_store_yet_is_read(project: Project) -> None:
    """As long as somebody has a store open, what they wrote last is in a file next to it."""
    with closing(sqlite3.connect(project.store)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        project.lose(2.125)
        journal = project.store.with_name("store.sqlite-wal")
        assert journal.stat().st_size
        settle(journal)
        assert project.shows(2.125)


def test_a_store_of_the_future_is_read_each_time(project: Project) -> None:
    """Where the clock was set back, the age of a file says nothing of when it was written."""
    ahead = time.time_ns() + HOUR_NS
    for loss in (3.125, 4.125):
        project.lose(loss)
        os.utime(project.store, ns=(ahead, ahead))
        assert project.shows(loss)
    assert files.state_of_file(project.store) is None
    settle(project.store)


@pytest.mark.parametrize(("fraction_ns", "is_known"), [(250_000_000, True), (0, False)])
def test_a_store_written_a_second_ago_is_known_where_times_have_fractions(
    project: Project, fraction_ns: int, is_known: bool
) -> None:
    """Where they have none, it may have been written twice in the same second."""
    second_ns = 10**9
    then = (time.time_ns() // second_ns - 1) * second_ns + fraction_ns
    os.utime(project.store, ns=(then, then))
    assert (files.state_of_file(project.store) is not None) is is_known
    settle(project.store)


def removed(path: Path) -> None:
    path.unlink()


def edited(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


def edited_unseen(path: Path) -> None:
    """With the size and the time that it had."""
    then = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"\t")
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))


@pytest.mark.parametrize("harm", [removed, edited, edited_unseen])
def test_a_file_that_was_touched_is_made_again(
    project: Project, harm: Callable[[Path], None]
) -> None:
    """Those next to the documents, and the files of tables in the site."""
    before = project.last
    tables = list((project.docs / DOWNLOADS / PAGE).iterdir())
    assert {".csv", ".json", ".parquet"} <= {path.suffix for path in tables}
    for path in (
        project.docs / f"{PAGE}.md",
        project.docs / GENERATED / "done.json",
        project.docs / DOWNLOADS / "results.parquet",
        project.html / PUBLISHED / "results.csv",
        *tables,
    ):
        harm(path)
    assert before == project.built()


def test_without_a_store_no_made_page_is_left_and_all_are_back_with_it(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first ingest there is no database where one is looked for that is not named."""
    before, store = project.last, project.store
    own = project.docs / "runs" / "notes.md"
    own.write_text("---\norphan: true\n---\n\n# Notes on runs\n")
    monkeypatch.chdir(tmp_path)
    without = project.built(named=False)
    kept = [page for folder in FOLDERS for page in (project.docs / folder).rglob("*.md")]
    assert {own} == {page for page in kept if not files.is_made(page)}
    lists = {"audit", "changelog", "coverage", "cpu-tests", "index", "systems"}
    assert lists == {page.stem for page in kept if files.is_made(page)}
    assert not [*(project.html / "performance").glob("*/*.html")]
    names = ("changes", "models", "performance", "runs", "scaling", "systems")
    for page in ("index.html", *(f"{name}/index.html" for name in names)):
        assert b"There is no data yet" in without[page]
        assert b"perfdb ingest" in without[page]
    own.unlink()
    try:
        project.store = tmp_path / "empty.sqlite"
        migrate.upgrade(store_url(str(project.store)))
        assert without.keys() - {"runs/notes.html"} == project.built().keys()
    finally:
        project.store = store
    assert before == project.built()


def test_what_people_write_is_read_again(project: Project, tmp_path: Path) -> None:
    """A page, and settings, which all pages follow."""
    (project.docs / "index.md").write_text("# Another title\n\n```{perfdb-overview}\n```\n")
    before = project.built()
    assert b"Another title" in before["index.html"]
    (project.docs / "conf.py").write_text(f"{CONF}{STATIC}perfdb_hostnames = True\n")
    after = project.built()
    assert before != after == project.clean(tmp_path / "clean")


def test_names_have_any_length_and_files_name_no_host_no_folder_and_no_secret(
    tmp_path: Path,
) -> None:
    """A run, its release and its recipe have pages; a file may have a name of 255 bytes.

    The record as it is linked; a log is the same byte for byte but for a token.
    """
    project, long = Project(tmp_path / "project"), "x" * 250
    token = "ghp_" + "a1" * 18
    nodes = [{"hostnames": ["node-17", "node-18.cluster"], "num_nodes": 2, "driver": "570.1"}]
    variables = {"SLURM_JOB_USER": "mia", "SLURM_JOB_ACCOUNT": "mia-lab", "NEMO_X": token,
                 "SLURM_CLUSTER_NAME": "of-mia", "SLURM_JOB_UID": "1000"}  # fmt: skip
    where = environment(hostname="node-17", variables=variables, nodes=nodes)
    command = ("/home/mia/env/bin/torchrun", f"--hub=https://mia:{token}@hub.example")
    path = "/home/mia/recipes/a.yaml"
    recipe = RecipeRef(name=f"recipe-{long}", path=path, sha256="0" * 64)
    changed: dict[str, Any] = {
        "environment": where,
        "command": command,
        "recipe": recipe,
        "error": "node-17 died: node-18",
    }
    at = release(f"1.{long}")
    run = write_run(tmp_path, run_id=long, outcome=Outcome.FAILED, release=at, **changed)
    run.console.write_bytes(b"\xff on rank 0\r\nlogin " + token.encode() + b"\n")
    stored(store_url(str(project.store)), run)
    made = project.built()
    for folder in ("runs", "recipes", "performance/megatron-core"):
        assert any(name.startswith(f"{folder}/") and "xxx-" in name for name in made)
    files = {Path(name).name: text for name, text in made.items() if "_downloads/" in name}
    record = json.loads(files["run.json"])
    assert (long, "a.yaml", "HOST died: HOST") == (
        record["run_id"],
        record["recipe"]["path"],
        record["error"],
    )
    assert ["torchrun", "--hub=https://***@hub.example"] == record["command"]
    assert {"NEMO_X": "***"} == record["environment"]["variables"]
    assert b"\xff on rank 0\r\nlogin ***\n" == files["console.log"]
    [alike] = record["environment"]["nodes"]
    assert (2, "570.1") == (alike["num_nodes"], alike["driver"])
    hidden = (b"node-17", b"node-18", b"mia", token.encode())
    assert not [name for name, text in made.items() for it in hidden if it in text]


@contextmanager
def no_file_above(most_bytes: int) -> Iterator[None]:
    """No file may grow beyond."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def build(arguments: list[str]) -> tuple[int, str]:
    """The exit code of `python -m perfdb.site`, and what it says."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        code = beside.main(arguments)
    return code, said.getvalue()


def kill_a_build(arguments: list[str]) -> None:
    """While Sphinx is at work."""
    killed = subprocess.Popen([sys.executable, "-m", "perfdb.site", *arguments])
    while not Path(arguments[-1], "new", "doctrees").exists():
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.wait()


def test_a_build_that_fails_or_is_killed_leaves_the_last_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next is as one from nothing, also where a file was cut off or changed by hand."""
    project = Project(tmp_path / "project")
    stored(store_url(str(project.store)), published(release=release("1.0")))
    monkeypatch.setenv("PERFDB_URL", str(project.store))
    root, html = tmp_path / "build", tmp_path / "build" / "html"
    arguments = ["-q", str(project.docs), str(root)]

    assert 0 == build(arguments)[0]
    (html / ".nojekyll").touch()
    first = contents(html)
    with (project.docs / "index.md").open("a") as file:
        file.write("more\n")
    with no_file_above(4_000):
        assert 2 == build(arguments)[0]
    assert first == contents(html)
    kill_a_build(arguments)
    assert first == contents(html)
    code, said = build(arguments)
    second = contents(html)
    assert (0, False, False) == (code, "Traceback" in said, first == second)

    os.utime(html / "index.html")  # the same bytes, as a copy or a checkout leaves them
    assert "was changed" not in build(arguments)[1]
    edited_unseen(html / "index.html")
    assert f"{html / 'index.html'} was changed" in build(arguments)[1]
    assert second == contents(html)
    for tree in filter(Path.is_file, (root / "doctrees").rglob("*")):
        tree.write_bytes(b"")
    edited(project.docs / "index.md")
    assert 0 == build(arguments)[0] or 0 == build(arguments)[0]
    assert second == contents(html)


LISTED = """# Site

```{perfdb-overview}
```

```{toctree}
performance/audit
recipes/index
own
```
"""


def like_ours(folder: Path) -> Project:
    """A project as our own site is made, with the texts of pages, and a file of findings."""
    made = Project(folder)
    with (with_our_settings(made.docs) / "conf.py").open("a") as conf:
        conf.write('html_copy_source = True\nperfdb_acknowledged = "accepted.yaml"\n')
    (made.docs / "accepted.yaml").write_text("[]\n")
    (made.docs / "index.md").write_text(LISTED)
    (made.docs / "own.md").write_text("# Own\n")
    return made


def accept(url: URL, source: str, path: Path) -> None:
    """Accept what the audit found in a row of a page."""
    every = (it for one in read.stored(url).audited for it in one.findings)
    finding = next(it for it in every if it.source == source)
    entry = {"rule": finding.rule, "source": finding.source, "line": finding.source_line}
    review = {"reason": "the page is right", "by": "A. Person", "date": "2026-01-31"}
    path.write_text(json.dumps([entry | review]))


def test_whatever_becomes_of_a_store_the_site_is_one_from_nothing(tmp_path: Path) -> None:
    """After a run more, a correction, a release, a review and withdrawals, to the byte and folder.

    Pages are next to one another in lists, so that one that comes or goes has neighbors, some of
    them written by hand; and each page has a copy of its text. No file may have more than 300
    bytes for one build, as where the disk is full: what it leaves builds again.
    """
    project = like_ours(tmp_path / "project")
    url = store_url(str(project.store))
    recipes = [RecipeRef(name=name, path=f"{name}.yaml", sha256="0" * 64) for name in "ab"]
    run, more = (write_run(tmp_path, run_id=one.name, recipe=one) for one in recipes)
    of = {"framework": "dfm", "model": "kimi-k2", "system": "dgx-gb300"}
    at = {"release": release("main", framework="dfm")}
    rate = Figures(tokens_per_sec_per_gpu=2_273)
    rows = [published(n, case=case(**of, num_gpus=n), figures=rate, **at) for n in (8, 16)]
    page, other = "data/published/kimi.md", "data/published/nemo.md"
    wrong, odd = (
        published(n, case=case(framework="nemo", num_gpus=8 * n), figures=Figures(**figures))
        for n, figures in ((1, {"tokens_per_sec_per_gpu": 7}), (2, {"mfu": 1.5}))
    )
    stored(url, run)
    stored(url, *rows, page=page)
    stored(url, wrong, odd, page=other)
    first = project.built()

    right = wrong.model_copy(update={"figures": Figures(tokens_per_sec_per_gpu=12_273)})
    stored(url, more)
    stored(url, right, odd, page=other)
    with closing(sqlite3.connect(project.store)) as connection:  # readers need no file of their own
        connection.execute("PRAGMA journal_mode=DELETE")
    with no_file_above(300), pytest.raises(Exception, match="File too large"):
        project.built()
    second = project.built()

    stored(url, published(release=release("25.07", framework="nemo")), page="new.md")
    accept(url, other, project.docs / "accepted.yaml")
    withdraw([page, "a"], url, "measured on a machine that others used")
    third, clean = project.built(), tmp_path / "clean"
    assert first != second != third == project.clean(clean)
    assert folders(project.docs) == folders(clean / "docs")
    assert "scaling/dfm" in second.keys() - third.keys()


REDONE = {
    "performance/nemo/25.07", "performance/coverage/nemo/25.07", "sources/bd10e5f6b9485995",
    "models/llama3-8b", "systems/dgx-b200", "index", "models/index", "systems/index",
    "performance/index", "performance/coverage", "performance/changelog", "performance/systems",
    "changes/index",
}  # fmt: skip
"""The pages that a published row changes: its own, and lists of all."""


def search_index(project: Project) -> dict[str, Any]:
    """What the search knows."""
    text = (project.html / "searchindex.js").read_text()
    index: dict[str, Any] = json.loads(text.removeprefix("Search.setIndex(")[:-1])
    return index


def entries(project: Project) -> dict[str, list[str]]:
    """The pages that each entry of the index leads to."""
    index = search_index(project)
    return {
        entry: [index["docnames"][page] for page, _, is_main in found if is_main]
        for entry, found in index["indexentries"].items()
    }


def test_a_build_redoes_what_one_result_more_changes(tmp_path: Path) -> None:
    """The index leads to each release: by its version, by its framework too, and by the title of
    a model that it calls otherwise.

    Search takes a part of a word, of llama3, only where no page has the whole word. A release
    without a version has no entry.
    """
    project = Project(tmp_path / "project")
    url = store_url(str(project.store))
    stored(url, published(release=release(None, framework="nemo")), page="first.md")
    stored(url, write_run(tmp_path, run_id="one"))  # the audit follows
    project.built()
    first = ["performance/megatron-core/0.16.0"]
    run = {"one": ["runs/one"]}
    assert {"0.16.0": first, "megatron-core 0.16.0": first} | run == entries(project)

    before = project.ages()
    of = {"case": case(framework="nemo", system="dgx-b200"), "raw": {"Model": "LLAMA3-8B"}}
    stored(url, published(release=release("25.07", framework="nemo"), **of), page="second.md")
    project.built()
    after = project.ages()
    rewritten = {name for name in after if before.get(name) != after[name]}
    assert (REDONE, {f"{name}.html" for name in REDONE}) == (project.read, rewritten)
    second = ["performance/nemo/25.07"]
    both = run | {
        "0.16.0": first, "megatron-core 0.16.0": first, "25.07": second, "nemo 25.07": second
    }  # fmt: skip
    assert both == entries(project)
    assert b"Llama 3 8B" not in project.last[f"{second[0]}.html"]
    index = search_index(project)
    assert second[0] in [index["docnames"][page] for page in index["terms"]["llama"]]
    settle(project.store)
    project.built()
    assert (set(), after, index) == (project.read, project.ages(), search_index(project))
