"""How sure a verdict is: what repeats and steps tell, and when nothing can be told.

Golden quantiles are scipy.stats.t.ppf(0.975, freedom); scipy is no dependency.
"""

from math import exp, log, pi, sqrt
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb.compare import Side, Verdict, report
from perfdb.compare.match import comparison
from perfdb.compare.noise import (
    RUN_TO_RUN,
    Spread,
    half_interval,
    half_of_one_more,
    of_runs,
    spread,
    student_t_95,
)
from perfdb.compare.verdict import judge
from perfdb.record import Note, NoteCode
from perfdb.stated import RATE
from tests.test_compare import at, only_match, printed

TFLOPS = "model_tflops_per_sec_per_gpu"


def runs(*times_s: float) -> Side:
    """Repeats of such step times."""
    return Side(tuple(at(time, result_id=n) for n, time in enumerate(times_s)))


def half(a: Side, b: Side) -> float:
    """Half the interval of a judgement, as a logarithm."""
    judged = judge(a, b, "step_time_s")
    assert judged.high is not None
    assert judged.low is not None
    return log(judged.high / judged.low) / 2


class TestRepeats:
    @pytest.mark.parametrize(
        ("count", "percent"),
        [
            (2, 1.2547),  # 2.776 (2 + 2 degrees) × √2 × √(π/2) × 0.51 % / 2
            (3, 0.7373),  # 2.447 (3 + 3)         × √2 × √(π/2) × 0.51 % / 3
            (5, 0.4028),  # 2.228 (5 + 5)         × √2 × √(π/2) × 0.51 % / 5
            (10, 0.2014),
        ],
    )
    def test_equal_runs_have_an_interval_by_hand(self, count, percent):
        assert percent / 100 == pytest.approx(
            half(runs(*[4.0] * count), runs(*[4.0] * count)), 1e-4
        )

    def test_a_single_run_is_held_against_three_after_welch(self):
        """By hand: 1 % of 49 degrees and 0.2131 % of 3: 53.5 degrees, 2.228 × 1.0225 %."""
        assert 0.022782 == pytest.approx(half(Side((at(4.0),)), runs(4.0, 4.0, 4.0)), 1e-4)

    def test_several_runs_say_how_far_a_single_one_may_be_off(self):
        """By hand: Σ = 0.51 %² + 2 × 2.5 %², 3.182 × √(π/2 × Σ/9 + Σ/2) = 9.34 %, not 4.4 %."""
        judged = judge(runs(3.9, 4.0, 4.1), Side((at(4.2),)), "step_time_s")
        assert (Verdict.UNKNOWN, "too noisy to tell: ±9.3 %") == (judged.verdict, judged.reason)
        assert 0.093357 == pytest.approx(half(Side((at(4.2),)), runs(3.9, 4.0, 4.1)), 1e-4)

    def test_an_even_number_of_runs_is_judged_by_the_mean_of_the_middle_two(self):
        """2 and 3 runs about the same 4 s: that the table shows the faster of two is no change."""
        pair, three = runs(3.9, 4.1), runs(3.9, 4.0, 4.1)
        judged = judge(pair, three, "step_time_s")
        assert (3.9, 1.0) == (pair.shown.step_time_s, pytest.approx(judged.ratio))
        assert 1.0 == pytest.approx(judged.low * judged.high)
        even = runs(3.9, 3.98, 4.02, 4.3)
        assert 1.0 == pytest.approx(judge(three, even, "step_time_s").ratio)

    @pytest.mark.parametrize(("metric", "expected"), [("step_time_s", 10.21), (TFLOPS, 405.0)])
    def test_a_run_that_counts_other_flops_is_left_out_of_figures_of_flops_alone(
        self, metric, expected
    ):
        """By hand: (9.92 + 10.5) / 2 of all, (410 + 400) / 2 of the two that count alike."""
        known = Side(
            (
                at(9.9, flops_convention="causal", **{TFLOPS: 410.0}),
                at(9.92, flops_convention="causal", **{TFLOPS: 400.0}),
                at(10.5, flops_convention=None, **{TFLOPS: None}),
                at(10.52, flops_convention="6N", **{TFLOPS: 300.0}),
            )
        )
        assert expected == pytest.approx(known.median(metric))

    def test_a_run_that_is_left_out_makes_no_figure_of_flops_sharper(self):
        two = tuple(at(time, flops_convention="causal") for time in (3.9, 4.0))
        three = Side((*two, at(4.1, flops_convention="6N")))
        assert spread(Side(two), TFLOPS) == spread(three, TFLOPS)

    def test_equal_repeats_that_differ_in_the_last_digit_are_the_same(self):
        """2.693 s and 2.695 s are 0.07 % apart: three repeats tell no more than 0.74 %."""
        assert Verdict.SAME == judge(runs(*[2.693] * 3), runs(*[2.695] * 3), "step_time_s").verdict

    def test_two_repeats_find_what_single_runs_find(self):
        """10 % slower, each pair of runs 1.6 % apart. By hand: 2.776 × √2 × √(π/2) × 0.62 %."""
        a, b = runs(3.968, 4.032), runs(4.3648, 4.4352)
        expected = 2.776 * sqrt(2) * sqrt(pi / 2) * sqrt((0.0051**2 + 2 * 0.008**2) / 2 / 2)
        judged = judge(a, b, "step_time_s")
        assert expected == pytest.approx(half(a, b), 1e-6)
        assert Verdict.SLOWER == judged.verdict

    def test_published_results_of_several_files_are_judged_alike(self):
        a, b = (
            Side(tuple(printed(None, step_time_s=time) for _ in range(3))) for time in (4.0, 4.1)
        )
        judged = judge(a, b, "step_time_s")
        assert (0.0073732, Verdict.SLOWER) == (pytest.approx(half(a, b), 1e-4), judged.verdict)

    @pytest.mark.parametrize(
        ("text", "verdict", "percent"),
        [
            ("4.05", Verdict.SAME, 2.5415),
            ("4.15", Verdict.SLOWER, 2.5415),
            ("4.2", Verdict.SLOWER, 2.5415),  # half of 0.1 s is 1.2 % of 4 s
            ("4", Verdict.UNKNOWN, 12.5),  # half of 1 s
        ],
    )
    def test_one_published_result_is_judged_by_the_spread_of_several(self, text, verdict, percent):
        """By hand: Σ = 0.51 %² + 10 × 1 %², 2.228 × √(π/2 × Σ/100 + Σ/9)."""
        times = [4.0001 + by for by in (-0.04, 0.04)] * 5
        several = Side(tuple(printed(None, step_time_s=time) for time in times))
        raw = {"Step Time (s)": text}
        one = Side((printed(None, step_time_s=float(text), raw=raw),))
        assert verdict is judge(several, one, "step_time_s").verdict
        assert [percent / 100] * 2 == pytest.approx([half(several, one), half(one, several)], 1e-3)

    def test_several_published_results_are_no_measure_of_measured_ones(self):
        pages = [printed(30_000, step_time_s=time) for time in (4.0, 4.1)]
        (match,) = comparison([at(5.0), at(5.0)], pages).matched
        assert (None, Verdict.UNKNOWN) == (match.judgement.low, match.judgement.verdict)

    @given(st.integers(1, 12), st.floats(0.001, 1_000))
    def test_a_repeat_of_each_that_agrees_never_widens_the_interval(self, count, time_s):
        before, after = (
            Side((at(time_s, step_time_stdev_s=0.0),) * runs) for runs in (count, count + 1)
        )
        assert half(after, after) < half(before, before)


class TestUneven:
    """Steps that differ in their tokens: the rate is no step time inverted."""

    @staticmethod
    def rated(*rates: float) -> Side:
        """Runs of the same step time, and of such tokens/s/GPU."""
        notes = (Note(NoteCode.VARIABLE_LENGTH_STEPS),)
        return Side(tuple(at(4.0, tokens_per_sec_per_gpu=rate, notes=notes) for rate in rates))

    def test_the_rates_of_the_runs_show_how_far_they_are_apart(self):
        """By hand: 2 % off twice; 2.447 × √2 × √(π/2) × √(0.51 %² + 2 × 2 %²) / 3. The median is
        that of the rates, whatever the time.
        """
        expected = 2.447 * sqrt(2) * sqrt(pi / 2) * sqrt(0.0051**2 + 2 * 0.02**2) / 3
        for rates in ((1030, 1010, 1050), (1050, 1030, 1010)):
            b = self.rated(*(rate / 1.03 for rate in rates))
            judged = judge(self.rated(980, 1000, 1020), b, RATE)
            assert 1.0 == pytest.approx(judged.ratio)
        a = self.rated(980, 1020, 1000)
        judged = judge(a, self.rated(1009.4, 1050.6, 1030), RATE)
        assert (1.03, Verdict.SAME) == (pytest.approx(judged.ratio), judged.verdict)
        assert expected == pytest.approx(log(judged.high / judged.low) / 2)

    @pytest.mark.parametrize(("ours", "theirs"), [([1000], [1020]), ([980, 1000, 1020], [1200])])
    def test_a_single_run_does_not_show_its_noise(self, ours, theirs):
        (match,) = comparison(self.rated(*ours).results, self.rated(*theirs).results).matched
        assert (RATE, Verdict.UNKNOWN, None) == (
            match.metric, match.judgement.verdict, match.judgement.low,
        )  # fmt: skip
        said = "steps differ in tokens: a single run shows no noise, repeat it"
        assert report.remark(match).endswith(said)
        assert Verdict.SAME is judge(match.a, match.b, "step_time_s").verdict

    def test_equal_steps_are_judged_by_their_times(self):
        """Also where the rates that are stored are another matter."""
        runs_of = [at(4.0, tokens_per_sec_per_gpu=rate) for rate in (980, 1000, 1020)]
        assert 0.0073732 == pytest.approx(
            spread(Side(tuple(runs_of)), RATE).relative * 2.447 * sqrt(2), 1e-4
        )


class TestQuantiles:
    @pytest.mark.parametrize(
        ("freedom", "value"), [(1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (1e9, 2.228)]
    )
    def test_whole_degrees_are_those_of_the_table(self, freedom, value):
        assert value == student_t_95(freedom)

    @pytest.mark.parametrize(("freedom", "value"), [(2.5, 3.5747), (3.5, 2.9401), (7.5, 2.333)])
    def test_between_two_of_them_it_is_close_and_not_below(self, freedom, value):
        assert value <= student_t_95(freedom) <= value * 1.03

    @pytest.mark.parametrize(("dust", "value"), [(1.99995, 4.303), (3.9999999996, 2.776),
                                                 (0.9999999, 12.706)])  # fmt: skip
    def test_the_dust_of_floats_costs_no_degree(self, dust, value):
        assert value == pytest.approx(student_t_95(dust), 1e-3)

    @given(st.floats(1, 50), st.floats(1, 50))
    def test_more_freedom_is_never_less_sharp(self, one, other):
        low, high = sorted((one, other))
        assert student_t_95(high) <= student_t_95(low)


class TestSteps:
    def test_the_spread_of_one_run_is_that_of_its_deciles(self):
        """A normal 1 %: 2.563 % from decile to decile. Two checkpoints make the deviation 0.45."""
        deciles = {"step_time_p10_s": 3.94874, "step_time_p90_s": 4.05126}
        one = spread(Side((at(4.0, step_time_stdev_s=1.8, **deciles),)), "step_time_s")
        assert (0.01, 49) == (pytest.approx(one.relative, 1e-6), one.freedom)

    def test_a_slow_step_in_twenty_hides_no_regression(self):
        """20 % slower; two of 40 steps wait for a checkpoint, three times as long as the others."""
        times = [4.0 + 0.002 * (n % 5 - 2) for n in range(38)] + [12.0, 12.0]
        a, b = (self.summed_up([time * by for time in times]) for by in (1, 1.2))
        judged = only_match(a, b).judgement
        assert Verdict.SLOWER == judged.verdict
        assert [exp(-0.01607) / 1.2, exp(0.01607) / 1.2] == pytest.approx(
            [judged.low, judged.high], 1e-4
        )

    def test_means_of_steps_have_the_freedom_of_means(self):
        """10.0 and 10.4 s against 10.6 and 11.0 s, each the mean of 100 steps: 1 degree each.

        By hand: 0.4 ÷ 2.563 of 10.2 and 10.8 s, with the 4.3 of nearly 2 degrees half is 9.1 %; as
        if of 200 steps it would be 4.7 %, and *slower*.
        """
        deciles = ((10.2, 10.0, 10.4), (10.8, 10.6, 11.0))
        a, b = (
            at(median, step_time_p10_s=low, step_time_p90_s=high, num_steps=200, num_means=2)
            for median, low, high in deciles
        )
        assert 1 == spread(Side((a,)), "step_time_s").freedom
        judged = only_match(a, b).judgement
        assert (Verdict.UNKNOWN, "too noisy to tell: ±9.1 %") == (judged.verdict, judged.reason)
        assert None is spread(Side((at(4.0, num_steps=25, num_means=1),)), "step_time_s")

    def test_without_deciles_it_is_the_deviation(self):
        one = spread(Side((at(4.0, step_time_stdev_s=0.08),)), "step_time_s")
        assert 0.02 == pytest.approx(one.relative)

    def test_deciles_that_agree_leave_what_runs_differ_by(self):
        assert 0.0051 == spread(Side((self.summed_up([4.0] * 40),)), "step_time_s").relative

    @staticmethod
    def summed_up(times_s: list[float]):
        """A run of such steps, by numpy."""
        p10, median, p90 = np.quantile(times_s, (0.1, 0.5, 0.9))
        return at(
            float(median),
            step_time_mean_s=float(np.mean(times_s)),
            step_time_stdev_s=float(np.std(times_s, ddof=1)),
            step_time_p10_s=float(p10),
            step_time_p90_s=float(p90),
            num_steps=len(times_s),
        )


class TestTooNoisy:
    def test_what_hides_more_than_five_per_cent_is_unknown_with_how_much(self):
        """By hand: 2.228 × √2 × 2.5 % is 7.9 %. At 1.5 % it is 4.7 %, and the same."""
        noisy, quiet = (
            only_match(at(4.0, step_time_stdev_s=4 * by), at(4.0, step_time_stdev_s=4 * by))
            for by in (0.025, 0.015)
        )
        assert (Verdict.UNKNOWN, "too noisy to tell: ±7.9 %") == (
            noisy.judgement.verdict, noisy.judgement.reason,
        )  # fmt: skip
        assert "measured; too noisy to tell: ±7.9 %" == report.remark(noisy)
        assert (Verdict.SAME, None) == (quiet.judgement.verdict, quiet.judgement.reason)

    def test_what_stands_out_of_the_noise_is_told(self):
        match = only_match(at(4.0, step_time_stdev_s=0.1), at(5.0, step_time_stdev_s=0.125))
        assert (Verdict.SLOWER, None) == (match.judgement.verdict, match.judgement.reason)

    def test_a_run_that_throttles_late_is_unknown(self):
        """The last 15 of 40 steps are 9 % slower: the median has not moved."""
        throttled = TestSteps.summed_up([4.0] * 25 + [4.36] * 15)
        match = only_match(TestSteps.summed_up([4.0] * 40), throttled)
        assert (1.0, Verdict.UNKNOWN) == (match.judgement.ratio, match.judgement.verdict)

    def test_deciles_without_bounds_are_no_overflow(self):
        wild = at(0.001, step_time_p10_s=0.0, step_time_p90_s=1e12)
        assert Verdict.UNKNOWN == only_match(wild, wild).judgement.verdict


def told(count: int, change: float) -> float:
    """How often a change is told of so many runs a side that truly vary by 1 %."""
    rng, trials, found = np.random.default_rng(20_260_301), 4_000, 0
    for _ in range(trials):
        ours, theirs = 1 + 0.01 * rng.standard_normal((2, count))
        a, b = ours.tolist(), (theirs * (1 + change)).tolist()
        found += abs(log(median(b) / median(a))) > half_interval(of_runs(a), of_runs(b))
    return found / trials


@pytest.mark.parametrize("noise", [0.01, 0.02])
@pytest.mark.parametrize("count", [2, 3, 10])
def test_a_single_run_against_several_is_told_apart_in_fewer_than_nine_of_a_hundred(count, noise):
    """Of those whose runs are further apart than is assumed: it was 25 to 35 of them at 2 %."""
    rng, trials, found = np.random.default_rng(20_260_301), 1_000, 0
    for _ in range(trials):
        times = (1 + noise * rng.standard_normal(count)).tolist()
        half = max(half_interval(Spread(RUN_TO_RUN, 49), of_runs(times)), half_of_one_more(times))
        found += abs(log((1 + noise * rng.standard_normal()) / median(times))) > half
    assert found / trials < 0.09


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_equal_releases_are_told_apart_in_fewer_than_six_of_a_hundred(count):
    assert 0.02 < told(count, 0.0) < 0.06


@pytest.mark.parametrize(("count", "least"), [(2, 0.7), (3, 0.9), (5, 0.99)])
def test_four_per_cent_are_told_mostly_of_two_runs_and_nearly_always_of_three(count, least):
    assert least < told(count, 0.04)
