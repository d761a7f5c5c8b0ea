"""data/published holds the seeds' figures: every row, equal cell for cell, read independently."""

from collections.abc import Callable

import pytest

from tests import seeds
from tests.seeds import SeedRow

PUBLISHED = seeds.ROOT / "data" / "published"

pytestmark = pytest.mark.skipif(not seeds.FOLDER.is_dir(), reason="no seeds beside the project")


@pytest.mark.parametrize(
    ("read", "page", "rows"),
    [
        (seeds.nemo, "nemo-25.04.md", 39),
        (seeds.automodel, "automodel.md", 15),
        (seeds.dfm, "dfm.md", 5),
    ],
)
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
