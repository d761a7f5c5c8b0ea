"""The site reads the same from SQLite and from PostgreSQL, and writes to neither."""

from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL

from perfdb import ingest
from perfdb.db import migrate
from perfdb.record import Outcome
from perfdb.site import read, sources
from tests.factories import case, published, release, stored, write_run
from tests.site.conftest import DFM
from tests.site.samples import address, soup, words


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


def test_a_page_is_shown_as_it_was_read_with_figures_on_the_lines_they_lead_to(
    store: URL, tmp_path: Path
) -> None:
    """In its own encoding; a form feed and a line separator of Unicode are no ends of lines."""
    page = tmp_path / "dfm.md"
    page.write_text(DFM.read_text().replace("\n\n", "\n\f\u2028\n", 1), encoding="utf-16")
    migrate.upgrade(store)
    ingest.ingest([page], store, ingest.Options())
    contents = read.stored(store)
    [source] = contents.sources
    shown = soup(sources.listing(source, address).text)
    assert contents.results
    for result in contents.results:
        line = words(shown.select_one(f"#L{result.source_line}"))
        assert result.raw["Model"] in line
        assert str(result.global_batch_size) in line


def test_an_empty_store_gives_nothing(store: URL) -> None:
    assert read.Contents() == read.stored(store)


def test_a_model_that_the_catalogue_lacks_is_called_as_its_first_page_prints_it(
    store: URL, tmp_path: Path
) -> None:
    """In results, comparisons and the changelog; also a run of it, which knows the name alone.

    What stands in brackets behind the name is no part of it.
    """
    unknown = case(framework="nemo", model="llava-9b")
    row = {"Tokens / sec / GPU": "12,273"}
    for version, name, qualifiers in (
        ("25.02", "LLaVA-9B (dropout)", ("dropout",)),
        ("25.04", "LLaVA 9B", ()),
        ("25.07", "LLAVA-9B", ()),
    ):
        of = unknown.model_copy(update={"qualifiers": qualifiers})
        made = release(version, framework="nemo")
        page = published(case=of, release=made, raw={"Model": name, **row})
        stored(store, page, page=f"{version}.md")
    stored(store, write_run(tmp_path, case=case(model="llava-9b"), run_id="a"))
    contents = read.stored(store)
    shown = [*contents.results, *contents.revisions]
    sides = [side.shown for pair in contents.pairs for side in (*pair.comparison.only_a,
             *(match.b for match in pair.comparison.matched))]  # fmt: skip
    assert 8 == len(shown)
    assert sides
    assert {"LLaVA-9B"} == {one.model_title for one in (*shown, *sides)}
