"""Published pages: what each holds, by golden files typed from the pages, and what is refused."""

import cProfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfdb import catalog, fields
from perfdb.pages import columns, reader
from perfdb.pages.base import PageContext, PageRead
from perfdb.record import Case, Figures, Release

DATA = Path(__file__).parent / "data" / "pages"
SUFFIXES = {".html", ".rst", ".mdx", ".md"}
GOOD = sorted(path for path in (DATA / "good").iterdir() if path.suffix in SUFFIXES)
BAD = sorted(path for path in (DATA / "bad").iterdir() if path.suffix in SUFFIXES)
PIPES = [p for p in GOOD if p.stem.startswith(("dfm", "automodel", "nemo-2024"))]
ROOT = Path(__file__).parents[1]
OURS = ROOT / "data" / "published" / "dfm.md"

TABLE = """# NeMo 25.04

## Pre-training

### System: DGX-H100, Precision: BF16

| Model | GPUs | {} | Seq Length | {} |
|---|---|---|---|---|
| Llama3 8B | 64 | 128 | 8192 | 12,273 |
"""
RATES = TABLE.format("GBS", "Tokens/s/GPU")


def read_text(text: str, **options: str) -> PageRead:
    return reader.read("page.md", text, PageContext(**options))


def read(page: Path, **options: str) -> PageRead:
    return reader.read(page.name, page.read_text(), PageContext(**options))


def golden_of(page: Path) -> dict[str, Any]:
    return yaml.load(page.with_suffix(".yml").read_text(), yaml.CSafeLoader)


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
    shown = {next(f for f in reader.FORMATS if f.recognizes(p.read_text())) for p in GOOD}
    assert set(reader.FORMATS) == shown


@pytest.mark.parametrize("page", GOOD, ids=lambda page: page.stem)
def test_a_page_reads_as_typed_from_it(page: Path) -> None:
    """Line, case, figures and release of the rows that the golden file has; columns without a
    field, footnotes, notes and the number of rows.
    """
    golden = golden_of(page)
    wanted = list(golden_rows(golden))
    lines = {line for line, *_ in wanted}
    page_read = read(page, **golden["context"])
    results = page_read.results
    assert wanted == [(r.line, r.case, r.figures, r.release) for r in results if r.line in lines]
    assert ((), golden["results"]) == (page_read.problems, len(results))
    assert golden.get("notes", []) == [str(note) for note in page_read.notes]
    extras = {k: v for table in golden["tables"] for k, v in table.get("extras", {}).items()}
    assert extras == {one.line: one.extras for one in results if one.line in extras}
    footnotes = {note.params["text"] for one in results for note in one.notes}
    assert set(golden.get("footnotes", {}).values()) <= footnotes
    if page in PIPES:  # raw text, cell for cell, as splitting the source at its pipes gives it
        assert printed_rows(page.read_text()) == [list(one.raw.values()) for one in results]


@pytest.mark.parametrize("page", BAD, ids=lambda page: page.stem)
def test_a_row_that_cannot_be_read_is_refused_and_the_others_are_read(page: Path) -> None:
    """The messages are those next to the page: line, column, what is wrong, what to do.

    Of YAML that is none the parser's own words must do.
    """
    page_read = read(page)
    found = [f"{len(page_read.results)} read", *map(str, page_read.problems)]
    assert page.with_suffix(".txt").read_text().splitlines() == found
    assert all(problem.line for problem in page_read.problems)
    assert page.stem == "no-yaml" or all(problem.remedy for problem in page_read.problems)


def test_the_system_of_one_section_does_not_hold_for_the_next() -> None:
    """The rows of a section that names no system are refused, not given the last one."""
    page_read = read(DATA / "good" / "automodel-2025-12-16.md")
    assert [9, 10, 11, 12, 13, 14] == [result.line for result in page_read.results]
    (problem,) = page_read.problems
    assert 20 == problem.line
    assert "(6 rows refused, lines 20-25)" in problem.message


def test_the_command_line_states_what_the_page_does_not_and_nothing_else() -> None:
    """Our DFM page states its framework, release and systems; not its container and precision."""
    options = {
        "framework": "nemo", "release": "26.02", "container": "image:1",
        "system": "dgx b200", "precision": "bf16",
    }  # fmt: skip
    results = read(OURS, **options).results
    assert {Release(framework="dfm", version="main", container="image:1")} == {
        result.release for result in results
    }
    assert {"dgx-gb200", "dgx-gb300", "dgx-h100"} == {r.case.system for r in results}
    assert {("dfm", "bf16")} == {(r.case.framework, r.case.precision) for r in results}


def test_an_option_that_is_not_in_the_catalog_is_a_problem() -> None:
    """It is reported once, with the nearest names."""
    (problem,) = read(DATA / "good" / "automodel-2025-12-16.md", system="dgx-h10").problems
    assert catalog.other_systems("dgx-h10") == problem.remedy


@pytest.mark.parametrize(
    ("opening", "framework"),
    [
        ("# NeMo AutoModel Performance Summary", "automodel"),
        ("Performance Summary\nFigures of NeMo AutoModel", "automodel"),
        ("# Performance\n\nAs a part of the NeMo Framework, Megatron Bridge, …", "megatron-bridge"),
        ("---\ntitle: NeMo in numbers\n---\n# Performance", "nemo"),
        ("---\nperfdb: {framework: mine}\n---\n# NeMo DFM", "mine"),
    ],
)
def test_the_framework_is_known_from_what_opens_the_page(opening: str, framework: str) -> None:
    """Title first, then front matter, then the words above the first section."""
    text = RATES.replace("# NeMo 25.04", opening, 1)
    assert [framework] == [one.case.framework for one in read_text(text).results]


def test_a_page_that_does_not_name_the_task_is_read_as_pre_training_with_a_note() -> None:
    """The assumption is reported, not made in silence."""
    page = OURS.read_text().replace("Pre-training on", "On").replace("pre-trains", "trains")
    page_read = read_text(page)
    assert {"pretrain"} == {result.case.task for result in page_read.results}
    (note,) = page_read.notes
    assert note.message.startswith(
        "the page does not say the task; its rows count as pre-training (also on lines "
    )


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_ends_and_a_byte_order_mark_change_nothing(ending: str) -> None:
    """Pages come from every kind of machine."""
    text = OURS.read_text()
    assert read_text(text) == read_text("\ufeff" + text.replace("\n", ending))


def test_a_page_is_a_text_with_a_table_of_results_be_it_empty() -> None:
    """Glossaries, recipes and code are none."""
    assert reader.looks_like_page((DATA / "good" / "dfm-empty.md").read_text())
    assert reader.looks_like_page((DATA / "good" / "nemo-25.04.md").read_text())
    quoted = "```\n" + OURS.read_text() + "```\n"
    assert not reader.looks_like_page(quoted)
    recipe = "Size | Precision | GPUs | GBS |\n---|---|---|---|\n15b | BF16 | 16 | 64 |\n"
    assert not reader.looks_like_page(recipe)
    assert not reader.looks_like_page("")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("Model | Tokens/s/GPU", "it does not say all of what 'Tokens/s/GPU' are of; give each"),
        ("Model | GPUs | GBS | Time/iter", "no figure is known; not known: 'Time/iter'; name the"),
    ],
)
def test_a_table_that_looks_like_figures_and_is_not_read_is_named(
    header: str, message: str
) -> None:
    row = ["Llama3 8B", *["8"] * header.count("|")]
    text = f"# NeMo 25.04\n\n| {header} |\n{'|---' * len(row)}|\n| {' | '.join(row)} |\n"
    (note,) = read_text(text).notes
    assert f"page.md:3: the table is not read: {message}" in str(note)
    assert (note,) == reader.not_read("page.md", text, named=True)
    assert not reader.looks_like_page(text)


@pytest.mark.parametrize(
    ("cell", "times_s"),
    [("16,980", [16.98]), ("735.4 (661)", [0.7354, 0.661]), ("0", [None]), ("-", [None])],
)
def test_a_step_time_in_milliseconds_is_read_in_seconds(
    cell: str, times_s: list[float | None]
) -> None:
    """The only figure of its table; the text of the page is kept as printed."""
    title = "Elapsed Time per Iteration (ms)"
    found = read_text(TABLE.format("GBS", title).replace("12,273", cell))
    assert ((), times_s) == (found.problems, [one.figures.step_time_s for one in found.results])
    assert {cell} == {one.raw[title] for one in found.results}


def test_the_text_of_each_cell_is_kept_by_its_field() -> None:
    """In the unit of the field and with the digits of the page; of a pair its own part.

    Milliseconds next to seconds are an extra.
    """
    page = TABLE.format("GBS", "MFU (%) | Step Time (ms)")
    page = page.replace("12,273", "43.1 (41) | 16,980 (17,001)")
    page = page.replace("|---|\n", "|---|---|\n").replace("Seq Len", "Packed Sequence Len")
    page = page.replace(", Precision: BF16", "").replace("| Model |", "| Precision | Model |")
    page = page.replace("|---|---|---|---|", "|---|---|---|---|---|", 1)
    page = page.replace("| Llama3 8B |", "| FP8-CS (FP8-MX) | **Llama3 8B** |")
    first, second = read_text(page).results
    assert ("fp8_cs", "fp8_mx") == (first.case.precision, second.case.precision)
    assert ("43.1%", "16.980") == (first.printed["mfu"], first.printed["step_time_s"])
    assert ("41%", "17.001") == (second.printed["mfu"], second.printed["step_time_s"])
    assert ("Llama3 8B", "8192") == (first.printed["model"], first.printed["sequence_length"])
    assert "8192" == first.printed["packed_sequence_length"]

    seconds = RATES.replace("Tokens/s/GPU", "Step Time (s) | Step Time (ms)")
    seconds = seconds.replace("|---|\n", "|---|---|\n").replace("12,273", "7.44 | 7440")
    found = read_text(seconds)
    (one,) = found.results
    assert (7.44, {"Step Time (ms)": "7440"}) == (one.figures.step_time_s, one.extras)
    assert "no field for the columns 'Step Time (ms)'" in str(found.notes[0])


def test_values_in_brackets_without_precisions_are_a_variant() -> None:
    """A note names the line; the Megatron-Bridge summary of 25.09 prints such rows."""
    found = read_text(RATES.replace("12,273", "12,273 (11,000)"))
    assert [(12273, None), (11000, "bracketed")] == [
        (one.figures.tokens_per_sec_per_gpu, one.case.variant) for one in found.results
    ]
    assert "page.md:9: the page does not say what the values in brackets are of" in str(
        found.notes[0]
    )


NAMED = {
    "framework": "NeMo", "release": "25.11", "container": "nemo:25.11", "system": "DGX-H200",
    "model": "Llama3 70B", "task": "SFT", "precision": "FP8-CS", "mfu": "0.3",
    "sequence_parallel": "1", "variant": "v", "kernels": "TE",
}  # fmt: skip


def test_each_title_of_a_field_is_read() -> None:
    """A column that nothing reads would be in no field and among no extras."""
    (one,) = read_text(RATES, release="25.01").results
    for title, field in fields.by_title().items():
        own = {name: text for name, text in one.raw.items() if columns.field_of(name) != field}
        row = own | {title: NAMED.get(field, "4")}
        text = "# DFM\n\n## DGX-B200\n\n" + "".join(
            f"| {' | '.join(line)} |\n" for line in (row, ["---"] * len(row), row.values())
        )
        (found,) = read_text(text).results
        assert ({}, True) == (found.extras, bool(found.printed[field])), title


def test_no_title_means_two_things() -> None:
    """Not even without its spaces and signs."""
    titles = [*fields.by_title(), *columns.MILLISECONDS, *columns.EXTRAS]
    meant = {(columns.squeezed(one), fields.by_title().get(one)) for one in titles}
    assert len(meant) == len({title for title, _ in meant})


@pytest.mark.parametrize(
    ("heading", "why"),
    [
        ("Inference performance", "the heading names 'Inference', which is no task"),
        ("SFT and LoRA", "the heading 'SFT and LoRA' names several tasks"),
        ("Projected pre-training", "the heading is of 'Projected' figures"),
        ("NeMo 25.04 and NeMo 25.07", "leaves open which release its rows are of"),
        ("Precision: BF17", "no precision 'BF17' in the catalogue"),
    ],
)
def test_a_heading_that_leaves_open_what_rows_are_of_rejects_them(heading: str, why: str) -> None:
    """With one diagnostic for the table."""
    text = RATES.replace("| Model", f"### {heading}\n\n| Model")
    text += "| Llama3 70B | 64 | 128 | 8192 | 1,500 |\n"
    found = read_text(text, system="dgx-h100")
    assert () == found.results
    (problem,) = found.problems
    assert why in problem.message
    assert "(2 rows refused, lines 11-12)" in problem.message


@pytest.mark.parametrize(
    ("heading", "framework", "release", "container"),
    [
        ("NeMo 25.07", "nemo", "25.07", None),
        ("25.07", "nemo", "25.07", None),
        ("25.07 NeMo Container", "nemo", "25.07", "NeMo 25.07"),
        ("Megatron-Bridge v0.2.0", "megatron-bridge", "0.2.0", None),
        ("Pre-training", "nemo", "25.04", None),
    ],
)
def test_a_heading_may_state_the_release(
    heading: str, framework: str, release: str, container: str | None
) -> None:
    text = RATES.replace("## Pre-training", f"## {heading}")
    front = "---\nperfdb: {framework: nemo, release: '25.04'}\n---\n# Rates"
    text = text.replace("# NeMo 25.04", front, 1)
    (one,) = read_text(text).results
    assert Release(framework=framework, version=release, container=container) == one.release


def test_the_release_of_the_page_holds_over_the_option_and_a_note_names_it() -> None:
    found = read_text(RATES, release="25.07")
    assert "25.04" == found.results[0].release.version
    assert "the page states the release 25.04; --release is not taken" in str(found.notes[0])


@pytest.mark.parametrize(
    "line",
    ["<script>", "a <title> b", "| <textarea> | <table> |", "<!--", "</div></div>", "<details>",
     "```", ":::{tab-item} DGX-B200\n:::"],
)  # fmt: skip
def test_tags_and_fences_around_a_table_hide_none_of_its_rows(line: str) -> None:
    """A block of code has a note."""
    found = read_text(RATES.replace("| Model", f"{line}\n\n| Model"))
    assert 1 == len(found.results) or "in a block of code" in str(found.notes[0])


HEADER = """
| Model | GPUs | GBS | MBS | Sequence Length | TP | GA | Tokens / sec / GPU |
|---|---|---|---|---|---|---|---|
"""
ROW = "| {} | 8 | {} | 1 | 8192 | 1 | 2 | 13812 |\n"
DENSE = {
    "rows": lambda n: HEADER + "".join(ROW.format("Llama3 8B", 8 * at) for at in range(1, n)),
    "marked": lambda n: HEADER + "".join(ROW.format("**Llama3 8B**", 8 * at) for at in range(1, n)),
    "tables": lambda n: "".join(
        f"\nSystem: DGX-H100\n{HEADER}{ROW.format('Llama3 8B', 8 * at)}" for at in range(1, n)
    ),
}


@pytest.mark.parametrize("dense", DENSE.values(), ids=DENSE)
def test_a_dense_page_takes_calls_in_proportion_to_its_length(dense: Callable[[int], str]) -> None:
    """Of rows, of rows with markup, and of tables below one heading, each with a line above it."""

    def calls(count: int) -> int:
        text = f"# NeMo 25.04\n\nSystem: DGX-H100\n{dense(count)}"
        profile = cProfile.Profile()
        found = profile.runcall(reader.read, "page.md", text, PageContext())
        assert len(found.results) == count - 1
        return sum(entry.callcount for entry in profile.getstats())

    calls(10)
    assert calls(240) / calls(60) < 4.4
