"""Trends: the same work over releases and runs, with the verdicts of a comparison.

A run of steady steps has no spread of its own, so the least that is assumed counts: 0.51 %. Two
such runs of 8 steps each differ in earnest beyond 2.228 × √2 × 0.51 % = 1.6 %.
"""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL

from perfdb import aggregation
from perfdb.cli.trend import BLOCKS, MOST_BARS, sparkline
from perfdb.compare import Level, named, read
from perfdb.compare.read import known_releases
from perfdb.compare.trend import Series, follow
from perfdb.db.session import reading
from perfdb.errors import InputError
from perfdb.queries.scope import Only, Scope
from perfdb.record import Case, Figures
from perfdb.verify.figures import Asked
from perfdb.verify.recompute import recompute
from tests import factories
from tests.shell import Shell

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


class Lab:
    """Runs things and stores them."""

    def __init__(self, store: URL, folder: Path) -> None:
        self.store, self.folder, self.count = store, folder, 0

    def ran(self, version: str | None, seconds: float, case: Case | None = None) -> None:
        """A run of steady steps of so many seconds, a day after the last one."""
        self.count += 1
        run = factories.write_run(
            self.folder,
            run_id=f"r{self.count}",
            case=case,
            release=factories.release(version),
            step_times=[seconds] * 10,
            started_at=MONDAY + timedelta(days=self.count),
        )
        factories.stored(self.store, run)

    def followed(
        self,
        *words: str,
        only: Only | None = None,
        level: Level = Level.WORKLOAD,
        metric: str | None = None,
    ) -> list[Series]:
        """The series that words mean; of Llama 3 8B without a word."""
        with reading(self.store) as connection:
            found = read.results_of_words(connection, words or ("llama3-8b",), only or Only())
            return follow(found, known_releases(connection), level, metric)


@pytest.fixture
def lab(sqlite: URL, tmp_path: Path) -> Lab:
    """An empty store and a place for runs."""
    return Lab(sqlite, tmp_path / "runs")


def verdicts(series: Series) -> list[tuple[str, str | None]]:
    """Each release and what is said of it."""
    return [
        (point.release, str(point.judgement.verdict) if point.judgement else None)
        for point in series.points
    ]


def test_releases_follow_one_another_in_the_order_of_their_versions(lab: Lab) -> None:
    """0.9 comes before 0.10, whatever was run first; 12 s to 12.06 s is within the noise."""
    for version, seconds in (("0.10.0", 12.0), ("0.9.0", 12.06), ("0.11.0", 13.0)):
        lab.ran(version, seconds)

    [series] = lab.followed()

    assert [("0.9.0", None), ("0.10.0", "same"), ("0.11.0", "slower")] == verdicts(series)
    last = series.points[-1].judgement
    assert last
    assert 12 / 13 == pytest.approx(last.ratio)
    assert "tokens_per_sec_per_gpu" == series.metric


def test_builds_of_several_commits_follow_one_another_in_the_order_of_time(lab: Lab) -> None:
    """The letters of a hash are no order."""
    first, second = "0.16.0rc0+c4d5e6f", "0.16.0rc0+1a2b3c4"
    lab.ran(first, 12.0)
    lab.ran(second, 13.0)

    [series] = lab.followed()

    assert [(first, None), (second, "slower")] == verdicts(series)


def test_builds_of_one_file_are_in_the_order_of_its_dates_then_of_its_lines(
    store: URL, tmp_path: Path
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


def test_a_store_on_postgresql_gives_the_same(store: URL, tmp_path: Path) -> None:
    lab = Lab(store, tmp_path / "runs")
    lab.ran("1", 12.0)
    lab.ran("2", 13.0)

    assert [[("1", None), ("2", "slower")]] == [verdicts(one) for one in lab.followed()]


def test_the_first_regression_is_the_first_release_that_is_slower(lab: Lab) -> None:
    for version, seconds in (("1", 12.0), ("2", 11.0), ("3", 12.0), ("4", 13.0)):
        lab.ran(version, seconds)

    [series] = lab.followed()

    assert series.regression is series.points[2]
    assert not series.recovered


def test_a_regression_is_made_up_for_by_a_release_as_fast_as_before(lab: Lab) -> None:
    """12 s, 13 s, 12.02 s: the last is the same as the first. At 12.5 s it is not."""
    for version, seconds in (("1", 12.0), ("2", 13.0), ("3", 12.5)):
        lab.ran(version, seconds)
    [between] = lab.followed()
    lab.ran("4", 12.02)
    [after] = lab.followed()

    assert (between.points[1], False) == (between.regression, between.recovered)
    assert (after.points[1], True) == (after.regression, after.recovered)


def test_a_regression_that_stands_comes_before_one_that_was_made_up_for(lab: Lab) -> None:
    """12 s, 13 s, 11 s, 12 s: the second was made up for, and the last is slower again."""
    for version, seconds in (("1", 12.0), ("2", 13.0), ("3", 11.0), ("4", 12.0)):
        lab.ran(version, seconds)

    [series] = lab.followed()

    assert (series.points[3], False) == (series.regression, series.recovered)


def test_where_nothing_got_slower_there_is_no_regression(lab: Lab) -> None:
    lab.ran("1", 12.0)
    lab.ran("2", 11.0)

    [series] = lab.followed()
    assert (None, False) == (series.regression, series.recovered)


def test_a_release_without_a_figure_is_stepped_over(lab: Lab) -> None:
    """12 s, a run out of memory, 13 s: the third is held against the first."""
    lab.ran("1", 12.0)
    failed = factories.write_run(
        lab.folder, run_id="f", release=factories.release("2"), outcome="out_of_memory"
    )
    factories.stored(lab.store, failed)
    lab.ran("3", 13.0)

    [series] = lab.followed()

    assert [("1", None), ("2", "failed"), ("3", "slower")] == verdicts(series)
    assert series.regression is series.points[2]
    assert not series.recovered


def failed(lab: Lab, version: str, outcome: str) -> None:
    """A run that did not finish."""
    run = factories.write_run(
        lab.folder, run_id=f"f{version}", release=factories.release(version), outcome=outcome
    )
    factories.stored(lab.store, run)


def test_branches_have_no_place_in_the_order_and_stand_against_the_newest_release(
    lab: Lab,
) -> None:
    """main takes 13 s and next 12 s: not one after the other, each after 1.1, of 12 s."""
    for version, seconds in (("next", 12.0), ("1.0", 11.0), ("main", 13.0), ("1.1", 12.0)):
        lab.ran(version, seconds)
    lab.ran(None, 12.0)

    [series] = lab.followed()

    assert [
        ("1.0", None), ("1.1", "slower"), ("main", "slower"), ("next", "same"),
        ("(unattributed)", "same"),
    ] == verdicts(series)  # fmt: skip
    assert [None, "1.0", "1.1", "1.1", "1.1"] == [point.against for point in series.points]
    assert series.regression is series.points[1]


def test_branches_alone_are_not_judged(lab: Lab) -> None:
    lab.ran("main", 12.0)
    lab.ran("next", 13.0)

    [series] = lab.followed()

    assert [("main", None), ("next", None)] == verdicts(series)
    assert (None, False) == (series.regression, series.is_slower())


def test_a_release_stands_with_its_best_configuration(lab: Lab) -> None:
    """0.2 is faster with TP 2 than with TP 1; what changed is said. Each case has its own trend."""
    one, two = factories.case(), factories.case(tensor_parallel=2)
    lab.ran("1", 12.0, one)
    lab.ran("2", 12.0, one)
    lab.ran("2", 11.0, two)

    [best] = lab.followed()
    cases = lab.followed(level=Level.CONFIGURATION)

    assert [("1", None), ("2", "faster")] == verdicts(best)
    assert {"tensor_parallel": (1, 2)} == best.points[1].differences
    assert [[("1", None), ("2", "same")], [("2", None)]] == sorted(
        (verdicts(it) for it in cases), key=len, reverse=True
    )


def test_runs_of_a_release_stand_in_the_order_of_their_time(lab: Lab) -> None:
    """Its figure is that of the run of median step time."""
    for seconds in (12.0, 14.0, 13.0):
        lab.ran("1", seconds)

    [series] = lab.followed(metric="step_time_s")

    [point] = series.points
    assert [12.0, 14.0, 13.0] == point.side.figures(series.metric)
    assert 13.0 == point.side.shown.figure("step_time_s")


def test_a_longer_step_is_slower_and_a_shorter_one_faster(lab: Lab) -> None:
    """Of step times less is better."""
    for version, seconds in (("1", 12.0), ("2", 13.0), ("3", 12.0)):
        lab.ran(version, seconds)

    [series] = lab.followed(metric="step_time_s")

    assert [("1", None), ("2", "slower"), ("3", "faster")] == verdicts(series)


def test_measured_and_published_figures_are_two_series(lab: Lab) -> None:
    lab.ran("1", 12.0)
    published = factories.published(
        case=factories.case(), figures=Figures(model_tflops_per_sec_per_gpu=500)
    )
    factories.stored(lab.store, published)

    found = lab.followed()

    assert [
        ("measured", "tokens_per_sec_per_gpu"),
        ("published", "model_tflops_per_sec_per_gpu"),
    ] == (sorted((str(it.shown.origin), it.metric) for it in found))


def test_words_are_models_and_beginnings_of_keys(lab: Lab) -> None:
    case, other = factories.case(), factories.case(model="llama3-70b")
    lab.ran("1", 12.0, case)
    lab.ran("1", 12.0, other)

    def models(*words: str) -> list[str]:
        return [it.shown.model for it in lab.followed(*words)]

    assert ["llama3-8b"] == models("LLAMA3-8B") == models(case.key[:6].upper())
    assert ["llama3-70b"] == models(other.workload_key[:10])
    assert ["llama3-8b", "llama3-70b"] == models("llama3-70b", "llama3-8b")


def test_only_a_system_or_a_framework_is_followed(lab: Lab) -> None:
    lab.ran("1", 12.0)
    lab.ran("1", 12.0, factories.case(system="dgx-b200"))

    assert ["dgx-b200"] == [it.shown.system for it in lab.followed(only=Only(system="dgx-b200"))]
    assert 2 == len(lab.followed(only=Only(framework="megatron-core")))


@pytest.mark.parametrize(
    ("words", "only", "message"),
    [
        (["llama3-8"], Only(), "no results of 'llama3-8'; did you mean llama3-8b or llama3-70b?"),
        (["zzz"], Only(), "known models: llama3-70b, llama3-8b; or give the beginning of a key"),
        (["llama3-8b"], Only(system="dgx-h10"), "--system: no results of 'dgx-h10'; did you"),
        (["llama3-8b"], Only(system="dgx-b200"), "no results of llama3-8b on dgx-b200; leave out"),
    ],
)
def test_what_matches_nothing_is_refused_with_a_suggestion(
    lab: Lab, words: Sequence[str], only: Only, message: str
) -> None:
    lab.ran("1", 12.0)
    lab.ran("1", 12.0, factories.case(system="dgx-b200", model="llama3-70b"))

    with pytest.raises(InputError) as refused:
        lab.followed(*words, only=only)
    assert message in str(refused.value)


def test_an_empty_store_says_how_to_fill_it(lab: Lab) -> None:
    with pytest.raises(InputError, match="fill it with `perfdb ingest`"):
        lab.followed()


def test_a_sparkline_by_hand() -> None:
    """Lowest, a third of the way up, highest."""
    assert "▁▃█" == sparkline([0, 1, 3], (0, 3))
    assert "▅" == sparkline([7], (7, 7))
    assert "" == sparkline([], (0, 0))


@given(st.lists(st.floats(1e-6, 1e12), min_size=1, max_size=MOST_BARS))
def test_a_sparkline_has_a_bar_for_each_figure_in_their_order(figures: list[float]) -> None:
    bars = sparkline(figures, (min(figures), max(figures)))

    heights = [BLOCKS.index(bar) for bar in bars]
    assert len(figures) == len(heights)
    ranked = [height for _, height in sorted(zip(figures, heights, strict=True))]
    assert sorted(heights) == ranked
    if len(set(figures)) > 1:
        assert (0, 7) == (min(heights), max(heights))


def test_of_many_figures_a_bar_is_the_mean_of_neighbours() -> None:
    """Forty figures in twenty bars of two: 0 and 0 make 0, the last pair of 7 and 7 makes 7."""
    halves = [0.0] * 20 + [7.0] * 20
    assert "▁" * 10 + "█" * 10 == sparkline(halves, (0, 7))
    assert "▅" * MOST_BARS == sparkline([0.0, 7.0] * 20, (0, 7))
    assert MOST_BARS == len(sparkline([1.0] * 101, (0, 7)))


@pytest.fixture
def trend(lab: Lab, perfdb: Shell) -> Shell:
    """`perfdb trend` on the lab's store."""
    return partial(perfdb, "trend", "--db", lab.store.render_as_string())


def test_the_command_prints_a_table(lab: Lab, trend: Shell) -> None:
    """128 × 8,192 tokens in 12 s on 8 GPUs are 10,923 each a second; in 13 s 10,082."""
    lab.ran("1", 12.0)
    lab.ran("2", 13.0)
    lab.ran("2", 12.0, factories.case(num_gpus=16))

    code, out, err = trend("llama3-8b")

    assert (0, "") == (code, err)
    rows = [line.split() for line in out.splitlines()]
    assert ["1", "10,923", "–", "–", "–", "█"] in rows
    assert ["2", "10,082", "-7.7%", "0.908", "–", "0.938", "slower", "▁"] in rows
    assert "first slower: 2" in out
    assert "In one release alone" in out
    assert out.endswith("1 followed over releases: 1 slower than before\n")


def test_the_table_fits_a_terminal_of_80_columns(
    lab: Lab, trend: Shell, monkeypatch: pytest.MonkeyPatch
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


def test_the_command_as_json(lab: Lab, trend: Shell) -> None:
    lab.ran("1", 12.0)
    lab.ran("2", 13.0)

    code, out, err = trend("llama3-8b", "--json", "--metric", "step_time_s")

    assert (0, "") == (code, err)
    [series] = json.loads(out)["series"]
    case = factories.case()
    assert (case.workload_key, "measured", "step_time_s", "s", "2", False) == (
        series["workload_key"], series["origin"], series["metric"], series["unit"],
        series["first_regression"], series["recovered"],
    )  # fmt: skip
    first, second = series["points"]
    assert (None, None, 12.0, case.key) == (
        first["verdict"], first["ratio"], first["figure"], first["case_key"],
    )  # fmt: skip
    assert ("slower", pytest.approx(13 / 12)) == (second["verdict"], second["ratio"])
    assert [("r2", f"{lab.folder}/r2/steps.jsonl", "finished")] == [
        (run["run_id"], run["source"], run["outcome"]) for run in second["runs"]
    ]
    assert [1, 1] == [second["num_results"], second["num_finished"]]
    assert second["runs"][0]["started_at"].startswith("2026-03-04")


def test_a_gate_closes_on_a_regression_that_stands(lab: Lab, trend: Shell) -> None:
    lab.ran("1", 12.0)
    lab.ran("2", 13.0)
    closed, without = trend("llama3-8b", "--fail-on", "regression"), trend("llama3-8b")
    lab.ran("3", 12.0)
    made_up = trend("llama3-8b", "--fail-on", "regression")

    assert (1, 0, 0) == (closed[0], without[0], made_up[0])
    assert "first slower: 2; made up for since" in made_up[1]
    assert "1 made up for" in made_up[1]


@pytest.mark.parametrize(
    ("outcome", "said"),
    [("out_of_memory", "out of memory"), ("nan_loss", "NaN loss"), ("interrupted", "interrupted")],
)
def test_the_nightly_gate_closes_where_the_newest_release_did_not_finish(
    lab: Lab, trend: Shell, outcome: str, said: str
) -> None:
    lab.ran("1", 12.0)
    failed(lab, "2", outcome)

    code, out, err = trend("llama3-8b", "--fail-on", "regression,missing")
    silent = trend("llama3-8b", "--fail-on", "regression")

    assert (1, "") == (code, err)
    assert f"failed: {said}" in out.replace("\n", " ")
    table = out.split("\nFailed\n")[1]
    assert said in table
    assert "megatron-core 1 → 2" in table
    assert out.endswith("1 followed over releases: 0 slower than before, 1 failed\n")
    assert (0, "warning: 1 failed, and --fail-on missing was not asked for\n") == (
        silent[0], silent[2],
    )  # fmt: skip


def test_a_failure_is_over_when_a_later_release_finishes(lab: Lab, trend: Shell) -> None:
    lab.ran("1", 12.0)
    failed(lab, "2", "out_of_memory")
    lab.ran("3", 12.0)

    assert 0 == trend("llama3-8b", "--fail-on", "regression,missing,unknown")[0]


def test_without_a_model_what_has_news_is_listed_and_the_rest_is_counted(
    lab: Lab, trend: Shell
) -> None:
    """Llama 3 8B is slower with 8 GPUs and the same with 16; Llama 3 70B is in one release."""
    for version, seconds in (("1", 12.0), ("2", 13.0)):
        lab.ran(version, seconds)
        lab.ran(version, 12.0, factories.case(num_gpus=16))
    lab.ran("2", 100.0, factories.case(model="llama3-70b"))

    code, out, _ = trend("--fail-on", "regression")
    everything = trend("--all")[1]
    narrowed = trend("--framework", "megatron-core", "--json")

    assert 1 == code
    assert ["8 × DGX-H100"] == [
        size for size in ("8 × DGX-H100", "16 × DGX-H100") if f"BF16 · {size}" in out
    ]
    assert "70B" not in out
    assert out.endswith("; 1 without news are not listed: --all lists them\n")
    for said in ("BF16 · 16 × DGX-H100", "Llama 3 70B", "In one release alone"):
        assert said in everything
    assert "--all lists" not in everything
    assert 3 == len(json.loads(narrowed[1])["series"])


def test_an_empty_store_has_no_trend(trend: Shell) -> None:
    code, out, err = trend()
    assert (2, "") == (code, out)
    assert "no results; fill the store with `perfdb ingest`" in err


def test_a_gate_closes_on_a_branch_that_is_slower_than_the_newest_release(
    lab: Lab, trend: Shell
) -> None:
    lab.ran("1", 12.0)
    lab.ran("main", 13.0)
    lab.ran("next", 12.0)

    code, out, _ = trend("llama3-8b", "--fail-on", "regression,missing")

    assert 1 == code
    assert 2 == out.count("against 1")
    assert "  slower than 1: main; main, next have no order: none is compared with another\n" in out
    assert "first slower" not in out


def test_no_gate_closes_between_branches(lab: Lab, trend: Shell) -> None:
    lab.ran("main", 12.0)
    lab.ran("next", 13.0)
    lab.ran("main", 12.0, factories.case(num_gpus=16))

    assert 0 == trend("llama3-8b", "--fail-on", "regression,missing,unknown")[0]


def test_what_has_no_figure_is_not_listed_as_in_one_release_alone(lab: Lab, trend: Shell) -> None:
    """A page of tokens/s says nothing of step times."""
    row = factories.published(case=factories.case(num_gpus=16))
    factories.stored(lab.store, row)
    lab.ran("1", 12.0)

    out = trend("llama3-8b", "--metric", "step_time_s")[1]

    assert "8 × DGX-H100" in out
    assert "16 × DGX-H100" not in out
    assert "–" not in out.replace(" – ", "")


def test_the_key_of_a_case_follows_that_case_alone(lab: Lab, trend: Shell) -> None:
    """Faster with TP 2, and yet the case asked for is the same as before."""
    lab.ran("1", 12.0)
    lab.ran("2", 12.0)
    lab.ran("2", 11.0, factories.case(tensor_parallel=2))

    _, out, _ = trend(factories.case().key[:8], "--json")

    [series] = json.loads(out)["series"]
    assert ("configuration", factories.case().key) == (series["level"], series["case_key"])
    assert [None, "same"] == [point["verdict"] for point in series["points"]]


def test_the_command_refuses_what_matches_nothing(lab: Lab, trend: Shell) -> None:
    lab.ran("1", 12.0)

    code, out, err = trend("llama4")

    assert (2, "") == (code, out)
    assert "no results of 'llama4'" in err
    assert "llama3-8b" in err


def recomputed(lab: Lab, version: str, window: str) -> None:
    """Take the figures of one release over other steps."""
    with reading(lab.store) as connection:
        ids = named(version, known_releases(connection)).release_ids
    report = recompute(lab.store, Scope(release_ids=ids), Asked(aggregation.named(window)))
    assert report.changed


def test_releases_over_different_windows_have_no_verdict(lab: Lab, trend: Shell) -> None:
    """A regression from 12 to 13 s is not hidden by recomputing one release alone."""
    lab.ran("1", 12.0)
    lab.ran("2", 13.0)
    recomputed(lab, "2", "last_n(4)")

    [series] = json.loads(trend("llama3-8b", "--json")[1])["series"]
    first, second = series["points"]
    code, out, err = trend("llama3-8b", "--fail-on", "regression")
    closed = trend("llama3-8b", "--fail-on", "regression,unknown")[0]

    assert ("unknown", "windows differ: skip_warmup(2) / last_n(4)") == (
        second["verdict"], second["reason"],
    )  # fmt: skip
    assert [("skip_warmup(2)", 8), ("last_n(4)", 4)] == [
        (point["window"], point["num_steps"]) for point in (first, second)
    ]
    assert (0, 1) == (code, closed)
    assert "Cannot be told" in out
    assert "windows differ: skip_warmup(2) / last_n(4)" in out
    assert "warning: 1 cannot be told, and --fail-on unknown was not asked for\n" == err


def test_it_is_said_which_figures_two_releases_state(lab: Lab, trend: Shell) -> None:
    stating = {"1": Figures(tokens_per_sec_per_gpu=12_273), "2": Figures(step_time_s=10.8)}
    pages = [
        factories.published(release=factories.release(version), figures=figures)
        for version, figures in stating.items()
    ]
    factories.stored(lab.store, *pages)

    [series] = json.loads(trend("llama3-8b", "--json").stdout)["series"]
    untold = trend("llama3-8b").stdout.split("Cannot be told")[1]

    said = "no figure that both state (Tokens/s/GPU; Step time (s))"
    assert (said, True) == (series["points"][1]["reason"], said.partition("(")[0] in untold)


def noisy(lab: Lab, version: str) -> None:
    """A run of steps between 10 and 14 s: its interval is ±25 % at least."""
    run = factories.write_run(
        lab.folder,
        run_id=f"noisy{version}",
        release=factories.release(version),
        step_times=[10.0, 14.0] * 5,
    )
    factories.stored(lab.store, run)


def test_what_is_too_noisy_in_the_newest_release_cannot_be_told(lab: Lab, trend: Shell) -> None:
    """By hand: 4 s from decile to decile of 12 s are 13 %, with 7 degrees 2.365 × 13 %."""
    lab.ran("1", 12.0)
    noisy(lab, "2")

    code, out, err = trend("llama3-8b", "--fail-on", "regression")
    closed = trend("llama3-8b", "--fail-on", "unknown")[0]

    assert (0, 1) == (code, closed)
    assert "too noisy to tell: ±30.8 %" in out.split("Cannot be told")[1]
    assert "warning: 1 cannot be told, and --fail-on unknown was not asked for\n" == err


def test_what_was_too_noisy_once_closes_no_gate_for_ever(lab: Lab, trend: Shell) -> None:
    """It stands in the table of the releases."""
    lab.ran("1", 12.0)
    noisy(lab, "2")
    for version in ("3", "4"):
        lab.ran(version, 12.0)

    code, out, _ = trend("llama3-8b", "--fail-on", "regression,missing,unknown")
    [series] = lab.followed()

    assert (0, False) == (code, "Cannot be told" in out)
    assert [("1", None), ("2", "unknown"), ("3", "unknown"), ("4", "same")] == verdicts(series)


def test_a_regression_is_not_made_up_for_by_a_run_that_is_too_noisy(lab: Lab) -> None:
    for version, seconds in (("1", 12.0), ("2", 13.0)):
        lab.ran(version, seconds)
    noisy(lab, "3")

    [series] = lab.followed()

    assert (series.points[1], False) == (series.regression, series.recovered)


def test_runs_that_did_not_finish_are_counted_apart(lab: Lab, trend: Shell) -> None:
    lab.ran("1", 12.0)
    lab.ran("2", 12.0)
    failed(lab, "2", "out_of_memory")

    out = trend("llama3-8b")[1]
    [series] = json.loads(trend("llama3-8b", "--json")[1])["series"]

    assert "1 of 2 runs (1 out of memory)" in out
    assert [(1, 1), (2, 1)] == [
        (point["num_results"], point["num_finished"]) for point in series["points"]
    ]


def test_a_regression_is_not_made_up_for_by_a_release_over_another_window(lab: Lab) -> None:
    """12 s, 13 s, then 12 s over other steps: nobody can tell whether it is as fast again."""
    for version, seconds in (("1", 12.0), ("2", 13.0), ("3", 12.0)):
        lab.ran(version, seconds)
    recomputed(lab, "3", "last_n(4)")

    [series] = lab.followed()

    assert series.regression is series.points[1]
    assert not series.recovered


def test_a_figure_with_an_open_error_is_listed_not_judged_and_stepped_over(
    lab: Lab, trend: Shell
) -> None:
    """4 s are 1,687 TFLOP/s of a GPU that has 989. 13 s after it are held against 12 s: 0.923."""
    for version, seconds in (("1", 12.0), ("2", 4.0), ("3", 13.0)):
        lab.ran(version, seconds)

    code, out, err = trend("llama3-8b", "--fail-on", "regression")
    [series] = json.loads(trend("llama3-8b", "--json")[1])["series"]

    assert [(None, False), ("not judged", True), ("slower", False)] == [
        (point["verdict"], point["has_open_errors"]) for point in series["points"]
    ]
    assert [3, 12 / 13] == pytest.approx([point["ratio"] for point in series["points"][1:]])
    assert ("3", 1, "") == (series["first_regression"], code, err)
    assert "⚑ open errors" in out
    assert out.endswith(
        "1 not judged for open errors (⚑): see `perfdb audit`, or give --judge-all\n"
    )


def test_no_gate_closes_on_an_open_error_unless_all_is_judged(lab: Lab, trend: Shell) -> None:
    """From 4 s, which cannot be, to 12 s: nobody can tell what that release has changed."""
    lab.ran("1", 4.0)
    lab.ran("2", 12.0)
    gate = ("llama3-8b", "--fail-on", "regression,unknown", "--json")

    code, out, err = trend(*gate)
    all_judged = trend(*gate, "--judge-all")

    assert (0, 1) == (code, all_judged[0])
    assert [[None, "not judged"], [None, "slower"]] == [
        [point["verdict"] for point in json.loads(said)["series"][0]["points"]]
        for said in (out, all_judged[1])
    ]
    assert err.startswith("2 not judged for open errors")
    assert "" == all_judged[2]


def test_an_error_in_the_newest_release_makes_up_for_nothing(lab: Lab, trend: Shell) -> None:
    """12 s, 13 s, and then 4 s, which cannot be: the regression stands."""
    for version, seconds in (("1", 12.0), ("2", 13.0), ("3", 4.0)):
        lab.ran(version, seconds)

    code, out, _ = trend("llama3-8b", "--fail-on", "regression")

    assert 1 == code
    assert "made up for" not in out
    assert 0 == trend("llama3-8b", "--fail-on", "regression", "--judge-all")[0]


def test_what_is_in_one_release_alone_has_its_mark_too(lab: Lab, trend: Shell) -> None:
    lab.ran("1", 4.0)

    assert "measured, Tokens/s/GPU, ⚑ open errors" in trend("llama3-8b")[1]


def test_what_vanished_from_the_newest_release_is_missing_there(lab: Lab, trend: Shell) -> None:
    """With 16 GPUs it ran in 1.0 alone; with 4 in 1.1 alone, which is nothing to close on."""
    lab.ran("1.0", 12.0)
    lab.ran("1.1", 12.0)
    lab.ran("1.1", 12.0, factories.case(num_gpus=4))
    before = trend("llama3-8b", "--fail-on", "regression,missing")
    lab.ran("1.0", 12.0, factories.case(num_gpus=16))

    code, out, _ = trend("llama3-8b", "--fail-on", "regression", "--fail-on", "missing")
    found = json.loads(trend("llama3-8b", "--json")[1])["series"]

    assert (0, 1) == (before[0], code)
    assert 0 == trend("llama3-8b", "--fail-on", "regression")[0]
    alone, missing = out.split("Missing in megatron-core 1.1")
    assert "16 × DGX H100" in missing.replace("-", " ")
    assert "16 × DGX H100" not in alone.replace("-", " ")
    assert "1 missing in the newest" in out
    assert [(4, None), (8, None), (16, "1.1")] == [
        (one["num_gpus"], one["missing_in"]) for one in found
    ]


def test_a_model_that_vanished_whole_is_missing(lab: Lab, trend: Shell) -> None:
    """The newest release is that of the store, not that of what was asked for."""
    lab.ran("1.0", 12.0)
    lab.ran("1.0", 12.0, factories.case(model="llama3-70b"))
    lab.ran("1.1", 12.0, factories.case(model="llama3-70b"))

    assert 1 == trend("llama3-8b", "--fail-on", "missing")[0]


def test_many_runs_are_summed_up_in_lines_that_fit(lab: Lab, trend: Shell) -> None:
    """21 runs of 12 s and one of 13 s: 10,923 and 10,082 tokens/s on each of 8 GPUs."""
    for seconds in [12.0] * 21 + [13.0]:
        lab.ran("1", seconds)
    lab.ran("2", 12.0, factories.case(tensor_parallel=2, micro_batch_size=4, variant="retuned"))

    out = trend("llama3-8b")[1]

    assert "22 runs, 10,082–10,923" in out
    assert "22 runs, 12.00–13.00" in trend("llama3-8b", "--metric", "step_time_s")[1]
    assert re.search(r"22 runs, \d\d\.\d%–\d\d\.\d%", trend("llama3-8b", "--metric", "mfu")[1])
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.parametrize(
    ("words", "message"),
    [(["regresion"], "no 'regresion'; did you mean regression?"),
     (["never,regression"], "'never' stands alone")],
)  # fmt: skip
def test_a_gate_that_is_none_is_refused(
    lab: Lab, trend: Shell, words: list[str], message: str
) -> None:
    code, _, err = trend("llama3-8b", "--fail-on", *words)
    assert 2 == code
    assert message in err
