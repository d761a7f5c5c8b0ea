"""Results and a profile make a table: which columns, which digits, which links."""

import pytest
from bs4 import BeautifulSoup

from perfdb.site import markup, profiles
from perfdb.site.data import Result
from perfdb.site.glossary import TERMS
from perfdb.site.profiles import AUTOMODEL, CASE, DFM, MEASURED, NEMO, RUNS, Profile
from perfdb.site.tables import results_table
from tests.site.samples import HASH, address, published, result


def cells(profile: Profile, *results: Result) -> list[dict[str, str]]:
    """The words of each row by the head of their column, as a reader sees them."""
    made = markup.table(results_table("Results", results, profile, address)).text
    rows = [
        [cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"])]
        for row in BeautifulSoup(made, "html.parser").find_all("tr")
    ]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def html(profile: Profile, *results: Result) -> str:
    return markup.table(results_table("Results", results, profile, address)).text


def test_a_measured_row_shows_step_time_with_its_spread_and_the_rates() -> None:
    [row] = cells(MEASURED, result())
    assert {
        "Model": "Llama 3 8B",
        "Precision": "BF16",
        "#-GPUs": "8",
        "Step time (s)": "4.050",
        "p10–p90 (s)": "4.00–4.23",
        "n": "8",
        "Tokens/s/GPU": "32,364",
        "TFLOP/s/GPU": "1,665.60",
        "MFU": "43.1%",
        "GBS": "128",
        "Sequence Length": "8192",
        "Origin": "measured run",
    } == row


def test_a_published_row_shows_the_digits_that_were_printed() -> None:
    [row] = cells(DFM, published())
    assert "1,022.26" == row["Model TFLOP / sec / GPU"]
    assert ("0", "0") == (row["FSDP"], row["VP"])


def test_a_printed_dash_is_the_one_sign_for_unknown() -> None:
    rows = cells(AUTOMODEL, published(raw={"VP": "-"}), published(virtual_pipeline=4))
    assert ["–", "4"] == [row["VP"] for row in rows]


def test_a_correction_shows_its_value_and_not_what_was_printed() -> None:
    raw = {"#-GPUs": "16", "Model TFLOP / sec / GPU": "1,022.26"}
    [row] = cells(DFM, published(num_gpus=32, raw=raw))
    assert ("32", "1,022.26") == (row["#-GPUs"], row["Model TFLOP / sec / GPU"])


def test_the_unknown_is_a_dash_and_never_zero() -> None:
    rows = cells(MEASURED, result(), result(mfu=None, micro_batch_size=1))
    assert ["43.1%", "–"] == [row["MFU"] for row in rows]
    assert ["–", "1"] == [row["MBS"] for row in rows]


def test_a_column_that_is_empty_in_the_whole_table_is_left_out() -> None:
    [row] = cells(DFM, published())
    assert "DP" not in row
    assert "Model" in row


def test_containers_are_shown_where_they_differ() -> None:
    one, other = result(container="nemo:1"), result(container="nemo:2")
    assert "Container" not in cells(MEASURED, one, one)[0]
    assert ["nemo:1", "nemo:2"] == [row["Container"] for row in cells(MEASURED, one, other)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1665.6, "1,665.60"), (0.0050149, "0.00501"), (0.0812, "0.0812"), (0.0, "0.00")],
)
def test_a_small_rate_keeps_digits_that_say_something(value: float, shown: str) -> None:
    [row] = cells(MEASURED, result(model_tflops_per_sec_per_gpu=value))
    assert shown == row["TFLOP/s/GPU"]


def test_qualifiers_stand_with_the_model() -> None:
    [row] = cells(MEASURED, result(qualifiers="dropless"))
    assert "Llama 3 8B (dropless)" == row["Model"]


def test_a_measured_row_links_to_its_run_and_says_of_how_many_it_is() -> None:
    made = html(MEASURED, result(num_results=3))
    link = BeautifulSoup(made, "html.parser").find("a")
    assert link is not None
    assert ("../runs/run-1.html", "run 1 of 3") == (link["href"], link.get_text())


def test_a_published_row_links_to_its_source_and_line() -> None:
    link = BeautifulSoup(html(DFM, published()), "html.parser").find("a")
    assert link is not None
    assert (f"../sources/{HASH[:16]}.html#L74", "line 74") == (link["href"], link.get_text())


def test_a_result_without_figures_says_why() -> None:
    failed = result(outcome="out_of_memory", withheld="the run was out of memory", step_time_s=None)
    [row] = cells(MEASURED, failed)
    assert "measured run no figures: the run was out of memory" == row["Origin"]


@pytest.mark.parametrize(
    "words", ["<script>alert(1)</script>", '"><img src=x onerror=y>', "a & b", "'; {{ x }}"]
)
@pytest.mark.parametrize("profile", [MEASURED, RUNS, NEMO], ids=lambda profile: profile.name)
def test_words_from_the_store_print_as_text(words: str, profile: Profile) -> None:
    evil = result(
        model_title=words, qualifiers=words, precision=words, kernels=words, container=words,
        recipe=words, release=words, run_id=words, outcome=words, withheld=words, origin=words,
        system_title=words, raw={"Model": words},
    )  # fmt: skip
    made = BeautifulSoup(html(profile, evil, result()), "html.parser")
    assert [] == made.find_all(["script", "img"])
    named = made.select_one("tbody th")
    assert named is not None
    assert words == named.get_text()


def test_every_head_is_explained_by_an_entry_of_the_glossary() -> None:
    columns = [
        column for one in (DFM, NEMO, AUTOMODEL, MEASURED, RUNS, CASE) for column in one.columns
    ]
    assert {column.term for column in columns} - {None} <= set(TERMS)
    abbreviations = {column.title for column in columns if column.title.isupper()}
    assert {column.title for column in columns if column.term} >= abbreviations


def test_every_field_of_a_profile_is_one_of_a_result() -> None:
    known = set(Result.model_fields)
    for profile in (DFM, NEMO, AUTOMODEL, MEASURED, RUNS, CASE):
        for column in profile.columns:
            assert set(column.fields) <= known, f"{profile.name}: {column.title}"


def test_a_table_with_measured_rows_shows_what_was_measured() -> None:
    assert DFM == profiles.of_table("dfm", measured=False)
    assert MEASURED == profiles.of_table("dfm", measured=True)
    assert NEMO == profiles.of_table("megatron-bridge", measured=False)


def test_dfm_columns_stand_in_the_order_of_its_page() -> None:
    assert (
        "Model | #-GPUs | GBS | MBS | Sequence Length | FSDP | DP | TP | SP | PP | CP | VP | EP | "
        "Model TFLOP / sec / GPU | Origin"
    ) == " | ".join(column.title for column in DFM.columns)


def test_a_head_says_what_its_abbreviation_means() -> None:
    abbreviation = BeautifulSoup(html(DFM, published()), "html.parser").find("abbr", string="GBS")
    assert abbreviation is not None
    assert (
        "Global batch size: samples in one optimizer step, over all GPUs."
        == (abbreviation["title"])
    )
