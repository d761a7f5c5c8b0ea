"""The list of releases that names are looked up in: the same as by all results, without them."""

from datetime import timedelta
from pathlib import Path

from sqlalchemy import URL

from perfdb.compare.releases import KnownRelease, choices, known_releases
from perfdb.db.session import reading
from perfdb.ingest import Options, ingest
from perfdb.queries import catalog
from tests.factories import STARTED, published, release, stored, write_run

COMMITS = ("0.9.0+c4d5e6f", "0.9.0+1a2b3c4")


def test_the_order_is_that_of_all_results_and_only_ties_ask_for_them(
    sqlite: URL, tmp_path: Path
) -> None:
    """Commits and containers come in the order of their runs, the others by their versions."""
    names = [release(version) for version in ("0.10.0", "0.2.0", *COMMITS)]
    names += [release("0.3.0", container=box) for box in ("z:1", "a:1")]
    for number, one in enumerate(names):
        at = STARTED + timedelta(hours=number)
        write_run(tmp_path, release=one, run_id=f"r{number}", started_at=at,
                  ended_at=at + timedelta(minutes=5))  # fmt: skip
    assert () == ingest([tmp_path], sqlite, Options()).rejected
    stored(sqlite, published())
    with reading(sqlite) as connection:
        known = known_releases(connection)
        rows = connection.execute(catalog.all_releases()).mappings()
        assert choices(map(KnownRelease.model_validate, rows)) == known
    expected = ["0.2.0", "0.3.0", "0.3.0 [z:1]", "0.3.0 [a:1]", *COMMITS, "0.10.0"]
    assert [f"megatron-core {one}" for one in expected] == [it.name for it in known][:-1]
    assert "nemo 25.04" == known[-1].name


def test_the_list_scans_no_results(sqlite: URL) -> None:
    with reading(sqlite) as connection:
        asked = catalog.releases_with_results().compile(connection)
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}", asked.params or ()).all()
    steps = [row[-1] for row in plan]
    assert any("results USING INDEX" in step for step in steps)
    assert not any(step.startswith("SCAN results") for step in steps)
