"""The same log again: a copy elsewhere, a log that grew, a release in another spelling."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb.db.tables import cases, releases, results, runs, sources
from perfdb.ingest import LogOptions, Options, ingest, preview
from perfdb.pages.base import PageContext
from tests.logs import GIVEN, SET, nemo, write
from tests.snapshots import snapshot
from tests.trees import counted, rows_of

LLMB = """\
job_info: {{job_id: 1}}
workload_info: {{framework: nemo2, fw_version: {version}, workload_type: pretrain}}
model_info: {{model_name: llama3, model_size: 8b, dtype: bf16, scale: 8, gpu_type: h100}}
"""
LENGTH = LogOptions(("sequence_length=8192",))
RICH = replace(GIVEN, logs=LogOptions((*SET, "tensor_parallel=2", "micro_batch_size=4")))

IN_FORCE = (
    select(
        releases.c.version, cases.c.num_gpus, cases.c.tensor_parallel, cases.c.micro_batch_size,
        results.c.tokens_per_sec_per_gpu,
    )
    .join(releases, results.c.release_id == releases.c.id)
    .join(cases, results.c.case_id == cases.c.id)
    .where(~results.c.superseded)
)  # fmt: skip


def launched(folder: Path, version: str, text: str | None = None) -> Path:
    """A log beside what the launcher says of it."""
    write(folder, LLMB.format(version=version), "llmb-config_1.yaml")
    return write(folder, text)


def test_a_copy_with_fewer_settings_takes_none_away(store: URL, tmp_path: Path) -> None:
    original, copy = write(tmp_path / "z"), write(tmp_path / "a")
    ingest([original], store, RICH)
    before = snapshot(store)

    report = ingest([copy], store, GIVEN)

    assert ((0, 0, 1, 0), before) == (counted(report), snapshot(store))
    [note] = report.notes
    assert (str(copy), "--set says otherwise") == (note.where, note.remedy)
    assert note.message == (
        f"the same bytes as {original}; what was said there holds: "
        "micro_batch_size 4, tensor_parallel 2"
    )


def test_in_one_folder_the_alphabet_does_not_decide(sqlite: URL, tmp_path: Path) -> None:
    """The launcher's file says the precision and the release, the copies before and behind none."""
    for name in ("a", "z"):
        write(tmp_path / name)
    launched(tmp_path / "m", "25.09")
    said = ("model=llama3-8b", "system=dgx-h100", "num_gpus=8", "sequence_length=8192",
            "task=pretrain")  # fmt: skip

    report = ingest([tmp_path], sqlite, Options(logs=LogOptions(said)))

    question = IN_FORCE.with_only_columns(releases.c.version, cases.c.precision)
    assert ((1, 1, 1, 0), [("25.09", "bf16")]) == (counted(report), rows_of(sqlite, question))


def test_set_on_a_copy_changes_that_field_alone(sqlite: URL, tmp_path: Path) -> None:
    """128 × 8192 tokens ÷ 2.1 s ÷ 16 GPUs."""
    ingest([write(tmp_path / "a")], sqlite, RICH)
    said = tuple("num_gpus=16" if one == "num_gpus=8" else one for one in SET)

    report = ingest([write(tmp_path / "b")], sqlite, replace(GIVEN, logs=LogOptions(said)))

    assert (0, 1, 0, 0) == counted(report)
    rate = pytest.approx(31207.619)
    assert [("2.0", 16, 2, 4, rate)] == rows_of(sqlite, IN_FORCE)


def test_the_same_path_is_taken_at_its_last_word_however_it_is_spelled(
    sqlite: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a")
    ingest([path], sqlite, GIVEN)
    monkeypatch.chdir(tmp_path)

    report = ingest([Path("a/train.log")], sqlite, replace(GIVEN, context=PageContext(release="3")))

    assert (0, 1, 0, 0) == counted(report)
    assert ["3"] == [row[0] for row in rows_of(sqlite, IN_FORCE)]


@pytest.mark.parametrize(
    ("of_copy", "untaken"),
    [
        ("global-batch-size: 256\n  --context-parallel-size: 2", "global_batch_size 128"),
        ("global-batch-size: 128\n  --context-parallel-size: 2", "all of it"),
    ],
)
def test_copies_beside_files_that_differ_are_not_made_one_case(
    sqlite: URL, tmp_path: Path, of_copy: str, untaken: str
) -> None:
    """Golden values that were copied to another test: of what is beside them there nothing holds,
    but --set does.
    """
    values = ", ".join(f'"{step}": {2 + step % 3 / 8}' for step in range(1, 26))
    text = f'{{"iteration-time": {{"start_step": 1, "step_interval": 1, "values": {{{values}}}}}}}'
    for folder, size in (("base", "global-batch-size: 128"), ("cp2", of_copy)):
        write(tmp_path / folder, f"MODEL_ARGS:\n  --{size}\n", "model_config.yaml")
        write(tmp_path / folder, text, "golden_values_dev_dgx_h100.json")
    said = ("model=llama3-8b", "num_gpus=8", "sequence_length=4096", "task=pretrain")
    given = Options(PageContext(release="1"), logs=LogOptions(said))

    report = ingest([tmp_path], sqlite, given)

    assert (1, 0, 1, 0) == counted(report)
    question = IN_FORCE.with_only_columns(cases.c.global_batch_size, cases.c.context_parallel)
    assert [(128, None)] == rows_of(sqlite, question)
    [_, note] = report.notes
    assert note.message == (
        f"the same bytes as {tmp_path}/base/golden_values_dev_dgx_h100.json, beside which is "
        f"another file than model_config.yaml; what was said there holds: {untaken}"
    )
    insisted = replace(given, logs=LogOptions((*said, "context_parallel=2")))
    assert (0, 1, 0, 0) == counted(ingest([tmp_path / "cp2"], sqlite, insisted))
    assert [(128, 2)] == rows_of(sqlite, question)


@pytest.mark.parametrize("tail_bytes", [0, 300_000])
def test_a_log_that_grew_is_one_run(store: URL, tmp_path: Path, tail_bytes: int) -> None:
    """Read while it ran and when it was done; packed in memory, and in a file."""
    whole = nemo() + random.Random(1).randbytes(tail_bytes).hex()
    path = write(tmp_path / "a", nemo()[: len(nemo()) * 3 // 4])
    assert (1, 0, 0, 0) == counted(ingest([path], store, GIVEN))
    path.write_text(whole)

    planned, _ = preview([path], store, GIVEN)
    assert (0, 1, 0, 0) == counted(planned) == counted(ingest([path], store, GIVEN))
    assert (0, 0, 1, 0) == counted(ingest([path], store, GIVEN))

    assert [("finished",)] == rows_of(store, select(runs.c.outcome))
    question = select(results.c.outcome, results.c.superseded).order_by(results.c.id)
    assert [("incomplete", True), ("finished", False)] == rows_of(store, question)
    assert 2 == len(rows_of(store, select(sources.c.id)))


@pytest.mark.parametrize(
    ("name", "text"),
    [("train.log", nemo((5.0, *[3.0] * 19))), ("other.log", "x" + nemo((5.0, *[3.0] * 19)))],
)
def test_a_log_of_other_steps_is_another_run(
    sqlite: URL, tmp_path: Path, name: str, text: str
) -> None:
    """A job that was started again over its log, or beside it."""
    ingest([write(tmp_path / "a", nemo()[: len(nemo()) * 3 // 4])], sqlite, GIVEN)
    path = write(tmp_path / "a", text, name)
    assert (1, 0, 0, 0) == counted(ingest([path], sqlite, GIVEN))
    assert 2 == len(rows_of(sqlite, IN_FORCE))


def test_a_release_takes_the_spelling_that_the_store_has(sqlite: URL, tmp_path: Path) -> None:
    """25.09.00 is 25.09, and a note says so once; 25.09.01 is another one."""
    ingest([launched(tmp_path / "a", "25.09")], sqlite, Options(logs=LENGTH))
    paths = [
        launched(tmp_path / str(seconds), version, nemo((seconds,) * 20))
        for seconds, version in ((3.0, "25.09.00"), (4.0, "25.09.00"), (5.0, "25.09.01"))
    ]

    report = ingest(paths, sqlite, Options(logs=LENGTH))

    assert (3, 0, 0, 0) == counted(report)
    assert ["release 25.09.00 is stored as 25.09, which is the same"] == [
        note.message for note in report.notes if note.where in map(str, paths)
    ]
    versions = rows_of(sqlite, IN_FORCE.with_only_columns(releases.c.version))
    assert ["25.09"] * 3 + ["25.09.01"] == sorted(str(row[0]) for row in versions)


@pytest.mark.parametrize(
    ("release", "settings", "expected"),
    [
        ("25.09", (), ("25.09", "release 25.09.00 is stored as 25.09, which is the same")),
        ("25.07", (), ("25.09.00",
         "llmb-config_1.yaml says release 25.09.00, --release 25.07 is not taken")),
        (None, ("release=25.07",), ("25.07",
         "llmb-config_1.yaml says release 25.09.00, --set says 25.07")),
    ],
)  # fmt: skip
def test_what_the_command_line_says_of_a_release_is_taken_or_a_note_says_why_not(
    sqlite: URL,
    tmp_path: Path,
    release: str | None,
    settings: tuple[str, ...],
    expected: tuple[str, str],
) -> None:
    path = launched(tmp_path / "a", "25.09.00")
    said = Options(PageContext(release=release), logs=LogOptions((*LENGTH.settings, *settings)))

    report = ingest([path], sqlite, said)

    [(version, *_)], [beside, note] = rows_of(sqlite, IN_FORCE), report.notes
    assert expected == (version, note.message)
    file = path.with_name("llmb-config_1.yaml")
    assert f"{file}: says what train.log was" == str(beside)


def test_set_is_held_against_the_experiments_name(sqlite: URL, tmp_path: Path) -> None:
    """And taken all the same."""
    folder = tmp_path / "pretrain_llama3_70b_bf16_gpus64_tp4_pp8_cp1_vp5_mbs1_gbs128"
    report = ingest([write(folder)], sqlite, GIVEN)
    assert [
        "the experiment's name says model llama3-70b, --set says llama3-8b",
        "the experiment's name says num_gpus 64, --set says 8",
    ] == [note.message for note in report.notes]
