"""What follows from stated figures, worked by hand, and where nothing may follow."""

import pytest

from perfdb.stated import MFU, RATE, FigureInputs, computed, figure, is_computed


def result(**changed: object) -> FigureInputs:
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
        (result(), 32_768.0, 0.5),
        # As stated for all GPUs, before what the step time gives.
        (result(tokens_per_sec=98_500.0), 12_312.5, 0.5),
        (result(precision=None), 32_768.0, None),
        (result(step_time_s=None, model_tflops_per_sec_per_gpu=None), None, None),
        # Its steps may have samples of many lengths, its peak may be unknown.
        (result(origin="measured"), None, None),
        (result(withheld="out of memory"), None, None),
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
    row = result(tokens_per_sec_per_gpu=12_000.0, mfu=0.4)
    assert (12_000.0, 0.4, 4.0) == tuple(figure(row, name) for name in (RATE, MFU, "step_time_s"))
    assert (None, None, None) == tuple(computed(row, name) for name in (RATE, MFU, "step_time_s"))
