"""With how many decimals pages print figures; the texts are those of the seeds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb.compare.report import decimals


@pytest.mark.parametrize(
    ("text", "field", "value", "expected"),
    [
        ("250", "model_tflops_per_sec_per_gpu", 250.0, 0),
        ("18.90", "step_time_s", 18.9, 2),
        ("866.77", "tokens_per_sec_per_gpu", 866.77, 2),
        ("1,002", "tokens_per_sec_per_gpu", 1002.0, 0),
        ("4121 (3830.5)", "tokens_per_sec_per_gpu", 3830.5, 1),
        ("44.35%", "mfu", 0.4435, 2),
        ("0.4435", "mfu", 0.4435, 2),
        ("0.4", "mfu", 0.4, 0),
        ("866.77", "tokens_per_sec_per_gpu", 900.0, None),
        ("–", "tokens_per_sec_per_gpu", 900.0, None),
    ],
)
def test_the_decimals_of_a_figure_are_those_of_its_cell(text, field, value, expected):
    assert expected == decimals({"global_batch_size": "250", field: text}, field, value)


def test_a_figure_that_no_cell_prints_has_no_decimals():
    assert decimals({"global_batch_size": "250"}, "mfu", 0.25) is None


@given(st.integers(1, 10**7), st.integers(0, 4))
def test_a_number_that_is_printed_and_read_has_its_decimals(whole, digits):
    text = f"{whole / 10**digits:,.{digits}f}"
    value = float(text.replace(",", ""))
    assert digits == decimals({"step_time_s": text}, "step_time_s", value)
