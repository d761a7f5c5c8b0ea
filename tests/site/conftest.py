"""A store with everything that a site can show, and the site that is built from it, once."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb import ingest
from perfdb.db.session import store_url
from perfdb.pages import PageContext
from perfdb.record import Outcome
from perfdb.rundir import RunDir
from tests.factories import TEN_STEPS, case, published, release, stored, write_run

ROOT = Path(__file__).parents[2]
DFM = ROOT / "data" / "published" / "dfm.md"
SEED = ROOT.parent / "shared" / "seeds" / "dfm-performance-benchmarks.md"
MADE = ("_build", "_generated", "performance", "runs", "sources", "__pycache__")

EVIL = "<script>alert(1)</script> *m* `c` {{ x }} {term}`y` | & \"q\" 'p'"


@dataclass(frozen=True)
class Site:
    """Documents, the store they are filled from, and where the site is built."""

    docs: Path
    url: URL

    @property
    def html(self) -> Path:
        """Where the pages are."""
        return self.docs.parent / "html"

    def build(self) -> "subprocess.CompletedProcess[str]":
        """Build as `make docs` does."""
        doctrees = self.docs.parent / "doctrees"
        command = [sys.executable, "-m", "sphinx", "-nWq", "--keep-going", "-b", "html"]
        return subprocess.run(
            [*command, "-d", doctrees, self.docs, self.html],
            env=os.environ | {"PERFDB_URL": self.url.render_as_string()},
            cwd=self.docs.parent,
            capture_output=True,
            text=True,
            check=False,
        )

    def built(self) -> "Site":
        """The same, built without a warning."""
        done = self.build()
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
    evil = case(model=EVIL, variant=EVIL, qualifiers=(EVIL,), kernels=(EVIL,))
    return [
        *made,
        write_run(folder, case=evil, run_id=EVIL.replace("/", ""), error=EVIL, command=(EVIL,)),
        write_run(
            folder,
            case=case(model="llama3.1-405b"),
            run_id="out-of-memory",
            outcome=Outcome.OUT_OF_MEMORY,
            exit_code=1,
            error="CUDA out of memory",
            step_times=(9.0,),
        ),
    ]


@pytest.fixture(scope="session")
def full_store(tmp_path_factory: pytest.TempPathFactory) -> URL:
    """Runs, published pages, and DFM's page as it was published where it can be had."""
    folder = tmp_path_factory.mktemp("store")
    url = store_url(str(folder / "store.sqlite"))
    stored(url, *all_runs(folder / "runs"), published())
    for page, version in ((DFM, "main"), (SEED, "seed")):
        if page.is_file():
            report = ingest.ingest([page], url, ingest.Options(PageContext(release=version)))
            assert (5, ()) == (report.new, report.rejected)
    return url


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, full_store: URL) -> Site:
    """The site of the full store, built."""
    return site_of(tmp_path_factory.mktemp("site"), full_store).built()
