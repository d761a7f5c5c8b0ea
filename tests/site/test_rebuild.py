"""A build after a build: the site is as one from nothing, whatever has happened in between."""

import os
import shutil
import sqlite3
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from perfdb.catalog import titles
from perfdb.db.session import store_url
from perfdb.ingest import withdraw
from perfdb.record import Figures
from perfdb.run_record import RecipeRef
from perfdb.site import extension, files
from perfdb.site.files import DOWNLOADS, GENERATED, PUBLISHED
from tests.factories import case, published, release, stored, write_run

# Sphinx and its extensions warn each other of what the next Sphinx will not have.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"
)

CONF = 'extensions = ["perfdb.site"]\nhtml_theme = "basic"\nhtml_copy_source = False\n'
PAGE = "performance/nemo/1.0"
HOUR_NS = 3600 * 10**9

Contents = dict[str, bytes]


def contents(folder: Path) -> Contents:
    """Every file of a site, and every folder, which says nothing."""
    found = folder.rglob("*")
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in found
    }


def folders(folder: Path) -> set[str]:
    """Every folder in a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()}


class Project:
    """Documents with a plain theme, the store they are filled from, and the site."""

    def __init__(self, folder: Path) -> None:
        self.docs, self.html = folder / "docs", folder / "html"
        self.store = folder / "store.sqlite"
        self.last: Contents = {}
        (self.docs / "static").mkdir(parents=True)
        (self.docs / "static" / "own.css").write_text("a {}")
        (self.docs / "conf.py").write_text(f'{CONF}html_static_path = ["static"]\n')
        (self.docs / "index.md").write_text("# Site\n\n```{perfdb-overview}\n```\n")

    def built(self) -> Contents:
        """Build it; what the site holds then."""
        doctrees = self.docs.parent / "doctrees"
        given = {"perfdb_url": f"sqlite:///{self.store}"}
        with docutils_namespace():
            app = Sphinx(
                self.docs, self.docs, self.html, doctrees, "html", given, status=None, warning=None
            )
            app.build()
        self.last = contents(self.html)
        return self.last

    def clean(self, folder: Path) -> Contents:
        """The site of the same store and documents, built from nothing."""
        other = Project(folder)
        with (
            closing(sqlite3.connect(self.store)) as ours,
            closing(sqlite3.connect(other.store)) as its,
        ):
            ours.backup(its)
        for own in (*self.docs.glob("*.*"), self.docs / "static" / "own.css"):
            shutil.copy2(own, other.docs / own.relative_to(self.docs))
        return other.built()

    def rename(self, title: str) -> None:
        """Write another title of a model into the store."""
        with closing(sqlite3.connect(self.store)) as connection, connection:
            connection.execute("UPDATE models SET title = ?", (title,))


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


def replaced(path: Path, content: bytes) -> None:
    """Put another file of the same age in the place of a file."""
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(content)
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


def overwritten(path: Path, content: bytes) -> None:
    """Write over a file, and set back its age."""
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("put", [replaced, overwritten])
def test_another_store_of_the_same_size_and_age_is_read(
    project: Project, put: Callable[[Path, bytes], None], tmp_path: Path
) -> None:
    before = project.last
    copy = Project(tmp_path / "copy")
    shutil.copy2(project.store, copy.store)
    copy.rename(put.__name__)
    changed = copy.store.read_bytes()
    assert project.store.stat().st_size == len(changed)
    put(project.store, changed)
    after = project.built()
    assert before != after == project.clean(tmp_path / "clean")


def test_what_is_not_merged_into_the_store_yet_is_read(project: Project, tmp_path: Path) -> None:
    """As long as somebody has a store open, what they wrote last stands beside it."""
    before = project.last
    with closing(sqlite3.connect(project.store)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        project.rename("beside")
        beside = project.store.with_name("store.sqlite-wal")
        assert beside.stat().st_size
        settle(beside)
        after = project.built()
        assert before != after == project.clean(tmp_path / "clean")


def test_a_store_of_the_future_is_read_each_time(project: Project, tmp_path: Path) -> None:
    """Where the clock was set back, the age of a file says nothing of when it was written."""
    ahead = time.time_ns() + HOUR_NS
    for title in ("before", "behind"):
        project.rename(title)
        os.utime(project.store, ns=(ahead, ahead))
        after = project.built()
    assert after == project.clean(tmp_path / "clean")
    assert files.state_of_file(project.store) is None
    settle(project.store)


def test_another_store_is_another_site_and_back_again(project: Project, tmp_path: Path) -> None:
    before, own = project.last, project.store
    project.store = tmp_path / "other.sqlite"
    stored(store_url(str(project.store)), published(release=release("9.0")))
    try:
        other = project.built()
        assert f"{PAGE}.html" not in other
        assert other == project.clean(tmp_path / "clean")
    finally:
        project.store = own
    assert before == project.built()


def removed(path: Path) -> None:
    path.unlink()


def edited(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


@pytest.mark.parametrize("harm", [removed, edited])
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


def test_another_perfdb_makes_every_page_anew(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = project.last
    monkeypatch.setattr(titles, "FRAMEWORKS", {"megatron-core": "Renamed"})
    assert before == project.built()
    monkeypatch.setattr(files, "code", lambda: "another")
    after = project.built()
    assert before != after == project.clean(tmp_path / "clean")


def test_nothing_is_asked_of_sphinx_that_the_next_one_lacks(
    project: Project, tmp_path: Path
) -> None:
    """Sphinx says so where it is asked; what its other extensions ask is for them to mend."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        project.clean(tmp_path / "clean")
    ours = Path(files.__file__).parent
    assert [] == [str(one.message) for one in said if ours in Path(one.filename).parents]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conf.py", f'{CONF}html_static_path = ["static"]\nhtml_title = "Another title"\n'),
        ("conf.py", f'{CONF}html_static_path = ["static"]\nperfdb_hostnames = True\n'),
        ("static/own.css", "a { color: red }"),
        ("index.md", "# Another title\n\n```{perfdb-overview}\n```\n"),
    ],
)
def test_what_people_write_is_read_again(
    project: Project, name: str, text: str, tmp_path: Path
) -> None:
    before = project.last
    (project.docs / name).write_text(text)
    after = project.built()
    assert before != after == project.clean(tmp_path / "clean")


def test_a_result_more_is_the_site_that_a_build_from_nothing_makes(
    project: Project, tmp_path: Path
) -> None:
    """To the byte, and without the pages that do not show it being touched."""
    before = project.last
    stored(store_url(str(project.store)), write_run(tmp_path, run_id="two"))
    after = project.built()
    assert "runs/two.html" in after
    assert after.keys() > before.keys()
    assert after == project.clean(tmp_path / "clean")


def test_where_perfdb_lies_makes_no_other_site(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the folder of the documents: not even to what Sphinx tells sites apart by."""
    clean, elsewhere = tmp_path / "clean", tmp_path / "elsewhere"
    shutil.copytree(extension.STATIC, elsewhere)
    monkeypatch.setattr(extension, "STATIC", elsewhere)
    assert ".buildinfo" in project.last
    assert project.last == project.clean(clean)


BESIDE = """# Site

```{perfdb-overview}
```

```{toctree}
performance/audit
recipes/index
own
```
"""


def test_whatever_becomes_of_a_store_the_site_is_one_from_nothing(tmp_path: Path) -> None:
    """After a run more, a correction and withdrawals, to the byte and to the folder.

    Pages lie beside one another in lists, so that one that comes or goes has neighbours, some of
    them written by hand; and each page has a copy of its text.
    """
    project = Project(tmp_path / "project")
    url = store_url(str(project.store))
    (project.docs / "conf.py").write_text(CONF.replace("False", "True"))
    (project.docs / "index.md").write_text(BESIDE)
    (project.docs / "own.md").write_text("# Own\n")
    recipes = [RecipeRef(name=name, path=f"{name}.yaml", sha256="0" * 64) for name in "abc"]
    *runs, more = (write_run(tmp_path, run_id=one.name, recipe=one) for one in recipes)
    of = {"framework": "dfm", "model": "kimi-k2", "system": "dgx-gb300"}
    at = {"release": release("main", framework="dfm")}
    rate = Figures(tokens_per_sec_per_gpu=2_273)
    rows = [published(n, case=case(**of, num_gpus=n), figures=rate, **at) for n in (8, 16)]
    wrong = rows[0].model_copy(update={"figures": Figures(tokens_per_sec_per_gpu=7)})
    page = "data/published/kimi.md"
    stored(url, *runs, published())
    stored(url, wrong, rows[1], page=page)
    project.built()
    steps = (
        lambda: stored(url, more),
        lambda: stored(url, *rows, page=page),
        lambda: withdraw([page, "c"], url, "measured on a machine that others used"),
    )
    for number, step in enumerate(steps):
        step()
        clean = tmp_path / str(number)
        before, after = project.last, project.built()
        assert before != after == project.clean(clean)
        assert folders(project.docs) == folders(clean / "docs")
    assert "scaling/dfm" in before.keys() - after.keys()
