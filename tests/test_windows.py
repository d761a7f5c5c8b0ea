"""Windows: which steps a figure is taken over."""

import pytest

from perfdb import metrics, windows
from perfdb.errors import InputError
from perfdb.record import StepRecord

STEPS = [StepRecord(step=n, step_time_s=float(n)) for n in range(1, 11)]


@pytest.mark.parametrize(
    ("name", "picked"),
    [("last", [10]), ("last_n(3)", [8, 9, 10]), ("window(3, 5)", [3, 4, 5]),
     ("skip_warmup(8)", [9, 10]), ("skip_warmup(0)", list(range(1, 11)))],
)  # fmt: skip
def test_a_window_picks_its_steps(name: str, picked: list[int]) -> None:
    assert picked == [step.step for step in windows.named(name).pick(STEPS)]


@pytest.mark.parametrize("name", ["first", "last(3)", "window(3)", "skip_warmup", "last_n(-1)", ""])
def test_a_window_that_is_none_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InputError, match="known: last, last_n"):
        windows.named(name)


def test_the_name_of_a_window_gives_the_window_again() -> None:
    for window in (
        windows.last(),
        windows.last_n(4),
        windows.between(2, 5),
        windows.skip_warmup(3),
    ):
        assert window.name == windows.named(window.name).name


def test_a_summary_by_hand() -> None:
    """1, 2, 3, 4: median and mean 2.5, sample deviation √(5/3), deciles 1.3 and 3.7."""
    found = windows.summarise(STEPS[:4])
    assert found
    assert (4, 2.5, 2.5, 4.0) == (found.num_steps, found.median_s, found.mean_s, found.last_s)
    assert 1.2909944 == pytest.approx(found.stdev_s)
    assert (1.3, 3.7) == pytest.approx((found.p10_s, found.p90_s))


def test_one_step_has_no_spread_and_none_has_no_summary() -> None:
    one = windows.summarise(STEPS[:1])
    assert one
    assert (None, None, None) == (one.stdev_s, one.p10_s, one.p90_s)
    assert windows.summarise([]) is None


def test_the_metrics_of_the_nemotron_recipes_worked_example() -> None:
    """4096 × 256 / 2.693 = 389,371 tokens/s; 29.7 days to 1T tokens; MFU 65.26 %."""
    per_gpu = metrics.tokens_per_sec_per_gpu(256, 4096, 2.693, 64)
    assert 389371 == round(per_gpu * 64)
    assert 29.7 == round(metrics.days_to_train(1e12, per_gpu * 64), 1)
    achieved = metrics.model_tflops_per_sec_per_gpu(per_gpu, 434.5e12 / 4096)
    assert 65.26 == round(100 * metrics.mfu(achieved, 989), 2)
