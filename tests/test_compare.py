"""Comparing two releases: what is matched, by which figure, under which names, in what words."""

import dataclasses
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb.compare import (
    Comparison,
    Judgement,
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
from perfdb.compare.comparability import why_nothing
from perfdb.compare.match import nearest_text
from perfdb.compare.releases import Choice, KnownRelease, choices
from perfdb.compare.report import document
from perfdb.errors import InputError
from perfdb.record import Note, NoteCode, Origin, Outcome, Result
from tests.factories import case

FAILED = {"outcome": Outcome.OUT_OF_MEMORY, "withheld": "no memory"}


def result(**changed: object) -> Result:
    """Llama 3 8B on 8 GPUs, measured over 50 steps; a given `case` sets its keys and fields."""
    made = changed.pop("case", case())
    fields: dict[str, object] = {
        **made.model_dump(), "result_id": 1, "case_key": made.key,
        "workload_key": made.workload_key, "release": "0.16.0", "system_title": made.system.upper(),
        "model_title": made.model.upper(), "qualifiers": ", ".join(made.qualifiers),
        "kernels": ", ".join(made.kernels), "origin": Origin.MEASURED, "step_time_s": 4.0,
        "step_time_mean_s": 4.0, "step_time_stdev_s": 0.04, "num_steps": 50,
        "tokens_per_sec_per_gpu": 32_768.0, "model_tflops_per_sec_per_gpu": 400.0, "mfu": 0.404,
    }  # fmt: skip
    values = fields | changed
    if isinstance(words := values.get("withheld"), str):
        values["withheld"] = Note.of(NoteCode.REPORTED, text=words)
    known = {field.name for field in dataclasses.fields(Result)}
    return Result(**{name: it for name, it in values.items() if name in known})  # type: ignore[arg-type]


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
    measured = ("step_time_s", "step_time_mean_s", "step_time_stdev_s", "num_steps")
    fields = dict.fromkeys(measured) | {"origin": Origin.PUBLISHED}
    return result(**(fields | {"tokens_per_sec_per_gpu": tokens} | changed))


def only_match(a: Result, b: Result, metric: str | None = None):
    """The one match between two results."""
    (match,) = comparison([a], [b], metric).matched
    return match


class TestMatching:
    def test_the_same_case_in_both_releases_is_a_match_and_the_rest_is_listed(self):
        """8B before 70B, B200 before H100, 8 GPUs before 16; layouts by TP, then MBS."""
        cases = [
            case(system="dgx-b200"), case(tensor_parallel=None), case(), case(tensor_parallel=2),
            case(tensor_parallel=16), case(micro_batch_size=16), case(num_gpus=16),
            case(model="llama3-70b"),
        ]  # fmt: skip
        runs = [at(4.0, case=one) for one in reversed(cases)]
        found, alone = comparison(runs, runs), comparison(runs, ())
        keys = [one.key for one in cases]
        assert keys == [it.a.shown.case_key for it in found.matched]
        assert keys == [it.shown.case_key for it in alone.only_a]
        assert {Level.CONFIGURATION} == {it.level for it in found.matched}
        assert ((), (), {}) == (found.only_a, found.only_b, found.matched[0].differences)

    def test_a_retuned_configuration_is_matched_by_its_workload_with_what_changed(self):
        match = only_match(
            at(4.0, case=case(tensor_parallel=2, options={"overlap": True})),
            at(3.0, case=case(tensor_parallel=1, options={}, variant="x")),
        )
        expected = {"tensor_parallel": (2, 1), "variant": (None, "x"), "overlap": (True, None)}
        assert (Level.WORKLOAD, expected) == (match.level, match.differences)
        assert "best of each: TP 2 → 1, variant – → x, overlap 1 → –" == report.how(match)

    def test_of_several_configurations_the_best_of_each_side_is_matched(self):
        """One that ran out of memory is never the best."""
        slow, fast = case(micro_batch_size=1), case(micro_batch_size=4)
        a = [
            at(4.0, case=slow),
            at(3.0, case=fast),
            at(1.0, case=case(micro_batch_size=8), **FAILED),
        ]
        b = [at(5.0, case=slow), at(2.0, case=case(micro_batch_size=2))]
        found = comparison(a, b)
        pairs = {m.level: (m.a.shown.step_time_s, m.b.shown.step_time_s) for m in found.matched}
        assert {Level.CONFIGURATION: (4.0, 5.0), Level.WORKLOAD: (3.0, 2.0)} == pairs
        assert ([1.0], ()) == ([it.shown.step_time_s for it in found.only_a], found.only_b)
        assert [Level.CONFIGURATION] * 2 == [m.level for m in comparison(a[:2], a[:2]).matched]

    def test_measured_results_meet_published_ones_only_where_they_have_no_other(self):
        found = comparison([at(4.0), printed(30_000)], [printed(31_000), at(3.0)])
        pairs = [(match.a.origin, match.b.origin) for match in found.matched]
        assert [(Origin.MEASURED,) * 2, (Origin.PUBLISHED,) * 2] == sorted(pairs)
        match = only_match(at(4.0), printed(31_000))
        said = "A: measured; B: published; one is measured, the other published"
        assert said == report.remark(match)
        assert Verdict.NOT_COMPARABLE == match.judgement.verdict

    def test_of_several_runs_the_one_of_median_step_time_is_shown(self):
        """The faster of two; a failed run (None) only where none finished."""
        for times, shown in (((5.0, 3.0, 4.0), 4.0), ((5.0, 3.0), 3.0), ((5.0, None), 5.0)):
            side = Side(tuple(at(time) if time else at(1.0, **FAILED) for time in times))
            assert shown == side.shown.step_time_s


@pytest.mark.parametrize(
    ("others", "said", "values"),
    [
        ([case(global_batch_size=256)], "B has it at GBS 256", {"global_batch_size": [256]}),
        ([case(precision="fp8_mx")], "B has it at MXFP8", {"precision": ["fp8_mx"]}),
        ([case(sequence_length=4096)], "B has it at sequence 4,096", {"sequence_length": [4096]}),
        (
            [case(num_gpus=1600), case(global_batch_size=256), case(global_batch_size=512)],
            "B has it at GBS 256 or GBS 512 or 1,600 GPUs",
            {"num_gpus": [1600], "global_batch_size": [256, 512]},
        ),
        (  # two layouts of one GBS
            [case(global_batch_size=256, tensor_parallel=size) for size in (1, 2)],
            "B has it at GBS 256",
            {"global_batch_size": [256]},
        ),
        ([case(global_batch_size=256, num_gpus=16)], "", {}),
        ([case(model="llama3-70b"), case(system="dgx-b200"), case(framework="nemo")], "", {}),
    ],
)
def test_work_of_b_that_differs_in_one_such_field_is_named(others, said, values):
    found = comparison([at(4.0)], [at(4.0, case=one) for one in others])
    [side] = found.only_a
    [lone] = document(found)["only_a"]
    assert (said, values) == (nearest_text(side, found.only_b), lone["instead_in_b"])


class TestMetric:
    def test_tokens_per_second_and_gpu_is_compared_unless_another_is_asked_for(self):
        """Of a time less is better."""
        a, b = at(4.0), at(3.0)
        assert "tokens_per_sec_per_gpu" == only_match(a, b).metric
        for metric, ratio in (("tokens_per_sec_per_gpu", 4 / 3), ("step_time_s", 0.75)):
            match = only_match(a, b, metric)
            assert (metric, Verdict.FASTER) == (match.metric, match.judgement.verdict)
            assert ratio == pytest.approx(match.judgement.ratio)

    def test_other_figures_stand_in_where_pages_print_no_tokens(self):
        match = only_match(printed(None), printed(None, model_tflops_per_sec_per_gpu=500.0))
        assert ("model_tflops_per_sec_per_gpu", 500 / 400) == (match.metric, match.judgement.ratio)
        bare = {"model_tflops_per_sec_per_gpu": None}
        a, b = (printed(None, step_time_s=time, **bare) for time in (1.25, 1.38))
        assert ("step_time_s", Verdict.SLOWER) == (
            only_match(a, b).metric, only_match(a, b).judgement.verdict,
        )  # fmt: skip
        nothing = Side((printed(None, **bare),))
        assert "tokens_per_sec_per_gpu" == metric_for([nothing], [nothing], None)


CASES = st.sampled_from(
    [case(micro_batch_size=size, system=on) for size in (1, 2, 4) for on in ("dgx-h100", "cpu")]
)
RESULTS = st.lists(
    st.one_of(
        st.builds(lambda of, time: at(time, case=of), CASES, st.floats(0.001, 1_000)),
        st.builds(lambda of, rate: printed(rate, case=of), CASES, st.floats(1, 99_999)),
        st.builds(lambda of: at(1.0, case=of, **FAILED), CASES),
    ),
    max_size=8,
).map(lambda made: [replace(one, result_id=n) for n, one in enumerate(made)])


@given(RESULTS)
def test_a_release_is_the_same_as_itself(results):
    found = comparison(results, results)
    known = [m.judgement for m in found.matched if m.a.median(m.metric) is not None]
    assert {(1.0, Verdict.SAME), (1.0, Verdict.UNKNOWN)} >= {(it.ratio, it.verdict) for it in known}
    unknown = [it for it in known if it.verdict is Verdict.UNKNOWN]
    assert all(str(it.reason).startswith("±") for it in unknown)
    assert ((), ()) == (found.only_a, found.only_b)
    assert {Level.CONFIGURATION} >= {m.level for m in found.matched}


@given(RESULTS, RESULTS, st.sets(st.integers(0, 7)))
def test_errors_change_the_verdicts_of_their_matches_and_nothing_else(results_a, results_b, wrong):
    plain = comparison(results_a, results_b)
    found = comparison(marked(results_a, wrong), results_b)
    for before, now in zip(plain.matched, found.matched, strict=True):
        """But for the rate of false discoveries, which fewer judged rows lower."""
        is_wrong = before.a.shown.result_id in wrong
        if before.judgement.verdict is Verdict.FAILED or not is_wrong:
            assert before.judgement._replace(rate=None) == now.judgement._replace(rate=None)
        else:
            assert (before.judgement.ratio, Verdict.NOT_JUDGED) == (
                now.judgement.ratio, now.judgement.verdict,
            )  # fmt: skip


INVERSE = {
    Verdict.FASTER: {Verdict.SLOWER},
    Verdict.SLOWER: {Verdict.FASTER},
    Verdict.FAILED: {Verdict.NOT_COMPARABLE},
    Verdict.NOT_COMPARABLE: {Verdict.FAILED, Verdict.NOT_COMPARABLE},
}


@given(RESULTS, RESULTS)
def test_exchanging_the_releases_inverts_ratios_and_verdicts_and_loses_nothing(a, b):
    there, back = comparison(a, b), comparison(b, a)

    def judged(found: Comparison, one: str, other: str) -> dict[object, Judgement]:
        pairs = ((getattr(m, one).shown, getattr(m, other).shown, m) for m in found.matched)
        return {(x.case_key, x.origin, y.case_key, y.origin): m.judgement for x, y, m in pairs}

    forward, backward = judged(there, "a", "b"), judged(back, "b", "a")
    assert forward.keys() == backward.keys()
    for pair, one in forward.items():
        other = backward[pair]
        assert other.verdict in INVERSE.get(one.verdict, {one.verdict})
        for ours, theirs in ((one.ratio, other.ratio), (one.low, other.high)):
            assert (ours and 1 / ours) == pytest.approx(theirs)
    assert (there.only_a, there.only_b) == (back.only_b, back.only_a)
    for results, matched, only in (
        (a, [m.a for m in there.matched], there.only_a),
        (b, [m.b for m in there.matched], there.only_b),
    ):
        found = {r.result_id for side in (*matched, *only) for r in side.results}
        assert {r.result_id for r in results} == found


def known(*releases: tuple[str, str | None] | tuple[str, str | None, str]) -> tuple[Choice, ...]:
    return choices(
        KnownRelease(release_id=n, framework=name, release=version, container="".join(box) or None)
        for n, (name, version, *box) in enumerate(releases, start=1)
    )


class TestNames:
    KNOWN = known(("nemo", "25.10"), ("nemo", "25.9"), ("automodel", "25.10"), ("nemo", None))

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

    def test_a_release_is_named_by_framework_and_version_or_a_version_of_its_own(self):
        for text in ("nemo 25.9", "nemo@25.9", "NeMo 25.9", " nemo 25.9 ", "25.9"):
            assert "nemo 25.9" == named(text, self.KNOWN).name

    def test_what_names_a_release_to_the_letter_is_that_one(self):
        some = known(("acme", "1.1RC1"), ("acme", "1.1rc1"), ("Acme", "1.1rc1"), ("acme", "1.0@x"))
        for text in ("acme 1.1RC1", "acme@1.1rc1", "Acme 1.1rc1", "acme 1.0@x", "1.1RC1"):
            assert named(text, some).name.endswith(text.replace("acme@", "acme "))

    def test_a_name_of_several_or_of_none_is_refused(self):
        for text, some, message in (
            ("ACME 1.1Rc1", known(("acme", "1.1RC1"), ("acme", "1.1rc1")),
             "say 'acme 1.1RC1' or 'acme 1.1rc1'"),
            ("25.10", self.KNOWN, "say 'automodel 25.10' or 'nemo 25.10'"),
            ("NeMo ", self.KNOWN, "say 'nemo 25.9' or 'nemo 25.10' or 'nemo (unattributed)'"),
            ("25.1", self.KNOWN, "no release '25.1'"),  # no number
            ("nemo 25.8", self.KNOWN, "release: no release 'nemo 25.8'; did you mean nemo 25."),
            ("xyz", known(("nemo", "25.9")), "no release 'xyz'; known: nemo 25.9"),
            ("nemo 25.9", (), "fill it with `perfdb ingest`"),
        ):  # fmt: skip
            with pytest.raises(InputError) as raised:
                named(text, some)
            assert message in str(raised.value)

    def test_versions_of_several_frameworks_are_compared_framework_by_framework(self):
        """Where a framework has one of the two, its other release is there without results."""
        some = known(
            ("nemo", "25.9"), ("nemo", "25.10"), ("automodel", "25.9"), ("automodel", "25.10"),
            ("dfm", "25.9"), ("bridge", "25.10"),
        )  # fmt: skip
        found = both_named("25.9", "25.10", some)
        frameworks = ("automodel", "bridge", "dfm", "nemo")
        assert [(f"{one} 25.9", f"{one} 25.10") for one in frameworks] == [
            (a.name, b.name) for a, b in found
        ]
        lacking = {one.name for pair in found for one in pair if not one.release_ids}
        assert {"bridge 25.9", "dfm 25.10"} == lacking
        [(a, b)] = both_named("25.9", "25.10", some, ["nemo"])
        assert ("nemo 25.9", "nemo 25.10") == (a.name, b.name)

    def test_two_names_that_are_no_two_releases_are_refused(self):
        for a, b, message in (
            ("nemo 25.9", "25.10", "names no single"), ("25.10", "nemo 25.9", "names no single"),
            ("25.10", "25.8", "no single"), ("25.9", "nemo@25.9", "A and B are both nemo 25.9; "),
            ("25.10", "25.10", "are both"), ("nemo 25.10", "NeMo 25.10", "name two; `perfdb"),
        ):  # fmt: skip
            with pytest.raises(InputError, match=message):
                both_named(a, b, self.KNOWN)

    def test_two_containers_of_a_version_are_one_choice_and_one_each(self):
        found = known(("nemo", "25.9", "nemo:25.9.1"), ("nemo", "25.9"))
        whole, *boxes = (one.name for one in found)
        expected = {"nemo 25.9": (2, 1), "nemo 25.9 [no container]": (2,)}
        expected["nemo 25.9 [nemo:25.9.1]"] = (1,)
        assert expected == {choice.name: choice.release_ids for choice in found}
        assert (found[1:],) == both_named(*boxes, found)
        for box in boxes:
            with pytest.raises(InputError, match=r"have the same results in part; name two"):
                both_named(whole, box, found)


class TestWords:
    @pytest.mark.parametrize(
        ("ours", "theirs", "said"),
        [
            ([at(4.0)], [at(4.0, case=case(system="dgx-b200", precision="fp8_mx"))],
             "one and two share no work: different systems (DGX-H100 / DGX-B200); different "
             "precisions (BF16 / MXFP8)."),
            ([], [at(4.0)], "one has no results."),
            ([at(4.0), at(4.0, case=case(system="cpu", model="gpt-tiny"))],
             [at(4.0, case=case(model="gpt-tiny")), at(4.0, case=case(system="cpu"))],
             "one and two share no work: no combination of them is in both."),
            ([at(4.0, case=case(global_batch_size=2**n)) for n in range(6, 12)],
             [at(4.0, case=case(global_batch_size=32))],
             "one and two share no work: different global batch sizes (64, 128, 256, 512 and 2 "
             "more / 32)."),
        ],
    )  # fmt: skip
    def test_two_releases_without_common_work_say_why(self, ours, theirs, said):
        found = why_nothing("one", "two", comparison(ours, theirs))
        assert f"Nothing to compare: {said}" == found

    def test_a_case_reads_in_a_line(self):
        expected = "LLAMA3-8B · Pre-training · BF16 · 8 × DGX-H100 · sequence 8,192 · GBS 128"
        assert expected == report.workload(at(4.0))
        assert "MBS 1, TP 1, PP 1, CP 2" == report.configuration(at(4.0))

    def test_an_interval_that_leaves_out_1_is_printed_so(self):
        for low, high, said in (
            (0.973, 0.99968, "0.9730 – 0.9997"),  # slower, and 1 is outside
            (1.00004, 1.02, "1.00004 – 1.02000"),
            (0.973, 1.0003, "0.973 – 1.000"),  # 1 is inside
            (0.99968, 1.0, "1.000 – 1.000"),
        ):
            assert said == report.interval(Judgement(0.985, low, high, Verdict.SLOWER))

    @pytest.mark.parametrize(
        ("runs", "said", "num_finished"),
        [
            ([at(4.0), at(3.0)], "measured, 2 runs", 2),
            ([at(4.0, container=name) for name in ("x:1", "y:1")],
             "measured, 2 runs, 2 containers", 2),
            ([at(4.0, container=name) for name in (None, "y:1")],
             "measured, 2 runs, with and without a container", 2),
            ([at(1.0, **FAILED), at(4.0), at(1.0, outcome=Outcome.NAN_LOSS, withheld="nan")],
             "measured, 1 of 3 runs (1 out of memory, 1 NaN loss)", 1),
            ([at(1.0, **FAILED)] * 2, "measured, none of 2 runs (2 out of memory), no memory", 0),
            ([at(1.0, **FAILED)], "measured, no memory", 0),
            ([at(1.0, outcome=Outcome.TIMED_OUT)], "measured, timed out", 0),
        ],
    )  # fmt: skip
    def test_a_side_says_how_many_runs_it_has_and_how_they_ended(self, runs, said, num_finished):
        assert said == report.remark_of(Side(tuple(runs)))
        (match,) = document(comparison([at(4.0)], runs))["matched"]
        assert (len(runs), num_finished, len({it.container for it in runs})) == (
            match["num_results_b"], match["num_finished_b"], match["num_containers_b"],
        )  # fmt: skip

    def test_the_decimals_of_a_figure_are_those_of_its_cell(self):
        """The texts are those of the seeds."""
        tokens = "tokens_per_sec_per_gpu"
        for text, field, value, expected in (
            ("250", "model_tflops_per_sec_per_gpu", 250.0, 0), ("18.90", "step_time_s", 18.9, 2),
            ("1,002", tokens, 1002.0, 0), ("4121 (3830.5)", tokens, 3830.5, 1),
            ("44.35%", "mfu", 0.4435, 2), ("0.4435", "mfu", 0.4435, 2), ("0.4", "mfu", 0.4, 0),
            ("866.77", tokens, 900.0, None), ("–", tokens, 900.0, None),
        ):  # fmt: skip
            cells = {"sequence_length": "250", field: text}
            assert expected == report.decimals(cells, field, value), text

    @given(st.integers(1, 10**7), st.integers(0, 4))
    def test_a_number_that_is_printed_and_read_has_its_decimals(self, whole, digits):
        text = f"{whole / 10**digits:,.{digits}f}"
        value = float(text.replace(",", ""))
        assert digits == report.decimals({"step_time_s": text}, "step_time_s", value)


class TestDocument:
    def test_it_has_the_figures_of_what_matched_and_of_what_did_not(self):
        """Of 3.9, 4 and 4.1 s the run of 4 s is shown; TP is a difference, and no identity."""
        runs = [
            at(time, run_id=f"r{time:g}", source=f"logs/{time:g}.out", step_time_p90_s=time + 0.1)
            for time in (4.1, 3.9, 4.0)
        ]
        page = printed(9_300, source="page.md", source_line=7, case=case(system="cpu"))
        new = case(tensor_parallel=4)
        found = document(comparison([*runs, page], [at(2.0, case=new, container="acme:2")]))
        assert ["matched", "best", "only_a", "only_b"] == list(found)
        (match,), (lone,) = found["matched"], found["only_a"]
        assert {
            "model": "llama3-8b", "num_gpus": 8, "level": "workload", "verdict": "faster",
            "metric": "tokens_per_sec_per_gpu", "run_id_a": "r4", "source_a": "logs/4.out",
            "source_line_a": None, "step_time_stdev_s_a": 0.04, "step_time_p90_s_a": 4.1,
            "run_id_b": None, "case_key_a": case().key, "case_key_b": new.key,
            "workload_key": new.workload_key, "container_a": None, "container_b": "acme:2",
            "differences": {"tensor_parallel": [1, 4]},
        }.items() <= match.items()  # fmt: skip
        assert 2.0 == pytest.approx(match["ratio"])
        assert "tensor_parallel" not in match
        assert ("cpu", None, "page.md", 7, 9_300) == (
            lone["system"], lone["run_id"], lone["source"], lone["source_line"],
            lone["tokens_per_sec_per_gpu"],
        )  # fmt: skip

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
    def test_the_ratio_is_that_of_the_medians(self, a, b, said, medians):
        """128 × 8192 ÷ 8 × (1 ÷ 12 + 1 ÷ 12.9) ÷ 2 = 10,541.6; a run's own median is not named."""
        found = comparison(*([at(time) for time in some] for some in (a, b)))
        (match,) = found.matched
        assert report.remark(match).startswith(said)
        assert "median" in said or "median" not in report.remark(match)
        (told,) = document(found)["matched"]
        assert medians == pytest.approx((told["median_a"], told["median_b"]), abs=0.06)
        assert told["ratio"] == told["median_b"] / told["median_a"]


WRONG = at(3.0, has_open_errors=True)


def test_an_error_in_a_run_that_is_not_shown_does_not_count():
    (match,) = comparison([WRONG, at(4.0), at(5.0)], [at(4.0)]).matched
    assert (False, Verdict.UNKNOWN) == (match.a.shown.has_open_errors, match.judgement.verdict)


def test_a_gate_closes_on_exactly_the_change_that_was_asked_for():
    """1 - 900/1,000 is 0.09999999999999998 as a float."""
    found = comparison([printed(1_000)], [printed(900)])
    assert [1, 0] == [len(found.slower(lambda _, it=least: it)) for least in (0.1, 0.101)]
