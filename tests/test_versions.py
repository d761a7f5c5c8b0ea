"""Versions: in which order they stand, which is the newest, and which move on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb.versions import is_rolling, is_same, natural, newest_version, version_order


def test_names_are_ordered_by_their_numbers() -> None:
    """Letter by letter 0.16 would come before 0.9, and 70B before 8B."""
    versions = ["25.04", "0.9", "0.16.0rc1", "0.16.0"]
    assert ["0.9", "0.16.0", "0.16.0rc1", "25.04"] == sorted(versions, key=natural)
    models = ["Llama 3 70B", "Llama 3 405B", "Llama 3 8B", "GPT-3 175B"]
    assert ["GPT-3 175B", "Llama 3 8B", "Llama 3 70B", "Llama 3 405B"] == sorted(
        models, key=natural
    )


@given(st.lists(st.one_of(st.none(), st.text(max_size=9))))
def test_any_versions_have_an_order_with_what_is_not_stated_first_and_branches_last(
    versions: list[str | None],
) -> None:
    ordered = sorted(versions, key=version_order)
    ranks = [0 if one is None else 2 if is_rolling(one) else 1 for one in ordered]
    assert sorted(ranks) == ranks


@pytest.mark.parametrize(
    ("versions", "newest"),
    [
        (("25.04", "main", None, "25.11", "25.9"), "25.11"),
        (("main", None), "main"),
        ((None,), None),
        ((), None),
    ],
)
def test_a_branch_is_the_newest_only_where_nothing_has_a_number(
    versions: tuple[str | None, ...], newest: str | None
) -> None:
    assert newest == newest_version(versions)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("25.09", "25.09.00", True),
        ("2.0", "2.0.0", True),
        ("25.04", "25.04.01", False),
        ("25.1", "25.10", False),
        ("25.09", "25.9", False),
        ("0.16.0", "0.16.0rc1", False),
        ("main", "main", True),
        ("main", "main.0", False),
    ],
)
def test_parts_of_zeros_at_the_end_make_no_other_version(
    one: str, other: str, expected: bool
) -> None:
    assert (expected, expected) == (is_same(one, other), is_same(other, one))


@given(st.lists(st.integers(0, 120), min_size=2, max_size=4), st.integers(1, 120))
def test_a_part_that_is_not_zero_makes_another_version(parts: list[int], last: int) -> None:
    version = ".".join(map(str, parts))
    assert is_same(version, f"{version}.00")
    assert not is_same(version, f"{version}.{last}")
