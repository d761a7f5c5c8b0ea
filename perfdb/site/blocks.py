"""Blocks of pages as JSON: between the build that makes them and the directives that show them."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from perfdb.site import downloads
from perfdb.site.data import SiteResult
from perfdb.site.files import SiteLayout
from perfdb.site.page import (
    AllDownloads,
    Block,
    Code,
    Download,
    FileLinks,
    IndexEntry,
    Section,
    Tabs,
)

Stored = Mapping[str, object]
"""A block as it is kept: JSON."""


def blocks_of(path: Path) -> list[Stored]:
    """The blocks of a page as they are kept."""
    blocks: list[Stored] = json.loads(path.read_bytes().split(b"\n", 2)[2])
    return blocks


@dataclass(frozen=True)
class Keeper:
    """Turns the blocks of a document into JSON and writes the files of its downloads.

    `taken` are files of the document that another part of it has.
    """

    layout: SiteLayout
    document: str
    files: list[str] = field(default_factory=list)

    def blocks(self, blocks: Iterable[Block], taken: Collection[Path] = ()) -> list[Stored]:
        """Blocks as JSON."""
        return [self._block(block, taken) for block in blocks if block != ""]

    def _block(self, block: Block, taken: Collection[Path]) -> Stored:
        match block:
            case Markup():
                return {"html": str(block)}
            case Section(title, inner):
                return {"section": title, "blocks": self.blocks(inner, taken)}
            case Tabs(group, tabs):
                inner_tabs = [
                    {"name": it.name, "title": it.title, "blocks": self.blocks(it.blocks, taken)}
                    for it in tabs
                ]
                return {"tabs": inner_tabs, "group": group}
            case Download(results):
                return self._download(block, results, taken)
            case _:
                return self._leaf(block)

    def _leaf(self, block: Code | FileLinks | IndexEntry | AllDownloads) -> Stored:
        match block:
            case Code(text, language):
                return {"code": text, "language": language}
            case FileLinks(run_files, before, after):
                listed = [
                    {"path": self._relative(self.layout.run_file(it)), "name": it.name,
                     "size": it.size_bytes}
                    for it in run_files
                ]  # fmt: skip
                return {"files": listed, "before": before, "after": after}
            case IndexEntry(words):
                return {"entry": words}
            case AllDownloads():
                return {"everything": True}

    def _download(
        self, block: Download, results: Sequence[SiteResult], taken: Collection[Path]
    ) -> Stored:
        """The files of a table, and the titles of its models: the search finds it by these."""
        known = {*taken, *(self.layout.root / name for name in self.files)}
        folder = self.layout.downloads(self.document)
        made = downloads.write_download(folder, block.name, results, known)
        names = [self._relative(path) for path in made]
        self.files.extend(names)
        models = list(dict.fromkeys(result.model_title for result in results))
        return {"downloads": names, "models": models}

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.layout.root).as_posix()
