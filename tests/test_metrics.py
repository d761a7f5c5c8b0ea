"""Derived figures, against what the Nemotron-4 recipe prints for each column of its tables.

Every cell is read from the recipe's text and fits: 24 throughputs, MFUs and times to train.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.views.runs import Measured
from perfdb import catalog, flops, metrics, record
from perfdb.db.rows import ResultRow
from perfdb.export.results import STORED
from perfdb.flops.conventions import NEMOTRON4_RECIPE
from perfdb.queries.results import FIELD_COLUMNS, all_revisions
from perfdb.site.data import ResultRevision
from perfdb.site.pages import revisions
from perfdb.stated import MFU, RATE, FigureInputs, computed, figure, is_computed
from perfdb.verify.figures import RECOMPUTED

RECIPE = Path(__file__).parents[2] / "shared" / "seeds" / "nemotron4-dgxc-recipe.txt"
COPY = Path(__file__).parents[1] / "data" / "published" / "nemotron4.md"
SEQUENCE_LENGTH = 4096
PEAK_TFLOPS = {"BF16": 989, "FP8": 1979}
FLOPS_PER_SAMPLE = {"15b": 434.5e12, "340b": 1.01e16}
"""The recipe prints 434.5e12; of the 340B model it prints none, and its MFU cells imply this."""


@dataclass(frozen=True)
class Column:
    """A column of the recipe's tables, as printed."""

    size: str
    precision: str
    num_gpus: int
    step_time_s: str
    throughput: str
    mfu_percent: str
    days: str

    @property
    def global_batch_size(self) -> int:
        """The recipe's configuration tables: four samples a GPU at 15B, a quarter at 340B."""
        return self.num_gpus * 4 if self.size == "15b" else self.num_gpus // 4

    @property
    def tokens_per_sec_per_gpu(self) -> float:
        return metrics.tokens_per_sec_per_gpu(
            self.global_batch_size, SEQUENCE_LENGTH, float(self.step_time_s), self.num_gpus
        )


def _columns_of_recipe(text: str) -> Iterator[Column]:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if heading := re.match(r"Nemotron4 (15b|340b) (BF16|FP8) \|", line):
            gpus = re.findall(r"(\d+)x H100", line)
            rows = [_cells(lines[number + below]) for below in (2, 3, 4, 5)]
            for column, count in enumerate(gpus):
                yield Column(*heading.groups(), int(count), *(row[column] for row in rows))


def _cells(row: str) -> list[str]:
    return [cell.strip().removesuffix("%") for cell in row.rstrip("| ").split("|")[1:]]


def _columns_of_copy(text: str) -> Iterator[Column]:
    for line in text.splitlines():
        cells = [cell.strip().removesuffix("%") for cell in line.strip("|").split("|")]
        if cells[0].startswith("Nemotron4 "):
            yield Column(cells[0].split()[1], cells[1], int(cells[2]), *cells[-4:])


COLUMNS = list(_columns_of_copy(COPY.read_text()))


def _half_a_unit(printed: str) -> float:
    """What rounding may have taken: half a unit of the last digit printed."""
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


@pytest.mark.skipif(not RECIPE.is_file(), reason="the recipe is not beside the project")
def test_the_published_tables_hold_the_recipes_columns() -> None:
    assert 8 + 8 + 4 + 4 == len(COLUMNS)
    assert sorted(_columns_of_recipe(RECIPE.read_text()), key=str) == sorted(COLUMNS, key=str)


@pytest.mark.parametrize("column", COLUMNS, ids=str)
def test_figures_are_those_of_the_recipe(column: Column) -> None:
    """Throughput, days to train a trillion tokens and MFU, within the rounding of each cell."""
    throughput = metrics.global_tokens_per_sec(column.tokens_per_sec_per_gpu, column.num_gpus)
    per_token = FLOPS_PER_SAMPLE[column.size] / SEQUENCE_LENGTH
    achieved = metrics.model_tflops_per_sec_per_gpu(column.tokens_per_sec_per_gpu, per_token)
    found = {
        column.throughput: throughput,
        column.days: metrics.days_to_train(1e12, float(column.throughput)),
        column.mfu_percent: 100 * metrics.mfu(achieved, PEAK_TFLOPS[column.precision]),
    }
    for printed, value in found.items():
        assert float(printed) == pytest.approx(value, abs=_half_a_unit(printed))


@pytest.mark.parametrize(("size", "unit"), [("15b", 0.05e12), ("340b", 0.005e16)])
def test_the_flops_behind_the_recipes_mfu_are_the_formulas_rounded(size: str, unit: float) -> None:
    """434.479e12 and 1.00909e16 per sample."""
    model = catalog.model(f"nemotron4-{size}")
    per_token = flops.flops_per_token(model, SEQUENCE_LENGTH, NEMOTRON4_RECIPE)
    assert per_token
    assert FLOPS_PER_SAMPLE[size] == pytest.approx(per_token * SEQUENCE_LENGTH, abs=unit)


def test_the_recipes_worked_examples() -> None:
    """4096 × 256 / 2.693 s on 64 GPUs in BF16: 389,371 tokens/s, 29.7 days, 65.26 %."""
    per_gpu = metrics.tokens_per_sec_per_gpu(256, 4096, 2.693, 64)
    rate = metrics.global_tokens_per_sec(per_gpu, 64)
    achieved = metrics.model_tflops_per_sec_per_gpu(per_gpu, 434.5e12 / 4096)
    assert 389_371 == round(rate)
    assert 29.7 == round(metrics.days_to_train(1e12, rate), 1)
    assert 0.6526 == round(metrics.mfu(achieved, 989), 4)


def test_cost_of_a_million_tokens() -> None:
    """1,000 tokens/s are 3.6 million an hour: at 3.60 an hour, 1.00 a million."""
    assert 1.0 == pytest.approx(metrics.cost_per_million_tokens(1_000, 3.60))


def test_scaling_efficiency_is_against_the_smallest_scale() -> None:
    """Of the recipe's 15B table: 2.66 s at 16 GPUs, 2.68 s at 256 and 2.78 s at 2,048."""
    rates = {
        column.num_gpus: column.tokens_per_sec_per_gpu
        for column in reversed(COLUMNS)
        if (column.size, column.precision) == ("15b", "BF16")
    }
    found = metrics.scaling_efficiency(rates)
    assert [16, 32, 64, 128, 256, 512, 1024, 2048] == list(found)
    assert 1 == found[16]
    assert 2.66 / 2.68 == pytest.approx(found[256])
    assert 2.66 / 2.78 == pytest.approx(found[2048])


def test_memory_headroom_of_the_recipes_log_line() -> None:
    """72,972,500,992 bytes of the 81,559 MiB that an H100 reports leave 12.5 GB, 14.7 %."""
    free = metrics.memory_headroom(72_972_500_992, 81_559 * 2**20)
    assert free is not None
    assert 0.1467 == round(free, 4)


def test_a_peak_above_the_memory_of_a_gpu_leaves_nothing_known() -> None:
    """All of it leaves 0; more of it was not of this GPU."""
    assert 0 == metrics.memory_headroom(81_559 * 2**20, 81_559 * 2**20)
    assert metrics.memory_headroom(81_560 * 2**20, 81_559 * 2**20) is None


@pytest.mark.parametrize(
    ("system", "precision", "peak_tflops"),
    [
        ("dgx-h100", "bf16", 989),
        ("dgx-h100", "fp8_cs", 1979),
        ("dgx-h100", "fp8", 1979),
        ("dgx-h100", "fp8_mx", 1979),
        ("dgx-h100", "fp32", None),
        ("cpu", "bf16", None),
    ],
)
def test_mfu_is_against_the_dense_peak_of_the_precision(
    system: str, precision: str, peak_tflops: float | None
) -> None:
    """NVIDIA's data sheet of the H100 SXM: 1,979 and 3,958 TFLOP/s with sparsity, half without."""
    found = catalog.peak(system, precision)
    assert peak_tflops == (found.tflops if found else None)


@pytest.mark.parametrize(
    ("where", "fields"),
    [
        ("perfdb/db/rows.py", {field.name for field in dataclasses.fields(ResultRow)}),
        ("perfdb/queries/results.py", {column.name for column in FIELD_COLUMNS}),
        ("perfdb/verify/figures.py", RECOMPUTED),
        ("perfdb/export/results.py", STORED),
        ("perfdb/record.py", {one.name for one in dataclasses.fields(record.Result)}),
        ("perfdb/stated.py", FigureInputs.model_fields),
        ("perfdb/queries/results.py", all_revisions().selected_columns.keys()),
        ("perfdb/site/data.py", ResultRevision.__dataclass_fields__),
        ("perfdb/site/pages/revisions.py", revisions.FIGURES),
        ("dashboards/views/runs.py", Measured.model_fields),
    ],
)
def test_every_metric_is_stored_recomputed_exported_compared_and_shown(
    where: str, fields: Iterable[str]
) -> None:
    """What follows from stored figures is no metric of its own but in `FOLLOWING`."""
    assert [] == sorted(metrics.METRICS.keys() - set(fields)), f"missing in {where}"


RATES = st.floats(1e-3, 1e9)
SIZES = st.integers(1, 100_000)


@given(st.dictionaries(SIZES, RATES, min_size=1, max_size=12), RATES)
def test_scaling_efficiency_has_no_unit(rates: dict[int, float], unit: float) -> None:
    """In other units it is the same; at the smallest scale it is 1."""
    found = metrics.scaling_efficiency(rates)
    other = metrics.scaling_efficiency({gpus: rate * unit for gpus, rate in rates.items()})

    assert sorted(rates) == list(found)
    assert 1 == found[min(rates)]
    assert found == pytest.approx(other)


def stated_row(**changed: object) -> FigureInputs:
    """A published row of 8 GPUs: 128 × 8,192 tokens in 4 s, and half an H100's 989 TFLOP/s."""
    fields: dict[str, object] = {
        "system": "dgx-h100",
        "precision": "bf16",
        "num_gpus": 8,
        "global_batch_size": 128,
        "sequence_length": 8192,
        "step_time_s": 4.0,
        "model_tflops_per_sec_per_gpu": 494.5,
        "origin": "published",
    }
    return FigureInputs.model_validate(fields | changed)


@pytest.mark.parametrize(
    ("row", "rate", "mfu"),
    [
        (stated_row(), 32_768.0, 0.5),
        # As stated for all GPUs, before what the step time gives.
        (stated_row(tokens_per_sec=98_500.0), 12_312.5, 0.5),
        (stated_row(precision=None), 32_768.0, None),
        (stated_row(step_time_s=None, model_tflops_per_sec_per_gpu=None), None, None),
        # Its steps may have samples of many lengths, its peak may be unknown.
        (stated_row(origin="measured"), None, None),
        (stated_row(withheld="out of memory"), None, None),
    ],
)
def test_what_is_not_stated_may_follow(
    row: FigureInputs, rate: float | None, mfu: float | None
) -> None:
    """Tokens/s/GPU from the whole job, MFU from TFLOP/s and the dense peak; never of a run."""
    for metric, expected in ((RATE, rate), (MFU, mfu)):
        assert expected == computed(row, metric) == figure(row, metric)
        assert is_computed(row, metric) == (expected is not None)


def test_what_is_stated_stays_as_it_is() -> None:
    """Whatever would follow; and of other figures nothing does."""
    row = stated_row(tokens_per_sec_per_gpu=12_000.0, mfu=0.4)
    assert (12_000.0, 0.4, 4.0) == tuple(figure(row, name) for name in (RATE, MFU, "step_time_s"))
    assert (None, None, None) == tuple(computed(row, name) for name in (RATE, MFU, "step_time_s"))
