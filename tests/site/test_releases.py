"""The lists of releases: in which order they stand, and what is said beside their names."""

import re

from perfdb.site import addresses, releases
from perfdb.site.contents import Contents
from perfdb.site.data import Result
from perfdb.site.overview import of_contents
from perfdb.site.pages import all_pages
from perfdb.site.releases import release_pages
from tests.site.samples import address, published, result


def test_the_newest_release_of_a_framework_comes_first() -> None:
    pages = release_pages([result(release=version) for version in ("0.9.1", "0.16.0", None)])
    assert ["0.16.0", "0.9.1", None] == [page.release for page in pages]


def test_a_rolling_branch_is_not_the_newest_release_and_stands_first() -> None:
    """main has no number: it is the newest only where nothing has one."""
    versions = ("25.04", "main", None, "25.11")
    pages = release_pages([result(release=version) for version in versions])
    assert ["main", "25.11", "25.04", None] == [page.release for page in pages]
    cards = of_contents(Contents(results=tuple(pages[0].results + pages[1].results))).cards
    assert ["25.11"] == [card.release for card in cards]
    made = all_pages(Contents(results=tuple(map(one_of, versions))))
    [data] = [page.data for page in made if page.name == addresses.ARCHIVE]
    assert isinstance(data, releases.ReleaseList)
    shown = releases.archive(data, 0, address).text
    assert "main</a><small>, rolling</small>" in shown
    assert "25.11</a><small>, newest</small>" in shown


def one_of(version: str | None) -> Result:
    return result(release=version)


def test_what_was_run_without_a_gpu_comes_last_in_every_list_and_says_so() -> None:
    """AutoModel's trial would be the first by its name; a release of a trial is none on GPUs."""
    trial = result(framework="automodel", system="cpu", num_gpus=1)
    beside = result(framework="nemo", release="25.04", system="cpu", num_gpus=1)
    given = (trial, published(), beside, result(framework="nemo", release="25.02"))
    made = {page.name: page for page in all_pages(Contents(results=given))}
    names = ["NeMo DFM", "NeMo Framework", "NeMo AutoModel"]
    for name, listed in (
        (addresses.PERFORMANCE, releases.release_list),
        (addresses.ARCHIVE, releases.archive),
    ):
        page = made[name]
        assert names == re.findall("^## (.*)$", page.text or "", re.MULTILINE)
        assert isinstance(page.data, releases.ReleaseList)
        shown = [listed(page.data, number, address).text for number in range(3)]
        assert [0, 1, 1] == [text.count("a trial without a GPU</small>") for text in shown]
