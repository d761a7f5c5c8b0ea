"""What a page's front matter states of its original and of all its rows, from text to store."""

from datetime import date
from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb import ingest
from perfdb.db.tables import results, sources
from perfdb.ingest.options import Options, checked
from perfdb.pages import reader
from perfdb.pages.base import PageContext, PageRead
from perfdb.record import Method, Original
from perfdb.verify.reread import published
from tests.trees import NEMO, PAGE, counted, rows_of, writing

STATED = (
    "source_url: https://example.org/performance.html?v=1#h100",
    "published_on: 2025-10-02",
    "steps: 40",
    "window: window(11,50)",
    "flops_convention: nemo-25.04",
)
ORIGINAL = Original(
    source_url="https://example.org/performance.html?v=1#h100", published_on=date(2025, 10, 2)
)
METHOD = Method(num_steps=40, window="window(11,50)", flops_convention="nemo-25.04")

STORED = (
    select(*(results.c[name] for name in (*Method.model_fields, "tokens_per_sec_per_gpu")))
    .where(~results.c.superseded)
    .order_by(results.c.source_line)
)
ORIGINALS = (
    select(sources.c.sha256, sources.c.source_url, sources.c.published_on)
    .where(sources.c.source_url.is_not(None) | sources.c.published_on.is_not(None))
    .order_by(sources.c.published_on, sources.c.id)
)


def stating(*lines: str) -> str:
    """A page of two rows with these lines in the mapping of its front matter."""
    said = "".join(f"  {line}\n" for line in lines)
    return f"---\nperfdb:\n  framework: nemo\n{said}---\n{PAGE}"


def read_page(text: str) -> PageRead:
    return reader.read("a.md", text, PageContext())


def test_what_a_page_states_holds_for_each_of_its_rows() -> None:
    """And is nothing where it states nothing."""
    stated = read_page(stating(*STATED))
    assert (ORIGINAL, [METHOD, METHOD]) == (stated.original, [one.method for one in stated.results])
    silent = read_page(stating())
    assert (Original(), [Method(), Method()]) == (
        silent.original,
        [one.method for one in silent.results],
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("source_url: example.org", "not the address of a page, found 'example.org'; write it in "
         "full: https://example.org/performance.html"),
        ("source_url: 'https://a b'", "not the address of a page, found 'https://a b'; "
         "write it in full: https://example.org/performance.html"),
        ("published_on: 2025", "Input should be a valid date, found 2025; "
         "write a day, without quotes: 2025-10-02"),
        ("steps: 0", "Input should be greater than 0, found 0; "
         "write how many steps the figures are taken over: 40"),
        ("window: window(50,11)", "no such window, found 'window(50,11)'; "
         "known: last, last_n(N), window(FIRST,LAST), skip_warmup(N)"),
        ("flops_convention: nemo", "no such FLOPs convention, found 'nemo'; "
         "known: causal, full, nemo-25.04, nemotron4-recipe, megatron-lm, "
         "megatron-bridge-26.04, megatron-bridge, automodel, automodel-25.10"),
    ],
)  # fmt: skip
def test_a_field_that_is_wrong_is_told_with_its_line_and_what_to_do(said: str, told: str) -> None:
    """It is on line 4; nothing is read of the page."""
    found = read_page(stating(said))
    name = said.partition(":")[0]
    assert [f"a.md:4: perfdb.{name}: {told}"] == list(map(str, found.problems))
    assert () == found.results


def test_steps_that_the_window_never_holds_are_wrong() -> None:
    """The last step of a run of 50 is one step, not 50."""
    [problem] = read_page(stating("window: last", "steps: 50")).problems
    assert (
        "a.md:5: perfdb.steps: last never holds so many steps, found 50; "
        "write how many steps the figures are taken over: 40"
    ) == str(problem)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page that states everything, and beside it one that states nothing of itself."""
    path = tmp_path / "pages" / "a.md"
    path.parent.mkdir()
    path.write_text(stating(*STATED))
    (path.parent / "b.md").write_text(PAGE.replace("| 8192 |", "| 4096 |"))
    return path


def test_what_a_page_states_is_stored_once_with_its_rows_and_its_bytes(
    store: URL, page: Path
) -> None:
    """A page that states nothing has no row; reading both again changes nothing."""
    assert (4, 0, 0, 0) == counted(ingest.ingest([page.parent], store, NEMO))
    assert (0, 0, 4, 0) == counted(ingest.ingest([page.parent], store, NEMO))
    said = (40, "window(11,50)", "nemo-25.04")
    found = rows_of(store, STORED)
    assert [(*said, 12273.0), (*said, 1563.0)] == [row for row in found if row[0]]
    assert [(None, None, None)] * 2 == [row[:3] for row in found if not row[0]]
    [(_, url, day)] = rows_of(store, ORIGINALS)
    assert (ORIGINAL.source_url, ORIGINAL.published_on) == (url, day)


def test_verify_names_a_window_that_the_page_does_not_state(sqlite: URL, page: Path) -> None:
    ingest.ingest([page], sqlite, NEMO)
    with writing(sqlite) as connection:
        assert [] == list(published(connection, lambda items: items))
        connection.execute(results.update().values(window="last"))
        found = [one.message for one in published(connection, lambda items: items)]
    assert 2 == len(found)
    assert all("window is last, and window(11,50) by the bytes" in one for one in found)


@pytest.mark.parametrize(
    ("said", "known"),
    [("NeMo", "nemo"), ("NVIDIA NeMo", "nemo"), ("NeMo Framework", "nemo"),
     ("NeMo AutoModel", "automodel"), ("Megatron-LM", "megatron-lm"), ("Acme", "Acme")],
)  # fmt: skip
def test_a_framework_is_known_by_its_usual_names(said: str, known: str) -> None:
    """In the front matter, and as --framework says it; one not known keeps its name."""
    (stated, *_) = read_page(stating().replace("framework: nemo", f"framework: {said}")).results
    given = checked(Options(PageContext(framework=said)))
    assert (known, known) == (stated.release.framework, stated.case.framework)
    assert known == given.context.framework


PEAKS = """\
# NeMo 25.04

{prose}

| Model | System | Precision | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU | MFU |
|---|---|---|---|---|---|---|---|
| Llama3 8B | DGX-GB200 | BF16 | 8 | 128 | 8192 | 20000 | 42% |
| Llama3 8B | DGX-GB200 | FP8-CS | 8 | 128 | 8192 | 30000 | |
| Llama3 8B | DGX-H100 | FP8-CS | 8 | 128 | 8192 | 20000 | 52% |
"""
SENTENCE = (
    "The peak theoretical throughput for H100 FP8 is 1979 TFLOPS and for GB200 BF16 is 2.45 PFLOPS."
)
OTHER_GPU = "- MFU calculated using peak TFLOPs for the system (989 for BF16 H100)."
IN_FRONT = "---\nperfdb:\n  peak_tflops: {GB200 NVL72: {bf16: 2450, fp8: 4900}}\n---\n"


@pytest.mark.parametrize(
    ("text", "option", "peaks"),
    [
        (PEAKS.format(prose=SENTENCE), None, [2450, None, 1979]),
        (PEAKS.format(prose=OTHER_GPU), None, [None, None, None]),
        (IN_FRONT + PEAKS.format(prose=SENTENCE.replace("2.45 PFLOPS", "49 TFLOPS")), None,
         [2450, None, 1979]),
        (PEAKS.format(prose=SENTENCE), 1000.0, [2450, None, 1979]),
        (PEAKS.format(prose=""), 2450.0, [2450, None, 2450]),
    ],
)  # fmt: skip
def test_the_peak_that_a_page_states_for_its_mfu_is_kept(
    text: str, option: float | None, peaks: list[float | None]
) -> None:
    """The sentences are those of NVIDIA's Nemotron-4 recipe and of AutoModel's summary."""
    read = reader.read("page.md", text, PageContext(peak_tflops=option))
    assert peaks == [one.peak_tflops for one in read.results]


def test_a_peak_of_no_system_is_refused() -> None:
    text = IN_FRONT.replace("GB200 NVL72", "GB201") + PEAKS.format(prose="")
    read = reader.read("page.md", text, PageContext())
    assert "perfdb.peak_tflops: no system 'GB201' in the catalogue" in str(read.problems[0])
    assert "{dgx-gb200: {bf16: 2450, fp8: 4900}}" in str(read.problems[0])


def test_a_release_that_no_row_has_is_refused_with_its_line() -> None:
    """Somebody copied the page of 25.04 and left its heading: 25.06 would count as 25.04."""
    page = stating("release: '25.06'").replace("# ", "# NeMo Framework 25.04: ", 1)
    assert read_page(page).results == ()
    (problem,) = read_page(page).problems
    assert (problem.line, problem.field) == (4, "perfdb.release")
    assert "the front matter states 25.06, the title in line 6 25.04" in problem.message
    mended = read_page(page.replace("25.06", "25.04.00"))
    assert (len(mended.results), mended.problems) == (2, ())
