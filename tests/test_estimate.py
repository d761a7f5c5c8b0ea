"""What a training takes by the nearest result: the arithmetic by hand, and what is refused."""

from dataclasses import replace

import pytest

from perfdb.compare.estimate import PlannedTraining, estimate
from perfdb.record import Result

ONE = Result(
    framework="nemo", model="llama3-8b", system="dgx-h100", num_gpus=64, global_batch_size=128,
    sequence_length=8192, tokens_per_sec_per_gpu=10_000.0,
)  # fmt: skip


def test_time_and_cost_follow_from_the_rate_of_a_gpu() -> None:
    """10¹² tokens at 64 × 10,000 tokens/s are 1,562,500 s: 18.0845 days, 27,777.8 GPU-hours."""
    found = estimate([ONE], PlannedTraining(tokens=1e12, num_gpus=64, price_per_gpu_hour=2.5))
    assert found is not None
    assert (18.0845, 27_777.8) == pytest.approx((found.days, found.gpu_hours), rel=1e-5)
    assert found.cost == pytest.approx(69_444.4, rel=1e-5)
    assert () == found.distance


def test_the_nearest_in_gpus_and_sequence_is_taken_and_its_distance_is_named() -> None:
    few, long = replace(ONE, num_gpus=16), replace(ONE, num_gpus=128, sequence_length=16_384)
    found = estimate(
        [few, ONE, long], PlannedTraining(tokens=1e12, num_gpus=128, sequence_length=8192)
    )
    assert found is not None
    assert 64 == found.nearest.num_gpus
    assert ("measured on 64 GPUs, 2 times fewer than asked",) == found.distance
    found = estimate([few, long], PlannedTraining(tokens=1e12, num_gpus=128, sequence_length=8192))
    assert found is not None
    assert ("at sequence length 16,384 instead of 8,192",) == found.distance


def test_the_fastest_of_equally_near_results_is_taken() -> None:
    faster = replace(ONE, tokens_per_sec_per_gpu=12_000.0)
    found = estimate([ONE, faster], PlannedTraining(tokens=1e12, num_gpus=64))
    assert found is not None
    assert 12_000 == found.tokens_per_sec_per_gpu


@pytest.mark.parametrize(
    "far",
    [
        replace(ONE, num_gpus=15), replace(ONE, num_gpus=257),
        replace(ONE, sequence_length=32_769), replace(ONE, has_open_errors=True),
        replace(ONE, tokens_per_sec_per_gpu=None),
    ],
)  # fmt: skip
def test_nothing_is_guessed_where_no_result_is_near(far: Result) -> None:
    """More than four times the GPUs or the sequence away, wrong, or without a rate."""
    assert estimate([far], PlannedTraining(tokens=1e12, num_gpus=64, sequence_length=8192)) is None
