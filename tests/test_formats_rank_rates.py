"""The TFLOP/s of rank 0 come to the right iterations, or to none."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdb.formats import FORMATS, ParsedLog

ITERATION = (
    " iteration %8d/%8d | consumed samples: 12 | elapsed time per iteration (ms): %.1f | "
    "lm loss: 1.5 | number of nan iterations:   0 |"
)
RATE = "Step Time : %.2fs GPU utilization: %d.0MODEL_TFLOP/s/GPU"
thorough = settings(max_examples=150, deadline=None)


def iterations(times: Sequence[float]) -> list[str]:
    return [ITERATION % (n, len(times), 1000 * time) for n, time in enumerate(times, start=1)]


def rates(times: Sequence[float]) -> list[str]:
    """The rate of each step is 500 and its number."""
    return [RATE % (time, 500 + n) for n, time in enumerate(times, start=1)]


def woven(times: Sequence[float], ahead: int) -> list[str]:
    """Both by turns, the rate of a step so many iterations before its own line."""
    lines = iterations(times)
    places = [(n + 0.5, line) for n, line in enumerate(lines)]
    places += [(n - ahead, rate) for n, rate in enumerate(rates(times))]
    return [line for _, line in sorted(places, key=lambda one: one[0])]


def parsed(lines: Sequence[str]) -> ParsedLog:
    (log,) = FORMATS["megatron_bridge"].parse("a.log", ["\n".join(lines).encode() + b"\n"])
    return log


def found(lines: Sequence[str]) -> dict[int, float | None]:
    return {one.step: one.model_tflops_per_sec_per_gpu for one in parsed(lines).readings}


def are_right(lines: Sequence[str]) -> bool:
    return all(rate in (None, 500 + step) for step, rate in found(lines).items())


def without(lines: Sequence[str], step: int) -> list[str]:
    """The lines without the rate of a step."""
    return [line for line in lines if f": {500 + step}.0MODEL" not in line]


ALIKE = [9.0] + [2.0] * 29
"""All steps but the first take the same time."""
DIFFERENT = [9.0] + [2.0 + n % 7 / 10 for n in range(29)]
BEFORE, BEHIND = 0, -1


@pytest.mark.parametrize("ahead", [BEFORE, BEHIND])
@pytest.mark.parametrize("times", [ALIKE, DIFFERENT, [2.0] * 30])
def test_each_iteration_has_its_own_rate_wherever_that_stands(
    times: Sequence[float], ahead: int
) -> None:
    assert {n: 500 + n for n in range(1, 31)} == found(woven(times, ahead))
    expected = {n: None if n == 10 else 500 + n for n in range(1, 31)}
    assert expected == found(without(woven(times, ahead), 10))


@pytest.mark.parametrize("ahead", [BEFORE, BEHIND, 2, -3])
def test_times_tell_how_far_a_rate_is_from_its_iteration(ahead: int) -> None:
    times = [9.0, *(2.0 + n / 10 for n in range(29))]
    lines = without(woven(times, ahead), 12)
    assert {n: None if n == 12 else 500 + n for n in range(1, 31)} == found(lines)


def test_a_log_that_ends_behind_a_lost_rate_gives_no_step_that_of_the_next() -> None:
    lines = without(woven([2.0] * 30, BEFORE), 10)
    cut = lines[: lines.index(rates([2.0] * 30)[10]) + 1]
    assert are_right(cut)
    assert found(cut)[10] is None


def test_rates_that_may_stand_before_or_behind_are_left_out_and_told() -> None:
    """Of lines of equal times from the middle of a run, iterations 6 to 20, nothing says which."""
    log = parsed(woven([2.0] * 30, BEFORE)[11:40])
    assert {None} == {one.model_tflops_per_sec_per_gpu for one in log.readings}
    expected = "14 TFLOP/s figures may belong to one of several iterations: they are left out"
    assert [expected] == [note.message for note in log.notes]


def test_the_files_of_both_ranks_joined_give_each_iteration_its_rate() -> None:
    lines = [*rates(ALIKE), *iterations(ALIKE)]
    assert {n: 500 + n for n in range(1, 31)} == found(lines)


@thorough
@given(
    times=st.lists(st.sampled_from([2.0, 2.01, 2.02, 2.5]), min_size=5, max_size=30),
    ahead=st.sampled_from([BEFORE, BEHIND]),
    lost=st.sets(st.integers(2, 30), max_size=3),
    end=st.integers(4, 80),
)
def test_no_iteration_has_the_rate_of_another(
    times: list[float], ahead: int, lost: set[int], end: int
) -> None:
    lines = woven([9.0, *times], ahead)
    for step in lost:
        lines = without(lines, step)
    assert are_right(lines[:end])


def test_a_rate_broken_over_two_lines_is_read_and_one_that_cannot_be_is_told() -> None:
    lines = woven(DIFFERENT, BEFORE)
    broken = [line.replace("utiliz", "utiliz\n") for line in lines]
    assert found(lines) == found(broken)
    log = parsed([lines[0].replace("utilization", "use"), *lines[1:]])
    assert "1 'Step Time' line without a time and a rate" in [note.message for note in log.notes]
