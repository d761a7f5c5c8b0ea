"""Published pages: what each holds, by golden files typed from the pages, and what is refused."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfdb import catalog
from perfdb.pages import columns, reader, titles
from perfdb.pages.base import PageContext, PageRead
from perfdb.record import Case, Figures, PublishedResult, Release

DATA = Path(__file__).parent / "data" / "pages"
MARKUPS = {".html": "html", ".rst": "rest", ".mdx": "mdx", ".md": "markdown"}
GOOD = sorted(path for path in (DATA / "good").iterdir() if path.suffix in MARKUPS)
BAD = sorted(path for path in (DATA / "bad").iterdir() if path.suffix in MARKUPS)
OURS = Path(__file__).parents[1] / "data" / "published" / "dfm.md"


def name_of(path: Path) -> str:
    return path.stem


def golden_of(page: Path) -> dict[str, Any]:
    return yaml.safe_load(page.with_suffix(".yml").read_text())


def read(page: Path, **said: str) -> PageRead:
    return reader.read(page.name, page.read_text(), PageContext(**said))


def golden_rows(golden: dict[str, Any]) -> Iterator[tuple[int, Case, Figures, Release]]:
    """The rows of a golden file: (line, case, figures, release)."""
    for table in golden["tables"]:
        release = table.get("release", golden.get("release", {}))
        for cells in table["rows"]:
            row = table["common"] | dict(zip(table["columns"], cells, strict=True))
            line = row.pop("line")
            figures = {name: row.pop(name) for name in Figures.model_fields if name in row}
            yield (
                line,
                Case(**row),
                Figures(**figures),
                Release(framework=row["framework"], **release),
            )


def said_by(result: PublishedResult) -> tuple[int, Case, Figures, Release]:
    return result.line, result.case, result.figures, result.release


def printed_rows(text: str) -> list[list[str]]:
    """The cells of every row of a pipe table, by splitting at pipes; the header is left out."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("|")]
    rules = {at for at, line in enumerate(lines) if set(line) <= set("|-: ")}
    headers = {at - 1 for at in rules}
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for at, line in enumerate(lines)
        if at not in rules | headers
    ]


def test_every_format_and_page_has_a_golden_file() -> None:
    """A page without its golden file, or the other way round, proves nothing."""
    assert {page.stem for page in GOOD} == {p.stem for p in (DATA / "good").glob("*.yml")}
    assert {page.stem for page in BAD} == {p.stem for p in (DATA / "bad").glob("*.txt")}
    markups = reader.FORMATS
    shown = {next(n for n, f in markups.items() if f.recognises(p.read_text())) for p in GOOD}
    assert set(markups) == shown


@pytest.mark.parametrize("page", GOOD, ids=name_of)
def test_a_page_reads_as_typed_from_it(page: Path) -> None:
    """Line, case, figures and release of the rows that the golden file has, whole and exact."""
    golden = golden_of(page)
    wanted = list(golden_rows(golden))
    lines = {line for line, *_ in wanted}
    found = [said_by(r) for r in read(page, **golden["context"]).results if r.line in lines]
    assert wanted == found


@pytest.mark.parametrize("page", GOOD, ids=name_of)
def test_a_page_gives_all_its_rows_and_no_problem(page: Path) -> None:
    """The number of results is the one typed from the page; notes are those foreseen."""
    golden = golden_of(page)
    page_read = read(page, **golden["context"])
    assert () == page_read.problems
    assert golden["results"] == len(page_read.results)
    assert golden.get("notes", []) == [str(note) for note in page_read.notes]


@pytest.mark.parametrize("page", GOOD, ids=name_of)
def test_columns_without_a_field_are_kept_as_extras(page: Path) -> None:
    """Their text stands under the page's own title."""
    golden = golden_of(page)
    wanted = {k: v for table in golden["tables"] for k, v in table.get("extras", {}).items()}
    results = read(page, **golden["context"]).results
    assert wanted == {r.line: r.extras for r in results if r.line in wanted}


PIPES = [p for p in GOOD if p.stem.startswith(("dfm", "automodel", "nemo-2024"))]


@pytest.mark.parametrize("page", PIPES, ids=name_of)
def test_every_cell_of_every_row_is_kept_as_printed(page: Path) -> None:
    """Raw text, cell for cell, as splitting the source at its pipes gives it."""
    results = read(page, **golden_of(page)["context"]).results
    assert printed_rows(page.read_text()) == [list(result.raw.values()) for result in results]


@pytest.mark.parametrize("page", PIPES, ids=name_of)
def test_every_rate_is_the_number_that_its_cell_prints(page: Path) -> None:
    """No row's throughput is off, in those that the golden files leave out either."""
    for result in read(page, **golden_of(page)["context"]).results:
        for title, text in result.raw.items():
            if "TFLOP" in title:
                printed = float(re.sub(r"\[(.*)\]\(.*\)|,", r"\1", text))
                assert printed == result.figures.model_tflops_per_sec_per_gpu
            if title.replace(" ", "").lower().startswith("tokens/sec"):
                assert float(text.replace(",", "")) == result.figures.tokens_per_sec_per_gpu


def test_a_scraped_page_has_a_result_for_each_model_it_names() -> None:
    """Counted by the lines that hold a model's name."""
    text = (DATA / "good" / "nemo-25.04.md").read_text()
    named = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if re.match(r"(GPT3|LLAMA3|Nemotron|Mixtral)-", line)
    ]
    result = reader.read("nemo-25.04.md", text, PageContext())
    assert named == [one.line for one in result.results]


def test_our_own_dfm_page_says_what_the_published_one_says() -> None:
    """Cell for cell; the release is what our page adds."""
    published, ours = read(DATA / "good" / "dfm-tabs.md"), read(OURS)
    assert () == ours.problems + ours.notes
    assert 5 == len(ours.results)
    assert [r.raw for r in published.results] == [r.raw for r in ours.results]
    assert [(r.case, r.figures) for r in published.results] == [
        (r.case, r.figures) for r in ours.results
    ]
    assert {Release(framework="dfm", version="main")} == {r.release for r in ours.results}


@pytest.mark.parametrize("page", BAD, ids=name_of)
def test_a_row_that_cannot_be_read_is_refused_and_the_others_are_read(page: Path) -> None:
    """The messages are those beside the page: line, column, what is wrong, what to do."""
    page_read = read(page)
    said = [f"{len(page_read.results)} read", *map(str, page_read.problems)]
    known = ", ".join(sorted(catalog.systems()))
    expected = page.with_suffix(".txt").read_text().replace("{systems}", known)
    assert expected.splitlines() == said


@pytest.mark.parametrize("page", BAD, ids=name_of)
def test_every_problem_says_what_to_do(page: Path) -> None:
    """But for YAML that is none, where the parser's own words must do."""
    problems = read(page).problems
    assert problems
    assert page.stem == "no-yaml" or all(problem.remedy for problem in problems)
    assert all(problem.line for problem in problems)


def test_a_page_that_does_not_name_its_framework_is_read_when_the_command_line_does() -> None:
    """Every row is a problem without, and none with it."""
    page = DATA / "good" / "dfm-2025-11-20.md"
    assert [15, 21, 27] == [problem.line for problem in read(page).problems]
    assert 3 == len(read(page, framework="dfm").results)


def test_a_section_on_the_automodel_backend_does_not_make_it_a_page_of_automodel() -> None:
    """Sections name backends; the title, front matter and opening name the framework."""
    page = DATA / "good" / "dfm-2026-03-13.md"
    assert () == read(page).results
    assert {"pass --framework"} == {problem.remedy for problem in read(page).problems}


def test_the_system_of_one_section_does_not_hold_for_the_next() -> None:
    """The rows of a section that names no system are refused, not given the last one."""
    page_read = read(DATA / "good" / "automodel-2025-12-16.md")
    assert [9, 10, 11, 12, 13, 14] == [result.line for result in page_read.results]
    assert [20, 21, 22, 23, 24, 25] == [problem.line for problem in page_read.problems]


def test_the_command_line_says_what_the_page_does_not_and_nothing_else() -> None:
    """Our DFM page states its framework, release and systems; not its container and precision."""
    said = {
        "framework": "nemo", "release": "26.02", "container": "image:1",
        "system": "dgx b200", "precision": "bf16",
    }  # fmt: skip
    results = read(OURS, **said).results
    assert {Release(framework="dfm", version="main", container="image:1")} == {
        result.release for result in results
    }
    assert {"dgx-gb200", "dgx-gb300", "dgx-h100"} == {r.case.system for r in results}
    assert {("dfm", "bf16")} == {(r.case.framework, r.case.precision) for r in results}


def test_a_word_of_the_command_line_that_is_not_in_the_catalogue_is_a_problem() -> None:
    """Each row that needs it says so, with the words that there are."""
    problems = read(DATA / "good" / "automodel-2025-12-16.md", system="dgx-h10").problems
    assert 6 == len(problems)
    assert {catalog.other_systems()} == {problem.remedy for problem in problems}


@pytest.mark.parametrize(
    ("opening", "framework"),
    [
        ("# NeMo DFM", "dfm"),
        ("# Performance\n\nAs part of the NeMo Framework, DFM, is fast.", "dfm"),
        ("# NeMo AutoModel Performance Summary", "automodel"),
        ("Performance Summary\nFigures of NeMo AutoModel", "automodel"),
        ("# Performance of Megatron-Bridge", "megatron-bridge"),
        ("# Performance\n\nAs a part of the NeMo Framework, Megatron Bridge, …", "megatron-bridge"),
        ("# NeMo Framework", "nemo"),
        ("---\ntitle: NeMo in numbers\n---\n# Performance", "nemo"),
        ("---\nperfdb: {framework: mine}\n---\n# NeMo DFM", "mine"),
    ],
)
def test_the_framework_is_known_from_what_opens_the_page(opening: str, framework: str) -> None:
    """Title first, then front matter, then the words above the first section."""
    table = (
        "| Model | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU |\n"
        "|---|---|---|---|---|\n| Llama3 8B | 8 | 128 | 8192 | 1 |\n"
    )
    text = f"{opening}\n\n## Pre-training\n\n### DGX-H100\n\n{table}"
    assert [framework] == [
        one.case.framework for one in reader.read("page.md", text, PageContext()).results
    ]


@pytest.mark.parametrize(
    ("below", "framework"),
    [
        ("Started by the NeMo launcher.", "nemo"),
        ("NeMo and Megatron-Bridge start it.", None),
        ("", None),
    ],
)
def test_a_framework_that_a_page_names_in_passing_counts_if_it_is_the_only_one(
    below: str, framework: str | None
) -> None:
    """Of two, nobody can tell: the row is refused."""
    text = (
        "# Figures\n\n## Pre-training\n\n### DGX-H100\n\n"
        "| Model | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU |\n"
        f"|---|---|---|---|---|\n| Llama3 8B | 8 | 128 | 8192 | 1 |\n\n## More\n\n{below}\n"
    )
    found = reader.read("page.md", text, PageContext())
    wanted = [framework] if framework else []
    assert wanted == [one.case.framework for one in found.results]
    assert 1 - len(wanted) == len(found.problems)


def test_the_task_may_be_said_in_the_words_that_open_the_page() -> None:
    """For tables without a nearer word; where they name two tasks they name none."""
    text = OURS.read_text().replace("Pre-training on", "On")
    tuned = text.replace("pre-trains", "fine-tunes with LoRA")
    assert {"lora"} == {one.case.task for one in reader.read("a", tuned, PageContext()).results}
    both = text.replace("pre-trains", "pre-trains and fine-tunes")
    assert 4 == len(reader.read("a", both, PageContext()).notes)


def test_a_page_that_does_not_name_the_task_is_read_as_pre_training_with_a_note() -> None:
    """The assumption is said, not made in silence."""
    page = OURS.read_text().replace("Pre-training on", "On").replace("pre-trains", "trains")
    page_read = reader.read("dfm.md", page, PageContext())
    assert {"pretrain"} == {result.case.task for result in page_read.results}
    assert 4 == len(page_read.notes)
    assert (
        "the page does not say the task; its rows count as pre-training"
        == page_read.notes[0].message
    )


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_ends_and_a_byte_order_mark_change_nothing(ending: str) -> None:
    """Pages come from every kind of machine."""
    text = OURS.read_text()
    other = "\ufeff" + text.replace("\n", ending)
    assert reader.read("a", text, PageContext()) == reader.read("a", other, PageContext())


def test_a_page_is_a_text_with_a_table_of_results_be_it_empty() -> None:
    """Glossaries, recipes and code are none."""
    assert reader.looks_like_page((DATA / "good" / "dfm-empty.md").read_text())
    assert reader.looks_like_page((DATA / "good" / "nemo-25.04.md").read_text())
    quoted = "```\n" + OURS.read_text() + "```\n"
    assert not reader.looks_like_page(quoted)
    recipe = "Size | Precision | GPUs | GBS |\n---|---|---|---|\n15b | BF16 | 16 | 64 |\n"
    assert not reader.looks_like_page(recipe)
    assert not reader.looks_like_page("")


MISTYPED = """# NeMo 25.04

## Pre-training

### System: DGX-H100, Precision: BF16

| Model | GPUs | {} | Seq Length | {} |
|---|---|---|---|---|
| Llama3 8B | 64 | 128 | 8192 | 12,273 |
"""


@pytest.mark.parametrize(
    ("batch", "figure", "told"),
    [
        ("GSB", "Step Time (s)", "9: GBS: is missing; did you mean 'GBS' for 'GSB'?"),
        ("Global Bacth Size", "Step Time (s)", "did you mean 'GBS' for 'Global Bacth Size'?"),
        (
            "GBS", "Tokns/sec/GPU",
            "9: the table has no column of a figure that is known; did you mean "
            "'Tokens / sec / GPU' for 'Tokns/sec/GPU'?",
        ),
        (
            "GBS", "kTokens/s/GPU",
            "write 'Tokens / sec / GPU' for 'kTokens/s/GPU', and the values in that unit",
        ),
        (
            "GBS", "Model PFLOP/s/GPU",
            "write 'Model TFLOP / sec / GPU' for 'Model PFLOP/s/GPU', and the values in that unit",
        ),
        (
            "GBS", "Step time",
            "write 'Time per Global Step (s)' for 'Step time', and the values in that unit",
        ),
    ],
)  # fmt: skip
def test_a_mistyped_title_is_rejected_with_what_may_be_meant(
    batch: str, figure: str, told: str
) -> None:
    """Also that of a table's only figure, which makes it one of results."""
    found = reader.read("page.md", MISTYPED.format(batch, figure), PageContext())
    (problem,) = found.problems
    assert told in str(problem)
    assert told[told.index("'") :] in str(found.notes[0])


@pytest.mark.parametrize(
    "title",
    ["Step Time (min)", "Loss", "Optimizer", "Nodes", "Cost", "Tokens per GPU", "Tokens/step/GPU"],
)
def test_another_unit_and_another_word_are_not_mistyped(title: str) -> None:
    assert not reader.looks_like_page(MISTYPED.format("GBS", title))
    beside = MISTYPED.replace("{} |\n", "Step Time (s) | {} |\n").replace("|---|\n", "|---|---|\n")
    text = beside.replace("12,273", "7.44 | 1").format("GBS", title)
    found = reader.read("page.md", text, PageContext())
    assert 1 == len(found.results)
    assert "did you mean" not in " ".join(map(str, found.notes))


@pytest.mark.parametrize(
    "title",
    ["Step Time (ms)", "Time per Global Step (ms)", "Elapsed time per iteration (ms)",
     "Training step time (milliseconds per step)"],
)  # fmt: skip
@pytest.mark.parametrize(
    ("cell", "times_s"),
    [
        ("16,980", [16.98]),
        ("735.4", [0.7354]),
        ("735.4 (661)", [0.7354, 0.661]),
        ("0.05", [0.00005]),
        ("0", [None]),
        ("-", [None]),
    ],
)
def test_a_step_time_in_milliseconds_is_read_in_seconds(
    title: str, cell: str, times_s: list[float | None]
) -> None:
    """The only figure of its table; the text of the page is kept as it stands."""
    found = reader.read(
        "page.md", MISTYPED.format("GBS", title).replace("12,273", cell), PageContext()
    )
    assert ((), times_s) == (found.problems, [one.figures.step_time_s for one in found.results])
    assert {cell} == {one.raw[title] for one in found.results}


def test_a_time_that_is_no_number_of_milliseconds_is_rejected_on_its_line() -> None:
    text = MISTYPED.format("GBS", "Step Time (ms)").replace("12,273", "7.4 s")
    (problem,) = reader.read("page.md", text, PageContext()).problems
    assert "page.md:9: Step Time (ms): '7.4 s' is not a number" in str(problem)


def test_milliseconds_beside_seconds_are_kept_as_an_extra() -> None:
    """They say the same; a note names the column."""
    beside = MISTYPED.replace("{} |\n", "Step Time (s) | {} |\n").replace("|---|\n", "|---|---|\n")
    text = beside.replace("12,273", "7.44 | 7440").format("GBS", "Step Time (ms)")
    found = reader.read("page.md", text, PageContext())
    (one,) = found.results
    assert (7.44, {"Step Time (ms)": "7440"}) == (one.figures.step_time_s, one.extras)
    assert "no field for the columns 'Step Time (ms)'" in str(found.notes[0])


ROW = {
    "Model": "Llama3 8B", "System": "DGX-H100", "#-GPUs": "8", "GBS": "128",
    "Sequence Length": "8192", "Time per Global Step (s)": "2.0",
}  # fmt: skip
SAID_OTHERWISE = {
    "model": "Llama3 70B", "system": "DGX-H200", "hardware": "DGX-H200", "gpu": "H200",
    "framework": "NeMo", "task": "SFT", "precision": "FP8-CS", "mfu": "0.3",
    "sequence_parallel": "1",
}  # fmt: skip


@pytest.mark.parametrize("field", columns.ALIASES)
def test_a_column_that_has_a_field_says_something_of_its_row(field: str) -> None:
    """What none takes from a cell would be in no field and among no extras."""
    base = dict(ROW)
    if field in columns.OF_SYSTEM:
        del base["System"]
    own = {columns.ALIASES[field][0]: SAID_OTHERWISE.get(field, "4")}
    assert _of_a_table(base | own) != _of_a_table(base)


@pytest.mark.parametrize(
    ("title", "field"),
    [
        ("Seq", "sequence_length"),
        ("SL", "sequence_length"),
        ("Tensor Parallel Size", "tensor_parallel"),
        ("TP size", "tensor_parallel"),
        ("tensor_model_parallel_size", "tensor_parallel"),
        ("Pipeline Parallel", "pipeline_parallel"),
        ("Pipeline Parallelism", "pipeline_parallel"),
        ("Context-Parallel Degree", "context_parallel"),
        ("Expert parallel", "expert_parallel"),
        ("Expert tensor parallel size", "expert_tensor_parallel"),
        ("Virtual Pipeline", "virtual_pipeline"),
        ("Virtual Pipeline Parallel Size", "virtual_pipeline"),
    ],
)
def test_a_size_is_known_by_its_short_title_and_in_full(title: str, field: str) -> None:
    row = {name: text for name, text in ROW.items() if columns.fields_of(name) != (field,)}
    assert _of_a_table(row | {columns.ALIASES[field][0]: "64"}) == _of_a_table(row | {title: "64"})


@pytest.mark.parametrize(
    "beside",
    [
        {"Context Parallelism": "no"},
        {"Context Parallelism": "✓"},
        {"Pipeline Parallelism": "1F1B", "PP": "2"},
        {"Virtual Pipeline": "interleaved"},
        {"Tensor Parallel": "yes", "Tensor Parallel Size": "8"},
        {"Tensor Parallel": "8", "TP": "8"},
        {"EP Size": "8", "EP": "8"},
        {"Seq": "1"},
        {"Seq": "8192"},
        {"SL": "8192"},
    ],
)
def test_a_title_that_may_mean_a_size_gives_way(beside: dict[str, str]) -> None:
    """To words below it, and to a plainer title; a note names the column."""
    title, *_ = beside
    (one,), notes = _read([ROW | beside])
    assert ({title: beside[title]}, 8192) == (one.extras, one.case.sequence_length)
    assert _of_a_table({k: v for k, v in (ROW | beside).items() if k != title}) == [said_by(one)]
    assert f"no field for the columns {title!r}; they are kept as extras" in notes


@pytest.mark.parametrize(
    ("title", "texts", "wanted"),
    [
        ("Pipeline Parallelism", "01", [None, None]),
        ("Pipeline Parallelism", "02", [None, 2]),
        ("Pipeline Parallelism", "11", [1, 1]),
        ("Pipeline Parallelism", "-2", [None, 2]),
        ("Pipeline Parallelism", ["no", "2"], [2]),
        ("PP", ["1F1B", "2"], [2]),
    ],
)
def test_a_column_of_sizes_has_one(title: str, texts: list[str], wanted: list[int | None]) -> None:
    """A 0 and a 1 are a switch, if nothing else is there; beside sizes a word is wrong."""
    found, _ = _read([ROW | {title: text} for text in texts])
    assert wanted == [one.case.pipeline_parallel for one in found]


@pytest.mark.parametrize("title", ["Seq", "SL"])
def test_the_number_of_a_row_is_no_sequence_length(title: str) -> None:
    row = {name: text for name, text in ROW.items() if name != "Sequence Length"}
    assert "Sequence Length: is missing; fill it in" in str(_of_a_table({title: "1", **row}))


def _of_a_table(row: dict[str, str]) -> object:
    """What is stored of the one row of a page, but for its texts; or why it is not read."""
    found = _page([row])
    return [said_by(one) for one in found.results] or list(map(str, found.problems))


def _read(rows: Sequence[dict[str, str]]) -> tuple[tuple[PublishedResult, ...], list[str]]:
    found = _page(rows)
    return found.results, [note.message for note in found.notes]


def _page(rows: Sequence[dict[str, str]]) -> PageRead:
    lines = (rows[0], ["---"] * len(rows[0]), *(row.values() for row in rows))
    text = "# DFM\n\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return reader.read("page.md", text, PageContext(system="dgx-b200", framework="dfm"))


def test_no_title_means_two_things() -> None:
    known = columns.ALIASES | {
        "in ms": columns.MILLISECONDS, "none": columns.EXTRAS, "a setting": columns.SETTINGS,
    }  # fmt: skip
    meant = {(titles.squeezed(one), field) for field, every in known.items() for one in every}
    assert [] == [title for title, n in Counter(title for title, _ in meant).items() if n > 1]
