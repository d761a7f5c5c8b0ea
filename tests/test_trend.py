"""Trends: the same work over releases and runs, with the verdicts of a comparison.

A store of few runs shows no noise of its own, so that of MLPerf is assumed: 0.166 % with 2 degrees
of freedom. Two single runs differ for sure beyond 9.925 × √2 × 0.166 % = 2.3 %.
"""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL

from perfdb import aggregation
from perfdb.cli.trend import BLOCKS, MOST_BARS, sparkline
from perfdb.compare import Level, named, releases
from perfdb.compare.releases import known_releases
from perfdb.compare.trend import Series, follow
from perfdb.db.session import reading
from perfdb.errors import InputError
from perfdb.queries.scope import Scope
from perfdb.record import Case, Figures, Release
from perfdb.rundir import RunDir
from perfdb.verify.figures import Asked
from perfdb.verify.recompute import recompute
from tests import factories
from tests.shell import Shell

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
ONE, TWO = factories.case(), factories.case(tensor_parallel=2)
"""The same work in two layouts."""


TOLD = "can't tell"
"""Equal single runs: that they differ by up to 2.3 % cannot be ruled out."""


class Lab:
    """Runs things; all are stored at once, when somebody asks for the store."""

    def __init__(self, url: URL, folder: Path) -> None:
        self.url, self.folder, self.count = url, folder, 0
        self.waiting: list[RunDir] = []

    @property
    def store(self) -> URL:
        """The store with all runs."""
        runs, self.waiting = self.waiting, []
        factories.stored(self.url, *runs)
        return self.url

    def written(
        self,
        version: str | None,
        seconds: float | Sequence[float] = 12.0,
        case: Case | None = None,
        **changed: object,
    ) -> RunDir:
        """A run of ten steps of so many seconds, a day after the last one, that is not stored."""
        self.count += 1
        times = [seconds] * 10 if isinstance(seconds, float) else seconds
        fields = {
            "release": factories.release(version),
            "started_at": MONDAY + timedelta(days=self.count),
        }
        return factories.write_run(
            self.folder, run_id=f"r{self.count}", case=case, step_times=times, **(fields | changed)
        )

    def ran(self, *what: Any, **changed: object) -> None:
        """A run that is to be in the store."""
        self.waiting.append(self.written(*what, **changed))

    def ran_each(self, *seconds: float | str, case: Case | None = None) -> None:
        """A run of each of the releases 1, 2, …; an outcome in place of seconds is one's end."""
        for version, each in enumerate(seconds, start=1):
            if isinstance(each, str):
                self.ran(str(version), case=case, outcome=each)
            else:
                self.ran(str(version), each, case)

    def boxed(self, name: str, day: int, seconds: float, case: Case | None = None) -> None:
        """A run of 0.17.0 in a container."""
        container = f"acme/mcore:{name}"
        box = Release(framework="megatron-core", version="0.17.0", container=container)
        self.ran("0.17.0", seconds, case, release=box, started_at=MONDAY.replace(day=day))

    def followed(
        self,
        *words: str,
        only: Scope | None = None,
        level: Level = Level.WORKLOAD,
        metric: str | None = None,
    ) -> list[Series]:
        """The series that words mean; of Llama 3 8B without a word."""
        with reading(self.store) as connection:
            found = releases.results_of_words(connection, words or ("llama3-8b",), only or Scope())
            return follow(found, known_releases(connection), level, metric)


@pytest.fixture
def lab(sqlite: URL, tmp_path: Path) -> Lab:
    """An empty store and a place for runs."""
    return Lab(sqlite, tmp_path / "runs")


@pytest.fixture
def trend(lab: Lab, perfdb: Shell) -> Shell:
    """`perfdb trend` on the lab's store."""
    return lambda *words: perfdb("trend", "--db", lab.store.render_as_string(), *words)


def verdicts(series: Series) -> list[tuple[str, str | None]]:
    """Each release and its verdict."""
    return [(point.release, point.verdict and str(point.verdict)) for point in series.points]


class TestOrder:
    def test_releases_follow_one_another_in_the_order_of_their_versions(self, lab: Lab) -> None:
        """0.9 comes before 0.10, whatever was run first; 12 s to 12.06 s is within the noise."""
        for version, seconds in (("0.10.0", 12.0), ("0.9.0", 12.06), ("0.11.0", 13.0)):
            lab.ran(version, seconds)
        [series] = lab.followed()
        assert [("0.9.0", None), ("0.10.0", TOLD), ("0.11.0", "slower")] == verdicts(series)
        last = series.points[-1].judgement
        assert last
        assert 12 / 13 == pytest.approx(last.ratio)
        assert "tokens_per_sec_per_gpu" == series.metric

    def test_builds_of_one_file_are_in_the_order_of_its_dates_then_of_its_lines(
        self, store: URL, tmp_path: Path
    ) -> None:
        """The one on line 6 has a date long before the file was read; they are stored backwards."""
        of_lines = {
            line: factories.published(
                line=line,
                release=factories.release(f"0.16.0rc0+{line}a2b3c4", framework="nemo"),
                extras={"last_verified": "2025-08-18"} if line == 6 else {},
            )
            for line in (7, 6, 5)
        }
        factories.stored(store, *of_lines.values())

        [series] = Lab(store, tmp_path).followed()

        expected = [of_lines[line].release.version for line in (6, 5, 7)]
        assert expected == [point.release for point in series.points]

    def test_branches_have_no_place_in_the_order_and_stand_against_the_newest_release(
        self, lab: Lab
    ) -> None:
        """main takes 13 s and next 12 s: not one after the other, each after 1.1, of 12 s."""
        for version, seconds in (("next", 12.0), ("main", 13.0)):
            lab.ran(version, seconds)
        [alone] = lab.followed()
        assert [("main", None), ("next", None)] == verdicts(alone)
        assert (None, False) == (alone.regression, alone.is_slower())
        for version, seconds in (("1.0", 11.0), ("1.1", 12.0), (None, 12.0)):
            lab.ran(version, seconds)

        [series] = lab.followed()

        assert [
            ("1.0", None), ("1.1", "slower"), ("main", "slower"), ("next", TOLD),
            ("(unattributed)", TOLD),
        ] == verdicts(series)  # fmt: skip
        assert [None, "1.0", "1.1", "1.1", "1.1"] == [point.against for point in series.points]
        assert series.regression is series.points[1]

    def test_runs_of_a_release_stand_in_the_order_of_their_time(self, lab: Lab) -> None:
        """Its figure is that of the run of median step time."""
        for seconds in (12.0, 14.0, 13.0):
            lab.ran("1", seconds)

        [series] = lab.followed(metric="step_time_s")

        [point] = series.points
        assert [12.0, 14.0, 13.0] == point.side.figures(series.metric)
        assert 13.0 == point.side.shown.figure("step_time_s")

    def test_the_containers_of_a_version_follow_one_another_in_time(
        self, lab: Lab, trend: Shell
    ) -> None:
        """By their names z9 would be the last; it was run first, though stored last.

        Those of a branch are counted.
        """
        lab.ran("0.16.0", 12.0)
        lab.boxed("a1", 12, 14.0)
        lab.boxed("z9", 11, 12.0)
        lab.ran("0.18.0", 14.0)

        code, out, _ = trend("--fail-on", "regression")
        [series] = json.loads(trend("--json").stdout)["series"]

        labels = ["0.17.0 [acme/mcore:z9]", "0.17.0 [acme/mcore:a1]"]
        assert ["0.16.0", *labels, "0.18.0"] == [point["release"] for point in series["points"]]
        assert [None, TOLD, "slower", TOLD] == [one["verdict"] for one in series["points"]]
        assert (1, True) == (code, f"first slower: {labels[1]}" in out)
        for name in ("n1", "n2"):
            box = Release(framework="megatron-core", version="main", container=name)
            lab.ran("main", 12.0, release=box)
        [series] = json.loads(trend("--json").stdout)["series"]
        assert "\n2 containers\n" in trend("llama3-8b").stdout
        assert [1, 1, 1, 1, 2] == [point["num_containers"] for point in series["points"]]

    def test_the_only_container_of_a_version_needs_no_name(self, lab: Lab, trend: Shell) -> None:
        lab.boxed("n1", 11, 12.0)
        lab.ran("0.18.0", 12.0)
        assert "mcore:n1" not in trend("llama3-8b").stdout


class TestRegression:
    @pytest.mark.parametrize(
        ("seconds", "first", "recovered"),
        [
            ((12.0, 11.0), None, False),
            ((12.0, 11.0, 12.0, 13.0), 2, False),
            ((12.0, 13.0, 12.5, 12.02), 1, True),  # the same as the first
            ((12.0, 13.0, 11.0, 12.0), 3, False),  # that of 13 s was made up for
            ((12.0, "out_of_memory", 13.0), 2, False),  # 13 s are compared with the first
        ],
    )
    def test_it_is_the_first_release_that_is_slower_and_not_made_up_for(
        self, lab: Lab, seconds: Sequence[float | str], first: int | None, recovered: bool
    ) -> None:
        lab.ran_each(*seconds)
        [series] = lab.followed()
        expected = None if first is None else series.points[first]
        assert (expected, recovered) == (series.regression, series.recovered)
        if "out_of_memory" in seconds:
            assert [("1", None), ("2", "failed"), ("3", "slower")] == verdicts(series)
        if recovered:
            [series] = lab.followed(metric="step_time_s")
            assert ["slower", "faster"] == [str(point.verdict) for point in series.points[1:3]]

    def test_it_is_not_made_up_for_by_another_window_or_by_noise(self, lab: Lab) -> None:
        """12 s, 13 s, then 12 s over other steps, or steps between 10 and 14 s."""
        lab.ran_each(12.0, 13.0, 12.0)
        recomputed(lab, "3", "last_n(4)")
        [of_window] = lab.followed()
        lab.ran("4", [10.0, 14.0] * 5)
        [noisy] = lab.followed()
        for series in (of_window, noisy):
            assert (series.points[1], False) == (series.regression, series.recovered)


def recomputed(lab: Lab, version: str, window: str) -> None:
    """Take the figures of one release over other steps."""
    with reading(lab.store) as connection:
        ids = named(version, known_releases(connection)).release_ids
    assert recompute(lab.store, Scope(release_ids=ids), Asked(aggregation.named(window))).changed


class TestSeries:
    def test_a_release_stands_with_its_best_configuration_and_each_case_has_its_own(
        self, lab: Lab, trend: Shell
    ) -> None:
        """2 is faster with TP 2 than with TP 1, whose case is the same as before."""
        lab.ran("1", 12.0, ONE)
        lab.ran("2", 12.0, ONE)
        lab.ran("2", 11.0, TWO)

        [best] = lab.followed()
        cases = lab.followed(level=Level.CONFIGURATION)

        assert [("1", None), ("2", "faster")] == verdicts(best)
        assert {"tensor_parallel": (1, 2)} == best.points[1].differences
        assert [[("1", None), ("2", TOLD)], [("2", None)]] == sorted(
            (verdicts(it) for it in cases), key=len, reverse=True
        )
        [series] = json.loads(trend(ONE.key[:8], "--json").stdout)["series"]
        assert ("configuration", ONE.key) == (series["level"], series["case_key"])
        assert [None, TOLD] == [point["verdict"] for point in series["points"]]

    def test_measured_and_published_figures_are_two_series(self, lab: Lab) -> None:
        lab.ran("1", 12.0)
        figures = Figures(model_tflops_per_sec_per_gpu=500)
        factories.stored(lab.store, factories.published(case=ONE, figures=figures))
        assert [
            ("measured", "tokens_per_sec_per_gpu"),
            ("published", "model_tflops_per_sec_per_gpu"),
        ] == sorted((str(it.shown.origin), it.metric) for it in lab.followed())

    def test_words_are_models_and_beginnings_of_keys(self, lab: Lab) -> None:
        other = factories.case(model="llama3-70b", system="dgx-b200")
        lab.ran("1", 12.0, ONE)
        lab.ran("1", 12.0, other)

        def models(*words: str, **only: str) -> list[str]:
            return [it.shown.model for it in lab.followed(*words, only=Scope(**only))]

        assert ["llama3-8b"] == models("LLAMA3-8B") == models(ONE.key[:6].upper())
        assert ["llama3-70b"] == models(other.workload_key[:10])
        both = ("llama3-70b", "llama3-8b")
        assert ["llama3-8b", "llama3-70b"] == sorted(models(*both), reverse=True)
        assert ["llama3-70b"] == models(*both, system="dgx-b200")
        assert 2 == len(models(*both, framework="megatron-core"))

    @pytest.mark.parametrize(
        ("words", "only", "message"),
        [
            (["llama3-8"], Scope(), "of 'llama3-8'; did you mean llama3-8b or llama3-70b? Or use"),
            (["zzz"], Scope(), "known: llama3-70b, llama3-8b; or use the beginning of a key"),
            (["llama3-8b"], Scope(system="dgx-h10"), "--system: no results of 'dgx-h10'; did you"),
            (["llama3-8b"], Scope(system="dgx-b200"), "no results of llama3-8b on dgx-b200; leave"),
        ],
    )
    def test_what_matches_nothing_is_refused_with_a_suggestion(
        self, lab: Lab, trend: Shell, words: Sequence[str], only: Scope, message: str
    ) -> None:
        assert (2, True) == (trend().code, "fill the store with `perfdb ingest`" in trend().stderr)
        with pytest.raises(InputError, match="fill it with `perfdb ingest`"):
            lab.followed()
        lab.ran("1", 12.0)
        lab.ran("1", 12.0, factories.case(system="dgx-b200", model="llama3-70b"))
        with pytest.raises(InputError) as refused:
            lab.followed(*words, only=only)
        assert message in str(refused.value)


class TestSparkline:
    def test_by_hand(self) -> None:
        """Lowest, a third of the way up, highest; of forty figures a bar is the mean of two."""
        assert "▁▃█" == sparkline([0, 1, 3], (0, 3))
        assert ("▅", "") == (sparkline([7], (7, 7)), sparkline([], (0, 0)))
        assert "▁" * 10 + "█" * 10 == sparkline([0.0] * 20 + [7.0] * 20, (0, 7))
        assert "▅" * MOST_BARS == sparkline([0.0, 7.0] * 20, (0, 7))
        assert MOST_BARS == len(sparkline([1.0] * 101, (0, 7)))

    @given(st.lists(st.floats(1e-6, 1e12), min_size=1, max_size=MOST_BARS))
    def test_it_has_a_bar_for_each_figure_in_their_order(self, figures: list[float]) -> None:
        bars = sparkline(figures, (min(figures), max(figures)))
        heights = [BLOCKS.index(bar) for bar in bars]
        assert len(figures) == len(heights)
        ranked = [height for _, height in sorted(zip(figures, heights, strict=True))]
        assert sorted(heights) == ranked
        if len(set(figures)) > 1:
            assert (0, 7) == (min(heights), max(heights))


class TestCommand:
    def test_it_prints_a_table(self, lab: Lab, trend: Shell) -> None:
        """128 × 8,192 tokens in 12 s on 8 GPUs are 10,923 each a second; in 13 s 10,082."""
        lab.ran_each(12.0, 13.0)
        lab.ran("2", 12.0, factories.case(num_gpus=16))
        page = factories.published(case=factories.case(num_gpus=32))
        factories.stored(lab.store, page)

        code, out, err = trend("llama3-8b")
        by_time = trend("llama3-8b", "--metric", "step_time_s").stdout

        assert (0, "") == (code, err)
        rows = [line.split() for line in out.splitlines()]
        assert ["1", "10,923", "–", "–", "–", "█"] in rows
        assert ["2", "10,082", "-7.7%", "0.902", "–", "0.945", "slower", "▁"] in rows
        assert "first slower: 2" in out
        assert "In one release only" in out
        assert out.endswith("1 followed over releases: 1 slower than before\n")
        # A page of tokens/s has no step time, and is not listed with a dash.
        assert (True, False) == ("16 × DGX-H100" in by_time, "32 × DGX-H100" in by_time)

    def test_the_table_fits_a_terminal_of_80_columns(
        self, lab: Lab, trend: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lab.ran("25.04.01.dev3", 12.0)
        lab.ran("25.07", 13.0, factories.case(tensor_parallel=2, micro_batch_size=4))
        monkeypatch.setenv("FORCE_COLOR", "1")  # to rich a terminal,
        monkeypatch.setenv("TERM", "dumb")  # without colours
        monkeypatch.setenv("COLUMNS", "80")

        _, out, _ = trend("llama3-8b", "--metric", "model_tflops_per_sec_per_gpu")

        assert max(map(len, out.splitlines())) <= 80
        assert "slower" in out
        assert "MBS 1 → 4" in out

    def test_json(self, lab: Lab, trend: Shell) -> None:
        lab.ran_each(12.0, 13.0)
        lab.ran("2", outcome="out_of_memory")

        code, out, err = trend("llama3-8b", "--json", "--metric", "step_time_s")

        assert (0, "") == (code, err)
        [series] = json.loads(out)["series"]
        assert (ONE.workload_key, "measured", "step_time_s", "s", "2", False) == tuple(
            series[name] for name in ("workload_key", "origin", "metric", "unit",
                                      "first_regression", "recovered")
        )  # fmt: skip
        first, second = series["points"]
        assert (None, None, 12.0, ONE.key, 1, 1) == tuple(
            first[name] for name in ("verdict", "ratio", "figure", "case_key", "num_results",
                                     "num_finished")
        )  # fmt: skip
        assert ("slower", pytest.approx(13 / 12), 2, 1) == (
            second["verdict"], second["ratio"], second["num_results"], second["num_finished"],
        )  # fmt: skip
        runs = [(run["run_id"], run["source"], run["outcome"]) for run in second["runs"]]
        assert ("r2", f"{lab.folder}/r2/steps.jsonl", "finished") == runs[0]
        assert second["runs"][0]["started_at"].startswith("2026-03-04")
        assert "1 of 2 runs (1 out of memory)" in trend("llama3-8b").stdout

    def test_without_a_model_what_has_news_is_listed_and_the_rest_is_counted(
        self, lab: Lab, trend: Shell
    ) -> None:
        """Llama 3 8B is slower with 8 GPUs and the same with 16; Llama 3 70B is in one release."""
        lab.ran_each(12.0, 13.0)
        lab.ran_each(12.0, 12.0, case=factories.case(num_gpus=16))
        lab.ran("2", 100.0, factories.case(model="llama3-70b"))
        out, everything = trend("--fail-on", "regression").stdout, trend("--all").stdout
        assert (True, False) == ("BF16 · 8 × DGX-H100" in out, "BF16 · 16 × DGX-H100" in out)
        assert "70B" not in out
        assert out.endswith("; 1 unchanged (hidden; --all shows them)\n")
        for said in ("BF16 · 16 × DGX-H100", "Llama 3 70B", "In one release only"):
            assert said in everything
        assert "--all lists" not in everything
        narrowed = trend("--framework", "megatron-core", "--json")
        assert 3 == len(json.loads(narrowed.stdout)["series"])

    def test_many_runs_are_summed_up_in_lines_that_fit(self, lab: Lab, trend: Shell) -> None:
        """21 runs of 12 s and one of 13 s: 10,923 and 10,082 tokens/s on each of 8 GPUs."""
        runs = [lab.written("1", seconds) for seconds in [12.0] * 21 + [13.0]]
        layout = factories.case(tensor_parallel=2, micro_batch_size=4, variant="retuned")
        factories.stored(lab.store, *runs, lab.written("2", 12.0, layout))

        out = trend("llama3-8b").stdout

        assert "22 runs, 10,082–10,923" in out
        assert "22 runs, 12.00–13.00" in trend("llama3-8b", "--metric", "step_time_s").stdout
        mfu = trend("llama3-8b", "--metric", "mfu").stdout
        assert re.search(r"22 runs, \d\d\.\d%–\d\d\.\d%", mfu)
        assert max(map(len, out.splitlines())) <= 120

    def test_bad_input_is_refused(self, lab: Lab, trend: Shell) -> None:
        lab.ran("1", 12.0)
        for words, message in (
            (("--fail-on", "regresion"), "no 'regresion'; did you mean regression?"),
            (("--fail-on", "never,regression"), "'never' excludes other values"),
            (("--min-change", "-1%"), "such as 2%"),
            (("--min-change", "100%"), "such as 2%"),
            (("--min-change", "nan"), "such as 2%"),
            (("llama4",), "no results of 'llama4'; did you mean llama3-8b"),
        ):
            code, out, err = trend("llama3-8b", *words)
            assert (2, "", True) == (code, out, message in err)


def test_a_change_within_the_rounding_of_samples_per_second_is_no_regression(
    sqlite: URL, perfdb: Shell
) -> None:
    """At 8,192 tokens on 64 GPUs a sample per second is 128 tokens/s/GPU: 12.5 may be 12 or 13."""
    for version, last in (("1", 13), ("2", 12)):
        rows = []
        for line, batch in enumerate((32, 64, 128, 256, 512, 1024), start=1):
            rate = 128 * (last if batch == 1024 else 13)
            rows.append(factories.published(
                line=line, release=factories.release(version),
                case=factories.case(num_gpus=64, global_batch_size=batch),
                figures=Figures(tokens_per_sec_per_gpu=rate),
                printed={"tokens_per_sec_per_gpu": f"{rate:,}"},
            ))  # fmt: skip
        factories.stored(sqlite, *rows, page=f"{version}.md")
    url = sqlite.render_as_string(hide_password=False)
    done = perfdb("trend", "--json", "--fail-on", "regression", "--db", url)
    series = json.loads(done.stdout)["series"]
    verdicts = {it["global_batch_size"]: it["points"][1]["verdict"] for it in series}
    assert (0, "same", TOLD) == (done.code, verdicts[512], verdicts[1024])
