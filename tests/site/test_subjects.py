"""What the pages of models and systems share: tables that stay readable as releases come."""

from collections.abc import Mapping

import pytest

from perfdb.site import models, subjects, systems
from perfdb.site.data import Result
from tests.site.samples import address, model_page, result, soup, system_page

SIZES: list[tuple[Mapping[tuple[str, str | None], int], set[str | None]]] = [
    ({("nemo", "3"): 100, ("nemo", "2"): 100, ("nemo", "1"): 100}, {"3", "2", "1"}),
    ({("nemo", "3"): 100, ("nemo", "2"): 100, ("nemo", "1"): 101}, {"3", "2"}),
    ({("nemo", "2"): 301, ("nemo", "1"): 1}, {"2"}),
    ({("nemo", "2"): 301, ("dfm", None): 301, ("dfm", "0"): 1}, {"2", None}),
    ({("nemo", "3"): 100, ("nemo", "2"): 250, ("nemo", "1"): 1}, {"3"}),
    ({("a", "a2"): 1, ("a", "a1"): 200, ("b", "b2"): 1, ("b", "b1"): 99}, {"a2", "a1", "b2"}),
    ({("a", "a2"): 250, ("a", "a1"): 100, ("b", "b2"): 1, ("b", "b1"): 1}, {"a2", "b2", "b1"}),
    ({}, set()),
]
"""How many results the releases have, the newest first, and those that a table of 300 holds."""


@pytest.mark.parametrize(("sizes", "shown"), SIZES)
def test_a_table_holds_the_newest_releases(
    sizes: Mapping[tuple[str, str | None], int], shown: set[str | None]
) -> None:
    assert shown == {version for _, version in subjects.recent(sizes)}


def many() -> list[Result]:
    """Twelve releases of 30 results each, the first ten of which are 300."""
    return [
        result(release=f"0.{release}", global_batch_size=8 + number)
        for release in range(12, 0, -1)
        for number in range(30)
    ]


def test_older_releases_are_links_to_their_own_pages() -> None:
    """Both kinds of pages; the link opens the tab of the system."""
    for html in (
        models.results(model_page(*many()), 0, address).text,
        systems.results(system_page(*many()), 0, address).text,
    ):
        made = soup(html)
        table = made.select("table.perf")[-1]
        assert 300 == len(table.select("tbody tr"))
        found = [(it.get_text(), it.a and it.a["href"]) for it in made.select("details li")]
        assert [
            (
                f"Megatron-Core {name}: 30 results",
                f"../performance/megatron-core/{name}.html?system=dgx-h100",
            )
            for name in ("0.2", "0.1")
        ] == found


def test_a_table_that_has_room_for_all_says_nothing_of_older_releases() -> None:
    assert not soup(systems.results(system_page(*many()[:300]), 0, address).text).select("details")
