"""The store keeps what it is given, once, and keeps what it said before."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
import zstandard
from sqlalchemy import URL, func, select
from sqlalchemy.exc import IntegrityError, OperationalError

from perfdb.db import ingest_log as log
from perfdb.db import results as writes
from perfdb.db.ingest_log import Action, LogEntry
from perfdb.db.rows import SourceFile
from perfdb.db.session import is_race, reading
from perfdb.db.tables import (
    cases,
    ingest_log,
    models,
    releases,
    results,
    run_files,
    runs,
    sources,
    steps,
    systems,
)
from perfdb.measure import of_page as published_row
from perfdb.queries.results import current
from perfdb.record import Figures, PublishedResult
from tests import factories
from tests.trees import rows_of, writing

PAGE = "data/published/nemo.md"


def put_page(
    url: URL,
    *rows: PublishedResult,
    path: str = PAGE,
    whole: bool = True,
    when: datetime = factories.STARTED,
) -> tuple[list[str], int]:
    """What became of each row of a page at a path, and how many results it withdrew."""
    content = "".join(row.model_dump_json() for row in rows).encode()
    source = SourceFile(path, content, "page", 1)
    given = [published_row(row) for row in rows]
    with writing(url) as connection:
        page = writes.put_page(connection, source, given, when, whole=whole)
    return [action.value for action in page.actions], len(page.withdrawn)


def figures_in_force(url: URL) -> list[tuple[object, ...]]:
    question = select(results.c.tokens_per_sec_per_gpu, results.c.revision)
    return rows_of(url, question.where(~results.c.superseded).order_by(results.c.id))


def printed(tokens: float, **changed: object) -> PublishedResult:
    return factories.published(figures=Figures(tokens_per_sec_per_gpu=tokens), **changed)


def test_a_run_is_stored_with_its_steps_files_and_one_result(store: URL, tmp_path: Path) -> None:
    """Every part of a run directory has its row."""
    factories.stored(store, factories.write_run(tmp_path))

    tables = (systems, models, releases, cases, runs, steps, results)
    counts = [rows_of(store, select(func.count()).select_from(table)) for table in tables]
    assert [1, 1, 1, 1, 1, 10, 1] == [count[0][0] for count in counts]
    names = ["console.log", "recipe.yaml", "run.json", "steps.jsonl", "worker.json"]
    files = rows_of(store, select(run_files.c.name).order_by(run_files.c.name))
    assert [*names, "worker_config.json"] == [name for (name,) in files]


def test_the_bytes_of_a_source_can_be_had_back(store: URL, tmp_path: Path) -> None:
    """A source is kept byte for byte, compressed."""
    run = factories.write_run(tmp_path)
    factories.stored(store, run)

    path = str(run.steps)
    [(content, size)] = rows_of(
        store, select(sources.c.content, sources.c.size_bytes).where(sources.c.path == path)
    )
    assert isinstance(content, bytes)
    assert run.steps.read_bytes() == zstandard.ZstdDecompressor().decompressobj().decompress(
        content
    )
    assert run.steps.stat().st_size == size


def test_a_step_keeps_the_line_it_was_read_from(store: URL, tmp_path: Path) -> None:
    """The steps are stored as the worker wrote them, each with its line."""
    factories.stored(store, factories.write_run(tmp_path, step_times=(2.0, 1.5, 1.25)))

    question = select(steps.c.step, steps.c.step_time_s, steps.c.source_line, steps.c.skipped)
    expected = [(1, 2.0, 1, False), (2, 1.5, 2, False), (3, 1.25, 3, False)]
    assert expected == rows_of(store, question.order_by(steps.c.step))


def test_a_model_that_is_in_no_catalogue_is_stored_without_a_family(store: URL) -> None:
    """What a page calls a model is kept, whether or not perfdb knows its shape."""
    put_page(store, printed(100, case=factories.case(model="Cosmos Nemotron 34B")))

    assert [("Cosmos Nemotron 34B", "Cosmos Nemotron 34B", None, {})] == rows_of(
        store, select(models.c.name, models.c.title, models.c.family, models.c.specification)
    )


def test_a_page_read_twice_changes_nothing(store: URL) -> None:
    """The second reading finds every row unchanged and adds no source."""
    rows = [printed(100), printed(200, case=factories.case(num_gpus=16), line=8)]

    assert (["new", "new"], 0) == put_page(store, *rows)
    assert (["unchanged", "unchanged"], 0) == put_page(store, *rows)
    assert [(1,)] == rows_of(store, select(func.count()).select_from(sources))


def test_a_figure_that_changed_is_a_new_revision_and_the_old_one_stays(store: URL) -> None:
    """A page edited in place supersedes what it said before."""
    put_page(store, printed(100))

    assert (["revised"], 0) == put_page(store, printed(110))
    columns = (results.c.revision, results.c.superseded, results.c.tokens_per_sec_per_gpu)
    expected = [(1, True, 100.0), (2, False, 110.0)]
    assert expected == rows_of(store, select(*columns).order_by(results.c.revision))


def test_a_result_says_since_when_it_is_no_longer_in_force(store: URL) -> None:
    """Superseded on the second day, withdrawn on the third; what is in force says nothing."""
    days = [factories.STARTED + timedelta(days=day) for day in range(3)]
    other = printed(200, case=factories.case(num_gpus=16))
    put_page(store, printed(100), other, when=days[0])
    put_page(store, printed(110), other, when=days[1])
    put_page(store, other, when=days[2])

    columns = (results.c.tokens_per_sec_per_gpu, results.c.superseded_at)
    found = dict(rows_of(store, select(*columns).where(results.c.superseded)))
    naive = {key: str(moment).removesuffix("+00:00") for key, moment in found.items()}
    assert {100.0: "2026-01-03 03:04:05", 110.0: "2026-01-04 03:04:05"} == naive
    assert [(200.0, None)] == rows_of(store, select(*columns).where(~results.c.superseded))


def test_a_page_that_is_reverted_is_a_revision_too(store: URL) -> None:
    """100, then 110, then 100 again: the page said three things, one after the other."""
    put_page(store, printed(100))
    put_page(store, printed(110))

    assert (["revised"], 0) == put_page(store, printed(100))
    assert [(100.0, 3)] == figures_in_force(store)


def test_a_row_that_only_moved_down_the_page_is_unchanged(store: URL) -> None:
    """The line is where a figure stands, not what it says."""
    put_page(store, printed(100, line=7))

    assert (["unchanged"], 0) == put_page(store, printed(100, line=9))


def test_of_two_pages_that_disagree_the_one_read_later_holds(store: URL) -> None:
    """Reading the earlier one again, as it was, changes nothing."""
    put_page(store, printed(100), path="old.md")

    assert (["revised"], 0) == put_page(store, printed(110), path="new.md")
    assert (["unchanged"], 0) == put_page(store, printed(100), path="old.md")
    assert (["unchanged"], 0) == put_page(store, printed(110), path="new.md")
    assert [(110.0, 2)] == figures_in_force(store)


def test_a_row_that_an_edited_page_no_longer_has_is_withdrawn(store: URL) -> None:
    """A corrected batch size is another case: the wrong one must not stay in force beside it."""
    wrong, other = printed(100, case=factories.case(global_batch_size=1)), printed(200)
    put_page(store, wrong, other)

    right = printed(100, case=factories.case(global_batch_size=256))
    assert (["new", "unchanged"], 1) == put_page(store, right, other)
    assert [(200.0, 1), (100.0, 1)] == figures_in_force(store)
    assert (["revised", "unchanged"], 1) == put_page(store, wrong, other)


@pytest.mark.parametrize(
    "later",
    [
        pytest.param({"release": factories.release("25.07", framework="nemo")}, id="release"),
    ],
)
def test_another_page_at_the_same_path_withdraws_nothing(
    store: URL, later: dict[str, object]
) -> None:
    """The next release's page, or another page altogether, leaves what was read before."""
    put_page(store, printed(100))

    assert (["new"], 0) == put_page(store, printed(300, **later))
    assert [(100.0, 1), (300.0, 1)] == figures_in_force(store)


def test_a_page_with_rows_that_cannot_be_read_withdraws_nothing(store: URL) -> None:
    """A row that is missing may be one of those that could not be read."""
    other = printed(200, case=factories.case(num_gpus=16))
    put_page(store, printed(100), other)

    assert (["unchanged"], 0) == put_page(store, printed(100), whole=False)


def test_a_page_read_again_with_its_release_replaces_its_unattributed_results(store: URL) -> None:
    """Results of no stated release give way once somebody states it."""
    put_page(store, printed(100, release=factories.release(None, framework="nemo")))

    attributed = printed(100, release=factories.release("25.04", framework="nemo"))
    assert (["new"], 1) == put_page(store, attributed)
    assert [("25.04",)] == rows_of(
        store,
        select(releases.c.version)
        .join(results, results.c.release_id == releases.c.id)
        .where(~results.c.superseded),
    )


def test_ga_and_dp_are_those_of_each_row_whatever_others_of_its_case_say(store: URL) -> None:
    """They are no part of a case's identity, and a mistake of one page is none of another."""
    said = [(88, None), (32, 4), (None, None)]
    for number, (ga, dp) in enumerate(said):
        version = factories.release(f"25.0{number}", framework="nemo")
        of = factories.case(gradient_accumulation=ga, data_parallel=dp)
        put_page(store, printed(100, case=of, release=version), path=f"{number}.md")

    with reading(store) as connection:
        rows = connection.execute(current()).all()
    assert said == [(row.gradient_accumulation, row.data_parallel) for row in rows]
    assert 1 == len({row.case_key for row in rows})


def test_a_rejection_is_noted_once(store: URL) -> None:
    """A file that stays broken does not fill the log."""
    entry = LogEntry("runs/a/run.json", Action.REJECTED, 3, "not JSON")
    for day in range(3):
        with writing(store) as connection:
            log.add(connection, [entry, entry], factories.STARTED + timedelta(days=day))

    question = select(ingest_log.c.path, ingest_log.c.action, ingest_log.c.line)
    assert [("runs/a/run.json", "rejected", 3)] == rows_of(store, question)


def test_two_inserts_of_the_same_revision_are_a_race_and_a_syntax_error_is_not(store: URL) -> None:
    """Only what another process caused is worth trying again."""
    row = {"name": "x", "title": "X", "specification": {}}
    with pytest.raises(IntegrityError) as clash, writing(store) as connection:
        connection.execute(systems.insert(), [row, row])
    with pytest.raises(Exception, match="no_such_table") as mistake, writing(store) as connection:
        connection.exec_driver_sql("SELECT * FROM no_such_table")

    assert is_race(clash.value)
    assert isinstance(mistake.value, OperationalError) == (store.get_backend_name() == "sqlite")
    assert not is_race(mistake.value)
