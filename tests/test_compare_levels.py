"""Levels of matching, what earlier releases show, groups, and texts for pull requests and CI."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest

from perfdb.compare import Level, Verdict, accepted, comparison, report, triage
from perfdb.errors import InputError
from perfdb.record import Note, NoteCode
from tests.factories import case
from tests.test_compare import at, printed

RATE = "tokens_per_sec_per_gpu"


def steady(step_time_s: float, **changed: object):
    """A run whose steps are all alike."""
    return at(step_time_s, **{"step_time_stdev_s": 0.0, **changed})


class TestLevels:
    def test_what_one_page_does_not_state_is_no_difference(self):
        """A layout that fits to two of the other release is none of them."""
        full, bare = case(fsdp_size=1, kernels=("TE",)), case()
        (match,) = comparison([printed(1_000, case=full)], [printed(1_000, case=bare)]).matched
        assert (Level.CONFIGURATION, {}) == (match.level, match.differences)
        other = replace(printed(900, case=case(fsdp_size=2)))
        found = comparison([printed(1_000, case=full), other], [printed(1_000, case=bare)])
        assert [Level.WORKLOAD] != [it.level for it in found.matched if it.differences]
        assert all(it.level is not Level.CONFIGURATION for it in found.matched)

    @pytest.mark.parametrize("theirs", [["bf16"], ["bf16", "fp8"]])
    def test_a_precision_that_is_not_stated_is_the_only_one_of_the_other_release(self, theirs):
        unknown = [printed(1_000, case=case(precision=None))]
        found = comparison(unknown, [printed(1_000, case=case(precision=it)) for it in theirs])
        assert (len(theirs) == 1) is bool(found.matched)
        back = comparison([printed(1_000, case=case(precision=it)) for it in theirs], unknown)
        assert len(found.matched) == len(back.matched)

    def test_the_best_of_each_at_other_sizes_is_apart_with_what_differs(self):
        a = [printed(900, case=case(precision="fp8_cs", global_batch_size=64)),
             printed(1_000, case=case(precision="fp8_cs"))]  # fmt: skip
        b = [printed(1_100, case=case(precision="fp8_mx", num_gpus=16))]
        found = comparison(a, b)
        (match,) = found.best
        assert ((), Level.BEST, Verdict.FASTER) == (
            found.matched, match.level, match.judgement.verdict,
        )  # fmt: skip
        assert {"num_gpus": (8, 16), "precision": ("fp8_cs", "fp8_mx")} == match.differences
        assert report.how(match).startswith("best of each, other sizes: ")
        assert (2, 1) == (len(found.only_a), len(found.only_b))
        assert () == found.slower(lambda _: 0.0)
        assert () == comparison(a, [*b, a[0]]).best

    def test_a_step_time_or_a_memory_says_nothing_at_other_sizes(self):
        a, b = [steady(4.0)], [steady(4.0, case=case(num_gpus=16))]
        assert [1, 0, 0] == [
            len(comparison(a, b, metric).best)
            for metric in (None, "step_time_s", "peak_memory_bytes")
        ]
        assert () == comparison(a, [replace(b[0], withheld=Note(NoteCode.NO_BENCHMARK, {}))]).best


class TestEarlier:
    def test_a_quiet_history_sharpens_the_verdict(self):
        """Ten releases of 4 s ± 0.1 %: 1.5 % is told, of which two single runs tell nothing."""
        before = [[steady(4 * (1 + 0.001 * (n % 3 - 1)), release=f"0.{n}")] for n in range(10)]
        a, b = [steady(4.0)], [steady(4.06)]
        (alone,), (known,) = (comparison(a, b, earlier=earlier).matched for earlier in ((), before))
        assert (Verdict.UNKNOWN, Verdict.SLOWER) == (
            alone.judgement.verdict, known.judgement.verdict,
        )  # fmt: skip
        assert 11 == known.judgement.num_baseline
        assert "baseline of 5 releases" in report.remark(known)

    @pytest.mark.parametrize(
        ("rates", "verdict"),
        [
            ((1_000, 640, 995), Verdict.RECOVERED),
            ((1_000, 640, 800), Verdict.FASTER),  # a part of it
            ((1_000, 640, 1_100), Verdict.FASTER),  # and more
            ((1_000, 995, 1_100), Verdict.FASTER),
        ],
    )
    def test_what_only_regains_what_was_lost_has_recovered(self, rates, verdict):
        before, a, b = ([printed(rate, release=str(n))] for n, rate in enumerate(rates))
        (match,) = comparison(a, b, earlier=[before]).matched
        assert verdict is match.judgement.verdict
        if verdict is Verdict.RECOVERED:
            said = "regained what A had lost: -0.5% against 0"
            assert said == match.judgement.reason

    @pytest.mark.parametrize(
        ("wrong", "verdict"), [(True, Verdict.SLOWER), (False, Verdict.UNKNOWN)]
    )
    def test_what_has_open_errors_shows_no_noise(self, wrong, verdict):
        """Five per cent, beside 30 cases whose repeats are ten per cent apart."""
        wide = [
            steady(seconds, case=case(model=f"m{n}"), has_open_errors=wrong)
            for n in range(30)
            for seconds in (3.8, 4.2)
        ]
        found = comparison([steady(4.0), *wide], [steady(4.2)])
        assert [verdict] == [it.judgement.verdict for it in found.matched]

    def test_of_many_cases_one_that_differs_by_chance_cannot_be_told(self):
        """2.4 % of single runs: one in a hundred cases without a change is as far off."""
        cases = [case(micro_batch_size=n + 1, model=f"m{n}") for n in range(200)]
        a = [steady(4.0, case=it) for it in cases]
        b = [steady(4.096 if n == 0 else 4.0, case=it) for n, it in enumerate(cases)]
        verdicts = {it.judgement.verdict for it in comparison(a, b).matched}
        alone = comparison(a[:1], b[:1]).matched[0].judgement
        assert ({Verdict.UNKNOWN}, Verdict.SLOWER) == (verdicts, alone.verdict)
        assert alone.closes
        sizes = [case(model=f"x{n}") for n in range(200)]
        found = comparison(
            [*a, *(steady(4.0, case=it) for it in sizes)],
            [*b, *(steady(1.0, case=case(model=it.model, num_gpus=16)) for it in sizes)],
        )
        assert ({Verdict.FASTER}, 200) == (
            {it.judgement.verdict for it in found.best}, len(found.best),
        )  # fmt: skip
        assert {Verdict.UNKNOWN} == {it.judgement.verdict for it in found.matched}

    def test_of_many_cases_one_that_recovered_by_chance_cannot_be_told(self):
        cases = [case(model=f"m{n}") for n in range(200)]
        a = [steady(4.096 if n == 0 else 4.0, case=it) for n, it in enumerate(cases)]
        b = [steady(4.0, case=it) for it in cases]
        alone, all_ = (comparison(some, b, earlier=[b[:1]]) for some in (a[:1], a))
        assert Verdict.RECOVERED is alone.matched[0].judgement.verdict
        assert {Verdict.UNKNOWN} == {it.judgement.verdict for it in all_.matched}


SLOWER = comparison(
    [printed(1_000), printed(1_000, case=case(num_gpus=16)), printed(1_000, case=case(model="m"))],
    [printed(900, notes=(Note.of(NoteCode.FOOTNOTE, text="known issue | 7"),)),
     printed(700, case=case(num_gpus=16)), printed(1_200, case=case(model="m"))],
)  # fmt: skip


class TestTexts:
    def test_groups_begin_with_the_largest_change(self):
        found = triage.groups(SLOWER.matched)
        assert {"slower": [0.7, 0.9], "faster": [1.2]} == {
            name: [round(it.judgement.ratio or 0, 3) for it in some] for name, some in found.items()
        }

    def test_markdown_has_a_table_for_each_group(self):
        text = triage.markdown("1 → 2", SLOWER)
        assert text.startswith("### 1 → 2\n\n3 matched: 1 faster, 2 slower. 0 only")
        assert "**Slower** (2)" in text
        assert "B: known issue \\| 7" in text
        assert "**Slower**" not in triage.markdown("1 → 2", SLOWER, ["faster"])

    def test_junit_fails_on_what_closes_a_gate(self):
        closing = {id(it) for it in SLOWER.slower(lambda _: 0.2)}
        root = ElementTree.fromstring(triage.junit([("1 → 2", triage.checks(SLOWER, closing))]))
        (suite,) = root
        assert ("3", "1", "0") == (suite.get("tests"), suite.get("failures"), suite.get("skipped"))
        assert ["slower Tokens/s/GPU × 0.700; published"] == [
            it.get("message") for it in suite.iter("failure")
        ]

    def test_junit_is_one_document_of_all_frameworks_with_what_is_missing(self):
        lost = comparison([printed(1_000)], [])
        closing = {id(lost.only_a[0])}
        both = (("a 1 → a 2", SLOWER), ("b 1 → b 2", lost))
        text = triage.junit((title, triage.checks(found, closing)) for title, found in both)
        suites = ElementTree.fromstring(text).findall("testsuite")
        assert [("a 1 → a 2", "0"), ("b 1 → b 2", "1")] == [
            (it.get("name"), it.get("failures")) for it in suites
        ]
        skipped = triage.junit([("b 1 → b 2", triage.checks(lost, ()))])
        assert ["missing in B"] == [
            it.get("message") for it in ElementTree.fromstring(skipped).iter("skipped")
        ]
        errors = triage.github("b 1 → b 2", lost, closing).splitlines()
        assert errors[0].startswith("::error")
        assert errors[0].endswith(": missing in B")

    def test_github_has_an_error_for_what_closes_a_gate(self):
        closing = {id(it) for it in SLOWER.slower(lambda _: 0.2)}
        lines = triage.github("1 → 2", SLOWER, closing).splitlines()
        assert ["::error", "::notice", "::notice", "::warning"] == sorted(
            line.split()[0] for line in lines
        )
        assert all("\n" not in line and "title=perfdb::" in line for line in lines)


class TestAccepted:
    def entries(self, folder: Path, text: str):
        path = folder / "accepted.yaml"
        path.write_text(text)
        return accepted.read(path)

    def test_what_is_accepted_closes_no_gate_until_it_expires(self, tmp_path):
        known = self.entries(
            tmp_path,
            f"- {{case: {case().key[:8]}, reason: new sampler, by: A. Person, "
            "expires: 2026-12-31}\n",
        )
        slower = SLOWER.slower(lambda _: 0.0)
        for today, count, said in (
            (date(2026, 12, 31), 1, "accepted until 2026-12-31"),
            (date(2027, 1, 1), 2, "expired on 2026-12-31"),
        ):
            remaining, notes = accepted.left(slower, known, today)
            assert (count, 1) == (len(remaining), len(notes))
            assert notes[0].startswith(said)

    def test_a_file_that_is_wrong_is_refused_with_its_line(self, tmp_path):
        with pytest.raises(InputError, match=r"accepted.yaml"):
            self.entries(tmp_path, "- {model: m, reason: none, by: A. Person}\n")
        assert () == self.entries(tmp_path, "# nothing\n")
        assert () == accepted.read(tmp_path / "none.yaml")
