"""Titles of figures, and what is said of a page so that nothing of it is dropped in silence."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdb import catalog
from perfdb.ingest.find import Source
from perfdb.ingest.page import read_page
from perfdb.ingest.read import PageRows, Rejected
from perfdb.pages import reader
from perfdb.pages.base import PageContext, PageRead
from perfdb.pages.names import model_meant
from tests import seeds

HEAD = "# NeMo 25.04\n\n## Pre-training\n\n### System: DGX-H100, Precision: BF16\n\n"
"""Six lines: the header of a table below it is on line 7, its first row on line 9."""
SIZES = ("Model", "GPUs", "GBS", "Seq Length")
ROW = ("Llama3 8B", "8", "128", "8192")


def table(titles: tuple[str, ...], *rows: tuple[str, ...]) -> str:
    lines = [titles, ("---",) * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def read(*parts: str) -> PageRead:
    return reader.read("page.md", HEAD + "\n".join(parts), PageContext())


def said(found: PageRead) -> list[str]:
    return [str(one) for one in (*found.problems, *found.notes)]


@pytest.mark.parametrize(
    ("title", "cell", "told"),
    [
        ("Techniques", "FSDP + torch.compile + float8", "float8"),
        ("Optimizations", "compile, FP8 tensorwise", "FP8 tensorwise"),
        ("Remarks", "run in E4M3", "E4M3"),
        ("Techniques", "FSDP + BF16", None),
        ("Techniques", "compile + FP8 all-gather of weights", None),
        ("Remarks", "fast, compared with FP8", None),
        ("Gradient reduction", "in FP32 + compile", None),
    ],
)
def test_a_cell_without_a_field_that_speaks_of_another_precision_is_told(
    title: str, cell: str, told: str | None
) -> None:
    found = read(table((*SIZES, "Tokens/s/GPU", title), (*ROW, "12,273", cell)))
    assert ["bf16"] == [one.case.precision for one in found.results]
    notes = [one for one in said(found) if "speaks of" in one]
    text = f"page.md:9: a cell below {title!r} speaks of {told}; the row counts as bf16"
    assert ([text] if told else []) == [note.partition("; put")[0] for note in notes]


def figures(title: str, cell: str) -> list[tuple[str | None, str, float]]:
    """The precision, the name and the value of each figure below a title."""
    found = read(table((*SIZES, title), (*ROW, cell)))
    assert () == found.problems
    assert [title] * len(found.results) == [list(one.raw)[-1] for one in found.results]
    return [
        (one.case.precision, name, value)
        for one in found.results
        for name, value in one.figures
        if value is not None
    ]


@pytest.mark.parametrize(
    ("title", "name", "value"),
    [
        ("Tokens/s/GPU (median)", "tokens_per_sec_per_gpu", 7.5),
        ("Tokens / sec / GPU mean", "tokens_per_sec_per_gpu", 7.5),
        ("Throughput (tok/s/GPU)", "tokens_per_sec_per_gpu", 7.5),
        ("Throughput (tokens per second per GPU)", "tokens_per_sec_per_gpu", 7.5),
        ("tok/s/GPU", "tokens_per_sec_per_gpu", 7.5),
        ("tokens_per_sec_per_gpu", "tokens_per_sec_per_gpu", 7.5),
        ("model_tflops_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", 7.5),
        ("TFLOPS (per GPU, model)", "model_tflops_per_sec_per_gpu", 7.5),
        ("Tokens/sec/device", "tokens_per_sec_per_gpu", 7.5),
        ("Tokens/GPU/s", "tokens_per_sec_per_gpu", 7.5),
        ("TPS/GPU", "tokens_per_sec_per_gpu", 7.5),
        ("Throughput (TPS per device)", "tokens_per_sec_per_gpu", 7.5),
        ("Throughput per GPU (TFLOP/s/GPU)", "model_tflops_per_sec_per_gpu", 7.5),
        ("Time/iter (s)", "step_time_s", 7.5),
        ("Iteration Time [sec]", "step_time_s", 7.5),
        ("Seconds per step", "step_time_s", 7.5),
        ("Step Time (s) (average)", "step_time_s", 7.5),
        ("ms/step", "step_time_s", 0.0075),
        ("Step Time (ms) (median)", "step_time_s", 0.0075),
        ("MFU (%) (avg)", "mfu", 0.075),
        ("Total tokens/s", "tokens_per_sec", 7.5),
        ("Global tokens/s", "tokens_per_sec", 7.5),
        ("Tokens/s (all GPUs)", "tokens_per_sec", 7.5),
        ("Aggregate tokens per second (median)", "tokens_per_sec", 7.5),
        ("Cluster throughput (tokens/s)", "tokens_per_sec", 7.5),
        ("Throughput (tokens/s, total)", "tokens_per_sec", 7.5),
    ],
)
def test_a_figure_is_known_by_its_unit_whatever_else_its_title_says(
    title: str, name: str, value: float
) -> None:
    assert [("bf16", name, value)] == figures(title, "7.5")


@pytest.mark.parametrize(
    ("title", "cell", "wanted"),
    [
        ("Tokens / sec / GPU FP8-CS (FP8-MX)", "661 (624)", [("fp8_cs", 661), ("fp8_mx", 624)]),
        ("Tokens / sec / GPU FP8-CS (FP8-MX)", "661", [("fp8_cs", 661)]),
        ("Tokens / sec / GPU FP8-CS (FP8-MX)", "661 (n/a)", [("fp8_cs", 661)]),
        ("Tokens / sec / GPU FP8-CS (FP8-MX)", "n/a (624)", [("fp8_mx", 624)]),
        ("Tokens/s/GPU (MXFP8)", "661", [("fp8_mx", 661)]),
        ("Tokens/s/GPU, FP8 (median)", "661", [("fp8", 661)]),
        ("Tokens/s/GPU", "661 (-)", [("bf16", 661)]),
    ],
)
def test_a_title_may_say_the_precision_of_its_values(
    title: str, cell: str, wanted: list[tuple[str, float]]
) -> None:
    """Over what is said above the table; a value that is absent makes no result of its own."""
    assert [(one, "tokens_per_sec_per_gpu", float(x)) for one, x in wanted] == figures(title, cell)


def test_both_values_of_a_pair_are_in_the_percent_that_the_title_says() -> None:
    title = "MFU (%) FP8-CS (FP8-MX)"
    shares = [("fp8_cs", "mfu", 0.43), ("fp8_mx", "mfu", 0.41)]
    assert shares == figures(title, "43 (41)") == figures(title, "43% (41%)")
    assert shares == figures(title, "43 (41%)") == figures(title, "43.0(41.0)")


@pytest.mark.parametrize(
    ("percent", "share"), [("16.4%", 0.164), ("65.82%", 0.6582), ("43.48%", 0.4348), ("7%", 0.07)]
)
def test_a_share_in_percent_is_kept_to_the_digit(percent: str, share: float) -> None:
    """Exports print it as it is stored."""
    assert [("bf16", "mfu", share)] == figures("MFU", percent)


def test_the_other_figures_of_a_row_go_with_the_precision_in_a_title() -> None:
    """TFLOP/s without brackets are the first one's alone."""
    titles = (*SIZES, "Tokens/s/GPU FP8-CS (FP8-MX)", "TFLOP/s/GPU", "MFU")
    found = read(table(titles, (*ROW, "661 (624)", "38 (36)", "4%")))
    assert [("fp8_cs", 661, 38, 0.04), ("fp8_mx", 624, 36, None)] == [
        (
            one.case.precision,
            one.figures.tokens_per_sec_per_gpu,
            one.figures.model_tflops_per_sec_per_gpu,
            one.figures.mfu,
        )
        for one in found.results
    ]


@pytest.mark.parametrize(
    "title",
    [
        "Tokens/s/GPU (%)", "% Tokens/s/GPU", "Δ Tokens/s/GPU", "Tokens/s/GPU Δ%", "Tokens/s/GPU/$",
        "σ Step Time (s)", "Step Time (s) ±", "Step time (µs)", "Tokens/s/GPU (тыс.)", "MFU (±)",
        "1/Step Time (s)", "√MFU", "GBS Δ", "Tokens/s/GPU ×10",
    ],
)  # fmt: skip
def test_a_sign_in_a_title_makes_another_quantity_of_it(title: str) -> None:
    """Beside the figure itself, and alone; it is no misspelling either."""
    beside, alone = (
        read(table((*SIZES, *others, title), (*ROW, *cells, "1.2")))
        for others, cells in ((("Tokens/s/GPU", "TFLOP/s/GPU"), ("661", "38")), (("MBS",), ("1",)))
    )
    [one] = beside.results
    assert {"tokens_per_sec_per_gpu": 661, "model_tflops_per_sec_per_gpu": 38} == {
        name: value for name, value in one.figures if value is not None
    }
    assert ({title: "1.2"}, 128) == (one.extras, one.case.global_batch_size)
    kept = f"page.md:7: no field for the columns {title!r}; they are kept as extras"
    assert [kept] == said(beside)
    assert ((), False) == (alone.results, "did you mean" in str(alone.problems))


@pytest.mark.parametrize(
    ("title", "name", "value"),
    [
        ("Tokens/s/GPU ↑", "tokens_per_sec_per_gpu", 7.5),
        ("Step Time (s) ↓", "step_time_s", 7.5),
        ("Tokens/s/GPU ▲", "tokens_per_sec_per_gpu", 7.5),
        ("% MFU", "mfu", 0.075),
        ("Model FLOPs Utilization [%]", "mfu", 0.075),
    ],
)
def test_signs_that_order_or_are_the_unit_change_no_title(
    title: str, name: str, value: float
) -> None:
    """Arrows say which values are better, or how a table is sorted."""
    assert [("bf16", name, value)] == figures(title, "7.5")


def test_a_mean_beside_the_figure_itself_is_kept_as_an_extra() -> None:
    found = read(table((*SIZES, "Tokens/s/GPU", "Tokens/s/GPU (mean)"), (*ROW, "661", "650")))
    (one,) = found.results
    assert (661, {"Tokens/s/GPU (mean)": "650"}) == (
        one.figures.tokens_per_sec_per_gpu, one.extras,
    )  # fmt: skip
    assert [
        "page.md:7: no field for the columns 'Tokens/s/GPU (mean)'; they are kept as extras"
    ] == (said(found))


@pytest.mark.parametrize(
    "title",
    ["Time/iter", "Time/iters", "Tokens/GPU", "toks/GPU", "Tokens/s/GPU (max)", "Tokens/s/GPU p50",
     "Tokens/s/GPU (BF16) FP8", "Tokens/s/GPU BF16/FP8", "Throughput", "Tokens/s", "Samples/s",
     "Step Time (min)", "Tokens/s/GPU (8 nodes)"],
)  # fmt: skip
def test_a_title_that_leaves_doubt_is_not_guessed_and_its_rows_are_rejected(title: str) -> None:
    """Each on its line and with the title, also where another table of the page is read."""
    good = table((*SIZES, "MFU"), (*ROW, "40%"))
    found = read(good, table((*SIZES, title), (*ROW, "661"), (*ROW, "-")))
    assert [9] == [one.line for one in found.results]
    assert [13, 14] == [one.line for one in found.problems]
    assert all(repr(title) in str(one) and one.remedy for one in found.problems)


NO_RESULTS = [
    table((*SIZES, "Nodes", "Learning Rate"), (*ROW, "1", "3e-4")),
    table((*SIZES, "TP", "Recipe"), (*ROW, "1", "llama3_8b.py")),
    table(("Model", "TP", "PP", "CP", "FP8"), ("Llama3 8B", "✓", "✓", "✗", "25.04")),
    table(("Model", "GPUs", "GBS", "Hours"), ("Llama3 8B", "8", "128", "3")),
    table(("Parameter", "TP", "PP", "CP", "Speed"), ("Default", "1", "1", "1", "5")),
    table((*SIZES, "Speed")),
]
"""Recipes, what models can do, too little to be results, no model, no rows."""


@pytest.mark.parametrize("other", NO_RESULTS)
def test_a_table_that_is_none_of_results_is_passed_over(other: str) -> None:
    found = read(table((*SIZES, "MFU"), (*ROW, "40%")), other)
    assert ([9], []) == ([one.line for one in found.results], said(found))


def test_a_table_of_configurations_that_is_joined_is_not_rejected() -> None:
    """Whatever else it says: 'Speed' is an extra of the results."""
    runs = table(("Model", "GPUs", "MFU"), ("Llama3 8B", "8", "40%"))
    found = read(runs, table((*SIZES, "Speed"), (*ROW, "5")))
    assert [({"Speed": "5"}, 0.4)] == [(one.extras, one.figures.mfu) for one in found.results]
    assert () == found.problems


def test_a_page_of_unknown_figures_is_told_where_it_is_named_and_passed_over_in_a_folder() -> None:
    text = HEAD + table((*SIZES, "Time/iter"), (*ROW, "7.4"))
    assert not reader.looks_like_page(text)
    assert reader.looks_like_page(text, named=True)
    rows = read_page(Source(Path("page.md"), "page", named=True), [text.encode()], PageContext())
    assert isinstance(rows, PageRows)
    assert ["not known: 'Time/iter'" in str(problem) for problem in rows.problems] == [True]


RATE = (*SIZES, "Tokens/s/GPU")


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("Numbers in brackets are MXFP8[^mx].\n", "\n[^mx]: Made at night.\n"),
        ("Numbers in brackets[^mx] are MXFP8.\n", "\n[^mx]: Made at\n    night.\n"),
        ("", "\nNumbers in brackets are MXFP8[^mx].\n\n[^mx]: Made at night.\n"),
        ("All are MXFP8<sup>1</sup>.\n", "\n<sup>1</sup> Made at night.\n"),
    ],
)
def test_a_mark_in_a_paragraph_of_a_tables_section_is_of_its_rows(above: str, below: str) -> None:
    rows = table(RATE, (*ROW, "661"), ("Llama3 70B", *ROW[1:], "77"))
    found = read(above, rows + below)
    assert [("Made at night.",)] * 2 == [one.notes for one in found.results]
    assert [] == [note for note in said(found) if "speaks of MXFP8" not in note]


def test_a_star_in_a_formula_and_a_footnote_above_refer_to_nothing() -> None:
    """The first table's own footnote stands above the second one."""
    first = table(RATE, (*ROW, "661†")) + "† Made at night.\n"
    second = table(RATE, ("Llama3 70B", *ROW[1:], "77 *")) + "\n* By day.\n"
    third = table(RATE, ("Mixtral 8x7B", *ROW[1:], "70")) + "\n\\* Once.\n"
    found = read(first, second, "GBS is 2 * 64 * 1.\n", third)
    assert [("Made at night.",), ("By day.",), ()] == [one.notes for one in found.results]


def test_a_footnote_that_reaches_no_row_is_told_on_the_line_of_its_mark() -> None:
    """In another section, in an item of a list; without a line where nothing bears the mark."""
    rows = table(RATE, (*ROW, "661"))
    texts = "[^a]: One.\n\n[^b]: Two.\n\n[^c]: Three.\n\n[^d]: Four.\n"
    glossary = table(("Word", "Meaning"), ("MFU", "a share[^d]"))
    found = read("- Clocks[^b].\n", rows, f"## Thanks\n\nTo all[^a].\n\n{glossary}\n{texts}")
    told = "the text of the footnote {!r} is kept with no row; put its mark into a row, a title, "
    told += "or the section above a table"
    assert [
        f"page.md:7: {told.format('b')}",
        f"page.md:15: {told.format('a')}",
        f"page.md: {told.format('c')}",
    ] == said(found)
    assert [()] == [one.notes for one in found.results]


@pytest.mark.parametrize(
    ("printed", "meant"),
    [
        ("Lama3 8B", "llama3-8b"),
        ("Mistral-8x7B", "mixtral-8x7b"),
        ("Nemtron4 15b (tokendrop)", "nemotron4-15b"),
        ("DeepSek V3", "deepseek-v3-671b"),
        ("LLAMA3-80B", None),
        ("Llama3 8B Instruct", None),
        ("Kimi K3", None),
        ("Nemotron-8B", None),
        ("GPT3-20B", None),
    ],
)
def test_a_model_that_may_be_mistyped_is_told_once_and_kept(
    printed: str, meant: str | None
) -> None:
    """Another number is another size: the pages of 2024 have GPT3-20B beside GPT3-175B."""
    rows = [(printed, *ROW[1:], "661"), (printed, "16", *ROW[2:], "660")]
    found = read(table(RATE, *rows))
    assert 2 == len(found.results)
    stored = found.results[0].case.model
    told = f"no model {stored!r} in the catalogue (also on line 10); did you mean {meant!r}?"
    assert [f"page.md:9: {told}"] * (meant is not None) == said(found)


def test_no_model_of_the_catalogue_or_of_a_seed_counts_as_mistyped() -> None:
    assert not [name for name in catalog.models() if model_meant(name)]
    assert not [name for name in seeds.MODELS if model_meant(name)]


def test_a_row_that_says_the_same_again_is_told_with_both_lines() -> None:
    """Once, though it holds two results; another figure makes it another row."""
    rows = [(*ROW, "661 (624)"), (*ROW, "660"), (*ROW, "661 (624)")]
    found = read(table((*SIZES, "Tokens/s/GPU FP8-CS (FP8-MX)"), *rows))
    told = "page.md:11: the result says the same as that of line 9; one is stored for both; "
    assert [f"{told}remove one of them"] == said(found)


def test_a_column_of_a_turned_table_that_says_the_same_again_is_told() -> None:
    """Its results share the line of the figures."""
    rows = [("GPUs", "8", "8"), ("GBS", "128", "128"), ("Seq Length", "8192", "8192")]
    found = read(table(("Model", "Llama3 8B", "Llama3 8B"), *rows, ("MFU", "40%", "40%")))
    assert ["page.md:12: the result says the same as that of line 12"] == [
        one.partition(";")[0] for one in said(found)
    ]


def test_rows_without_a_figure_are_kept_counted_and_named() -> None:
    titles = (*RATE, "MFU")
    rows = [("n/a", "n/a"), ("-", "-"), ("661", "-"), ("n/a (n/a)", "")]
    cells = [("Llama3 8B", str(at), "128", "8192", *row) for at, row in enumerate(rows, start=1)]
    found = read(table(titles, *cells))
    assert [9, 10, 11, 12] == [one.line for one in found.results]
    assert [
        "page.md:9: results without any figure: 3, on lines 9-10, 12; they are kept as unknown; "
        "write the figures, or remove the rows"
    ] == said(found)


def test_a_second_size_beside_one_figure_is_kept_as_a_result_without_figures() -> None:
    """Only where the figures themselves have a place for it is it left out."""
    titles = (*SIZES, "TP", "Tokens/s/GPU")
    rows = [(*ROW, "1 (2)", "661"), (*ROW, "1 (2)", "661 (n/a)")]
    found = read(table(titles, *rows))
    assert [(9, 1, 661), (9, 2, None), (10, 1, 661)] == [
        (one.line, one.case.tensor_parallel, one.figures.tokens_per_sec_per_gpu)
        for one in found.results
    ]


@pytest.mark.parametrize(
    ("size", "wrong"),
    [
        (("Llama3 8B", "16 (2)", "128", "8192"), "page.md:9: GPUs: '16 (2)' is not a number"),
        (("Llama3 8B", "16", "128 (16)", "8192"), "page.md:9: GBS: '128 (16)' is not a number"),
    ],
)
def test_a_second_size_beside_one_figure_that_is_far_from_the_first_is_rejected(
    size: tuple[str, ...], wrong: str
) -> None:
    found = read(table((*SIZES, "Tokens/s/GPU"), (*size, "661"), (*ROW, "651")))
    assert [651] == [one.figures.tokens_per_sec_per_gpu for one in found.results]
    assert [wrong] == [str(one).partition(";")[0] for one in found.problems]
    pairs = read(table((*SIZES, "Tokens/s/GPU"), (*size, "661 (624)")))
    assert ([661, 624], ()) == (
        [one.figures.tokens_per_sec_per_gpu for one in pairs.results],
        pairs.problems,
    )


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (("0", "1", "-"), [(False, None), (True, None), (None, None)]),
        (("no", "✓", "✔️"), [(False, None), (True, None), (True, None)]),
        (("0", "1", "16"), [(False, None), (None, 1), (None, 16)]),
        (("1 (1)", "1 (16)"), [(None, 1), (None, 1), (None, 1), (None, 16)]),
    ],
)
def test_a_1_below_fsdp_is_a_size_where_another_row_has_a_larger_one(
    column: tuple[str, ...], wanted: list[tuple[bool | None, int | None]]
) -> None:
    rate = "661 (624)" if "(" in column[0] else "661"
    rows = [("Llama3 8B", str(at), "128", "8192", one, rate) for at, one in enumerate(column, 1)]
    found = read(table((*SIZES, "FSDP", "Tokens/s/GPU"), *rows))
    assert wanted == [(one.case.fsdp_enabled, one.case.fsdp_size) for one in found.results]


def test_a_1_below_sp_is_rejected_where_another_row_has_a_size() -> None:
    rows = [("Llama3 8B", str(at), "128", "8192", one, "661") for at, one in enumerate("018", 1)]
    found = read(table((*SIZES, "SP", "Tokens/s/GPU"), *rows))
    assert [(1, False)] == [
        (one.case.num_gpus, one.case.sequence_parallel) for one in found.results
    ]
    assert [
        "page.md:10: SP: it may be a switch or a size: another row of the column is a size",
        "page.md:11: SP: '8' is neither 0 nor 1",
    ] == [str(one).partition(";")[0] for one in found.problems]


def test_a_column_that_is_not_known_is_told_once_with_all_its_lines() -> None:
    tables = [table((*RATE, "Cost"), (f"Llama{n} 8B", *ROW[1:], "6", "1")) for n in range(4)]
    (told,) = said(read(*tables))
    assert told == (
        "page.md:7: no field for the columns 'Cost'; they are kept as extras "
        "(also on lines 11, 15, 19)"
    )


TITLES = st.sampled_from(
    ["Tokens/s/GPU", "Tokens/s/GPU FP8-CS (FP8-MX)", "MFU (median)", "Tokns/s/GPU", "Time/iter",
     "Speed", "Precision", "TP", "Cost", "Tokens/s/GPU BF16"]
)  # fmt: skip
CELLS = st.sampled_from(["1", "2 (1)", "3 (n/a)", "n/a (4)", "n/a", "-", "0", "BF16", "x", "5†"])
MODELS = st.sampled_from(["Llama3 8B", "Lama3 8B", "LLAMA3-80B", "-"])


@st.composite
def tables_of_results(draw: st.DrawFn) -> str:
    """A table of results, or of figures that nobody knows; the first value of each is there."""
    last = tuple(draw(st.lists(TITLES, min_size=1, max_size=3)))
    cells = st.tuples(MODELS, st.just("8"), CELLS, st.just("8192"), *(CELLS for _ in last))
    rows = draw(st.lists(cells, min_size=1, max_size=4))
    known = ("Llama3 8B", "8", "128", "8192", *("7" for _ in last))
    if any("/" in title or title in ("Speed", "Cost", "MFU (median)") for title in last):
        return table((*SIZES, *last), known, *rows)
    return table((*SIZES, *last, "MFU"), (*known, "40%"), *((*row, "41%") for row in rows))


@given(st.lists(tables_of_results(), min_size=1, max_size=3), st.booleans())
@settings(deadline=None)
def test_each_row_becomes_a_result_a_problem_or_a_note_on_its_line(
    tables: list[str], precise: bool
) -> None:
    """Also a row that another one repeats, of which the store keeps one."""
    text = (HEAD if precise else HEAD.replace(", Precision: BF16", "")) + "\n".join(tables)
    source = Source(Path("page.md"), "page", named=True)
    found = read_page(source, [text.encode()], PageContext())
    assert isinstance(found, PageRows)
    stored = {row.source_line for row in found.rows}
    told = {one.line for one in (*found.problems, *found.notes)}
    lines = text.splitlines()
    rows = {n for n, line in enumerate(lines, start=1) if line.startswith(("| L", "| - "))}
    assert rows - stored - told == set()
    assert stored <= rows


@pytest.mark.parametrize(
    "between",
    [
        "",
        "Note: Mock data.\n",
        "Some | text\n",
        "### Another heading\n",
        "| A | B |\n|---|---|\n| 1 | 2 |\n",
    ],
)
@pytest.mark.parametrize("rows", [1, 2])
def test_a_row_of_figures_that_anything_cuts_off_from_its_table_is_told(
    between: str, rows: int
) -> None:
    """Its table has the heading's six lines above it, and ends on line 9."""
    lost = table(("Llama3 70B", "64", "128", "8192", "1621")).splitlines()[0]
    text = "\n".join(
        (table((*SIZES, "Tokens / sec / GPU"), (*ROW, "7.5")), between, *[lost] * rows)
    )
    found = read(text)
    assert [9] == [one.line for one in found.results]
    first = HEAD.count("\n") + text.splitlines().index(lost) + 1
    assert [(first + place, "put it right below the table") for place in range(rows)] == [
        (one.line, one.remedy) for one in found.problems
    ]


def test_a_row_that_repeats_another_with_its_columns_in_another_order_is_told() -> None:
    given = dict(zip((*SIZES, "Tokens / sec / GPU"), (*ROW, "7.5"), strict=True))
    turned = dict(reversed(given.items()))
    tables = (table(tuple(one), tuple(one.values())) for one in (given, turned))
    found = read(*tables)
    repeats = "the result says the same as that of line 9; one is stored for both"
    assert [(13, repeats)] == [(one.line, one.message) for one in found.notes]


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (
            table(("System", "Benchmark", "Time to train (min)"), ("DGX-B200", "llama2", "11.15")),
            "page.md:1: the table is not read: it does not say all of what 'Time to train (min)'",
        ),
        (
            table(("System", "Llama3 8B", "Llama3 70B"), ("DGX-H100", "12,820", "1,510")),
            "page.md:1: the table is not read: its columns 'Llama3 8B', 'Llama3 70B' are what was",
        ),
        (
            table(("Techniques", "TPS/GPU", "Memory (GiB)"), ("FSDP", "5,762", "82.4")),
            "page.md:1: the table is not read: it does not say all of what 'TPS/GPU' are of",
        ),
        (
            table(("#GPUs", "GBS", "Seq", "DGX-H100 BF16", "DGX-H100 FP8"), ("32",) * 5),
            "page.md:1: the table is not read: its columns 'DGX-H100 BF16', 'DGX-H100 FP8' are",
        ),
        (
            table(("Model", "GPUs", "GBS", "Time to train (min)"), ("Nobody 8B", "64", "128", "9")),
            "page.md:1: the table is not read: it does not say all of what 'Time to train (min)'",
        ),
        (
            table(("Model", "GPUs", "GBS", "HFU"), ("Nobody 8B", "64", "128", "55%")),
            "page.md:1: the table is not read: it does not say all of what 'HFU' are of",
        ),
        (
            table(("Model", "GPUs", "GBS", "samples_per_second"), ("Nobody 8B", "64", "128", "9")),
            "page.md:1: the table is not read: it does not say all of what 'samples_per_second'",
        ),
        (
            table(("Model", "8 GPUs", "64 GPUs"), ("Llama3 8B tokens/s/GPU", "9512", "9400")),
            "page.md:1: the table is not read: its columns '8 GPUs', '64 GPUs' are what was run",
        ),
        (
            table(("",) * 5, (*ROW, "9512")),
            "page.md:1: the table is not read: its header is empty",
        ),
        (
            table((*ROW, "9512"), (*ROW, "9400")),
            "page.md:1: the table is not read: its header is a row of figures",
        ),
        (
            "Model\tGBS\tTokens / sec / GPU\nLLAMA3_8B\t128\t12,250\n",
            "page.md:1: the lines are not read as a table: their cells are set apart by tabs",
        ),
        (
            f"```\n{table((*SIZES, 'MFU'), (*ROW, '41%'))}```\n",
            "page.md:2: the table is not read: it stands in a block of code",
        ),
        (
            f"```{{code-block}} text\n:name: x\n\n{table((*SIZES, 'MFU'), (*ROW, '41%'))}```\n",
            "page.md:4: the table is not read: it stands in a block of code",
        ),
        (
            "".join(f"    {line}\n" for line in table((*SIZES, "MFU"), (*ROW, "41%")).splitlines()),
            "page.md:1: the table is not read: it stands in a block of code",
        ),
        (
            f"<pre>\n{table((*SIZES, 'MFU'), (*ROW, '41%'))}</pre>\n",
            "page.md:2: the table is not read: it stands in a block of code",
        ),
        (
            "```\n| Model | TPS/GPU |\n|---|---|\n| Llama3 8B | 9512 |\n```\n",
            "page.md:2: the table is not read: it stands in a block of code",
        ),
        (
            "# Runs\n\n+---+---+\n| Model | MFU |\n+===+===+\n| time | 41% |\n+---+---+\n",
            "page.md:3: the table is not read: it is in no markup that is known here",
        ),
        (
            '{| class="wikitable"\n! Model !! GPUs !! MFU\n|-\n| Nobody || 8 || 41%\n|}\n',
            "page.md:2: the table is not read: it is in no markup that is known here",
        ),
        (
            "```{csv-table}\n:header: Model,GPUs,Tokens/s/GPU\n:delim: ;\n\nX; 8; 128\n```\n",
            "page.md:3: the table is not read: a row has 3 cells, its header 1 cell; write",
        ),
    ],
)
def test_a_table_that_looks_like_figures_and_is_not_read_is_told(page: str, told: str) -> None:
    """In a folder the page is passed over with a note, and rejected where it is named."""
    [said_of] = reader.not_read("page.md", page)
    assert str(said_of).startswith(told)
    assert said_of.remedy
    [told_again] = reader.read("page.md", page, PageContext()).notes
    assert said_of == told_again
    source = Source(Path("page.md"), "page", named=True)
    named = read_page(source, [page.encode()], PageContext())
    assert isinstance(named, Rejected)
    assert (said_of,) == named.problems
    folder = Source(Path("page.md"), "page", named=False)
    met = read_page(folder, [page.encode()], PageContext())
    assert isinstance(met, Rejected)
    assert ((), (said_of,)) == (met.problems, met.notes)


@pytest.mark.parametrize(
    "page",
    [
        table(("Term", "Meaning"), ("Tokens/s/GPU", "how fast")),
        table(("Model", "Steps", "Warmup Steps", "Hidden Size"), ("Llama3 8B", "100", "10", "1")),
        table(("Endpoint", "Latency (ms)"), ("/login", "12")),
        table(("GPU", "BF16", "FP8"), ("H100", "yes", "yes")),
        table(("Model", "GPUs", "GBS", "Warmup Steps"), ("Llama3 8B", "8", "128", "10")),
        table(("",) * 4, ("Users", "1", "2", "3")),
        table(("",) * 3, ("Llama3 8B", "yes", "25.04")),
        table(("Year", "2024", "2025", "2026"), ("Users", "1", "2", "3")),
        "one\ttwo\tthree\n1\t2\t3\n",
        f"```\n{table(('GPU', 'BF16', 'FP8'), ('H100', 'yes', 'yes'))}```\n",
        "```\n+---+---+\n| PID | Time |\n+---+---+\n| 1 | 2 |\n+---+---+\n```\n",
        "# Runs\n\n+---+---+\n| Name | Age |\n+---+---+\n| A | 2 |\n+---+---+\n",
        "Wow!! It is fast!!\n",
    ],
)
def test_a_table_of_other_things_is_not_told(page: str) -> None:
    assert () == reader.not_read("page.md", page)


@pytest.mark.parametrize("titles", [("",) * 5, ("Nobody 8B", *ROW[1:], "9400")])
def test_a_table_without_titles_that_is_as_wide_as_one_that_is_read_is_told(
    titles: tuple[str, ...],
) -> None:
    """Whoever wrote it may have meant the titles of that one."""
    more = table(titles, ("Nobody 9B", *ROW[1:], "9300"))
    found = read(table((*SIZES, "Tokens/s/GPU"), (*ROW, "9512")), "Larger models:\n", more)
    assert [9512] == [one.figures.tokens_per_sec_per_gpu for one in found.results]
    assert [True] == [one.startswith("page.md:13: the table is not read") for one in said(found)]
