"""Every kind of page is known wherever its folder and its parts must be, else nobody finds it."""

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

from perfdb.site.contents import Contents
from perfdb.site.data import SourcePage
from perfdb.site.files import FOLDERS
from perfdb.site.pages import KINDS, PARTS, all_pages
from tests.site.samples import HASH, published, result, run_page

ROOT = Path(__file__).parents[2]
EMPTY = Contents()
FILLED = Contents(
    results=(published(), result(), result(num_gpus=16), result(release="0.17.0")),
    runs=(run_page(4.0, 4.1, 4.2),),
    sources=(SourcePage(path="dfm.md", sha256=HASH, text="# DFM"),),
)
NOT_LISTED = {"runs"}
"""Folders that programs are not told of: single runs are too many."""


def texts(contents: Contents) -> dict[str, str]:
    """The text of each page that is made, by its name."""
    return {page.name: page.text for page in all_pages(contents) if page.text is not None}


def sections() -> set[str]:
    """The folders of which `llms.txt` tells."""
    spec = importlib.util.spec_from_file_location("discovery", ROOT / "docs/_ext/discovery.py")
    assert spec
    assert spec.loader
    discovery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(discovery)
    return {folder for folders in discovery.SECTIONS.values() for folder in folders}


def test_pages_are_made_where_they_are_looked_for() -> None:
    """Elsewhere they would never be removed: their folders belong into FOLDERS of site/files.py."""
    made = {name.partition("/")[0] for name in [*texts(EMPTY), *texts(FILLED)]}
    assert made == set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_git_ignores_what_is_made_and_make_removes_it(folder: str) -> None:
    assert f"/docs/{folder}/" in (ROOT / ".gitignore").read_text().splitlines()
    [clean] = re.findall(r"^clean:.*\n\t(.+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert f"docs/{folder}" in clean.split()


def test_every_list_of_pages_is_in_the_navigation() -> None:
    """Those that a store without any result has too belong into the toctree of docs/index.md."""
    listed = (ROOT / "docs" / "index.md").read_text().splitlines()
    assert [] == sorted(texts(EMPTY).keys() - set(listed))


def test_programs_are_told_of_every_list_of_pages() -> None:
    """Their folders belong into SECTIONS of docs/_ext/discovery.py."""
    made = {name.partition("/")[0] for name in texts(EMPTY)}
    assert NOT_LISTED == made - sections()


def test_every_part_that_a_page_shows_is_one_of_its_kind() -> None:
    """A list shows the part that is called as its folder."""
    for text in (*texts(EMPTY).values(), *texts(FILLED).values()):
        assert set(re.findall(r"^```\{perfdb-part\} (\S+)", text, re.MULTILINE)) <= PARTS.keys()


def test_no_two_kinds_have_a_part_of_one_name() -> None:
    """The later one would take the place of the other."""
    assert [] == [name for name, n in Counter(n for k in KINDS for n in k.parts).items() if n > 1]
