"""How figures are printed, and how charts keep their height."""

import math

import altair as alt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.look import figures, printed, tall
from dashboards.views.explore import bars, best_of_each, layout
from perfdb.metrics import METRICS

BEST = pd.DataFrame(
    [("Llama", "DGX-H100", "measured", "25.10", "bf16", 8, 0.4)],
    columns=[
        "model_title", "system_title", "origin", "release_name", "precision", "num_gpus", "mfu",
    ],
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("model_tflops_per_sec_per_gpu", 0.0012345, "0.00123"),
        ("model_tflops_per_sec_per_gpu", 0.06, "0.0600"),
        ("model_tflops_per_sec_per_gpu", 711, "711.00"),
        ("tokens_per_sec_per_gpu", 1.17, "1.17"),
        ("tokens_per_sec_per_gpu", 32363.2, "32,363"),
        ("step_time_s", 4.05, "4.0500"),
        ("step_time_s", 0.00012, "0.000120"),
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
    assert [["50.0%", "8"], ["–", "1024"]] == cells
    assert 0.5 == styled.data["mfu"][0]


def test_a_chart_keeps_its_rows_whatever_stands_beside_them():
    mark = alt.Chart(pd.DataFrame({"a": [1]})).mark_point()
    said = tall(alt.layer(mark), 44).to_dict()
    assert (44, "fit-x") == (said["height"], said["autosize"]["type"])


def test_the_best_result_of_each_model_system_and_origin_is_charted_unless_it_is_wrong():
    results = pd.DataFrame(
        [
            ("Llama", "DGX-H100", "measured", 9.0, True),
            ("Llama", "DGX-H100", "measured", 1.0, False),
            ("Llama", "DGX-H100", "measured", 3.0, False),
            ("Llama", "DGX-H100", "published", 2.0, False),
            ("Llama", "DGX-B200", "measured", None, False),
        ],
        columns=["model_title", "system_title", "origin", "mfu", "is_wrong"],
    )
    assert [3.0, 2.0] == list(best_of_each(results, "mfu")["mfu"])


def test_a_release_in_a_chart_is_a_word_and_no_number():
    tooltip = bars(BEST, "mfu").to_dict()["layer"][0]["encoding"]["tooltip"]
    assert {"field": "release_name", "type": "nominal"} in tooltip


def test_a_bar_says_its_case_and_its_figure():
    (rows,) = bars(BEST, "mfu").to_dict()["datasets"].values()
    assert ["Llama · DGX-H100 · measured: 40.0%"] == [row["label"] for row in rows]


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
