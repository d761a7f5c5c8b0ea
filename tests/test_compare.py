"""Comparing two releases: what is matched, which figure, how sure, and in what words."""

import dataclasses
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import exp, log, pi, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb.audit.interval import half_unit
from perfdb.compare import (
    Comparison,
    Level,
    Side,
    Verdict,
    both_named,
    comparison,
    marked,
    metric_for,
    named,
    report,
)
from perfdb.compare.noise import spread
from perfdb.compare.output import document
from perfdb.compare.releases import Choice, KnownRelease, choices
from perfdb.compare.sides import usable
from perfdb.compare.verdict import TOO_NOISY, judge
from perfdb.errors import InputError
from perfdb.metrics import METRICS
from perfdb.record import Note, NoteCode, Origin, Outcome, Result
from perfdb.stated import RATE
from tests.factories import case


def result(**changed: object) -> Result:
    """Llama 3 8B on 8 GPUs, measured over 50 steps; a given `case` sets its keys and fields."""
    made = changed.pop("case", case())
    fields: dict[str, object] = {
        **made.model_dump(),
        "result_id": 1,
        "case_key": made.key,
        "workload_key": made.workload_key,
        "release": "0.16.0",
        "system_title": made.system.upper(),
        "model_title": made.model.upper(),
        "qualifiers": ", ".join(made.qualifiers),
        "kernels": ", ".join(made.kernels),
        "origin": Origin.MEASURED,
        "outcome": Outcome.FINISHED,
        "withheld": None,
        "step_time_s": 4.0,
        "step_time_mean_s": 4.0,
        "step_time_stdev_s": 0.04,
        "num_steps": 50,
        "tokens_per_sec_per_gpu": 32_768.0,
        "model_tflops_per_sec_per_gpu": 400.0,
        "mfu": 0.404,
        "flops_convention": None,
    }
    values = fields | changed
    for name in ("withheld", "notes"):
        if name in values:
            values[name] = noted(values[name])
    known = {field.name for field in dataclasses.fields(Result)}
    return Result(**{name: it for name, it in values.items() if name in known})  # type: ignore[arg-type]


def noted(words: object) -> object:
    """Words as notes."""
    if isinstance(words, str):
        return Note.of(NoteCode.REPORTED, text=words)
    return words


def at(step_time_s: float, **changed: object) -> Result:
    """A run of such a step time, with the throughput that follows from it."""
    fields: dict[str, object] = {
        "step_time_s": step_time_s,
        "step_time_mean_s": step_time_s,
        "step_time_stdev_s": step_time_s / 100,
        "tokens_per_sec_per_gpu": 128 * 8192 / step_time_s / 8,
    }
    return result(**(fields | changed))


def printed(tokens: float | None, **changed: object) -> Result:
    """A row of a published page."""
    fields: dict[str, object] = {
        "origin": Origin.PUBLISHED,
        "tokens_per_sec_per_gpu": tokens,
        "step_time_s": None,
        "step_time_mean_s": None,
        "step_time_stdev_s": None,
        "num_steps": None,
    }
    return result(**(fields | changed))


def verdicts(found: Comparison) -> list[Verdict]:
    """The verdict of each match."""
    return [match.judgement.verdict for match in found.matched]


def only_match(a: Result, b: Result, metric: str | None = None):
    """The one match between two results."""
    (match,) = comparison([a], [b], metric).matched
    return match


class TestMatching:
    def test_the_same_case_in_both_releases_is_a_match_at_equal_configuration(self):
        match = only_match(at(4.0), at(3.0))
        assert (Level.CONFIGURATION, {}) == (match.level, match.differences)

    def test_what_only_one_release_has_is_listed_on_its_side(self):
        other = case(system="dgx-b200")
        found = comparison([at(4.0), at(2.0, case=other)], [at(4.0)])
        assert ["dgx-b200"] == [side.shown.system for side in found.only_a]
        assert () == found.only_b

    def test_a_retuned_configuration_is_matched_by_its_workload_with_what_changed(self):
        match = only_match(
            at(4.0, case=case(tensor_parallel=2, options={"overlap": True})),
            at(3.0, case=case(tensor_parallel=1, options={})),
        )
        expected = {"tensor_parallel": (2, 1), "overlap": (True, None)}
        assert (Level.WORKLOAD, expected) == (match.level, match.differences)

    def test_of_several_configurations_the_best_of_each_side_is_matched(self):
        slow, fast = case(micro_batch_size=1), case(micro_batch_size=4)
        found = comparison(
            [at(4.0, case=slow), at(3.0, case=fast)],
            [at(5.0, case=slow), at(2.0, case=case(micro_batch_size=2))],
        )
        pairs = {m.level: (m.a.shown.step_time_s, m.b.shown.step_time_s) for m in found.matched}
        assert {Level.CONFIGURATION: (4.0, 5.0), Level.WORKLOAD: (3.0, 2.0)} == pairs
        assert ((), ()) == (found.only_a, found.only_b)

    def test_no_workload_match_repeats_the_one_at_equal_configuration(self):
        slow, fast = case(micro_batch_size=1), case(micro_batch_size=4)
        both = [at(4.0, case=slow), at(3.0, case=fast)]
        assert [Level.CONFIGURATION] * 2 == [m.level for m in comparison(both, both).matched]

    def test_a_configuration_that_ran_out_of_memory_is_never_the_best(self):
        failed = {"outcome": Outcome.OUT_OF_MEMORY, "withheld": "out of memory"}
        found = comparison(
            [at(4.0), at(1.0, case=case(micro_batch_size=8), **failed)],
            [at(3.0, case=case(micro_batch_size=2))],
        )
        assert [4.0] == [match.a.shown.step_time_s for match in found.matched]
        assert [1.0] == [side.shown.step_time_s for side in found.only_a]

    def test_measured_results_meet_measured_ones_and_published_meet_published(self):
        found = comparison([at(4.0), printed(30_000)], [printed(31_000), at(3.0)])
        pairs = [(match.a.origin, match.b.origin) for match in found.matched]
        assert [(Origin.MEASURED,) * 2, (Origin.PUBLISHED,) * 2] == sorted(pairs)

    def test_a_measured_result_meets_a_published_one_only_where_it_has_no_other(self):
        match = only_match(at(4.0), printed(31_000))
        assert "A: measured; B: published" == report.remark(match)
        assert Verdict.UNKNOWN == match.judgement.verdict


class TestSide:
    def test_of_three_runs_the_one_of_median_step_time_is_shown(self):
        side = Side((at(5.0), at(3.0), at(4.0)))
        assert 4.0 == side.shown.step_time_s

    def test_of_two_runs_the_faster_is_shown(self):
        assert 3.0 == Side((at(5.0), at(3.0))).shown.step_time_s

    def test_a_failed_run_is_shown_only_where_none_finished(self):
        failed = at(1.0, outcome=Outcome.FAILED, withheld="failed")
        assert 5.0 == Side((failed, at(5.0))).shown.step_time_s
        assert "failed" == report.ended(Side((failed,)))


class TestMetric:
    def test_tokens_per_second_and_gpu_is_compared_unless_another_is_asked_for(self):
        assert "tokens_per_sec_per_gpu" == only_match(at(4.0), at(3.0)).metric
        assert "mfu" == only_match(at(4.0), at(3.0), "mfu").metric

    def test_tflops_stand_in_where_pages_print_no_tokens(self):
        match = only_match(printed(None), printed(None, model_tflops_per_sec_per_gpu=500.0))
        assert "model_tflops_per_sec_per_gpu" == match.metric
        assert 500 / 400 == match.judgement.ratio

    def test_the_step_time_stands_in_where_pages_print_nothing_else(self):
        """1.38 s after 1.25 s is slower: of a time less is better."""
        bare = {"model_tflops_per_sec_per_gpu": None}
        a = printed(None, step_time_s=1.25, **bare)
        match = only_match(a, printed(None, step_time_s=1.38, **bare))
        assert ("step_time_s", Verdict.SLOWER) == (match.metric, match.judgement.verdict)

    def test_a_metric_that_was_asked_for_is_never_replaced(self):
        match = only_match(printed(None), printed(None), "tokens_per_sec_per_gpu")
        assert "tokens_per_sec_per_gpu" == match.metric
        assert (None, Verdict.UNKNOWN) == (match.judgement.ratio, match.judgement.verdict)

    def test_where_nothing_is_known_it_is_the_default(self):
        nothing = Side((printed(None, model_tflops_per_sec_per_gpu=None),))
        assert "tokens_per_sec_per_gpu" == metric_for([nothing], [nothing], None)

    def test_a_longer_step_is_slower_and_more_tokens_are_faster(self):
        a, b = at(4.0), at(3.0)
        assert Verdict.FASTER == only_match(a, b, "step_time_s").judgement.verdict
        assert Verdict.FASTER == only_match(a, b, "tokens_per_sec_per_gpu").judgement.verdict
        assert 0.75 == only_match(a, b, "step_time_s").judgement.ratio


class TestVerdict:
    def test_the_interval_of_single_runs_is_as_wide_as_their_steps_are_apart(self):
        """By hand: steps of 1 % each, more than 0.51 % between runs, t of ten or more: 2.228."""
        half = 2.228 * sqrt(2) * 0.01
        judged = judge(Side((at(4.0),)), Side((at(3.96),)), "step_time_s")
        assert [0.99 * exp(-half), 0.99 * exp(half)] == pytest.approx([judged.low, judged.high])
        assert Verdict.SAME == judged.verdict

    def test_the_interval_of_several_runs_is_that_of_the_runs(self):
        """By hand: 3.9, 4.0, 4.1 are 2.5 % off twice; Welch: 3 + 3 degrees of freedom, t 2.447."""
        a = Side(tuple(at(time) for time in (3.9, 4.0, 4.1)))
        b = Side(tuple(at(time * 0.9) for time in (3.9, 4.0, 4.1)))
        half = 2.447 * sqrt(2) * sqrt(pi / 2) * sqrt((0.0051**2 + 2 * 0.025**2) / 3 / 3)
        judged = judge(a, b, "step_time_s")
        assert pytest.approx(0.9 * exp(half)) == judged.high
        assert Verdict.FASTER == judged.verdict

    def test_a_difference_above_the_noise_is_seen(self):
        assert [Verdict.FASTER] == verdicts(comparison([at(4.0)], [at(3.8)]))
        assert [Verdict.SLOWER] == verdicts(comparison([at(3.8)], [at(4.0)]))

    def test_runs_of_one_step_have_no_spread_and_no_verdict(self):
        lone = {"num_steps": 1, "step_time_stdev_s": None}
        judged = judge(Side((at(4.0, **lone),)), Side((at(3.0, **lone),)), "step_time_s")
        assert (0.75, None, Verdict.UNKNOWN) == (judged.ratio, judged.low, judged.verdict)

    @pytest.mark.parametrize(
        ("a", "b", "verdict"),
        [
            (9_300, 9_301, Verdict.SAME),  # each may be off by half a token
            (9_300, 9_302, Verdict.FASTER),
            (9_300, 9_298, Verdict.SLOWER),
            (9.3, 9.2, Verdict.SAME),
            (9.3, 9.1, Verdict.SLOWER),
            (9_300, 9_300, Verdict.SAME),
        ],
    )
    def test_published_figures_differ_beyond_the_rounding_of_their_digits(self, a, b, verdict):
        judged = judge(Side((printed(a),)), Side((printed(b),)), "tokens_per_sec_per_gpu")
        assert (None, None, verdict) == (judged.low, judged.high, judged.verdict)

    @pytest.mark.parametrize(
        ("value", "half"), [(9300.0, 0.5), (9.3, 0.05), (0.404, 0.0005), (1e6, 0.5), (1e-7, 5e-8)]
    )
    def test_half_a_unit_of_the_last_printed_place(self, value, half):
        assert half == half_unit(value, "tokens_per_sec_per_gpu", {})

    @pytest.mark.parametrize(
        ("one", "other", "verdict"),
        [
            ("1.000", "0.900", Verdict.FASTER),
            ("1.000", "1.002", Verdict.SLOWER),
            ("1.000", "1.001", Verdict.SAME),  # each may be off by half of one
            ("1", "0.9", Verdict.SAME),
        ],
    )
    def test_zeros_at_the_end_of_a_printed_figure_are_digits(self, one, other, verdict):
        a, b = (
            Side((printed(None, step_time_s=float(text), printed={"step_time_s": text}),))
            for text in (one, other)
        )
        assert verdict is judge(a, b, "step_time_s").verdict

    def test_a_missing_figure_makes_no_ratio(self):
        failed = at(4.0, outcome=Outcome.OUT_OF_MEMORY, withheld="out of memory")
        judged = only_match(at(4.0), failed).judgement
        assert (None, Verdict.FAILED) == (judged.ratio, judged.verdict)

    @pytest.mark.parametrize(
        ("outcome", "said"),
        [
            (Outcome.FAILED, "failed: error"),
            (Outcome.OUT_OF_MEMORY, "failed: out of memory"),
            (Outcome.NAN_LOSS, "failed: NaN loss"),
            (Outcome.NAN_GRAD_NORM, "failed: NaN gradient norm"),
            (Outcome.TIMED_OUT, "failed: timed out"),
            (Outcome.INTERRUPTED, "failed: interrupted"),
            (Outcome.INCOMPLETE, "failed: incomplete"),
            (Outcome.NO_DATA, "failed: no figures"),
        ],
    )
    def test_what_finished_in_a_and_not_in_b_is_failed_with_how_it_ended(self, outcome, said):
        found = comparison([at(4.0)], [at(4.0, outcome=outcome, withheld="why")])
        (match,) = found.matched
        assert (said, True) == (report.verdict(match.judgement, match.metric), found.missing)
        assert "A: measured; B: measured, why" == report.remark(match)

    @pytest.mark.parametrize("b", [{}, {"outcome": Outcome.NAN_LOSS, "withheld": "NaN"}])
    def test_what_did_not_finish_in_a_is_unknown(self, b):
        """Be it better in B or as bad: nothing that had a figure has lost it."""
        found = comparison([at(4.0, outcome=Outcome.FAILED, withheld="why")], [at(4.0, **b)])
        assert ([Verdict.UNKNOWN], False) == (verdicts(found), found.missing)

    def test_of_several_runs_one_that_finished_is_enough(self):
        failed = at(1.0, outcome=Outcome.TIMED_OUT, withheld="too long")
        assert [Verdict.SAME] == verdicts(comparison([at(4.0)], [failed, at(4.0)]))

    def test_an_error_in_the_figure_of_a_hides_no_failure_of_b(self):
        failed = at(4.0, outcome=Outcome.OUT_OF_MEMORY, withheld="out of memory")
        match = only_match(at(4.0, has_open_errors=True), failed)
        assert Verdict.FAILED == match.judgement.verdict

    def test_what_failed_stands_with_the_figure_that_the_other_side_knows(self):
        rates = {"tokens_per_sec_per_gpu": None, "model_tflops_per_sec_per_gpu": None}
        failed = at(1.0, outcome=Outcome.FAILED, withheld="failed")
        match = only_match(at(4.0, **rates), failed)
        assert ("step_time_s", Verdict.FAILED) == (match.metric, match.judgement.verdict)

    @pytest.mark.parametrize("impossible", [0.0, -1.0, float("nan"), float("inf")])
    def test_a_figure_that_cannot_be_a_rate_counts_as_unknown(self, impossible):
        judged = only_match(at(4.0), at(4.0, tokens_per_sec_per_gpu=impossible), None).judgement
        assert Verdict.SAME == judged.verdict  # by the TFLOP/s, which both have
        asked = only_match(
            at(4.0), at(4.0, tokens_per_sec_per_gpu=impossible), "tokens_per_sec_per_gpu"
        )
        assert (None, Verdict.UNKNOWN) == (asked.judgement.ratio, asked.judgement.verdict)

    def test_flops_of_two_conventions_are_two_quantities(self):
        a, b = at(4.0, flops_convention="full"), at(3.0, flops_convention="causal")
        assert Verdict.UNKNOWN == only_match(a, b, "mfu").judgement.verdict
        assert Verdict.FASTER == only_match(a, b, "step_time_s").judgement.verdict

    def test_flops_of_other_counts_per_token_are_two_quantities(self):
        """515 ÷ 10,000 and 600 ÷ 10,000; 1 TFLOP/s of rounding cannot explain it."""
        a, b = (printed(10_000.0, model_tflops_per_sec_per_gpu=tflops) for tflops in (515.0, 600.0))
        judged = only_match(a, b, "model_tflops_per_sec_per_gpu").judgement
        assert (600 / 515, Verdict.UNKNOWN) == (judged.ratio, judged.verdict)
        assert "GFLOP per token differ: 51.50 / 60.00" == judged.reason
        assert Verdict.SAME == only_match(a, b).judgement.verdict
        b = printed(11_650.0, model_tflops_per_sec_per_gpu=600.0)
        judged = only_match(a, b, "model_tflops_per_sec_per_gpu").judgement
        assert (Verdict.FASTER, None) == (judged.verdict, judged.reason)

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
            printed(
                float(rate),
                model_tflops_per_sec_per_gpu=float(text),
                raw={"Tokens / sec / GPU": rate, "Model TFLOP / sec / GPU": text},
            )
            for rate, text in (("44511.004", "1024.020"), (tokens, tflops))
        )
        judged = only_match(a, b, "model_tflops_per_sec_per_gpu").judgement
        assert verdict is judged.verdict

    @pytest.mark.parametrize(
        ("one", "other", "by_default"),
        [  # 8 GPUs, 128 × 8,192 tokens: 24,000 and 24,960 tokens/s/GPU each time
            (
                {"tokens_per_sec": 192_000.0},
                {"tokens_per_sec": 199_680.0},
                ("model_tflops_per_sec_per_gpu", Verdict.UNKNOWN),
            ),
            ({"step_time_s": 5.461}, {"step_time_s": 5.251}, ("step_time_s", Verdict.FASTER)),
        ],
    )
    def test_flops_are_no_speed_where_another_rate_shows_another_count(
        self, one, other, by_default
    ):
        a = printed(None, model_tflops_per_sec_per_gpu=1389.8, flops_convention="nemo-25.04", **one)
        b = printed(None, model_tflops_per_sec_per_gpu=1284.7, **other)
        judged = only_match(a, b, "model_tflops_per_sec_per_gpu").judgement
        assert Verdict.UNKNOWN is judged.verdict
        assert str(judged.reason).startswith("GFLOP per token differ: 57.9")
        match = only_match(a, b)
        assert by_default == (match.metric, match.judgement.verdict)

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

    def test_a_published_figure_has_no_spread(self):
        assert spread(Side((printed(9_300), printed(9_400))), "step_time_s") is None


STEP_TIMES = st.floats(0.001, 1_000)
CASES = st.sampled_from(
    [case(micro_batch_size=size, system=on) for size in (1, 2, 4) for on in ("dgx-h100", "cpu")]
)
RESULTS = st.lists(
    st.one_of(
        st.builds(lambda of, time: at(time, case=of), CASES, STEP_TIMES),
        st.builds(lambda of, rate: printed(rate, case=of), CASES, st.floats(1, 99_999)),
        st.builds(
            lambda of: at(1.0, case=of, outcome=Outcome.NAN_LOSS, withheld="the loss is NaN"), CASES
        ),
    ),
    max_size=8,
).map(lambda made: [dataclasses.replace(one, result_id=n) for n, one in enumerate(made)])


def is_noisy(match) -> bool:
    """Whether half its interval is wider than what may be called the same."""
    return match.judgement.high is not None and log(match.judgement.high) > TOO_NOISY


@given(RESULTS)
def test_a_release_is_the_same_as_itself(results):
    found = comparison(results, results)
    told = [m for m in found.matched if usable(m.a.shown, m.metric) is not None]
    assert [(1.0, Verdict.UNKNOWN if is_noisy(m) else Verdict.SAME) for m in told] == [
        (m.judgement.ratio, m.judgement.verdict) for m in told
    ]
    assert ((), ()) == (found.only_a, found.only_b)
    assert {Level.CONFIGURATION} >= {m.level for m in found.matched}


@given(RESULTS, RESULTS, st.sets(st.integers(0, 7)))
def test_errors_change_the_verdicts_of_their_matches_and_nothing_else(results_a, results_b, wrong):
    plain = comparison(results_a, results_b)
    found = comparison(marked(results_a, wrong), results_b)
    assert len(plain.matched) == len(found.matched)
    for before, now in zip(plain.matched, found.matched, strict=True):
        is_wrong = before.a.shown.result_id in wrong
        stays = before.judgement.verdict is Verdict.FAILED or not is_wrong
        verdict = before.judgement.verdict if stays else Verdict.NOT_JUDGED
        assert replace(before.judgement, verdict=verdict) == now.judgement


INVERSE = {
    Verdict.FASTER: {Verdict.SLOWER},
    Verdict.SLOWER: {Verdict.FASTER},
    Verdict.FAILED: {Verdict.UNKNOWN},
    Verdict.UNKNOWN: {Verdict.FAILED, Verdict.UNKNOWN},
}


@given(RESULTS, RESULTS)
def test_exchanging_the_releases_inverts_ratios_and_verdicts(results_a, results_b):
    there, back = comparison(results_a, results_b), comparison(results_b, results_a)
    forward = {(id_of(m.a), id_of(m.b)): m.judgement for m in there.matched}
    backward = {(id_of(m.b), id_of(m.a)): m.judgement for m in back.matched}
    assert forward.keys() == backward.keys()
    for pair, one in forward.items():
        other = backward[pair]
        assert other.verdict in INVERSE.get(one.verdict, {one.verdict})
        assert inverse(one.ratio) == pytest.approx(other.ratio)
        assert [inverse(one.high), inverse(one.low)] == pytest.approx([other.low, other.high])
    assert (there.only_a, there.only_b) == (back.only_b, back.only_a)


@given(RESULTS, RESULTS)
def test_every_result_is_matched_or_listed_as_unmatched(results_a, results_b):
    found = comparison(results_a, results_b)
    for results, sides in (
        (results_a, [m.a for m in found.matched] + list(found.only_a)),
        (results_b, [m.b for m in found.matched] + list(found.only_b)),
    ):
        assert {r.result_id for r in results} == {r.result_id for s in sides for r in s.results}


def id_of(side: Side) -> tuple[str, Origin]:
    return side.shown.case_key, side.origin


def inverse(value: float | None) -> float | None:
    return None if value is None else exp(-log(value))


def known(*releases: tuple[str, str | None, str | None]) -> tuple[Choice, ...]:
    return choices(
        KnownRelease(release_id=n, framework=framework, release=version, container=container)
        for n, (framework, version, container) in enumerate(releases, start=1)
    )


class TestWindows:
    def test_two_runs_over_different_windows_have_no_verdict(self):
        judged = only_match(at(4.0, window="skip_warmup(10)"), at(5.0, window="last_n(10)"))
        assert (Verdict.UNKNOWN, "windows differ: skip_warmup(10) / last_n(10)") == (
            judged.judgement.verdict, judged.judgement.reason,
        )  # fmt: skip
        assert "measured; windows differ: skip_warmup(10) / last_n(10)" == report.remark(judged)

    def test_one_of_several_runs_over_another_window_is_enough(self):
        mixed = [at(4.0, window="skip_warmup(10)"), at(4.1, window="last")]
        (match,) = comparison(mixed, [at(5.0, window="last")]).matched
        assert "windows differ: last, skip_warmup(10) / last" == match.judgement.reason

    def test_sides_that_mix_the_same_windows_have_no_verdict(self):
        """Nor one that does against one whose window is unknown."""
        both = [at(4.0, window="skip_warmup(10)"), at(4.1, window="last")]
        lone = [at(5.0)]
        reasons = [comparison(both, b).matched[0].judgement.reason for b in (both, lone)]
        mixed = "windows differ: last, skip_warmup(10)"
        assert [f"{mixed} / last, skip_warmup(10)", f"{mixed} / –"] == reasons

    def test_a_run_that_failed_has_no_window(self):
        failed = at(1.0, window="last", outcome=Outcome.FAILED, withheld="failed")
        (match,) = comparison([at(4.0, window="last_n(3)"), failed], [at(5.0)]).matched
        assert "last_n(3)" == match.a.window

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


class TestOpenErrors:
    WRONG = at(3.0, has_open_errors=True)

    @pytest.mark.parametrize(
        ("a", "b", "said"),
        [
            (at(4.0), WRONG, "A: measured; B: measured, ⚑ open errors"),
            (WRONG, at(4.0), "A: measured, ⚑ open errors; B: measured"),
            (WRONG, WRONG, "measured, ⚑ open errors"),
        ],
    )
    def test_a_match_with_an_open_error_on_either_side_is_not_judged(self, a, b, said):
        match = only_match(a, b)
        assert (Verdict.NOT_JUDGED, said) == (match.judgement.verdict, report.remark(match))

    def test_what_is_not_judged_keeps_its_figures_and_is_counted_by_itself(self):
        """4 s to 3 s is 4/3 the throughput."""
        other = case(system="dgx-b200")
        found = comparison([at(4.0), at(4.0, case=other)], [self.WRONG, at(3.0, case=other)])
        wrong, right = (found.matched[place] for place in (1, 0))
        assert [4 / 3] * 2 == pytest.approx([wrong.judgement.ratio, right.judgement.ratio])
        assert (right,) == found.judged
        expected = "2 matched: 1 faster, 1 not judged. 0 only in A, 0 only in B."
        assert expected == report.summary(found)

    def test_the_document_says_which_side_has_it(self):
        found = document(comparison([at(4.0), at(4.0, case=case(system="cpu"))], [self.WRONG]))
        (match,), (lone,) = found["matched"], found["only_a"]
        assert ("not judged", False, True, False) == (
            match["verdict"], match["has_open_errors_a"], match["has_open_errors_b"],
            lone["has_open_errors"],
        )  # fmt: skip

    def test_it_is_the_figure_shown_that_counts(self):
        """Of 3, 4 and 5 s the run of 4 s is compared; the error is in that of 3 s."""
        (match,) = comparison([self.WRONG, at(4.0), at(5.0)], [at(4.0)]).matched
        assert (False, Verdict.UNKNOWN) == (
            match.a.shown.has_open_errors, match.judgement.verdict,
        )  # fmt: skip


def test_rows_stand_in_the_order_of_their_numbers():
    """8B before 70B, B200 before H100, 8 GPUs before 16."""
    cases = [
        case(model="llama3-70b"), case(num_gpus=16), case(), case(system="dgx-b200"),
    ]  # fmt: skip
    found = comparison([at(4.0, case=one) for one in cases], [at(4.0, case=one) for one in cases])
    assert [("llama3-8b", "dgx-b200", 8), ("llama3-8b", "dgx-h100", 8),
            ("llama3-8b", "dgx-h100", 16), ("llama3-70b", "dgx-h100", 8)] == [
        (it.a.shown.model, it.a.shown.system, it.a.shown.num_gpus) for it in found.matched
    ]  # fmt: skip


class TestNames:
    KNOWN = known(
        ("nemo", "25.10", None), ("nemo", "25.9", None), ("automodel", "25.10", None),
        ("nemo", None, None),
    )  # fmt: skip

    def test_releases_are_listed_in_the_order_of_their_versions(self):
        expected = ["automodel 25.10", "nemo 25.9", "nemo 25.10", "nemo (unattributed)"]
        assert expected == [choice.name for choice in self.KNOWN]

    @pytest.mark.parametrize(
        ("verified", "order"),
        [
            ((None, None, None), "123"),
            (("2026-08-18", "2026-08-15", "2026-08-20"), "213"),  # 20: read on 19 August
            (("2026-08-18", "2026-08-18", "2026-08-18 01:00:00+02:00"), "312"),
            ((None, "2026-08-18", "soon"), "213"),
        ],
    )
    def test_commits_are_in_the_order_of_their_dates_then_of_lines(self, verified, order):
        """The first was read an hour before the other two."""
        read_at = datetime(2026, 8, 19, 12, tzinfo=UTC)
        some = [
            KnownRelease(
                release_id=9 - n, framework="nemo", release=f"a1b2c3{n}", container=None,
                first_at=read_at - timedelta(hours=n == 1), first_line=n, verified=verified[n - 1],
            )
            for n in (3, 1, 2)
        ]  # fmt: skip
        assert [f"a1b2c3{n}" for n in order] == [choice.version for choice in choices(some)]

    @pytest.mark.parametrize("text", ["nemo 25.9", "nemo@25.9", "NeMo 25.9", " nemo 25.9 ", "25.9"])
    def test_a_release_is_named_by_framework_and_version_or_a_version_of_its_own(self, text):
        assert "nemo 25.9" == named(text, self.KNOWN).name

    @pytest.mark.parametrize(
        "text", ["acme 1.1RC1", "acme 1.1rc1", "acme@1.1rc1", "Acme 1.1rc1", "acme 1.0@x", "1.1RC1"]
    )
    def test_what_names_a_release_to_the_letter_is_that_one(self, text):
        """Others of its name but for their case are there, too."""
        some = known(
            ("acme", "1.1RC1", None), ("acme", "1.1rc1", None), ("Acme", "1.1rc1", None),
            ("acme", "1.0@x", None),
        )  # fmt: skip
        assert named(text, some).name.endswith(text.replace("acme@", "acme "))

    def test_a_name_in_the_case_of_none_asks_which_of_those_that_differ_in_it(self):
        some = known(("acme", "1.1RC1", None), ("acme", "1.1rc1", None))
        with pytest.raises(InputError, match=r"say 'acme 1\.1RC1' or 'acme 1\.1rc1'"):
            named("ACME 1.1Rc1", some)

    def test_a_version_of_two_frameworks_asks_which_one(self):
        with pytest.raises(InputError) as raised:
            named("25.10", self.KNOWN)
        assert "say 'automodel 25.10' or 'nemo 25.10'" in str(raised.value)

    @pytest.mark.parametrize("text", ["nemo", "NeMo "])
    def test_a_framework_asks_which_of_its_releases(self, text):
        with pytest.raises(InputError) as raised:
            named(text, self.KNOWN)
        assert "say 'nemo 25.9' or 'nemo 25.10' or 'nemo (unattributed)'" in str(raised.value)

    def test_versions_of_several_frameworks_are_compared_framework_by_framework(self):
        """Where a framework has one of the two, its other release is there without results."""
        some = known(
            ("nemo", "25.9", None), ("nemo", "25.10", None), ("automodel", "25.9", None),
            ("automodel", "25.10", None), ("dfm", "25.9", None), ("bridge", "25.10", None),
        )  # fmt: skip
        found = both_named("25.9", "25.10", some)
        assert [("automodel 25.9", "automodel 25.10"), ("bridge 25.9", "bridge 25.10"),
                ("dfm 25.9", "dfm 25.10"), ("nemo 25.9", "nemo 25.10")] == [
            (a.name, b.name) for a, b in found
        ]  # fmt: skip
        assert {"bridge 25.9", "dfm 25.10"} == {
            one.name for pair in found for one in pair if not one.release_ids
        }
        [(a, b)] = both_named("25.9", "25.10", some, "nemo")
        assert ("nemo 25.9", "nemo 25.10") == (a.name, b.name)

    @pytest.mark.parametrize(
        ("a", "b"), [("nemo 25.9", "25.10"), ("25.10", "nemo 25.9"), ("25.10", "25.8")]
    )
    def test_a_version_of_several_frameworks_alone_asks_which_one(self, a, b):
        with pytest.raises(InputError):
            both_named(a, b, self.KNOWN)

    @pytest.mark.parametrize(
        ("a", "b"), [("25.9", "nemo@25.9"), ("25.10", "25.10"), ("nemo 25.10", "NeMo 25.10")]
    )
    def test_a_release_is_not_compared_with_itself(self, a, b):
        with pytest.raises(InputError, match=r"A and B are both .* 25\..*; name two"):
            both_named(a, b, self.KNOWN)

    def test_a_release_is_not_compared_with_one_of_its_containers(self):
        boxed = known(("nemo", "25.9", None), ("nemo", "25.9", "nemo:25.9.1"))
        whole, *boxes = (one.name for one in boxed)
        for box in boxes:
            with pytest.raises(InputError, match=r"have the same results in part; name two"):
                both_named(whole, box, boxed)
        assert (boxed[1:],) == both_named(*boxes, boxed)

    def test_a_version_is_never_read_as_a_number(self):
        with pytest.raises(InputError):
            named("25.1", self.KNOWN)

    def test_an_unknown_name_gets_a_suggestion_and_the_known_ones(self):
        with pytest.raises(InputError) as raised:
            named("nemo 25.8", self.KNOWN)
        assert "release: no release 'nemo 25.8'; did you mean nemo 25.9? known: automodel 25.10, " in str(raised.value)  # fmt: skip # noqa: E501

    def test_a_name_like_no_other_gets_the_known_ones_once(self):
        with pytest.raises(InputError) as raised:
            named("xyz", known(("nemo", "25.9", None)))
        assert "release: no release 'xyz'; known: nemo 25.9" == str(raised.value)

    def test_an_empty_store_says_how_to_fill_it(self):
        with pytest.raises(InputError, match="perfdb ingest"):
            named("nemo 25.9", ())

    def test_two_containers_of_a_version_are_one_choice_and_one_each(self):
        found = known(("nemo", "25.9", "nemo:25.9.1"), ("nemo", "25.9", None))
        expected = {"nemo 25.9": (2, 1), "nemo 25.9 [no container]": (2,)}
        expected["nemo 25.9 [nemo:25.9.1]"] = (1,)
        assert expected == {choice.name: choice.release_ids for choice in found}
        assert (1,) == named("nemo 25.9 [nemo:25.9.1]", found).release_ids


class TestWords:
    def test_two_releases_without_common_work_say_why(self):
        found = comparison([at(4.0)], [at(4.0, case=case(system="dgx-b200", precision="fp8_mx"))])
        expected = (
            "Nothing to compare: one and other share no work: "
            "different systems (DGX-H100 / DGX-B200); different precisions (BF16 / FP8-MX)."
        )
        assert expected == report.why_nothing("one", "other", found)

    def test_a_release_without_results_is_said_to_have_none(self):
        found = comparison([], [at(4.0)])
        assert "Nothing to compare: one has no results." == report.why_nothing("one", "two", found)

    def test_releases_that_share_each_field_but_no_combination_say_so(self):
        ours = [at(4.0), at(4.0, case=case(system="cpu", model="gpt-tiny"))]
        theirs = [at(4.0, case=case(model="gpt-tiny")), at(4.0, case=case(system="cpu"))]
        said = report.why_nothing("one", "two", comparison(ours, theirs))
        assert said.endswith("no combination of them is in both.")

    def test_a_summary_counts_each_verdict(self):
        found = comparison([at(4.0), at(1.0, case=case(system="cpu"))], [at(3.0)])
        assert "1 matched: 1 faster. 1 only in A, 0 only in B." == report.summary(found)

    def test_a_case_reads_in_a_line(self):
        expected = "LLAMA3-8B · Pre-training · BF16 · 8 × DGX-H100 · sequence 8,192 · GBS 128"
        assert expected == report.workload(at(4.0))
        assert "MBS 1, TP 1, PP 1, CP 2" == report.configuration(at(4.0))

    def test_a_retuned_configuration_says_what_changed(self):
        match = only_match(at(4.0), at(4.0, case=case(tensor_parallel=4, variant="x")))
        assert "best of each: TP 1 → 4, variant – → x" == report.how(match)


def test_the_document_has_exactly_the_promised_parts():
    found = document(comparison([at(4.0), at(1.0, case=case(system="cpu"))], [at(2.0)]))
    assert {"matched", "only_a", "only_b"} == set(found)
    (match,) = found["matched"]
    assert 2.0 == pytest.approx(match["ratio"])
    assert ("faster", "tokens_per_sec_per_gpu") == (match["verdict"], match["metric"])
    assert ("llama3-8b", 8, 128) == (
        match["model"], match["num_gpus"], match["global_batch_size"],
    )  # fmt: skip
    (lone,) = found["only_a"]
    assert ("cpu", 1.0) == (lone["system"], lone["step_time_s"])


def test_a_field_the_sides_do_not_share_stands_only_under_differences():
    a, b = at(4.0), at(2.0, case=case(tensor_parallel=4))
    (match,) = document(comparison([a], [b]))["matched"]
    assert {"tensor_parallel": [1, 4]} == match["differences"]
    assert "tensor_parallel" not in match


@pytest.mark.parametrize(
    ("a", "b", "said", "medians"),
    [
        ([12.0, 12.0, 12.9, 12.9], [12.0] * 4,
         "A: measured, 4 runs, median 10,542; B: measured, 4 runs", (10_541.6, 10_922.7)),
        ([4.0, 5.0], [4.0, 5.0], "measured, 2 runs, median 29,491", (29_491.2, 29_491.2)),
        ([4.0, 5.0, 6.0], [5.0], "A: measured, 3 runs; B: measured", (26_214.4, 26_214.4)),
        ([4.0, 4.00001], [4.0], "A: measured, 2 runs; B: measured", (32_767.96, 32_768.0)),
    ],
)  # fmt: skip
def test_a_median_that_is_no_run_s_stands_beside_those_shown(a, b, said, medians):
    """The ratio is that of the medians: 128 × 8192 ÷ 8 × (1 ÷ 12 + 1 ÷ 12.9) ÷ 2 = 10,541.6."""
    found = comparison(*([at(time) for time in some] for some in (a, b)))
    (match,) = found.matched
    assert report.remark(match).startswith(said)
    assert "median" in said or "median" not in report.remark(match)
    (told,) = document(found)["matched"]
    assert medians == pytest.approx((told["median_a"], told["median_b"]), abs=0.06)
    assert told["ratio"] == told["median_b"] / told["median_a"]


def test_several_runs_are_counted():
    side = Side((at(4.0), at(3.0)))
    assert "measured, 2 runs" == report.remark_of(side)


OOM = at(4.0, outcome=Outcome.OUT_OF_MEMORY, withheld="no memory")
NAN = at(4.0, outcome=Outcome.NAN_LOSS, withheld="nan")


@pytest.mark.parametrize(
    ("containers", "said"),
    [
        (("x:1", "x:1"), "measured, 2 runs"),
        (("x:1", "y:1"), "measured, 2 runs, 2 containers"),
        ((None, "y:1"), "measured, 2 runs, with and without a container"),
    ],
)
def test_a_side_says_that_its_runs_were_in_several_containers(containers, said):
    side = [at(4.0, container=name) for name in containers]
    found = comparison(side, [at(4.0)])
    assert said == report.remark_of(found.matched[0].a)
    assert len(set(containers)) == document(found)["matched"][0]["num_containers_a"]


@pytest.mark.parametrize(
    ("runs", "said", "num_finished"),
    [
        ((OOM, at(4.0), OOM), "measured, 1 of 3 runs (2 out of memory)", 1),
        ((at(4.0), NAN, at(4.0), OOM), "measured, 2 of 4 runs (1 NaN loss, 1 out of memory)", 2),
        ((OOM, OOM), "measured, none of 2 runs (2 out of memory), no memory", 0),
        ((OOM,), "measured, no memory", 0),
    ],
)
def test_runs_that_did_not_finish_are_counted_apart(runs, said, num_finished):
    (match,) = document(comparison([at(4.0)], runs))["matched"]
    assert (said, 1) == (report.remark_of(Side(runs)), match["num_finished_a"])
    assert (len(runs), num_finished) == (match["num_results_b"], match["num_finished_b"])


def test_the_document_names_the_run_that_is_shown_and_its_spread():
    """Of 3, 4 and 5 s that of 4 s."""
    runs = [
        at(time, run_id=f"r{time:g}", source=f"logs/{time:g}.out", step_time_p90_s=time + 0.1)
        for time in (5.0, 3.0, 4.0)
    ]
    page = printed(9_300, source="page.md", source_line=7, case=case(system="cpu"))
    found = document(comparison([*runs, page], [at(2.0)]))
    (match,), (lone,) = found["matched"], found["only_a"]
    assert ("r4", "logs/4.out", None, 0.04, 4.1, None) == (
        match["run_id_a"], match["source_a"], match["source_line_a"], match["step_time_stdev_s_a"],
        match["step_time_p90_s_a"], match["run_id_b"],
    )  # fmt: skip
    assert (None, "page.md", 7) == (lone["run_id"], lone["source"], lone["source_line"])
