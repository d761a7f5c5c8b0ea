"""How sure a verdict is: what repeats, steps and printed digits show, and when it is unknown.

Golden quantiles are scipy.stats.t.ppf(0.975, freedom); scipy is no dependency.
"""

from math import exp, log, pi, sqrt
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb.compare import Side, Verdict, comparison, report
from perfdb.compare.report import document
from perfdb.compare.verdict import (
    RUN_TO_RUN,
    Spread,
    half_interval,
    half_of_one_more,
    judge,
    of_runs,
    spread,
    student_t_95,
)
from perfdb.metrics import METRICS
from perfdb.record import Note, NoteCode, Origin, Outcome
from perfdb.stated import RATE
from tests.test_compare import at, only_match, printed, result

TFLOPS = "model_tflops_per_sec_per_gpu"
MEMORY = "peak_memory_bytes"


def runs(*times_s: float) -> Side:
    """Repeats of such step times."""
    return Side(tuple(at(time, result_id=n) for n, time in enumerate(times_s)))


def half(a: Side, b: Side, metric: str = "step_time_s") -> float:
    """Half the interval of a judgement, as a logarithm."""
    judged = judge(a, b, metric)
    assert judged.high is not None
    assert judged.low is not None
    return log(judged.high / judged.low) / 2


class TestOutcomes:
    @pytest.mark.parametrize(
        ("outcome", "said"),
        [
            (Outcome.FAILED, "error"), (Outcome.OUT_OF_MEMORY, "out of memory"),
            (Outcome.NAN_LOSS, "NaN loss"), (Outcome.NAN_GRAD_NORM, "NaN gradient norm"),
            (Outcome.TIMED_OUT, "timed out"), (Outcome.INTERRUPTED, "interrupted"),
            (Outcome.INCOMPLETE, "incomplete"), (Outcome.NO_DATA, "no figures"),
        ],
    )  # fmt: skip
    def test_what_finished_in_a_and_not_in_b_is_failed_with_how_it_ended(self, outcome, said):
        """Also where the audit finds an error in the figure of A."""
        failed = at(4.0, outcome=outcome, withheld="why")
        found = comparison([at(4.0)], [failed])
        (match,) = found.matched
        verdict = report.verdict(match.judgement, match.metric)
        assert (f"failed: {said}", True) == (verdict, found.missing)
        assert "A: measured; B: measured, why" == report.remark(match)
        wrong = only_match(at(4.0, has_open_errors=True), failed)
        assert Verdict.FAILED == wrong.judgement.verdict
        bare = only_match(at(4.0, **{RATE: None, TFLOPS: None}), failed)
        assert ("step_time_s", Verdict.FAILED) == (bare.metric, bare.judgement.verdict)

    @pytest.mark.parametrize("b", [{}, {"outcome": Outcome.NAN_LOSS, "withheld": "NaN"}])
    def test_what_did_not_finish_in_a_is_unknown(self, b):
        """Be it better in B or as bad: nothing that had a figure has lost it."""
        found = comparison([at(4.0, outcome=Outcome.FAILED, withheld="why")], [at(4.0, **b)])
        verdicts = [match.judgement.verdict for match in found.matched]
        assert ([Verdict.UNKNOWN], False) == (verdicts, found.missing)

    def test_a_figure_that_cannot_be_a_rate_counts_as_unknown(self):
        for impossible in (0.0, -1.0, float("nan"), float("inf")):
            a, b = at(4.0), at(4.0, tokens_per_sec_per_gpu=impossible)
            assert Verdict.SAME == only_match(a, b).judgement.verdict  # by the TFLOP/s
            asked = only_match(a, b, RATE).judgement
            assert (None, Verdict.UNKNOWN) == (asked.ratio, asked.verdict)

    @pytest.mark.parametrize(
        ("a", "b", "metric", "said"),
        [
            ({RATE: 12_273}, {"step_time_s": 10.8}, None,
             "no figure that both state (Tokens/s/GPU; Step time (s))"),
            ({RATE: 12_273, "mfu": 0.4}, {"mfu": 0.41}, None,
             "not both have Tokens/s/GPU, but both have MFU"),
            ({RATE: 12_273, "mfu": 0.4}, {RATE: 12_300}, "mfu",
             "not both have MFU, but both have Tokens/s/GPU"),
            ({RATE: 12_273}, {}, None, None),
        ],
    )  # fmt: skip
    def test_it_is_said_which_figures_each_has_where_none_can_be_compared(self, a, b, metric, said):
        nothing = dict.fromkeys(METRICS)
        a, b = (result(origin=Origin.PUBLISHED, **(nothing | one)) for one in (a, b))
        match = only_match(a, b, metric)
        assert (Verdict.UNKNOWN, said) == (match.judgement.verdict, match.judgement.reason)
        assert "; ".join(filter(None, ("published", said))) == report.remark(match)


class TestPublished:
    def test_figures_differ_beyond_the_rounding_of_their_digits(self):
        for one, other, verdict in (
            ("9300", "9301", Verdict.SAME),  # each may be off by half a token
            ("9300", "9302", Verdict.FASTER),
            ("9300", "9298", Verdict.SLOWER),
            ("9.3", "9.2", Verdict.SAME),
            ("9.3", "9.1", Verdict.SLOWER),
            ("1.000", "1.002", Verdict.FASTER),  # zeros at the end are digits
            ("1.000", "1.001", Verdict.SAME),
            ("1", "0.9", Verdict.SAME),
        ):
            a, b = (Side((printed(float(text), printed={RATE: text}),)) for text in (one, other))
            judged = judge(a, b, RATE)
            assert (None, None, verdict) == (judged.low, judged.high, judged.verdict)

    def test_results_of_several_files_have_the_interval_of_repeats(self):
        a, b = (
            Side(tuple(printed(None, step_time_s=time) for _ in range(3))) for time in (4.0, 4.1)
        )
        assert 0.0073732 == pytest.approx(half(a, b), 1e-4)
        assert Verdict.SLOWER == judge(a, b, "step_time_s").verdict
        (match,) = comparison([at(5.0), at(5.0)], a.results).matched
        assert (None, Verdict.UNKNOWN) == (match.judgement.low, match.judgement.verdict)

    def test_one_result_is_judged_by_the_spread_of_several(self):
        """By hand: Σ = 0.51 %² + 10 × 1 %², 2.228 × √(π/2 × Σ/100 + Σ/9)."""
        times = [4.0001 + by for by in (-0.04, 0.04)] * 5
        several = Side(tuple(printed(None, step_time_s=time) for time in times))
        for text, verdict, percent in (
            ("4.05", Verdict.SAME, 2.5415),
            ("4.15", Verdict.SLOWER, 2.5415),
            ("4.2", Verdict.SLOWER, 2.5415),  # half of 0.1 s is 1.2 % of 4 s
            ("4", Verdict.UNKNOWN, 12.5),  # half of 1 s
        ):
            one = Side((printed(None, step_time_s=float(text)),))
            assert verdict is judge(several, one, "step_time_s").verdict
            halves = [half(several, one), half(one, several)]
            assert [percent / 100] * 2 == pytest.approx(halves, 1e-3)


class TestFlops:
    """FLOPs that are counted otherwise are another quantity."""

    def test_two_conventions_cannot_be_compared_and_their_times_can(self):
        a, b = at(4.0, flops_convention="full"), at(3.0, flops_convention="causal")
        judged = only_match(a, b, "mfu").judgement
        assert (Verdict.UNKNOWN, "FLOPs conventions differ: full / causal") == (
            judged.verdict, judged.reason,
        )  # fmt: skip
        assert Verdict.FASTER == only_match(a, b, "step_time_s").judgement.verdict

    def test_other_counts_per_token_cannot_be_compared(self):
        """515 ÷ 10,000 and 600 ÷ 10,000; 1 TFLOP/s of rounding cannot explain it."""
        a, b, right = (
            printed(tokens, **{TFLOPS: tflops})
            for tokens, tflops in ((10_000.0, 515.0), (10_000.0, 600.0), (11_650.0, 600.0))
        )
        judged = only_match(a, b, TFLOPS).judgement
        assert (600 / 515, Verdict.UNKNOWN, "GFLOP per token differ: 51.50 / 60.00") == (
            judged.ratio, judged.verdict, judged.reason,
        )  # fmt: skip
        assert Verdict.SAME == only_match(a, b).judgement.verdict
        assert Verdict.FASTER == only_match(a, right, TFLOPS).judgement.verdict

    @pytest.mark.parametrize(
        ("tokens", "tflops", "verdict"),
        [
            ("44773.361", "1030.070", Verdict.FASTER),  # 0.0014 %: two decimals and a zero
            ("44773.361", "1030.980", Verdict.FASTER),  # 0.09 %
            ("44773.361", "1031.200", Verdict.UNKNOWN),  # 0.11 %
            ("44511.004", "1024.839", Verdict.SAME),  # 0.08 %, which is all of the difference
        ],
    )
    def test_counts_within_a_tenth_of_a_per_cent_are_the_same(self, tokens, tflops, verdict):
        a, b = (
            printed(float(rate), **{TFLOPS: float(text)})
            for rate, text in (("44511.004", "1024.020"), (tokens, tflops))
        )
        assert verdict is only_match(a, b, TFLOPS).judgement.verdict

    @pytest.mark.parametrize(
        ("one", "other", "by_default"),
        [  # 8 GPUs, 128 × 8,192 tokens: 24,000 and 24,960 tokens/s/GPU each time
            ({"tokens_per_sec": 192_000.0}, {"tokens_per_sec": 199_680.0},
             (TFLOPS, Verdict.UNKNOWN)),
            ({"step_time_s": 5.461}, {"step_time_s": 5.251}, ("step_time_s", Verdict.FASTER)),
        ],
    )  # fmt: skip
    def test_another_rate_can_show_another_count(self, one, other, by_default):
        a = printed(None, **{TFLOPS: 1389.8}, flops_convention="nemo-25.04", **one)
        b = printed(None, **{TFLOPS: 1284.7}, **other)
        judged = only_match(a, b, TFLOPS).judgement
        assert Verdict.UNKNOWN is judged.verdict
        assert str(judged.reason).startswith("GFLOP per token differ: 57.9")
        assert by_default == (only_match(a, b).metric, only_match(a, b).judgement.verdict)

    def test_a_run_that_counts_other_flops_is_left_out_of_figures_of_flops_alone(self):
        """By hand: (9.92 + 10.5) / 2 of all, (410 + 400) / 2 of the two that count alike."""
        known = Side(
            (
                at(9.9, flops_convention="causal", **{TFLOPS: 410.0}),
                at(9.92, flops_convention="causal", **{TFLOPS: 400.0}),
                at(10.5, **{TFLOPS: None}),
                at(10.52, flops_convention="6N", **{TFLOPS: 300.0}),
            )
        )
        assert [10.21, 405.0] == pytest.approx([known.median("step_time_s"), known.median(TFLOPS)])
        assert spread(Side(known.results[:2]), TFLOPS) == spread(known, TFLOPS)


class TestWindows:
    @pytest.mark.parametrize(
        ("a", "b", "said"),
        [
            (["skip_warmup(10)"], ["last_n(10)"], "skip_warmup(10) / last_n(10)"),
            (["skip_warmup(10)", "last"], ["last"], "last, skip_warmup(10) / last"),
            (["skip_warmup(10)", "last"], ["skip_warmup(10)", "last"],
             "last, skip_warmup(10) / last, skip_warmup(10)"),
            (["skip_warmup(10)", "last"], [None], "last, skip_warmup(10) / –"),
            (["last"], ["last"], None),
        ],
    )  # fmt: skip
    def test_runs_over_different_windows_have_no_verdict(self, a, b, said):
        """One that failed has no window."""
        failed = at(1.0, window="window(1,2)", outcome=Outcome.FAILED, withheld="failed")
        ours, theirs = ([at(4.0, window=window) for window in some] for some in (a, b))
        (match,) = comparison([*ours, failed], theirs).matched
        assert (said and f"windows differ: {said}") == match.judgement.reason

    def test_the_same_window_over_another_number_of_steps_is_compared(self):
        a, b = at(4.0, window="skip_warmup(10)"), at(5.0, window="skip_warmup(10)", num_steps=90)
        (match,) = document(comparison([a], [b]))["matched"]
        assert ("slower", None, "skip_warmup(10)", "skip_warmup(10)", 50, 90) == (
            match["verdict"], match["reason"], match["window_a"], match["window_b"],
            match["num_steps_a"], match["num_steps_b"],
        )  # fmt: skip

    def test_the_windows_of_published_figures_do_not_count(self):
        judged = only_match(printed(9_300, window="last_n(10)"), printed(9_400, window="last"))
        assert Verdict.FASTER == judged.judgement.verdict


class TestRepeats:
    @pytest.mark.parametrize(
        ("count", "percent"),
        [
            (2, 1.2547),  # 2.776 (2 + 2 degrees) × √2 × √(π/2) × 0.51 % / 2
            (3, 0.7373),  # 2.447 (3 + 3)         × √2 × √(π/2) × 0.51 % / 3
            (5, 0.4028),  # 2.228 (5 + 5)         × √2 × √(π/2) × 0.51 % / 5
        ],
    )
    def test_equal_runs_have_an_interval_by_hand(self, count, percent):
        side = runs(*[4.0] * count)
        assert percent / 100 == pytest.approx(half(side, side), 1e-4)

    def test_the_interval_of_several_runs_is_that_of_the_runs(self):
        """By hand: 3.9, 4.0, 4.1 are 2.5 % off twice; Welch: 3 + 3 degrees of freedom, t 2.447."""
        a, b = runs(3.9, 4.0, 4.1), runs(3.51, 3.6, 3.69)
        expected = 2.447 * sqrt(2) * sqrt(pi / 2) * sqrt((0.0051**2 + 2 * 0.025**2) / 3 / 3)
        judged = judge(a, b, "step_time_s")
        assert (expected, 0.9 * exp(expected)) == pytest.approx((half(a, b), judged.high))
        assert Verdict.FASTER == judged.verdict

    def test_a_single_run_is_compared_with_several_after_welch_and_by_their_spread(self):
        """By hand: 1 % of 49 degrees and 0.2131 % of 3: 53.5 degrees, 2.228 × 1.0225 %.

        Σ = 0.51 %² + 2 × 2.5 %², 3.182 × √(π/2 × Σ/9 + Σ/2) = 9.34 %, not 4.4 %.
        """
        assert 0.022782 == pytest.approx(half(runs(4.0), runs(4.0, 4.0, 4.0)), 1e-4)
        judged = judge(runs(3.9, 4.0, 4.1), runs(4.2), "step_time_s")
        assert (Verdict.UNKNOWN, "too noisy to tell: ±9.3 %") == (judged.verdict, judged.reason)
        assert 0.093357 == pytest.approx(half(runs(4.2), runs(3.9, 4.0, 4.1)), 1e-4)

    def test_an_even_number_of_runs_is_judged_by_the_mean_of_the_middle_two(self):
        """2 and 3 runs about the same 4 s: that the table shows the faster of two is no change."""
        pair, three = runs(3.9, 4.1), runs(3.9, 4.0, 4.1)
        judged = judge(pair, three, "step_time_s")
        assert (3.9, 1.0) == (pair.shown.step_time_s, pytest.approx(judged.ratio))
        assert 1.0 == pytest.approx(judged.low * judged.high)

    @given(st.integers(1, 12), st.floats(0.001, 1_000))
    def test_a_repeat_of_each_that_agrees_never_widens_the_interval(self, count, time_s):
        before, after = (
            Side((at(time_s, step_time_stdev_s=0.0),) * runs) for runs in (count, count + 1)
        )
        assert half(after, after) < half(before, before)

    @pytest.mark.parametrize(("count", "least"), [(2, 0.7), (3, 0.9), (5, 0.99)])
    def test_equal_releases_differ_seldom_and_four_per_cent_show_mostly(self, count, least):
        """Of so many runs a side that truly vary by 1 %: fewer than six of a hundred."""
        rng, found = np.random.default_rng(20_260_301), {0.0: 0, 0.04: 0}
        for _ in range(2_000):
            ours, theirs = 1 + 0.01 * rng.standard_normal((2, count))
            for change in found:
                a, b = ours.tolist(), (theirs * (1 + change)).tolist()
                off = abs(log(median(b) / median(a)))
                found[change] += off > half_interval(of_runs(a), of_runs(b))
        assert 0.02 < found[0.0] / 2_000 < 0.06
        assert least < found[0.04] / 2_000

    @pytest.mark.parametrize("noise", [0.01, 0.02])
    @pytest.mark.parametrize("count", [2, 3, 10])
    def test_a_single_run_differs_from_several_in_fewer_than_nine_of_a_hundred(self, count, noise):
        """Where runs are further apart than is assumed: it was 25 to 35 of them at 2 %."""
        rng, trials, found = np.random.default_rng(20_260_301), 1_000, 0
        for _ in range(trials):
            times = (1 + noise * rng.standard_normal(count)).tolist()
            single = half_interval(Spread(RUN_TO_RUN, 49), of_runs(times))
            off = abs(log((1 + noise * rng.standard_normal()) / median(times)))
            found += off > max(single, half_of_one_more(times))
        assert found / trials < 0.09


class TestUneven:
    """Steps that differ in their tokens: the rate is no step time inverted."""

    @staticmethod
    def rated(*rates: float) -> Side:
        """Runs of the same step time, and of such tokens/s/GPU."""
        notes = (Note(NoteCode.VARIABLE_LENGTH_STEPS),)
        return Side(tuple(at(4.0, tokens_per_sec_per_gpu=rate, notes=notes) for rate in rates))

    def test_the_rates_of_the_runs_show_how_far_they_are_apart(self):
        """By hand: 2 % off twice; 2.447 × √2 × √(π/2) × √(0.51 %² + 2 × 2 %²) / 3."""
        expected = 2.447 * sqrt(2) * sqrt(pi / 2) * sqrt(0.0051**2 + 2 * 0.02**2) / 3
        a, b = self.rated(980, 1020, 1000), self.rated(1009.4, 1050.6, 1030)
        judged = judge(a, b, RATE)
        assert (1.03, Verdict.SAME) == (pytest.approx(judged.ratio), judged.verdict)
        assert expected == pytest.approx(half(a, b, RATE))

    @pytest.mark.parametrize(("ours", "theirs"), [([1000], [1020]), ([980, 1000, 1020], [1200])])
    def test_a_single_run_does_not_show_its_noise(self, ours, theirs):
        (match,) = comparison(self.rated(*ours).results, self.rated(*theirs).results).matched
        assert (RATE, Verdict.UNKNOWN, None) == (
            match.metric, match.judgement.verdict, match.judgement.low,
        )  # fmt: skip
        said = "steps differ in tokens: a single run shows no noise, repeat it"
        assert report.remark(match).endswith(said)
        assert Verdict.SAME is judge(match.a, match.b, "step_time_s").verdict


class TestQuantiles:
    def test_degrees_are_those_of_the_table_and_between_them_close_and_not_below(self):
        for freedom, value in ((1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (1e9, 2.228),
                               (1.99995, 4.303), (0.9999999, 12.706)):  # fmt: skip
            assert value == pytest.approx(student_t_95(freedom), 1e-3)
        for freedom, value in ((2.5, 3.5747), (3.5, 2.9401), (7.5, 2.333)):
            assert value <= student_t_95(freedom) <= value * 1.03


class TestSteps:
    def test_the_interval_of_single_runs_is_as_wide_as_their_steps_are_apart(self):
        """By hand: steps of 1 % each, more than 0.51 % between runs, t of ten or more: 2.228."""
        judged, wide = judge(runs(4.0), runs(3.96), "step_time_s"), 2.228 * sqrt(2) * 0.01
        assert [0.99 * exp(-wide), 0.99 * exp(wide)] == pytest.approx([judged.low, judged.high])
        assert Verdict.SAME == judged.verdict
        assert Verdict.FASTER == judge(runs(4.0), runs(3.8), "step_time_s").verdict

    def test_runs_of_one_step_have_no_spread_and_no_verdict(self):
        lone = {"num_steps": 1, "step_time_stdev_s": None}
        judged = judge(Side((at(4.0, **lone),)), Side((at(3.0, **lone),)), "step_time_s")
        assert (0.75, None, Verdict.UNKNOWN) == (judged.ratio, judged.low, judged.verdict)

    def test_the_spread_of_one_run_is_that_of_its_deciles(self):
        """A normal 1 %: 2.563 % from decile to decile. Two checkpoints make the deviation 0.45."""
        deciles = {"step_time_p10_s": 3.94874, "step_time_p90_s": 4.05126}
        one = spread(Side((at(4.0, step_time_stdev_s=1.8, **deciles),)), "step_time_s")
        assert (0.01, 49) == (pytest.approx(one.relative, 1e-6), one.freedom)
        same = spread(Side((self.summed_up([4.0] * 40),)), "step_time_s")
        assert 0.0051 == same.relative

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
        judged = only_match(a, b).judgement
        assert (Verdict.UNKNOWN, "too noisy to tell: ±9.1 %") == (judged.verdict, judged.reason)
        assert None is spread(Side((at(4.0, num_steps=25, num_means=1),)), "step_time_s")

    def test_what_hides_more_than_five_per_cent_is_unknown_with_how_much(self):
        """By hand: 2.228 × √2 × 2.5 % is 7.9 %. At 1.5 % it is 4.7 %, and the same."""
        noisy, quiet = (
            only_match(at(4.0, step_time_stdev_s=4 * by), at(4.0, step_time_stdev_s=4 * by))
            for by in (0.025, 0.015)
        )
        assert "measured; too noisy to tell: ±7.9 %" == report.remark(noisy)
        assert (Verdict.UNKNOWN, Verdict.SAME) == (
            noisy.judgement.verdict, quiet.judgement.verdict,
        )  # fmt: skip
        match = only_match(at(4.0, step_time_stdev_s=0.1), at(5.0, step_time_stdev_s=0.125))
        assert (Verdict.SLOWER, None) == (match.judgement.verdict, match.judgement.reason)

    def test_a_run_that_throttles_late_is_unknown(self):
        """The last 15 of 40 steps are 9 % slower: the median has not moved."""
        throttled = self.summed_up([4.0] * 25 + [4.36] * 15)
        match = only_match(self.summed_up([4.0] * 40), throttled)
        assert (1.0, Verdict.UNKNOWN) == (match.judgement.ratio, match.judgement.verdict)

    def test_deciles_without_bounds_are_no_overflow(self):
        wild = at(0.001, step_time_p10_s=0.0, step_time_p90_s=1e12)
        assert Verdict.UNKNOWN == only_match(wild, wild).judgement.verdict

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


class TestMemory:
    """Peak memory has no spread, and 1 % is what an allocator rounds. More of it is worse."""

    @staticmethod
    def of(*peaks_gb: float | None, **changed: object) -> Side:
        """Runs of 4 s a step with such peaks."""
        peaks = (peak and round(peak * 1e9) for peak in peaks_gb)
        return Side(tuple(at(4.0, **{MEMORY: peak} | changed) for peak in peaks))

    def test_memory_within_one_per_cent_is_the_same_whichever_comes_first(self):
        """Runs further apart count where all of them say the same."""
        apart = "too noisy to tell: runs 20.0 % apart"
        for a_gb, b_gb, expected in (
            ([58], [74], Verdict.SLOWER), ([100], [101], Verdict.SAME),
            ([50], [49.5], Verdict.SAME), ([100], [101.1], Verdict.SLOWER),
            ([50, 50, 50], [60, 50, 60], apart),
            ([50], [60, 50], apart), ([60, 50, 60], [60, 60, 50], apart),
            ([50, 50, 50], [60, 55, 60], Verdict.SLOWER), ([100, 101], [101, 100], Verdict.SAME),
            ([100, 100.2], [101.2, 101.4], Verdict.SLOWER),
            ([50, None, 50], [None, 60, 60], Verdict.SLOWER),
        ):  # fmt: skip
            a, b = self.of(*a_gb), self.of(*b_gb)
            there, back = judge(a, b, MEMORY), judge(b, a, MEMORY)
            turned = {Verdict.SLOWER: Verdict.FASTER}.get(expected, expected)
            assert [expected, turned] == [it.reason or it.verdict for it in (there, back)]
            assert (there.verdict is Verdict.UNKNOWN) is (there.reason is not None)

    def test_neither_the_noise_of_step_times_nor_the_window_says_anything_of_memory(self):
        """Steps that spread by half hide a fifth more time, and no fifth more memory."""
        noisy = {"step_time_stdev_s": 2.0}
        lone = {"num_steps": 1, "step_time_stdev_s": None, "window": "last"}
        judged = judge(self.of(58, **noisy), self.of(70, **lone), MEMORY)
        assert Verdict.SLOWER == judged.verdict

    def test_memory_is_not_said_to_be_fast(self):
        more = comparison(self.of(58).results, self.of(74).results, MEMORY)
        assert "1 matched: 1 worse. 0 only in A, 0 only in B." == report.summary(more)
        assert ["better", "faster"] == [report.named(Verdict.FASTER, it) for it in (MEMORY, "mfu")]
