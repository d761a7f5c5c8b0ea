"""Results and a profile make a table: which columns, which digits, which links."""

import re

import pytest
from bs4 import BeautifulSoup

from perfdb.compare.digits import printed
from perfdb.metrics import METRICS
from perfdb.site import markup
from perfdb.site.data import Result
from perfdb.site.glossary import TERMS
from perfdb.site.markup import Html
from perfdb.site.profile import Profile
from perfdb.site.profiles import (
    AUTOMODEL,
    CASE,
    DFM,
    LATEST,
    MEASURED,
    NEMO,
    NEMO_FINE_TUNING,
    OF_MODEL,
    ON_SYSTEM,
    RUNS,
    SCALING,
)
from perfdb.site.rows import row_id
from perfdb.site.tables import of_results, results_table
from tests.seeds import FOLDER as SEEDS
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


def test_words_of_a_page_stand_apart_without_its_tags() -> None:
    """The search shows them so: cells, heads, names and what is known of them, items, titles."""
    page = markup.joined(
        (
            markup.tag("h3", "Seen"),
            markup.table(results_table("R", [result()], MEASURED, address)),
            markup.facts("F", [("GPU", "H100")]),
            markup.terms([("Expected", "8"), ("Found", "9")]),
            markup.tag("ul", [markup.tag("li", "one"), markup.tag("li", "two")]),
        )
    )
    said = BeautifulSoup(page.text, "html.parser")
    blocks = said.find_all(["h3", "th", "td", "dt", "dd", "li"])
    alone = [word for block in blocks for word in block.get_text().split()]
    assert alone == said.get_text().split()


def test_a_spread_sorts_by_its_low_end() -> None:
    """What is read first, not how wide it is: 12.1–12.2 is no least time."""
    made = soup(MEASURED, result(step_time_p10_s=12.1, step_time_p90_s=12.2))
    [spread] = [cell for cell in made.select("td") if "12.10–12.20" == cell.get_text()]
    assert "12.1" == spread["data-sort"]


def test_a_measured_row_shows_step_time_with_its_spread_and_the_rates() -> None:
    [row] = cells(MEASURED, result())
    assert {
        "Model": "Llama 3 8B",
        "Precision": "BF16",
        "GPUs": "8",
        "Step time (s)": "4.050",
        "p10–p90 (s)": "4.000–4.230",
        "n": "8",
        "Tokens/s/GPU": "32,364",
        "TFLOP/s/GPU": "1,665.60",
        "MFU": "43.1%",
        "GBS": "128",
        "Sequence length": "8,192",
        "Origin": "measured run",
    } == row


def test_a_published_row_shows_the_digits_that_were_printed() -> None:
    [row] = cells(DFM, published())
    assert "1,022.26" == row["Model TFLOP / sec / GPU"]
    assert ("0", "0") == (row["FSDP"], row["VP"])


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("[895](https://mlcommons.org/benchmarks/training/)", "895"),
        ("**1,022.26**", "1,022.26"),
        ("1,022.26[^1]", "1,022.26"),
        ("1,022.26 <sup>2</sup>", "1,022.26"),
    ],
)
def test_a_printed_figure_is_its_words_and_not_their_markup(raw: str, shown: str) -> None:
    """A link, emphasis and a footnote's mark are how the page says it, not what it says."""
    figure = float(shown.replace(",", ""))
    row = published(
        model_tflops_per_sec_per_gpu=figure, raw={"Model TFLOP / sec / GPU": raw, "GBS": "64"}
    )
    assert shown == cells(DFM, row)[0]["Model TFLOP / sec / GPU"]


@pytest.mark.parametrize("profile", [ON_SYSTEM, OF_MODEL, MEASURED], ids=lambda one: one.name)
def test_rows_of_many_pages_have_one_name_and_one_way_to_write_numbers(profile: Profile) -> None:
    """With the digits that the page printed; the page's own table says it in the page's words."""
    printed = published(
        framework="nemo", model="llama3.1-405b", model_title="Llama 3.1 405B", qualifiers="2-node",
        precision="fp8_mx", num_gpus=1024, sequence_length=4096, step_time_s=2.0,
        tokens_per_sec_per_gpu=13812.5, model_tflops_per_sec_per_gpu=1804, mfu=0.43,
        raw={
            "Model": "LLAMA3-405B", "Precision": "MXFP8", "#-GPUs": "1024",
            "Sequence Length": "4096", "Step time (s)": "2", "Tokens / sec / GPU": "13812.5",
            "Model TFLOP / sec / GPU": "1804", "MFU": "0.43",
        },
    )  # fmt: skip
    row, _ = cells(profile, printed, result())
    if profile is not OF_MODEL:
        assert "Llama 3.1 405B (2-node)" == row["Model"]
    assert ["FP8-MX", "1,024", "4,096", "2", "13,812.5", "1,804", "43%"] == [
        row[name] for name in ("Precision", "GPUs", "Sequence length", "Step time (s)",
                               "Tokens/s/GPU", "TFLOP/s/GPU", "MFU")
    ]  # fmt: skip
    own = cells(NEMO, printed)[0]
    assert ("LLAMA3-405B", "MXFP8", "1024") == (own["Model"], own["Precision"], own["#-GPUs"])


def test_fsdp_and_sp_are_switches_that_are_on_or_off_beside_sizes_in_rows_of_many_pages() -> None:
    """AutoModel's 32 is a number of GPUs, NeMo's 1 a switch; each page's own table keeps it."""
    given = (
        published(fsdp_enabled=True, sequence_parallel=True, raw={"FSDP": "1", "SP": "1"}),
        published(fsdp_enabled=False, sequence_parallel=False, raw={"FSDP": "0", "SP": "0"}),
        published(fsdp_enabled=None, fsdp_size=32, raw={"FSDP": "32"}),
        published(fsdp_enabled=None, raw={"FSDP": "-"}),
    )
    for profile in (MEASURED, OF_MODEL, ON_SYSTEM):
        made = cells(profile, *given)
        assert ["on", "off", "32", "–"] == [row["FSDP"] for row in made]
        assert ["on", "off", "–", "–"] == [row["SP"] for row in made]
    assert ["1", "0", "32", "–"] == [row["FSDP"] for row in cells(DFM, *given)]


def test_no_virtual_pipeline_is_one_sign_in_rows_of_many_pages() -> None:
    """Pages print 0, 1 or a dash for it; each page's own table keeps that."""
    given = [published(raw={"VP": said, "EP": "0"}) for said in ("0", "1", "-")]
    for one in (*given, published(virtual_pipeline=4, raw={"VP": "4"})):
        wanted = "4" if one.virtual_pipeline else "–"
        rows = cells(ON_SYSTEM, one, published(virtual_pipeline=2, expert_parallel=8))
        assert (wanted, "–") == (rows[0]["VP"], rows[0]["EP"])
    assert ["0", "1", "–"] == [row["VP"] for row in cells(DFM, *given)]


@pytest.mark.parametrize("profile", [MEASURED, OF_MODEL, ON_SYSTEM], ids=lambda one: one.name)
def test_a_rate_that_follows_from_stated_figures_is_computed_in_rows_of_many_pages(
    profile: Profile,
) -> None:
    """132,396 tokens/s ÷ 16 GPUs = 8,275; a page's own table has what the page says."""
    given = (
        published(num_gpus=16, tokens_per_sec=132396.0, raw={"Tokens / sec / GPU": "-"}),
        published(tokens_per_sec_per_gpu=7915.0),
        published(tokens_per_sec=132396.0, withheld="cut off"),
    )
    made = soup(profile, *given)
    assert ["8,275 (computed)", "7,915", "–"] == [
        row["Tokens/s/GPU"] for row in cells(profile, *given)
    ]
    [computed] = [cell for cell in made.select("td") if "(computed)" in cell.get_text()]
    assert ("8274.75", 1) == (computed["data-sort"], len(computed.select("a.e")))
    assert ["–", "7,915", "–"] == [row["Tokens / sec / GPU"] for row in cells(NEMO, *given)]


def test_rows_of_many_pages_name_the_flops_convention_where_one_is_stated() -> None:
    stated, silent = published(flops_convention="nemotron4-recipe", mfu=0.3), published(mfu=0.4)
    for profile in (MEASURED, OF_MODEL, ON_SYSTEM):
        made = cells(profile, stated, silent)
        assert ["nemotron4-recipe", "–"] == [row["FLOPs convention"] for row in made]
        assert "FLOPs convention" not in cells(profile, silent)[0]
    assert "FLOPs convention" not in cells(NEMO, stated)[0]


@pytest.mark.parametrize(
    "profile", [MEASURED, RUNS, LATEST, OF_MODEL, ON_SYSTEM], ids=lambda one: one.name
)
def test_where_the_order_is_ours_the_rates_stand_behind_what_was_run(profile: Profile) -> None:
    """A phone shows the first columns; where a figure is from is no further off than its time."""
    titles = [column.title for column in profile.columns]
    first = next(place for place, column in enumerate(profile.columns) if column.is_rate)
    assert {"Precision", "GPUs"} <= set(titles[:first])
    assert set(titles[:first]) <= {
        "Run", "Outcome", "System", "Model", "Task", "Precision", "GPUs"
    }  # fmt: skip
    assert "Origin" not in titles or titles.index("Origin") < titles.index("GBS")


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
    ("name", "value", "shown"),
    [
        ("model_tflops_per_sec_per_gpu", 1665.6, "1,665.60"),
        ("model_tflops_per_sec_per_gpu", 0.0050149, "0.00501"),
        ("model_tflops_per_sec_per_gpu", 0.4561, "0.456"),
        ("model_tflops_per_sec_per_gpu", 0.0, "0.00"),
        ("tokens_per_sec_per_gpu", 45.64, "45.6"),
        ("mfu", 0.00004, "0.00400%"),
    ],
)
def test_a_small_rate_has_three_digits_as_in_comparisons(
    name: str, value: float, shown: str
) -> None:
    [row] = cells(MEASURED, result(**{name: value}))
    assert shown in row.values()
    assert shown == printed(METRICS[name], value)


def test_so_has_one_that_is_computed() -> None:
    """0.04 of 989.4 TFLOP/s are 0.00404 %."""
    row = published(system="dgx-h100", precision="bf16", model_tflops_per_sec_per_gpu=0.04)
    assert "0.00404% (computed)" in cells(OF_MODEL, row)[0].values()


def test_qualifiers_stand_with_the_model() -> None:
    [row] = cells(MEASURED, result(qualifiers="dropless"))
    assert "Llama 3 8B (dropless)" == row["Model"]


def test_a_published_row_of_several_links_to_its_file_and_says_of_how_many_it_is() -> None:
    """With the line where it has one."""
    said = {"origin": "published", "run_id": None, "source_sha256": "ab" * 32, "num_results": 10}
    for line, more in ((None, []), (7, ["line 7"])):
        made = html(MEASURED, result(**said, source_line=line))
        links = BeautifulSoup(made, "html.parser").select("td a:not(.e)")
        assert ["1 of 10 results", *more] == [it.get_text() for it in links]
        assert "abababab" in str(links[0]["href"])


@pytest.mark.parametrize(
    ("num_finished", "said"),
    [
        (3, "1 of 3 runs"),
        (1, "1 of 3 runs, 1 finished"),
        (0, "1 of 3 runs, none finished"),
    ],
)
def test_a_measured_row_links_to_its_run_and_says_of_how_many_it_is(
    num_finished: int, said: str
) -> None:
    made = html(MEASURED, result(num_results=3, num_finished=num_finished))
    links = BeautifulSoup(made, "html.parser").select("td a:not(.e)")
    assert [("../runs/run-1.html", said)] == [(it["href"], it.get_text()) for it in links]


def test_a_measured_row_links_to_its_recipe_where_it_has_one() -> None:
    links = BeautifulSoup(html(MEASURED, result(recipe="llama3-8b")), "html.parser").select("td a")
    assert ("../recipes/llama3-8b.html", "recipe") == (links[-1]["href"], links[-1].get_text())


def test_a_row_names_its_model_and_links_to_its_page() -> None:
    link = BeautifulSoup(html(MEASURED, result()), "html.parser").select_one("th[scope=row] a")
    assert link is not None
    assert ("../models/llama3-8b.html", "Llama 3 8B") == (link["href"], link.get_text())


def test_a_published_row_links_to_its_source_and_line() -> None:
    [link] = BeautifulSoup(html(DFM, published()), "html.parser").select("td a:not(.e)")
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
    assert (f"{words} ({words})" if profile is MEASURED else words) == named.get_text().strip()


def test_every_head_is_explained_by_an_entry_of_the_glossary() -> None:
    columns = [
        column
        for one in (DFM, NEMO, NEMO_FINE_TUNING, AUTOMODEL, SCALING, MEASURED, RUNS, CASE)
        for column in one.columns
    ]
    assert {column.term for column in columns} - {None} <= set(TERMS)
    abbreviations = {column.title for column in columns if column.title.isupper()}
    assert {column.title for column in columns if column.term} >= abbreviations


def test_every_field_of_a_profile_is_one_of_a_result() -> None:
    """Or a property, of what follows from its fields."""
    properties = (one for kind in Result.__mro__ for one in vars(kind).items())
    known = {name for name, one in properties if isinstance(one, property)} | {*Result.model_fields}
    for profile in (DFM, NEMO, NEMO_FINE_TUNING, AUTOMODEL, SCALING, MEASURED, RUNS, CASE):
        for column in profile.columns:
            assert set(column.fields) <= known, f"{profile.name}: {column.title}"


@pytest.mark.parametrize(
    "printed",
    [
        published(),
        published(framework="nemo"),
        published(framework="nemo", task="lora"),
        published(framework="automodel"),
        published(framework="nemo", tokens_per_sec=98550.0),
    ],
    ids=["dfm", "nemo", "nemo-fine-tuning", "automodel", "scaling"],
)
def test_a_table_keeps_the_columns_of_its_family_whoever_measured_its_rows(printed: Result) -> None:
    """What only runs have stands behind them; no column is there twice."""
    family = of_results([printed])
    measured = result(
        framework=printed.framework, task=printed.task, tokens_per_sec=printed.tokens_per_sec
    )
    for rows in ([printed, measured], [measured]):
        found = of_results(rows)
        assert family.columns == found.columns[: len(family.columns)]
        titles = [column.title for column in found.columns]
        beside = titles[len(family.columns) :]
        assert {"p10–p90 (s)", "n", "FLOPs convention"} <= set(beside)
        assert len(titles) == len(set(titles))
        assert {one.fields for one in MEASURED.columns} <= {one.fields for one in found.columns}


def test_a_measured_row_changes_no_cell_of_the_published_rows_beside_it() -> None:
    """Each says its own: the page `LLAMA3-8B` and VP `1`, the run our name and no VP."""
    printed = published(
        framework="nemo", model="llama3-8b", model_title="Llama 3 8B", num_gpus=1024,
        sequence_length=8192, tokens_per_sec_per_gpu=14512.0,
        raw={"Model": "LLAMA3-8B", "#-GPUs": "1024", "Sequence Length": "8192", "VP": "1",
             "Tokens / sec / GPU": "14512", "Model TFLOP / sec / GPU": "1,022.26"},
    )  # fmt: skip
    measured = result(framework="nemo", num_gpus=1024)
    [alone] = cells(of_results([printed]), printed)
    first, second = cells(of_results([printed, measured]), printed, measured)
    assert alone.items() <= first.items()
    assert ("LLAMA3-8B", "1024", "8192", "1", "14512", "–", "–") == tuple(
        first[it] for it in ("Model", "#-GPUs", "Sequence Length", "VP", "Tokens / sec / GPU",
                             "p10–p90 (s)", "n")
    )  # fmt: skip
    assert ("Llama 3 8B", "1024", "8192", "–", "32,364", "4.000–4.230", "8") == tuple(
        second[it] for it in ("Model", "#-GPUs", "Sequence Length", "VP", "Tokens / sec / GPU",
                              "p10–p90 (s)", "n")
    )  # fmt: skip


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the published pages are not here")
def test_the_abbreviations_that_published_pages_explain_are_in_the_glossary() -> None:
    """As each page lists them: a line each, the abbreviation before a colon."""
    said = {
        "nemo-25.04-performance-summary.txt": r"^([A-Z]{2,4}): ",
        "dfm-performance-benchmarks.md": r"^- \*\*([A-Z]+)\*\*: ",
        "automodel-performance-summary.txt": r"^- (\w+): ",
    }
    found = {
        name: re.findall(pattern, (SEEDS / name).read_text(), re.MULTILINE)
        for name, pattern in said.items()
    }
    assert [9, 9, 13] == [len(one) for one in found.values()]
    assert set().union(*found.values()) <= set(TERMS)


@pytest.mark.parametrize(
    ("framework", "task", "profile"),
    [
        ("nemo", "pretrain", NEMO),
        ("nemo", "sft", NEMO_FINE_TUNING),
        ("megatron-bridge", "lora", NEMO_FINE_TUNING),
        ("automodel", "lora", AUTOMODEL),
    ],
)
def test_framework_and_task_choose_the_profile(framework: str, task: str, profile: Profile) -> None:
    raw = {"Packed Sequence Length": "4096"}
    assert profile == of_results([published(framework=framework, task=task, raw=raw)])


def test_the_length_of_sequences_is_packed_where_every_page_says_so() -> None:
    """NVIDIA's summary of 25.04 packs them; another page of fine-tuning need not."""

    def title(*printed: str) -> str:
        rows = [published(framework="nemo", task="lora", raw={one: "4096"}) for one in printed]
        columns = of_results(rows).columns
        return next(one.title for one in columns if one.fields == ("sequence_length",))

    assert "Packed Sequence Length" == title("Packed Sequence Length", "Packed Sequence Length")
    assert "Sequence Length" == title("Sequence Length")
    assert "Sequence Length" == title("Packed Sequence Length", "Seq Length")


def test_rows_that_state_the_throughput_of_all_gpus_are_shown_at_scale() -> None:
    assert SCALING == of_results([published(framework="nemo", tokens_per_sec=98550.0)])


def test_the_days_that_a_page_prints_lead_to_its_line_as_its_rates_do() -> None:
    extras = {"Time to train 1T tokens in days": "117.44", "Layers": "32"}
    made = soup(SCALING, published(framework="nemo", tokens_per_sec=98550.0, extras=extras))
    said = [one.get_text() for one in made.select("a.e")]
    assert "117.44" in said
    assert "32" not in said


def test_a_head_says_what_its_abbreviation_means() -> None:
    abbreviation = BeautifulSoup(html(DFM, published()), "html.parser").find("abbr", string="GBS")
    assert abbreviation is not None
    assert (
        "Global batch size: samples in one optimizer step, over all GPUs."
        == (abbreviation["title"])
    )


def test_the_head_of_packed_sequences_says_what_packed_means() -> None:
    sample = published(raw={"Packed Sequence Length": "4096"})
    made = BeautifulSoup(html(NEMO_FINE_TUNING, sample), "html.parser")
    abbreviation = made.find("abbr", string="Packed Sequence Length")
    assert abbreviation is not None
    assert "several short samples of fine-tuning" in str(abbreviation["title"])


def soup(profile: Profile, *results: Result) -> BeautifulSoup:
    return BeautifulSoup(html(profile, *results), "html.parser")


def test_a_footnote_stands_below_the_table_once_and_its_rows_lead_to_it() -> None:
    """Each row has the number of its notes, which say their text to a pointer and to a reader."""
    shared, own = "with <b>dropout</b>", "on two nodes"
    made = soup(
        DFM,
        published(notes=(shared,)),
        published(notes=(shared, own), num_gpus=64),
        published(num_gpus=96),
    )
    notes = made.select("ol.perf-notes li")
    assert [shared, own] == [note.get_text() for note in notes]
    marks = [row.select(".perf-mark a") for row in made.select("tbody tr")]
    assert [["1"], ["1", "2"], []] == [[mark.get_text() for mark in row] for row in marks]
    for mark in (mark for row in marks for mark in row):
        note = made.find(id=str(mark["href"])[1:])
        assert note is not None
        assert note.get_text() == mark["title"]
        assert note["id"] == mark["aria-describedby"]


def test_a_footnote_of_all_rows_stands_below_the_table_and_marks_none() -> None:
    """What only some rows have keeps its mark, and is numbered from 1."""
    every, some = "mock <i>data</i>", "on two nodes"
    made = soup(DFM, published(notes=(every,)), published(notes=(some, every), num_gpus=64))
    assert [f"All rows: {every}"] == [it.get_text() for it in made.select("p.perf-notes")]
    assert [some] == [it.get_text() for it in made.select("ol.perf-notes li")]
    marks = [row.select(".perf-mark a") for row in made.select("tbody tr")]
    assert [[], ["1"]] == [[mark.get_text() for mark in row] for row in marks]


def test_the_footnote_of_a_single_row_keeps_its_mark() -> None:
    """It says nothing of a table: more rows may come."""
    made = soup(DFM, published(notes=("on two nodes",)))
    assert ["1"] == [mark.get_text() for mark in made.select(".perf-mark")]
    assert [] == made.select("p.perf-notes")


def test_a_table_without_footnotes_has_no_list_of_them() -> None:
    assert [] == soup(DFM, published()).select(".perf-notes, .perf-mark")


def test_every_figure_leads_to_its_evidence_and_nothing_else_does() -> None:
    """A measured one to the numbers of its run, a published one to its entry on the page read."""
    measured = soup(MEASURED, result()).select("a.e")
    assert ["32,364", "1,665.60", "43.1%", "4.050", "4.000–4.230"] == [
        link.get_text() for link in measured
    ]
    assert {"../runs/run-1.html#figures"} == {str(link["href"]) for link in measured}
    [link] = soup(DFM, published()).select("a.e")
    row = soup(DFM, published()).select_one("tbody tr")
    assert row is not None
    assert f"../sources/{HASH[:16]}.html#{row['id']}" == link["href"]


def test_what_is_unknown_leads_nowhere() -> None:
    made = soup(MEASURED, result(mfu=None), result())
    assert ["–"] == [cell.get_text() for cell in made.select("td") if cell.get_text() == "–"]
    assert "–" not in [link.get_text() for link in made.select("a.e")]


def test_a_row_is_called_the_same_whatever_it_says() -> None:
    """A link to a row holds when its figures are revised or another run is the median one."""
    one = published(case_key="case-1", model_tflops_per_sec_per_gpu=1.0, source_line=7)
    revised = published(case_key="case-1", model_tflops_per_sec_per_gpu=2.0, source_line=9)
    assert row_id(one) == row_id(revised)
    assert row_id(one) != row_id(published(case_key="case-2"))
    assert row_id(one) != row_id(published(case_key="case-1", release="other"))


def test_a_row_can_be_linked_to() -> None:
    [row] = soup(DFM, published()).select("tbody tr")
    [link] = row.select("th a.perf-link")
    assert f"#{row['id']}" == link["href"]
    assert ("", "Link to WAN 2.1 14B") == (link.get_text(), link["aria-label"])


def test_what_stands_behind_a_name_is_no_part_of_its_last_word() -> None:
    """Who hears the row hears 'WAN 2.1 14B', the numbers of two notes, and the link to it."""
    rows = (published(notes=("a", "b")), published(notes=("a",), num_gpus=64), published())
    first, *_ = soup(DFM, *rows).select("tbody th")
    assert "WAN 2.1 14B 1, 2\N{NO-BREAK SPACE}" == first.get_text()


def test_a_column_of_the_family_is_kept_where_it_is_empty() -> None:
    """Only columns that the profile does not call the family's own are dropped."""
    [row] = cells(NEMO, published(framework="nemo"))
    assert "–" == row["Tokens / sec / GPU"]
    assert {"ETP", "MFU", "Step time (s)"}.isdisjoint(row)


def test_the_task_of_fine_tuning_is_printed() -> None:
    rows = cells(NEMO_FINE_TUNING, published(task="sft"), published(task="lora", raw={}))
    assert ["SFT", "LoRA"] == [row["Task"] for row in rows]


def test_a_table_says_which_results_can_be_downloaded() -> None:
    offered = markup.table(results_table("Results", [published()], DFM, address)).offers
    assert [("dfm-main-pretrain-megatron-core-wan2.1-14b-dgx-gb300", [published()])] == [
        (offer.name, list(offer.results)) for offer in offered
    ]
    wrapped = markup.tag("section", (markup.joined(["", Html("", offered)]),))
    assert offered == wrapped.offers
