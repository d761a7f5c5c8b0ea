"""A README of NVIDIA's benchmarks, and minimal pages with the shapes of its siblings."""

import re
from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb import ingest
from perfdb.db.tables import cases, results
from perfdb.ingest.options import LogOptions, Options
from perfdb.pages import reader
from perfdb.pages.base import PageContext, PageRead
from perfdb.record import PartialCase
from perfdb.verify.reread import published
from tests.trees import counted, read_at, rows_of, writing

README = Path(__file__).parents[2] / "shared/corpus/pages/dgxc-llama3.1-70b-2024-11.md"
needs_corpus = pytest.mark.skipif(not README.is_file(), reason="no corpus next to the project")
LAYOUT = ("tensor_parallel", "pipeline_parallel", "context_parallel", "virtual_pipeline",
          "micro_batch_size", "gradient_accumulation")  # fmt: skip

FINETUNING = """\
| Llama3 8b Finetuning LORA FP8 | 8x H100 GPUs | 16x H100 GPUs | 32x H100 GPUs | |
|---|---|---|---|---|
| GBS | 32 | 64 | n/a | |
| PP | 1 | 2 | n/a | |
| VP | n/a | 4 |
| Layers | 32 | 30 | n/a | |
| Training step time (seconds per step) | 2.5 | 2.6 | n/a | | |
| Throughput in tokens per second | 52428 | 100825 | n/a |
"""
REPEATED = """\
| Model | Sequence Length | #-GPUs | GBS | Tokens / sec / GPU | Precision |
|---|---|---|---|---|---|
| llama3-70b | 2048 | 64 | 2048 | 410 | bf16 |
| llama3-70b | 2048 | 64 | 2048 | 875 | bf16 |
| llama3-70b | 2048 | 64 | 2048 | 880 | bf16 |
"""


def read(text: str, case: PartialCase | None = None, **options: str) -> PageRead:
    return reader.read("page.md", text, PageContext(**options, case=case))


@needs_corpus
def test_every_cell_of_the_readme_is_read() -> None:
    """Corner, titles and figures, against the file split at its pipes: 12 results, 48 figures."""
    found = read(README.read_text(), PartialCase(sequence_length=8192), framework="nemo")
    rows = [[cell.strip() for cell in line.strip("| \n").split("|")]
            for line in README.read_text().splitlines() if line.startswith("| ")]  # fmt: skip
    expected = []
    for head, *figures in (rows[0:5], rows[5:10]):
        sizes = [int(size) for size in re.findall(r"=([0-9]+)", head[0])]
        for at, title in enumerate(head[1:], 1):
            gpus, batch = re.findall(r"([0-9]+)x H100 GPUs \(GBS=([0-9]+)\)", title)[0]
            step, rate, share, days = (row[at] for row in figures)
            expected.append(
                ("llama3-70b", "24.09", head[0].split()[4].lower(), "dgx-h100", int(gpus),
                 int(batch), *sizes, float(step), float(rate), share, days)
            )  # fmt: skip
    assert 12 == len(expected)
    assert expected == [
        (one.case.model, one.release.version, one.case.precision, one.case.system,
         one.case.num_gpus, one.case.global_batch_size,
         *(getattr(one.case, name) for name in LAYOUT),
         one.figures.step_time_s, one.figures.tokens_per_sec,
         f"{100 * (one.figures.mfu or 0):.2f}%", one.extras["Time to train 1T tokens in days"])
        for one in found.results
    ]  # fmt: skip
    assert () == found.problems
    assert [row[0] for row in rows[1:5]] == list(found.results[0].raw)[1:5]


@needs_corpus
def test_what_the_readme_lacks_is_one_message() -> None:
    """Of twelve results."""
    (problem,) = read(README.read_text(), framework="nemo").problems
    assert (
        "page.md:3: Sequence Length: is missing (12 rows refused, lines 3, 10); "
        "fill it in, or pass --set sequence_length=…"
    ) == str(problem)


@needs_corpus
def test_set_states_what_a_page_leaves_open(sqlite: URL) -> None:
    """As for logs; the stored rows are those of the page's bytes, and a second time unchanged."""
    settings = ("framework=nemo", "sequence_length=8192", "global_batch_size=1", "task=sft",
                "model=llama3-8b", "fsdp_enabled=true")  # fmt: skip
    options = Options(logs=LogOptions(settings))
    report = ingest.ingest([README], sqlite, options)
    assert (12, 0, 0, 0) == counted(report)
    assert [
        "--set fsdp_enabled is of logs only; it is not taken",
        "the page states global_batch_size; --set global_batch_size is not taken",
        "the page states model; --set model is not taken",
    ] == [it.message for it in report.notes]
    assert (0, 0, 12, 0) == counted(ingest.ingest([README], sqlite, options))
    stored = select(cases.c.sequence_length, cases.c.task, cases.c.global_batch_size)
    assert {(8192, "sft", 64 * 2**at) for at in range(1, 7)} == set(rows_of(sqlite, stored))
    with writing(sqlite) as connection:
        assert [] == list(published(connection, lambda items: items))
        connection.execute(results.update().where(results.c.mfu == 0.541).values(mfu=0.1))
        (fault,) = published(connection, lambda items: items)
    assert "mfu is 0.1, and 0.541 by the bytes" in fault.message


def test_rows_of_sizes_hold_for_each_scale() -> None:
    """Of a sibling: `n/a`, empty cells behind the last scale, and the task in the corner.

    The scale that has no value at all is no result.
    """
    found = read(FINETUNING, PartialCase(sequence_length=4096), framework="nemo")
    assert ((), ()) == (found.problems, found.notes)
    assert [
        ("llama3-8b", "lora", "fp8", 8, 32, 1, None, 2.5, 52428.0, {"Layers": "32"}),
        ("llama3-8b", "lora", "fp8", 16, 64, 2, 4, 2.6, 100825.0, {"Layers": "30"}),
    ] == [
        (one.case.model, one.case.task, one.case.precision, one.case.num_gpus,
         one.case.global_batch_size, one.case.pipeline_parallel, one.case.virtual_pipeline,
         one.figures.step_time_s, one.figures.tokens_per_sec, one.extras)
        for one in found.results
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("FP8 |", "FP8 (PP=2) |", "the columns 'PP', 'PP (2)' mean the same (2 rows refused"),
        ("FP8 |", "FP8 BF16 |", "Model: is missing (2 rows refused, line 7); name the model"),
        ("8x H100 GPUs", "8x H100 GPUs (GBS=32)", "the columns 'GBS', 'GBS (2)' mean the same"),
    ],
)
def test_a_corner_that_contradicts_its_rows_is_refused(old: str, new: str, message: str) -> None:
    text = FINETUNING.replace(old, new, 1)
    found = read(text, PartialCase(sequence_length=4096), framework="nemo")
    assert () == found.results
    assert message in " ".join(map(str, found.problems))


def test_a_value_without_a_scale_is_named() -> None:
    found = read(FINETUNING.replace("2.6 |", "2.6 | 2.7 | 2.8 |"), framework="nemo")
    (note,) = found.notes
    message = "page.md:7: the table is not read: a row has more cells than the header"
    assert ((), ()) == (found.results, found.problems)
    assert f"{message}; give each cell a title" == str(note)


def test_rows_that_repeat_a_case_with_other_figures_are_one_message(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(REPEATED)
    options = Options(PageContext(framework="nemo", system="dgx-h100"))
    rows, problems = read_at(page, options)
    assert 1 == len(rows)
    assert ["the same case as line 3, with other figures (2 rows refused, lines 4-5)"] == [
        it.message for it in problems
    ]
