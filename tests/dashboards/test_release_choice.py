"""The two releases that the comparison opens on."""

from collections.abc import Mapping, Set

from dashboards.release_choice import NumShared, Pair, offered, opened_on, opening_pair
from perfdb.compare import Choice


def of(name: str, version: str | None, *ids: int) -> Choice:
    return Choice(name, name.split(maxsplit=1)[0], version, ids)


OLD, MIDDLE, NEW = (
    of("nemo 25.02", "25.02", 1),
    of("nemo 25.04", "25.04", 2),
    of("nemo 25.07", "25.07", 3),
)
CORE = (of("core 0.9", "0.9", 4), of("core 0.10", "0.10", 5))
UNKNOWN = of("nemo (unattributed)", None, 9)
WHOLE, BOXED = of("nemo 25.04", "25.04", 2, 7), of("nemo 25.04 [box]", None, 7)


def shared(work: Mapping[int, Set[str]]) -> NumShared:
    """How many workloads two releases share, by the workloads of each id."""

    def count(pair: Pair) -> int:
        a, b = ({key for one in it.release_ids for key in work.get(one, ())} for it in pair)
        return len(a & b)

    return count


def test_the_newest_release_that_shares_work_is_opened_with_the_newest_it_shares_it_with() -> None:
    """A release is all of its containers."""
    work = {1: {"a", "b", "c"}, 2: {"a", "b"}, 3: {"b"}}
    assert (MIDDLE, NEW) == opening_pair([OLD, MIDDLE, NEW], shared(work))
    assert (OLD, MIDDLE) == opening_pair([OLD, MIDDLE, NEW], shared(work | {3: {"z"}}))
    assert (OLD, NEW) == opening_pair([OLD, MIDDLE, NEW], shared({1: {"a"}, 2: {"z"}, 3: {"a"}}))
    assert (OLD, WHOLE) == opening_pair([OLD, WHOLE], shared({1: {"a"}, 7: {"a"}}))


def test_of_the_frameworks_it_is_the_one_that_shares_most() -> None:
    work = {1: {"a"}, 2: {"a"}, 4: {"x", "y"}, 5: {"x", "y"}}
    assert CORE == opening_pair([*CORE, OLD, MIDDLE], shared(work))
    assert (OLD, MIDDLE) == opening_pair([*CORE, OLD, MIDDLE], shared(work | {5: set()}))


def test_unattributed_releases_are_offered_last() -> None:
    assert [*CORE, OLD, UNKNOWN] == offered([*CORE, UNKNOWN, OLD])


def test_where_no_two_stated_releases_share_work_the_two_that_share_most_are_opened() -> None:
    """What nobody stated is A; a release and one of its containers are never a pair."""
    work = {1: {"a"}, 2: {"b", "c"}, 7: {"d", "e", "f"}, 9: {"b", "c"}}
    assert (UNKNOWN, WHOLE) == opening_pair([OLD, WHOLE, BOXED, UNKNOWN], shared(work))
    assert opening_pair([OLD, WHOLE, BOXED], shared(work)) is None


def test_a_named_release_is_opened_with_the_other_that_shares_most_the_newest_of_those() -> None:
    work = {1: {"a", "b"}, 2: {"a"}, 3: {"a"}, 4: {"x"}}
    known = [CORE[0], OLD, MIDDLE, NEW]
    assert (OLD, NEW) == opened_on(known, shared(work), OLD, None)
    assert (MIDDLE, NEW) == opened_on(known, shared(work), None, NEW)
    assert (MIDDLE, MIDDLE) == opened_on(known, shared(work), MIDDLE, MIDDLE)
    assert (OLD, OLD) == opened_on([OLD], shared(work), None, OLD)
    assert (OLD, NEW) == opened_on([OLD, NEW], shared({}), None, None)
    work = {1: {"a"}, 2: {"b", "c"}, 7: {"a", "b"}}
    assert (OLD, WHOLE) == opened_on([OLD, WHOLE, BOXED], shared(work), None, WHOLE)
    assert (BOXED, BOXED) == opened_on([WHOLE, BOXED], shared(work), None, None)
