"""Ingest: run directories and pages in, rows out; what is wrong is said and stops nothing."""

import json
import os
import re
import shutil
import socket
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import URL, Engine, event, func, insert, select

from perfdb.db import bulk
from perfdb.db.session import store_url
from perfdb.db.tables import ingest_log, results, run_files, runs, sources, steps
from perfdb.errors import Diagnostic, InputError, StoreError
from perfdb.ingest import LogOptions, Options, Report, ingest
from perfdb.messages import note_text
from perfdb.pages.base import PageContext
from perfdb.record import Note, NoteCode, Outcome, Release
from perfdb.rundir import RunDir, parse_steps
from perfdb.validity import damage
from tests import factories
from tests.shell import Shell
from tests.snapshots import snapshot
from tests.trees import NEMO, PAGE, counted, rows_in_words, rows_of, write_tree, writing


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Runs a, b and c, of which c is out of memory, and a page of two rows."""
    return write_tree(tmp_path / "tree")


def test_a_tree_is_ingested_and_the_second_time_nothing_changes(store: URL, tree: Path) -> None:
    """Runs and pages are found wherever they lie; the same bytes again are no news, also moved."""
    assert (5, 0, 0, 0) == counted(ingest([tree], store, NEMO))
    before = snapshot(store)

    assert (0, 0, 5, 0) == counted(ingest([tree], store, NEMO))
    assert before == snapshot(store)
    moved = tree.rename(tree.with_name("elsewhere"))
    assert (0, 0, 5, 0) == counted(ingest([moved], store, NEMO))


def test_every_outcome_is_stored_and_only_finished_runs_have_figures(
    sqlite: URL, tmp_path: Path
) -> None:
    """A run that failed is data: it is there, with the reason in words, and without a figure."""
    steps = factories.steps()
    for outcome in Outcome:
        factories.write_run(tmp_path, run_id=outcome.value, outcome=outcome, error="it broke")
    nan = factories.write_run(tmp_path, run_id="nan")
    factories.write_steps(nan, [*steps[:9], *factories.steps((1.0,), loss=float("nan"), step=10)])
    cut = factories.write_run(tmp_path, run_id="cut")
    cut.steps.write_text(cut.steps.read_text()[:-40])
    factories.write_run(tmp_path, run_id="crashed", outcome=None, ended_at=None, exit_code=None)

    report = ingest([tmp_path], sqlite, Options())

    assert (len(Outcome) + 3, 0, 0, 0) == counted(report)
    stored = rows_in_words(
        sqlite,
        select(runs.c.run_id, results.c.outcome, results.c.withheld, results.c.step_time_s).join(
            results, results.c.run_id == runs.c.id
        ),
    )
    failed = [
        (str(it), str(it), note_text(Note.of(NoteCode.RUN_ENDED, outcome=it.value)), None)
        for it in Outcome
        if it is not Outcome.FINISHED
    ]
    cut_off = "the run was cut off: its runner stopped and recorded no outcome"
    assert {
        ("finished", "finished", None, 12.15),
        ("crashed", "incomplete", cut_off, None),
        ("cut", "incomplete", "9 of 10 steps", None),
        ("nan", "nan_loss", "the loss is nan at step 10", None),
        *failed,
    } == set(stored)


def test_a_run_that_was_finished_since_replaces_itself(store: URL, tmp_path: Path) -> None:
    """An incomplete run that was resumed: its rows are the new ones, its old result is kept."""
    run = factories.write_run(tmp_path, step_times=(2.0, 1.0), outcome=None, measured_steps=8)
    ingest([tmp_path], store, Options())

    run.write_record(factories.record(run_id=run.path.name))
    factories.write_steps(run, factories.steps())
    assert (0, 1, 0, 0) == counted(ingest([tmp_path], store, Options()))

    columns = (results.c.revision, results.c.superseded, results.c.outcome)
    assert [(1, True, "incomplete"), (2, False, "finished")] == rows_in_words(
        store, select(*columns).order_by(results.c.revision)
    )
    assert [(10,)] == rows_in_words(store, select(func.count()).select_from(steps))
    assert [("finished",)] == rows_in_words(store, select(runs.c.outcome))
    assert (0, 0, 1, 0) == counted(ingest([tmp_path], store, Options()))


def test_a_page_edited_in_place_makes_a_revision(sqlite: URL, tree: Path) -> None:
    """One figure changed: one revision, and the page's other row is as it was."""
    ingest([tree], sqlite, NEMO)
    page = tree / "published" / "nemo.md"
    page.write_text(PAGE.replace("12273", "12300"))

    assert (0, 1, 4, 0) == counted(ingest([tree], sqlite, NEMO))
    question = select(results.c.tokens_per_sec_per_gpu, results.c.source_line, sources.c.path)
    in_force = question.join(sources, results.c.source_id == sources.c.id).where(
        ~results.c.superseded, results.c.origin == "published"
    )
    assert {(12300.0, 7, str(page)), (1563.0, 8, str(page))} == set(rows_in_words(sqlite, in_force))


def test_results_of_no_stated_release_are_counted(sqlite: URL, tmp_path: Path) -> None:
    """They are stored and listed, so that somebody can say which release they are of."""
    page = tmp_path / "page.md"
    page.write_text(PAGE)

    report = ingest([page], sqlite, Options(PageContext(framework="nemo", precision="bf16")))
    assert (2, 0, 0, 0) == counted(report)
    told = f"{page}:7–8: each of 2 results names no release; pass --release"
    assert ([told], 2) == ([*map(str, report.unattributed)], len(report.nameless))


def test_the_log_says_what_became_of_each_source(sqlite: URL, tree: Path) -> None:
    """One line for each source that is new or changed."""
    ingest([tree], sqlite, NEMO)
    (tree / "published" / "nemo.md").write_text(PAGE.replace("12273", "12300"))
    ingest([tree], sqlite, NEMO)

    columns = (ingest_log.c.path, ingest_log.c.action, ingest_log.c.reason)
    logged = rows_in_words(sqlite, select(*columns).order_by(ingest_log.c.id))
    page = str(tree / "published" / "nemo.md")
    expected = [(str(tree / "runs" / name), "new", "1 new") for name in "abc"]
    assert [*expected, (page, "new", "2 new"), (page, "revised", "1 revised")] == logged


def test_the_order_of_ingest_changes_nothing(
    tree: Path, sqlite_template: Path, tmp_path: Path
) -> None:
    """Whatever is read first, the store says the same in the end."""
    names = ("runs/a", "runs/b", "runs/c", "published/nemo.md")
    orders = [
        [tree],
        *([tree / names[at] for at in order] for order in ((3, 2, 1, 0), (1, 3, 0, 2))),
    ]
    found = []
    for number, order in enumerate(orders):
        url = store_url(str(shutil.copy(sqlite_template, tmp_path / f"{number}.sqlite")))
        for path in order:
            ingest([path], url, NEMO)
        found.append(snapshot(url))

    assert found[0] == found[1] == found[2]


SLURM = """\
srun: job 3 queued and waiting for resources
plan: 1 to run, 0 finished before, 0 skipped
  run  long on 1 × cpu
[1/1] long
  long: step 12/4005, 0.0545 s/step, 0.00554 TFLOP/s/GPU
slurmstepd-n1: error: *** JOB 3 ON n1 CANCELLED AT 2026-11-22T16:09:11 ***

interrupted
srun: error: n1: task 0: Exited with exit code 130
"""
"""What a job of docs/how-to/run-on-slurm.md printed that was cancelled."""


def said(report: Report) -> list[tuple[str, str]]:
    return [(note.where, note.reason) for note in report.notes]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (Options(PageContext(release="0.17.0")), "--release"),
        (
            Options(PageContext(framework="nemo", container="a", system="cpu", precision="fp8")),
            "--framework, --container, --system, --precision",
        ),
        (Options(logs=LogOptions(("release=0.17.0",))), "--set"),
    ],
)
def test_options_of_pages_and_logs_are_told_where_runs_were_read(
    sqlite: URL, tmp_path: Path, options: Options, names: str
) -> None:
    """Of runs that are new, and of those that the store has."""
    tree = write_tree(tmp_path / "tree") / "runs"
    expected = f"{names}: not taken for 3 run directories, which say what was run"
    for _ in range(2):
        assert [(str(tree), expected)] == said(ingest([tree], sqlite, options))
    assert [] == said(ingest([tree], sqlite, Options()))


def test_a_run_that_says_finished_and_lacks_steps_is_told(sqlite: URL, tmp_path: Path) -> None:
    run = factories.write_run(tmp_path, measured_steps=41, step_times=(9.0,) * 20)
    report = ingest([tmp_path], sqlite, Options())
    why = "20 of 43 steps"
    assert [(str(run.path), f"says that it finished, and is incomplete: {why}")] == said(report)
    question = select(results.c.withheld, runs.c.error).join(runs)
    assert [(why, why)] == rows_in_words(sqlite, question)


def test_the_output_of_a_job_that_ran_perfdb_is_passed_over(perfdb: Shell, tmp_path: Path) -> None:
    """As Slurm writes it beside the runs; other logs that end like this are rejected."""
    factories.write_run(tmp_path / "runs", run_id="sound")
    (tmp_path / "perfdb-3.out").write_text(SLURM)
    done = perfdb("ingest", ".", "--json")
    found = json.loads(done.stdout)
    assert (0, 1, []) == (done.code, found["new"], found["rejected"])

    (tmp_path / "other.out").write_text(SLURM.replace("plan: 1 to run", "plan: all"))
    assert 1 == perfdb("ingest", ".").code


def test_a_store_that_cannot_be_written_is_an_error_in_words(tree: Path, tmp_path: Path) -> None:
    """A text file is no database, and a missing folder holds none."""
    other = tmp_path / "notes.txt"
    other.write_text("not a database, but long enough to have a header of one\n" * 20)

    with pytest.raises(StoreError, match=r"notes\.txt: file is not a database"):
        ingest([tree], URL.create("sqlite", database=str(other)), Options())
    for path, why in {
        "/no/such/folder/x.sqlite": "there is no folder /no/such/folder: make it",
        str(tmp_path): "it is a folder; name a file in it",
        f"{tmp_path}/{'x' * 300}": "File name too long",
    }.items():
        with pytest.raises(StoreError, match=f"unable to open database file; {why}"):
            ingest([tree], URL.create("sqlite", database=path), Options())


def test_a_run_whose_runner_lives_is_left_alone(sqlite: URL, tmp_path: Path) -> None:
    """It is reported, is no failure, and leaves no trace in the store."""
    here = factories.environment(hostname=socket.gethostname())
    unfinished = {"outcome": None, "ended_at": None, "environment": here}
    factories.write_run(tmp_path, run_id="working", runner_pid=os.getpid(), **unfinished)
    factories.write_run(tmp_path, run_id="gone", **unfinished)
    there = unfinished | {"environment": factories.environment()}
    factories.write_run(tmp_path, run_id="elsewhere", runner_pid=os.getpid(), **there)

    report = ingest([tmp_path], sqlite, Options())

    assert ((str(tmp_path / "working"),), ()) == (report.still_running, report.rejected)
    assert not report.failed
    assert [("elsewhere",), ("gone",)] == rows_of(sqlite, select(runs.c.run_id).order_by("run_id"))
    assert [("new",), ("new",)] == rows_of(sqlite, select(ingest_log.c.action))


def test_a_run_whose_lock_is_held_is_left_alone_until_it_is_let_go(
    sqlite: URL, tmp_path: Path
) -> None:
    """The runner's lock tells more than its process number, which another process may have."""
    here = factories.environment(hostname=socket.gethostname())
    run = factories.write_run(
        tmp_path, outcome=None, ended_at=None, environment=here, runner_pid=os.getpid()
    )
    with run.held():
        report = ingest([tmp_path], sqlite, Options())
        assert ((0, 0, 0, 0), (str(run.path),)) == (counted(report), report.still_running)

    assert (1, 0, 0, 0) == counted(ingest([tmp_path], sqlite, Options()))


DAMAGES = {
    "broken record": ("run.json", r"(?s).+", '{\n "schema_version": 1,\n', 3, "EOF while parsing"),
    "another version": ("run.json", r'(_version": )1', r"\g<1>9", None,
                        "schema_version: Input should be 1"),
    "damaged steps": ("steps.jsonl", r'(\{"step":4.{3}).*', r"\1", 4, "EOF while parsing"),
    "impossible step": ("steps.jsonl", r"12\.6", "0.0", 5, "0 seconds is no duration of a step"),
    "broken summary": ("worker.json", r"(?s).+", "{}", None, "schema_version: Field required"),
}  # fmt: skip
"""A file of a run, what of it becomes something else, the line that is told, and the words."""


@pytest.mark.parametrize("damage_of", DAMAGES)
def test_a_damaged_run_is_rejected_and_stops_no_other(
    sqlite: URL, tree: Path, damage_of: str
) -> None:
    """The rejection says which file, which line and what is wrong; all else is stored."""
    name, pattern, other, line, words = DAMAGES[damage_of]
    file = tree / "runs" / "b" / name
    file.write_text(re.sub(pattern, other, file.read_text(), count=1))

    report = ingest([tree], sqlite, NEMO)

    assert (4, 0, 0, 1) == counted(report)
    [problem] = report.rejected
    assert (str(file), line, True) == (problem.where, problem.line, words in problem.message)
    assert report.failed
    assert [("a",), ("c",)] == rows_of(sqlite, select(runs.c.run_id).order_by("run_id"))
    logged = select(ingest_log.c.path, ingest_log.c.line).where(ingest_log.c.action == "rejected")
    assert [(str(file), line)] == rows_of(sqlite, logged)


def test_a_path_that_does_not_exist_is_an_input_error(tmp_path: Path) -> None:
    """All missing paths are named, and nothing is stored."""
    url = URL.create("sqlite", database=str(tmp_path / "x.sqlite"))
    with pytest.raises(InputError, match=r"(?s)nope: no such file.*nix: no such file"):
        ingest([tmp_path, Path("nope"), Path("nix")], url, Options())

    assert not (tmp_path / "x.sqlite").exists()


def test_a_file_in_no_known_format_is_rejected_only_when_it_is_named(
    sqlite: URL, tree: Path
) -> None:
    """A README beside the runs is nobody's business."""
    readme, picture = tree / "README.md", tree / "picture.md"
    readme.write_text("# Runs\n\n| who | what |\n|---|---|\n| a | b |\n")
    picture.write_bytes(b"\x89PNG\xff\0")

    assert (5, 0, 0, 0) == counted(ingest([tree], sqlite, NEMO))
    report = ingest([readme, picture], sqlite, NEMO)
    assert [str(readme), str(picture)] == [problem.where for problem in report.rejected]
    message = "neither a run directory, a page with a table of results nor a log of a known format"
    assert {message} == {problem.message for problem in report.rejected}


def test_what_lies_hidden_or_inside_a_run_is_not_searched(sqlite: URL, tree: Path) -> None:
    """A run's own files and a .git folder hold no pages of ours."""
    for folder in (tree / "runs" / "a" / "notes", tree / ".cache"):
        folder.mkdir()
        (folder / "page.md").write_text(PAGE)
    (tree / "folder.md").mkdir()
    (tree / "dangling.md").symlink_to("nowhere")

    assert (5, 0, 0, 0) == counted(ingest([tree], sqlite, NEMO))


def test_of_two_rows_for_one_case_the_second_is_rejected(sqlite: URL, tmp_path: Path) -> None:
    """Neither is more right; that there are two is for people to settle."""
    page = tmp_path / "page.md"
    last = PAGE.splitlines()[-2]
    page.write_text(PAGE + last + "\n" + last.replace("12273", "99") + "\n")

    report = ingest([page], sqlite, NEMO)

    assert (2, 0, 0, 1) == counted(report)
    [problem] = report.rejected
    expected = (10, "the same case as line 7, with other figures")
    assert expected == (problem.line, problem.message)
    assert "remove one of the rows, or say what sets them apart" == problem.remedy


STEP = factories.steps((4.0,))[0].model_dump_json()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([STEP, STEP], None),
        ([STEP, STEP[:20]], None),
        ([], None),
        ([STEP, STEP[:20], STEP], 2),
        ([STEP, "", STEP], 2),
        ([STEP[:20], STEP[:30]], 1),
        ([STEP, STEP.replace("4.0", "0.0", 1)], 2),
        ([STEP, STEP.replace("4.0", "-1.0", 1)], 2),
        ([STEP.replace("4.0", '"NaN"', 1), STEP], 1),
        ([STEP.replace("4.0", '"Infinity"', 1)], 1),
    ],
    ids=[
        "whole", "cut off", "empty", "a line in the middle", "an empty line", "two lines",
        "no time", "negative", "nan", "forever",
    ],
)  # fmt: skip
def test_a_steps_file_may_be_cut_off_but_not_damaged(
    lines: list[str], expected: int | None
) -> None:
    """A crash cuts off the last line; anything else is no steps file of ours."""
    found = damage("steps.jsonl", parse_steps("steps.jsonl", lines))

    assert expected == (found.line if isinstance(found, Diagnostic) else None)


@pytest.fixture
def twelve(tmp_path: Path) -> Path:
    """Twelve runs of four cases, one of them out of order and one cut off."""
    for number in range(12):
        case = factories.case(num_gpus=8 * (1 + number % 4))
        factories.write_run(tmp_path / "runs", run_id=f"run-{number:02}", case=case)
    factories.write_steps(RunDir(tmp_path / "runs" / "run-03"), factories.steps()[::-1])
    factories.write_steps(RunDir(tmp_path / "runs" / "run-07"), factories.steps()[:4])
    return tmp_path / "runs"


def run_ids(url: URL) -> list[object]:
    return [row[0] for row in rows_of(url, select(runs.c.run_id).order_by(runs.c.run_id))]


def test_a_run_that_no_column_can_hold_spoils_no_other(store: URL, twelve: Path) -> None:
    """Two of the twelve are refused by the database; all others are stored, whole."""
    for name in ("run-00", "run-06"):
        record = RunDir(twelve / name).record
        written = json.loads(record.read_text())
        written["exit_code"] = 10**20
        record.write_text(json.dumps(written))

    report = ingest([twelve], store, Options())

    assert (10, 0, 0, 2) == counted(report)
    assert [str(twelve / "run-00"), str(twelve / "run-06")] == [
        one.where for one in report.rejected
    ]
    assert {f"run-{n:02}" for n in range(12)} - {"run-00", "run-06"} == set(run_ids(store))
    for table, each in ((run_files, 6), (results, 1)):
        assert 10 * each == len(rows_of(store, select(table.c.run_id)))
    assert 9 * 10 + 4 == len(rows_of(store, select(steps.c.run_id)))
    assert (0, 0, 10, 2) == counted(ingest([twelve], store, Options()))


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


def test_another_run_of_the_same_id_is_rejected(sqlite: URL, tmp_path: Path) -> None:
    """Which of the two is meant nobody can tell; the message names both."""
    first = factories.write_run(tmp_path / "one")
    later = factories.STARTED + timedelta(days=1)
    second = factories.write_run(tmp_path / "two", started_at=later, step_times=(5.0, 4.0, 4.0))

    for _ in range(2):
        report = ingest([tmp_path], sqlite, Options())
        [problem] = report.rejected
        assert str(second.path) == problem.where
        assert f"the run 'llama3-8b_bf16_8gpu-1' of {first.path}" in problem.message

    assert [(12.15,)] == rows_of(sqlite, select(results.c.step_time_s))
    rejected = select(ingest_log.c.path).where(ingest_log.c.action == "rejected")
    assert [(str(second.path),)] == rows_of(sqlite, rejected)


def test_of_two_copies_of_a_run_the_one_that_tells_more_counts(sqlite: URL, tmp_path: Path) -> None:
    """In whatever order, again and again; of two whole ones that differ the first does."""
    whole = factories.write_run(tmp_path / "runs")
    copy = RunDir(tmp_path / "backup" / whole.path.name)
    shutil.copytree(whole.path, copy.path)
    whole_steps = copy.steps.read_text()
    copy.summary.unlink()
    copy.steps.write_text(whole_steps[: len(whole_steps) // 2])
    said = f"has no more than {whole.path} of the run '{whole.path.name}', which stays as it is"

    assert (1, 0, 0, 0) == counted(ingest([copy.path], sqlite, Options()))
    assert (0, 1, 0, 0) == counted(ingest([whole.path], sqlite, Options()))
    for _ in range(2):
        report = ingest([copy.path, whole.path], sqlite, Options())
        assert (0, 0, 2, 0) == counted(report)
        assert (str(copy.path), said) in [(note.where, note.reason) for note in report.notes]

    copy.steps.write_text(whole_steps)  # a copy without one of its files says the same
    assert (0, 0, 1, 0) == counted(ingest([copy.path], sqlite, Options()))
    copy.steps.write_text(whole_steps.replace("12.", "1."))
    report = ingest([copy.path], sqlite, Options())
    [problem] = report.rejected
    assert f"of {whole.path} is in the store and differs" in problem.message
    in_force = select(results.c.step_time_s).where(~results.c.superseded)
    assert [(12.15,)] == rows_of(sqlite, in_force)


def test_a_run_that_was_done_again_in_its_directory_replaces_itself(
    sqlite: URL, tmp_path: Path
) -> None:
    """The directory is the same, so it is a later state of it, whenever it started."""
    run = factories.write_run(tmp_path)
    ingest([tmp_path], sqlite, Options())

    later = factories.STARTED + timedelta(days=1)
    run.write_record(factories.record(started_at=later))
    assert (0, 1, 0, 0) == counted(ingest([tmp_path], sqlite, Options()))


AWKWARD = (
    "tab\t, line\nbreak\r, back\\slash, \\N, \\., ü, 'quote', \"double\", {}",
    "",
    "\\",
    "\x01",
)


def test_rows_added_at_once_hold_what_an_insert_would_hold(store: URL) -> None:
    """Text that COPY would read otherwise, unknown values, moments and booleans."""
    columns = ("path", "action", "line", "reason", "at", "perfdb_version", "content_hash")
    rows = [(text, "new", None, text, factories.STARTED, "1", "0" * 64) for text in AWKWARD]
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
@example(['{"step":1,"step_time_s":4}', '{"step":2,"step_time_s":4.5}'])
@example(['{"step":1,"step_time_s":4.0}', '{"step_time_s":4.5,"step":2}'])
@example(['{"step":1,"step_time_s":4.0}', '{"step":2,"loss":4.5}'])
@example(['{"step":0,"step_time_s":4.0}', '{"step":2,"step_time_s":4.5}'])
@example(['{"step":1,"step_time_s":4.0,"tokens":1.0}', '{"step":2,"step_time_s":4.5,"tokens":{}}'])
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
