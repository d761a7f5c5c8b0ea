"""The two releases that the comparison opens on."""

from dashboards.release_pairs import newest_pair, offered, opened_on, opening_pair
from perfdb.compare import Choice


def of(name: str, version: str | None, *ids: int) -> Choice:
    return Choice(name, name.split(maxsplit=1)[0], version, ids)


OLD, MIDDLE, NEW = (
    of("nemo 25.02", "25.02", 1),
    of("nemo 25.04", "25.04", 2),
    of("nemo 25.07", "25.07", 3),
)
CORE = (of("core 0.9", "0.9", 4), of("core 0.10", "0.10", 5))


def test_the_newest_release_that_shares_work_is_held_against_the_newest_it_shares_it_with():
    work = {1: {"a", "b", "c"}, 2: {"a", "b"}, 3: {"b"}}
    assert (MIDDLE, NEW) == newest_pair([OLD, MIDDLE, NEW], work)
    assert (OLD, MIDDLE) == newest_pair([OLD, MIDDLE, NEW], work | {3: {"z"}})
    assert (OLD, NEW) == newest_pair([OLD, MIDDLE, NEW], {1: {"a"}, 2: {"z"}, 3: {"a"}})


def test_of_the_frameworks_it_is_the_one_that_shares_most():
    work = {1: {"a"}, 2: {"a"}, 4: {"x", "y"}, 5: {"x", "y"}}
    assert CORE == newest_pair([*CORE, OLD, MIDDLE], work)
    assert (OLD, MIDDLE) == newest_pair([*CORE, OLD, MIDDLE], work | {5: set()})


def test_two_frameworks_are_never_a_pair_and_unattributed_results_are_no_release():
    unknown = of("nemo (unattributed)", None, 9)
    work = {1: {"a"}, 5: {"a"}, 9: {"a"}}
    assert newest_pair([CORE[1], OLD, unknown], work) is None


def test_a_release_is_all_of_its_containers():
    boxed = of("nemo 25.04", "25.04", 2, 7)
    assert (OLD, boxed) == newest_pair([OLD, boxed], {1: {"a"}, 7: {"a"}})


def test_unattributed_releases_are_offered_last():
    unknown = of("core (unattributed)", None, 9)
    assert [*CORE, OLD, unknown] == offered([*CORE, unknown, OLD])


def test_where_no_two_stated_releases_share_work_the_two_that_share_most_are_opened() -> None:
    """What nobody stated is A; a release and one of its containers are never held together."""
    unknown = of("nemo (unattributed)", None, 9)
    whole, boxed = of("nemo 25.04", "25.04", 2, 7), of("nemo 25.04 [box]", None, 7)
    work = {1: {"a"}, 2: {"b", "c"}, 7: {"d", "e", "f"}, 9: {"b", "c"}}
    assert (unknown, whole) == opening_pair([OLD, whole, boxed, unknown], work)
    assert opening_pair([OLD, whole, boxed], work) is None
    assert (OLD, MIDDLE) == opening_pair([OLD, MIDDLE, unknown], {1: {"a"}, 2: {"a"}, 9: {"a"}})


def test_beside_a_named_release_stands_the_other_that_shares_most_the_newest_of_those() -> None:
    work = {1: {"a", "b"}, 2: {"a"}, 3: {"a"}, 4: {"x"}}
    known = [CORE[0], OLD, MIDDLE, NEW]
    assert (OLD, NEW) == opened_on(known, work, OLD, None)
    assert (MIDDLE, NEW) == opened_on(known, work, None, NEW)
    assert (MIDDLE, MIDDLE) == opened_on(known, work, MIDDLE, MIDDLE)
    assert NEW == opened_on(known, work, CORE[0], None).b
    assert (OLD, OLD) == opened_on([OLD], work, None, OLD)
    assert (OLD, NEW) == opened_on([OLD, NEW], {}, None, None)


def test_beside_a_named_release_stands_no_part_of_it() -> None:
    whole, boxed = of("nemo 25.04", "25.04", 2, 7), of("nemo 25.04 [box]", None, 7)
    work = {1: {"a"}, 2: {"b", "c"}, 7: {"a", "b"}}
    assert (OLD, whole) == opened_on([OLD, whole, boxed], work, None, whole)
    assert (boxed, OLD) == opened_on([OLD, whole, boxed], work, boxed, None)
    assert (boxed, boxed) == opened_on([whole, boxed], work, None, None)
