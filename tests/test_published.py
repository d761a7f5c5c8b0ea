"""data/published holds the seeds' figures: every row, equal cell for cell, read independently."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SEEDS = ROOT.parent / "shared" / "seeds"
PUBLISHED = ROOT / "data" / "published"

pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason="the seeds are not beside the project")


def pipe_rows(text: str) -> list[list[str]]:
    """The body rows of every pipe table in a text, the header first in each cell pair."""
    rows: list[list[str]] = []
    header: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or set(line) <= set("|-: "):
            continue
        if cells[0] == "Model":
            header = cells
        else:
            rows.append([f"{name}={cell}" for name, cell in zip(header, cells, strict=True)])
    return rows


def scraped_rows(text: str) -> list[list[str]]:
    """The rows of the page whose cells stand one a line: a header ends at a line of ---|---."""
    rows: list[list[str]] = []
    for block in re.split(r"^System: ", text, flags=re.MULTILINE)[1:]:
        lines = block.splitlines()[1:]
        width = next(n for n, line in enumerate(lines) if line.startswith("---|"))
        header = [line.removesuffix("|").strip() for line in lines[:width]]
        cells = [
            line.removesuffix("|").strip() for line in lines[width + 1 :] if line.endswith("|")
        ]
        for start in range(0, len(cells) - width + 1, width):
            pairs = zip(header, cells[start : start + width], strict=True)
            rows.append([f"{name}={cell}" for name, cell in pairs])
    return rows


def test_the_nemo_page_is_carried_over_whole() -> None:
    seed = scraped_rows((SEEDS / "nemo-25.04-performance-summary.txt").read_text())
    assert 39 == len(seed)
    assert seed == pipe_rows((PUBLISHED / "nemo-25.04.md").read_text())


def test_the_automodel_page_is_carried_over_whole() -> None:
    seed = pipe_rows((SEEDS / "automodel-performance-summary.txt").read_text())
    assert 15 == len(seed)
    assert seed == pipe_rows((PUBLISHED / "automodel.md").read_text())


def test_the_dfm_page_is_carried_over_whole() -> None:
    seed = pipe_rows((SEEDS / "dfm-performance-benchmarks.md").read_text())
    assert 5 == len(seed)
    assert seed == pipe_rows((PUBLISHED / "dfm.md").read_text())


def recipe_cells(text: str) -> list[tuple[str, str, str, str, str, str, str]]:
    """Size, precision, GPUs, step time, throughput, MFU and days of the transposed tables."""
    found = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        title = re.match(r"Nemotron4 (\w+) (BF16|FP8) \|", line)
        if title:
            gpus = re.findall(r"(\d+)x H100", line)
            columns = [[cell.strip() for cell in lines[number + 2 + row].split("|")[1:]]
                       for row in range(4)]  # fmt: skip
            found += [
                (title[1], title[2], count, *(column[place] for column in columns))
                for place, count in enumerate(gpus)
            ]
    return found  # type: ignore[return-value]  # four columns make seven cells


def test_the_nemotron_tables_are_carried_over_whole() -> None:
    seed = recipe_cells((SEEDS / "nemotron4-dgxc-recipe.txt").read_text())
    assert 24 == len(seed)
    ours = []
    for row in pipe_rows((PUBLISHED / "nemotron4.md").read_text()):
        cells = [cell.split("=")[1] for cell in row]
        ours.append((cells[0].split()[1], cells[1], cells[2], *cells[-4:]))
    assert seed == ours
