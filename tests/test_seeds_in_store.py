"""The seeds in the store: every row, field by field, as plain SQL gives it after an ingest."""

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.ingest import Options, Report, ingest
from perfdb.pages.base import PageContext
from tests import seeds
from tests.seeds import SeedRow, Value

PUBLISHED = seeds.ROOT / "data" / "published"

pytestmark = pytest.mark.skipif(not seeds.FOLDER.is_dir(), reason="no seeds beside the project")

IDENTITY = (
    "framework", "release", "container", "system", "model", "qualifiers", "task", "precision",
    "num_gpus", "global_batch_size", "micro_batch_size", "local_batch_size",
    "gradient_accumulation", "sequence_length", "tensor_parallel", "pipeline_parallel",
    "context_parallel", "expert_parallel", "expert_tensor_parallel", "virtual_pipeline",
    "data_parallel", "fsdp_enabled", "fsdp_size", "sequence_parallel", "kernels", "variant",
)  # fmt: skip
FIGURES = (
    "step_time_s", "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu",
    "tokens_per_sec",
)  # fmt: skip
QUESTION = """
    SELECT cases.*, results.gradient_accumulation, results.data_parallel,
           releases.version AS release, releases.container, systems.name AS system,
           models.name AS model, results.step_time_s, results.tokens_per_sec_per_gpu,
           results.model_tflops_per_sec_per_gpu, results.mfu, results.tokens_per_sec,
           results.origin, results.source_line, results.notes, sources.path AS source
    FROM results
    JOIN cases ON cases.id = results.case_id
    JOIN releases ON releases.id = results.release_id
    JOIN systems ON systems.id = cases.system_id
    JOIN models ON models.id = cases.model_id
    JOIN sources ON sources.id = results.source_id
    WHERE NOT results.superseded
"""
SEEDS: dict[str, tuple[Callable[[], list[SeedRow]], str, int]] = {
    "nemo-25.04-performance-summary.txt": (seeds.nemo, "nemo-25.04.md", 39),
    "automodel-performance-summary.txt": (seeds.automodel, "automodel.md", 15),
    "dfm-performance-benchmarks.md": (seeds.dfm, "dfm.md", 5),
    "nemotron4-dgxc-recipe.txt": (seeds.nemotron4, "nemotron4.md", 24),
}
"""The reader of each seed, the page that carries its figures, and how many rows it has."""

Fields = frozenset[tuple[str, Value]]


def ingested(store: Path, *paths: Path, **said: str) -> Report:
    url = URL.create("sqlite", database=str(store))
    return ingest(paths, url, Options(context=PageContext(**said)))


def stored(store: Path) -> list[sqlite3.Row]:
    """Every result in force."""
    with closing(sqlite3.connect(store)) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute(QUESTION).fetchall()


def fields_of(row: sqlite3.Row) -> Fields:
    """What the store says of a result: who, what, on what, how, how fast."""
    said = ((name, row[name]) for name in (*IDENTITY, *FIGURES))
    return frozenset((name, value) for name, value in said if value not in (None, ""))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with what `make run` reads into it beside the runs."""
    store = tmp_path_factory.mktemp("published") / "store.sqlite"
    assert () == ingested(store, PUBLISHED).rejected
    return store


def test_the_readers_find_every_row_that_the_seeds_hold() -> None:
    """Counted by hand on the pages."""
    assert {name: rows for name, (_, _, rows) in SEEDS.items()} == {
        name: len(read()) for name, (read, _, _) in SEEDS.items()
    }


@pytest.mark.parametrize("name", SEEDS)
def test_every_row_of_a_seed_is_in_the_store_as_printed(name: str, published: Path) -> None:
    """Each with all fields of its identity and all its figures, once, and nothing beside them."""
    read, page, _ = SEEDS[name]
    wanted = Counter(frozenset(row.fields().items()) for row in read())
    found = [row for row in stored(published) if Path(row["source"]).name == page]
    assert wanted == Counter(map(fields_of, found))
    assert {"published"} == {row["origin"] for row in found}


@pytest.mark.parametrize("name", SEEDS)
def test_the_line_that_the_store_names_prints_the_row(name: str, published: Path) -> None:
    """The cells of the seed stand in that line of the page, in any order, as printed."""
    read, page, _ = SEEDS[name]
    lines = (PUBLISHED / page).read_text().splitlines()
    by_fields = {frozenset(row.fields().items()): row.cells for row in read()}
    for row in stored(published):
        if Path(row["source"]).name == page:
            line = lines[row["source_line"] - 1]
            printed = Counter(cell.strip() for cell in line.strip("|").split("|"))
            assert Counter(by_fields[fields_of(row)].values()) <= printed, line


@pytest.mark.parametrize("name", SEEDS)
def test_a_seed_ingested_as_it_is_gives_what_its_page_gives(
    name: str, published: Path, tmp_path: Path
) -> None:
    """Field by field, the same releases and systems; DFM's page alone does not say its release."""
    release = {"release": "main"} if name.startswith("dfm") else {}
    report = ingested(tmp_path / "direct.sqlite", seeds.FOLDER / name, **release)
    _, page, rows = SEEDS[name]
    assert (rows, ()) == (report.new, report.rejected)
    by_hand = [row for row in stored(published) if Path(row["source"]).name == page]
    assert set(map(fields_of, by_hand)) == set(map(fields_of, stored(tmp_path / "direct.sqlite")))


@pytest.mark.parametrize("name", SEEDS)
def test_the_line_of_a_seed_holds_the_figure_that_was_read_from_it(
    name: str, tmp_path: Path
) -> None:
    """Of the recipe it is the row of step times, of the others the row of the table."""
    ingested(tmp_path / "direct.sqlite", seeds.FOLDER / name)
    lines = Counter(row["source_line"] for row in stored(tmp_path / "direct.sqlite"))
    assert Counter(row.line for row in SEEDS[name][0]()) == lines


def test_the_recipe_is_the_same_under_a_suffix_of_pages(tmp_path: Path, published: Path) -> None:
    """A .txt that quotes a line of a log is a page all the same."""
    copy = tmp_path / "recipe.md"
    copy.write_text((seeds.FOLDER / "nemotron4-dgxc-recipe.txt").read_text())
    report = ingested(tmp_path / "copy.sqlite", copy)
    assert (24, (), ()) == (report.new, report.rejected, report.notes)
    by_hand = {fields_of(row) for row in stored(published) if "nemotron4" in row["source"]}
    assert by_hand == set(map(fields_of, stored(tmp_path / "copy.sqlite")))


def test_a_page_without_rows_gives_no_result_and_no_complaint(tmp_path: Path) -> None:
    report = ingested(tmp_path / "empty.sqlite", seeds.FOLDER / "dfm-performance-skeleton.md")
    assert (0, (), (), ()) == (report.new, report.rejected, report.notes, report.unattributed)
    assert [] == stored(tmp_path / "empty.sqlite")
