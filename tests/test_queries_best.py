"""The best results of groups, chosen by the database: SQLite and PostgreSQL alike."""

import pytest
from sqlalchemy import URL

from perfdb import stated
from perfdb.db.session import reading
from perfdb.metrics import METRICS
from perfdb.queries import best, results
from perfdb.queries.best import EVERYTHING, Narrowing
from perfdb.record import Figures, Release, Result, RunKind
from tests.factories import TEN_STEPS, case, published, stored, write_run


@pytest.fixture
def filled(store: URL, tmp_path) -> URL:
    """Rows that state each figure or only what it follows from, and a case that ran three times."""
    nemo = Release(framework="nemo", version="25.04")
    of = [
        (case(framework="nemo"), Figures(tokens_per_sec_per_gpu=12_000)),
        (case(framework="nemo", num_gpus=16), Figures(step_time_s=4.0)),
        (case(framework="nemo", num_gpus=32), Figures(model_tflops_per_sec_per_gpu=711)),
        (case(framework="nemo", num_gpus=64, precision=None), Figures(mfu=0.5)),
    ]  # fmt: skip
    times = (1.0, 1.1, 0.9)
    runs = [
        write_run(tmp_path, run_id=f"run-{place}", step_times=[one * share for one in TEN_STEPS])
        for place, share in enumerate(times)
    ]
    rows = [
        published(case=one, figures=figures, release=nemo, line=7 + place)
        for place, (one, figures) in enumerate(of)
    ]
    stored(store, *runs, *rows)
    return store


def ranked(url: URL, metric: str, by: tuple[str, ...], where=EVERYTHING, wrong=()) -> list[Result]:
    with reading(url) as connection:
        return results.read(connection, best.ranked(metric, by, where, wrong, 100))


def test_the_database_computes_a_figure_as_perfdb_stated_does(filled: URL) -> None:
    """128 × 8,192 tokens in 4 s on 16 GPUs are 16,384 tokens/s/GPU; 711 of 989.4 are 71.9 %."""
    with reading(filled) as connection:
        every = results.read(connection, results.representative())
        for metric in METRICS:
            question = best.ranked(metric, ("num_gpus", "origin"), EVERYTHING, (), 100)
            found = {row.result_id: row.value for row in connection.execute(question)}
            expected = {it.result_id: value for it in every if (value := stated.figure(it, metric))}
            assert expected == pytest.approx(found)
    rates = {it.num_gpus: stated.figure(it, stated.RATE) for it in every if not it.is_measured}
    assert (12_000, 16_384) == (rates[8], rates[16])


def test_the_best_of_each_group_is_the_run_of_median_step_time_and_no_wrong_one(filled: URL):
    """Of three runs with 12.15 s, 13.4 s and 10.9 s the median is shown, not the fastest."""
    rate, measured = stated.RATE, Narrowing.of(origin=["measured"])
    [shown] = ranked(filled, rate, ("system",), measured)
    assert "run-0" == shown.run_id
    [most] = ranked(filled, rate, ("system",))
    assert 16 == most.num_gpus
    [other] = ranked(filled, rate, ("system",), wrong=[most.result_id])
    assert 8 == other.num_gpus
    assert [4.0, 12.15] == [it.step_time_s for it in ranked(filled, "step_time_s", ("origin",))]


def test_results_are_narrowed_by_values_one_of_which_may_be_unknown(filled: URL) -> None:
    unknown = Narrowing.of(precision=[None])
    with reading(filled) as connection:
        assert [64] == [it.num_gpus for it in results.read(connection, best.page(unknown, 100))]
        assert (1, 1) == tuple(connection.execute(best.totals(unknown)).one())
        assert (5, 7) == tuple(connection.execute(best.totals(EVERYTHING)).one())
        counts = dict(connection.execute(best.values_of("precision")).all())
        assert {"bf16": 4, None: 1} == counts
        sizes = dict(connection.execute(best.values_of("num_gpus", unknown)).all())
        assert {64: 1} == sizes


def test_releases_share_the_workloads_that_both_have(filled: URL, tmp_path) -> None:
    later = Release(framework="nemo", version="25.07")
    stored(filled, published(case=case(framework="nemo"), release=later), page="later.md")
    with reading(filled) as connection:
        ids = dict(connection.exec_driver_sql("SELECT version, id FROM releases").all())
        old, new, core = ids["25.04"], ids["25.07"], ids["0.16.0"]
        assert [1, 0] == [connection.scalar(best.num_shared([old], [it])) for it in (new, core)]


def test_runs_that_are_no_benchmarks_are_in_no_table(filled: URL, tmp_path) -> None:
    """A profile of a case of its own, and a checkpoint of the case that ran three times."""
    profile = write_run(tmp_path, run_id="p", kind=RunKind.PROFILE, case=case(num_gpus=128))
    stored(filled, profile, write_run(tmp_path, run_id="c", kind=RunKind.CHECKPOINT))
    with reading(filled) as connection:
        assert (5, 7) == tuple(connection.execute(best.totals(EVERYTHING)).one())
        of_every = results.read(connection, results.every())
    assert {"run-0", "run-1", "run-2", "p", "c"} == {it.run_id for it in of_every if it.is_measured}
    [shown] = ranked(filled, stated.RATE, ("system",), Narrowing.of(origin=["measured"]))
    assert "run-0" == shown.run_id
