"""The site reads the same from SQLite and from PostgreSQL, and writes to neither."""

from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL

from perfdb.record import Outcome
from perfdb.site import read
from tests.factories import published, stored, write_run


def test_runs_results_and_sources_are_read(store: URL, tmp_path: Path) -> None:
    stored(store, write_run(tmp_path, run_id="a"), write_run(tmp_path, run_id="b"), published())
    contents = read.stored(store)
    assert [("measured", 2), ("published", 1)] == [
        (result.origin, result.num_results) for result in contents.results
    ]
    assert ["a", "b"] == [page.run.run_id for page in contents.runs]
    assert ["data/published/page.md"] == [source.path for source in contents.sources]
    assert contents == read.stored(store)


def test_of_runs_of_one_case_it_is_known_how_many_have_finished(store: URL, tmp_path: Path) -> None:
    lost = write_run(tmp_path, run_id="c", outcome=Outcome.OUT_OF_MEMORY, error="out of memory")
    kept = [write_run(tmp_path, run_id=name) for name in ("a", "b")]
    stored(store, *kept, lost)
    [result] = read.stored(store).results
    assert (3, 2) == (result.num_results, result.num_finished)


def test_a_runs_page_holds_its_recipe_steps_and_files(store: URL, tmp_path: Path) -> None:
    stored(store, write_run(tmp_path, run_id="a"))
    [page] = read.stored(store).runs
    assert "name: llama3-8b\n" == page.recipe_text
    assert list(range(1, 11)) == [step.step for step in page.steps]
    assert {"console.log", "recipe.yaml", "run.json", "steps.jsonl"} <= {
        file.name for file in page.files
    }
    assert datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC) == page.run.started_at.replace(tzinfo=UTC)


def test_an_empty_store_gives_nothing(store: URL) -> None:
    assert read.Contents() == read.stored(store)
