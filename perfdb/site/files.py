"""The files that the site writes beside the documents, and those that it removes again.

Nothing is written that already says the same, so that a build only redoes what has changed.
"""

import filecmp
import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perfdb.site.addresses import slug

if TYPE_CHECKING:
    from perfdb.site.data import RunFile
    from perfdb.site.page import Page

MARK: Final = "# Made by perfdb.site from the store; what is changed here is lost."
"""Stands on the second line of every page that is made, and of none that is written."""

GENERATED: Final = "_generated/perfdb"
"""The folder, inside the documents, of what is no document; it is ours alone."""
DOWNLOADS: Final = "_generated/perfdb-data"
"""The folder, inside the documents, of the files of tables; a document's are in one of its name."""
PUBLISHED: Final = "_data"
"""Where the files of tables are in the site."""
EVERYTHING: Final = "results"
"""What the file of all results is called."""

DECLARING: Final = ("{perfdb-release-page}", "{perfdb-table}")
"""What a page written by hand has in it that takes the place of one that is made."""

FOLDERS = (
    "changes", "models", "performance", "recipes", "runs", "scaling", "sources", "systems",
)  # fmt: skip
"""Where pages are made. Pages written by hand may stand there too and are left alone."""


@dataclass(frozen=True)
class Layout:
    """Where everything lies. `root` is the folder of the documents."""

    root: Path

    def page(self, name: str) -> Path:
        """The MyST text of a document."""
        return self.root / f"{name}.md"

    def data(self, name: str) -> Path:
        """The data that a document's directives read."""
        return self.root / GENERATED / "data" / f"{name}.json"

    def run_file(self, file: "RunFile") -> Path:
        """A file of a run, to be downloaded; the same bytes are kept once for each name."""
        name = slug(Path(file.name).name)
        return self.root / GENERATED / "files" / file.sha256[:16] / name

    @property
    def done(self) -> Path:
        """What the last build was made from."""
        return self.root / GENERATED / "done.json"

    def pages(self) -> list[str]:
        """Every page that stands where pages are made, whoever wrote it."""
        found = (page for folder in FOLDERS for page in (self.root / folder).rglob("*.md"))
        return sorted(page.relative_to(self.root).as_posix() for page in found)

    def made(self) -> list[Path]:
        """Every file that an earlier build has made."""
        generated = (self.root / GENERATED).rglob("*")
        pages = (self.root / page for page in self.pages())
        return [*(file for file in generated if file.is_file()), *filter(is_made, pages)]


def is_made(page: Path) -> bool:
    """Whether a page was made from the store, not written by hand."""
    with page.open(encoding="utf-8", errors="replace") as file:
        return MARK in (file.readline(), file.readline().rstrip("\n"))


def write_pages(layout: Layout, pages: "Iterable[Page]") -> set[Path]:
    """Write the pages and their data; the files that they are now made of.

    A page written by hand that declares tables takes the place of the one that would be made.
    Raises FileExistsError where another page written by hand stands in the way.
    """
    kept: set[Path] = set()
    for page in pages:
        if page.text is not None:
            kept.add(_write_text(layout.page(page.name), page.text))
        if page.data is not None:
            said = page.data.model_dump_json(exclude_defaults=True)
            kept.add(write(layout.data(page.name), said.encode()))
    return kept


def _write_text(path: Path, text: str) -> Path:
    if not path.exists() or is_made(path):
        return write(path, text.encode())
    if any(one in path.read_text(encoding="utf-8", errors="replace") for one in DECLARING):
        return path
    raise FileExistsError(
        f"{path}: this page is made from the store; rename yours, or declare in it what it shows "
        f"with {DECLARING[0]}"
    )


def write_run_files(
    layout: Layout, files: "Iterable[RunFile]", content: Callable[[str], bytes]
) -> set[Path]:
    """Write the files of runs that are not there yet. A name holds the hash of its bytes."""
    kept: set[Path] = set()
    for file in files:
        path = layout.run_file(file)
        kept.add(path)
        if not path.is_file() or path.stat().st_size != file.size_bytes:
            write(path, content(file.sha256))
    return kept


def write(path: Path, content: bytes) -> Path:
    """Write a file unless it already says just this."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path


def remove_others(layout: Layout, kept: set[Path]) -> None:
    """Remove what an earlier build has made and this one has not."""
    for path in layout.made():
        if path not in kept:
            path.unlink()
    for folder in (*FOLDERS, GENERATED):
        prune(layout.root / folder)


def prune(folder: Path) -> None:
    """Remove a folder, and each in it, that holds no file."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # it holds something
            Path(path).rmdir()


def publish(root: Path, out: Path, used: Iterable[Path]) -> None:
    """Put the files that documents use into the site, and remove those that none uses any more."""
    made, site = root / DOWNLOADS, out / PUBLISHED
    wanted = {path for path in used if made in path.parents and path.is_file()}
    wanted |= set(made.glob(f"{EVERYTHING}.*"))
    kept = wanted | {_copied(path, site / path.relative_to(made)) for path in wanted}
    for path in [*made.rglob("*.*"), *site.rglob("*.*")]:
        if path not in kept and path.is_file():
            path.unlink()
    for folder in (made, site):
        prune(folder)


def _copied(path: Path, to: Path) -> Path:
    """A copy keeps its age, by which the next build knows it without reading it."""
    if not to.is_file() or not filecmp.cmp(path, to):
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, to)
    return to
