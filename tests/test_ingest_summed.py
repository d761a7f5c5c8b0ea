"""Files that sum up runs are known by what they hold: repeats, copies, and what was before."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from sqlalchemy import URL, select

from perfdb import measure
from perfdb.compare import comparison, report
from perfdb.compare.read import known_releases, results_of
from perfdb.db.rows import ResultRow
from perfdb.db.session import reading
from perfdb.db.tables import cases, releases, results
from perfdb.export.results import table
from perfdb.formats import ParsedLog
from perfdb.ingest import LogOptions, Options, ingest
from perfdb.ingest import logs as log_reader
from perfdb.jsonfile import content_hash
from perfdb.pages.base import PageContext
from perfdb.queries.results import representative
from perfdb.verify import verify
from tests.logs import CARD, SUMMARY, write
from tests.snapshots import snapshot
from tests.trees import counted, rows_in_words

SUMMED = Options(
    PageContext(release="0.6.0"),
    logs=LogOptions(("model=llama3-8b", "system=dgx-h100", "task=pretrain")),
)
TIMES = select(results.c.step_time_s).where(~results.c.superseded).order_by(results.c.step_time_s)
HISTORY = select(results.c.step_time_s, results.c.superseded).order_by(results.c.id)


def summary(folder: Path, seconds: float, name: str = "benchmark.json") -> Path:
    """A file of one case that sums up, with another step time."""
    return write(folder, SUMMARY.replace("1.25", str(seconds)), name)


def test_a_window_is_not_taken_for_a_file_without_steps(sqlite: URL, tmp_path: Path) -> None:
    given = replace(SUMMED, logs=replace(SUMMED.logs, window="last_n(3)"))
    report = ingest([summary(tmp_path / "a", 1.25)], sqlite, given)
    told = "--window last_n(3) is not taken: its figures are as they are printed"
    assert (1, [told]) == (report.new, [note.message for note in report.notes])


OF_THE_SUMMARY = """\
---
perfdb: {framework: automodel, release: 0.6.0}
---
## Pre-training

### System: DGX-H100

| Model | #-GPUs | GBS | LBS | Sequence Length | Tokens / sec / GPU |
|---|---|---|---|---|---|
| LLAMA3-8B | 8 | 64 | 2 | 4096 | 30000 |
"""


FORMATS = Path(__file__).parent / "data" / "formats"
OF_MLPERF = Options(
    PageContext(release="25.04"),
    logs=LogOptions(("framework=nemo", "model=llama3-8b", "num_gpus=8", "sequence_length=8192")),
)


ONE = CARD.rpartition("        - metrics")[0]
"""A card with one result."""


def faults(url: URL) -> list[str]:
    """All that is wrong with a store."""
    return [it.message for one in verify(url, lambda *_: lambda: None) for it in one.faults]


def test_files_that_sum_up_runs_of_one_case_are_repeats(store: URL, tmp_path: Path) -> None:
    """Each stands for itself; a table prints the one of median step time of them."""
    for number, seconds in enumerate((1.3, 1.25, 1.5, 1.4)):
        summary(tmp_path / "a", seconds, f"result_{number}.json")

    assert (4, 0, 0, 0) == counted(ingest([tmp_path], store, SUMMED))
    assert (0, 0, 4, 0) == counted(ingest([tmp_path], store, Options()))

    assert [(1.25,), (1.3,), (1.4,), (1.5,)] == rows_in_words(store, TIMES)
    with reading(store) as connection:
        [printed] = connection.execute(representative()).mappings().all()
        exported = table(connection)
        choices = known_releases(connection)
        [side] = comparison(*[results_of(connection, choices[0])] * 2).matched
    assert (1.3, 4) == (printed["step_time_s"], printed["num_results"])
    assert 4 == len(exported.rows)
    assert "published, 4 results, median 1.350; too noisy to tell: ±14.4 %" == report.remark(side)
    assert (1.0, True) == (side.judgement.ratio, side.judgement.low is not None)


def test_a_row_of_a_page_without_a_step_time_is_not_printed_before_a_file_that_has_one(
    store: URL, tmp_path: Path
) -> None:
    """By whatever database: of the two of them the first by step time is printed."""
    write(tmp_path / "a", OF_THE_SUMMARY, "page.md")
    summary(tmp_path / "a", 1.25)

    assert (2, 0, 0, 0) == counted(ingest([tmp_path], store, SUMMED))

    with reading(store) as connection:
        [printed] = connection.execute(representative()).mappings().all()
    assert (1.25, 2) == (printed["step_time_s"], printed["num_results"])


def test_a_copy_of_a_file_that_sums_up_is_the_same_result(store: URL, tmp_path: Path) -> None:
    """With words or without."""
    ingest([summary(tmp_path / "a", 1.25)], store, SUMMED)
    copy = summary(tmp_path / "b", 1.25, "again.json")

    for options in (Options(), SUMMED):
        assert (0, 0, 1, 0) == counted(ingest([copy], store, options))
    assert [(1.25, False)] == rows_in_words(store, HISTORY)


MLPERF = (FORMATS / "mlperf/good/two_blocks.txt").read_text()
AVERAGE = '{"lm loss": {"values": [1.5, 2.5]}, "iteration_timing_avg": 0.125}'


@pytest.mark.parametrize(
    ("text", "other", "suffix"),
    [
        (SUMMARY, json.dumps(json.loads(SUMMARY), indent=2), "json"),
        (AVERAGE, json.dumps(json.loads(AVERAGE), indent=2), "golden.json"),
        (ONE, "# re-indented\n" + yaml.safe_dump(yaml.safe_load(ONE), sort_keys=False), "yaml"),
        (MLPERF, "".join(f"0: {line}\n" for line in MLPERF.splitlines()), "txt"),
    ],
    ids=["summary", "golden", "card", "mlperf"],
)
def test_another_rendering_of_a_file_that_sums_up_is_the_same_result(
    sqlite: URL, tmp_path: Path, text: str, other: str, suffix: str
) -> None:
    """Re-indented, or with the labels of ranks; but a file with another figure is a repeat."""
    said = ("model=llama3-8b", "system=dgx-h100", "num_gpus=8", "sequence_length=4096",
            "global_batch_size=512", "task=pretrain", "framework=nemo")  # fmt: skip
    given = Options(PageContext(release="1"), logs=LogOptions(said))
    repeat = re.sub(r"1\.25|0\.125|5889\.42|1\.5\b", "1.75", text)
    files = {"a": text, "b": other, "c": repeat}
    paths = [write(tmp_path, one, f"{name}.{suffix}") for name, one in files.items()]

    assert (1, 0, 1, 0) == counted(ingest(paths[:2], sqlite, given))
    assert (1, 0, 0, 0) == counted(ingest(paths[2:], sqlite, given))


def test_other_words_revise_what_a_file_that_sums_up_states(store: URL, tmp_path: Path) -> None:
    """It is of one release and one case at a time."""
    path = summary(tmp_path / "a", 1.25)
    ingest([path], store, SUMMED)

    other = replace(SUMMED, context=PageContext(release="0.7.0"))
    assert (0, 1, 0, 0) == counted(ingest([path], store, other))
    larger = replace(other, logs=LogOptions((*SUMMED.logs.settings, "num_gpus=16")))
    assert (0, 1, 0, 0) == counted(ingest([path], store, larger))

    question = select(releases.c.version, cases.c.num_gpus, results.c.revision)
    joined = question.join(cases, results.c.case_id == cases.c.id)
    in_force = joined.join(releases, results.c.release_id == releases.c.id)
    assert [("0.7.0", 16, 3)] == rows_in_words(store, in_force.where(~results.c.superseded))
    assert [] == faults(store)


def test_a_file_that_sums_up_and_is_rewritten_states_anew(store: URL, tmp_path: Path) -> None:
    """What it stated is withdrawn; put back, it is stated again."""
    path = summary(tmp_path / "a", 1.25)
    ingest([path], store, SUMMED)
    summary(tmp_path / "a", 1.5)

    report = ingest([path], store, SUMMED)

    assert ((1, 0, 0, 0), 1) == (counted(report), report.withdrawn)
    assert [(1.25, True), (1.5, False)] == rows_in_words(store, HISTORY)
    summary(tmp_path / "a", 1.25)
    report = ingest([path], store, SUMMED)
    assert ((0, 1, 0, 0), 1, [(1.25,)]) == (
        counted(report), report.withdrawn, rows_in_words(store, TIMES),
    )  # fmt: skip
    assert [] == faults(store)


def test_a_file_that_states_two_results_of_a_case_has_both(store: URL, tmp_path: Path) -> None:
    path = write(tmp_path / "a", CARD, "card.yaml")
    for expected in ((2, 0, 0, 0), (0, 0, 2, 0)):
        report = ingest([path], store, Options())
        assert (expected, []) == (counted(report), list(report.rejected))
    assert [(5.81429,), (5.88942,)] == rows_in_words(store, TIMES)


def test_the_peak_memory_that_a_file_states_is_that_of_its_result(
    sqlite: URL, tmp_path: Path
) -> None:
    card = ONE.replace("5889.42", "5889.42, peak_allocated_memory_gib: 61.0")
    path = write(tmp_path / "a", card, "card.yaml")

    for expected in ((1, 0, 0, 0), (0, 0, 1, 0)):
        assert expected == counted(ingest([path], sqlite, Options()))

    assert [(61 * 2**30,)] == rows_in_words(sqlite, select(results.c.peak_memory_bytes))


OF_THE_CARD = """\
---
perfdb: {framework: megatron-bridge, release: aabb29d0, container: nvcr.io/nvidia/nemo:26.06}
---
## Pre-training

### System: DGX-GB300, Precision: FP8-MX

| Model | #-GPUs | GBS | Sequence Length | Step Time (s) |
|---|---|---|---|---|
| Qwen3-30B-A3B | 8 | 512 | 4096 | 5.9 |
"""


@pytest.fixture
def earlier(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Until it is undone: version 3 of the parser, which knew a result by its case and release."""
    printed = measure.of_summary

    def by_case(log: ParsedLog, of: measure.LogRun) -> ResultRow:
        row = printed(log, of)
        said = {"case": row.case.key, "release": row.release.key, "origin": row.origin}
        figures = {"figures": log.emitted.model_dump(mode="json"), "window": log.window}
        return replace(row, key=content_hash(said), content_hash=content_hash(figures))

    monkeypatch.setattr(measure, "of_summary", by_case)
    monkeypatch.setattr(log_reader, "LOG_PARSER_VERSION", 3)
    return monkeypatch


def test_without_the_words_of_before_a_file_that_sums_up_stays_as_it_is(
    store: URL, tmp_path: Path, earlier: pytest.MonkeyPatch
) -> None:
    """Of its bytes more was said then than is now."""
    said, silent = write(tmp_path / "a", ONE, "card.yaml"), summary(tmp_path / "b", 1.25)
    ingest([said], store, Options(PageContext(release="9"), logs=LogOptions(("release=9",))))
    ingest([silent], store, SUMMED)
    earlier.undo()
    before = snapshot(store)["results"]

    assert (0, 0, 2, 0) == counted(ingest([said, silent], store, Options()))

    assert before == snapshot(store)["results"]


@pytest.mark.parametrize(
    ("name", "outcome", "why"),
    [
        ("aborted", "failed", "run_stop: status is 'aborted'"),
        ("cut_off", "incomplete", "no 'run_stop' event"),
    ],
)
def test_figures_of_a_run_that_did_not_finish_are_withheld_with_the_reason(
    store: URL, tmp_path: Path, name: str, outcome: str, why: str
) -> None:
    """A block of training was timed before MLPerf's run ended, at 1.5 s a step."""
    path = write(tmp_path / "a", (FORMATS / f"mlperf/bad/{name}.txt").read_text(), "result_0.txt")

    assert (1, 0, 0, 0) == counted(ingest([path], store, OF_MLPERF))

    question = select(results.c.outcome, results.c.withheld, results.c.step_time_s)
    assert [(outcome, why, None)] == rows_in_words(store, question)
    assert [] == faults(store)
