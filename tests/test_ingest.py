"""Ingest: run directories and pages in, rows out; what is wrong is said and stops nothing."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import URL, func, select

from perfdb.db.tables import ingest_log, results, runs, sources, steps
from perfdb.ingest import Options, ingest
from perfdb.messages import note_text
from perfdb.pages.base import PageContext
from perfdb.record import Note, NoteCode, Outcome
from tests import factories
from tests.snapshots import snapshot
from tests.trees import NEMO, PAGE, counted, rows_in_words, write_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Runs a, b and c, of which c is out of memory, and a page of two rows."""
    return write_tree(tmp_path / "tree")


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


def ended(outcome: Outcome) -> str:
    """How a run ended, in words."""
    return note_text(Note.of(NoteCode.RUN_ENDED, outcome=outcome.value))


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

    assert (len(Outcome) + 3, 0, 0, 0) == counted(report)
    stored = rows_in_words(
        store,
        select(runs.c.run_id, results.c.outcome, results.c.withheld, results.c.step_time_s).join(
            results, results.c.run_id == runs.c.id
        ),
    )
    failed = [outcome for outcome in Outcome if outcome is not Outcome.FINISHED]
    cut_off = "the run was cut off: its runner is gone and did not say how it ended"
    assert {
        ("finished", "finished", None, 12.15),
        ("crashed", "incomplete", cut_off, None),
        ("cut", "incomplete", "9 of 10 steps", None),
        ("nan", "nan_loss", "the loss is nan at step 10", None),
        *(
            (
                outcome.value,
                outcome.value,
                note_text(Note.of(NoteCode.RUN_ENDED, outcome=outcome.value)),
                None,
            )
            for outcome in failed
        ),
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
    assert {(12300.0, 7, str(page)), (1563.0, 8, str(page))} == set(rows_in_words(store, in_force))


def test_results_of_no_stated_release_are_counted(sqlite: URL, tmp_path: Path) -> None:
    """They are stored and listed, so that somebody can say which release they are of."""
    page = tmp_path / "page.md"
    page.write_text(PAGE)

    report = ingest([page], sqlite, Options(PageContext(framework="nemo", precision="bf16")))
    assert (2, 0, 0, 0) == counted(report)
    told = f"{page}:7–8: each of 2 results names no release; pass --release"
    assert ((told,), 2) == (report.unattributed, len(report.nameless))


def test_a_single_result_of_no_stated_release_is_told_by_its_case(
    sqlite: URL, tmp_path: Path
) -> None:
    """Its line and its case; nothing is counted where there is one."""
    page = tmp_path / "page.md"
    page.write_text("".join(PAGE.splitlines(keepends=True)[:-1]))

    report = ingest([page], sqlite, Options(PageContext(framework="nemo", precision="bf16")))
    told = f"{page}:7: llama3-8b on dgx-h100 names no release; pass --release"
    assert ((told,), 1) == (report.unattributed, len(report.nameless))


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
