"""A log of any number of steps says the same from a file as from memory, and takes little of it."""

import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdb import formats, logged, windows
from perfdb.formats import (
    Configuration,
    ParsedLog,
    Reading,
    piecewise,
    readings,
    scan,
    shelf,
    steplines,
)
from perfdb.formats.readings import Readings
from perfdb.formats.shelf import Shelf
from perfdb.formats.steps import settle_columns
from perfdb.record import Outcome
from tests import factories
from tests.logs import step_line

FEW = {
    (shelf, "MOST_IN_MEMORY"): 2, (piecewise, "AT_ONCE"): 3, (readings, "_AT_ONCE"): 2,
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
    log = ParsedLog(Configuration(), readings=steps.readings, outcome=Outcome.FINISHED)
    of = logged.LogRun(factories.case(), factories.release(), "run", "0" * 64, averages)
    measured = logged.measured(log, of, windows.named(window))
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


@settings(max_examples=15, deadline=None)
@given(st.dictionaries(st.floats(1e-12, 1e9), st.integers(1, 3), min_size=1, max_size=6))
def test_a_rank_is_told_without_sorting(few: pytest.MonkeyPatch, counts: dict[float, int]) -> None:
    values, often = np.array([*counts]), np.array([*counts.values()])

    def ranks() -> str:
        ranked = piecewise.by_rank(lambda: piecewise.pieces(values, often))
        return repr([ranked(rank) for rank in range(often.sum())])

    in_order = sorted(value for value, count in counts.items() for _ in range(count))
    assert in_few(few, ranks) == ranks() == repr(in_order)


def peak_bytes(content: bytes) -> int:
    """The most memory that a log takes until its rows are stored."""
    tracemalloc.start()
    try:
        (log,) = formats.named("nemo2").parse("a.log", [content])
        of = logged.LogRun(factories.case(), factories.release(), "run", "0" * 64, averages=True)
        measured = logged.measured(log, of, windows.named("skip_warmup(10)"))
        deque(measured.steps, maxlen=0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("restarts", [0, 2])
def test_the_steps_of_a_log_are_not_held_in_memory(
    monkeypatch: pytest.MonkeyPatch, restarts: int
) -> None:
    """Not even one number of each, which would be 8 bytes."""
    pieces = {(steplines, "MADE_AT_ONCE"): 1, (steplines, "MANY_STEPS"): 1, (scan, "HEAP_BYTES"): 0}
    for module, name in (*FEW, *pieces):
        monkeypatch.setattr(module, name, pieces.get((module, name), 500))
    monkeypatch.setattr(scan, "BLOCK_BYTES", 1 << 16)
    peaks = [peak_bytes(log_of(size, restarts)) for size in (2000, 8000)]
    assert (peaks[1] - peaks[0]) / 6000 < 8


def log_of(num_steps: int, restarts: int) -> bytes:
    again = [num_steps * part // (restarts + 1) for part in range(1, restarts + 1)]
    steps = [one for at in (*again, num_steps) for one in range(max(0, at - num_steps // 2), at)]
    return "".join(step_line(n, num_steps, 2 + n % 97 / 100, 9 - n / 1e5) for n in steps).encode()
