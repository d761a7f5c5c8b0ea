"""A log of any number of steps says the same from a file as from memory, and takes little of it."""

import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdb import aggregation, formats, measure
from perfdb.formats import (
    ParsedLog,
    Reading,
    order,
    piecewise,
    readings,
    scan,
    shelf,
    steplines,
)
from perfdb.formats.readings import Readings
from perfdb.formats.shelf import Shelf
from perfdb.formats.steps import settle_columns
from perfdb.record import Outcome, PartialCase
from tests import factories
from tests.logs import step_line

FEW = {
    (shelf, "MOST_IN_MEMORY"): 2, (piecewise, "AT_ONCE"): 3, (readings, "_AT_ONCE"): 2,
    (shelf, "_AT_ONCE"): 2, (order, "SORTED_AT_ONCE"): 5,
}  # fmt: skip
"""So many steps are many."""

READING = st.builds(
    Reading,
    line=st.integers(1, 60),
    step=st.integers(-1, 7),
    step_time_s=st.sampled_from([-1.0, 1e-6, 2.0, 2.5, 3.0, 1e6]),
    loss=st.none() | st.floats(),
    grad_norm=st.none(),
    peak_memory_bytes=st.none() | st.integers(1, 2**63 - 1),
    tokens=st.none() | st.sampled_from([128 * 8192, 2 * 128 * 8192]),
    skipped=st.booleans(),
    model_tflops_per_sec_per_gpu=st.none() | st.sampled_from([0.0, 400.0, 410.0, 1e308]),
    tokens_per_sec_per_gpu=st.none() | st.sampled_from([0.0, 0.5]),
    mfu=st.none(),
)
LOGS = st.lists(READING, max_size=12) | st.integers(1, 30).map(
    lambda size: [Reading(3 * n, n, 2 + n % 7 / 10, 9.5 - n / 100) for n in range(1, size)]
)
"""Lines in any order, and those of a run that goes on without a fault."""


@pytest.fixture(scope="module")
def few() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def in_few(patch: pytest.MonkeyPatch, told: Callable[[], str]) -> str:
    """What is told where few steps are many."""
    with patch.context() as small:
        for (module, name), most in FEW.items():
            small.setattr(module, name, most)
        return told()


def shelved(parts: Sequence[Sequence[Reading]]) -> Readings:
    on_it = Shelf()
    for some in parts:
        on_it.add(Readings.of(some))
    assert len(on_it) == sum(map(len, parts))
    return on_it.readings()


def judged(given: Sequence[Reading], window: str, averages: bool) -> str:
    """All that becomes of the lines of a log."""
    steps = settle_columns("a.log", shelved([given[:3], given[3:]]))
    log = ParsedLog(PartialCase(), readings=steps.readings, outcome=Outcome.FINISHED)
    of = measure.LogRun(factories.case(), factories.release(), "run", "0" * 64, averages)
    measured = measure.of_log(log, of, aggregation.named(window))
    rows = [*measured.steps]
    assert rows == [measured.steps[place] for place in range(len(rows))]
    return repr((steps, rows, measured.run, measured.result))


@settings(max_examples=50, deadline=None)
@given(
    given=LOGS,
    window=st.sampled_from(["last", "last_n(3)", "window(2,6)", "skip_warmup(1)"]),
    averages=st.booleans(),
)
def test_steps_are_judged_from_a_file_as_in_memory(
    few: pytest.MonkeyPatch, given: list[Reading], window: str, averages: bool
) -> None:
    """To the last bit, whatever their order is and whatever they lack."""
    assert in_few(few, lambda: judged(given, window, averages)) == judged(given, window, averages)


@given(parts=st.lists(st.lists(READING, max_size=4), max_size=6), start=st.integers(0, 9))
def test_steps_on_a_shelf_are_those_that_were_put_there(
    few: pytest.MonkeyPatch, parts: list[list[Reading]], start: int
) -> None:
    expected = repr(tuple(one for some in parts for one in some)[start:])
    assert in_few(few, lambda: repr(shelved(parts)[start:])) == expected


@settings(max_examples=60, deadline=None)
@given(
    woven=st.lists(
        st.sampled_from([*["ri"] * 6, "ir", "i", "r", "rii", "rrii", "rriss", "R", "b"])
    ),
    times=st.sampled_from([[2.0], [2.0, 2.1, 2.2, 9.0], [2.0, 2.01]]),
    left=st.integers(0, 1),
)
def test_rates_of_another_rank_are_paired_in_files_as_in_memory(
    few: pytest.MonkeyPatch, woven: list[str], times: list[float], left: int
) -> None:
    """Iterations, by two ranks too, rates of them and of none, and steps that the log goes back."""
    content = bridge("".join(woven), times, left)

    def told() -> str:
        return repr(formats.named("megatron_bridge").parse("a.log", [content]))

    assert in_few(few, told) == told()


@given(st.lists(st.integers(-3, 3), max_size=40))
def test_numbers_are_put_in_order_in_files(few: pytest.MonkeyPatch, numbers: list[int]) -> None:
    """Equal ones stay in theirs, and are all there at once."""

    def ordered() -> str:
        return repr([one for some in order.in_order(np.array(numbers, np.int64)) for one in some])

    places = sorted(range(len(numbers)), key=numbers.__getitem__)
    assert in_few(few, ordered) == ordered() == repr([np.int64(place) for place in places])


@settings(max_examples=15, deadline=None)
@given(st.dictionaries(st.floats(1e-12, 1e9), st.integers(1, 3), min_size=1, max_size=6))
def test_a_rank_is_told_without_sorting(few: pytest.MonkeyPatch, counts: dict[float, int]) -> None:
    values, often = np.array([*counts]), np.array([*counts.values()])

    def ranks() -> str:
        ranked = piecewise.by_rank(lambda: piecewise.pieces(values, often))
        return repr([ranked(rank) for rank in range(often.sum())])

    in_order = sorted(value for value, count in counts.items() for _ in range(count))
    assert in_few(few, ranks) == ranks() == repr(in_order)


def peak_bytes(name: str, content: bytes) -> int:
    """The most memory that a log takes until its rows are stored."""
    tracemalloc.start()
    try:
        (log,) = formats.named(name).parse("a.log", [content])
        of = measure.LogRun(factories.case(), factories.release(), "run", "0" * 64, averages=True)
        measured = measure.of_log(log, of, aggregation.named("skip_warmup(10)"))
        deque(measured.steps, maxlen=0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LONG: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "one by one": ("nemo2", lambda size: again(size, 0)),
    "restarts": ("nemo2", lambda size: again(size, 2)),
    "rates of another rank": ("megatron_bridge", lambda size: bridge("ri" * size, [2.0, 9.0], 1)),
    "all of two ranks": (
        "megatron_bridge",
        lambda size: bridge("rris" * (size // 2), [2.0, 9.0], 1),
    ),
    "times": (
        "automodel_benchmark",
        lambda size: (b"Max iter time: 2.5 s".ljust(200) + b"\n") * size,
    ),
}
"""What long logs hold, their formats, and how they are made."""


@pytest.mark.parametrize(("name", "made"), LONG.values(), ids=LONG)
def test_the_steps_of_a_log_are_not_held_in_memory(
    monkeypatch: pytest.MonkeyPatch, name: str, made: Callable[[int], bytes]
) -> None:
    """Not even one number of each, which would be 8 bytes.

    What other threads take meanwhile is not the log's, and not there each time: the least counts.
    """
    pieces = {(steplines, "MADE_AT_ONCE"): 1, (steplines, "MANY_STEPS"): 1, (scan, "HEAP_BYTES"): 0}
    for module, constant in (*FEW, *pieces):
        monkeypatch.setattr(module, constant, pieces.get((module, constant), 500))
    monkeypatch.setattr(scan, "BLOCK_BYTES", 1 << 16)
    least = [min(peak_bytes(name, made(size)) for _ in range(2)) for size in (2000, 8000)]
    assert (least[1] - least[0]) / 6000 < 8


def bridge(woven: str, times: Sequence[float], left: int = 0) -> bytes:
    """A log of iterations and rates by turns, of a run that so many iterations are left of.

    `i`: the next iteration, `s`: the same again, `b`: the one before; `r`: the next rate, `R`:
    that of a step that is nowhere.
    """
    lines, printed, rated, planned = [], 0, 0, woven.count("i") + left
    for one in woven:
        printed, rated = printed + (one == "i") - (one == "b"), rated + (one == "r")
        if one in "rR":
            time = times[rated % len(times)] + (one == "R")
            lines.append(f"Step Time : {time:.2f}s GPU utilization: {500 + rated}MODEL_TFLOP/s/GPU")
        else:
            time = 1000 * times[printed % len(times)]
            lines.append(
                f" iteration {printed}/{planned} | consumed samples: 8 | elapsed time per "
                f"iteration (ms): {time} | lm loss: 1.5 | number of nan iterations: 0 |"
            )
    return "".join(f"{line}\n" for line in lines).encode()


def again(num_steps: int, restarts: int) -> bytes:
    again = [num_steps * part // (restarts + 1) for part in range(1, restarts + 1)]
    steps = [one for at in (*again, num_steps) for one in range(max(0, at - num_steps // 2), at)]
    return "".join(step_line(n, num_steps, 2 + n % 97 / 100, 9 - n / 1e5) for n in steps).encode()
