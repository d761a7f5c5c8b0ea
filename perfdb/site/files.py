"""The files that the site writes beside the documents, and those that it removes again.

Nothing is written that already says the same, so that a build only redoes what has changed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from perfdb.site.data import RunFile
from perfdb.site.pages import MARK, Page
from perfdb.site.words import slug

GENERATED = "_generated/perfdb"
"""The folder, inside the documents, of what is no document; it is ours alone."""

FOLDERS = ("performance", "runs", "sources")
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

    def run_file(self, file: RunFile) -> Path:
        """A file of a run, to be downloaded; the same bytes are kept once for each name."""
        name = slug(Path(file.name).name)
        return self.root / GENERATED / "files" / file.sha256[:16] / name

    def made(self) -> list[Path]:
        """Every file that an earlier build has made."""
        generated = (self.root / GENERATED).rglob("*")
        pages = [page for folder in FOLDERS for page in (self.root / folder).rglob("*.md")]
        return [*(file for file in generated if file.is_file()), *filter(is_made, pages)]


def is_made(page: Path) -> bool:
    """Whether a page was made from the store, not written by hand."""
    with page.open(encoding="utf-8", errors="replace") as file:
        return MARK in (file.readline(), file.readline().rstrip("\n"))


def write_pages(layout: Layout, pages: Iterable[Page]) -> set[Path]:
    """Write the pages and their data; the files that they are now made of.

    Raises FileExistsError where a page written by hand stands in the way.
    """
    kept: set[Path] = set()
    for page in pages:
        path = layout.page(page.name)
        if path.exists() and not is_made(path):
            raise FileExistsError(f"{path}: this page is made from the store; rename yours")
        kept.add(write(path, page.text.encode()))
        if page.data is not None:
            kept.add(write(layout.data(page.name), page.data.model_dump_json(indent=1).encode()))
    return kept


def write_run_files(
    layout: Layout, files: Iterable[RunFile], content: Callable[[str], bytes]
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
