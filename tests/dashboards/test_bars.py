"""The words over the bars of a chart, and what a line connects."""

from dataclasses import replace

import pytest
from altair import LayerChart

from dashboards import charts
from dashboards.charts import ChartAxes, labels
from perfdb.metrics import METRICS
from perfdb.record import Origin, Result

TOKENS, MFU = METRICS["tokens_per_sec_per_gpu"], METRICS["mfu"]
ONE = Result(
    framework="nemo", release="25.04", model="llama3-8b", model_title="Llama 3 8B",
    system="dgx-h100", system_title="DGX-H100", precision="fp8", num_gpus=8,
    global_batch_size=128, sequence_length=8192, tokens_per_sec_per_gpu=13812.0,
)  # fmt: skip
BY_MODEL = ChartAxes(TOKENS, "model", "system")


def test_words_name_the_work_and_a_figure_has_the_digits_of_its_page() -> None:
    printed = replace(ONE, printed={"tokens_per_sec_per_gpu": "13812.0"})
    other = replace(ONE, task="lora", precision=None, num_gpus=1024, origin=Origin.MEASURED)
    assert [
        "Llama 3 8B · 8 × DGX-H100: 13,812.0\nPre-training · FP8 · NeMo Framework 25.04",
        "Llama 3 8B · 1,024 × DGX-H100: 13,812\n"
        "LoRA · precision unknown · NeMo Framework 25.04 · measured",
    ] == labels([printed, other], BY_MODEL)


def test_details_are_said_where_they_differ() -> None:
    other = replace(ONE, sequence_length=4096, variant="megatron-bridge")
    assert [
        "Pre-training · FP8 · NeMo Framework 25.04 · sequence 8,192",
        "Pre-training · FP8 · NeMo Framework 25.04 · Megatron-Bridge · sequence 4,096",
    ] == [words.partition("\n")[2] for words in labels([ONE, other], BY_MODEL)]


def test_a_computed_figure_says_so() -> None:
    """396 of the 1,979 TFLOP/s of an H100 in FP8 are 20.0 %."""
    computed = replace(ONE, model_tflops_per_sec_per_gpu=395.8)
    assert ["40.0%", "20.0% (computed)"] == [
        label.partition("\n")[0].rpartition(": ")[2]
        for label in labels([replace(ONE, mfu=0.4), computed], ChartAxes(MFU, "model", "system"))
    ]


@pytest.mark.parametrize(("along", "mark"), [("model", "bar"), ("release", "line"),
                                             ("gpus", "line")])  # fmt: skip
def test_numbers_and_releases_are_lines_and_the_rest_bars(along: str, mark: str) -> None:
    """Releases are words in their own order: 25.10 is no number below 25.2."""
    older = replace(ONE, release="25.2", num_gpus=16)
    order = ["NeMo Framework 25.2", "NeMo Framework 25.04"]
    drawn = charts.figures([ONE, older], ChartAxes(TOKENS, along, "system"), order)
    LayerChart.from_dict(drawn)  # raises an error for what Vega-Lite does not know
    assert mark == drawn["layer"][0]["mark"]["type"]
    x = drawn["layer"][0]["encoding"]["x"]
    if along == "release":
        assert ("nominal", order) == (x["type"], x["sort"])
    if along == "gpus":
        assert [8, 16] == x["axis"]["values"]
