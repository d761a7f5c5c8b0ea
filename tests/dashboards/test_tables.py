"""How figures are printed, and how charts keep their height."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.tables import (
    PLAIN,
    columns,
    figures,
    plain_texts,
    plainly,
    printed,
    texts,
    widths_px,
)
from dashboards.views.explore import layout
from perfdb.metrics import METRICS


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("model_tflops_per_sec_per_gpu", 0.0012345, "0.00123"),
        ("model_tflops_per_sec_per_gpu", 0.06, "0.0600"),
        ("model_tflops_per_sec_per_gpu", 711, "711.00"),
        ("tokens_per_sec_per_gpu", 1.17, "1.17"),
        ("tokens_per_sec_per_gpu", 32363.2, "32,363"),
        ("step_time_s", 4.05, "4.050"),
        ("step_time_s", 0.00012, "0.0001200"),
        ("mfu", 0.5689, "56.9%"),
        ("mfu", 0.00004, "0.00400%"),
        ("mfu", 0.0, "0.0%"),
        ("mfu", None, "–"),
        ("tokens_per_sec_per_gpu", math.nan, "–"),
    ],
)
def test_a_figure_has_the_digits_of_its_metric_and_at_least_three(name, value, text):
    assert text == printed(METRICS[name], value)


@given(st.sampled_from(list(METRICS.values())), st.floats(1e-9, 1e9))
def test_no_figure_is_printed_as_nothing(metric, value):
    """What is printed is the figure, to a hundredth of it."""
    text = printed(metric, value).replace(",", "")
    read = float(text.removesuffix("%")) / (100 if metric.name == "mfu" else 1)
    assert read == pytest.approx(value, rel=0.01)


def test_a_table_prints_its_figures_one_by_one_and_keeps_their_values():
    rows = pd.DataFrame({"mfu": [0.5, None], "num_gpus": [8, 1024]}).convert_dtypes()
    styled = figures(rows)
    cells = [
        [cell["display_value"] for cell in row if cell["type"] == "td"]
        for row in styled._translate(False, False)["body"]
    ]
    assert [["50.0%", "8"], ["–", "1,024"]] == cells
    assert 0.5 == styled.data["mfu"][0]


def test_a_table_prints_a_published_figure_with_the_digits_of_its_page():
    """The first row's page says 18.90 and 250, the second row is of a run, the third says 867."""
    rows = pd.DataFrame(
        {
            "step_time_s": [18.9, 18.9, None],
            "model_tflops_per_sec_per_gpu": [250.0, 250.0, 867.0],
            "num_gpus": [8, 8, 8],
        },
        index=[4, 7, 9],
    )
    raw = [
        {"step_time_s": "18.90", "model_tflops_per_sec_per_gpu": "250"},
        {},
        {"model_tflops_per_sec_per_gpu": "867"},
    ]
    cells = [
        [cell["display_value"] for cell in row if cell["type"] == "td"]
        for row in figures(rows, raw)._translate(False, False)["body"]
    ]
    assert [["18.90", "250", "8"], ["18.90", "250.00", "8"], ["–", "867", "8"]] == cells


def test_what_is_computed_has_its_mark_and_what_is_stated_has_none():
    rows = pd.DataFrame({"mfu": [0.391, 0.148]}, index=[3, 5]).convert_dtypes()
    styled = figures(rows, computed={"mfu": pd.Series([True, False], index=[3, 5])})
    cells = [row[1]["display_value"] for row in styled._translate(False, False)["body"]]
    assert ["39.1% (computed)", "14.8%"] == cells


def test_a_long_table_has_what_is_computed_in_a_column_of_its_own():
    rows = pd.DataFrame({"mfu": [0.391, 0.00004, None], "task": "LoRA"}).convert_dtypes()
    shown = plainly(rows, {"mfu": pd.Series([True, False, False])})
    assert ["mfu", "mfu (computed)", "task"] == list(shown)
    assert (0.391, 0.00004) == (shown["mfu (computed)"][0], shown["mfu"][1])
    assert [True, False, True] == list(shown["mfu"].isna())
    config = columns(shown, widths_px(plain_texts(shown)), PLAIN)["mfu (computed)"]
    assert ("MFU (computed)", "%.7g") == (config["label"], config["type_config"]["format"])


def test_a_column_of_numbers_is_as_wide_as_what_it_shows():
    """Cells of numbers lose their first digits where they are too narrow: 17 characters, 117 px."""
    rows = pd.DataFrame({"tokens_per_sec_per_gpu": [16384.0, 9.5], "num_gpus": [8, 131072]})
    found = widths_px(texts(rows, computed={"tokens_per_sec_per_gpu": pd.Series([True, False])}))
    assert (
        found["tokens_per_sec_per_gpu"] == columns(rows, found)["tokens_per_sec_per_gpu"]["width"]
    )
    assert {"tokens_per_sec_per_gpu": 139, "num_gpus": 69} == found
    cells = [
        [cell["display_value"] for cell in row if cell["type"] == "td"]
        for row in figures(rows)._translate(False, False)["body"]
    ]
    assert cells == [list(row) for row in zip(*texts(rows).values(), strict=True)]


@pytest.mark.parametrize(
    ("ways", "text"),
    [
        ((4, 2, 1, None, None), "TP4·PP2"),
        ((1, 1, 2, 8, None), "CP2·EP8"),
        ((1, 1, 1, None, None), "TP1"),
        ((None, None, None, None, None), None),
    ],
)
def test_a_layout_names_the_ways_in_which_a_model_is_divided(ways, text):
    names = (
        "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel",
        "virtual_pipeline",
    )  # fmt: skip
    assert text == layout(dict(zip(names, ways, strict=True)))
