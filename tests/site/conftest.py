"""A store with everything that a site can show, and the site that is built from it, once."""

import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from sqlalchemy import URL

from perfdb import ingest
from perfdb.db.session import store_url
from perfdb.pages.base import PageContext
from perfdb.record import Outcome
from perfdb.rundir import RunDir
from perfdb.site.addresses import FOLDERS
from tests import logs
from tests.browser import started
from tests.conftest import made_once
from tests.factories import EVIL, TEN_STEPS, case, published, release, stored, write_run

ROOT = Path(__file__).parents[2]
DFM = ROOT / "data" / "published" / "dfm.md"
SEED = ROOT.parent / "shared" / "seeds" / "dfm-performance-benchmarks.md"
MADE = ("_build", "_generated", "__pycache__", *FOLDERS)

RELEASE = "performance/megatron-core/0.16.0.html"
RANKED = "runs/dgx-h100-bf16-0.9.1-0.html"
"""A run with the log of a rank, with a name of more than 90 characters."""


@dataclass(frozen=True)
class Site:
    """Documents, the store they are filled from, and where the site is built."""

    docs: Path
    url: URL

    @property
    def html(self) -> Path:
        """Where the pages are."""
        return self.docs.parent / "html"

    @property
    def doctrees(self) -> Path:
        """What Sphinx keeps for the next build."""
        return self.docs.parent / "doctrees"

    def build(self, *, named: bool = True, address: str = "") -> "subprocess.CompletedProcess[str]":
        """Build as `make docs` does, with PERFDB_URL or without, for an address or for none."""
        command = [sys.executable, "-m", "sphinx", "-nWq", "--keep-going", "-b", "html"]
        known = {"PERFDB_URL": self.url.render_as_string()} if named else {}
        return subprocess.run(
            [*command, "-d", self.doctrees, self.docs, self.html],
            env=os.environ | known | {"PERFDB_SITE_URL": address},
            cwd=self.docs.parent,
            capture_output=True,
            text=True,
            check=False,
        )

    def built(self, *, named: bool = True, address: str = "") -> "Site":
        """The same, built without a warning."""
        done = self.build(named=named, address=address)
        assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
        return self


def site_of(folder: Path, url: URL) -> Site:
    """A copy of the documents, so that nothing is made in the real ones."""
    docs = folder / "docs"
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns(*MADE))
    return Site(docs, url)


def all_runs(folder: Path) -> list[RunDir]:
    """Runs of two releases on two systems; one out of memory; one with names full of markup."""
    made = [
        write_run(
            folder,
            case=case(system=system, precision=precision),
            release=release(version),
            run_id=f"{system}-{precision}-{version}-{repeat}",
            step_times=[time * factor * (1 + repeat / 100) for time in TEN_STEPS],
        )
        for version, factor in (("0.9.1", 1.2), ("0.16.0", 1.0))
        for system in ("dgx-h100", "dgx-b200")
        for precision in ("bf16", "fp8_cs")
        for repeat in range(2)
    ]
    made += [
        write_run(folder, case=case(task="sft", system=system), run_id=f"sft-{system}")
        for system in ("dgx-h100", "dgx-b200")
    ]
    rank = made[0].rank_logs / "llama3_8b_pretrain_dgx_h100_20260102T030405" / "attempt_0" / "0"
    rank.mkdir(parents=True)
    (rank / "stdout_and_stderr_of_the_worker.log").write_text("rank 0\n")
    failed = {"outcome": Outcome.OUT_OF_MEMORY, "exit_code": 1, "error": "CUDA out of memory",
              "step_times": (9.0,)}  # fmt: skip
    evil = case(model=EVIL, variant=EVIL, qualifiers=(EVIL,), kernels=(EVIL,))
    return [
        *made,
        write_run(folder, case=evil, run_id=EVIL.replace("/", ""), error=EVIL, command=(EVIL,)),
        write_run(folder, case=case(model="llama3.1-405b"), run_id="out-of-memory", **failed),
    ]


def full_store(folder: Path) -> URL:
    """Runs, published pages, and DFM's page as it was published where it can be had."""
    url = store_url(str(folder / "store.sqlite"))
    stored(url, *all_runs(folder / "runs"), published())
    for page, version in ((DFM, "main"), (SEED, "seed")):
        if page.is_file():
            report = ingest.ingest([page], url, ingest.Options(PageContext(release=version)))
            assert (5, ()) == (report.new, report.rejected)
    return url


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site of the full store with the recipes of DFM, built."""

    def make(folder: Path) -> None:
        (folder / "recipes").symlink_to(ROOT / "recipes" / "dfm")
        site_of(folder, full_store(folder)).built()

    folder = made_once(tmp_path_factory, "site", make)
    return Site(folder / "docs", store_url(str(folder / "store.sqlite")))


ADDRESS = "https://perf.example.org/training/"


@pytest.fixture(scope="session")
def addressed(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site of nothing but logs and one page by hand, built for an address as ours is."""

    def make(folder: Path) -> None:
        url = store_url(str(folder / "store.sqlite"))
        logs.write(folder / "logs")
        logs.write(folder / "logs", logs.SUMMARY, "results.json")
        assert 2 == ingest.ingest([folder / "logs"], url, logs.GIVEN).new
        docs = with_our_settings(folder / "docs")
        (docs / "index.md").write_text(ADDRESSED)
        (docs / "own").mkdir()
        (docs / "own" / "page.md").write_text("# Own\n")
        Site(docs, url).built(address=ADDRESS.rstrip("/"))

    folder = made_once(tmp_path_factory, "addressed", make)
    return Site(folder / "docs", store_url(str(folder / "store.sqlite")))


ADDRESSED = """# perfdb

```{perfdb-overview}
```

```{toctree}
own/page
runs/index
```
"""


def with_our_settings(docs: Path) -> Path:
    """Documents without a page, which are built as our own are."""
    for name in ("_ext", "_static", "_templates"):
        ignored = shutil.ignore_patterns(*MADE)
        shutil.copytree(ROOT / "docs" / name, docs / name, ignore=ignored)
    shutil.copy(ROOT / "docs" / "conf.py", docs)
    return docs


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    """Where the built site is served."""
    handler = partial(Quiet, directory=str(site.html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


def chosen(page: Page) -> list[str]:
    """The label of the chosen tab of each set of tabs."""
    return page.locator("input:checked + label.sd-tab-label").all_inner_texts()
