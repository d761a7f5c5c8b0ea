"""The same log again: a copy elsewhere, a log that grew, a release in another spelling."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb.db.tables import cases, releases, results, runs, sources
from perfdb.ingest import LogOptions, ingest, preview
from perfdb.pages.base import PageContext
from tests.logs import GIVEN, SET, nemo, write
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


def test_the_same_path_is_taken_at_its_last_word_however_it_is_spelled(
    sqlite: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a")
    ingest([path], sqlite, GIVEN)
    monkeypatch.chdir(tmp_path)

    report = ingest([Path("a/train.log")], sqlite, replace(GIVEN, context=PageContext(release="3")))

    assert (0, 1, 0, 0) == counted(report)
    assert ["3"] == [row[0] for row in rows_of(sqlite, IN_FORCE)]


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
