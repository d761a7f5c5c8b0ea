"""data/published holds the seeds' figures: every row, equal cell for cell, read independently."""

import re
from collections.abc import Callable

import pytest

from tests import seeds
from tests.seeds import SeedRow

PUBLISHED = seeds.ROOT / "data" / "published"

pytestmark = pytest.mark.skipif(not seeds.FOLDER.is_dir(), reason="no seeds beside the project")


@pytest.mark.parametrize(
    ("read", "page", "rows"),
    [(seeds.nemo, "nemo-25.04.md", 39), (seeds.automodel, "automodel.md", 15),
     (seeds.dfm, "dfm.md", 5)],
)  # fmt: skip
def test_a_page_is_carried_over_whole(
    read: Callable[[], list[SeedRow]], page: str, rows: int
) -> None:
    """Row for row, each cell under the same title, in the same order."""
    ours = [cells for _, cells in seeds.pipe_rows((PUBLISHED / page).read_text())]
    assert rows == len(ours)
    assert [list(row.cells.items()) for row in read()] == [list(cells.items()) for cells in ours]


def test_the_recipe_s_tables_are_carried_over_whole() -> None:
    """A row for each column, with its figures, its configuration, its model and precision."""
    text = (PUBLISHED / "nemotron4.md").read_text()
    ours = [cells for _, cells in seeds.pipe_rows(text)]
    assert 24 == len(ours)
    for row, cells in zip(seeds.nemotron4(), ours, strict=True):
        renamed = {"Sequence Length" if n == "SeqLen" else n: c for n, c in row.cells.items()}
        said = {
            "#-GPUs": str(row.said["num_gpus"]),
            "Precision": str(row.said["precision"]).upper(),
        }
        assert renamed | said | {"Model": cells["Model"]} == cells
        assert row.said["model"] == seeds.MODELS[cells["Model"]]


def test_the_configuration_files_that_automodel_names_are_carried_over_in_their_order() -> None:
    """Six of pre-training and six of fine-tuning, below the tables that they are of.

    The seed has no spaces between one's description and the next one's name.
    """
    seed = (seeds.FOLDER / "automodel-performance-summary.txt").read_text()
    named = r"(?:custom|deepseek|gptoss|kimi|llama|qwen)[a-z0-9_]*\.yaml"
    notes = re.findall("^Note: Config.*", (PUBLISHED / "automodel.md").read_text(), re.MULTILINE)
    pretraining, fine_tuning = (re.findall(r"\w+\.yaml", note) for note in notes)
    assert 12 == seed.count(".yaml")
    assert re.findall(named, seed) == [*pretraining, *fine_tuning]
    assert (6, 6) == (len(pretraining), len(fine_tuning))


def test_the_folder_of_configuration_files_that_dfm_names_is_carried_over() -> None:
    """Once below each of its four tables."""
    [folder] = re.findall(
        r"`(examples/\S+)`", (seeds.FOLDER / "dfm-performance-benchmarks.md").read_text()
    )
    assert 4 == (PUBLISHED / "dfm.md").read_text().count(
        f"Note: Updated configuration files: {folder}."
    )
