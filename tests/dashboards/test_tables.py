"""How figures and findings are printed in tables."""

import math
from functools import partial

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.findings import bullets, by_result, gravest_first, is_wrong, mark, plain
from dashboards.tables import as_csv, columns, figures, layout, printed
from perfdb.metrics import METRICS
from perfdb.record import Severity
from tests import factories


def test_a_figure_has_the_digits_of_its_metric_and_at_least_three():
    tflops, tokens = "model_tflops_per_sec_per_gpu", "tokens_per_sec_per_gpu"
    for name, value, text in (
        (tflops, 0.0012345, "0.00123"), (tflops, 711, "711.00"), (tokens, 32363.2, "32,363"),
        ("step_time_s", 4.05, "4.050"), ("mfu", 0.5689, "56.9%"), ("mfu", 0.00004, "0.00400%"),
        ("mfu", None, "–"), (tokens, math.nan, "–"),
    ):  # fmt: skip
        assert text == printed(METRICS[name], value)


@given(st.sampled_from(list(METRICS.values())), st.floats(1e-9, 1e9))
def test_no_figure_is_printed_as_nothing(metric, value):
    """What is printed is the figure, to a hundredth of it."""
    text = printed(metric, value).replace(",", "")
    read = float(text.removesuffix("%")) / (100 if metric.name == "mfu" else 1)
    assert read == pytest.approx(value, rel=0.01)


def cells_of(styled):
    """What a table shows, row by row."""
    body = styled._translate(False, False)["body"]
    return [[cell["display_value"] for cell in row if cell["type"] == "td"] for row in body]


def test_a_table_prints_its_figures_one_by_one_and_keeps_their_values():
    rows = pd.DataFrame({"mfu": [0.5, None], "num_gpus": [8, 1024]}).convert_dtypes()
    styled = figures(rows)
    assert [["50.0%", "8"], ["–", "1,024"]] == cells_of(styled)
    assert 0.5 == styled.data["mfu"][0]


def test_a_table_prints_a_published_figure_with_the_digits_of_its_page():
    """The first row's page says 18.90 and 250, the second row is of a run, the third says 867."""
    time, tflops = "step_time_s", "model_tflops_per_sec_per_gpu"
    cells = {time: [18.9, 18.9, None], tflops: [250.0, 250.0, 867.0], "num_gpus": [8, 8, 8]}
    raw = [{time: "18.90", tflops: "250"}, {}, {tflops: "867"}]
    expected = [["18.90", "250", "8"], ["18.90", "250.00", "8"], ["–", "867", "8"]]
    assert expected == cells_of(figures(pd.DataFrame(cells, index=[4, 7, 9]), raw))


def test_what_is_computed_has_its_mark_and_what_is_stated_has_none():
    rows = pd.DataFrame({"mfu": [0.391, 0.148]}, index=[3, 5]).convert_dtypes()
    styled = figures(rows, computed={"mfu": pd.Series([True, False], index=[3, 5])})
    assert [["39.1% (computed)"], ["14.8%"]] == cells_of(styled)


def test_a_text_that_a_spreadsheet_takes_for_a_formula_is_none():
    rows = pd.DataFrame({"Model": ["=1+1", "@x", "Llama"], "B/A": [1.25, None, -0.5]})
    assert b"Model,B/A\n'=1+1,1.25\n'@x,\nLlama,-0.5\n" == as_csv(rows)


def test_a_column_of_numbers_shows_all_its_digits():
    """Cells of numbers lose their first digits where they are too narrow: 7 px a character."""
    found = columns(["tokens_per_sec_per_gpu", "num_gpus", "run_name"], {"run_name": 40})
    assert 7 * len("10,788.25 (computed)") <= found["tokens_per_sec_per_gpu"]["width"]
    assert 7 * len("131,072") <= found["num_gpus"]["width"]
    assert 7 * 40 <= found["run_name"]["width"]


def test_a_layout_names_the_ways_in_which_a_model_is_divided():
    names = [f"{it}_parallel" for it in ("tensor", "pipeline", "context", "expert")]
    for ways, text in (
        ((4, 2, 1, None), "TP4·PP2"), ((1, 1, 2, 8), "CP2·EP8"), ((1, 1, 1, None), "TP1"),
        ((None, None, None, None), None),
    ):  # fmt: skip
        assert text == layout({"virtual_pipeline": None} | dict(zip(names, ways, strict=True)))


finding = partial(factories.finding, message="120 % of the peak", result_id=3)
ERROR, INFO = finding(Severity.ERROR), finding(Severity.INFO)
ACCEPTED = finding(Severity.ERROR, acknowledged="known (A. Person, 2026-01-31)")


def test_findings_belong_to_their_results_the_open_and_grave_ones_first():
    of_document = finding(Severity.ERROR, result_id=None)
    warned = finding(Severity.WARNING, result_id=4)
    found = by_result([ACCEPTED, INFO, warned, of_document, ERROR])
    assert {3: (ERROR, INFO, ACCEPTED), 4: (warned,)} == found
    rows = [("a", (INFO,)), ("b", ()), ("c", (ACCEPTED,)), ("d", (ERROR, INFO)), ("e", (warned,))]
    assert ["d", "e", "a", "c"] == [title for title, _ in gravest_first(rows)]


def test_a_mark_counts_the_findings_and_only_open_errors_are_wrong():
    assert "⚑ 2 errors, 1 info, 1 explained" == mark([INFO, ERROR, ACCEPTED, ERROR])
    assert mark([]) is None
    assert [True, False, False, False] == list(
        map(is_wrong, ([ERROR, INFO], [ACCEPTED], [INFO], []))
    )


def test_a_sentence_keeps_its_signs():
    """Markdown takes none of them for its own, in names of models least of all."""
    odd = finding(suggestion=None, message="a*b_c <i> $x$ [l](u)")
    assert r"- error (`micro_batch`): a\*b\_c \<i\> \$x\$ \[l\]\(u\)\." == bullets([odd])
    assert "25 % of the peak" == plain("25 % of the peak")
