"""What ingest rejects or leaves alone: it says where and why, and stores everything else."""

import os
import socket
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import URL, select
from sqlalchemy.exc import OperationalError

from perfdb.db.session import failed, is_missing
from perfdb.db.tables import ingest_log, runs
from perfdb.errors import Diagnostic, InputError, StoreError
from perfdb.ingest import Options, Report, ingest
from perfdb.rundir import RunDir, parse_steps
from perfdb.validity import damage
from tests import factories
from tests.conftest import run_sql
from tests.trees import NEMO, PAGE, counted, rows_of, write_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Runs a, b and c, of which c is out of memory, and a page of two rows."""
    return write_tree(tmp_path / "tree")


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


@pytest.mark.parametrize(
    ("name", "told"),
    [(".", "it is a folder; name a file in it"), ("x" * 300, "File name too long")],
)
def test_a_file_that_cannot_be_one_is_not_taken_for_a_store_to_make(
    tmp_path: Path, name: str, told: str
) -> None:
    with pytest.raises(StoreError, match=told):
        is_missing(URL.create("sqlite", database=str(tmp_path / name)))


def test_a_store_that_may_not_be_read_is_told_of(
    sqlite: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may read everything."""
    error = OperationalError("", None, sqlite3.OperationalError("unable to open database file"))
    monkeypatch.setattr("os.access", lambda *_: False)
    assert str(failed(sqlite, error)).endswith("unable to open database file; may it be read?")
    absent = sqlite.set(database=str(tmp_path / "absent.sqlite"))
    assert str(failed(absent, error)).endswith("; may files be made in its folder?")


def test_a_store_that_may_only_be_read_is_an_error_in_words(
    postgres: URL, postgres_server: URL, tree: Path
) -> None:
    """As with a role that has no right to write."""
    run_sql(
        postgres_server, f"ALTER DATABASE {postgres.database} SET default_transaction_read_only=on"
    )

    with pytest.raises(StoreError, match="read-only transaction"):
        ingest([tree], postgres, NEMO)


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


def broken_record(run: RunDir) -> None:
    run.record.write_text('{\n "schema_version": 1,\n')


def of_another_version(run: RunDir) -> None:
    run.record.write_text(
        run.record.read_text().replace('"schema_version": 1', '"schema_version": 9')
    )


def damaged_steps(run: RunDir) -> None:
    lines = run.steps.read_text().splitlines()
    lines[3] = lines[3][:10]
    run.steps.write_text("\n".join(lines))


def impossible_step(run: RunDir) -> None:
    run.steps.write_text(run.steps.read_text().replace("12.6", "0.0"))


def broken_summary(run: RunDir) -> None:
    run.summary.write_text("{}")


@dataclass(frozen=True)
class Damage:
    """What is done to a run directory, and what ingest is to say of it."""

    done: Callable[[RunDir], None]
    file: str
    line: int | None
    words: str


@pytest.mark.parametrize(
    "case",
    [
        Damage(broken_record, "run.json", 3, "EOF while parsing"),
        Damage(of_another_version, "run.json", None, "schema_version: Input should be 1"),
        Damage(damaged_steps, "steps.jsonl", 4, "EOF while parsing"),
        Damage(impossible_step, "steps.jsonl", 5, "0 seconds is no duration of a step"),
        Damage(broken_summary, "worker.json", None, "schema_version: Field required"),
    ],
    ids=lambda case: case.done.__name__,
)
def test_a_damaged_run_is_rejected_and_stops_no_other(
    sqlite: URL, tree: Path, case: Damage
) -> None:
    """The rejection says which file, which line and what is wrong; all else is stored."""
    run = RunDir(tree / "runs" / "b")
    case.done(run)

    report = ingest([tree], sqlite, NEMO)

    assert (4, 0, 0, 1) == counted(report)
    [problem] = report.rejected
    assert (str(run.path / case.file), case.line) == (problem.where, problem.line)
    assert case.words in problem.message
    assert report.failed
    assert [("a",), ("c",)] == rows_of(sqlite, select(runs.c.run_id).order_by("run_id"))
    logged = rows_of(
        sqlite,
        select(ingest_log.c.path, ingest_log.c.line).where(ingest_log.c.action == "rejected"),
    )
    assert [(problem.where, case.line)] == logged


def test_a_number_no_column_can_hold_is_a_rejection(store: URL, tree: Path) -> None:
    """An exit code of 10²⁰ passes every check of form; the databases refuse it, each in its way."""
    run = RunDir(tree / "runs" / "b")
    run.record.write_text(
        run.record.read_text().replace('"exit_code": 0', f'"exit_code": {10**20}')
    )

    report = ingest([tree], store, NEMO)

    assert (4, 0, 0, 1) == counted(report)
    assert "cannot be stored" in report.rejected[0].message


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


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def of_what_stays(report: Report) -> list[Diagnostic]:
    return [note for note in report.notes if "in force" in note.message]


REMEDY = "mend what is rejected: what the page no longer states is then withdrawn"


def test_nothing_is_told_of_rows_that_were_never_read(sqlite: URL, tree: Path) -> None:
    """Nor of a row that comes twice: what it said first is stated still."""
    page = tree / "published" / "nemo.md"
    page.write_text(PAGE.replace("12273", "12Z73"))
    first = ingest([page], sqlite, NEMO)
    last = PAGE.splitlines()[-1]
    page.write_text(PAGE + last.replace("1563", "1600") + "\n")
    second = ingest([page], sqlite, NEMO)

    for report in (first, second):
        assert (1, []) == (len(report.rejected), of_what_stays(report))
