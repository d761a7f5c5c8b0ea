"""Steps exported as a partitioned Parquet dataset, as DuckDB reads it."""

from pathlib import Path

import duckdb
import pytest
from sqlalchemy import URL, create_engine

from tests import factories
from tests.shell import Shell

SUMS = "SELECT count(*), sum(step_time_s), sum(tokens), min(step), max(step) FROM "


def test_duckdb_finds_the_steps_that_sql_finds(store: URL, perfdb: Shell, tmp_path: Path) -> None:
    """As many, and the same sums; a version that looks like a number is a text."""
    made = (
        ("a", "25.10", "dgx-h100"), ("b", "25.10", "dgx-b200"), ("c", "a/b=%é", "dgx-b200"),
        ("d", None, "dgx-h100"),
    )  # fmt: skip
    for run_id, version, system in made:
        of = {"case": factories.case(system=system), "release": factories.release(version)}
        factories.stored(store, factories.write_run(tmp_path / "runs", run_id=run_id, **of))
    db = ("--db", store.render_as_string(hide_password=False))
    partition = ("--partition", "release,system")
    asked = ("export", "steps", "--format", "parquet", "--output", "steps")
    assert 0 == perfdb(*asked, *partition, *db).code

    read = "read_parquet('steps/**/*.parquet', hive_partitioning=true)"
    engine = create_engine(store)
    with engine.connect() as connection:
        expected = connection.exec_driver_sql(SUMS + "steps").one()
    engine.dispose()
    database = duckdb.connect()
    [found] = database.execute(SUMS + read).fetchall()
    assert pytest.approx(tuple(map(float, expected))) == tuple(map(float, found))
    of_runs = f"SELECT DISTINCT run_id, release, system FROM {read} ORDER BY run_id"
    assert list(made) == database.execute(of_runs).fetchall()
    refused = perfdb(*asked, *db)
    assert 2 == refused.code
    assert "steps: is there already" in refused.stderr
    assert 2 == perfdb(*asked, "--partition", "gpu", *db).code
