"""Tables with a result in each column, and configurations that stand in a table of their own."""

from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perfdb.pages import reader
from perfdb.pages.base import PageContext, PageRead
from perfdb.record import PublishedResult

HEAD = "# NeMo DFM\n\n## Pre-training\n\n### System: DGX-H100, Precision: BF16\n\n"

counts = st.integers(1, 4096).map(str)
rates = st.decimals("0.01", 10**6, places=2).map("{:,}".format)
CELLS = {
    "Model": st.sampled_from(["Llama3 8B", "**LLAMA3-70B**", "My model 7B (dropless)"]),
    "#-GPUs": counts,
    "GBS/MBS": st.tuples(counts, counts).map("/".join),
    "Sequence Length": counts,
    "TP, PP, CP": st.tuples(counts, counts, counts).map(", ".join),
    "VP": st.sampled_from(["-", "n/a", "1", "4"]),
    "Tokens / sec / GPU": rates,
    "Model TFLOP / sec / GPU": rates | st.just(""),
    "MFU (%)": st.sampled_from(["43.1%", "7", "-"]),
    "Optimizer": st.sampled_from(["AdamW", "", "32"]),
}


def read(text: str, **said: str) -> PageRead:
    return reader.read("page.md", text, PageContext(**said))


def pipes(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is its header."""
    head, *body = (f"|{'|'.join(row)}|\n" for row in rows)
    return head + "|" + "---|" * len(rows[0]) + "\n" + "".join(body)


def without_line(result: PublishedResult) -> PublishedResult:
    return result.model_copy(update={"line": 1})


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    """A header in any order of columns, and rows for it."""
    titles = draw(st.permutations(sorted(CELLS)))
    rows = draw(st.lists(st.tuples(*(CELLS[title] for title in titles)), min_size=1, max_size=5))
    return [list(titles), *map(list, rows)]


@given(tables())
@settings(deadline=None, max_examples=60)
def test_a_table_on_its_side_reads_as_it_does_upright(rows: list[list[str]]) -> None:
    """Case, figures, printed text, extras: all but the line, in the same order."""
    upright, turned = read(HEAD + pipes(rows)), read(HEAD + pipes(list(zip(*rows, strict=True))))
    assert len(rows) - 1 == len(upright.results)
    assert () == upright.problems + turned.problems
    assert [without_line(one) for one in upright.results] == [
        without_line(one) for one in turned.results
    ]


texts = st.text(st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=8)


@given(st.lists(st.lists(texts, min_size=5, max_size=5), min_size=1, max_size=4))
@settings(deadline=None)
def test_every_column_is_either_read_or_refused(columns: list[list[str]]) -> None:
    """Whatever its cells hold; of one that holds pairs both values are read."""
    titles = ["Model", "#-GPUs", "GBS", "Sequence Length", "Tokens / sec / GPU"]
    right = ["Llama3 8B", "8", "128", "8192", "12273"]
    # A letter before each text keeps a row of dashes from being taken for the rule of a table.
    odd = [["x" + cell.replace("|", "\\|") for cell in column] for column in columns]
    assume(not any("\\" in cell.replace("\\|", "") for column in columns for cell in column))
    found = read(HEAD + pipes(list(zip(titles, right, *odd, strict=True))))
    assert 1 + len(columns) == len(found.results) + len(found.problems)
    assert "llama3-8b" == found.results[0].case.model
    assert {12} == {one.line for one in (*found.results, *found.problems)}


RECIPE = """NeMo recipe

Size | Precision | GPUs | SeqLen | Layers | TP | PP | GBS | MBS |
---|---|---|---|---|---|---|---|---|
15b | BF16/FP8 | 16 | 4096 | 32 | 2 | 1 | 64 | 2 |
15b | BF16 | 32 | 4096 | 32 | 2 | 1 | 128 | 2 |
340b | BF16/FP8 | 16 | 4096 | 96 | 8 | 2 | 32 | 1 |

Nemotron4 15b FP8 | 16x H100 GPUs | 32x H100 GPUs | 16x B200 GPUs |
---|---|---|---|
Throughput in tokens per second | 132,396 | 264,792 | 200,000 |
Training step time (seconds per step) | 1.98 | 1.98 | 1.31 |
Days to nowhere | 1 | 2 | 3 |
"""


def test_a_column_is_a_result_with_the_configuration_of_another_table() -> None:
    """Model and precision are in the corner, GPUs and their kind above each column.

    The line is that of the first figure; 32 GPUs have no configuration in FP8, so that nobody can
    tell the global batch of that column.
    """
    found = read(RECIPE)
    assert [11, 11] == [one.line for one in found.results]
    assert [("dgx-h100", 16, 64, 2, 4096, 2, 1.98, 132396.0),
            ("dgx-b200", 16, 64, 2, 4096, 2, 1.31, 200000.0)] == [
        (one.case.system, one.case.num_gpus, one.case.global_batch_size, one.case.micro_batch_size,
         one.case.sequence_length, one.case.tensor_parallel, one.figures.step_time_s,
         one.figures.tokens_per_sec) for one in found.results
    ]  # fmt: skip
    assert {("nemotron4-15b", "fp8", "nemo")} == {
        (one.case.model, one.case.precision, one.case.framework) for one in found.results
    }
    first = found.results[0]
    assert {"Size": "15b", "Layers": "32", "Days to nowhere": "1"} == first.extras
    assert ("16x H100 GPUs", "64", "1.98") == (
        first.raw["Nemotron4 15b FP8"], first.raw["GBS"],
        first.raw["Training step time (seconds per step)"],
    )  # fmt: skip
    (problem,) = found.problems
    assert "(column '32x H100 GPUs')" in problem.message
    assert ("SeqLen", 11) == (problem.field, problem.line)


def test_an_upright_table_without_batches_has_them_from_a_table_below() -> None:
    """So too a precision that is said nowhere else; the line is that of the row of figures."""
    found = read(
        "# NeMo\n\n## Pre-training\n\n### System: DGX-H100\n\n"
        "| Model | GPUs | Step Time (s) |\n|---|---|---|\n"
        "| Llama3 8B | 8 | 7.44 |\n| Llama3 70B | 8 | 9 |\n\n## Configurations\n\n"
        "| Model | GPUs | Precision | GBS/MBS | Seq Length |\n|---|---|---|---|---|\n"
        "| LLAMA3-70B | 1,024 | FP8 | 512/1 | 8192 |\n| LLAMA3-8B | 8 | FP8 | 128/2 | 8192 |\n"
    )
    (one,) = found.results
    assert (9, "llama3-8b", "fp8", 128, 2, 8192, 7.44) == (
        one.line, one.case.model, one.case.precision, one.case.global_batch_size,
        one.case.micro_batch_size, one.case.sequence_length, one.figures.step_time_s,
    )  # fmt: skip
    assert [10] == [problem.line for problem in found.problems]


SAID = {"framework": "nemo", "release": "25.09", "system": "dgx-h100"}


def of_configurations(*rows: str) -> str:
    """A table of configurations, and one of results for the same GPUs."""
    return (
        pipes([["Model", "#-GPUs", "GBS", "Sequence Length"], *(one.split() for one in rows)])
        + "\n"
        + pipes([["Model", "#-GPUs", "Tokens/s/GPU"], ["Llama3-8B", "8", "10,500"]])
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("DGX-H100", "DGX-B200"), ("H100", "H200"), ("Pre-training", "LoRA"), ("25.09", "25.07"),
        ("NeMo 25.09", "Megatron-Bridge 0.2.0"), ("BF16", "FP8"), ("System: DGX-H100", "GPU: H200"),
    ],
)  # fmt: skip
def test_a_result_has_the_configuration_of_its_section(first: str, second: str) -> None:
    """The same GPUs and model are configured for another system, task, release or precision."""
    found = read(
        "# Performance\n\n"
        f"## {first}\n\n{of_configurations('Llama3-8B 8 128 8192')}\n"
        f"## {second}\n\n{of_configurations('Llama3-8B 8 256 4096')}",
        **SAID,
    )
    assert () == found.problems
    assert [(128, 8192), (256, 4096)] == [
        (one.case.global_batch_size, one.case.sequence_length) for one in found.results
    ]


def test_of_configurations_in_two_tables_that_fit_neither_is_taken() -> None:
    """Nobody can tell which holds under headings that say nothing of the rows."""
    found = read(
        f"# NeMo\n\n## Setup A\n\n{of_configurations('Llama3-8B 8 128 8192')}\n"
        f"## Setup B\n\n{of_configurations('Llama3-8B 8 256 4096')}",
        **SAID,
    )
    assert () == found.results
    assert {"GBS"} == {problem.field for problem in found.problems}


@pytest.mark.parametrize(
    ("title", "own", "other"),
    [
        ("System", "DGX-H100", "DGX-B200"), ("GPU", "H100", "H200"),
        ("Hardware", "H100", "8x H200"), ("Task", "Pre-training", "LoRA"),
        ("Release", "25.09", "25.07"),
    ],
)  # fmt: skip
def test_a_configuration_of_another_row_is_not_taken(title: str, own: str, other: str) -> None:
    results = [
        [title, "Model", "#-GPUs", "Tokens/s/GPU"],
        [own, "Llama3 8B", "8", "10,500"],
        [other, "Llama3 8B", "8", "20,500"],
    ]
    of_system = {"Task", "Release"}.isdisjoint({title})
    said = {name: text for name, text in SAID.items() if name != "system" or not of_system}
    configured = [
        [title, "Model", "#-GPUs", "GBS", "Sequence Length"],
        [own, "Llama3 8B", "8", "128", "8192"],
    ]
    found = read(f"# NeMo\n\n{pipes(results)}\nAs configured:\n\n{pipes(configured)}", **said)
    assert [10500.0] == [one.figures.tokens_per_sec_per_gpu for one in found.results]
    assert 1 == len(found.problems)


BATCHES = """# NeMo 25.04

## Pre-training

### System: DGX-H100, Precision: BF16

| Model | GPUs | Step Time (s) |
|---|---|---|
| Llama3 8B | 64 | 7.44 |

| Model | GPUs | {} | Seq Length |
|---|---|---|---|
| LLAMA3-8B | 64 | {} | 8192 |
"""


@pytest.mark.parametrize("cell", [r"GPUs\*6", "GPUs × 6", "#GPUs*6", "gpus*6"])
def test_a_product_of_the_gpus_is_computed_and_a_note_says_so(cell: str) -> None:
    """64 × 6 is 384; what is printed is kept as it is printed."""
    found = read(BATCHES.format("GBS", cell))
    (one,) = found.results
    shown = cell.replace("\\", "")
    assert (384, cell) == (one.case.global_batch_size, one.raw["GBS"])
    assert (f"GBS is computed: {shown} is 384 for 64 GPUs",) == one.notes


def test_a_product_in_a_row_of_results_is_computed_too_and_a_figure_never() -> None:
    """384 and 64 for 64 GPUs; nobody measures a rate that is a product of GPUs."""
    head = BATCHES[: BATCHES.index("| Model")]
    rows = [["Model", "GPUs", "GBS", "DP", "Seq Length", "Tokens / sec / GPU"],
            ["Llama3 8B", "64", r"GPUs\*6", r"GPUs\*1", "8192", "12,273"],
            ["Llama3 8B", "32", "8", "1", "8192", r"GPUs\*6"]]  # fmt: skip
    found = read(head + pipes(rows))
    (one,), (problem,) = found.results, found.problems
    assert (384, 64) == (one.case.global_batch_size, one.case.data_parallel)
    assert ("GBS is computed: GPUs*6 is 384 for 64 GPUs",
            "DP is computed: GPUs*1 is 64 for 64 GPUs") == one.notes  # fmt: skip
    assert "page.md:10: Tokens / sec / GPU: 'GPUs*6' is not a number; write it as 1022.26" in str(
        problem
    )


@pytest.mark.parametrize(
    ("title", "cell", "told"),
    [
        (
            "GBS", "GPUs/32",
            "GBS: 'GPUs/32' is not a number (for line 9); write what it comes to: of formulas only "
            "products such as GPUs*6 are computed",
        ),
        (
            "GBS", "256-512",
            "GBS: '256-512' is not a number (for line 9); write a whole number, such as 8 or "
            "1,024, or - where there is none",
        ),
        (
            "GBS", "1022.26",
            "GBS: '1022.26' is not a whole number (for line 9); write a whole number, such as 8 or "
            "1,024, or - where there is none",
        ),
        (
            "GBS", r"GPUs\*99999999",
            "GBS: '6399999936' is not a whole number of that size (for line 9); write a whole "
            "number up to 2,147,483,647",
        ),
        (
            "GBS/MBS", "512",
            "GBS/MBS: '512' is not 2 values (for line 9); write one for each name in the title, "
            "with / between, - where there is none",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_configuration_is_told_on_its_line(
    title: str, cell: str, told: str
) -> None:
    (problem,) = read(BATCHES.format(title, cell)).problems
    assert f"page.md:13: {told}" == str(problem)


def test_of_two_configurations_that_fit_neither_is_taken() -> None:
    """The first column's GPUs, model and precision are said of two batches: it is refused."""
    line = "15b | BF16/FP8 | 16 | 4096 | 32 | 2 | 1 | 64 | 2 |\n"
    found = read(RECIPE.replace(line, line + line.replace("64", "128")))
    assert () == found.results
    assert {"GBS"} == {problem.field for problem in found.problems}
    assert 3 == len(found.problems)


def test_a_caption_names_a_model_that_the_catalogue_lacks() -> None:
    """A precision after it tells it from any other words; a heading that names one is stronger."""
    text = RECIPE.replace("Nemotron4 15b FP8", "Nobody 15b BF16")
    assert {("nobody-15b", "bf16")} == {
        (one.case.model, one.case.precision) for one in read(text).results
    }
    assert 3 == len(read(text).results)


def test_a_table_on_its_side_with_a_cell_too_few_is_refused_whole() -> None:
    """Nobody can tell which of its cells slipped; the line is that of the short row."""
    found = read(RECIPE.replace("| 1.98 | 1.98 | 1.31 |", "| 1.98 | 1.31 |"))
    assert () == found.results
    assert [(12, "the row has 3 cells, its table 4 columns")] == [
        (one.line, one.message) for one in found.problems
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [["Term", "Meaning"], ["MFU", "share of the peak"], ["GBS", "batch"], ["TP", "tensor"]],
        [["Metric", "Value"], ["MFU", "43%"], ["Tokens / sec / GPU", "12,273"]],
        [["Model", "Size"], ["15b", "204 GB"], ["340b", "4.4 TB"]],
    ],
)  # fmt: skip
def test_a_glossary_or_a_few_figures_are_no_results(rows: list[list[str]]) -> None:
    text = HEAD + pipes(rows)
    assert not reader.looks_like_page(text)
    assert ((), ()) == (read(text).results, read(text).problems)


def test_gpus_that_the_catalogue_lacks_are_not_taken_for_those_of_the_heading() -> None:
    text = HEAD + RECIPE.replace("16x B200", "16x A900")
    (problem,) = (one for one in read(text).problems if "A900" in one.message)
    assert "System: no system with GPUs 'A900' in the catalogue" in str(problem)


# Columns of several fields


def composite(title: str, cell: str) -> PageRead:
    rows = [["Model", "#-GPUs", "GBS", "Sequence Length", title, "Tokens / sec / GPU"],
            ["Llama3 8B", "8", "128", "8192", cell, "12273"]]  # fmt: skip
    return read(HEAD + pipes(rows))


@pytest.mark.parametrize(
    ("title", "cell", "sizes"),
    [
        ("TP/PP/CP/EP", "8/1/4/1", (8, 1, 4, 1)),
        ("TP / PP / CP / EP", "1 / 0 / 1 / 2", (1, None, 1, 2)),
        ("TP, PP, CP", "8, 2, 1", (8, 2, 1, None)),
        ("EP/TP", "n/a/8", (8, None, None, None)),
        ("PP/TP/VPP", "-", (None, None, None, None)),
    ],
)
def test_a_column_may_hold_several_sizes(
    title: str, cell: str, sizes: tuple[int | None, ...]
) -> None:
    """In the order of its title, and kept as printed under it."""
    (one,) = composite(title, cell).results
    case = one.case
    assert sizes == (
        case.tensor_parallel, case.pipeline_parallel, case.context_parallel, case.expert_parallel,
    )  # fmt: skip
    assert cell == one.raw[title]


def test_pairs_and_several_sizes_go_together() -> None:
    """Of `8/1 (4/2)` the first values are 8 and 1, those in brackets 4 and 2."""
    first, second = composite("TP/PP", "8/1 (4/2)").results
    assert (8, 1) == (first.case.tensor_parallel, first.case.pipeline_parallel)
    assert (4, 2) == (second.case.tensor_parallel, second.case.pipeline_parallel)


@pytest.mark.parametrize("cell", ["8/1", "8/1/2/1", "8", "8-1-2"])
def test_a_cell_with_another_number_of_values_is_refused(cell: str) -> None:
    found = composite("TP/PP/CP", cell)
    assert () == found.results
    assert [
        f"page.md:9: TP/PP/CP: {cell!r} is not 3 values; write one for each name in the title, "
        "with / between, - where there is none"
    ] == [str(problem) for problem in found.problems]


def test_a_title_of_which_a_part_is_unknown_is_kept_as_an_extra() -> None:
    found = composite("TP/Magic", "8/1")
    assert ["8/1"] == [one.extras["TP/Magic"] for one in found.results]
    assert 1 == len(found.notes)


@pytest.mark.parametrize(
    ("corner", "first", "second", "wanted"),
    [
        ("Metric", "25.07", "NeMo 25.09", [("25.07", None), ("25.09", None)]),
        ("Metric", "BF16", "FP8", [("25.04", "bf16"), ("25.04", "fp8")]),
        ("Metric", "BF16", "FP8 (25.09)", [("25.04", "bf16"), ("25.09", "fp8")]),
        ("", "Measured", "FP8-CS", [("25.04", None), ("25.04", "fp8_cs")]),
        ("Metric", "BF16", "Projected", [("25.04", "bf16")]),
        ("Metric", "Run A", "25.07 and 25.09", [("25.04", None)]),
    ],
)
def test_the_title_of_a_column_holds_for_its_result(
    corner: str, first: str, second: str, wanted: list[tuple[str, str | None]]
) -> None:
    """As a heading would; of a title that leaves doubt, or of no measured figures, none is read."""
    head = "# NeMo 25.04\n\n## Pre-training\n\n### Llama3 8B on DGX-H100\n\n"
    rows = [("#-GPUs", "8", "16"), ("GBS", "128", "128"), ("Sequence Length", "8192", "8192")]
    found = read(head + pipes([(corner, first, second), *rows, ("Tokens/s/GPU", "9500", "13400")]))
    assert wanted == [(one.release.version, one.case.precision) for one in found.results]
    assert len(found.problems) == 2 - len(wanted)
    assert not found.problems or f"(column {second!r})" in found.problems[0].message


def test_a_model_in_the_corner_is_that_of_the_results_whatever_stands_above_them() -> None:
    rows = [("Llama3 70B", "BF16", "FP8"), ("#-GPUs", "64", "64"), ("GBS", "128", "128"),
            ("Sequence Length", "8192", "8192"), ("Tokens/s/GPU", "950", "1340")]  # fmt: skip
    found = read("# NeMo 25.04\n\n## Pre-training\n\n### Llama3 8B on DGX-H100\n\n" + pipes(rows))
    assert ["llama3-70b", "llama3-70b"] == [one.case.model for one in found.results]
