"""Numbers as people read them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb import units


@pytest.mark.parametrize(
    ("value", "figures", "said"),
    [
        (0.065664, 4, "0.06566"), (12345.678, 4, "12,346"), (9.9996, 4, "10.00"),
        (-0.5, 2, "-0.50"), (0.0, 4, "0"), (None, 4, "–"), (math.nan, 4, "–"), (math.inf, 4, "inf"),
    ],
)  # fmt: skip
def test_significant_figures_are_kept_and_whole_numbers_are_not_rounded(
    value: float | None, figures: int, said: str
) -> None:
    assert said == units.significant(value, figures)


@given(st.floats(min_value=1e-12, max_value=1e12), st.integers(2, 7))
def test_a_figure_is_never_in_exponent_form_and_off_by_half_its_last_place_at_most(
    value: float, figures: int
) -> None:
    said = units.significant(value, figures)
    assert "e" not in said
    assert abs(float(said.replace(",", "")) / value - 1) <= 0.51 * 10 ** (1 - figures)


def test_what_is_unknown_is_a_dash_and_zero_is_zero() -> None:
    assert ("–", "–", "0", "0.00") == (
        units.number(None), units.number(math.nan), units.number(0.0), units.number(0.0, 2),
    )  # fmt: skip
    assert ("–", "0.0%", "43.1%") == (
        units.percent(None), units.percent(0.0), units.percent(0.4312),
    )  # fmt: skip
    assert ("–", "–", "0", "1", "1,024", "bf16") == tuple(
        map(units.text, (None, "", False, True, 1024, "bf16"))
    )
    assert ("–", "1.50 GiB") == (units.gib(None), units.gib(3 * 2**29))


@pytest.mark.parametrize(
    ("name", "slug"),
    [("Llama 3 (8B)", "llama-3-8b"), ("Qwen2.5_7B", "qwen2.5-7b"), ("…", ""), ("Ünit", "ünit")],
)
def test_a_printed_name_is_a_slug(name: str, slug: str) -> None:
    assert slug == units.slug(name)


def test_one_is_counted_in_the_singular() -> None:
    assert ["0 runs", "1 run", "1,200 runs"] == [units.counted(n, "run") for n in (0, 1, 1200)]


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (14079.0, 14709.0, ("14,079", "14,709")),
        (4.05004, 4.05, ("4.05004", "4.05000")),
        (0.5, 0.5, ("0.5000", "0.5000")),
    ],
)
def test_two_numbers_are_printed_to_so_many_figures_that_they_differ(
    one: float, other: float, said: tuple[str, str]
) -> None:
    assert said == units.told_apart(one, other, 4)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("13812", "13,812"), ("13,812.50", "13,812.50"), ("2", "2"), ("0.43", "0.43"),
        ("1234.5%", "1,234.5%"), ("~1000", "~1000"), ("n/a", "n/a"), (",", ","), ("", ""),
    ],
)  # fmt: skip
def test_a_printed_number_is_regrouped_and_keeps_its_digits(printed: str, said: str) -> None:
    """What is no plain number stands as it was printed."""
    assert said == units.regrouped(printed)
