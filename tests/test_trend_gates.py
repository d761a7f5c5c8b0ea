"""What closes the gates of `perfdb trend`: each case and container, what is gone or fails in part.

The runs are those of `tests.test_trend`: of steady steps, told apart beyond 1.6 %.
"""

import json
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.record import Case, Figures, Release
from tests import factories
from tests.shell import Done, Shell
from tests.test_trend import MONDAY, Lab

ALL = "regression,missing,unknown"
ONE, TWO = factories.case(), factories.case(tensor_parallel=2)
"""The same work in two layouts."""


@pytest.fixture
def lab(sqlite: URL, tmp_path: Path) -> Lab:
    """An empty store and a place for runs."""
    return Lab(sqlite, tmp_path / "runs")


@pytest.fixture
def trend(lab: Lab, perfdb: Shell) -> Shell:
    """`perfdb trend` on the lab's store."""
    return partial(perfdb, "trend", "--db", lab.store.render_as_string())


def ended(lab: Lab, version: str, outcome: str, case: Case = ONE) -> None:
    """A run that did not finish."""
    lab.count += 1
    name, release = f"f{lab.count}", factories.release(version)
    factories.stored(
        lab.store,
        factories.write_run(lab.folder, run_id=name, release=release, outcome=outcome, case=case),
    )


def gate(trend: Shell, *words: str) -> Done:
    """All gates, of everything."""
    return trend("--fail-on", ALL, *words)


def closed_on(trend: Shell) -> list[tuple[str | None, list[str]]]:
    """The layouts on which gates close, and which ones."""
    found = json.loads(gate(trend, "--json").stdout)["series"]
    return [(one["case_key"], one["closes"]) for one in found if one["closes"]]


class TestEachCase:
    @pytest.mark.parametrize(
        ("tonight", "closes"), [(13.5, ["regression"]), ("out_of_memory", ["missing", "unknown"]),
                                (None, ["missing"])]
    )  # fmt: skip
    def test_a_gate_closes_on_a_case_that_is_not_the_best_of_its_work(
        self, lab: Lab, trend: Shell, tonight: float | str | None, closes: list[str]
    ) -> None:
        """TP 1 is the fastest and unchanged. TP 2 is slower, out of memory or gone."""
        for version in ("1", "2"):
            lab.ran(version, 12.0, ONE)
        lab.ran("1", 12.5, TWO)
        if isinstance(tonight, str):
            ended(lab, "2", tonight, TWO)
        elif tonight is not None:
            lab.ran("2", tonight, TWO)

        assert 1 == gate(trend)[0]
        assert [(TWO.key, closes)] == closed_on(trend)
        assert "TP 2" in gate(trend).stdout

    def test_without_a_gate_the_cases_that_are_not_shown_are_counted(
        self, lab: Lab, trend: Shell
    ) -> None:
        for version in ("1", "2"):
            lab.ran(version, 12.0, ONE)
            lab.ran(version, 12.5, TWO)

        best, each = trend("llama3-8b"), trend("llama3-8b", "--each-case")

        said = "not shown: 1 further case of the same work; --each-case follows each\n"
        assert best.stdout.endswith(said)
        assert "further" not in each.stdout
        work = "Llama 3 8B · "
        assert (1, 2) == (best.stdout.count(work), each.stdout.count(work))

    def test_a_retuned_layout_is_no_loss(self, lab: Lab, trend: Shell) -> None:
        """TP 1 was the best and is gone; TP 2, which is new, stands in its place."""
        lab.ran("1", 12.0, ONE)
        lab.ran("2", 11.0, TWO)

        lab.ran("main", 11.0, ONE)
        assert (0, []) == (gate(trend)[0], closed_on(trend))
        lab.ran("3", 12.0, TWO)
        assert [(TWO.key, ["regression"]), (None, ["regression"])] == closed_on(trend)

    @pytest.mark.parametrize("before", [13.0, 11.0, "out_of_memory"])
    def test_a_layout_that_gave_way_holds_no_gate(
        self, lab: Lab, trend: Shell, before: float | str
    ) -> None:
        """TP 1 became slower, faster, or failed, and TP 2 is in its place: as good as ever."""
        lab.ran("1", 12.0, ONE)
        if isinstance(before, str):
            ended(lab, "2", before, ONE)
        else:
            lab.ran("2", before, ONE)
        held = {13.0: ["regression"], "out_of_memory": ["missing", "unknown"]}.get(before)
        assert ([(ONE.key, held)] if held else []) == closed_on(trend)
        lab.ran("3", 10.9, TWO)

        assert (0, []) == (gate(trend)[0], closed_on(trend))
        said = "first slower: 2; another layout has taken its place\n"
        assert (before == 13.0) is (said in gate(trend, "--all").stdout)
        lab.ran("4", 11.9, TWO)
        assert [(TWO.key, ["regression"]), (None, ["regression"])] == closed_on(trend)

    def test_a_branch_is_held_against_the_last_release_of_a_layout_that_gave_way(
        self, lab: Lab, trend: Shell
    ) -> None:
        lab.ran("1", 12.0, ONE)
        lab.ran("2", 11.0, TWO)
        lab.ran("main", 11.0, TWO)
        lab.ran("main", 12.5, ONE)

        assert [(ONE.key, ["regression"])] == closed_on(trend)

    @pytest.mark.parametrize(("seconds", "closes"), [(11.9, ["missing"]), (11.0, [])])
    def test_a_layout_gave_way_to_one_that_is_not_new_only_if_that_is_faster(
        self, lab: Lab, trend: Shell, seconds: float, closes: list[str]
    ) -> None:
        """Which of two equal layouts is the best is chance."""
        lab.ran("1", 12.0, ONE)
        lab.ran("1", 13.0, TWO)
        lab.ran("2", seconds, TWO)

        assert ([(ONE.key, closes)] if closes else []) == closed_on(trend)

    def test_a_best_layout_that_is_gone_is_missing_though_another_is_left(
        self, lab: Lab, trend: Shell
    ) -> None:
        """TP 2 is no new layout: nobody has retuned the work. It is also slower than TP 1 was."""
        lab.ran("1", 12.0, ONE)
        for version in ("1", "2"):
            lab.ran(version, 13.0, TWO)

        closes = [(ONE.key, ["missing"]), (None, ["regression"])]
        assert (1, closes) == (gate(trend)[0], closed_on(trend))


class TestDecline:
    """Each release is slower than the one before by less than a pair of single runs can tell."""

    def declining(self, lab: Lab, by: float, count: int) -> None:
        for number in range(count):
            lab.ran(f"1.{number}", 12.0 * by**number)

    def test_small_steps_that_add_up_close_the_gate_and_the_best_release_is_named(
        self, lab: Lab, trend: Shell
    ) -> None:
        """Four steps of 1.2 % are 4.7 %: beyond twice the 1.6 % that two single runs tell."""
        self.declining(lab, 1.012, 5)
        code, out, _ = gate(trend)

        assert 1 == code
        assert "  1.4 is slower than the best release, 1.0: -4.7% (0.938 – 0.969)\n" in out
        assert "1 followed over releases: 1 slower than before\n" in out
        found = json.loads(gate(trend, "--json").stdout)["series"][0]
        assert (["regression"], None) == (found["closes"], found["first_regression"])
        assert ("1.4", "1.0") == (found["decline"]["release"], found["decline"]["best"])
        assert 0 == gate(trend, "--min-change", "5%")[0]

    def test_what_is_slower_than_the_best_by_less_than_twice_the_interval_may_be_chance(
        self, lab: Lab, trend: Shell
    ) -> None:
        """Two steps of 1.2 % are 2.4 %, more than 1.6 % and less than 3.2 %."""
        self.declining(lab, 1.012, 3)
        assert 0 == gate(trend)[0]

    def test_a_regression_says_it_already_but_for_what_came_before(
        self, lab: Lab, trend: Shell
    ) -> None:
        for version, seconds in (("0.8", 12.0), ("0.9", 12.05), ("1.0", 13.0)):
            lab.ran(version, seconds)
        alone = gate(trend).stdout
        for version, seconds in (("0.1", 11.0), ("0.2", 11.15), ("0.3", 11.3), ("0.4", 11.45),
                                 ("0.5", 11.6), ("0.6", 11.75), ("0.7", 11.9)):  # fmt: skip
            lab.ran(version, seconds)

        assert "  first slower: 1.0\n" in alone
        assert (
            "  first slower: 1.0; 1.0 is slower than the best release, 0.1: " in gate(trend).stdout
        )

    def test_a_decline_ends_with_a_release_as_fast_as_the_best(
        self, lab: Lab, trend: Shell
    ) -> None:
        self.declining(lab, 1.012, 5)
        lab.ran("1.5", 12.0)
        assert 0 == gate(trend)[0]


class TestOrder:
    def test_a_final_release_is_newer_than_its_candidates(self, lab: Lab, trend: Shell) -> None:
        for version in ("0.20.0", "0.21.0rc1", "0.21.0rc2", "0.21.0.dev3"):
            lab.ran(version, 12.0)
        lab.ran("0.21.0", 14.0)

        code, out, _ = gate(trend)

        assert 1 == code
        assert "first slower: 0.21.0\n" in out

    def test_what_the_final_release_lacks_is_missing(self, lab: Lab, trend: Shell) -> None:
        lab.ran("0.21.0rc1", 12.0)
        lab.ran("0.21.0", 12.0, factories.case(num_gpus=4))

        assert "Missing in megatron-core 0.21.0\n" in gate(trend).stdout


def in_container(lab: Lab, name: str, day: int, seconds: float, case: Case | None = None) -> None:
    """A run of 0.17.0 in a container."""
    release = Release(framework="megatron-core", version="0.17.0", container=f"acme/mcore:{name}")
    times = {"step_times": [seconds] * 10, "started_at": MONDAY.replace(day=day)}
    made = factories.write_run(
        lab.folder, run_id=f"{name}-{day}-{lab.count}", case=case, release=release, **times
    )
    lab.count += 1
    factories.stored(lab.store, made)


class TestContainers:
    def test_the_containers_of_a_version_follow_one_another_in_time(
        self, lab: Lab, trend: Shell
    ) -> None:
        """By their names z9 would be the last; it was run first, though stored last."""
        lab.ran("0.16.0", 12.0)
        in_container(lab, "a1", 12, 14.0)
        in_container(lab, "z9", 11, 12.0)
        lab.ran("0.18.0", 14.0)

        code, out, _ = gate(trend)
        [series] = json.loads(trend("--json").stdout)["series"]

        labels = ["0.17.0 [acme/mcore:z9]", "0.17.0 [acme/mcore:a1]"]
        assert ["0.16.0", *labels, "0.18.0"] == [point["release"] for point in series["points"]]
        assert [None, "same", "slower", "same"] == [one["verdict"] for one in series["points"]]
        assert (1, True) == (code, f"first slower: {labels[1]}" in out)

    def test_what_the_newest_container_lacks_is_missing(self, lab: Lab, trend: Shell) -> None:
        in_container(lab, "n1", 11, 12.0)
        in_container(lab, "n1", 11, 12.0, factories.case(num_gpus=4))
        in_container(lab, "n2", 12, 12.0)

        assert 1 == gate(trend)[0]
        assert "Missing in megatron-core 0.17.0 [acme/mcore:n2]\n" in gate(trend).stdout

    def test_a_container_of_another_system_lacks_nothing(self, lab: Lab, trend: Shell) -> None:
        """Images for two kinds of processor; 0.18.0, in one, was run on neither's second system."""
        arm = factories.case(system="dgx-gb200")
        in_container(lab, "x86", 11, 12.0)
        in_container(lab, "arm", 12, 12.0, arm)
        both = gate(trend)[0]
        lab.ran("0.18.0", 12.0)

        assert (0, 1) == (both, gate(trend)[0])
        assert [(arm.key, ["missing"])] == closed_on(trend)

    def test_a_branch_in_several_containers_says_so(self, lab: Lab, trend: Shell) -> None:
        lab.ran("0.16.0", 12.0)
        for name in ("n1", "n2"):
            release = Release(framework="megatron-core", version="main", container=name)
            run = factories.write_run(lab.folder, run_id=name, release=release)
            factories.stored(lab.store, run)

        [series] = json.loads(trend("--json").stdout)["series"]
        assert "  2 containers  " in trend("llama3-8b").stdout
        assert [1, 2] == [point["num_containers"] for point in series["points"]]

    def test_one_container_needs_no_name(self, lab: Lab, trend: Shell) -> None:
        in_container(lab, "n1", 11, 12.0)
        lab.ran("0.18.0", 12.0)

        assert "mcore:n1" not in trend("llama3-8b").stdout


class TestMissing:
    def test_what_is_gone_is_missing_until_it_is_back(self, lab: Lab, trend: Shell) -> None:
        """With 16 GPUs it ran in 1 and 2, not in 3 to 5, and again in 6."""
        gone = factories.case(num_gpus=16)
        for version in ("1", "2", "3", "4", "5"):
            lab.ran(version, 12.0)
        for version in ("1", "2"):
            lab.ran(version, 12.0, gone)
        away = gate(trend)
        [missing] = [it for it in json.loads(trend("--json").stdout)["series"] if it["missing_in"]]
        for case in (ONE, gone):
            lab.ran("6", 12.0, case)

        assert (1, "5", gone.key) == (
            away[0],
            missing["missing_in"],
            missing["points"][0]["case_key"],
        )
        assert "megatron-core 2" in away.stdout
        assert 0 == gate(trend)[0]

    def test_what_never_finished_is_not_missed(self, lab: Lab, trend: Shell) -> None:
        ended(lab, "1", "out_of_memory", factories.case(num_gpus=16))
        for version in ("1", "2"):
            lab.ran(version, 12.0)

        assert 0 == gate(trend)[0]


class TestFailedInPart:
    @pytest.mark.parametrize("each", [(), ("--each-case",)])
    def test_runs_that_fail_beside_one_that_finishes_close_the_gate(
        self, lab: Lab, trend: Shell, each: tuple[str, ...]
    ) -> None:
        lab.ran("1", 12.0)
        lab.ran("2", 12.0)
        for _ in range(2):
            ended(lab, "2", "out_of_memory")

        code, out, err = trend("--fail-on", "missing", *each)
        [series] = json.loads(trend("--json").stdout)["series"]
        silent = trend("--fail-on", "regression")

        said = "2 of 3 runs failed: out of memory"
        assert (1, "") == (code, err)
        assert said in out.split("\nFailed\n")[1]
        assert out.endswith("0 slower than before, 1 failed\n")
        assert [None, said] == [point["failed"] for point in series["points"]]
        assert "warning: 1 failed, and --fail-on missing was not asked for\n" == silent.stderr

    def test_it_stands_in_later_releases_that_fail_as_often(self, lab: Lab, trend: Shell) -> None:
        lab.ran("1", 12.0)
        for version in ("2", "3"):
            lab.ran(version, 12.0)
            ended(lab, version, "nan_loss")
        before = gate(trend)[0]
        lab.ran("4", 12.0)

        assert (1, 0) == (before, gate(trend)[0])

    def test_a_run_that_was_stopped_and_run_anew_is_no_failure(
        self, lab: Lab, trend: Shell
    ) -> None:
        lab.ran("1", 12.0)
        ended(lab, "2", "interrupted")
        lab.ran("2", 12.0)

        assert 0 == gate(trend)[0]

    @pytest.mark.parametrize("version", ["1", "main"])
    def test_what_nothing_comes_before_fails_no_more_than_before(
        self, lab: Lab, trend: Shell, version: str
    ) -> None:
        lab.ran(version, 12.0)
        ended(lab, version, "nan_loss")

        code, out, _ = gate(trend)
        assert (0, False) == (code, "Failed" in out)


class TestSmallestChange:
    @pytest.mark.parametrize(
        ("seconds", "least", "code"),
        [
            ((12.0, 12.24), "1%", 1),  # 12/12.24 is 2.0 % less
            ((12.0, 12.24), "3%", 0),
            ((12.0, 12.24), "3", 0),
            ((12.0, 12.24, 12.48), "3%", 1),  # together 3.8 % less than at first
            ((12.0, 12.12, 12.48), "3.5%", 1),  # 2.9 % at once, and 3.8 % less than the best
            ((12.0, 13.0, 12.24), "3%", 0),  # made up for but for 2.0 %
        ],
    )
    def test_a_regression_of_less_closes_no_gate(
        self, lab: Lab, trend: Shell, seconds: tuple[float, ...], least: str, code: int
    ) -> None:
        for version, time in enumerate(seconds, start=1):
            lab.ran(str(version), time)

        asked = ("llama3-8b", "--fail-on", "regression")
        assert (code, 1) == (trend(*asked, "--min-change", least)[0], trend(*asked)[0])

    def test_a_branch_that_is_slower_by_less_closes_no_gate(self, lab: Lab, trend: Shell) -> None:
        lab.ran("1", 12.0)
        lab.ran("main", 12.24)

        asked = ("llama3-8b", "--fail-on", "regression")
        assert (1, 0) == (trend(*asked)[0], trend(*asked, "--min-change", "3%")[0])

    @pytest.mark.parametrize("least", ["-1%", "100%", "nan", "two"])
    def test_a_change_that_is_none_is_refused(self, lab: Lab, trend: Shell, least: str) -> None:
        lab.ran("1", 12.0)
        code, _, err = trend("llama3-8b", "--min-change", least)
        assert (2, True) == (code, "such as 2%" in err)


def test_the_document_says_which_gates_close_and_on_what(lab: Lab, trend: Shell) -> None:
    lab.ran("1", 12.0)
    lab.ran("2", 13.0)
    page = factories.published(figures=Figures(tokens_per_sec_per_gpu=9_000))
    factories.stored(lab.store, page)

    found = json.loads(trend("--json", "--fail-on", "regression,missing").stdout)
    without = json.loads(trend("--json").stdout)

    assert (["regression"], []) == (found["closed"], without["closed"])
    assert [[], ["regression"]] == sorted(one["closes"] for one in found["series"])
