"""What closes the gates of `perfdb trend`: each case and container, what is gone or fails in part.

The runs are those of `tests.test_trend`: of steady steps, which differ beyond 2.3 % and, with a
margin of 4 %, are the same within 1.7 %.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import URL

from tests import factories
from tests.shell import Done, Shell
from tests.test_trend import ONE, TOLD, TWO, Lab, recomputed

ALL = "regression,missing,unknown"


@pytest.fixture
def lab(sqlite: URL, tmp_path: Path) -> Lab:
    """An empty store and a place for runs."""
    return Lab(sqlite, tmp_path / "runs")


@pytest.fixture
def trend(lab: Lab, perfdb: Shell) -> Shell:
    """`perfdb trend` on the lab's store."""
    return lambda *words: perfdb("trend", "--db", lab.store.render_as_string(), *words)


def gate(trend: Shell, *words: str) -> Done:
    """All gates, of everything; 4 % do not matter."""
    return trend("--fail-on", ALL, "--margin", "4%", *words)


def closed_on(trend: Shell) -> list[tuple[str | None, list[str]]]:
    """The layouts on which gates close, and which ones."""
    found = json.loads(gate(trend, "--json").stdout)["series"]
    return [(one["case_key"], one["closes"]) for one in found if one["closes"]]


class TestRegression:
    def test_a_gate_closes_on_a_regression_that_stands(self, lab: Lab, trend: Shell) -> None:
        lab.ran_each(12.0, 13.0)
        document = json.loads(trend("--json", "--fail-on", "regression,missing").stdout)
        closed, without = trend("llama3-8b", "--fail-on", "regression"), trend("llama3-8b")
        lab.ran("3", 12.0)
        made_up = trend("llama3-8b", "--fail-on", "regression")

        assert (1, 0, 0) == (closed.code, without.code, made_up.code)
        assert (["regression"], [["regression"]]) == (
            document["closed"], [one["closes"] for one in document["series"]],
        )  # fmt: skip
        assert [] == json.loads(trend("--json").stdout)["closed"]
        assert "first slower: 2; made up for since" in made_up.stdout
        assert "1 made up for" in made_up.stdout

    def test_a_gate_closes_on_a_branch_that_is_slower_than_the_newest_release(
        self, lab: Lab, trend: Shell
    ) -> None:
        """None closes between branches, of which 13 s are 7.7 % less than 12 s."""
        lab.ran("main", 13.0)
        lab.ran("next", 12.0)
        lab.ran("main", 12.0, factories.case(num_gpus=16))
        assert 0 == gate(trend).code
        lab.ran("1", 12.0)

        code, out, _ = gate(trend, "llama3-8b")

        assert (1, 2) == (code, out.count("against 1"))
        said = "  slower than 1: main; main, next have no order: none is compared with another\n"
        assert said in out
        assert "first slower" not in out
        asked = ("--fail-on", "regression", "--min-change")
        assert [1, 0] == [trend(*asked, least).code for least in ("7%", "8%")]

    @pytest.mark.parametrize(
        ("seconds", "least", "code"),
        [
            ((12.0, 12.36), "1%", 1),  # 12/12.36 is 2.9 % less
            ((12.0, 12.36), "4", 0),
            ((12.0, 12.36, 12.72), "5%", 1),  # together 5.7 % less than at first
            ((12.0, 13.0, 12.36), "4%", 0),  # made up for but for 2.9 %
        ],
    )
    def test_a_regression_of_less_than_asked_closes_no_gate(
        self, lab: Lab, trend: Shell, seconds: Sequence[float], least: str, code: int
    ) -> None:
        lab.ran_each(*seconds)
        asked = ("llama3-8b", "--fail-on", "regression")
        assert (code, 1) == (trend(*asked, "--min-change", least).code, trend(*asked).code)


class TestDecline:
    """Each release is slower than the one before by less than a pair of single runs can tell."""

    def test_small_steps_that_add_up_close_the_gate_and_the_best_release_is_named(
        self, lab: Lab, trend: Shell
    ) -> None:
        """Four steps of 1.2 % are 4.7 %, which is four times as unlikely to be chance as need be.

        Two are 2.4 %, which may be. A release as fast as the best ends it.
        """
        times = [12.0 * 1.012**number for number in range(5)]
        lab.ran_each(*times[:3])
        assert 0 == trend("--fail-on", "regression").code
        for version, seconds in (("4", times[3]), ("5", times[4])):
            lab.ran(version, seconds)
        code, out, _ = trend("--fail-on", "regression")

        assert 1 == code
        assert "  5 is slower than the best release, 1: -4.7% (0.931 – 0.976)\n" in out
        assert "1 followed over releases: 1 slower than before" in out
        found = json.loads(trend("--fail-on", "regression", "--json").stdout)["series"][0]
        assert (["regression"], None) == (found["closes"], found["first_regression"])
        assert ("5", "1") == (found["decline"]["release"], found["decline"]["best"])
        assert 0 == trend("--fail-on", "regression", "--min-change", "5%").code
        lab.ran("6", 12.0)
        assert 0 == trend("--fail-on", "regression").code

    def test_a_regression_says_it_already_but_for_what_came_before(
        self, lab: Lab, trend: Shell
    ) -> None:
        for version, seconds in (("0.8", 12.0), ("0.9", 12.05), ("1.0", 13.0)):
            lab.ran(version, seconds)
        alone = gate(trend).stdout
        for version in range(1, 8):
            lab.ran(f"0.{version}", 10.85 + 0.15 * version)

        assert "  first slower: 1.0\n" in alone
        assert "1.0 is slower than the best release, 0.1: " in gate(trend).stdout


class TestFailed:
    @pytest.mark.parametrize(
        ("outcome", "said"), [("out_of_memory", "out of memory"), ("interrupted", "interrupted")]
    )
    def test_a_gate_closes_where_the_newest_release_did_not_finish(
        self, lab: Lab, trend: Shell, outcome: str, said: str
    ) -> None:
        """Until a later release finishes."""
        lab.ran_each(12.0, outcome)

        code, out, err = trend("llama3-8b", "--fail-on", "regression,missing")
        silent = trend("llama3-8b", "--fail-on", "regression")

        assert (1, "") == (code, err)
        assert f"failed: {said}" in out.replace("\n", " ")
        table = out.split("\nFailed\n")[1]
        assert (True, True) == (said in table, "megatron-core 1 → 2" in table)
        assert out.endswith("1 followed over releases: 0 slower than before, 1 failed\n")
        assert (0, "warning: 1 failed; --fail-on missing would fail here\n") == (
            silent.code, silent.stderr,
        )  # fmt: skip
        lab.ran("3", 12.0)
        assert 0 == gate(trend).code

    @pytest.mark.parametrize("each", [(), ("--each-case",)])
    def test_runs_that_fail_beside_one_that_finishes_close_it(
        self, lab: Lab, trend: Shell, each: tuple[str, ...]
    ) -> None:
        """Also in later releases that fail as often."""
        lab.ran_each(12.0, 12.0)
        for _ in range(2):
            lab.ran("2", outcome="out_of_memory")

        code, out, err = trend("--fail-on", "missing", "--margin", "4%", *each)
        [series] = json.loads(trend("--json").stdout)["series"]

        said = "2 of 3 runs failed: out of memory"
        assert (1, "", True) == (code, err, said in out.split("\nFailed\n")[1])
        assert out.endswith("0 slower than before, 1 failed\n")
        assert [None, said] == [point["failed"] for point in series["points"]]
        lab.ran("3", 12.0)
        lab.ran("3", outcome="nan_loss")
        before = gate(trend).code
        lab.ran("4", 12.0)
        assert (1, 0) == (before, gate(trend).code)

    @pytest.mark.parametrize(
        ("before", "version", "outcome"),
        [
            (True, "2", "interrupted"),  # stopped, and run anew
            (False, "1", "nan_loss"),  # nothing comes before
            (False, "main", "nan_loss"),
        ],
    )
    def test_what_fails_no_more_than_before_closes_no_gate(
        self, lab: Lab, trend: Shell, before: bool, version: str, outcome: str
    ) -> None:
        if before:
            lab.ran("1", 12.0)
        lab.ran(version, outcome=outcome)
        lab.ran(version, 12.0)
        code, out, _ = gate(trend)
        assert (0, False) == (code, "Failed" in out)


class TestUnknown:
    def test_what_cannot_be_compared_closes_the_gate_that_asks_for_it(
        self, lab: Lab, trend: Shell
    ) -> None:
        lab.ran_each(12.0, 13.0)
        recomputed(lab, "2", "last_n(4)")

        [series] = json.loads(trend("llama3-8b", "--json").stdout)["series"]
        code, out, err = trend("llama3-8b", "--fail-on", "regression")

        said = "windows differ: skip_warmup(2) / last_n(4)"
        assert ("not comparable", said) == (
            series["points"][1]["verdict"],
            series["points"][1]["reason"],
        )
        assert (1, 1) == (code, trend("llama3-8b", "--fail-on", "regression,unknown").code)
        assert said in out.split("Inconclusive")[1]
        assert err == (
            "warning: 1 inconclusive; --fail-on unknown would fail here\n"
            "error: no comparison has a verdict, so --fail-on exits with 1\n"
        )
        lab.ran("3", 12.0)
        lab.ran("4", 12.0)
        assert 0 == trend("llama3-8b", "--fail-on", "regression").code

    def test_what_was_too_noisy_once_closes_no_gate_for_ever(self, lab: Lab, trend: Shell) -> None:
        """By hand: 4 s from decile to decile are 13 % of 12 s; 2.576 × √(π/2) × 13 % × √(3/8)."""
        lab.ran("1", 12.0)
        lab.ran("2", [10.0, 14.0] * 5)
        assert (1, True) == (gate(trend).code, "±25.7%; " in gate(trend, "--all").stdout)
        for version in ("3", "4"):
            lab.ran(version, 12.0)

        code, out, _ = gate(trend)
        [series] = lab.followed()
        assert (0, False) == (code, "Inconclusive" in out)
        assert [None, TOLD, TOLD, "same"] == [point.verdict for point in series.points]


class TestOpenErrors:
    """4 s are 1,687 TFLOP/s of a GPU that has 989."""

    def test_a_figure_with_an_open_error_is_listed_not_judged_and_stepped_over(
        self, lab: Lab, trend: Shell
    ) -> None:
        """13 s after it are compared with 12 s: 0.923."""
        lab.ran_each(12.0, 4.0, 13.0)
        code, out, err = trend("llama3-8b", "--fail-on", "regression")
        [series] = json.loads(trend("llama3-8b", "--json").stdout)["series"]

        assert [(None, False), ("not judged", True), ("slower", False)] == [
            (point["verdict"], point["has_open_errors"]) for point in series["points"]
        ]
        assert [3, 12 / 13] == pytest.approx([point["ratio"] for point in series["points"][1:]])
        assert ("3", 1, "") == (series["first_regression"], code, err)
        assert "⚑ open errors" in out
        told = (
            "1 not judged because of open audit errors (⚑); see `perfdb audit` or use --judge-all\n"
        )
        assert out.endswith(told)

    def test_without_anything_else_to_judge_each_gate_closes_on_it(
        self, lab: Lab, trend: Shell
    ) -> None:
        """From 4 s, which cannot be, to 12 s: nobody can tell what that release has changed."""
        lab.ran("1", 4.0)
        assert "measured, Tokens/s/GPU, ⚑ open errors" in trend("llama3-8b").stdout
        lab.ran("2", 12.0)

        code, out, err = gate(trend, "llama3-8b", "--json")
        all_judged = gate(trend, "llama3-8b", "--json", "--judge-all")

        assert (1, 1, "") == (code, all_judged.code, all_judged.stderr)
        assert [[None, "not judged"], [None, "slower"]] == [
            [point["verdict"] for point in json.loads(said)["series"][0]["points"]]
            for said in (out, all_judged.stdout)
        ]
        assert err.startswith("2 not judged because of open audit errors")

    def test_an_error_in_the_newest_release_makes_up_for_nothing(
        self, lab: Lab, trend: Shell
    ) -> None:
        lab.ran_each(12.0, 13.0, 4.0)
        code, out, _ = trend("llama3-8b", "--fail-on", "regression")
        assert (1, False) == (code, "made up for" in out)
        assert 0 == trend("llama3-8b", "--fail-on", "regression", "--judge-all").code


class TestEachCase:
    @pytest.mark.parametrize(
        ("tonight", "closes"), [(13.5, ["regression"]), ("out_of_memory", ["missing", "unknown"]),
                                (None, ["missing"])]
    )  # fmt: skip
    def test_a_gate_closes_on_a_case_that_is_not_the_best_of_its_work(
        self, lab: Lab, trend: Shell, tonight: float | str | None, closes: list[str]
    ) -> None:
        """TP 1 is the fastest and unchanged. TP 2 is slower, out of memory or gone."""
        lab.ran_each(12.0, 12.0, case=ONE)
        lab.ran_each(12.5, *([tonight] if tonight else []), case=TWO)

        done = gate(trend)
        assert (1, True) == (done.code, "TP 2" in done.stdout)
        assert [(TWO.key, closes)] == closed_on(trend)

    def test_without_a_gate_the_cases_that_are_not_shown_are_counted(
        self, lab: Lab, trend: Shell
    ) -> None:
        lab.ran_each(12.0, 12.0, case=ONE)
        lab.ran_each(12.5, 12.5, case=TWO)
        best, each = trend("llama3-8b"), trend("llama3-8b", "--each-case")
        said = "Not shown: 1 further case of the same workload (--each-case shows them)\n"
        assert (True, False) == (best.stdout.endswith(said), "further" in each.stdout)
        work = "Llama 3 8B · "
        assert (1, 2) == (best.stdout.count(work), each.stdout.count(work))

    @pytest.mark.parametrize("before", [13.0, 11.0, "out_of_memory"])
    def test_a_layout_that_gave_way_holds_no_gate(
        self, lab: Lab, trend: Shell, before: float | str
    ) -> None:
        """TP 1 became slower, faster, or failed, and TP 2 is in its place: as good as ever.

        A branch is compared with the last release of its layout.
        """
        lab.ran_each(12.0, before, case=ONE)
        held = {13.0: ["regression"], "out_of_memory": ["missing", "unknown"]}.get(before)
        assert ([(ONE.key, held)] if held else []) == closed_on(trend)
        lab.ran("3", 10.9, TWO)

        assert (0, []) == (gate(trend).code, closed_on(trend))
        said = "first slower: 2; another layout has taken its place\n"
        assert (before == 13.0) is (said in gate(trend, "--all").stdout)
        if before == 11.0:
            lab.ran("main", 10.9, TWO)
            lab.ran("main", 12.5, ONE)
            assert [(ONE.key, ["regression"])] == closed_on(trend)
            return
        lab.ran("4", 11.9, TWO)
        assert [(TWO.key, ["regression"]), (None, ["regression"])] == closed_on(trend)

    @pytest.mark.parametrize(("seconds", "closes"), [(11.9, ["missing"]), (11.0, [])])
    def test_a_layout_gave_way_to_one_that_is_not_new_only_if_that_is_faster(
        self, lab: Lab, trend: Shell, seconds: float, closes: list[str]
    ) -> None:
        """Which of two equal layouts is the best is chance."""
        lab.ran("1", 12.0, ONE)
        lab.ran_each(13.0, seconds, case=TWO)
        assert ([(ONE.key, closes)] if closes else []) == closed_on(trend)


class TestMissing:
    def test_what_is_gone_is_missing_until_it_is_back(self, lab: Lab, trend: Shell) -> None:
        """With 16 GPUs it ran in 1 and 2, not in 3, and again in 4; another model in 1 alone.

        What is new, or never finished, is not missed.
        """
        gone, model = factories.case(num_gpus=16), factories.case(model="llama3-70b")
        lab.ran_each(12.0, 12.0, 12.0)
        lab.ran("3", 12.0, factories.case(num_gpus=4))
        lab.ran("1", case=factories.case(num_gpus=32), outcome="out_of_memory")
        assert 0 == gate(trend).code
        lab.ran_each(12.0, 12.0, case=gone)
        lab.ran("1", 12.0, model)

        code, out, _ = gate(trend)
        found = json.loads(trend("--json").stdout)["series"]
        missing = {one["points"][0]["case_key"]: one["missing_in"] for one in found}
        assert (1, {gone.key, model.key}) == (code, {key for key, it in missing.items() if it})
        assert (1, 0) == tuple(trend("llama3-70b", "--fail-on", gate).code
                               for gate in ("missing", "regression"))  # fmt: skip
        alone, table = out.split("Missing in megatron-core 3\n")
        assert (False, True) == ("16 × DGX-H100" in alone, "16 × DGX-H100" in table)
        assert "megatron-core 2" in table
        assert "2 missing in the newest" in out
        for case in (ONE, gone, model):
            lab.ran("4", 12.0, case)
        lab.ran("4", 12.0, factories.case(num_gpus=4))
        assert 0 == gate(trend).code

    def test_what_the_newest_container_lacks_is_missing(self, lab: Lab, trend: Shell) -> None:
        lab.boxed("n1", 11, 12.0)
        lab.boxed("n1", 11, 12.0, factories.case(num_gpus=4))
        lab.boxed("n2", 12, 12.0)
        done = gate(trend)
        said = "Missing in megatron-core 0.17.0 [acme/mcore:n2]\n"
        assert (1, True) == (done.code, said in done.stdout)

    def test_a_container_of_another_system_lacks_nothing(self, lab: Lab, trend: Shell) -> None:
        """Images for two kinds of processor; 0.18.0, in one, was run on neither's second system."""
        arm = factories.case(system="dgx-gb200")
        lab.boxed("x86", 11, 12.0)
        lab.boxed("arm", 12, 12.0, arm)
        both = gate(trend).code
        lab.ran("0.18.0", 12.0)
        assert (0, 1) == (both, gate(trend).code)
        assert [(arm.key, ["missing"])] == closed_on(trend)
