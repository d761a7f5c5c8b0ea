"""Peak memory in comparisons and trends: it has no spread, and 1 % is what an allocator rounds."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL

from perfdb.compare import Side, Verdict, comparison, report
from perfdb.compare.verdict import judge
from perfdb.metrics import METRICS
from perfdb.record import Result
from perfdb.rundir import RunDir
from tests import factories
from tests.shell import Shell
from tests.test_compare import at

MEMORY = "peak_memory_bytes"


def of(peak_gb: float | None, **changed: object) -> Result:
    """A run of 4 s a step with such a peak."""
    return at(4.0, **{MEMORY: peak_gb and round(peak_gb * 1e9)} | changed)


def verdict(a: Result, b: Result) -> Verdict:
    return judge(Side((a,)), Side((b,)), MEMORY).verdict


@pytest.mark.parametrize(
    ("a_gb", "b_gb", "expected"),
    [
        (58, 74, Verdict.SLOWER),
        (74, 58, Verdict.FASTER),
        (58, 58, Verdict.SAME),
        (100, 101, Verdict.SAME),
        (101, 100, Verdict.SAME),
        (50, 49.5, Verdict.SAME),
        (49.5, 50, Verdict.SAME),
        (100, 101.1, Verdict.SLOWER),
        (101.1, 100, Verdict.FASTER),
        (58, None, Verdict.UNKNOWN),
        (None, 58, Verdict.UNKNOWN),
    ],
)
def test_memory_within_one_per_cent_is_the_same(
    a_gb: float | None, b_gb: float | None, expected: Verdict
) -> None:
    """Whichever of the two comes first; more of it is worse."""
    assert expected == verdict(of(a_gb), of(b_gb))


@pytest.mark.parametrize(
    ("a_gb", "b_gb", "ratio", "expected"),
    [
        ([50, 50, 50], [60, 50, 60], 1.2, "too noisy to tell: runs 20.0 % apart"),
        ([60, 50, 60], [50, 50, 50], 1 / 1.2, "too noisy to tell: runs 20.0 % apart"),
        ([50], [60, 50], 1.1, "too noisy to tell: runs 20.0 % apart"),
        ([60, 50, 60], [60, 60, 50], 1.0, "too noisy to tell: runs 20.0 % apart"),
        ([50, 50, 50], [60, 55, 60], 1.2, Verdict.SLOWER),
        ([60, 55, 60], [50, 50, 50], 1 / 1.2, Verdict.FASTER),
        ([100, 101], [101, 100], 1.0, Verdict.SAME),
        ([100, 100.2], [101.2, 101.4], 101.3 / 100.1, Verdict.SLOWER),
        ([50, None, 50], [None, 60, 60], 1.2, Verdict.SLOWER),
    ],
)
def test_runs_further_apart_than_the_tolerance_are_told_where_all_of_them_say_the_same(
    a_gb: list[float], b_gb: list[float], ratio: float, expected: Verdict | str
) -> None:
    """Of steps that take equally long the run in the middle is shown, and decides nothing."""
    a, b = (Side(tuple(map(of, some))) for some in (a_gb, b_gb))
    judged = judge(a, b, MEMORY)
    assert (pytest.approx(ratio), expected) == (judged.ratio, judged.reason or judged.verdict)
    assert (judged.verdict is Verdict.UNKNOWN) is (judged.reason is not None)


def test_neither_the_noise_of_step_times_nor_the_window_says_anything_of_memory() -> None:
    """Steps that spread by half hide a fifth more time, and no fifth more memory."""
    noisy = {"step_time_stdev_s": 2.0}
    lone = {"num_steps": 1, "step_time_stdev_s": None}
    assert Verdict.SLOWER == verdict(of(58, **noisy), of(70, **noisy))
    assert Verdict.SLOWER == verdict(of(58, **lone), of(70, **lone))
    assert Verdict.SLOWER == verdict(of(58, window="last"), of(70, window="skip_warmup(10)"))


@given(st.floats(1, 1000), st.floats(1, 1000))
def test_what_is_better_one_way_is_worse_the_other(a_gb: float, b_gb: float) -> None:
    turned = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}
    there, back = verdict(of(a_gb), of(b_gb)), verdict(of(b_gb), of(a_gb))
    assert turned.get(there, there) == back


def test_memory_is_not_said_to_be_fast() -> None:
    """A comparison by several metrics counts each verdict by its own word."""
    more = comparison([of(58)], [of(74)], MEMORY)
    assert "1 matched: 1 worse. 0 only in A, 0 only in B." == report.summary(more)
    assert ["better", "faster"] == [report.named(Verdict.FASTER, it) for it in (MEMORY, "mfu")]
    assert {"same", "unknown", "failed", "not judged"} == {
        report.named(one, MEMORY) for one in Verdict if one not in (Verdict.FASTER, Verdict.SLOWER)
    }
    assert [MEMORY] == [it.name for it in METRICS.values() if it.tolerance is not None]


def written(folder: Path, name: str, version: str, peak_gb: int, later: int) -> RunDir:
    """A run of ten steps that has its peak in the warm-up; only its memory tells it apart."""
    run = factories.write_run(
        folder,
        run_id=name,
        release=factories.release(version),
        started_at=factories.STARTED + timedelta(days=later),
    )
    warmup, *others = factories.steps((12.0,) * 10, peak_memory_bytes=peak_gb * 10**9 - 10**8)
    peak = warmup.model_copy(update={MEMORY: peak_gb * 10**9})
    factories.write_steps(run, [peak, *others])
    return run


@pytest.fixture
def regressed(sqlite: URL, tmp_path: Path) -> str:
    """Two releases at equal step times, the second with 28 % more memory."""
    factories.stored(
        sqlite, written(tmp_path, "a", "0.16.0", 58, 0), written(tmp_path, "b", "0.16.1", 74, 1)
    )
    return sqlite.render_as_string()


def test_more_memory_is_invisible_by_time_and_closes_the_gate_by_memory(
    perfdb: Shell, regressed: str
) -> None:
    """58 and 74 GB: 74 ÷ 58 = 1.276. By default they stand beside the figures."""
    asked = ("compare", "0.16.0", "0.16.1", "--db", regressed, "--json", "--fail-on", "slower")
    plain, memory = perfdb(*asked), perfdb(*asked, "--metric", MEMORY)

    assert (0, 1) == (plain.code, memory.code)
    [by_time], [by_memory] = (json.loads(done.stdout)["matched"] for done in (plain, memory))
    assert ("same", 58 * 10**9, 74 * 10**9) == tuple(
        by_time[name] for name in ("verdict", f"{MEMORY}_a", f"{MEMORY}_b")
    )
    assert ("worse", 58 * 10**9, 74 * 10**9, None) == tuple(
        by_memory[name] for name in ("verdict", "a", "b", "low")
    )
    assert 74 / 58 == pytest.approx(by_memory["ratio"])
    table = perfdb("compare", "0.16.0", "0.16.1", "--db", regressed, "--metric", MEMORY).stdout
    for said in ("Peak memory (bytes)", "58,000,000,000", "74,000,000,000", "1.276", "1 worse"):
        assert said in table


def test_a_trend_follows_memory(perfdb: Shell, regressed: str) -> None:
    asked = ("trend", "llama3-8b", "--db", regressed, "--metric", MEMORY)
    table, gated = perfdb(*asked), perfdb(*asked, "--json", "--fail-on", "regression")

    assert (0, 1) == (table.code, gated.code)
    for said in ("first worse: 0.16.1", "+27.6%", "1 followed over releases: 1 worse than before"):
        assert said in table.stdout
    [series] = json.loads(gated.stdout)["series"]
    assert ("bytes", "0.16.1") == (series["unit"], series["first_regression"])
    assert [(None, 58 * 10**9), ("worse", 74 * 10**9)] == [
        (point["verdict"], point[MEMORY]) for point in series["points"]
    ]


def test_memory_that_varied_once_closes_no_gate_for_ever(
    perfdb: Shell, sqlite: URL, tmp_path: Path
) -> None:
    """It is unknown of 1.1 and, against that, of 1.2; the table has the median of its runs."""
    for n, (version, peak) in enumerate(
        [("1.0", 50), ("1.1", 50), ("1.1", 60), ("1.2", 50), ("1.3", 50)]
    ):
        factories.stored(sqlite, written(tmp_path, f"r{n}", version, peak, n))
    asked = ("trend", "llama3-8b", "--db", sqlite.render_as_string(), "--metric", MEMORY)
    done = perfdb(*asked, "--json", "--fail-on", "unknown")
    assert 0 == done.code
    [series] = json.loads(done.stdout)["series"]
    assert [(50, None), (55, "unknown"), (50, "unknown"), (50, "same")] == [
        (point["median"] / 1e9, point["verdict"]) for point in series["points"]
    ]
    assert "  median 55,000,000,000  " in perfdb(*asked).stdout


def test_small_steps_of_memory_add_up(perfdb: Shell, sqlite: URL, tmp_path: Path) -> None:
    """0.8 % each, within the 1 % of the same: 122 ÷ 120 is 1.7 % more."""
    for n, peak in enumerate((120, 121, 122)):
        factories.stored(sqlite, written(tmp_path, f"r{n}", f"1.{n}", peak, n))
    asked = ("trend", "llama3-8b", "--db", sqlite.render_as_string(), "--metric", MEMORY)
    done = perfdb(*asked, "--fail-on", "regression")

    assert 1 == done.code
    assert "  1.2 is worse than the best release, 1.0: +1.7%\n" in done.stdout


def test_what_one_release_alone_has_is_told_by_the_figure_that_is_asked_for(
    perfdb: Shell, sqlite: URL, tmp_path: Path
) -> None:
    other = factories.write_run(
        tmp_path, run_id="b", release=factories.release("0.16.1"), case=factories.case(num_gpus=16)
    )
    factories.stored(sqlite, written(tmp_path, "a", "0.16.0", 58, 0), other)
    asked = ("compare", "0.16.0", "0.16.1", "--db", sqlite.render_as_string(), "--metric", MEMORY)
    told = perfdb(*asked).stdout
    assert "58,000,000,000" in told
    assert "Tokens/s/GPU" not in told
