"""The Python API and the server for agents: what a store holds, and nothing that writes."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb import api
from perfdb.db.session import reading
from perfdb.errors import InputError, StoreError
from perfdb.queries import sql
from tests import factories

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def filled(kept_store: URL, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two releases of one case at 24 s and at 12 s a step, three runs each."""
    folder = tmp_path_factory.mktemp("runs")
    for version, seconds in (("0.15.0", 24.0), ("0.16.0", 12.0)):
        runs = [
            factories.write_run(
                folder,
                run_id=f"{version}-{number}",
                release=factories.release(version),
                step_times=[seconds * (1 + 0.001 * number)] * 10,
            )
            for number in range(3)
        ]
        factories.stored(kept_store, *runs)
    return kept_store.render_as_string(hide_password=False)


def test_results_and_releases_are_frames_with_the_names_of_the_export(filled: str) -> None:
    found = api.results(release="0.16.0", system="dgx-h100", db=filled)

    assert list(found["run_id"]) == ["0.16.0-0", "0.16.0-1", "0.16.0-2"]
    assert found["step_time_s"].tolist() == pytest.approx([12.0, 12.012, 12.024])
    assert found["published_on"].isna().all()
    assert api.releases(db=filled)["num_results"].tolist() == [3, 3]


def test_steps_are_in_order(filled: str) -> None:
    assert api.steps("0.15.0-0", db=filled)["step_time_s"].tolist() == [24.0] * 10


def test_compare_speaks_of_the_second_release(filled: str) -> None:
    (row,) = api.compare("0.15.0", "0.16.0", metric="step_time_s", db=filled).to_dict("records")

    assert row["ratio"] == pytest.approx(0.5)
    assert row["verdict"] == "faster"


def test_a_wrong_name_and_a_missing_store_are_refused(filled: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results of 'dgx-h1000'"):
        api.results(system="dgx-h1000", db=filled)
    with pytest.raises(StoreError, match="no database here"):
        api.releases(db=f"sqlite:///{tmp_path}/none.sqlite")


WRITING = (
    "DELETE FROM results",
    "SELECT 1) AS a; DELETE FROM results; SELECT * FROM (SELECT 1",
    "WITH gone AS (DELETE FROM results RETURNING id) SELECT * FROM gone",
    "ATTACH 'other.sqlite' AS other",
    "PRAGMA query_only = off",
    "SELECT pg_read_file('/etc/passwd')) AS a; COMMIT; SELECT * FROM (SELECT 1",
    "SELECT load_extension('x')",
    "SELECT no_such_column FROM results",
    "SELECT '\ud800'",
    "",
)


def test_a_question_in_sql_only_reads(kept_store: URL, filled: str) -> None:
    for statement in WRITING:
        with reading(kept_store) as connection, pytest.raises(InputError, match="give one SELECT"):
            sql.select(connection, statement, 10)
    assert api.releases(db=filled)["num_results"].tolist() == [3, 3]


def test_a_question_in_sql_has_its_first_rows(kept_store: URL, filled: str) -> None:
    asked = "SELECT step, step_time_s FROM steps ORDER BY step_time_s DESC, step;"
    with reading(kept_store) as connection:
        found = sql.select(connection, asked, 2)

    assert (found.columns, found.more) == (("step", "step_time_s"), True)
    assert found.rows == ((1, 24.0 * 1.002), (2, 24.0 * 1.002))


def test_a_question_that_takes_too_long_is_ended(kept_store: URL, filled: str) -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    with reading(kept_store) as connection, pytest.raises(InputError, match=r"interrupted|timeout"):
        sql.select(connection, endless, 10, timeout_s=1)


@pytest.mark.parametrize("kept_store", ["sqlite"], indirect=True)
def test_an_agent_asks_over_standard_input_and_output(filled: str) -> None:
    mcp = pytest.importorskip("mcp")

    async def asked() -> tuple[list[str], list[dict[str, object]]]:
        server = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "perfdb", "mcp", "--db", filled], cwd=str(ROOT)
        )
        async with mcp.Client(mcp.stdio_client(server)) as client:
            tools = await client.list_tools()
            answers = []
            for name, arguments in CALLS:
                answer = await client.call_tool(name, arguments)
                text = answer.content[0].text
                answers.append({"error": text} if answer.is_error else json.loads(text))
            return [tool.name for tool in tools.tools], answers

    tools, (compared, results, reproduced, rows, wrong) = asyncio.run(asked())
    assert tools == ["releases", "results", "findings", "compare", "reproduce", "sql"]
    assert compared["rows"][0]["verdict"] == "faster"
    assert (compared["total"], compared["only_a"], compared["only_b"]) == (1, 0, 0)
    assert (results["total"], len(results["rows"])) == (6, 5)
    assert reproduced["run_id"] == "0.16.0-1"
    assert rows == {"rows": [{"number": 6}], "more": False}
    assert "give one SELECT" in str(wrong["error"])


CALLS = (
    ("compare", {"a": "0.15.0", "b": "0.16.0"}),
    ("results", {"offset": 1}),
    ("reproduce", {"result": "0.16.0-1"}),
    ("sql", {"statement": "SELECT count(*) AS number FROM runs"}),
    ("sql", {"statement": "DROP TABLE runs"}),
)
