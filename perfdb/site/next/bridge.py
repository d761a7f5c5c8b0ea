"""Pages of the new form among those of the old one, until all have it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sqlalchemy import URL

from perfdb.audit.review import Entry
from perfdb.site.contents import Contents
from perfdb.site.next import build, data
from perfdb.site.next.files import SiteLayout


def write(root: Path, found: data.SiteData) -> tuple[set[str], set[Path]]:
    """Write them; their names, and the files that they are made of."""
    pages = list(build.all_pages(found))
    return {page.name for page in pages}, build.write_pages(SiteLayout(root), pages)


def stored(url: URL, known: Sequence[Entry], contents: Contents) -> data.SiteData:
    """The data of a store."""
    found = data.stored(url, known)
    return replace(found, pairs=contents.pairs, scaling=contents.scaling)
