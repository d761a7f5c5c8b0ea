"""Files that sum up runs are known by what they hold: repeats, copies, and what was before."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from sqlalchemy import URL, select

from perfdb.compare import comparison, report
from perfdb.compare.releases import known_releases, results_of
from perfdb.db.session import reading
from perfdb.db.tables import cases, releases, results
from perfdb.errors import InputError
from perfdb.export.results import table
from perfdb.ingest import LogOptions, Options, ingest
from perfdb.pages.base import PageContext
from perfdb.queries.results import representative
from tests.logs import CARD, SUMMARY, write
from tests.trees import counted, faults, rows_in_words

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"

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


FORMATS = Path(__file__).parent / "data" / "formats"
ONE = CARD.rpartition("        - metrics")[0]
"""A card with one result."""


def test_files_that_sum_up_runs_of_one_case_are_repeats(sqlite: URL, tmp_path: Path) -> None:
    """Each stands for itself; a table prints the one of median step time of them."""
    for number, seconds in enumerate((1.3, 1.25, 1.5, 1.4)):
        summary(tmp_path / "a", seconds, f"result_{number}.json")

    assert (4, 0, 0, 0) == counted(ingest([tmp_path], sqlite, SUMMED))
    assert (0, 0, 4, 0) == counted(ingest([tmp_path], sqlite, Options()))

    assert [(1.25,), (1.3,), (1.4,), (1.5,)] == rows_in_words(sqlite, TIMES)
    with reading(sqlite) as connection:
        [printed] = connection.execute(representative()).mappings().all()
        exported = table(connection)
        choices = known_releases(connection)
        [side] = comparison(*[results_of(connection, choices[0])] * 2).matched
    assert (1.3, 4) == (printed["step_time_s"], printed["num_results"])
    assert 4 == len(exported.rows)
    # d₀ = 2 and s₀ = 0.166 % with twice the deviations of four logarithms, t₈ at 99.5 %, by scipy
    told = "published, 4 results, median 1.350; ±16.6%; too noisy for repeats to tell"
    assert told == report.remark(side)
    assert (1.0, True) == (side.judgement.ratio, side.judgement.low is not None)


def test_a_copy_of_a_file_that_sums_up_is_the_same_result(sqlite: URL, tmp_path: Path) -> None:
    """With words or without."""
    ingest([summary(tmp_path / "a", 1.25)], sqlite, SUMMED)
    copy = summary(tmp_path / "b", 1.25, "again.json")

    for options in (Options(), SUMMED):
        assert (0, 0, 1, 0) == counted(ingest([copy], sqlite, options))
    assert [(1.25, False)] == rows_in_words(sqlite, HISTORY)


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


def test_other_words_revise_what_a_file_that_sums_up_states(sqlite: URL, tmp_path: Path) -> None:
    """It is of one case at a time in each release, and a note names the other release."""
    path = summary(tmp_path / "a", 1.25)
    ingest([path], sqlite, SUMMED)

    other = replace(SUMMED, context=PageContext(release="0.7.0"))
    report = ingest([path], sqlite, other)
    told = "the same content is stored for release 0.6.0: each release has its result"
    assert ((1, 0, 0, 0), [told]) == (counted(report), [it.message for it in report.notes])
    for options in (SUMMED, other, Options()):
        assert (0, 0, 1, 0) == counted(ingest([path], sqlite, options))
    unstated = replace(SUMMED, context=PageContext())
    report = ingest([path], sqlite, unstated)
    assert ["pass --release 0.6.0 with them"] == [it.remedy for it in report.rejected]
    larger = replace(other, logs=LogOptions((*SUMMED.logs.settings, "num_gpus=16")))
    assert (0, 1, 0, 0) == counted(ingest([path], sqlite, larger))

    question = select(releases.c.version, cases.c.num_gpus, results.c.revision)
    joined = question.join(cases, results.c.case_id == cases.c.id)
    in_force = joined.join(releases, results.c.release_id == releases.c.id)
    in_force = in_force.where(~results.c.superseded).order_by(results.c.id)
    assert [("0.6.0", 8, 1), ("0.7.0", 16, 2)] == rows_in_words(sqlite, in_force)
    with reading(sqlite) as connection:
        assert {"0.6.0", "0.7.0"} == {it.version for it in known_releases(connection)}
    assert [] == faults(sqlite)


def test_a_file_that_sums_up_and_is_rewritten_states_anew(sqlite: URL, tmp_path: Path) -> None:
    """What it stated is withdrawn; put back, it is stated again."""
    path = summary(tmp_path / "a", 1.25)
    ingest([path], sqlite, SUMMED)
    summary(tmp_path / "a", 1.5)

    report = ingest([path], sqlite, SUMMED)

    assert ((1, 0, 0, 0), 1) == (counted(report), report.withdrawn)
    assert [(1.25, True), (1.5, False)] == rows_in_words(sqlite, HISTORY)
    summary(tmp_path / "a", 1.25)
    report = ingest([path], sqlite, SUMMED)
    assert ((0, 1, 0, 0), 1, [(1.25,)]) == (
        counted(report), report.withdrawn, rows_in_words(sqlite, TIMES),
    )  # fmt: skip
    assert [] == faults(sqlite)


def test_a_file_that_states_two_results_of_a_case_has_both(sqlite: URL, tmp_path: Path) -> None:
    path = write(tmp_path / "a", CARD, "card.yaml")
    for expected in ((2, 0, 0, 0), (0, 0, 2, 0)):
        report = ingest([path], sqlite, Options())
        assert (expected, []) == (counted(report), list(report.rejected))
    assert [(5.81429,), (5.88942,)] == rows_in_words(sqlite, TIMES)


ITEMS = """\
title: qwen3_30b_a3b
verification_environment: {base_container: nvcr.io/nvidia/nemo:26.06, bridge_commit: aabb29d0}
items:
  pretrain_performance:
    GB300:
      {num_gpus: 8, command: --seq_length 4096 --global_batch_size 512,
       metrics: {last_10_steps_step_time_ms_avg: 5889.42}}
    H100:
      {num_gpus: 16, command: --seq_length 4096,
       metrics: {last_10_steps_step_time_ms_avg: 5814.29}}
    GB200:
      {num_gpus: 8, command: --seq_length 4096,
       metrics: {last_10_steps_step_time_ms_avg: 5700.5}}
"""
"""A verification card of three results, of which one states its global batch size."""


def test_set_addresses_one_result_of_a_file(sqlite: URL, tmp_path: Path) -> None:
    """By its name or its line; results differ, so that one value for all would be wrong."""
    path = write(tmp_path / "a", ITEMS, "card.yaml")
    question = select(results.c.source_line, cases.c.global_batch_size).order_by(
        results.c.source_line
    )
    sizes = question.join(cases, results.c.case_id == cases.c.id).where(~results.c.superseded)

    report = ingest([path], sqlite, Options())

    [told] = map(str, report.unattributed)
    assert f"{path}:10–13: each of 2 results names no global_batch_size; pass " in told
    assert "--set ITEM:global_batch_size=…, where ITEM is pretrain_performance.H100 or " in told
    assert told.endswith("results of the file differ in system, num_gpus, global_batch_size")

    by_name = Options(logs=LogOptions(("pretrain_performance.H100:global_batch_size=32",)))
    report = ingest([path], sqlite, by_name)
    assert ((1, 0, 1, 0), 1) == (counted(report), len(report.nameless))
    by_line = Options(logs=LogOptions(("13:global_batch_size=64",)))
    assert (1, 0, 2, 0) == counted(ingest([path], sqlite, by_line))
    assert [(7, 512), (10, 32), (13, 64)] == rows_in_words(sqlite, sizes)

    unknown = Options(logs=LogOptions(("12:global_batch_size=64",)))
    [problem] = ingest([path], sqlite, unknown).rejected
    assert f"--set 12: {path} has no result of this name or line" in str(problem)
    other = write(tmp_path / "a", ITEMS.replace("5700", "5800"), "other.yaml")
    with pytest.raises(InputError, match="names results of one file, and 2 files are read"):
        ingest([path, other], sqlite, by_line)


def test_results_of_a_file_that_share_a_cause_share_a_message(sqlite: URL, tmp_path: Path) -> None:
    path = write(tmp_path / "a", CARD, "card.yaml")

    report = ingest([path], sqlite, Options(logs=LogOptions(("num_gpus=16",))))

    told = "says num_gpus 8, --set says 16 (and 1 more like it)"
    assert [told] == [note.message for note in report.notes]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the project")
def test_the_items_of_a_card_that_lack_the_same_share_a_message(
    sqlite: URL, tmp_path: Path
) -> None:
    """A real card with 14 step times that are none, and a commit for most items."""
    text = (CORPUS / "mbridge_card_qwen3-30b-a3b.yaml").read_text()
    text, count = re.subn(r"(step_time_ms_avg): \S+", r"\1: none", text)
    path = write(tmp_path / "a", text, "card.yaml")

    report = ingest([path], sqlite, Options(PageContext(release="1.0")))

    told = sorted(note.message for note in report.notes)
    assert 14 == count
    assert 2 == len(told)
    assert "'none' is no time (and 13 more like it)" == told[0]
