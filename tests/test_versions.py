"""Versions: in which order they stand, which is the newest, and which move on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from perfdb.versions import is_rolling, is_same, natural, newness, stage_order, version_order


def test_names_are_ordered_by_their_numbers() -> None:
    """Letter by letter 0.16 would come before 0.9, and 70B before 8B."""
    versions = ["25.04", "0.9", "0.16.0rc1", "0.16.0"]
    assert ["0.9", "0.16.0rc1", "0.16.0", "25.04"] == sorted(versions, key=version_order)
    models = ["Llama 3 70B", "Llama 3 405B", "Llama 3 8B", "GPT-3 175B"]
    assert ["GPT-3 175B", "Llama 3 8B", "Llama 3 70B", "Llama 3 405B"] == sorted(
        models, key=natural
    )


@pytest.mark.parametrize(
    "ordered",
    [
        ("1.0.dev1", "1.0a1.dev1", "1.0a1", "1.0b2", "1.0rc1", "1.0rc2", "1.0", "1.0+cu128",
         "1.0.post1", "1.1"),
        ("0.20.0", "0.21.0.dev9", "0.21.dev10", "0.21.0rc1", "0.21", "0.21.0.post1", "0.21.1"),
        ("25.09-alpha.rc2", "25.09", "25.09.01", "25.11"),
        ("v0.9", "v0.10rc1", "0.10", "0.11"),
        ("2.6.0a0+ecf3bae.nv25.01", "2.6.0", "2.7.0a0+1.nv25.03"),
        ("core_r0.9.0", "core_r0.10.0rc1", "core_r0.10.0"),
        ("25.09", "25.09-nightly", "25.10"),
        ("nightly-2026-02-28", "nightly-2026-03-01"),
    ],
)  # fmt: skip
def test_what_comes_before_a_release_is_older_and_what_comes_after_it_newer(
    ordered: tuple[str, ...],
) -> None:
    newest_first = ordered[::-1]
    assert ordered == tuple(sorted(newest_first, key=version_order))
    assert ordered[-1] == max(ordered, key=newness)


def test_the_hash_of_a_commit_is_no_order() -> None:
    for one, other in (
        ("0.16.0rc0+1a2b3c4", "0.16.0rc0+c4d5e6f"),
        ("0.16.0rc0+1234567", "0.16.0rc0+c4d5e6f.dirty"),  # a hash may have digits alone
        ("2.9.0a0+git1a2b3c4", "2.9.0a0+gitc4d5e6f"),
        ("1.0.dev3+g1a2b3c4", "1.0.dev3+gc4d5e6f01"),
        ("main-1a2b3c4", "main-c4d5e6f"),
        ("1a2b3c4", "c4d5e6f0c4d5e6f0c4d5e6f0c4d5e6f0c4d5e6f0"),
    ):
        assert stage_order(one) == stage_order(other)


def test_what_else_stands_in_a_version_is_one() -> None:
    for ordered in (
        ("1.0+20261120", "1.0+20261121"),
        ("1.0+g1a2b3c4.d20261120", "1.0+gc4d5e6f.d20261121"),
        ("2.6.0a0+ecf3bae.nv25.01", "2.6.0a0+1a2b3c4.nv25.02"),
        ("1.0a20261120", "1.0b20261120", "1.0b20261121"),
        ("1.0-b20261120", "1.0-b20261121"),
        ("1.0+cu118", "1.0+cu128"),
        ("nightly-20261120", "nightly-20261121"),
    ):
        newest_first = ordered[::-1]
        assert ordered == tuple(sorted(newest_first, key=stage_order))
        assert len(ordered) == len(set(map(stage_order, ordered)))


NUMBERS = st.integers(0, 12)
PEP_440 = st.builds(
    "{}.{}{}{}{}{}".format,
    NUMBERS,
    NUMBERS,
    st.sampled_from(["", ".0", ".1", ".0.0", ".0.3", ".10"]),
    st.sampled_from(["", "a0", "a10", "b2", "rc1", "-rc.2", "c9", "alpha1", ".pre3"]),
    st.sampled_from(["", ".post1", ".post10", "-2", "post3"]),
    st.sampled_from(["", ".dev0", ".dev11", "dev2", "+cu118", "+cu128", ".dev3+cu128"]),
)


@given(PEP_440, PEP_440)
def test_versions_of_python_packages_are_in_the_order_of_pep_440(one: str, other: str) -> None:
    """By `packaging`, which installs them."""
    if Version(one) < Version(other):
        assert version_order(one) < version_order(other)


@given(st.lists(st.one_of(st.none(), st.text(max_size=9))))
def test_any_versions_have_an_order_with_what_is_not_stated_first_and_branches_last(
    versions: list[str | None],
) -> None:
    ordered = sorted(versions, key=version_order)
    ranks = [0 if one is None else 2 if is_rolling(one) else 1 for one in ordered]
    assert sorted(ranks) == ranks


def test_a_branch_is_the_newest_only_where_nothing_has_a_number() -> None:
    assert "25.11" == max(("25.04", "main", None, "25.11", "25.9"), key=newness)
    assert "main" == max(("main", None), key=newness)


def test_parts_of_zeros_at_the_end_make_no_other_version() -> None:
    for one, other, expected in (
        ("25.09", "25.09.00", True), ("2.0", "2.0.0", True), ("25.04", "25.04.01", False),
        ("25.1", "25.10", False), ("25.09", "25.9", False), ("0.16.0", "0.16.0rc1", False),
        ("v0.2.0", "0.2.0", True), ("main", "main", True), ("main", "main.0", False),
    ):  # fmt: skip
        assert (expected, expected) == (is_same(one, other), is_same(other, one))


@given(st.lists(st.integers(0, 120), min_size=2, max_size=4), st.integers(1, 120))
def test_a_part_that_is_not_zero_makes_another_version(parts: list[int], last: int) -> None:
    version = ".".join(map(str, parts))
    assert is_same(version, f"{version}.00")
    assert not is_same(version, f"{version}.{last}")
