"""Windows: which steps a figure is taken over."""

from collections.abc import Callable, Sequence
from statistics import fmean, median, quantiles

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb import aggregation
from perfdb.errors import InputError
from perfdb.messages import note_text

STEPS = np.arange(1, 11)


def held(name: str, firsts: Sequence[int], lasts: Sequence[int]) -> list[int]:
    """The lines that a window holds, by their last steps."""
    ends = np.array(lasts, np.int64)
    return ends[aggregation.named(name).holds(np.array(firsts, np.int64), ends)].tolist()


def summary(
    times: Sequence[float], counts: Sequence[int] | None = None
) -> aggregation.Summary | None:
    """The summary of times, each the mean of so many steps."""
    return aggregation.summarize(np.array(times), None if counts is None else np.array(counts))


@pytest.mark.parametrize(
    ("name", "picked"),
    [("last", [10]), ("last_n(3)", [8, 9, 10]), ("window(3, 5)", [3, 4, 5]),
     ("skip_warmup(8)", [9, 10]), ("skip_warmup(0)", list(range(1, 11)))],
)  # fmt: skip
def test_a_window_picks_its_steps(name: str, picked: list[int]) -> None:
    assert picked == STEPS[aggregation.named(name).pick(STEPS)].tolist()


@pytest.mark.parametrize(
    ("name", "count", "reason"),
    [
        ("last_n(11)", 10, "only 10 of 11 steps; last_n(11) would include the warm-up"),
        ("last_n(11)", 0, "no step in last_n(11)"),
        ("skip_warmup(10)", 10, "no step in skip_warmup(10)"),
    ],
)
def test_a_window_that_holds_nothing_says_why(name: str, count: int, reason: str) -> None:
    """The last eleven of ten steps would be all of them, the warm-up too."""
    window = aggregation.named(name)
    assert not window.pick(STEPS[:count]).any()
    assert reason == note_text(window.none_held(count))


@pytest.mark.parametrize(
    ("name", "picked"),
    [("skip_warmup(10)", [50]), ("skip_warmup(1)", [25, 50]), ("skip_warmup(0)", [1, 25, 50]),
     ("window(1,25)", [1, 25]), ("window(1,49)", [1, 25]), ("window(3,60)", [50]),
     ("last_n(25)", [50]), ("last_n(48)", [50]), ("last_n(49)", [25, 50]),
     ("last_n(24)", []), ("last_n(51)", []), ("last", []), ("skip_warmup(26)", [])],
)  # fmt: skip
def test_a_line_of_several_steps_is_picked_where_all_of_them_are(
    name: str, picked: list[int]
) -> None:
    """Lines of steps 1, 2 to 25 and 26 to 50."""
    lasts = [1, 25, 50]
    assert picked == held(name, [1, 2, 26], lasts)


@pytest.mark.parametrize(
    ("firsts", "lasts", "picked"),
    [(range(21, 51), range(21, 51), [*range(31, 51)]), (range(21, 31), range(21, 31), []),
     ([21, 31, 41], [30, 40, 50], [40, 50]), ([26, 51], [50, 75], [75]), ([50], [50], [50])],
)  # fmt: skip
def test_the_warm_up_is_counted_from_the_first_step_that_there_is(
    firsts: Sequence[int], lasts: Sequence[int], picked: list[int]
) -> None:
    """Of a run that was resumed in a log of its own; of a single line its number tells."""
    assert picked == held("skip_warmup(10)", firsts, lasts)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("steps(35-44)", "--window: no window 'steps(35-44)'; known: last, last_n(N), "),
        ("last(1)", "--window: 'last(1)' should be last; known: "),
        ("window(3)", "--window: 'window(3)' should be window(FIRST,LAST); known: "),
        ("skip_warmup", "--window: 'skip_warmup' should be skip_warmup(N); known: "),
        ("last_n(0)", "--window: 'last_n(0)' holds no step; known: "),
        ("window(44,35)", "--window: 'window(44,35)' ends before it begins; known: "),
        (f"last_n({'9' * 5000})", "known: last, last_n(N), window(FIRST,LAST), skip_warmup(N)"),
    ],
)
def test_what_is_wrong_with_a_window_is_said(name: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        aggregation.named(name)
    assert message in str(refused.value)


@given(st.text())
def test_any_text_is_a_window_or_is_refused(text: str) -> None:
    """One that is taken is written again as it is stored."""
    try:
        window = aggregation.named(text)
    except InputError:
        return
    assert window.name == aggregation.named(window.name).name


def test_a_summary_by_hand() -> None:
    """1, 2, 3, 4: median and mean 2.5, sample deviation √(5/3), deciles 1.3 and 3.7."""
    found = summary([1.0, 2.0, 3.0, 4.0])
    assert found
    assert (4, 2.5, 2.5, 4.0) == (found.num_steps, found.median_s, found.mean_s, found.last_s)
    assert None is found.num_means
    assert 1.2909944 == pytest.approx(found.stdev_s)
    assert (1.3, 3.7) == pytest.approx((found.p10_s, found.p90_s))


def test_a_summary_of_means_by_hand() -> None:
    """A step of 40 s and the mean of nine, 10 s: 40 + 9 × 10 = 10 × 13 s.

    Of 40 and nine times 10 the 90th percentile lies a tenth of the way from 10 to 40. The means
    differ from 13 by 27, once, and by 3, nine times: √(810 ÷ 10 × 2 ÷ 1).
    """
    found = summary([40.0, 10.0], [1, 9])
    assert found
    assert (10, 10.0, 13.0, 10.0) == (found.num_steps, found.median_s, found.mean_s, found.last_s)
    assert 2 == found.num_means
    assert (10.0, 13.0) == pytest.approx((found.p10_s, found.p90_s))
    assert 12.7279221 == pytest.approx(found.stdev_s)


@given(st.lists(st.tuples(st.floats(1e-6, 1e6), st.integers(1, 9)), min_size=2, max_size=20))
def test_a_mean_counts_as_often_as_it_has_steps(pairs: list[tuple[float, int]]) -> None:
    times, spans = zip(*pairs, strict=True)
    each = [time for time, span in pairs for _ in range(span)]

    found = summary(times, spans)

    assert found
    deciles = quantiles(each, n=10, method="inclusive")
    assert len(each) == found.num_steps
    assert (median(each), fmean(each), deciles[0], deciles[-1]) == pytest.approx(
        (found.median_s, found.mean_s, found.p10_s, found.p90_s)
    )


def test_one_step_has_no_spread_and_none_has_no_summary() -> None:
    one = summary([1.0])
    assert one
    assert (None, None, None) == (one.stdev_s, one.p10_s, one.p90_s)
    assert summary([]) is None


WINDOWS = st.one_of(
    st.just("last"),
    st.integers(1, 9).map("last_n({})".format),
    st.integers(0, 9).map("skip_warmup({})".format),
    st.tuples(st.integers(1, 9), st.integers(0, 9)).map(lambda n: f"window({n[0]},{sum(n)})"),
)


@given(WINDOWS, st.integers(1, 12))
def test_a_window_may_hold_what_it_holds_of_some_run(name: str, num_steps: int) -> None:
    """Of runs of up to 40 steps: no window here needs a longer one."""
    window = aggregation.named(name)
    held = {int(window.pick(range(1, last + 1)).sum()) for last in range(41)}
    assert (num_steps in held) is window.may_hold(num_steps)


RULES: dict[str, Callable[[list[int], int, int], list[int]]] = {
    "last": lambda numbers, _n, _m: numbers[-1:],
    "last_n({n})": lambda numbers, n, _m: numbers[-n:] if n <= len(numbers) else [],
    "window({n},{m})": lambda numbers, n, m: [one for one in numbers if n <= one <= m],
    "skip_warmup({n})": lambda numbers, n, _m: [
        one for one in numbers if one > n + (numbers[0] - 1 if numbers[1:] else 0)
    ],
}
"""What each window picks of steps of which each has a line of its own."""


@given(
    st.sampled_from(sorted(RULES)),
    st.integers(1, 30),
    st.integers(0, 30),
    st.dictionaries(st.integers(1, 60), st.floats(1e-9, 1e9), max_size=40),
)
def test_lines_of_one_step_are_picked_and_summed_up_as_steps(
    rule: str, first: int, more: int, timed: dict[int, float]
) -> None:
    """To the last bit, with steps missing or not."""
    numbers = sorted(timed)
    expected = RULES[rule](numbers, first, first + more)

    assert expected == held(rule.format(n=first, m=first + more), numbers, numbers)
    times = [timed[one] for one in expected]
    found = summary(times, [1] * len(times))
    assert summary(times) == found
    assert not times or (median(times), fmean(times)) == (found.median_s, found.mean_s)
