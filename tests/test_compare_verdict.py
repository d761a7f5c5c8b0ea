"""How sure a verdict is: what repeats, steps and printed digits show, and when there is none.

By hand: the prior is 0.166 % with 2 degrees of freedom; the 99.5 % quantiles of Student's t, from a
printed table, are 9.925 of 2 degrees, 4.604 of 4, 3.707 of 6, and 2.576 of the normal distribution.
"""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb.compare import Side, Verdict, comparison, report
from perfdb.compare.report import document
from perfdb.compare.sides import LONE_AND_UNEVEN, NO_STEPS
from perfdb.compare.verdict import judge
from perfdb.metrics import METRICS
from perfdb.record import Note, NoteCode, Origin, Outcome
from perfdb.stated import RATE
from tests.factories import case
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
        assert (f"failed: {said}", True) == (verdict, bool(found.failed))
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
        assert ([Verdict.NOT_COMPARABLE], False) == (verdicts, bool(found.failed))

    def test_a_figure_that_cannot_be_a_rate_counts_as_unknown(self):
        for impossible in (0.0, -1.0, float("nan"), float("inf")):
            a, b = at(4.0), at(4.0, tokens_per_sec_per_gpu=impossible)
            assert "step_time_s" == only_match(a, b).metric
            asked = only_match(a, b, RATE).judgement
            assert (None, Verdict.NOT_COMPARABLE) == (asked.ratio, asked.verdict)

    @pytest.mark.parametrize(
        ("a", "b", "metric", "said"),
        [
            ({RATE: 12_273}, {"step_time_s": 10.8}, None,
             "no figure that both state (Tokens/s/GPU; Step time (s))"),
            ({RATE: 12_273, "mfu": 0.4}, {"mfu": 0.41}, None,
             "not both have Tokens/s/GPU, but both have MFU"),
            ({RATE: 12_273, "mfu": 0.4}, {RATE: 12_300}, "mfu",
             "not both have MFU, but both have Tokens/s/GPU"),
            ({RATE: 12_273}, {}, None, "no figure of B"),
        ],
    )  # fmt: skip
    def test_it_is_said_which_figures_each_has_where_none_can_be_compared(self, a, b, metric, said):
        nothing = dict.fromkeys(METRICS)
        a, b = (result(origin=Origin.PUBLISHED, **(nothing | one)) for one in (a, b))
        match = only_match(a, b, metric)
        assert (Verdict.NOT_COMPARABLE, said) == (match.judgement.verdict, match.judgement.reason)
        assert f"published; {said}" == report.remark(match)


class TestPublished:
    def test_figures_differ_beyond_one_per_cent_and_the_rounding_of_their_digits(self):
        for one, other, verdict in (
            ("9300", "9302", Verdict.SAME),
            ("9300", "9392", Verdict.SAME),  # 0.99 %
            ("9300", "9394", Verdict.FASTER),  # 1.01 %
            ("9300", "9206", Verdict.SLOWER),
            ("9.3", "9.2", Verdict.UNKNOWN),  # each may be off by half a tenth
            ("9.3", "9.1", Verdict.SLOWER),
            ("1.000", "1.011", Verdict.FASTER),  # zeros at the end are digits
            ("1", "0.9", Verdict.UNKNOWN),
        ):
            a, b = (Side((printed(float(text), printed={RATE: text}),)) for text in (one, other))
            judged = judge(a, b, RATE)
            assert (None, None, verdict) == (judged.low, judged.high, judged.verdict)
        assert "the digits printed leave ±55.6% open" == judged.reason

    def test_rates_of_whole_samples_per_second_are_as_exact_as_a_sample(self):
        """Five rows of 8,192 tokens on 64 GPUs: 128 tokens/s/GPU are a sample, half of it 64.

        64 of 5,120 and of 5,248 are 2.5 % together, as much as the two differ.
        """
        works = [case(num_gpus=64, model=f"m{n}") for n in range(5)]
        a, b = (
            [printed(float(128 * n), case=it, printed={RATE: str(128 * n)}, source="page.md")
             for n, it in zip(rates, works, strict=True)]
            for rates in ((19, 20, 40, 80, 200), (21, 20, 41, 84, 203))
        )  # fmt: skip
        judged = [match.judgement for match in comparison(a, b, RATE).matched]
        assert [Verdict.FASTER, Verdict.SAME, Verdict.UNKNOWN, Verdict.FASTER, Verdict.FASTER] == [
            it.verdict for it in judged
        ]
        assert "rounded samples/s leave ±2.5% open" == judged[2].reason
        exact = [match.judgement for match in comparison(a[:4], b[:4], RATE).matched]
        assert Verdict.FASTER is exact[2].verdict

    def test_the_margin_is_what_is_asked_for(self):
        a, b = ([printed(rate)] for rate in (1_000, 1_015))
        verdicts = [comparison(a, b, margin=margin).matched[0].judgement.verdict
                    for margin in (0.01, 0.02)]  # fmt: skip
        assert [Verdict.FASTER, Verdict.SAME] == verdicts

    def test_results_of_several_files_have_the_interval_of_repeats(self):
        """By hand: 2 × 0.166 %² of 2 + 4 degrees, 3.707 × √(2/3)."""
        a, b = (
            Side(tuple(printed(None, step_time_s=time) for _ in range(3))) for time in (4.0, 4.1)
        )
        expected = 3.707 * sqrt(2 * 0.00166**2 / 6) * sqrt(2 / 3)
        assert expected == pytest.approx(half(a, b), 1e-3)
        assert Verdict.SLOWER == judge(a, b, "step_time_s").verdict
        (match,) = comparison([at(5.0), at(5.0)], a.results).matched
        assert (None, Verdict.NOT_COMPARABLE) == (match.judgement.low, match.judgement.verdict)

    def test_one_result_against_several_is_no_sharper_than_its_digits(self):
        """Half of 0.1 s is 1.2 % of 4.2 s, and half of 1 s 12.5 % of 4 s."""
        several = Side(tuple(printed(None, step_time_s=4.0001) for _ in range(10)))
        for text, verdict, percent in (
            ("4.2", Verdict.SLOWER, 1.1905),
            ("4", Verdict.UNKNOWN, 12.5),
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
        assert (Verdict.NOT_COMPARABLE, "FLOPs conventions differ: full / causal") == (
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
        assert (600 / 515, Verdict.NOT_COMPARABLE, "GFLOP per token differ: 51.50 / 60.00") == (
            judged.ratio, judged.verdict, judged.reason,
        )  # fmt: skip
        assert Verdict.SAME == only_match(a, b).judgement.verdict
        assert Verdict.FASTER == only_match(a, right, TFLOPS).judgement.verdict

    @pytest.mark.parametrize(
        ("tokens", "tflops", "verdict"),
        [
            ("45401.224", "1044.515", Verdict.FASTER),  # 0.0014 %: two decimals and a zero
            ("45401.224", "1045.420", Verdict.FASTER),  # 0.09 %
            ("45401.224", "1045.650", Verdict.NOT_COMPARABLE),  # 0.11 %
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
             (TFLOPS, Verdict.NOT_COMPARABLE)),
            ({"step_time_s": 5.461}, {"step_time_s": 5.251}, ("step_time_s", Verdict.FASTER)),
        ],
    )  # fmt: skip
    def test_another_rate_can_show_another_count(self, one, other, by_default):
        """Of a model that no formula covers: nothing can be restated."""
        of = case(model="gpt-of-acme")
        a = printed(None, **{TFLOPS: 1389.8}, flops_convention="nemo-25.04", case=of, **one)
        b = printed(None, **{TFLOPS: 1284.7}, case=of, **other)
        judged = only_match(a, b, TFLOPS).judgement
        assert Verdict.NOT_COMPARABLE is judged.verdict
        assert str(judged.reason).startswith("GFLOP per token differ: 57.9")
        assert by_default == (only_match(a, b).metric, only_match(a, b).judgement.verdict)

    @pytest.mark.parametrize(
        "stated", [("nemo-25.04", "causal"), ("nemo-25.04", None), (None, None)]
    )
    @pytest.mark.parametrize(("metric", "scale"), [(TFLOPS, 1.0), ("mfu", 1e-4)])
    def test_two_conventions_are_restated_in_that_of_a(self, stated, metric, scale):
        """By hand: a token of Llama 3 8B at 8,192 is 57.91 GFLOP in full, 51.47 under the mask.

        24,000 and 24,960 tokens/s are 1,389.9 and 1,284.6 TFLOP/s, and B is 4 % faster.
        """
        weights, attention = 7_504_658_432, 32 * 2 * 8192 * 4096
        a, b = (
            printed(rate, flops_convention=name,
                    **{TFLOPS: round(rate * count / 1e12, 1), "mfu": round(rate * count / 1e16, 6)})
            for name, rate, count in (
                (stated[0], 24_000.0, 6 * (weights + attention)),
                (stated[1], 24_960.0, 6 * (weights + attention / 2)),
            )
        )  # fmt: skip
        match = only_match(a, b, metric)
        judged = match.judgement
        assert (Verdict.FASTER, pytest.approx(1.04, rel=1e-4)) == (judged.verdict, judged.ratio)
        shown = report.matched(match)
        whole = 24_960 * 6 * (weights + attention) / 1e12 * scale
        assert (pytest.approx(whole, rel=1e-4), b.figure(metric), "causal") == (
            shown["restated_b"], shown["b"], shown["restated_from"],
        )  # fmt: skip
        text = "1,445.50" if metric == TFLOPS else "14.5%"
        names = f"B restated from causal as {stated[0] or 'full'}: {text}"
        assert names in report.remark(match)

    def test_figures_that_no_convention_gives_are_not_restated(self):
        a, b = (
            printed(10_000.0, flops_convention=name, **{TFLOPS: tflops})
            for name, tflops in (("full", 579.1), ("causal", 700.0))
        )
        judged = only_match(a, b, TFLOPS).judgement
        assert (Verdict.NOT_COMPARABLE, None) == (judged.verdict, judged.restated)

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
        assert [410.0, 400.0] == known.figures(TFLOPS)


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
        judged = match.judgement
        if said:
            assert (Verdict.NOT_COMPARABLE, f"windows differ: {said}") == (
                judged.verdict, judged.reason,
            )  # fmt: skip
        else:
            assert judged.low is not None

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
    @pytest.mark.parametrize(("count", "degrees", "quantile"), [(2, 4, 4.604), (3, 6, 3.707)])
    def test_equal_runs_have_an_interval_by_hand(self, count, degrees, quantile):
        side = Side((at(4.0, step_time_stdev_s=0.0),) * count)
        deviation = sqrt(2 * 0.00166**2 / degrees)
        assert quantile * deviation * sqrt(2 / count) == pytest.approx(half(side, side), 1e-3)

    def test_the_interval_of_several_runs_is_that_of_the_runs(self):
        """By hand: logarithms of 0 and ±2.5 % on both sides, 2 × 2 × 2.5 %² of 2 + 4 degrees."""
        times = [4 * exp(by) for by in (-0.025, 0.0, 0.025)]
        a, b = runs(*times), runs(*(0.9 * time for time in times))
        expected = 3.707 * sqrt((2 * 0.00166**2 + 4 * 0.025**2) / 6) * sqrt(2 / 3)
        judged = judge(a, b, "step_time_s")
        assert (expected, 0.9 * exp(expected)) == pytest.approx((half(a, b), judged.high), 1e-3)
        assert Verdict.FASTER == judged.verdict

    def test_a_single_run_is_judged_by_the_spread_of_several(self):
        """By hand: 2 × 2.5 %² of 2 + 2 degrees, 4.604 × 1.77 % × √(1 + 1/3) is 9.4 %."""
        several = runs(*(4 * exp(by) for by in (-0.025, 0.0, 0.025)))
        expected = 4.604 * sqrt((2 * 0.00166**2 + 2 * 0.025**2) / 4) * sqrt(4 / 3)
        judged = judge(several, runs(4.2), "step_time_s")
        assert expected == pytest.approx(half(several, runs(4.2)), 1e-3)
        assert (Verdict.UNKNOWN, "±9.4%; 4 repeats would tell") == (judged.verdict, judged.reason)

    def test_so_many_repeats_tell_as_are_said_to(self):
        """By hand: 5 % apart with a deviation of 1.77 %; more runs have more degrees of freedom.

        4 of each: t of 8 degrees 3.355 × 1.78 % × √(2/4) = 4.2 % < 4.9 %; 3 of each 5.4 %.
        """
        several = runs(*(4 * exp(by) for by in (-0.025, 0.0, 0.025)))
        judged = judge(several, runs(4.2), "step_time_s")
        more = int(str(judged.reason).split("; ")[1].split()[0])
        spread = (-0.0177 * sqrt(5 / 6), 0.0177 * sqrt(5 / 6))

        def repeated(mean_s: float, count: int) -> Side:
            places = [spread[n % 2] if n < count - count % 2 else 0.0 for n in range(count)]
            return runs(*(mean_s * exp(by) for by in places))

        told = judge(repeated(4.0, more), repeated(4.2, more), "step_time_s").verdict
        assert Verdict.SLOWER is told

    def test_an_even_number_of_runs_is_judged_by_the_mean_of_all(self):
        """2 and 3 runs about the same 4 s: that the table shows the faster of two is no change."""
        pair, three = runs(3.9, 4.1), runs(3.9, 4.0, 4.1)
        judged = judge(pair, three, "step_time_s")
        assert (3.9, 1.0) == (pair.shown.step_time_s, pytest.approx(judged.ratio))
        assert 1.0 == pytest.approx(judged.low * judged.high, 1e-3)

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
        """By hand: logarithms of 0 and ±2 % on both sides."""
        rates = [1000 * exp(by) for by in (-0.02, 0.0, 0.02)]
        expected = 3.707 * sqrt((2 * 0.00166**2 + 4 * 0.02**2) / 6) * sqrt(2 / 3)
        a, b = self.rated(*rates), self.rated(*(1.03 * rate for rate in rates))
        judged = judge(a, b, RATE)
        assert (1.03, Verdict.UNKNOWN) == (pytest.approx(judged.ratio), judged.verdict)
        assert expected == pytest.approx(half(a, b, RATE), 1e-3)

    @pytest.mark.parametrize(("ours", "theirs"), [([1000], [1020]), ([980, 1000, 1020], [1200])])
    def test_a_single_run_does_not_show_its_noise(self, ours, theirs):
        (match,) = comparison(self.rated(*ours).results, self.rated(*theirs).results).matched
        assert (RATE, Verdict.UNKNOWN, None) == (
            match.metric, match.judgement.verdict, match.judgement.low,
        )  # fmt: skip
        said = "steps differ in tokens: a single run shows no noise, repeat it"
        assert report.remark(match).endswith(said)
        assert LONE_AND_UNEVEN != judge(match.a, match.b, "step_time_s").reason


class TestSteps:
    def test_the_interval_of_single_runs_is_that_of_the_prior_or_of_their_steps(self):
        """By hand: 9.925 × 0.166 % × √2; steps of 3 %: 2.576 × √2 × √(π/2) × 3 % × √(3/50)."""
        steady = runs(4.0)
        by_prior = 9.925 * 0.00166 * sqrt(2)
        assert by_prior == pytest.approx(half(steady, steady), 1e-3)
        noisy = Side((at(4.0, step_time_stdev_s=0.12),))
        by_steps = 2.576 * sqrt(2) * sqrt(3.14159 / 2) * 0.03 * sqrt(3 / 50)
        assert by_steps == pytest.approx(half(noisy, noisy), 1e-3)
        assert Verdict.UNKNOWN == judge(runs(4.0), runs(3.96), "step_time_s").verdict
        assert Verdict.FASTER == judge(runs(4.0), runs(3.8), "step_time_s").verdict

    def test_runs_of_one_step_have_no_spread_and_no_verdict(self):
        lone = {"num_steps": 1, "step_time_stdev_s": None}
        judged = judge(Side((at(4.0, **lone),)), Side((at(3.0, **lone),)), "step_time_s")
        assert (0.75, None, Verdict.UNKNOWN, NO_STEPS) == (
            judged.ratio, judged.low, judged.verdict, judged.reason,
        )  # fmt: skip

    def test_the_spread_of_one_run_is_that_of_its_deciles(self):
        """A normal 4 %: 10.252 % from decile to decile. Two checkpoints make the deviation 0.45."""
        deciles = {"step_time_p10_s": 3.79496, "step_time_p90_s": 4.20504}
        one = Side((at(4.0, step_time_stdev_s=1.8, **deciles),))
        expected = 2.576 * sqrt(2) * sqrt(3.14159 / 2) * 0.04 * sqrt(3 / 50)
        assert expected == pytest.approx(half(one, one), 1e-3)

    def test_a_slow_step_in_twenty_hides_no_regression(self):
        """20 % slower; two of 40 steps wait for a checkpoint, three times as long as the others."""
        times = [4.0 + 0.002 * (n % 5 - 2) for n in range(38)] + [12.0, 12.0]
        a, b = (self.summed_up([time * by for time in times]) for by in (1, 1.2))
        judged = only_match(a, b).judgement
        assert Verdict.SLOWER == judged.verdict
        by_prior = 9.925 * 0.00166 * sqrt(2)
        assert [exp(-by_prior) / 1.2, exp(by_prior) / 1.2] == pytest.approx(
            [judged.low, judged.high], 1e-4
        )

    def test_means_of_steps_count_as_means(self):
        """10.0 and 10.4 s against 10.6 and 11.0 s, each the mean of 100 steps.

        By hand: 0.4 ÷ 2.563 of 10.2 and 10.8 s, of 2 means: 2.576 × 1.2533 × 2.1 % × √(3/2).
        """
        deciles = ((10.2, 10.0, 10.4), (10.8, 10.6, 11.0))
        a, b = (
            at(median, step_time_p10_s=low, step_time_p90_s=high, num_steps=200, num_means=2)
            for median, low, high in deciles
        )
        judged = only_match(a, b).judgement
        assert Verdict.UNKNOWN is judged.verdict
        assert str(judged.reason).startswith("±8.3%; ")
        one = at(4.0, num_steps=25, num_means=1)
        assert NO_STEPS == only_match(one, one).judgement.reason

    def test_a_run_that_throttles_late_cannot_be_told(self):
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
