"""The seeds in the store: every row, field by field, as plain SQL reads it after an ingest."""

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


def ingested(store: Path, *paths: Path, **context: str) -> Report:
    url = URL.create("sqlite", database=str(store))
    return ingest(paths, url, Options(context=PageContext(**context)))


def stored(store: Path) -> list[sqlite3.Row]:
    """Every current result."""
    with closing(sqlite3.connect(store)) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute(QUESTION).fetchall()


def fields_of(row: sqlite3.Row) -> Fields:
    """The identity and the figures of a result, without the empty ones."""
    known = ((name, row[name]) for name in (*IDENTITY, *FIGURES))
    return frozenset((name, value) for name, value in known if value not in (None, ""))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the published pages of this repository."""
    store = tmp_path_factory.mktemp("published") / "store.sqlite"
    assert () == ingested(store, PUBLISHED).rejected
    return store


@pytest.mark.parametrize("name", SEEDS)
def test_every_row_of_a_seed_is_in_the_store_and_the_line_that_prints_it(
    name: str, published: Path
) -> None:
    """Each with all fields of its identity and all its figures, once, and no other row.

    The number of rows was counted by hand.
    """
    read, page, count = SEEDS[name]
    seed = read()
    found = [row for row in stored(published) if Path(row["source"]).name == page]
    assert count == len(seed)
    assert Counter(frozenset(row.fields().items()) for row in seed) == Counter(
        map(fields_of, found)
    )
    assert {"published"} == {row["origin"] for row in found}
    lines = (PUBLISHED / page).read_text().splitlines()
    cells = {frozenset(row.fields().items()): row.cells for row in seed}
    for row in found:
        line = lines[row["source_line"] - 1]
        printed = Counter(cell.strip() for cell in line.strip("|").split("|"))
        assert Counter(cells[fields_of(row)].values()) <= printed, line


@pytest.mark.parametrize("name", SEEDS)
def test_a_seed_ingested_as_it_is_gives_what_its_page_gives(
    name: str, published: Path, tmp_path: Path
) -> None:
    """Field by field, with the lines of the seed; two do not state their release."""
    stated = {"dfm": "main", "nemotron4": "dgxc-benchmarking"}
    release = {"release": stated[of]} if (of := name.partition("-")[0]) in stated else {}
    report = ingested(tmp_path / "direct.sqlite", seeds.FOLDER / name, **release)
    read, page, count = SEEDS[name]
    assert (count, ()) == (report.new, report.rejected)
    by_hand = [row for row in stored(published) if Path(row["source"]).name == page]
    direct = stored(tmp_path / "direct.sqlite")
    assert set(map(fields_of, by_hand)) == set(map(fields_of, direct))
    assert Counter(row.line for row in read()) == Counter(row["source_line"] for row in direct)


def test_a_page_without_rows_gives_no_result_and_no_complaint(tmp_path: Path) -> None:
    report = ingested(tmp_path / "empty.sqlite", seeds.FOLDER / "dfm-performance-skeleton.md")
    assert (0, (), (), ()) == (report.new, report.rejected, report.notes, report.unattributed)
    assert [] == stored(tmp_path / "empty.sqlite")
