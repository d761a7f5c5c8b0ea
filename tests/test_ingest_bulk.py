"""Runs are stored many at a time: the store holds what one at a time would have put there."""

import json
import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import URL, Engine, event, insert, select

from perfdb.db import bulk, keys
from perfdb.db import sources as files
from perfdb.db.rows import SourceFile
from perfdb.db.tables import ingest_log, results, run_files, runs, steps, systems
from perfdb.ingest import Options, ingest
from perfdb.record import Release
from perfdb.rundir import RunDir, parse_steps
from tests import factories
from tests.trees import counted, rows_of, writing


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Twelve runs of four cases, one of them out of order and one cut off."""
    for number in range(12):
        case = factories.case(num_gpus=8 * (1 + number % 4))
        factories.write_run(tmp_path / "runs", run_id=f"run-{number:02}", case=case)
    factories.write_steps(RunDir(tmp_path / "runs" / "run-03"), factories.steps()[::-1])
    factories.write_steps(RunDir(tmp_path / "runs" / "run-07"), factories.steps()[:4])
    return tmp_path / "runs"


def run_ids(url: URL) -> list[object]:
    return [row[0] for row in rows_of(url, select(runs.c.run_id).order_by(runs.c.run_id))]


def test_a_run_that_no_column_can_hold_spoils_no_other(store: URL, tree: Path) -> None:
    """Two of the twelve are refused by the database; all others are stored, whole."""
    for name in ("run-00", "run-06"):
        record = RunDir(tree / name).record
        written = json.loads(record.read_text())
        written["exit_code"] = 10**20
        record.write_text(json.dumps(written))

    report = ingest([tree], store, Options())

    assert (10, 0, 0, 2) == counted(report)
    assert [str(tree / "run-00"), str(tree / "run-06")] == [one.where for one in report.rejected]
    assert {f"run-{n:02}" for n in range(12)} - {"run-00", "run-06"} == set(run_ids(store))
    for table, each in ((run_files, 6), (results, 1)):
        assert 10 * each == len(rows_of(store, select(table.c.run_id)))
    assert 9 * 10 + 4 == len(rows_of(store, select(steps.c.run_id)))
    assert (0, 0, 10, 2) == counted(ingest([tree], store, Options()))


def _same_size(run: RunDir) -> None:
    status = run.steps.stat()
    run.steps.write_bytes(run.steps.read_bytes().replace(b"12.0", b"13.0", 1))
    assert status.st_size == run.steps.stat().st_size
    os.utime(run.steps, ns=(status.st_atime_ns, status.st_mtime_ns))


def _another_rank(run: RunDir) -> None:
    run.rank_logs.mkdir()
    (run.rank_logs / "rank1.log").write_text("out of memory\n")


def _one_less(run: RunDir) -> None:
    run.recipe.unlink()


def test_an_id_that_no_column_can_hold_spoils_no_other(store: URL, tree: Path) -> None:
    """PostgreSQL takes no NUL, not even to look for it; the damaged record alone is rejected."""
    record = RunDir(tree / "run-05").record
    record.write_bytes(record.read_bytes().replace(b'"run-05"', b'"run\0"'))

    report = ingest([tree], store, Options())

    assert (11, 0, 0, 1) == counted(report)
    [problem] = report.rejected
    assert str(record) == problem.where


def test_as_many_statements_tell_that_many_runs_are_unchanged_as_that_one_is(
    store: URL, tmp_path: Path
) -> None:
    """However many runs, releases and findings they are of."""
    for number in range(4):
        release = Release(framework="megatron-core", version=f"0.{number}.0")
        factories.write_run(tmp_path / "runs", run_id=f"run-{number}", release=release)
    assert ingest([tmp_path], store, Options()).findings
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        ingest([tmp_path / "runs" / "run-0"], store, Options())
        one = len(sent)
        report = ingest([tmp_path], store, Options())
    finally:
        event.remove(Engine, "before_cursor_execute", note)

    assert (0, 0, 4, 0) == counted(report)
    assert one == len(sent) - one
    assert 4 == len({finding.release for finding in report.findings})


def test_another_run_of_the_same_id_is_rejected(store: URL, tmp_path: Path) -> None:
    """Which of the two is meant nobody can tell; the message names both."""
    first = factories.write_run(tmp_path / "one")
    later = factories.STARTED + timedelta(days=1)
    second = factories.write_run(tmp_path / "two", started_at=later, step_times=(5.0, 4.0, 4.0))

    for _ in range(2):
        report = ingest([tmp_path], store, Options())
        [problem] = report.rejected
        assert str(second.path) == problem.where
        assert f"the run 'llama3-8b_bf16_8gpu-1' of {first.path}" in problem.message

    assert [(12.15,)] == rows_of(store, select(results.c.step_time_s))
    rejected = select(ingest_log.c.path).where(ingest_log.c.action == "rejected")
    assert [(str(second.path),)] == rows_of(store, rejected)


def test_a_run_that_was_copied_while_it_ran_is_the_same_run(store: URL, tmp_path: Path) -> None:
    """It started at the same moment: the later state of it replaces the earlier one."""
    unfinished = {"outcome": None, "ended_at": None, "exit_code": None, "measured_steps": 8}
    factories.write_run(tmp_path / "copy", step_times=(2.0, 1.0), **unfinished)
    ingest([tmp_path / "copy"], store, Options())

    factories.write_run(tmp_path / "whole")
    assert (0, 1, 0, 0) == counted(ingest([tmp_path / "whole"], store, Options()))
    assert [(12.15,)] == rows_of(store, select(results.c.step_time_s).where(~results.c.superseded))


def test_of_two_copies_of_a_run_the_one_that_tells_more_counts(store: URL, tmp_path: Path) -> None:
    """In whatever order, again and again; of two whole ones that differ the first does."""
    whole = factories.write_run(tmp_path / "runs")
    copy = RunDir(tmp_path / "backup" / whole.path.name)
    shutil.copytree(whole.path, copy.path)
    whole_steps = copy.steps.read_text()
    copy.summary.unlink()
    copy.steps.write_text(whole_steps[: len(whole_steps) // 2])
    said = f"has no more than {whole.path} of the run '{whole.path.name}', which stays as it is"

    assert (1, 0, 0, 0) == counted(ingest([copy.path], store, Options()))
    assert (0, 1, 0, 0) == counted(ingest([whole.path], store, Options()))
    for _ in range(2):
        report = ingest([copy.path, whole.path], store, Options())
        assert (0, 0, 2, 0) == counted(report)
        assert (str(copy.path), said) in [(note.where, note.reason) for note in report.notes]

    copy.steps.write_text(whole_steps)  # a copy without one of its files says the same
    assert (0, 0, 1, 0) == counted(ingest([copy.path], store, Options()))
    copy.steps.write_text(whole_steps.replace("12.", "1."))
    report = ingest([copy.path], store, Options())
    [problem] = report.rejected
    assert f"of {whole.path} is in the store and differs" in problem.message
    in_force = select(results.c.step_time_s).where(~results.c.superseded)
    assert [(12.15,)] == rows_of(store, in_force)


def test_a_run_that_was_done_again_in_its_directory_replaces_itself(
    store: URL, tmp_path: Path
) -> None:
    """The directory is the same, so it is a later state of it, whenever it started."""
    run = factories.write_run(tmp_path)
    ingest([tmp_path], store, Options())

    later = factories.STARTED + timedelta(days=1)
    run.write_record(factories.record(started_at=later))
    assert (0, 1, 0, 0) == counted(ingest([tmp_path], store, Options()))


def test_what_one_run_derives_is_its_own(store: URL, tmp_path: Path) -> None:
    """Of two runs of one case in one batch the first says GA and DP, the second nothing."""
    silent = factories.case(gradient_accumulation=None, data_parallel=None)
    factories.write_run(tmp_path, run_id="a")
    factories.write_run(tmp_path, run_id="b", case=silent)
    ingest([tmp_path], store, Options())

    said = select(results.c.gradient_accumulation, results.c.data_parallel).order_by(results.c.id)
    assert {(32, 4), (None, None)} == set(rows_of(store, said))


AWKWARD = (
    "tab\t, line\nbreak\r, back\\slash, \\N, \\., ü, 'quote', \"double\", {}",
    "",
    "\\",
    "\x01",
)


def test_rows_added_at_once_hold_what_an_insert_would_hold(store: URL) -> None:
    """Text that COPY would read otherwise, unknown values, moments and booleans."""
    columns = ("path", "action", "line", "reason", "at", "perfdb_version")
    rows = [(text, "new", None, text, factories.STARTED, "1") for text in AWKWARD]
    with writing(store) as connection:
        bulk.add(connection, ingest_log, columns, rows)
        bulk.add(connection, ingest_log, columns, [])
        connection.execute(
            insert(ingest_log), [dict(zip(columns, row, strict=True)) for row in rows]
        )

    kept = [ingest_log.c[name] for name in columns]
    found = rows_of(store, select(*kept).order_by(ingest_log.c.id))
    assert len(AWKWARD) * 2 == len(found)
    assert found[: len(AWKWARD)] == found[len(AWKWARD) :]
    assert list(AWKWARD) == [row[0] for row in found[: len(AWKWARD)]]


def test_keys_are_found_whatever_characters_they_hold(store: URL) -> None:
    """None is taken for another one, for several or for none, also where they are one parameter."""
    held = (*AWKWARD, "NULL", "a,b", "{a,b}", "%s", "%(a)s")
    with writing(store) as connection:
        rows = [{**keys.system_row("dgx-h100"), "name": name} for name in held]
        connection.execute(insert(systems), rows)
        found = keys.known(connection, systems, systems.c.name, (*held, "a", "b", "null"))

    assert found == dict(rows_of(store, select(systems.c.name, systems.c.id)))
    assert set(held) == set(found)


def test_a_file_that_changed_while_it_was_read_twice_is_two_sources(store: URL) -> None:
    """The same path with other bytes is another source, also within one transaction."""
    given_files = [SourceFile("a.yaml", content, "x", 1) for content in (b"1", b"2", b"1")]
    with writing(store) as connection:
        first = files.ids(connection, given_files, factories.STARTED)
        again = files.ids(connection, given_files, factories.STARTED)

    assert 2 == len(set(first.values()))
    assert first == again


WHOLE = [step.model_dump_json() for step in factories.steps((4.0, 3.0))]
BEGUN, ENDED = '{"step":1,"step_time_s":1', '"loss":2}'
PIECES = [
    *WHOLE, f" {WHOLE[0]}", "", "{", "}", "1", "null", WHOLE[0][:40], WHOLE[0][40:], BEGUN, ENDED,
    f"{WHOLE[0]},{WHOLE[1]}", f"{WHOLE[0]},{WHOLE[1][:40]}", f"{WHOLE[0]},{BEGUN}",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=6))
@example([f"{WHOLE[0]},{BEGUN}", ENDED])
@example([BEGUN, ENDED])
@example([f"{WHOLE[0]},{WHOLE[1]}", ""])
def test_a_steps_file_is_read_at_once_as_line_by_line(lines: list[str]) -> None:
    """Whatever is wrong with a line, it is the line that is told, and no other step is lost."""
    alone = [parse_steps("steps.jsonl", [line]) for line in lines]

    read = parse_steps("steps.jsonl", lines)

    steps_of_each = [
        (number, step) for number, one in enumerate(alone, start=1) for _, step in one.steps
    ]
    assert steps_of_each == list(read.steps)
    assert [n for n, one in enumerate(alone, start=1) if one.problems] == [
        problem.line for problem in read.problems
    ]
