"""Ingest: run directories and pages in, rows out; what is wrong is said and stops nothing."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import URL, Select, func, select

from perfdb.db.session import reading
from perfdb.db.tables import ingest_log, results, runs, sources, steps
from perfdb.errors import InputError, StoreError
from perfdb.ingest import STILL_RUNNING, Options, Report, ingest, preview
from perfdb.pages import PageContext
from perfdb.record import Outcome
from perfdb.rundir import RunDir
from tests import factories
from tests.conftest import run_sql
from tests.snapshots import snapshot

PAGE = """\
# Performance

## DGX-H100

| Model | #-GPUs | GBS | MBS | Sequence Length | TP | PP | CP | Tokens / sec / GPU |
|---|---|---|---|---|---|---|---|---|
| LLAMA3-8B | 8 | 128 | 1 | 8192 | 1 | 1 | 2 | 12273 |
| LLAMA3-70B | 64 | 128 | 1 | 8192 | 4 | 8 | 1 | 1563 |
"""
NEMO = Options(PageContext(framework="nemo", release="25.04", precision="bf16"))


def rows_of(url: URL, question: Select[*tuple[object, ...]]) -> list[tuple[object, ...]]:
    with reading(url) as connection:
        return [tuple(row) for row in connection.execute(question)]


def counted(report: Report) -> tuple[int, int, int, int]:
    return report.new, report.revised, report.unchanged, len(report.rejected)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three runs, one of them out of memory, and a page of two rows."""
    folder = tmp_path / "tree"
    factories.write_run(folder / "runs", run_id="a")
    factories.write_run(folder / "runs", run_id="b", case=factories.case(num_gpus=16))
    factories.write_run(
        folder / "runs", run_id="c", step_times=(9.0,), outcome=Outcome.OUT_OF_MEMORY
    )
    page = folder / "published" / "nemo.md"
    page.parent.mkdir()
    page.write_text(PAGE)
    return folder


def test_a_tree_is_ingested_and_the_second_time_nothing_changes(store: URL, tree: Path) -> None:
    """Runs and pages are found wherever they lie; the same bytes again are no news."""
    assert (5, 0, 0, 0) == counted(ingest([tree], store, NEMO))
    before = snapshot(store)

    assert (0, 0, 5, 0) == counted(ingest([tree], store, NEMO))
    assert before == snapshot(store)


def test_a_tree_that_was_moved_is_unchanged(store: URL, tree: Path) -> None:
    """It is the bytes that count, not where they lie."""
    ingest([tree], store, NEMO)

    moved = tree.rename(tree.with_name("elsewhere"))
    assert (0, 0, 5, 0) == counted(ingest([moved], store, NEMO))


def test_a_source_named_twice_is_read_once(store: URL, tree: Path) -> None:
    """A run directory, the folder around it and its run.json are one source."""
    run = tree / "runs" / "a"

    assert (3, 0, 0, 0) == counted(ingest([run / "run.json", tree / "runs", run], store, Options()))


def test_the_store_is_made_where_there_is_none(empty_database: URL, tree: Path) -> None:
    """The first ingest brings up the schema."""
    assert (5, 0, 0, 0) == counted(ingest([tree], empty_database, NEMO))


def test_a_store_that_cannot_be_written_is_an_error_in_words(tree: Path, tmp_path: Path) -> None:
    """A text file is no database, and a missing folder holds none."""
    other = tmp_path / "notes.txt"
    other.write_text("not a database, but long enough to have a header of one\n" * 20)

    with pytest.raises(StoreError, match=r"notes\.txt: file is not a database"):
        ingest([tree], URL.create("sqlite", database=str(other)), Options())
    with pytest.raises(StoreError, match="unable to open database file"):
        ingest([tree], URL.create("sqlite", database="/no/such/folder/x.sqlite"), Options())


def test_a_store_that_may_only_be_read_is_an_error_in_words(
    postgres: URL, postgres_server: URL, tree: Path
) -> None:
    """As with a role that has no right to write."""
    run_sql(
        postgres_server, f"ALTER DATABASE {postgres.database} SET default_transaction_read_only=on"
    )

    with pytest.raises(StoreError, match="read-only transaction"):
        ingest([tree], postgres, NEMO)


def test_every_outcome_is_stored_and_only_finished_runs_have_figures(
    store: URL, tmp_path: Path
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

    report = ingest([tmp_path], store, Options())

    assert (11, 0, 0, 0) == counted(report)
    stored = rows_of(
        store,
        select(runs.c.run_id, results.c.outcome, results.c.withheld, results.c.step_time_s)
        .join(results, results.c.run_id == runs.c.id)
        .order_by(runs.c.run_id),
    )
    cut_off = "the run was cut off: its runner is gone and did not say how it ended"
    assert [
        ("crashed", "incomplete", cut_off, None),
        ("cut", "incomplete", "9 of 10 steps", None),
        ("failed", "failed", "the run failed", None),
        ("finished", "finished", None, 12.15),
        ("incomplete", "incomplete", "the run is incomplete", None),
        ("interrupted", "interrupted", "the run was interrupted", None),
        ("nan", "nan_loss", "the loss is nan at step 10", None),
        ("nan_grad_norm", "nan_grad_norm", "the gradient norm was not a number", None),
        ("nan_loss", "nan_loss", "the loss was not a number", None),
        ("out_of_memory", "out_of_memory", "the run was out of memory", None),
        ("timed_out", "timed_out", "the run reached its time limit", None),
    ] == stored


def test_a_run_that_was_finished_since_replaces_itself(store: URL, tmp_path: Path) -> None:
    """An incomplete run that was resumed: its rows are the new ones, its old result is kept."""
    run = factories.write_run(tmp_path, step_times=(2.0, 1.0), outcome=None, measured_steps=8)
    ingest([tmp_path], store, Options())

    run.write_record(factories.record(run_id=run.path.name))
    factories.write_steps(run, factories.steps())
    assert (0, 1, 0, 0) == counted(ingest([tmp_path], store, Options()))

    columns = (results.c.revision, results.c.superseded, results.c.outcome)
    assert [(1, True, "incomplete"), (2, False, "finished")] == rows_of(
        store, select(*columns).order_by(results.c.revision)
    )
    assert [(10,)] == rows_of(store, select(func.count()).select_from(steps))
    assert [("finished",)] == rows_of(store, select(runs.c.outcome))
    assert (0, 0, 1, 0) == counted(ingest([tmp_path], store, Options()))


def test_a_run_whose_runner_lives_is_left_alone(sqlite: URL, tmp_path: Path) -> None:
    """It is reported, is no failure, and leaves no trace in the store."""
    here = factories.environment(hostname=socket.gethostname())
    unfinished = {"outcome": None, "ended_at": None, "environment": here}
    factories.write_run(tmp_path, run_id="working", runner_pid=os.getpid(), **unfinished)
    factories.write_run(tmp_path, run_id="gone", **unfinished)
    there = unfinished | {"environment": factories.environment()}
    factories.write_run(tmp_path, run_id="elsewhere", runner_pid=os.getpid(), **there)

    report = ingest([tmp_path], sqlite, Options())

    assert [(str(tmp_path / "working"), STILL_RUNNING)] == [
        (problem.where, problem.message) for problem in report.rejected
    ]
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
        assert (0, 0, 0, 1) == counted(ingest([tmp_path], sqlite, Options()))

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
    "damage",
    [
        Damage(broken_record, "run.json", 3, "EOF while parsing"),
        Damage(of_another_version, "run.json", None, "schema_version: Input should be 1"),
        Damage(damaged_steps, "steps.jsonl", 4, "EOF while parsing"),
        Damage(impossible_step, "steps.jsonl", 5, "0 seconds is no duration of a step"),
        Damage(broken_summary, "worker.json", None, "schema_version: Field required"),
    ],
    ids=lambda damage: damage.done.__name__,
)
def test_a_damaged_run_is_rejected_and_stops_no_other(
    sqlite: URL, tree: Path, damage: Damage
) -> None:
    """The rejection says which file, which line and what is wrong; all else is stored."""
    run = RunDir(tree / "runs" / "b")
    damage.done(run)

    report = ingest([tree], sqlite, NEMO)

    assert (4, 0, 0, 1) == counted(report)
    [problem] = report.rejected
    assert (str(run.path / damage.file), damage.line) == (problem.where, problem.line)
    assert damage.words in problem.message
    assert report.failed
    assert [("a",), ("c",)] == rows_of(sqlite, select(runs.c.run_id).order_by("run_id"))
    logged = rows_of(
        sqlite,
        select(ingest_log.c.path, ingest_log.c.line).where(ingest_log.c.action == "rejected"),
    )
    assert [(problem.where, damage.line)] == logged


def test_a_number_no_column_can_hold_is_a_rejection(store: URL, tree: Path) -> None:
    """10²⁰ GPUs pass every check of form; the databases refuse them, each in its way."""
    run = RunDir(tree / "runs" / "b")
    run.record.write_text(run.record.read_text().replace('"num_gpus": 16', f'"num_gpus": {10**20}'))

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
    message = "neither a run directory nor a page with a table of results"
    assert {message} == {problem.message for problem in report.rejected}


def test_what_lies_hidden_or_inside_a_run_is_not_searched(sqlite: URL, tree: Path) -> None:
    """A run's own files and a .git folder hold no pages of ours."""
    for folder in (tree / "runs" / "a" / "notes", tree / ".cache"):
        folder.mkdir()
        (folder / "page.md").write_text(PAGE)
    (tree / "folder.md").mkdir()
    (tree / "dangling.md").symlink_to("nowhere")

    assert (5, 0, 0, 0) == counted(ingest([tree], sqlite, NEMO))


def test_a_page_edited_in_place_makes_a_revision(store: URL, tree: Path) -> None:
    """One figure changed: one revision, and the page's other row is as it was."""
    ingest([tree], store, NEMO)
    page = tree / "published" / "nemo.md"
    page.write_text(PAGE.replace("12273", "12300"))

    assert (0, 1, 4, 0) == counted(ingest([tree], store, NEMO))
    question = select(results.c.tokens_per_sec_per_gpu, results.c.source_line, sources.c.path)
    in_force = question.join(sources, results.c.source_id == sources.c.id).where(
        ~results.c.superseded, results.c.origin == "published"
    )
    assert {(12300.0, 7, str(page)), (1563.0, 8, str(page))} == set(rows_of(store, in_force))


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


def test_results_of_no_stated_release_are_counted(sqlite: URL, tmp_path: Path) -> None:
    """They are stored and listed, so that somebody can say which release they are of."""
    page = tmp_path / "page.md"
    page.write_text(PAGE)

    report = ingest([page], sqlite, Options(PageContext(framework="nemo", precision="bf16")))
    assert (2, 0, 0, 0) == counted(report)
    assert (
        f"{page}:7: llama3-8b on dgx-h100",
        f"{page}:8: llama3-70b on dgx-h100",
    ) == report.unattributed


def test_a_preview_shows_the_results_and_the_problems_and_stores_nothing(tree: Path) -> None:
    """It needs no store at all."""
    damaged_steps(RunDir(tree / "runs" / "b"))

    rows, report = preview([tree], NEMO)

    assert ["llama3-8b", "llama3-8b", "llama3-8b", "llama3-70b"] == [row.case.model for row in rows]
    assert (0, 0, 0, 1) == counted(report)


def test_the_log_says_what_became_of_each_source(sqlite: URL, tree: Path) -> None:
    """One line for each source that is new or changed."""
    ingest([tree], sqlite, NEMO)
    (tree / "published" / "nemo.md").write_text(PAGE.replace("12273", "12300"))
    ingest([tree], sqlite, NEMO)

    columns = (ingest_log.c.path, ingest_log.c.action, ingest_log.c.reason)
    logged = rows_of(sqlite, select(*columns).order_by(ingest_log.c.id))
    page = str(tree / "published" / "nemo.md")
    expected = [(str(tree / "runs" / name), "new", "1 new") for name in "abc"]
    assert [*expected, (page, "new", "2 new"), (page, "revised", "1 revised")] == logged


@given(order=st.permutations(["runs/a", "runs/b", "runs/c", "published/nemo.md"]))
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_the_order_of_ingest_changes_nothing(
    order: list[str], tree: Path, sqlite_template: Path, tmp_path: Path
) -> None:
    """Whatever is read first, the store says the same in the end."""
    urls = [URL.create("sqlite", database=str(tmp_path / name)) for name in ("all", "one-by-one")]
    for url in urls:
        Path(str(url.database)).write_bytes(sqlite_template.read_bytes())

    ingest([tree], urls[0], NEMO)
    for path in order:
        ingest([tree / path], urls[1], NEMO)

    assert snapshot(urls[0]) == snapshot(urls[1])
