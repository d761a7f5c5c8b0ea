"""FLOPs per token that published pages imply, against the formula under the release's convention.

1000 × TFLOP/s/GPU ÷ tokens/s/GPU of a row, within what rounding of both figures allows. Rows that
no convention explains are listed with their distance, so that a formula cannot drift to meet them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfdb import catalog, flops
from perfdb.flops.base import Convention
from perfdb.flops.conventions import (
    AUTOMODEL_25_10,
    CAUSAL,
    MEGATRON_BRIDGE,
    MEGATRON_BRIDGE_26_04,
    NEMO_25_04,
)
from perfdb.record import Task

ROOT = Path(__file__).parents[1]
SEEDS = ROOT.parent / "shared" / "seeds"
PUBLISHED = ROOT / "data" / "published"


@dataclass(frozen=True)
class Row:
    """A row of a page, its two rates as they are printed."""

    page: str
    system: str
    model: str
    task: Task
    sequence_length: int
    tokens: str
    tflops: str

    @property
    def name(self) -> tuple[str, str, Task]:
        return self.system, self.model, self.task

    def gflops_per_token(self) -> float:
        return 1000 * float(self.tflops) / float(self.tokens)

    def rounding(self) -> float:
        """The share by which rounding of the two figures can have moved their quotient."""
        return _half(self.tokens) / float(self.tokens) + _half(self.tflops) / float(self.tflops)

    def formula(self, convention: Convention) -> float:
        """GFLOP per token."""
        spelled = re.sub(r"\(.*\)|2-node", "", self.model)
        model = catalog.model(catalog.named_model(spelled) or spelled)
        found = flops.flops_per_token(model, self.sequence_length, convention, self.task)
        assert found
        return found / 1e9

    def distance(self, convention: Convention) -> float:
        """By which share the page is above the formula."""
        return self.gflops_per_token() / self.formula(convention) - 1

    def follows(self, convention: Convention) -> bool:
        return abs(self.distance(convention)) <= self.rounding()


def _half(printed: str) -> float:
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


def _row(page: str, system: str, heading: str, cells: dict[str, str]) -> Row:
    tasks: dict[str, Task] = {"SFT": "sft", "LoRA": "lora"}
    task = tasks.get(cells.get("Task", ""), "lora" if "LoRA" in heading else "pretrain")
    plain = {re.sub(r"[^a-z]", "", key.lower()): cell for key, cell in cells.items()}
    length = next(
        cell for key, cell in plain.items() if key.endswith(("sequencelength", "seqlength"))
    )
    tokens = plain["tokenssecgpu"].replace(",", "")
    tflops = next(cell for key, cell in plain.items() if "tflop" in key)
    return Row(page, system, cells["Model"], task, int(length), tokens, tflops)


def _markdown(page: str, text: str) -> Iterator[Row]:
    """The rows of the tables, under the system and the heading that stand above them."""
    system, heading, columns = "", "", list[str]()
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if found := re.search(r"System: (DGX-\w+)", line):
            system = found[1]
        elif "Performance" in line or line.startswith("## "):
            heading = line
        elif cells[0] == "Model":
            columns = cells
        elif line.startswith("|") and len(cells) == len(columns) and "---" not in line:
            yield _row(page, system, heading, dict(zip(columns, cells, strict=True)))


def _scraped(page: str, text: str) -> Iterator[Row]:
    """The rows of a text with one cell a line, each ending in a bar."""
    for table in re.finditer(
        r"System: (DGX-\w+)\n((?:[^\n]*\|\n)+)(---[-|]+)\n((?:[^\n]*\|\n?)+)", text
    ):
        system, names, _, body = table.groups()
        columns, cells = (
            [line.removesuffix("|").strip() for line in lines.splitlines()]
            for lines in (names, body)
        )
        for start in range(0, len(cells), len(columns)):
            row = dict(zip(columns, cells[start : start + len(columns)], strict=True))
            yield _row(page, system, "", row)


def _published(page: str) -> list[Row]:
    return list(_markdown(page, (PUBLISHED / f"{page}.md").read_text()))


NEMO, AUTOMODEL = _published("nemo-25.04"), _published("automodel")
ROWS = [row for row in (*NEMO, *AUTOMODEL) if row.tflops]

OTHERS = {
    (system, "Mixtral-8x22B", "pretrain"): CAUSAL
    for system in ("DGX-GB200", "DGX-B200", "DGX-H100")
}
"""Rows that follow another convention than their page's."""

UNEXPLAINED: dict[str, dict[tuple[str, str, str], float]] = {
    "16 key/value heads in place of 8 would make 0.97 %": {
        ("DGX-GB200", "LLAMA3-405B", "pretrain"): 0.0098,
        ("DGX-B200", "LLAMA3-405B", "pretrain"): 0.0099,
        ("DGX-H100", "LLAMA3-405B", "pretrain"): 0.0085,
    },
    "attention within packed examples, of lengths that are not published": {
        ("DGX-GB200", "LLAMA3-8B", "sft"): 0.0062,
        ("DGX-B200", "LLAMA3-8B", "sft"): 0.0065,
        ("DGX-H100", "LLAMA3-8B", "sft"): 0.0035,
        ("DGX-GB200", "LLAMA3-8B", "lora"): 0.0096,
        ("DGX-B200", "LLAMA3-8B", "lora"): 0.0102,
        ("DGX-H100", "LLAMA3-8B", "lora"): 0.0066,
        ("DGX-B200", "LLAMA3-70B", "lora"): 0.0020,
        ("DGX-H100", "LLAMA3-70B", "lora"): 0.0018,
        ("DGX-GB200", "LLAMA3-405B", "lora"): 0.0051,
        ("DGX-B200", "LLAMA3-405B", "lora"): 0.0055,
        ("DGX-H100", "LLAMA3-405B", "lora"): 0.0049,
    },
    "the tokens per second are half of what they must be": {
        ("DGX-GB200", "LLAMA3-70B", "lora"): 1.0040,
    },
    "an earlier formula for Mamba hybrids than that of AutoModel 0.7.0": {
        ("DGX-H100", "Nemotron V3 Super 120B (26.02)", "pretrain"): -0.0106,
        ("DGX-H100", "Nemotron V3 Nano 30B (26.02)", "pretrain"): -0.0093,
    },
}  # fmt: skip
DISTANCES = {name: far for rows in UNEXPLAINED.values() for name, far in rows.items()}
EXPLAINED = [row for row in ROWS if row.name not in DISTANCES]
STRANGE = [row for row in ROWS if row.name in DISTANCES]


def _convention(row: Row) -> Convention:
    usual = NEMO_25_04 if row.page.startswith("nemo") else AUTOMODEL_25_10
    return OTHERS.get(row.name, usual)


def test_every_row_with_both_figures_is_read() -> None:
    """NeMo 25.04 prints no TFLOP/s of GPT-3 175B, on three systems."""
    assert (24 + 15, 9 + 6) == (len(NEMO), len(AUTOMODEL))
    assert 39 - 3 + 15 == len(ROWS)
    assert {"GPT3-175B"} == {row.model for row in NEMO if not row.tflops}
    assert len(DISTANCES) == len(STRANGE)


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the pages as they were read are not there")
def test_the_pages_are_what_was_read() -> None:
    nemo = _scraped("nemo-25.04", (SEEDS / "nemo-25.04-performance-summary.txt").read_text())
    automodel = _markdown(
        "automodel", (SEEDS / "automodel-performance-summary.txt").read_text("utf-8", "replace")
    )
    assert sorted(nemo, key=str) == sorted(NEMO, key=str)
    assert sorted(automodel, key=str) == sorted(AUTOMODEL, key=str)


@pytest.mark.parametrize("row", EXPLAINED, ids=str)
def test_a_row_follows_its_release(row: Row) -> None:
    convention = _convention(row)
    assert row.gflops_per_token() == pytest.approx(row.formula(convention), rel=row.rounding())


@pytest.mark.parametrize("row", STRANGE, ids=str)
def test_a_row_that_no_convention_explains_is_known_with_its_distance(row: Row) -> None:
    assert DISTANCES[row.name] == pytest.approx(row.distance(_convention(row)), abs=6e-5)
    assert [] == [one.name for one in flops.CONVENTIONS.values() if row.follows(one)]


@pytest.mark.parametrize(
    ("model", "sequence_length", "gflops"),
    [("LLAMA3-8B", 8192, 57.9), ("LLAMA3-70B", 8192, 481.5), ("Nemotron-15B", 4096, 94.0),
     ("Mixtral-8x7B", 4096, 82.9)],
)  # fmt: skip
def test_the_rows_imply_these_flops(model: str, sequence_length: int, gflops: float) -> None:
    row = next(row for row in NEMO if row.name == ("DGX-GB200", model, "pretrain"))
    assert sequence_length == row.sequence_length
    assert gflops == round(row.gflops_per_token(), 1)
    assert gflops == pytest.approx(row.formula(NEMO_25_04), rel=1e-3)


@pytest.mark.parametrize(
    ("model", "sequence_length", "task", "low", "high"),
    [
        ("llama3-8b", 8192, "pretrain", 51.46, 51.50),
        ("llama3-70b", 8192, "pretrain", 448.8, 449.6),
        ("llama3.1-405b", 8192, "pretrain", 2520.9, 2530),
        ("llama3-70b", 4096, "sft", 432.2, 435.3),
        ("qwen3-30b-a3b", 4096, "pretrain", 22.81, 23.11),
        ("qwen3-235b-a22b", 4096, "pretrain", 147.7, 148.3),
        ("deepseek-v3-671b-mtp", 4096, "pretrain", 259.6, 260.4),
        ("deepseek-v3-671b", 4096, "pretrain", 249.1, 249.7),
        ("kimi-k2", 4096, "pretrain", 204.2, 204.6),
        ("nemotron-v3-nano-30b", 8192, "pretrain", 22.1, 22.6),
        ("nemotron-v3-super-120b-mtp", 8192, "pretrain", 84.3, 85.4),
    ],
)
def test_megatron_bridge_pages_are_within_their_range(
    model: str, sequence_length: int, task: Task, low: float, high: float
) -> None:
    """Ranges over all releases that a page shows, widened by 0.1 % for the rounding of rows."""
    for convention in (MEGATRON_BRIDGE, MEGATRON_BRIDGE_26_04):
        found = flops.flops_per_token(catalog.model(model), sequence_length, convention, task)
        assert found
        assert low * 0.999 <= found / 1e9 <= high * 1.001


@pytest.mark.parametrize(
    ("convention", "sequence_length", "low", "high"),
    [
        (MEGATRON_BRIDGE_26_04, 4096, 27.1, 27.4),
        (MEGATRON_BRIDGE_26_04, 8192, 30.7, 30.8),
        (MEGATRON_BRIDGE, 4096, 32.58, 32.63),
    ],
    ids=str,
)
def test_gpt_oss_was_counted_without_its_gate_until_26_04(
    convention: Convention, sequence_length: int, low: float, high: float
) -> None:
    """The same token: 27.2 GFLOP, and from 26.06 on 32.6."""
    found = flops.flops_per_token(catalog.model("gpt-oss-120b"), sequence_length, convention)
    assert found
    assert low <= found / 1e9 <= high * 1.0001
